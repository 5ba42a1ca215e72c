//! Why the body of an answer breaks off: for the log, and for the client if it has received nothing.

use hostler_engine::cache::Cut;
use hostler_engine::gateway::Refusal;
use hostler_wire::CallError;

/// Why an answer that pauses for too long is ended, for the log.
pub(super) const PAUSED: &str = "the worker sent no byte for response_idle_timeout";

/// Why a body breaks off, by its source.
pub(super) enum BodyFailure {
    Member(CallError),
    Own(std::io::Error),
    Shared(Cut),
    Encoder(std::io::Error),
    /// Nothing came for too long.
    Pause,
}

impl BodyFailure {
    /// The party that broke the body off, for the log.
    pub fn whose(&self) -> &'static str {
        match self {
            Self::Own(_) => "file_system",
            Self::Member(_) | Self::Shared(_) | Self::Encoder(_) | Self::Pause => "worker",
        }
    }
}

impl From<BodyFailure> for Refusal {
    fn from(failure: BodyFailure) -> Self {
        match failure {
            BodyFailure::Member(error) => Self::BadAnswer(error.to_string()),
            BodyFailure::Own(error) => Self::FileSystem(error),
            BodyFailure::Shared(Cut(why)) => Self::WorkerLost(why.to_string()),
            BodyFailure::Pause => Self::BadAnswer(PAUSED.into()),
            BodyFailure::Encoder(error) => Self::BadAnswer(format!("it could not be encoded: {error}")),
        }
    }
}
