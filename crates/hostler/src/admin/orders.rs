//! What can be ordered of a running Hostler, and what it says to that. Knows neither who orders nor how it is done.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::cache::Purging;

/// An order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// New workers for this pool, or for all.
    Restart(Option<String>),
    /// Hold this pool's requests, for so long at most.
    Pause(String, Duration),
    /// Let them go.
    Resume(String),
    /// Forget stored answers.
    Purge(Purging),
    /// Apply the configuration as it is now.
    Reload,
    /// Hand over to the program as it is now.
    Upgrade,
}

/// What was done, a sentence each.
pub type CommandDone = Vec<String>;

/// Why it was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undone {
    /// There is no such pool.
    #[error("there is no pool {name:?}{}", .meant.as_ref().map_or(String::new(), |meant| format!(", did you mean {meant:?}?")))]
    UnknownPool {
        /// What was asked for.
        name: String,
        /// What was probably meant.
        meant: Option<String>,
    },
    /// It cannot be understood.
    #[error("{0}")]
    Invalid(String),
    /// Not now, or not for this pool.
    #[error("{0}")]
    Refused(String),
    /// It was tried.
    #[error("{0}")]
    Failed(String),
}

/// An order on its way, and where the answer goes. It is carried out whether or not somebody waits for that.
pub struct Order {
    /// What to do.
    pub command: AdminCommand,
    /// Takes what came of it.
    pub answer: oneshot::Sender<Result<CommandDone, Undone>>,
}

/// Where orders go.
pub type Orders = mpsc::UnboundedSender<Order>;

/// Gives an order and waits for what comes of it.
pub async fn order(orders: &Orders, command: AdminCommand) -> Result<CommandDone, Undone> {
    let (answer, answered) = oneshot::channel();
    let stopping = || Undone::Refused("this Hostler is stopping".into());
    orders.send(Order { command, answer }).map_err(|_| stopping())?;
    answered.await.unwrap_or_else(|_| Err(stopping()))
}
