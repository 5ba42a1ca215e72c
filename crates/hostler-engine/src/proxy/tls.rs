//! What it means when TLS to a member fails. Knows no HTTP.

use std::fmt;
use std::io;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

use super::Failure;

/// What is wrong between us and a member. In no case has it seen a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFault {
    /// What answers there is not TLS.
    NotTls,
    /// Its certificate is for somebody else.
    WrongName,
    /// Its certificate is not by anybody whom we trust, or out of date.
    Untrusted,
    /// It wants a certificate of ours and got none, or none that it takes.
    ClientCertificate,
    /// The handshake failed otherwise, or did not end in time.
    Handshake,
}

impl TlsFault {
    /// As a failure, with what there is to say about it.
    pub(super) fn with(self, detail: impl fmt::Display) -> Failure {
        Failure::Tls(self, detail.to_string())
    }

    /// Why a handshake has failed.
    pub(super) fn of_handshake(error: io::Error) -> Failure {
        match inner(&error) {
            Some(inner) => Self::of(inner).with(inner),
            None => Self::Handshake.with(error),
        }
    }

    /// Why nothing was answered: in TLS 1.3 our side of the handshake is over before the member has looked at our certificate.
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
            Self::NotTls => "no TLS is spoken there",
            Self::WrongName => "the certificate is for somebody else",
            Self::Untrusted => "the certificate is not to be trusted",
            Self::ClientCertificate => "our certificate is missing or not accepted",
            Self::Handshake => "the TLS handshake failed",
        })
    }
}

fn inner(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}
