//! One certificate with its key, read from files and checked as far as a server can check its own. Does not know which clients get it.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use webpki::EndEntityCert;

use super::chain::{self, ChainLink};
use super::pem::{self, FileError};
use super::validity::Expiry;

/// The files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, followed by its intermediate certificates.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Which of the two files has the error.
#[derive(Debug)]
pub enum LoadError {
    /// The file of the certificate.
    Cert(FileError),
    /// The file of the key.
    Key(FileError),
}

impl LoadError {
    /// The error.
    pub fn into_inner(self) -> FileError {
        match self {
            Self::Cert(error) | Self::Key(error) => error,
        }
    }
}

/// A certificate that clients can get.
#[derive(Debug, Clone)]
pub struct Certificate {
    pub(super) key: Arc<CertifiedKey>,
    /// Its file.
    pub path: PathBuf,
    /// The hosts of the certificate, in lower case. `*.` means one label.
    pub names: Vec<String>,
    /// The time in which it is valid. `None` if that cannot be read.
    pub valid: Option<Expiry>,
    /// Why neither names nor dates can be read.
    unread: Option<&'static str>,
    /// The certificates behind it in the file.
    links: Vec<ChainLink>,
}

impl Certificate {
    /// Reads both files. The key must belong to the certificate.
    pub fn load(files: &CertificateFiles) -> Result<Self, LoadError> {
        let chain = pem::certificates(&files.cert).map_err(LoadError::Cert)?;
        let key = pem::private_key(&files.key).map_err(LoadError::Key)?;
        let refuse_cert = |why: String| LoadError::Cert(FileError::new(&files.cert, why));
        let refuse_key = |why: String| LoadError::Key(FileError::new(&files.key, why));
        let (names, valid, unread) = match read(&chain[0]) {
            Ok((names, valid)) => (names, valid, None),
            Err(error) => match beyond_library(&error) {
                Some(why) => (Vec::new(), None, Some(why)),
                None => return Err(refuse_cert(unreadable(&error))),
            },
        };
        let links = chain::links(&chain).map_err(refuse_cert)?;
        let key = any_supported_type(&key).map_err(|_| refuse_key(unusable(&key).into()))?;
        let key = CertifiedKey::new(chain, key);
        match check_key(&key, unread.is_some()) {
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(Error::InconsistentKeys(_)) => {
                let cert = files.cert.display();
                return Err(refuse_key(format!("is not the key of the first certificate in {cert}")));
            }
            Err(error) => return Err(refuse_cert(error.to_string())),
        }
        Ok(Self { key: Arc::new(key), path: files.cert.clone(), names, valid, unread, links })
    }

    /// The problems of a certificate that can still be used.
    pub fn doubts(&self, now: Timestamp) -> Vec<String> {
        let nameless = || {
            let only = "so clients accept it only for an IP address that it names";
            self.names.is_empty().then(|| format!("has no DNS name (subjectAltName), {only}"))
        };
        let unread = self.unread.map(|why| {
            format!("{why}, so Hostler cannot read its names and dates: it is used only as the first certificate, and clients may refuse it")
        });
        let own = unread.or_else(|| self.valid.and_then(|valid| valid.doubt(now))).or_else(nameless);
        let all = own.into_iter().chain(chain::doubts(&self.links, now, "clients"));
        all.map(|doubt| format!("{}: {doubt}", self.path.display())).collect()
    }
}

/// What is special about a certificate that only this library does not read. Other servers use it, and some clients accept it.
fn beyond_library(error: &webpki::Error) -> Option<&'static str> {
    match error {
        webpki::Error::UnsupportedCertVersion => Some("is not of version 3 of X.509"),
        webpki::Error::UnsupportedCriticalExtension => {
            Some("has a critical extension that Hostler does not know")
        }
        _ => None,
    }
}

/// The key of a certificate that Hostler shows to servers. Like [`CertifiedKey::from_der`], also for a certificate that the library does not read:
/// the servers read it.
pub(crate) fn key_for_servers(
    chain: Vec<CertificateDer<'static>>,
    key: &PrivateKeyDer<'static>,
) -> Result<CertifiedKey, Error> {
    let is_unread = chain.first().is_some_and(is_beyond_library);
    let key = CertifiedKey::new(chain, any_supported_type(key)?);
    match check_key(&key, is_unread) {
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(key),
        Err(error) => Err(error),
    }
}

/// Whether only this library does not read it.
pub(crate) fn is_beyond_library(cert: &CertificateDer<'_>) -> bool {
    EndEntityCert::try_from(cert).is_err_and(|error| beyond_library(&error).is_some())
}

/// Like [`CertifiedKey::keys_match`], also for a certificate that the library does not read: it contains its public key as it is.
fn check_key(key: &CertifiedKey, is_unread: bool) -> Result<(), Error> {
    match key.key.public_key() {
        Some(public) if is_unread => match memchr::memmem::find(key.end_entity_cert()?, public.as_ref()) {
            Some(_) => Ok(()),
            None => Err(InconsistentKeys::KeyMismatch.into()),
        },
        None if is_unread => Ok(()),
        _ => key.keys_match(),
    }
}

/// The library says only that it could not use the key.
fn unusable(key: &PrivateKeyDer<'_>) -> &'static str {
    /// 1.2.840.113549.1.1.1 (RFC 8017 appendix C).
    const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
    let names_rsa = key.secret_der().windows(RSA.len()).any(|part| part == RSA);
    if names_rsa || matches!(key, PrivateKeyDer::Pkcs1(_)) {
        "this RSA key cannot be used: it must have 2048 to 8192 bits; make a new key and get a certificate for it"
    } else {
        "this private key cannot be used: it must be an RSA key of 2048 to 8192 bits, an ECDSA key of P-256, P-384 or P-521, or an Ed25519 key"
    }
}

fn unreadable(error: &webpki::Error) -> String {
    format!("its first certificate is malformed ({error})")
}

fn read(cert: &CertificateDer<'_>) -> Result<(Vec<String>, Option<Expiry>), webpki::Error> {
    let cert = EndEntityCert::try_from(cert)?;
    let names = cert.valid_dns_names().map(str::to_ascii_lowercase).collect();
    Ok((names, Expiry::of(&cert)))
}
