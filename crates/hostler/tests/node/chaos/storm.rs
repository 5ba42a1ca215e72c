//! A storm: three or four faults a second against one pool, while clients send requests all the time. A request that may be sent
//! twice, and may wait for [`faults::REQUEST_TIMEOUT`], gets the right answer in any case.
//!
//! `HOSTLER_STORM_FAULTS=1000` makes it longer, `HOSTLER_CHAOS_SEED` repeats its schedule.

mod faults;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hostler_testkit::eventually;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep_until, timeout};

use super::diary::Diary;
use super::ending::processes_with;
use super::ledger::{Entry, Outcome};
use super::load::Users;
use super::plan;
use crate::proc;
use crate::site::{Site, configured_by};
use faults::{Faults, REQUEST_TIMEOUT};

/// Enough for a few faults of each kind.
const IN_THE_SUITE: u64 = 70;
/// The time between two faults in milliseconds: three to four faults a second.
const GAPS: std::ops::Range<u64> = 250..334;
/// A fault waits until an answer has come since the last fault, but not longer than this. Without the wait, faults would come faster than
/// workers boot on a slow machine.
const LONGEST_LULL: Duration = Duration::from_secs(2);
/// How many of the failures are reported in full.
const MOST_STORIES: usize = 3;

#[tokio::test]
async fn a_storm_of_faults_loses_no_request_that_may_be_repeated() {
    let seed = plan::number("HOSTLER_CHAOS_SEED").unwrap_or_else(|| fastrand::u64(..1_000_000));
    let faults = plan::number("HOSTLER_STORM_FAULTS").unwrap_or(IN_THE_SUITE);
    let sizes = plan::number("HOSTLER_STORM_WORKERS").map_or(vec![3, 8], |workers| vec![workers as usize]);
    // One after the other: figures of a storm beside another one say little.
    for workers in sizes {
        let mut storm = Storm::start(seed, workers).await;
        storm.rage(faults).await;
        storm.end().await;
    }
}

struct Storm {
    seed: u64,
    workers: usize,
    site: Site,
    users: Arc<Users>,
    faults: Faults,
    clients: Vec<JoinHandle<()>>,
    /// Faults a second.
    rate: f64,
    /// Contains the configuration file.
    _folder: TempDir,
}

/// The results of all requests.
#[derive(Default)]
struct Tally {
    /// Requests that may be sent twice, from clients that stayed.
    idempotent: usize,
    lost: Vec<Entry>,
    /// The others: answered, or refused because their worker was lost.
    others: usize,
    others_lost: usize,
    longest: Duration,
}

impl Storm {
    async fn start(seed: u64, workers: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hostler.toml");
        std::fs::write(&file, faults::configuration(workers, 0, false)).unwrap();
        let site = configured_by(&file).started().await;
        let users = Users::new(site.address(), site.admin());
        let chance = |user| plan::chance(seed, user);
        let client =
            |number: usize| users.start(&format!("user-{number}"), faults::POOL, chance(number as u64));
        let clients = (0..2 * workers).map(client).collect();
        let faults = Faults::new(Arc::clone(&users), file, workers, chance(1000));
        Self { seed, workers, site, users, faults, clients, rate: 0.0, _folder: folder }
    }

    async fn rage(&mut self, faults: u64) {
        let mut chance = plan::chance(self.seed, 1001);
        let mut next = Instant::now();
        let began = Instant::now();
        for _ in 0..faults {
            next += Duration::from_millis(chance.u64(GAPS));
            sleep_until(next).await;
            next = next.max(Instant::now());
            let ended = self.users.ledger.ended();
            self.faults.inject_one().await;
            let _ = timeout(LONGEST_LULL, self.answers_after(ended)).await;
        }
        self.rate = faults as f64 / began.elapsed().as_secs_f64();
        self.users.send_home();
        for client in self.clients.drain(..) {
            client.await.unwrap();
        }
        self.faults.settle().await;
    }

    async fn answers_after(&self, ended: usize) {
        let mut looks = interval(Duration::from_millis(10));
        while self.users.ledger.ended() == ended {
            looks.tick().await;
        }
    }

    /// Judges, and checks that the pool is whole again.
    async fn end(mut self) {
        let tally = self.tally();
        println!(
            "storm: HOSTLER_CHAOS_SEED={}, {} workers, {:.1} faults a second: lost {} of {} requests that may be sent twice, {} of {} others; the longest wait {:?}\n{}",
            self.seed,
            self.workers,
            self.rate,
            tally.lost.len(),
            tally.idempotent,
            tally.others_lost,
            tally.others,
            tally.longest,
            self.users.ledger.summary(),
        );
        assert!(tally.idempotent > 0, "no request was sent that could be lost");
        assert!(tally.lost.is_empty(), "{}", self.stories(&tally.lost));
        let mut diary = Diary::new(self.site.file("diary"));
        diary.read_on();
        assert!(diary.violations.is_empty(), "more than its slots: {:?}", diary.violations);
        for Entry { request, .. } in
            self.users.ledger.entries().iter().filter(|one| !one.request.is_idempotent())
        {
            assert!(diary.visits(&request.id).len() < 2, "sent twice: {request:?}");
        }
        eventually("the pool is whole", async || {
            let pool = self.users.pool(faults::POOL).await;
            let states: Vec<_> =
                pool["workers"].as_array()?.iter().map(|worker| worker["state"].clone()).collect();
            let ready = states.iter().filter(|state| **state == "ready").count();
            (ready == self.workers && pool["in_use"] == 0 && pool["queue_length"] == 0).then_some(())
        })
        .await;
        let folder = self.site.folder().to_owned();
        self.site.terminate();
        assert_eq!(self.site.exit().await, 0);
        eventually("no process is left", async || processes_with(&folder).is_empty().then_some(())).await;
    }

    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for entry in self.users.ledger.entries() {
            let is_ordinary = entry.request.is_ordinary();
            if !is_ordinary || matches!(entry.outcome, Outcome::Left) {
                continue;
            }
            let is_right = matches!(entry.outcome, Outcome::Right);
            if is_right {
                tally.longest = tally.longest.max(entry.ended - entry.began);
            }
            if entry.request.is_idempotent() {
                tally.idempotent += 1;
                if !is_right {
                    tally.lost.push(entry);
                }
            } else {
                tally.others += 1;
                tally.others_lost += usize::from(!is_right);
            }
        }
        tally
    }

    fn stories(&self, lost: &[Entry]) -> String {
        let ledger = &self.users.ledger;
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for entry in lost {
            let reason = entry
                .outcome
                .refusal()
                .map_or_else(|| format!("{:?}", entry.outcome), |it| format!("{it:?}"));
            *reasons.entry(reason).or_default() += 1;
        }
        let lines = self.site.lines();
        let story = |entry: &Entry| {
            let own: Vec<_> =
                lines.iter().filter(|line| line.contains(&format!("\"{}\"", entry.request.id))).collect();
            let (from, to) = (ledger.clock(entry.began), ledger.clock(entry.ended));
            format!("{from}: {:?}\n{to}: {:?}\n{own:?}", entry.request, entry.outcome)
        };
        let stories: Vec<_> = lost.iter().take(MOST_STORIES).map(story).collect();
        let faults: Vec<_> = ledger.faults().iter().map(|fault| ledger.line(fault)).collect();
        let own: Vec<_> = lines.into_iter().filter(|line| line.contains(r#""event":"hostler""#)).collect();
        format!(
            "lost, with requests that wait for up to {REQUEST_TIMEOUT:?}: {reasons:#?}\n{}\n\nwhat was done:\n{}\n\nHostler's own lines:\n{}",
            stories.join("\n"),
            faults.join("\n"),
            own.join("\n")
        )
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        processes_with(self.site.folder()).into_iter().for_each(proc::kill);
    }
}
