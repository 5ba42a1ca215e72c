//! When a certificate is valid. Does not know what it is for.
//!
//! The library for certificates does not offer the dates. But its errors contain them, for a time before or after. It checks the dates before
//! the issuer, which is unknown here.

use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage};

/// The time in which a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// Not before.
    pub from: Timestamp,
    /// Not after.
    pub until: Timestamp,
}

impl Expiry {
    /// That of this certificate. None if it cannot be read.
    pub fn of(cert: &EndEntityCert<'_>) -> Option<Self> {
        let stamp = |time: UnixTime| Timestamp::from_second(i64::try_from(time.as_secs()).ok()?).ok();
        match (objection(cert, 0)?, objection(cert, u64::MAX)?) {
            (Error::CertNotValidYet { not_before, .. }, Error::CertExpired { not_after, .. }) => {
                Some(Self { from: stamp(not_before)?, until: stamp(not_after)? })
            }
            _ => None,
        }
    }

    /// That of a certificate that may not be one. None if it cannot be read.
    pub fn read(cert: &CertificateDer<'_>) -> Option<Self> {
        Self::of(&EndEntityCert::try_from(cert).ok()?)
    }

    /// What is wrong with the certificate at this time.
    pub fn doubt(self, now: Timestamp) -> Option<String> {
        match self {
            Self { until, .. } if now > until => Some(format!("expired at {until}")),
            Self { from, .. } if now < from => Some(format!("is not valid before {from}")),
            _ => None,
        }
    }
}

/// The last second in which a certificate is valid, also if that is beyond the range of [`Timestamp`]. None if it cannot be read.
pub(super) fn last_second(cert: &CertificateDer<'_>) -> Option<u64> {
    let cert = EndEntityCert::try_from(cert).ok()?;
    match objection(&cert, u64::MAX)? {
        Error::CertExpired { not_after, .. } => Some(not_after.as_secs()),
        _ => None,
    }
}

fn objection(cert: &EndEntityCert<'_>, time: u64) -> Option<Error> {
    let time = UnixTime::since_unix_epoch(Duration::from_secs(time));
    cert.verify_for_usage(&[], &[], &[], time, KeyUsage::server_auth(), None, None).err()
}
