//! The errors that end a start of Hostler. Does nothing.

use hostler_worker::{NeverReady, SupervisorContextError};

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
    #[error("log.file: {} cannot be opened: {source}", .file.display())]
    Log { file: std::path::PathBuf, source: std::io::Error },
    /// Data of `[geo]` or `[postal]` that was valid when the configuration was checked has changed.
    #[error("cannot start: {0}")]
    Lookups(String),
    /// `hostler run`: no worker has ever worked.
    #[error("{}", describe(.0))]
    NeverReady(NeverReady),
    /// A path of `--watch-path` or a pattern of `--watch-ignore` cannot be used.
    #[error("{0}")]
    Watch(String),
    /// The system refuses threads, signals or the like.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}

impl StartError {
    /// The exit code of Hostler: that of the app if it was never ready, otherwise 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NeverReady(never_ready) => never_ready.last.exit_code,
            _ => 1,
        }
    }
}

/// What has happened, and the app's last lines as it printed them.
fn describe(never_ready: &NeverReady) -> String {
    let NeverReady { boots, last } = never_ready;
    let (how, code) = (&last.how, last.exit_code);
    let ends = format!("`hostler run` ends with exit code {code}\nthe last try: {how}");
    let told = match &last.obstacle {
        Some(obstacle) => format!("the app was never ready, after {boots} tries: {obstacle}\n{ends}"),
        None => format!("the app was never ready, after {boots} tries; {ends}"),
    };
    match last.output.join("\n") {
        output if output.trim().is_empty() => format!("{told}; the app printed nothing"),
        output => format!("{told}; the app printed last:\n{output}"),
    }
}
