//! The faults of a storm: chosen at random, caused, recorded. Judges nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::chaos::ledger::InjectedFault;
use crate::chaos::load::Users;
use crate::chaos::orders::hostler;
use crate::chaos::request::{Request, Way};
use crate::proc;
use crate::site::repository;

/// The only pool.
pub const POOL: &str = "storm";
/// The time limit of a request, the queue included. It is also how long a worker in an endless loop lives.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// SIGKILL to a ready worker.
    Kill,
    /// SIGSTOP, and 0.2 to 1 second later SIGCONT.
    Freeze,
    /// A request that ends its worker.
    Ask(Way, &'static str),
    /// SIGKILL to the guard.
    Guard,
    /// One at a time.
    Give(Order),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Restart,
    /// With another environment for the workers.
    Reload,
    /// With a wrong file.
    WrongFile,
    /// With settings with which no worker boots.
    BrokenCode,
}

/// The kinds, each as often as it should occur.
const IN_THE_MIX: &[Fault] = &[
    Fault::Kill,
    Fault::Kill,
    Fault::Kill,
    Fault::Kill,
    Fault::Kill,
    Fault::Kill,
    Fault::Freeze,
    Fault::Freeze,
    Fault::Freeze,
    Fault::Freeze,
    Fault::Ask(Way::Exit, "POST"),
    Fault::Ask(Way::Exit, "POST"),
    Fault::Ask(Way::Exit, "GET"),
    Fault::Ask(Way::Exit, "GET"),
    Fault::Ask(Way::Throw, "GET"),
    Fault::Ask(Way::Reject, "POST"),
    Fault::Ask(Way::Reject, "GET"),
    Fault::Ask(Way::Heap, "GET"),
    Fault::Ask(Way::Heap, "POST"),
    Fault::Ask(Way::Loop, "GET"),
    Fault::Guard,
    Fault::Give(Order::Restart),
    Fault::Give(Order::Reload),
    Fault::Give(Order::WrongFile),
    Fault::Give(Order::BrokenCode),
];

/// The text of the configuration file.
pub fn configuration(workers: usize, revision: u32, broken: bool) -> String {
    let app = repository().join("crates/hostler/tests/node/apps/chaos.cjs");
    let timeout = REQUEST_TIMEOUT.as_secs();
    let broken = if broken { ", CHAOS_BROKEN = 1" } else { "" };
    format!(
        r#"
[pools.{POOL}]
command = ["node", "--max-old-space-size=48", {app:?}]
workers = {workers}
concurrency = 1
env = {{ CHAOS_SLOTS = 1, CHAOS_REVISION = {revision}{broken} }}
request_timeout = "{timeout}s"
hang_timeout = "{timeout}s"
[pools.{POOL}.queue]
timeout = "{timeout}s"
[[routes]]
match = "/{POOL}/*"
pool = "{POOL}"
"#
    )
}

pub struct Faults {
    users: Arc<Users>,
    file: PathBuf,
    workers: usize,
    chance: fastrand::Rng,
    asked: usize,
    revision: u32,
    /// Requests of faults that wait for their answers, and stopped workers that will be continued.
    begun: JoinSet<()>,
    /// The command that is being carried out.
    giving: JoinSet<()>,
}

impl Faults {
    pub fn new(users: Arc<Users>, file: PathBuf, workers: usize, chance: fastrand::Rng) -> Self {
        let (begun, giving) = (JoinSet::new(), JoinSet::new());
        Self { users, file, workers, chance, asked: 0, revision: 0, begun, giving }
    }

    /// Causes one fault and does not wait for its result.
    pub async fn inject_one(&mut self) {
        while let Some(given) = self.giving.try_join_next() {
            given.unwrap();
        }
        let is_possible = |fault: &Fault| !matches!(fault, Fault::Give(_)) || self.giving.is_empty();
        let possible: Vec<Fault> = IN_THE_MIX.iter().copied().filter(is_possible).collect();
        match *self.chance.choice(&possible).unwrap() {
            Fault::Kill => {
                let victim = self.victim().await;
                self.note("kill", victim);
                victim.into_iter().for_each(proc::kill);
            }
            Fault::Freeze => {
                let victim = self.victim().await;
                self.note("freeze", victim);
                if let Some(pid) = victim {
                    self.freeze(pid);
                }
            }
            Fault::Guard => {
                let guard = self.guard().await;
                self.note("guard", guard);
                guard.into_iter().for_each(proc::kill);
            }
            Fault::Ask(way, method) => self.ask(way, method),
            Fault::Give(order) => self.give(order),
        }
    }

    /// Waits until all faults have ended.
    pub async fn settle(&mut self) {
        for begun in [&mut self.begun, &mut self.giving] {
            std::mem::take(begun).join_all().await;
        }
    }

    fn note(&self, what: &str, pid: Option<u32>) {
        let detail = pid.map_or("no process".into(), |pid| pid.to_string());
        self.users.ledger.record_fault(InjectedFault { detail, ..InjectedFault::harmless(what.into()) });
    }

    /// Any ready worker, also the last one.
    async fn victim(&mut self) -> Option<u32> {
        let pids = self.users.ready_pids(POOL).await;
        self.chance.choice(pids)
    }

    async fn guard(&self) -> Option<u32> {
        let children = proc::children_of(self.users.pid().await);
        let is_guard = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(b"hostler-guard\0")
        };
        children.into_iter().find(is_guard)
    }

    fn freeze(&mut self, pid: u32) {
        proc::freeze(pid);
        let until = Instant::now() + Duration::from_millis(self.chance.u64(200..1000));
        self.begun.spawn(async move {
            sleep_until(until).await;
            proc::wake(pid);
        });
    }

    /// A loop takes its worker for as long as a request may take. It is the same URL each time, so that it is detected.
    fn ask(&mut self, way: Way, method: &'static str) {
        self.asked += 1;
        let request = Request::special(self.asked, POOL, way, method, &format!("?n={}", self.asked));
        let request = if way == Way::Loop { request } else { request.like_no_other(&mut self.chance) };
        let fault = InjectedFault::harmless(format!("{way:?} by {method}"));
        self.users.ledger.record_fault(InjectedFault { detail: request.id.clone(), ..fault });
        let users = Arc::clone(&self.users);
        self.begun.spawn(async move { users.ask(request).await });
    }

    fn give(&mut self, order: Order) {
        self.revision += u32::from(order == Order::Reload);
        let good = configuration(self.workers, self.revision, false);
        let file = match order {
            Order::WrongFile => good.replace("workers", "wokers"),
            Order::BrokenCode => configuration(self.workers, self.revision, true),
            Order::Restart | Order::Reload => good.clone(),
        };
        let (users, path) = (Arc::clone(&self.users), self.file.clone());
        users.ledger.record_fault(InjectedFault::harmless(format!("{order:?} begun")));
        self.giving.spawn(async move {
            std::fs::write(&path, file).unwrap();
            let outcome =
                hostler(users.admin, if order == Order::Restart { &["restart"] } else { &["reload"] }).await;
            match (order, &outcome) {
                (Order::Restart | Order::Reload, Ok(())) => {}
                (Order::WrongFile, Err(said)) if said.contains("wokers") => {}
                (Order::BrokenCode, Err(said)) if said.contains("broken by the chaos test") => {}
                _ => panic!("{order:?}: {outcome:?}"),
            }
            std::fs::write(&path, good).unwrap();
            users.ledger.record_fault(InjectedFault::harmless(format!("{order:?} done")));
        });
    }
}
