//! Who is suspected of workers' deaths, and who is convicted. Plain data that is told the time; knows no requests and no workers.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::exchange::Death;

/// Suspects that are remembered, at about 400 bytes each. A death makes as many as the worker had requests.
const MOST_SUSPECTS: usize = 2048;
/// How many are listed in the status.
const MOST_LISTED: usize = 100;

/// What makes a conviction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub kills: usize,
    pub keep_off: Duration,
}

/// All suspects of one pool.
#[derive(Default)]
pub(super) struct Suspects {
    by_key: HashMap<u64, Suspect>,
    /// None is to be forgotten before.
    earliest: Option<Instant>,
}

struct Suspect {
    name: Arc<str>,
    killed: Vec<u32>,
    last: Instant,
    until: Instant,
    kept_off: bool,
}

/// A request's method and URL.
pub(super) struct Identity {
    pub key: u64,
    pub name: Arc<str>,
}

/// What is known of a request.
pub(super) enum Standing {
    Unknown,
    Suspect,
    Convicted(Convicted),
}

/// A request over which too many have died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Convicted {
    /// The processes that did.
    pub killed: Vec<u32>,
    /// For how much longer all like it are kept off; none if only this one is refused.
    pub kept_off: Option<Duration>,
}

/// What is kept off, for the status.
#[derive(Debug, Clone, Serialize)]
pub struct KeptOff {
    /// Method and URL.
    pub request: Arc<str>,
    /// The processes that died over it.
    pub killed: Vec<u32>,
    /// For how much longer.
    pub for_ms: u64,
}

impl Suspects {
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    pub fn standing(&mut self, key: u64, now: Instant) -> Standing {
        self.forget_expired(now);
        match self.by_key.get(&key) {
            None => Standing::Unknown,
            Some(suspect) if suspect.kept_off => Standing::Convicted(suspect.convicted(now)),
            Some(_) => Standing::Suspect,
        }
    }

    /// A worker died over it; `alone`: over no other request. Returns the verdict, if that was one too many.
    pub fn record(
        &mut self,
        identity: &Identity,
        death: &Death,
        alone: bool,
        rule: Rule,
        now: Instant,
    ) -> Option<Convicted> {
        self.forget_expired(now);
        let until = now + rule.keep_off;
        match self.by_key.get_mut(&identity.key) {
            Some(suspect) if suspect.kept_off || !alone || !suspect.is_news(death) => return None,
            Some(suspect) => {
                suspect.killed.push(death.pid);
                (suspect.last, suspect.until) = (death.at, until);
            }
            None => {
                self.make_room();
                let (name, killed) = (identity.name.clone(), vec![death.pid]);
                let suspect = Suspect { name, killed, last: death.at, until, kept_off: false };
                self.by_key.insert(identity.key, suspect);
            }
        }
        self.earliest.get_or_insert(until);
        let suspect = self.by_key.get_mut(&identity.key)?;
        suspect.kept_off = suspect.killed.len() >= rule.kills;
        suspect.kept_off.then(|| suspect.convicted(now))
    }

    /// It has been answered.
    pub fn acquit(&mut self, key: u64) {
        self.by_key.remove(&key);
    }

    /// At most a hundred of what is kept off.
    pub fn kept_off(&self, now: Instant) -> Vec<KeptOff> {
        let kept_off = self.by_key.values().filter(|suspect| suspect.kept_off && now < suspect.until);
        let view = |suspect: &Suspect| KeptOff {
            request: suspect.name.clone(),
            killed: suspect.killed.clone(),
            for_ms: (suspect.until - now).as_millis() as u64,
        };
        kept_off.map(view).take(MOST_LISTED).collect()
    }

    fn forget_expired(&mut self, now: Instant) {
        if self.earliest.is_some_and(|earliest| earliest <= now) {
            self.by_key.retain(|_, suspect| now < suspect.until);
            self.earliest = self.by_key.values().map(|suspect| suspect.until).min();
        }
    }

    /// The one that would be forgotten first makes room for another.
    fn make_room(&mut self) {
        if self.by_key.len() >= MOST_SUSPECTS
            && let Some(&key) =
                self.by_key.iter().min_by_key(|(_, suspect)| suspect.until).map(|(key, _)| key)
        {
            self.by_key.remove(&key);
        }
    }
}

impl Suspect {
    /// One that was sent before the last death met another worker in the same accident, or the same one while it was dying.
    fn is_news(&self, death: &Death) -> bool {
        death.since >= self.last && !self.killed.contains(&death.pid)
    }

    fn convicted(&self, now: Instant) -> Convicted {
        let left = self.until.saturating_duration_since(now);
        Convicted { killed: self.killed.clone(), kept_off: Some(left) }
    }
}

impl fmt::Display for Convicted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pids: Vec<String> = self.killed.iter().map(u32::to_string).collect();
        write!(f, "workers have died over it (pid {})", pids.join(", pid "))?;
        match self.kept_off {
            Some(left) => write!(f, "; it is kept off for {} s", left.as_secs_f64().ceil()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { kills: 2, keep_off: Duration::from_secs(60) };

    /// A pool's suspects, and a clock.
    struct Court {
        suspects: Suspects,
        start: Instant,
    }

    impl Court {
        fn new() -> Self {
            Self { suspects: Suspects::default(), start: Instant::now() }
        }

        fn at(&self, second: u64) -> Instant {
            self.start + Duration::from_secs(second)
        }

        /// The process died at `at` over a request that it got at `since`.
        fn death(&mut self, key: u64, pid: u32, (since, at): (u64, u64), alone: bool) -> Option<Vec<u32>> {
            let death = Death { pid, since: self.at(since), at: self.at(at) };
            let identity = Identity { key, name: format!("GET /{key}").into() };
            let now = self.at(at);
            self.suspects.record(&identity, &death, alone, RULE, now).map(|convicted| convicted.killed)
        }

        fn standing(&mut self, key: u64, second: u64) -> &'static str {
            let now = self.at(second);
            match self.suspects.standing(key, now) {
                Standing::Unknown => "unknown",
                Standing::Suspect => "suspect",
                Standing::Convicted(_) => "convicted",
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn two_deaths_in_a_row_convict_for_a_while() {
        let mut court = Court::new();
        assert_eq!(court.death(1, 10, (0, 1), true), None);
        assert_eq!((court.standing(1, 1), court.standing(2, 1)), ("suspect", "unknown"));
        assert_eq!(court.death(1, 11, (1, 2), true), Some(vec![10, 11]));
        assert_eq!(court.suspects.kept_off(court.at(3))[0].for_ms, 59_000);
        assert_eq!((court.standing(1, 61), court.standing(1, 62)), ("convicted", "unknown"));
        assert_eq!(court.suspects.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_in_between_a_common_accident_and_one_dying_worker_are_no_second_death() {
        let mut court = Court::new();
        court.death(1, 10, (0, 1), true);
        assert_eq!(court.death(1, 11, (0, 1), true), None, "it was sent before the first died");
        assert_eq!(court.death(1, 10, (1, 2), true), None, "it is the same worker");
        court.suspects.acquit(1);
        assert_eq!(court.death(1, 12, (3, 4), true), None, "it was answered since");
    }

    #[tokio::test(start_paused = true)]
    async fn a_death_in_company_makes_suspects_and_convicts_none() {
        let mut court = Court::new();
        for key in 1..=3 {
            assert_eq!(court.death(key, 10, (0, 1), false), None);
            assert_eq!(court.death(key, 11, (1, 2), false), None);
        }
        assert_eq!(court.death(2, 12, (2, 3), true), Some(vec![10, 12]));
        assert_eq!(["suspect", "convicted"], [court.standing(1, 3), court.standing(2, 3)]);
    }

    #[tokio::test(start_paused = true)]
    async fn suspects_are_so_many_and_no_more() {
        let mut court = Court::new();
        for key in 0..3 * MOST_SUSPECTS as u64 {
            court.death(key, 10, (0, key / 1000), true);
        }
        assert_eq!(court.suspects.len(), MOST_SUSPECTS);
        assert_eq!(court.standing(3 * MOST_SUSPECTS as u64 - 1, 7), "suspect");
    }
}
