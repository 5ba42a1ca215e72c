//! What is remembered for advice: the figures of the last minute, and restarts and hangs of workers. Knows no advice.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hostler_worker::WorkerState;

use super::figures::{Figures, PoolFigures, WorkerFigures};

/// Rates are those of this time.
pub(super) const WINDOW: Duration = Duration::from_secs(60);
/// All rates are 0 until the remembered figures span this time.
const LEAST: Duration = Duration::from_secs(20);
/// What has not happened for this long is over: two looks, which are not exactly five seconds apart.
const RECENT: Duration = Duration::from_secs(8);
/// Restarts and hangs of workers are remembered for this long.
const LONG: Duration = Duration::from_secs(900);
/// At most so many hangs of one worker.
const MOST: usize = 32;
/// A worker leaks if its memory has grown by this factor and so many bytes.
const GROWTH: f64 = 2.0;
const GROWN: u64 = 64 << 20;

/// The worker's pool and its number.
pub(super) type WorkerKey = (Arc<str>, usize);

/// The last figures.
#[derive(Debug, Default)]
pub(super) struct History {
    figures: VecDeque<Figures>,
    workers: BTreeMap<WorkerKey, WorkerHistory>,
}

/// What a rule sees.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub now: &'a Figures,
    /// About a minute ago. For the first seconds: the same as `now`, so all rates are 0.
    pub before: &'a Figures,
    /// About ten seconds ago. For the first seconds as `before`.
    pub recent: &'a Figures,
    pub workers: &'a BTreeMap<WorkerKey, WorkerHistory>,
}

/// What has happened to one worker.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkerHistory {
    generation: u64,
    /// The least memory of all ready processes of this number. That of the present process alone says little: one that grows fast is measured late.
    base: Option<u64>,
    /// The highest memory of the present process.
    peak: u64,
    hung_at: Option<Duration>,
    /// A process of this number was ready.
    pub was_ready: bool,
    pub deaths: VecDeque<WorkerEnds>,
    pub hangs: VecDeque<Duration>,
}

/// Ends of a worker's process that were not ordered by an operator, between two looks. A boot that has failed at once counts as well.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkerEnds {
    /// When they were seen.
    pub at: Duration,
    /// How many of them.
    pub times: u64,
    /// It was recycled because of its memory.
    pub recycled: bool,
    /// Its memory at the end, if that had grown.
    pub grown_to: Option<u64>,
}

impl History {
    /// Takes in the next figures.
    pub fn observe(&mut self, figures: Figures) {
        let now = figures.uptime;
        for pool in &figures.pools {
            for worker in pool.workers.iter().flatten() {
                let key = (pool.name.clone(), worker.index);
                self.workers.entry(key).or_default().observe(pool, worker, now);
            }
        }
        let is_there = |(name, index): &WorkerKey| {
            let workers = figures.pool(name).and_then(|pool| pool.workers.as_ref());
            workers.is_some_and(|workers| workers.iter().any(|worker| worker.index == *index))
        };
        self.workers.retain(|key, _| is_there(key));
        // One that is just older than the window stays.
        while self.figures.get(1).is_some_and(|second| now.saturating_sub(second.uptime) >= WINDOW) {
            self.figures.pop_front();
        }
        self.figures.push_back(figures);
    }

    pub fn view(&self) -> Option<View<'_>> {
        let (now, oldest) = (self.figures.back()?, self.figures.front()?);
        let is_enough = now.uptime.saturating_sub(oldest.uptime) >= LEAST;
        let is_recent = |figures: &&Figures| now.uptime.saturating_sub(figures.uptime) >= RECENT;
        let recent = self.figures.iter().rev().find(is_recent).unwrap_or(oldest);
        let (before, recent) = if is_enough { (oldest, recent) } else { (now, now) };
        Some(View { now, before, recent, workers: &self.workers })
    }
}

impl WorkerHistory {
    fn observe(&mut self, pool: &PoolFigures, worker: &WorkerFigures, now: Duration) {
        if self.generation == 0 {
            self.generation = worker.generation;
        }
        if worker.generation > self.generation {
            self.note_end(pool, worker, now);
            self.generation = worker.generation;
            self.peak = 0;
            // New code may need more from the beginning.
            self.base = self.base.filter(|_| !pool.deploying);
        }
        self.was_ready |= worker.state == WorkerState::Ready;
        if worker.state == WorkerState::Ready
            && let Some(memory) = worker.memory
        {
            self.base = Some(self.base.map_or(memory, |base| base.min(memory)));
            self.peak = self.peak.max(memory);
        }
        if let Some(at) = worker.hung_ago.map(|ago| now.saturating_sub(ago)) {
            // The time of a hang is computed again for each status, so it differs a little.
            let is_new = self.hung_at.is_none_or(|last| at > last + Duration::from_secs(1));
            if is_new {
                self.hangs.push_back(at);
                self.hung_at = Some(at);
            }
        }
        self.hangs.retain(|at| now.saturating_sub(*at) < LONG);
        self.deaths.retain(|end| now.saturating_sub(end.at) < LONG);
        // The oldest ones go first, so that the advice stays while hangs go on.
        let over = self.hangs.len().saturating_sub(MOST);
        self.hangs.drain(..over);
    }

    fn note_end(&mut self, pool: &PoolFigures, worker: &WorkerFigures, now: Duration) {
        // The task of a worker that took over from a recycled one has seen no exit yet.
        let died = worker.last_exit.is_some();
        // One that was too large from its start shows no growth of its own, and has another advice.
        let recycled = worker.recycled.as_deref().is_some_and(|why| why.ends_with("resident"));
        if pool.deploying || !(died || recycled) {
            return;
        }
        let is_grown = |base: u64| self.peak as f64 >= base as f64 * GROWTH && self.peak - base >= GROWN;
        let grown_to = self.base.filter(|base| is_grown(*base)).map(|_| self.peak);
        let times = worker.generation - self.generation;
        self.deaths.push_back(WorkerEnds { at: now, times, recycled: !died, grown_to });
    }
}

/// How many processes have ended, and the mean time from one end to the next. No time: all were seen at once, so it is not known.
pub(super) fn rhythm(ends: &[WorkerEnds]) -> (u64, Option<Duration>) {
    let all = ends.iter().map(|ends| ends.times).sum();
    let mean = || {
        let (first, last) = (ends.first()?, ends.last()?);
        // The first ends only begin the span: how long before them another end was is not known.
        let later = u32::try_from(all - first.times).ok().filter(|later| *later > 0)?;
        Some(last.at.saturating_sub(first.at) / later)
    };
    (all, mean())
}

#[cfg(test)]
mod tests {
    use super::super::scene::{at_rest, worker};
    use super::*;

    fn figures(second: u64, change: impl FnOnce(&mut PoolFigures, &mut WorkerFigures)) -> Figures {
        let mut figures = at_rest(second);
        let pool = &mut figures.pools[0];
        let mut first = worker(1);
        change(pool, &mut first);
        pool.workers = Some(vec![first]);
        figures
    }

    #[test]
    fn rates_are_those_of_the_last_minute() {
        let mut history = History::default();
        for second in (0..=15).step_by(5) {
            history.observe(at_rest(second));
        }
        let view = history.view().unwrap();
        assert_eq!(view.now.uptime, view.before.uptime, "not enough was seen");
        assert_eq!(view.now.uptime, view.recent.uptime, "not enough was seen");
        for second in (20..=300).step_by(5) {
            history.observe(at_rest(second));
        }
        let view = history.view().unwrap();
        assert_eq!(view.now.uptime - view.before.uptime, WINDOW);
        assert_eq!(view.now.uptime - view.recent.uptime, Duration::from_secs(10));
        assert!(history.figures.len() <= 14, "{}", history.figures.len());
    }

    #[test]
    fn deaths_count_and_restarts_by_an_operator_do_not() {
        let mut history = History::default();
        history.observe(figures(0, |_, _| {}));
        history.observe(figures(10, |pool, worker| {
            (pool.deploying, worker.generation) = (true, 2);
        }));
        history.observe(figures(15, |_, worker| {
            let why = "300.0 MiB resident, and above max_memory from its start on";
            (worker.generation, worker.recycled) = (3, Some(why.into()));
        }));
        history.observe(figures(20, |_, worker| {
            (worker.generation, worker.recycled) = (4, Some("1000 requests".into()));
        }));
        let ends = |history: &History| -> u64 {
            history.workers.values().next().unwrap().deaths.iter().map(|ends| ends.times).sum()
        };
        assert_eq!(ends(&history), 0);
        history.observe(figures(30, |_, worker| {
            (worker.generation, worker.last_exit) = (6, Some("exit code 1".into()));
        }));
        assert_eq!(ends(&history), 2, "two deaths between two looks");
        history.observe(figures(1000, |_, worker| worker.generation = 6));
        assert_eq!(ends(&history), 0, "too long ago");
    }

    #[test]
    fn growth_is_what_a_process_took_above_its_first_size() {
        let mut history = History::default();
        for (second, mib, generation) in [(0, 60, 1), (10, 300, 1), (20, 60, 2), (30, 70, 2), (40, 60, 3)] {
            history.observe(figures(second, |_, worker| {
                (worker.memory, worker.generation) = (Some(mib << 20), generation);
                worker.last_exit = (generation > 1).then(|| "SIGKILL".into());
            }));
        }
        let past = history.workers.values().next().unwrap();
        let grown: Vec<_> = past.deaths.iter().map(|end| end.grown_to).collect();
        assert_eq!(grown, [Some(300 << 20), None]);
    }

    #[test]
    fn the_rhythm_counts_all_ends_and_has_no_time_if_all_were_seen_at_once() {
        let seen = |looks: &[(u64, u64)]| {
            let mut history = History::default();
            let mut generation = 1;
            history.observe(figures(0, |_, _| {}));
            for (second, times) in looks {
                generation += times;
                history.observe(figures(*second, |_, worker| {
                    (worker.generation, worker.last_exit) = (generation, Some("exit code 1".into()));
                }));
            }
            let ends: Vec<_> = history.workers.values().next().unwrap().deaths.iter().copied().collect();
            rhythm(&ends)
        };
        let every = |millis| Some(Duration::from_millis(millis));
        assert_eq!(seen(&[(5, 4)]), (4, None));
        assert_eq!(seen(&[(5, 1), (45, 1), (85, 1)]), (3, every(40_000)));
        assert_eq!(seen(&[(5, 4), (10, 2)]), (6, every(2500)));
        assert_eq!(seen(&[(5, 100), (15, 50)]), (150, every(200)), "no limit of the count");
    }

    #[test]
    fn one_hang_counts_once() {
        let mut history = History::default();
        for second in [10, 15, 20] {
            let ago = Duration::from_millis(second * 1000 - 8000 + second);
            history.observe(figures(second, |_, worker| worker.hung_ago = Some(ago)));
        }
        assert_eq!(history.workers.values().next().unwrap().hangs.len(), 1);
    }

    #[test]
    fn of_many_hangs_the_latest_are_remembered() {
        let mut history = History::default();
        let most = MOST as u64;
        for second in (1..=most + 3).map(|hang| hang * 10) {
            history.observe(figures(second, |_, worker| worker.hung_ago = Some(Duration::ZERO)));
        }
        let hangs = &history.workers.values().next().unwrap().hangs;
        assert_eq!(hangs.len(), MOST);
        assert_eq!(hangs.back(), Some(&Duration::from_secs((most + 3) * 10)));
    }
}
