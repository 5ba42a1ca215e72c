//! What a failed TLS connection to a member means. Knows no HTTP.

use std::fmt;
use std::io;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

use super::Failure;

/// Why TLS to a member failed. The member has never got the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFault {
    /// The server there does not speak TLS.
    NotTls,
    /// The certificate is for another name.
    WrongName,
    /// The certificate is not from a trusted authority, or has expired.
    Untrusted,
    /// The member requires a client certificate, and does not accept ours or got none.
    ClientCertificate,
    /// The handshake failed in another way, or did not end in time.
    Handshake,
}

impl TlsFault {
    /// This fault as a [`Failure`], with details.
    pub(super) fn with(self, detail: impl fmt::Display) -> Failure {
        Failure::Tls(self, detail.to_string())
    }

    /// Why a handshake failed.
    pub(super) fn of_handshake(error: io::Error) -> Failure {
        match inner(&error) {
            Some(inner) => Self::of(inner).with(inner),
            None => Self::Handshake.with(error),
        }
    }

    /// Why the member sent no answer. In TLS 1.3 our handshake ends before the member has checked our certificate.
    pub(super) fn of_silence(error: &io::Error) -> Option<Failure> {
        let inner = inner(error)?;
        (Self::of(inner) == Self::ClientCertificate).then(|| Self::ClientCertificate.with(inner))
    }

    fn of(error: &Error) -> Self {
        use AlertDescription as Alert;
        match error {
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => Self::NotTls,
            Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => Self::WrongName,
            Error::InvalidCertificate(_) | Error::NoCertificatesPresented => Self::Untrusted,
            Error::AlertReceived(
                Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateRevoked
                | Alert::CertificateExpired
                | Alert::CertificateUnknown
                | Alert::UnknownCA
                | Alert::AccessDenied
                | Alert::CertificateRequired,
            ) => Self::ClientCertificate,
            _ => Self::Handshake,
        }
    }
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotTls => "the server there does not speak TLS",
            Self::WrongName => "the certificate is for another name",
            Self::Untrusted => "the certificate is not trusted",
            Self::ClientCertificate => "our client certificate is missing or not accepted",
            Self::Handshake => "the TLS handshake failed",
        })
    }
}

fn inner(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}
