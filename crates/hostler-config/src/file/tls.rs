//! The keys of `[tls]`, as written. Knows not what the files hold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Address, Count, OneOrMany, TextOr};

/// The `[tls]` section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Tls {
    /// Where clients connect with TLS (1.2 or 1.3), besides `server.listen`; written as that is. Needs `certificates`. What
    /// comes in here is forwarded with `X-Forwarded-Proto: https`.
    pub listen: OneOrMany<Address>,
    /// A list of tables with `cert` and `key`, PEM files: the certificate followed by those that lead from it to a known
    /// one, and its private key without a passphrase; relative to the file's folder. A client is shown the one for the name it
    /// asks for (SNI), the name itself before a wildcard; any other client is shown the first. Of several for the same name it
    /// is the first whose kind (ECDSA, RSA) the client takes. Files that change are read anew within seconds, and at
    /// `hostler reload`: no connection is touched, and files that are no good leave everything as it is.
    #[schemars(extend("x-kind" = "list of: { cert, key }"))]
    pub certificates: Vec<Certificate>,
    /// Whether a client that asks for a name that no certificate has, or for none, is refused in place of being shown the
    /// first certificate.
    pub strict_sni: bool,
    /// The lowest version that is spoken.
    pub min_version: MinVersion,
    /// A PEM file with the authorities whose certificates clients have to show; relative to the file's folder. None: clients
    /// are not asked for any. Members read a client's certificate in `Client-Cert` (RFC 9440), and nobody else's word for it.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub client_ca: Option<String>,
    /// Whether a client without certificate is refused; one with a certificate that is not by `client_ca` always is.
    pub client_certificates: ClientCertificates,
    /// Whether whoever comes without TLS (`server.listen`) is sent to `https`: 308 (RFC 9110, section 15.4.9), whatever was
    /// asked for. Not one whose trusted proxy says in `X-Forwarded-Proto` that it has come by `https`.
    pub redirect_http: bool,
    /// The port to which `redirect_http` sends, where clients reach `listen` by another.
    #[schemars(with = "Count<1, 65535>", extend("x-default" = "the first of listen"))]
    pub public_port: Option<Count<1, 65535>>,
    /// How long browsers shall insist on https (`Strict-Transport-Security`, RFC 6797), such as `"1year"`: every answer by TLS
    /// says so, in place of what an app says. Or a table: `{ max_age = "2years", include_subdomains = true, preload = true }`.
    #[schemars(with = "TextOr<Hsts>", extend("x-default" = "none"))]
    pub hsts: Option<TextOr<Hsts>>,
}

/// One of `tls.certificates`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with `cert` and `key`")]
pub struct Certificate {
    /// The certificate and those that lead from it to a known one.
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
    /// They do.
    #[default]
    Required,
    /// They are asked for one, and may have none.
    Optional,
}

/// The long form of `tls.hsts`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Hsts {
    /// How long browsers shall insist on https, such as `"1year"`.
    pub max_age: String,
    /// For all hosts below the one that answers, too.
    pub include_subdomains: bool,
    /// Browsers' makers may put it on their lists: there is no quick way back.
    pub preload: bool,
}
