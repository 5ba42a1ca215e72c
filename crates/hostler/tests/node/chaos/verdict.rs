//! The judge of the chaos test: was every request answered once, rightly, or refused for a reason that it has met? Asks
//! nobody anything: it reads the ledger, the diary and the log.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use hostler_testkit::ConnectionEnding;
use serde_json::Value;

use super::diary::Diary;
use super::ledger::{Blow, Entry, Ledger, Outcome};
use super::request::Way;
use super::{LOOPS, PATIENCE_OF_LOOPS};

/// A worker struck so long ago may still have looked alive to a request: its end is not yet known.
pub const AFTERMATH: Duration = Duration::from_secs(10);
/// A request that was struck twice is given up: it may itself be what kills.
const MOST_STRUCK: usize = 2;

/// What is known when entries are judged.
pub struct Judge<'a> {
    diary: &'a Diary,
    blows: Vec<Blow>,
    /// Processes that did not end by themselves.
    struck: HashSet<u32>,
}

/// Requests that were asked in good faith and refused for a reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct Excused {
    /// Must not be sent twice, and its worker was struck.
    pub lost: usize,
    /// It, or others with its URL, met with two blows in a row, and cannot be told from what kills its workers.
    pub unlucky: usize,
    /// Behind requests that loop, in a pool without patience.
    pub late: usize,
}

/// What must not have happened.
pub struct Wrong {
    pub entry: Box<Entry>,
    pub complaint: String,
}

impl Wrong {
    fn new(entry: &Entry, complaint: String) -> Self {
        Self { entry: Box::new(entry.clone()), complaint }
    }
}

impl<'a> Judge<'a> {
    pub fn new(ledger: &Ledger, diary: &'a Diary) -> Self {
        let blows = ledger.blows();
        let killed = blows.iter().filter_map(|blow| blow.kills);
        let struck = killed.chain(diary.doomed.iter().copied()).collect();
        Self { diary, blows, struck }
    }

    /// Judges all entries; the error is the first complaint.
    pub fn all(&self, entries: &[Entry]) -> Result<Excused, Wrong> {
        let mut excused = Excused::default();
        for entry in entries {
            self.judge(entry, &mut excused).map_err(|complaint| Wrong::new(entry, complaint))?;
        }
        Ok(excused)
    }

    fn judge(&self, entry: &Entry, excused: &mut Excused) -> Result<(), String> {
        let request = &entry.request;
        let visits = self.diary.visits(&request.id);
        if !request.is_idempotent() && visits.len() > 1 {
            return Err(format!("it may be sent once, and was by {visits:?}"));
        }
        if let Outcome::Other(answer) = &entry.outcome
            && answer.status == 200
            && answer.ending == ConnectionEnding::Whole
        {
            return Err("the wrong body".into());
        }
        match (request.way, &entry.outcome) {
            (_, Outcome::Left) => Ok(()),
            (Way::Echo | Way::Leak, Outcome::Right) => match visits.is_empty() {
                true => Err("answered, but no worker has had it".into()),
                false => Ok(()),
            },
            (_, Outcome::Right) => Err("it cannot have been answered".into()),
            (Way::Echo | Way::Leak, _) => self.excuse(entry, excused),
            _ => self.is_deserved(entry),
        }
    }

    /// Was it too slow for the pool that loops, or was its worker struck, so that it must not be sent (once more)?
    fn excuse(&self, entry: &Entry, excused: &mut Excused) -> Result<(), String> {
        let request = &entry.request;
        let Some((status, reason)) = entry.outcome.refusal() else {
            return Err("no answer, no refusal".into());
        };
        match (status, reason.as_str()) {
            (504, "answer_timeout") | (503, "queue_timeout")
                if request.pool == LOOPS && entry.ended - entry.began >= PATIENCE_OF_LOOPS =>
            {
                excused.late += 1;
            }
            // Nobody can be served in time while all its workers loop.
            (503, "overloaded") if request.pool == LOOPS && self.blows_during(entry, AFTERMATH) > 0 => {
                excused.late += 1;
            }
            // Others have asked for the same URL, and were struck twice in a row.
            (502, "poison") if self.diary.visits(&request.id).is_empty() => {
                let met = self.blows_during(entry, AFTERMATH);
                if met < MOST_STRUCK {
                    return Err(format!("its URL has met with {met} blows"));
                }
                excused.unlucky += 1;
            }
            (502, "worker_lost" | "poison") if request.is_idempotent() => {
                let met = self.blows_during(entry, Duration::from_secs(1));
                if met < MOST_STRUCK {
                    return Err(format!("it has met with {met} blows"));
                }
                excused.unlucky += 1;
            }
            (502, "worker_lost" | "poison") => {
                let was_struck = match self.diary.visits(&request.id) {
                    [] => self.blows_during(entry, AFTERMATH) > 0,
                    visits => visits.iter().all(|pid| self.struck.contains(pid)),
                };
                if !was_struck {
                    return Err("nothing has happened to its worker".into());
                }
                excused.lost += 1;
            }
            _ => return Err("no reason for this refusal".into()),
        }
        Ok(())
    }

    /// What a request that kills or hangs its worker may get.
    fn is_deserved(&self, entry: &Entry) -> Result<(), String> {
        let is_broken =
            matches!(&entry.outcome, Outcome::Other(answer) if answer.ending != ConnectionEnding::Whole);
        let refusal = entry.outcome.refusal();
        let refusal = refusal.as_ref().map(|(status, reason)| (*status, reason.as_str()));
        let fits = match (entry.request.way, refusal) {
            (_, Some((502, "worker_lost" | "poison"))) | (Way::Loop, Some((504, "answer_timeout"))) => true,
            // Its worker was killed with the one before; it waited for too long.
            (Way::Loop, Some((503, "overloaded"))) => true,
            (Way::Loop, Some((503, "queue_timeout"))) => entry.ended - entry.began >= PATIENCE_OF_LOOPS,
            (Way::Half, Some((502, "bad_answer"))) => true,
            (Way::Half, None) => is_broken,
            _ => false,
        };
        if fits { Ok(()) } else { Err("not what such a request is to get".into()) }
    }

    /// The deadly blows that its pool has got while it lived, or shortly before.
    fn blows_during(&self, entry: &Entry, aftermath: Duration) -> usize {
        let met = |blow: &&Blow| {
            blow.is_deadly
                && blow.pool == entry.request.pool
                && blow.at + aftermath >= entry.began
                && blow.at <= entry.ended
        };
        self.blows.iter().filter(met).count()
    }
}

/// Hostler's own book: one access line for each request that was answered, with the status that its client saw.
pub fn compare_with_log(entries: &[Entry], access: &[Value]) -> Result<(), Wrong> {
    let mut lines: HashMap<&str, Vec<&Value>> = HashMap::new();
    for line in access {
        lines.entry(line["id"].as_str().unwrap_or_default()).or_default().push(line);
    }
    for entry in entries {
        let status = match &entry.outcome {
            Outcome::Right => 200,
            Outcome::Other(answer) => answer.status,
            Outcome::Nothing(_) | Outcome::Left => continue,
        };
        let written = lines.get(entry.request.id.as_str()).map_or(&[][..], Vec::as_slice);
        match written {
            [line] if line["status"] == status => {}
            _ => {
                let complaint = format!("the client saw one {status}, the log has {written:?}");
                return Err(Wrong::new(entry, complaint));
            }
        }
    }
    Ok(())
}
