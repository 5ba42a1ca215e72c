//! The commands that a running Hostler takes, and their results. Does not know who sends a command or how it is carried out.

use std::time::Duration;

use hostler_worker::Rotation;
use tokio::sync::{mpsc, oneshot};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// Replaces the workers of this pool, or of all pools.
    Restart(Option<String>),
    /// Holds the requests of this pool, for this long at most.
    Pause(String, Duration),
    /// Ends the pause of this pool.
    Resume(String),
    /// Takes a worker of this pool out of rotation, or puts it back.
    Rotate(String, usize, Rotation),
    /// Removes stored answers.
    Purge(Purging),
    /// Applies the configuration files as they are now.
    Reload,
    /// Hands over to a new process of the program as it is now on the disk.
    Upgrade,
}

/// What a purge removes. This process need not have any of it in memory: memcached may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purging {
    /// Whole URLs, with or without `https://`.
    pub urls: Vec<String>,
    /// Prefixes of URLs.
    pub prefixes: Vec<String>,
    /// Tags from the fields `Cache-Tag` and `Surrogate-Key` of answers.
    pub tags: Vec<String>,
    pub all: bool,
}

/// What was done, one sentence each.
pub type CommandDone = Vec<String>;

/// Why a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("there is no pool {name:?}{}", .meant.as_ref().map_or(String::new(), |meant| format!(", did you mean {meant:?}?")))]
    UnknownPool {
        /// The name in the command.
        name: String,
        /// The existing name that is most like it.
        meant: Option<String>,
    },
    /// The command is malformed.
    #[error("{0}")]
    Invalid(String),
    /// It is not possible now, or not for this pool.
    #[error("{0}")]
    Refused(String),
    /// The process with this number serves in place of this one soon, or does already, and would not know of the command.
    #[error("pid {pid} {how}: repeat the command")]
    TakenOver { pid: u32, how: &'static str },
    /// It was tried and failed.
    #[error("{0}")]
    Failed(String),
}

/// A command and the channel for its result. It is carried out even if the sender no longer waits for the result.
pub struct PendingCommand {
    pub command: AdminCommand,
    pub answer: oneshot::Sender<Result<CommandDone, CommandError>>,
}

/// The queue of commands.
pub type CommandSender = mpsc::UnboundedSender<PendingCommand>;

/// Sends a command and waits for its result.
pub async fn send(commands: &CommandSender, command: AdminCommand) -> Result<CommandDone, CommandError> {
    let (answer, answered) = oneshot::channel();
    let stopping = || CommandError::Refused("this Hostler is stopping".into());
    commands.send(PendingCommand { command, answer }).map_err(|_| stopping())?;
    answered.await.unwrap_or_else(|_| Err(stopping()))
}
