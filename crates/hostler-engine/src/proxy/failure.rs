//! Why a call has no answer, and what a failed TLS connection to a member means. Knows no leases and no retries.

use std::fmt;
use std::io;

use hostler_wire::CallError;
use rustix::io::Errno;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

use crate::exchange::BodyError;

/// Why there is no answer. Either the lease has come back, or it stays taken until the member has finished.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No connection could be made. The request was never sent.
    #[error("could not connect: {0}")]
    Unreachable(std::io::Error),
    /// This process, or the machine, has no file descriptor or no local port left for a connection. The request was never sent.
    #[error("no room for a connection: {0}")]
    NoDescriptor(Errno),
    /// TLS failed. The request was never sent.
    #[error("{0}: {1}")]
    Tls(TlsFault, String),
    /// The member has not processed the request: it says so, or its worker has ended without reading it.
    #[error("{0}")]
    Unprocessed(String),
    /// HTTP/2, the member's protocol, cannot express the request.
    #[error("HTTP/2 cannot express the request")]
    NotExpressible,
    /// The head of the request has more than these bytes, which the member accepts at most. Nothing was sent.
    #[error("the member accepts heads of {0} bytes at most (SETTINGS_MAX_HEADER_LIST_SIZE)")]
    HeadTooLarge(usize),
    /// The connection ended before the first byte of an answer. The request may have been worked on.
    #[error("{0}")]
    Unanswered(CallError),
    /// The connection ended in the middle of an answer, before any of it was passed on.
    #[error("{0}")]
    Broken(CallError),
    /// The answer is not HTTP.
    #[error("{0}")]
    BadAnswer(CallError),
    /// The deadline has passed. The slot stays taken until the member has finished.
    #[error("no response in time")]
    TimedOut,
    /// The pool marked the member down during the wait. It may have worked on the request.
    #[error("the member does not answer")]
    MarkedDown,
    /// The client's side failed while its body was being passed on, or the client has left.
    #[error("{0}")]
    Body(BodyError),
}

/// An error that does not show whether the member is there. Examples: its name led to no address, or the wait for other connection attempts
/// took the whole time.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Undecided(io::Error);

impl Failure {
    /// The same error, marked for [`Self::leaves_open`]. An error about missing file descriptors is returned as it is.
    pub(super) fn undecided(error: io::Error) -> io::Error {
        match Errno::from_io_error(&error) {
            Some(Errno::MFILE | Errno::NFILE) => error,
            _ => io::Error::new(error.kind(), Undecided(error)),
        }
    }

    /// Why a connection could not be made.
    pub(super) fn to_connect(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno @ (Errno::MFILE | Errno::NFILE | Errno::ADDRNOTAVAIL)) => Self::NoDescriptor(errno),
            _ => Self::Unreachable(error),
        }
    }

    /// The member got nothing of the request, so any other member may get it.
    pub fn was_never_sent(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::NoDescriptor(_) | Self::Tls(..))
    }

    /// The request was sent, and the member has not processed it.
    pub fn was_unprocessed(&self) -> bool {
        matches!(self, Self::Unprocessed(_))
    }

    /// The member has answered, but not in HTTP. The request is never sent again.
    pub fn is_bad_answer(&self) -> bool {
        matches!(self, Self::BadAnswer(_))
    }

    /// No connection could be made, and the cause may have nothing to do with the member.
    pub fn leaves_open(&self) -> bool {
        let Self::Unreachable(error) = self else { return false };
        error.get_ref().is_some_and(|inner| inner.is::<Undecided>())
    }

    /// A timeout while Hostler connected, which the member has caused. A further attempt would time out as well: the member is gone or
    /// overloaded.
    pub(super) fn was_silence(&self) -> bool {
        match self {
            Self::Unreachable(error) => error.kind() == io::ErrorKind::TimedOut && !self.leaves_open(),
            Self::Tls(TlsFault::Handshake, why) => why == LATE_HANDSHAKE,
            _ => false,
        }
    }

    /// No connection was tried, because Hostler had no file descriptor or no local port. The failure says nothing about the member.
    pub fn is_by_hostler(&self) -> bool {
        matches!(self, Self::NoDescriptor(_))
    }

    /// The client is the cause, not the member.
    pub fn is_by_client(&self) -> bool {
        matches!(self, Self::Body(_))
    }

    /// The answer was late, and another member may be asked.
    pub fn was_marked_down(&self) -> bool {
        matches!(self, Self::MarkedDown)
    }

    /// The member closed the connection without an answer to the request: another may answer it.
    pub fn was_cut_off(&self) -> bool {
        matches!(self, Self::Unanswered(_) | Self::Broken(_))
    }
}

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
    /// The member does not offer HTTP/2.
    NoHttp2,
    /// The handshake failed in another way, or did not end in time.
    Handshake,
}

/// The details of a handshake that has not ended in time.
const LATE_HANDSHAKE: &str = "no handshake in time";

impl TlsFault {
    /// The handshake has not ended in time.
    pub(super) fn late() -> Failure {
        Self::Handshake.with(LATE_HANDSHAKE)
    }

    /// This fault as a [`Failure`], with details.
    pub(super) fn with(self, detail: impl fmt::Display) -> Failure {
        Failure::Tls(self, detail.to_string())
    }

    /// Why a handshake failed.
    pub(super) fn of_handshake(error: io::Error) -> Failure {
        match inner(&error) {
            // A member with rustls says so if it has no certificate for this name, or for a client that names none.
            Some(inner @ Error::AlertReceived(AlertDescription::AccessDenied)) => Self::Handshake.with(inner),
            Some(inner) => Self::of(inner).with(inner),
            None => Self::Handshake.with(error),
        }
    }

    /// The member speaks none of the protocols that were offered to it (ALPN).
    pub(super) fn is_other_protocol(error: &io::Error) -> bool {
        matches!(inner(error), Some(Error::AlertReceived(AlertDescription::NoApplicationProtocol)))
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
            Self::ClientCertificate => "Hostler's client certificate is missing or not accepted",
            Self::NoHttp2 => "the server there does not offer HTTP/2",
            Self::Handshake => "the TLS handshake failed",
        })
    }
}

fn inner(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}
