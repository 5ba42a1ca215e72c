//! The errors that end a start of Hostler. Does nothing.

use hostler_worker::SupervisorContextError;

use super::listeners::ListenError;
use super::socket_activation::GivenError;

/// Why Hostler could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Given(#[from] GivenError),
    #[error(transparent)]
    SupervisorContext(#[from] SupervisorContextError),
    #[error("cannot take over from the running Hostler: {0}")]
    TakeOver(std::io::Error),
    /// A certificate that was valid when the configuration was checked has changed.
    #[error("cannot start [tls]: {0}")]
    Tls(String),
    /// Data of `[geo]` or `[postal]` that was valid when the configuration was checked has changed.
    #[error("cannot start: {0}")]
    Lookups(String),
    /// The system refuses threads, signals or the like.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}
