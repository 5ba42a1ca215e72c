//! The workers of one pool as a whole; knows of each only what it says of itself.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::keeper::{Crew, Keeper, Order};
use super::settings::{Address, Probe, WorkerFacts, WorkerSettings};
use super::snapshot::{Status, WorkerSnapshot, WorkerState};
use super::yard::Yard;
use crate::dispatch::{MemberId, Pool};

/// Keeps the workers of one pool alive until it is told to stop. Dropped without that, it kills them.
pub struct Supervisor {
    board: watch::Receiver<Vec<Status>>,
    orders: Vec<mpsc::UnboundedSender<Order>>,
}

impl Supervisor {
    /// Starts the workers on the current runtime; each joins the pool when it is ready, with the endpoint that
    /// `endpoint` makes of its address.
    pub fn start<E: Send + Sync + 'static>(
        settings: WorkerSettings,
        pool: Pool<E>,
        endpoint: impl Fn(Address, WorkerFacts) -> E + Send + Sync + 'static,
        probe: Arc<dyn Probe>,
        yard: Yard,
    ) -> Self {
        let count = settings.count;
        let (board, watched) = watch::channel((1..=count).map(Status::new).collect());
        let crew = Arc::new(Crew {
            settings,
            pool,
            endpoint: Box::new(endpoint),
            probe,
            yard,
            board,
            concurrency: Arc::default(),
        });
        let orders = (1..=count).map(|index| {
            let (sender, orders) = mpsc::unbounded_channel();
            tokio::spawn(Keeper::new(Arc::clone(&crew), index, orders).run());
            sender
        });
        Self { orders: orders.collect(), board: watched }
    }

    /// The figures of this moment, in order of the workers' numbers.
    pub fn snapshot(&self) -> Vec<WorkerSnapshot> {
        let now = Instant::now();
        let board = self.board.borrow().clone();
        board.iter().map(|status| status.snapshot(now)).collect()
    }

    /// Waits until a worker is ready; false if all have stopped instead.
    pub async fn ready(&self) -> bool {
        self.until(|board| is_any(board, WorkerState::Ready) || is_every(board, WorkerState::Stopped)).await;
        is_any(&self.board.borrow(), WorkerState::Ready)
    }

    /// Waits until every worker is ready; false if some have stopped instead.
    pub async fn all_ready(&self) -> bool {
        self.until(|board| is_every(board, WorkerState::Ready) || is_any(board, WorkerState::Stopped)).await;
        is_every(&self.board.borrow(), WorkerState::Ready)
    }

    /// Takes the workers out of the pool and stops them gracefully; returns when the last process is gone.
    pub async fn stop(&self) {
        self.order(Order::Stop);
        self.stopped().await;
    }

    /// Kills the workers, also in the middle of a [`Self::stop`].
    pub fn kill_now(&self) {
        self.order(Order::Kill);
    }

    /// Waits until no worker is left, after a [`Self::stop`] or [`Self::kill_now`] by whomever.
    pub async fn stopped(&self) {
        self.until(|board| is_every(board, WorkerState::Stopped)).await;
    }

    /// A lease of this member has lasted longer than any may: its worker is killed and replaced.
    pub fn hung(&self, member: MemberId) {
        self.order(Order::Hung(member));
    }

    fn order(&self, order: Order) {
        for worker in &self.orders {
            // One that has stopped needs no orders.
            let _ = worker.send(order);
        }
    }

    async fn until(&self, is_so: impl FnMut(&Vec<Status>) -> bool) {
        // An error means that all keepers are gone, which is as final.
        let _ = self.board.clone().wait_for(is_so).await;
    }
}

fn is_any(board: &[Status], state: WorkerState) -> bool {
    board.iter().any(|status| status.state == state)
}

fn is_every(board: &[Status], state: WorkerState) -> bool {
    board.iter().all(|status| status.state == state)
}
