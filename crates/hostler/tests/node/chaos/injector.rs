//! What is done to Hostler and its workers while everybody asks: drawn by chance, carried out, written down.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::ledger::Blow;
use super::load::Users;
use super::orders::{Operator, Order};
use super::request::{Request, Way};
use super::{LOOPS, MANY, ONE};
use crate::proc;

/// What may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// SIGKILL to a ready worker.
    Kill(&'static str),
    /// A request that does something to its worker.
    Ask(&'static str, Way, &'static str),
    /// An operator's command; one at a time.
    Give(Order),
}

/// Each as often as it is here.
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

/// What a round is, one after the other, when rounds are counted.
const IN_ROUNDS: &[Kind] = &[
    Kind::Give(Order::Restart(ONE)),
    Kind::Kill(ONE),
    Kind::Give(Order::Reload),
    Kind::Give(Order::Restart(MANY)),
    Kind::Kill(MANY),
    Kind::Give(Order::Upgrade),
];

pub struct Blows {
    users: Arc<Users>,
    operator: Arc<Operator>,
    chance: fastrand::Rng,
    asked: usize,
    /// Requests that wait for what they deserve.
    asking: JoinSet<()>,
    /// The order that is being carried out.
    giving: JoinSet<()>,
}

impl Blows {
    pub fn new(users: Arc<Users>, operator: Arc<Operator>, chance: fastrand::Rng) -> Self {
        Self { users, operator, chance, asked: 0, asking: JoinSet::new(), giving: JoinSet::new() }
    }

    /// Strikes once, somewhere, and does not wait for what comes of it.
    pub async fn strike(&mut self) {
        while let Some(given) = self.giving.try_join_next() {
            given.unwrap();
        }
        let kind = *self.chance.choice(IN_THE_MIX).unwrap();
        self.carry_out(kind).await;
    }

    /// Strikes as it is this round's turn, and waits until it is over.
    pub async fn strike_in_turn(&mut self, round: usize) {
        self.carry_out(IN_ROUNDS[round % IN_ROUNDS.len()]).await;
        self.settle().await;
    }

    /// Until all that was begun has ended.
    pub async fn settle(&mut self) {
        for begun in [&mut self.asking, &mut self.giving] {
            while let Some(ended) = begun.join_next().await {
                ended.unwrap();
            }
        }
    }

    async fn carry_out(&mut self, kind: Kind) {
        match kind {
            Kind::Kill(pool) => {
                if let Some(pid) = self.victim(pool).await {
                    // Written down first: nobody may suffer from a blow of which the judge has not heard.
                    let blow =
                        Blow { pool, kills: Some(pid), is_deadly: true, ..Blow::harmless("kill".into()) };
                    self.users.ledger.strike(Blow { detail: pid.to_string(), ..blow });
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

    /// A ready worker's process. A pool that has no other is spared: what becomes of one whose workers are all gone is what the storm is
    /// about ([`super::storm`]).
    async fn victim(&mut self, pool: &str) -> Option<u32> {
        let status = self.users.pool(pool).await;
        let ready = status["workers"].as_array()?.iter().filter(|worker| worker["state"] == "ready");
        let pids: Vec<u32> = ready.filter_map(|worker| Some(worker["pid"].as_u64()? as u32)).collect();
        self.chance.choice(&pids).copied().filter(|_| pids.len() > 1)
    }

    fn ask(&mut self, pool: &'static str, way: Way, method: &'static str) {
        self.asked += 1;
        let request = Request::special(self.asked, pool, way, method, "?mib=90");
        let blow =
            Blow { pool, is_deadly: way.is_deadly(), ..Blow::harmless(format!("{way:?} by {method}")) };
        self.users.ledger.strike(Blow { detail: request.id.clone(), ..blow });
        let users = Arc::clone(&self.users);
        self.asking.spawn(async move { users.ask(request).await });
    }

    fn give(&mut self, order: Order) {
        self.users.ledger.strike(Blow::harmless(format!("{order:?} begun")));
        let (users, operator) = (Arc::clone(&self.users), Arc::clone(&self.operator));
        let mut chance = self.chance.fork();
        self.giving.spawn(async move {
            operator.give(order, &mut chance).await;
            users.ledger.strike(Blow::harmless(format!("{order:?} done")));
        });
    }
}
