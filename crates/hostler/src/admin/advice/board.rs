//! Which advice is raised now: what has been found for long enough, until it has not been found for a minute. Knows no figures.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::finding::Finding;
use super::table::{AdviceRow, Severity};

/// An advice ends when it was not found for this long.
const LASTS: Duration = Duration::from_secs(60);
/// The log names the same advice at most this often.
const LOG_PAUSE: Duration = Duration::from_secs(3600);
/// At most so many at the same time: hundreds of routes can have the same trouble.
const MOST: usize = 50;
/// At most so many are remembered, raised or not.
const MOST_HELD: usize = 4 * MOST;
/// An advice that was not found for longer than this has a gap. Looks are five seconds apart.
const GAP: Duration = Duration::from_secs(8);

/// A raised advice, in the Status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AdviceView {
    pub id: &'static str,
    pub severity: Severity,
    pub pool: Option<Arc<str>>,
    pub worker: Option<usize>,
    /// What is wrong, as one sentence.
    pub text: String,
    /// What to do.
    pub action: String,
    /// The page about it, from `docs/`.
    pub page: &'static str,
    /// How long ago it was raised.
    pub since_ms: u64,
}

/// A line for the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AdviceLine {
    pub severity: Severity,
    pub text: String,
}

type AdviceKey = (&'static str, Option<Arc<str>>, Option<usize>, Option<String>);

/// All advice that was found lately.
#[derive(Debug, Default)]
pub(super) struct AdviceBoard(BTreeMap<AdviceKey, HeldAdvice>);

#[derive(Debug)]
struct HeldAdvice {
    finding: Finding,
    found_since: Duration,
    found_last: Duration,
    raised: Option<Duration>,
    /// When the log named it. Kept after its end, so that it is not named again at once.
    logged: Option<Duration>,
    /// The log has named it as raised, so its end is logged as well.
    told: bool,
}

impl AdviceBoard {
    /// Takes in what the rules have found, and returns the lines for the log.
    pub fn update(&mut self, found: Vec<Finding>, now: Duration) -> Vec<AdviceLine> {
        for finding in found {
            self.note(finding, now);
        }
        let lines = self.0.values_mut().filter_map(|held| held.step(now)).collect();
        self.0.retain(|_, held| held.is_of_use(now));
        lines
    }

    fn note(&mut self, finding: Finding, now: Duration) {
        let key = (finding.row.id, finding.pool.clone(), finding.worker, finding.about.clone());
        if self.0.len() >= MOST_HELD
            && !self.0.contains_key(&key)
            && !self.make_room(finding.row.severity, now)
        {
            return;
        }
        let held = self.0.entry(key).or_insert_with(|| HeldAdvice {
            finding: finding.clone(),
            found_since: now,
            found_last: now,
            raised: None,
            logged: None,
            told: false,
        });
        // Before it is raised, a gap begins the time again.
        if held.is_over(now) {
            held.found_since = now;
        }
        (held.finding, held.found_last) = (finding, now);
    }

    /// Makes room for an advice of this severity: forgets one that is over, or else one that is less severe. One that is over is kept for an hour only
    /// for the log. After a failure of many apps, those would keep out all that is new. False: each is at least as severe.
    fn make_room(&mut self, severity: Severity, now: Duration) -> bool {
        let held =
            self.0.iter().filter(|(_, held)| held.is_over(now) || held.finding.row.severity > severity);
        let least =
            held.max_by_key(|(_, held)| (held.is_over(now), held.finding.row.severity, held.found_since));
        let least = least.map(|(key, _)| key.clone());
        least.is_some_and(|key| self.0.remove(&key).is_some())
    }

    /// The raised advice, the most severe and the oldest first.
    pub fn raised(&self, now: Duration) -> Vec<AdviceView> {
        let raised = self.0.values().filter_map(|held| Some((held, held.raised?)));
        let mut all: Vec<_> = raised.map(|(held, since)| held.view(now.saturating_sub(since))).collect();
        all.sort_by_key(|advice| (advice.severity, std::cmp::Reverse(advice.since_ms)));
        all.truncate(MOST);
        all
    }
}

impl HeldAdvice {
    fn step(&mut self, now: Duration) -> Option<AdviceLine> {
        let row = self.finding.row;
        let holds = Duration::from_secs(row.holds);
        match self.raised {
            None if self.found_last == now && now.saturating_sub(self.found_since) >= holds => {
                self.raised = Some(now);
                let is_due = self.logged.is_none_or(|last| now.saturating_sub(last) >= LOG_PAUSE);
                is_due.then(|| {
                    (self.logged, self.told) = (Some(now), true);
                    let page = row.page;
                    let text = sentence(&self.finding.text, &self.finding.action());
                    AdviceLine {
                        severity: row.severity,
                        text: format!("advice {}: {text} (docs/{page})", row.id),
                    }
                })
            }
            Some(since) if now.saturating_sub(self.found_last) >= LASTS => {
                self.raised = None;
                std::mem::take(&mut self.told).then(|| {
                    let after = super::finding::time(now.saturating_sub(since));
                    AdviceLine {
                        severity: Severity::Info,
                        text: format!("advice {}{} has ended after {after}", row.id, self.subject()),
                    }
                })
            }
            _ => None,
        }
    }

    fn subject(&self) -> String {
        let Finding { pool, worker, about, .. } = &self.finding;
        match (pool, worker, about) {
            (Some(pool), Some(worker), _) => format!(" for {pool}/{worker}"),
            (Some(pool), ..) => format!(" for {pool}"),
            (.., Some(about)) => format!(" for {about}"),
            _ => String::new(),
        }
    }

    /// It is not raised, and was not found lately.
    fn is_over(&self, now: Duration) -> bool {
        self.raised.is_none() && now.saturating_sub(self.found_last) > GAP
    }

    fn is_of_use(&self, now: Duration) -> bool {
        let was_logged = self.logged.is_some_and(|last| now.saturating_sub(last) < LOG_PAUSE);
        self.raised.is_some() || was_logged || now.saturating_sub(self.found_last) < LASTS
    }

    fn view(&self, since: Duration) -> AdviceView {
        let AdviceRow { id, severity, page, .. } = *self.finding.row;
        let Finding { pool, worker, text, .. } = self.finding.clone();
        let since_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        AdviceView { id, severity, pool, worker, text, action: self.finding.action(), page, since_ms }
    }
}

/// The text and what to do as one line. After a question no full stop is needed.
fn sentence(text: &str, action: &str) -> String {
    let stop = if text.ends_with('?') { "" } else { "." };
    format!("{text}{stop} {action}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::advice::table;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Found in each of these spans; looks every five seconds. The log, with the second of each line.
    fn log(row: &'static AdviceRow, spans: &[std::ops::Range<u64>], until: u64) -> Vec<String> {
        let mut board = AdviceBoard::default();
        let mut log = Vec::new();
        for second in (0..until).step_by(5) {
            let is_found = spans.iter().any(|span| span.contains(&second));
            let found = is_found.then(|| Finding::of_pool(row, &"web".into(), "slow"));
            let lines = board.update(found.into_iter().collect(), seconds(second));
            log.extend(lines.into_iter().map(|line| format!("{second} {}", line.text)));
        }
        log
    }

    #[test]
    fn an_advice_is_raised_after_its_time_and_ends_a_minute_after_its_cause() {
        let log = log(table::TOO_FEW_WORKERS, &[100..200, 900..901], 400);
        assert_eq!(log.len(), 2, "{log:?}");
        let raised =
            "115 advice too_few_workers: web: slow. Add workers (pools.web.workers) or members. (docs/";
        assert!(log[0].starts_with(raised), "{log:?}");
        assert_eq!(
            log[1],
            "255 advice too_few_workers for web has ended after 140 s".replace("140 s", "2 min")
        );
    }

    #[test]
    fn a_cause_that_comes_and_goes_raises_nothing_or_one_advice() {
        let short: Vec<_> = (0..20).map(|n| n * 30..n * 30 + 11).collect();
        assert_eq!(log(table::TOO_FEW_WORKERS, &short, 600), Vec::<String>::new());
        let gaps: Vec<_> = (0..20).map(|n| n * 60..n * 60 + 30).collect();
        assert_eq!(log(table::TOO_FEW_WORKERS, &gaps, 1200).len(), 1);
    }

    #[test]
    fn the_log_names_an_advice_at_most_once_an_hour() {
        let often: Vec<_> = (0..11).map(|n| n * 300..n * 300 + 60).collect();
        let log_of_an_hour = log(table::OVERLOADED, &often, 3590);
        assert_eq!(log_of_an_hour.len(), 2, "raised once, ended once: {log_of_an_hour:?}");
        assert_eq!(log(table::OVERLOADED, &[0..60, 3700..3760], 4000).len(), 4);
    }

    #[test]
    fn the_trouble_of_many_apps_hides_no_later_one() {
        let mut board = AdviceBoard::default();
        let hang = || -> Vec<Finding> {
            let pool =
                |number: usize| Finding::of_pool(table::WORKERS_HANG, &format!("app{number}").into(), "x");
            (0..2 * MOST_HELD).map(pool).collect()
        };
        let is_raised = |board: &AdviceBoard, row: &AdviceRow, second| {
            board.raised(seconds(second)).iter().any(|advice| advice.id == row.id)
        };
        let found = |board: &mut AdviceBoard, all: &dyn Fn() -> Vec<Finding>, looks: std::ops::Range<u64>| {
            looks.step_by(5).for_each(|second| drop(board.update(all(), seconds(second))));
        };
        found(&mut board, &hang, 0..10);
        let also = || [hang(), vec![Finding::new(table::NOT_READY, "y".into())]].concat();
        found(&mut board, &also, 10..35);
        assert!(is_raised(&board, table::NOT_READY, 30), "it is more severe");
        // Then all that hung is over, and in the log.
        found(&mut board, &Vec::<Finding>::new, 35..100);
        assert_eq!((board.raised(seconds(95)), board.0.len()), (Vec::new(), MOST_HELD));
        found(&mut board, &|| vec![Finding::new(table::FLOODS, "z".into())], 100..105);
        assert!(is_raised(&board, table::FLOODS, 100), "it is less severe, but the others are over");
    }

    #[test]
    fn the_most_severe_comes_first() {
        let mut board = AdviceBoard::default();
        let found = || {
            [table::ONE_WORKER, table::WORKERS_HANG]
                .map(|row| Finding::of_pool(row, &"a".into(), "x"))
                .to_vec()
        };
        board.update(found(), seconds(0));
        board.update(vec![Finding::new(table::NOT_READY, "y".into())], seconds(5));
        assert_eq!(board.raised(seconds(5)).len(), 2, "the third must hold for 15 seconds");
        for second in [10, 15, 20] {
            board.update(vec![Finding::new(table::NOT_READY, "y".into())], seconds(second));
        }
        let ids: Vec<_> =
            board.raised(seconds(20)).iter().map(|advice| (advice.id, advice.since_ms)).collect();
        assert_eq!(ids, [("not_ready", 0), ("workers_hang", 20_000), ("one_worker", 20_000)]);
    }
}
