//! The faults that the chaos test causes while clients send requests: chosen at random, caused, recorded.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::ledger::InjectedFault;
use super::load::Users;
use super::orders::{Operator, Order};
use super::request::{Request, Way};
use super::{LOOPS, MANY, ONE};
use crate::proc;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// SIGKILL to a ready worker.
    Kill(&'static str),
    /// A request that does something to its worker.
    Ask(&'static str, Way, &'static str),
    /// An operator's command. One at a time.
    Give(Order),
}

/// The kinds, each as often as it should occur.
const IN_THE_MIX: &[Kind] = &[
    Kind::Kill(ONE),
    Kind::Kill(ONE),
    Kind::Kill(MANY),
    Kind::Kill(MANY),
    Kind::Ask(ONE, Way::Exit, "POST"),
    Kind::Ask(ONE, Way::Throw, "POST"),
    Kind::Ask(ONE, Way::Half, "GET"),
    Kind::Ask(ONE, Way::Exit, "GET"),
    Kind::Ask(MANY, Way::Throw, "GET"),
    Kind::Ask(LOOPS, Way::Loop, "GET"),
    Kind::Ask(MANY, Way::Leak, "GET"),
    Kind::Ask(MANY, Way::Leak, "GET"),
    Kind::Give(Order::Restart(ONE)),
    Kind::Give(Order::Restart(MANY)),
    Kind::Give(Order::Reload),
    Kind::Give(Order::Reload),
    Kind::Give(Order::BadReload),
    Kind::Give(Order::Pause(ONE)),
    Kind::Give(Order::Pause(MANY)),
    Kind::Give(Order::Upgrade),
    Kind::Give(Order::Upgrade),
];

/// The faults of a round, when rounds are counted.
const IN_ROUNDS: &[Kind] = &[
    Kind::Give(Order::Restart(ONE)),
    Kind::Kill(ONE),
    Kind::Give(Order::Reload),
    Kind::Give(Order::Restart(MANY)),
    Kind::Kill(MANY),
    Kind::Give(Order::Upgrade),
];

pub struct FaultInjector {
    users: Arc<Users>,
    operator: Arc<Operator>,
    chance: fastrand::Rng,
    asked: usize,
    /// Requests of faults, which wait for their answers.
    asking: JoinSet<()>,
    /// The command that is being carried out.
    giving: JoinSet<()>,
}

impl FaultInjector {
    pub fn new(users: Arc<Users>, operator: Arc<Operator>, chance: fastrand::Rng) -> Self {
        Self { users, operator, chance, asked: 0, asking: JoinSet::new(), giving: JoinSet::new() }
    }

    /// Causes one fault and does not wait for its result.
    pub async fn inject_one(&mut self) {
        while let Some(given) = self.giving.try_join_next() {
            given.unwrap();
        }
        let kind = *self.chance.choice(IN_THE_MIX).unwrap();
        self.carry_out(kind).await;
    }

    /// Causes the fault of this round and waits until it is over.
    pub async fn inject_in_turn(&mut self, round: usize) {
        self.carry_out(IN_ROUNDS[round % IN_ROUNDS.len()]).await;
        self.settle().await;
    }

    /// Waits until all faults have ended.
    pub async fn settle(&mut self) {
        for begun in [&mut self.asking, &mut self.giving] {
            std::mem::take(begun).join_all().await;
        }
    }

    async fn carry_out(&mut self, kind: Kind) {
        match kind {
            Kind::Kill(pool) => {
                if let Some(pid) = self.victim(pool).await {
                    // Recorded first: the verdict must know of a fault before a request can suffer from it.
                    self.users.ledger.record_fault(InjectedFault {
                        pool,
                        kills: Some(pid),
                        is_deadly: true,
                        detail: pid.to_string(),
                        ..InjectedFault::harmless("kill".into())
                    });
                    proc::kill(pid);
                }
            }
            Kind::Ask(pool, way, method) => {
                if self.victim(pool).await.is_some() {
                    self.ask(pool, way, method);
                }
            }
            Kind::Give(order) if self.giving.is_empty() => self.give(order),
            Kind::Give(_) => {}
        }
    }

    /// The process of a ready worker. A pool without another ready worker is spared: pools without any worker are tested by the storm
    /// ([`super::storm`]).
    async fn victim(&mut self, pool: &str) -> Option<u32> {
        let pids = self.users.ready_pids(pool).await;
        self.chance.choice(&pids).copied().filter(|_| pids.len() > 1)
    }

    fn ask(&mut self, pool: &'static str, way: Way, method: &'static str) {
        self.asked += 1;
        let request = Request::special(self.asked, pool, way, method, "?mib=90");
        self.users.ledger.record_fault(InjectedFault {
            pool,
            is_deadly: way.is_deadly(),
            detail: request.id.clone(),
            ..InjectedFault::harmless(format!("{way:?} by {method}"))
        });
        let users = Arc::clone(&self.users);
        self.asking.spawn(async move { users.ask(request).await });
    }

    fn give(&mut self, order: Order) {
        self.users.ledger.record_fault(InjectedFault::harmless(format!("{order:?} begun")));
        let (users, operator) = (Arc::clone(&self.users), Arc::clone(&self.operator));
        let mut chance = self.chance.fork();
        self.giving.spawn(async move {
            operator.give(order, &mut chance).await;
            users.ledger.record_fault(InjectedFault::harmless(format!("{order:?} done")));
        });
    }
}
