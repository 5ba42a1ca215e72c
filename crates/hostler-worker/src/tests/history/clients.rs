//! The requests of a history: they wait in the pool, hold a slot at a process, and are tried again as the gateway does. Knows no lifecycle.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hostler_dispatch::{Acquire, Claim, Lease, LeaseEnding, MemberId, Pool, Ticket};
use tokio::time::Instant;

/// How many times a request is sent again at most.
const MOST_TRIES: u32 = 3;

/// A request and what has become of it.
pub struct Client {
    pub at: ClientState,
    /// How long its answer takes.
    work: Duration,
    ticket: Ticket,
    tries: u32,
    /// How many answers it has got.
    pub answers: u32,
}

pub enum ClientState {
    Waits(Acquire<u64>),
    Served {
        lease: Lease<u64>,
        since: Instant,
        /// `None`: its process hangs.
        ends: Option<Instant>,
        /// The supervisor knows that it takes too long.
        is_told: bool,
    },
    /// It has its answer, or its client has left.
    Ended,
}

impl Client {
    pub fn new(pool: &Pool<u64>, work: Duration) -> Self {
        let acquire = pool.acquire(Claim::default());
        let ticket = acquire.ticket();
        Self { at: ClientState::Waits(acquire), work, ticket, tries: 0, answers: 0 }
    }

    pub fn waits(&self) -> bool {
        matches!(self.at, ClientState::Waits(_))
    }

    /// The process that works on it.
    pub fn process(&self) -> Option<u64> {
        match &self.at {
            ClientState::Served { lease, .. } => Some(**lease),
            _ => None,
        }
    }

    /// Asks for its slot. `accepts` tells whether the process of a slot accepts a connection, and whether it hangs. Returns the member of a
    /// new slot.
    pub fn ask(
        &mut self,
        pool: &Pool<u64>,
        now: Instant,
        accepts: impl FnOnce(u64) -> (bool, bool),
    ) -> Option<MemberId> {
        let ClientState::Waits(acquire) = &mut self.at else { return None };
        match Pin::new(acquire).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => None,
            Poll::Ready(Err(_)) => {
                self.answered();
                None
            }
            Poll::Ready(Ok(lease)) => {
                let member = lease.member();
                let (is_reached, is_hung) = accepts(*lease);
                if is_reached {
                    lease.reached();
                    let ends = (!is_hung).then(|| now + self.work);
                    self.at = ClientState::Served { lease, since: now, ends, is_told: false };
                } else {
                    lease.end(LeaseEnding::Unreachable);
                    self.waits_again(pool);
                }
                Some(member)
            }
        }
    }

    fn answered(&mut self) {
        self.at = ClientState::Ended;
        self.answers += 1;
    }

    fn waits_again(&mut self, pool: &Pool<u64>) {
        self.at = ClientState::Waits(pool.acquire(Claim::again(self.ticket)));
    }

    /// Its process answers, if it is time.
    pub fn finish(&mut self, now: Instant) {
        if let ClientState::Served { ends: Some(ends), .. } = self.at
            && ends <= now
            && let ClientState::Served { lease, .. } = std::mem::replace(&mut self.at, ClientState::Ended)
        {
            lease.finish(now);
            self.answered();
        }
    }

    /// Its process has ended, or does not serve any more.
    pub fn breaks(&mut self, pool: &Pool<u64>) {
        let ClientState::Served { lease, .. } = std::mem::replace(&mut self.at, ClientState::Ended) else {
            return;
        };
        lease.end(LeaseEnding::HungUp);
        self.tries += 1;
        if self.tries > MOST_TRIES {
            self.answered();
        } else {
            self.waits_again(pool);
        }
    }

    pub fn stands_still(&mut self) {
        if let ClientState::Served { ends, .. } = &mut self.at {
            *ends = None;
        }
    }

    /// The member that has not answered within this time. Returned once.
    pub fn is_overdue(&mut self, limit: Duration, now: Instant) -> Option<MemberId> {
        match &mut self.at {
            ClientState::Served { lease, since, is_told, .. } if !*is_told && *since + limit <= now => {
                *is_told = true;
                Some(lease.member())
            }
            _ => None,
        }
    }

    /// When something happens to it.
    pub fn next(&self, limit: Duration) -> Option<Instant> {
        match &self.at {
            ClientState::Served { since, ends, is_told, .. } => {
                let overdue = (!is_told).then(|| *since + limit);
                ends.iter().chain(&overdue).min().copied()
            }
            _ => None,
        }
    }
}
