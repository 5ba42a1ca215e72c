//! Certificates that are trusted themselves, and not because of an authority that has signed them. Knows no connections.

use rustls::pki_types::CertificateDer;
use rustls::{CertificateError, Error, OtherError};

/// Whether a certificate is refused only because it could be that of an authority, and is one of the trusted ones itself. `openssl req -x509`
/// makes such certificates, and programs with OpenSSL accept them. The library finds this fault after it has checked the dates.
pub(crate) fn is_trusted_itself(
    error: &Error,
    trusted: &[CertificateDer<'_>],
    shown: &CertificateDer<'_>,
) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(OtherError(why))) = error else { return false };
    why.downcast_ref::<webpki::Error>() == Some(&webpki::Error::CaUsedAsEndEntity)
        && trusted.iter().any(|one| **one == **shown)
}
