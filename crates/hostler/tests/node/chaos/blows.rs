//! What is done to Hostler and its workers while everybody asks: drawn by chance, carried out, written down.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::ledger::Blow;
use super::load::Users;
use super::request::{Request, Way};
use super::{LOOPS, MANY, ONE};
use crate::proc;
use crate::site::Site;

/// What may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// SIGKILL to a ready worker.
    Kill(&'static str),
    /// A request that does something to its worker.
    Ask(&'static str, Way, &'static str),
}

/// Each as often as it is here.
const IN_THE_MIX: &[Kind] = &[
    Kind::Kill(ONE),
    Kind::Kill(MANY),
    Kind::Kill(MANY),
    Kind::Ask(ONE, Way::Exit, "POST"),
    Kind::Ask(ONE, Way::Throw, "POST"),
    Kind::Ask(ONE, Way::Half, "POST"),
    Kind::Ask(LOOPS, Way::Loop, "GET"),
    Kind::Ask(MANY, Way::Leak, "GET"),
];

pub struct Blows {
    users: Arc<Users>,
    chance: fastrand::Rng,
    asked: usize,
    /// Requests that wait for what they deserve.
    asking: JoinSet<()>,
}

impl Blows {
    pub fn new(users: Arc<Users>, chance: fastrand::Rng) -> Self {
        Self { users, chance, asked: 0, asking: JoinSet::new() }
    }

    /// Strikes once, somewhere; spares a pool that has only one ready worker left: how long it rests when all have crashed is
    /// not what this test is about.
    pub async fn strike(&mut self, site: &Site) {
        let kind = *self.chance.choice(IN_THE_MIX).unwrap();
        let (Kind::Kill(pool) | Kind::Ask(pool, ..)) = kind;
        let ready = ready(site, pool).await;
        let Some(&victim) = self.chance.choice(&ready).filter(|_| ready.len() > 1) else { return };
        match kind {
            Kind::Kill(pool) => self.kill(pool, victim),
            Kind::Ask(pool, way, method) => self.ask(pool, way, method),
        }
    }

    /// Until all that was begun has ended.
    pub async fn settle(&mut self) {
        while let Some(asked) = self.asking.join_next().await {
            asked.unwrap();
        }
    }

    fn kill(&self, pool: &'static str, pid: u32) {
        // Written down first: nobody may suffer from a blow of which the judge has not heard.
        self.note(pool, Some(pid), true, format!("kill {pid}"));
        proc::kill(pid);
    }

    fn ask(&mut self, pool: &'static str, way: Way, method: &'static str) {
        self.asked += 1;
        let request = Request::special(self.asked, pool, way, method, "?mib=20");
        self.note(pool, None, way.is_deadly(), format!("{request:?}"));
        let users = Arc::clone(&self.users);
        self.asking.spawn(async move {
            users.ask(request).await;
        });
    }

    fn note(&self, pool: &'static str, kills: Option<u32>, is_deadly: bool, what: String) {
        self.users.ledger.strike(Blow { at: Instant::now(), pool, kills, is_deadly, what });
    }
}

/// The processes of the ready workers.
async fn ready(site: &Site, pool: &str) -> Vec<u32> {
    let status = site.pool(pool).await;
    let ready = status["workers"].as_array().unwrap().iter().filter(|worker| worker["state"] == "ready");
    ready.filter_map(|worker| Some(worker["pid"].as_u64()? as u32)).collect()
}
