//! Certificates for tests: an authority, and certificates that it issues. Knows no connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

static AUTHORITIES: AtomicUsize = AtomicUsize::new(1);

/// A certificate authority.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    number: usize,
}

/// An issued certificate and its key, in PEM.
#[derive(Clone)]
pub struct IssuedCertificate {
    /// The certificate.
    pub cert: String,
    /// Its private key.
    pub key: String,
}

/// A new authority, which no system trusts.
pub fn authority() -> Authority {
    // A number, because clients would confuse two authorities of the same name and reject the signatures.
    let number = AUTHORITIES.fetch_add(1, Ordering::Relaxed);
    let issuer = CertifiedIssuer::self_signed(of_authority(number), KeyPair::generate().unwrap()).unwrap();
    Authority { issuer, number }
}

/// A certificate for these names and addresses that has signed itself, and could be that of an authority: `openssl req -x509` makes such ones.
pub fn self_signed(names: &[&str]) -> IssuedCertificate {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    IssuedCertificate { cert: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

fn of_authority(number: usize) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

impl Authority {
    /// A new authority that this one vouches for.
    pub fn intermediate(&self) -> Self {
        self.vouch_for_authority(|_| ())
    }

    /// A new authority that this one has vouched for until 2002.
    pub fn expired_intermediate(&self) -> Self {
        self.vouch_for_authority(expire)
    }

    fn vouch_for_authority(&self, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let number = AUTHORITIES.fetch_add(1, Ordering::Relaxed);
        let mut params = of_authority(number);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        Self { issuer: CertifiedIssuer::signed_by(params, key, &self.issuer).unwrap(), number }
    }

    /// An authority with the same name and another key.
    pub fn namesake(&self) -> Self {
        let (params, number) = (of_authority(self.number), self.number);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer, number }
    }

    /// The certificate of the authority, in PEM.
    pub fn cert(&self) -> String {
        self.issuer.pem()
    }

    /// Issues a certificate for these names and addresses.
    pub fn vouch_for(&self, names: &[&str]) -> IssuedCertificate {
        self.sign(CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap())
    }

    /// Issues an expired certificate for these names and addresses.
    pub fn vouched_for(&self, names: &[&str]) -> IssuedCertificate {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        expire(&mut params);
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> IssuedCertificate {
        let key = KeyPair::generate().unwrap();
        IssuedCertificate {
            cert: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

fn expire(params: &mut CertificateParams) {
    (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
}

impl IssuedCertificate {
    /// The settings of a server with this certificate. If `clients` is given, the server asks for client certificates of
    /// that authority.
    pub fn for_server(&self, clients: Option<&Authority>) -> ServerConfig {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.issuer.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let cert = CertificateDer::from_pem_slice(self.cert.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        builder.with_single_cert(vec![cert], key).unwrap()
    }
}
