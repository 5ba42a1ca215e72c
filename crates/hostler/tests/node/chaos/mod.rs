//! Everything at once: real workers under steady load while they are killed, crash, hang and lose their clients. Each request must be
//! answered once: rightly, or with a refusal that has a cause. See [`plan::Plan`] for longer runs.

mod diary;
mod ending;
mod injector;
mod ledger;
mod load;
mod orders;
mod plan;
mod request;
mod shape;
mod storm;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use diary::Diary;
use injector::FaultInjector;
use ledger::Entry;
use load::Users;
use orders::Operator;
use plan::{End, Plan};
use verdict::{Excused, Judge, Wrong};

use super::site::{Site, configured_by};

/// One request at a time: a request that kills its worker kills no other request.
const ONE: &str = "one";
/// Several at once.
const MANY: &str = "many";
/// The pool in which workers hang, with short timeouts.
const LOOPS: &str = "loops";
/// Its `request_timeout`.
const LOOPS_TIMEOUT: Duration = Duration::from_secs(3);

const CLIENTS: [(&str, usize); 3] = [(ONE, 8), (MANY, 8), (LOOPS, 2)];

#[tokio::test]
async fn under_any_faults_each_request_is_answered_once_or_refused_with_a_reason() {
    let plan = Plan::from_environment();
    // Shown when the test fails, or with --nocapture.
    println!("chaos: HOSTLER_CHAOS_SEED={} repeats this run ({:?})", plan.seed, plan.end);
    let chaos = Chaos::start(plan).await;
    chaos.rage().await;
}

/// The time between two faults.
struct Pauses {
    ticks: Interval,
    chance: fastrand::Rng,
}

impl Pauses {
    fn new(chance: fastrand::Rng) -> Self {
        let mut ticks = interval(Duration::from_millis(200));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { ticks, chance }
    }

    async fn next(&mut self) {
        for _ in 0..self.chance.u8(1..6) {
            self.ticks.tick().await;
        }
    }
}

struct Chaos {
    plan: Plan,
    site: Site,
    users: Arc<Users>,
    operator: Arc<Operator>,
    diary: Diary,
    /// Contains the configuration file.
    _folder: TempDir,
}

impl Chaos {
    async fn start(plan: Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hostler.toml");
        std::fs::write(&file, shape::Shape::default().text()).unwrap();
        let site = configured_by(&file).started().await;
        let users = Users::new(site.address(), site.admin());
        let operator = Arc::new(Operator::new(Arc::clone(&users), file));
        let diary = Diary::new(site.file("diary"));
        Self { plan, site, users, operator, diary, _folder: folder }
    }

    async fn rage(mut self) {
        let mut clients = Vec::new();
        for (pool, count) in CLIENTS {
            for number in 0..count {
                let chance = self.plan.chance(clients.len() as u64);
                clients.push(self.users.start(&format!("{pool}-{number}"), pool, chance));
            }
        }
        let began = Instant::now();
        let mut rounds = 0;
        let mut injector =
            FaultInjector::new(Arc::clone(&self.users), Arc::clone(&self.operator), self.plan.chance(1001));
        let mut pauses = Pauses::new(self.plan.chance(1000));
        while !self.plan.is_over(began, rounds) {
            match self.plan.end {
                End::After(_) => {
                    pauses.next().await;
                    injector.inject_one().await;
                }
                End::AfterRounds(_) => {
                    self.has_its_workers().await;
                    injector.inject_in_turn(rounds).await;
                }
            }
            rounds += 1;
            self.judge();
        }
        self.users.send_home();
        for client in clients {
            client.await.unwrap();
        }
        injector.settle().await;
        self.end(rounds).await;
    }

    /// Judges the requests that have ended, so that a long run ends at its first failure.
    fn judge(&mut self) -> (Vec<Entry>, Excused) {
        let entries = self.users.ledger.entries();
        self.diary.read_on();
        assert!(self.diary.violations.is_empty(), "more than its slots: {:?}", self.diary.violations);
        match Judge::new(&self.users.ledger, &self.diary).all(&entries) {
            Ok(excused) => (entries, excused),
            Err(wrong) => panic!("{}", self.story(&wrong)),
        }
    }

    /// All that is known of a failed request.
    fn story(&self, Wrong { entry, complaint }: &Wrong) -> String {
        let Entry { request, outcome, began, ended } = &**entry;
        let ledger = &self.users.ledger;
        let (from, to) = (ledger.clock(*began), ledger.clock(*ended));
        let visits = self.diary.visits(&request.id);
        let faults: Vec<_> = ledger.faults().iter().map(|fault| ledger.line(fault)).collect();
        let lines: Vec<_> = self.site.lines().into_iter().filter(|line| line.contains(&request.id)).collect();
        let own = self.site.lines().into_iter().filter(|line| line.contains(r#""event":"hostler""#));
        let own: Vec<_> = own.collect();
        let last = &own[own.len().saturating_sub(40)..];
        format!(
            "{complaint}\nHOSTLER_CHAOS_SEED={}\n\n{from}: {request:?}\n{to}: {outcome:?}\nworkers that have had it: {visits:?}\n\
             Hostler's log of it:\n{}\n\nwhat was done:\n{}\n\nHostler's own lines, the last:\n{}",
            self.plan.seed,
            lines.join("\n"),
            faults.join("\n"),
            last.join("\n"),
        )
    }
}

/// A successor is not a child of the test: the processes of a failed run are ended here.
impl Drop for Chaos {
    fn drop(&mut self) {
        ending::processes_with(self.site.folder()).into_iter().for_each(super::proc::kill);
    }
}
