//! What the workers of one pool share, and what is ordered of them and heard from them; does nothing.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::concurrency::Concurrency;
use super::rollout::{Heard, KeeperId};
use super::settings::{Address, Probe, WorkerFacts, WorkerSettings};
use super::snapshot::Status;
use super::yard::Yard;
use crate::dispatch::{MemberId, Pool};

/// What may be ordered of one worker.
#[derive(Clone, Debug)]
pub(super) enum Order {
    Stop,
    /// It is needed no more, for this reason; what it has begun it finishes.
    Retire(Arc<str>),
    Kill,
    Hung(MemberId),
}

/// What the workers of one pool share.
pub(super) struct Crew<E> {
    /// The newest; each boot takes what it finds here.
    pub settings: watch::Sender<Arc<WorkerSettings>>,
    pub pool: Pool<E>,
    pub endpoint: Box<dyn Fn(Address, WorkerFacts) -> E + Send + Sync>,
    pub probe: Arc<dyn Probe>,
    pub yard: Yard,
    pub board: watch::Sender<Vec<Status>>,
    pub concurrency: Arc<Concurrency>,
    pub reports: mpsc::UnboundedSender<(KeeperId, Heard)>,
}
