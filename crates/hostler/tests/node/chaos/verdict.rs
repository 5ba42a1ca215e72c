//! The verdict of the chaos test: was every request answered once, rightly, or refused for a cause that it has met? Sends no requests: it
//! reads the ledger, the diary and the log.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use hostler_testkit::ConnectionEnding;
use serde_json::Value;

use super::diary::Diary;
use super::ledger::{Entry, InjectedFault, Ledger, Outcome};
use super::request::Way;
use super::{LOOPS, LOOPS_TIMEOUT};

/// For this long a killed worker may still look alive to a request, because its end is not known yet.
pub const AFTERMATH: Duration = Duration::from_secs(10);
/// A request that met two faults is refused: it may itself be the cause.
const MOST_STRUCK: usize = 2;

/// What is known when entries are judged.
pub struct Judge<'a> {
    diary: &'a Diary,
    faults: Vec<InjectedFault>,
    /// Processes that did not end by themselves.
    struck: HashSet<u32>,
}

/// Requests that were refused although they were harmless, with the reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct Excused {
    /// It must not be sent twice, and its worker met a fault.
    pub lost: usize,
    /// It, or others with its URL, met two faults in a row, so Hostler cannot tell it from a deadly request.
    pub unlucky: usize,
    /// It waited behind requests that loop, in a pool with a short timeout.
    pub late: usize,
}

/// Violations.
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
        let faults = ledger.faults();
        let killed = faults.iter().filter_map(|fault| fault.kills);
        let struck = killed.chain(diary.doomed.iter().copied()).collect();
        Self { diary, faults, struck }
    }

    /// Judges all entries. The error is the first violation.
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

    /// Whether it was too slow for the pool that loops, or its worker met a fault and it must not be sent again.
    fn excuse(&self, entry: &Entry, excused: &mut Excused) -> Result<(), String> {
        let request = &entry.request;
        let Some((status, reason)) = entry.outcome.refusal() else {
            return Err("no answer, no refusal".into());
        };
        match (status, reason.as_str()) {
            (504, "answer_timeout") | (503, "queue_timeout" | "suspect")
                if request.pool == LOOPS && entry.ended - entry.began >= LOOPS_TIMEOUT =>
            {
                excused.late += 1;
            }
            // While all its workers loop, no request can be served in time.
            (503, "overloaded") if request.pool == LOOPS && self.faults_during(entry, AFTERMATH) > 0 => {
                excused.late += 1;
            }
            // Others with the same URL met two faults in a row.
            (502, "poison") if self.diary.visits(&request.id).is_empty() => {
                let met = self.faults_during(entry, AFTERMATH);
                if met < MOST_STRUCK {
                    return Err(format!("its URL has met with {met} faults"));
                }
                excused.unlucky += 1;
            }
            (502, "worker_lost" | "poison") if request.is_idempotent() => {
                let met = self.faults_during(entry, Duration::from_secs(1));
                if met < MOST_STRUCK {
                    return Err(format!("it has met with {met} faults"));
                }
                excused.unlucky += 1;
            }
            (502, "worker_lost" | "poison") => {
                let was_struck = match self.diary.visits(&request.id) {
                    [] => self.faults_during(entry, AFTERMATH) > 0,
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

    /// The answers that a deadly request may get.
    fn is_deserved(&self, entry: &Entry) -> Result<(), String> {
        let is_broken =
            matches!(&entry.outcome, Outcome::Other(answer) if answer.ending != ConnectionEnding::Whole);
        let refusal = entry.outcome.refusal();
        let refusal = refusal.as_ref().map(|(status, reason)| (*status, reason.as_str()));
        let fits = match (entry.request.way, refusal) {
            (_, Some((502, "worker_lost" | "poison"))) | (Way::Loop, Some((504, "answer_timeout"))) => true,
            // Its worker was killed with the one before, or it waited for too long.
            (Way::Loop, Some((503, "overloaded"))) => true,
            (Way::Loop, Some((503, "queue_timeout" | "suspect"))) => {
                entry.ended - entry.began >= LOOPS_TIMEOUT
            }
            (Way::Half, Some((502, "bad_answer"))) => true,
            (Way::Half, None) => is_broken,
            _ => false,
        };
        if fits { Ok(()) } else { Err("not what such a request is to get".into()) }
    }

    /// The deadly faults of its pool during the request, or shortly before.
    fn faults_during(&self, entry: &Entry, aftermath: Duration) -> usize {
        let met = |fault: &&InjectedFault| {
            fault.is_deadly
                && fault.pool == entry.request.pool
                && fault.at + aftermath >= entry.began
                && fault.at <= entry.ended
        };
        self.faults.iter().filter(met).count()
    }
}

/// Hostler's own record: one access line for each answered request, with the status that its client saw.
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
