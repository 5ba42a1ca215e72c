//! The keys of `[tls]`, as written. Does not know what the files contain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Address, Count, OneOrMany, TextOr, Value};

/// The `[tls]` section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Tls {
    /// The addresses on which Hostler accepts connections with TLS (1.2 or 1.3), in the form of `server.listen`.
    /// Needs `certificates`.
    ///
    /// Members get `X-Forwarded-Proto: https` for these requests.
    pub listen: OneOrMany<Address>,
    /// The certificates with their private keys. Example: `[{ cert = "tls/shop.pem", key = "tls/shop.key" }]`.
    ///
    /// - `cert`: a PEM file with the server's certificate, followed by its intermediate certificates.
    /// - `key`: a PEM file with its private key, without a passphrase.
    ///
    /// Relative paths start at the folder of the configuration file.
    ///
    /// A client gets the certificate for the name that it asks for (SNI): the exact name first, then a wildcard.
    /// All other clients get the first certificate. Of several certificates for the same name, a client gets the
    /// first one whose kind (ECDSA, RSA) it supports.
    ///
    /// Hostler loads changed files within seconds, and at `hostler reload`. Connections are not affected. If a new
    /// file has an error, Hostler keeps the old certificate.
    #[schemars(extend("x-kind" = "list of: { cert, key }"))]
    pub certificates: Vec<Certificate>,
    /// Whether Hostler refuses a client that asks for an unknown name, or for no name. Otherwise the client gets
    /// the first certificate.
    pub strict_sni: bool,
    /// The lowest TLS version that Hostler accepts.
    pub min_version: MinVersion,
    /// A PEM file with the authorities that must have signed the clients' certificates (mutual TLS).
    ///
    /// A relative path starts at the folder of the configuration file. Without it, Hostler asks clients for no
    /// certificate. Members read the client's certificate in `Client-Cert` (RFC 9440). Hostler removes this field
    /// if a client sends it.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub client_ca: Option<String>,
    /// Whether a client must have a certificate. Hostler always refuses a certificate that `client_ca` has not
    /// signed.
    pub client_certificates: ClientCertificates,
    /// Whether Hostler redirects requests without TLS (`server.listen`) to `https`, with 308 (RFC 9110, section
    /// 15.4.9).
    ///
    /// It does not redirect a request if a trusted proxy says in `X-Forwarded-Proto` that the client has used
    /// `https`, or in `Forwarded` if that is `server.client_ip_header`.
    ///
    /// Nor does it redirect a challenge for a certificate, such as `/.well-known/acme-challenge/x`, if the `match` of
    /// its route names this folder: the authority may get no connection with TLS.
    pub redirect_http: bool,
    /// The port in the URLs of `redirect_http`. Set it if clients reach `listen` by another port.
    #[schemars(with = "Count<1, 65535>", extend("x-default" = "the port of the first `listen`"))]
    pub public_port: Option<Count<1, 65535>>,
    /// How long browsers must use HTTPS for this site (`Strict-Transport-Security`, RFC 6797). Example: `"1year"`.
    ///
    /// Every response over TLS has the field, except the refusal of a malformed request and the response to a
    /// health check. It replaces the field of an app. The long form is `{ max_age = "2years", include_subdomains =
    /// true, preload = true }`.
    #[schemars(with = "TextOr<Hsts>", extend("x-default" = "none"))]
    pub hsts: Option<TextOr<Hsts>>,
}

/// One of `tls.certificates`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with `cert` and `key`")]
pub struct Certificate {
    /// The certificate, followed by its intermediate certificates.
    pub cert: String,
    /// Its private key.
    pub key: String,
}

/// The lowest version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MinVersion {
    /// TLS 1.2 (RFC 5246).
    #[default]
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    #[serde(rename = "1.3")]
    Tls13,
}

/// Whether clients need certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientCertificates {
    /// Hostler refuses a client without a certificate.
    #[default]
    Required,
    /// Hostler asks for a certificate, and also accepts clients without one.
    Optional,
}

/// The long form of `tls.hsts`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Hsts {
    /// How long browsers must use HTTPS, such as `"1year"`.
    pub max_age: String,
    /// Whether it holds for all hosts below this one, too.
    pub include_subdomains: bool,
    /// Whether browser vendors may add the host to their preload lists. It takes months to remove it from there.
    pub preload: bool,
}

impl Value for Hsts {}
