//! What happens in a history, as members and clients report it, and the rules of members: how many requests they have at once, how often
//! they get one, and over which connections.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use super::script::{MemberAnswer, Script};
use super::steps::{Ask, History};

pub type Checked = Result<(), String>;

pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(what()) }
}

/// How often a request may reach members: three times, each time a second time over a new connection.
const MOST_ARRIVALS: usize = 6;
/// Ids in targets have so many digits, so that a part of one is not taken for another.
const DIGITS: usize = 4;

/// The target of a request.
pub fn target(id: u64) -> String {
    format!("/r/{id:0DIGITS$}")
}

/// The request in this text of a request's head.
pub fn id_in(text: &str) -> Option<u64> {
    let digits = text.split_once("/r/")?.1.get(..DIGITS)?;
    digits.parse().ok()
}

/// What is known of one request.
pub struct Facts {
    pub ask: Ask,
    /// What members did with it, in the order in which they got it.
    pub attempts: Vec<MemberAnswer>,
    /// How often it was sent to a member that did not read it.
    pub lost: usize,
}

/// A request at a member.
struct Busy {
    request: (u64, usize),
    /// From then on the member counts as hung.
    until: Instant,
}

pub struct Record {
    pub facts: BTreeMap<u64, Facts>,
    busy: Vec<Vec<Busy>>,
    slots: Vec<usize>,
    /// The most requests that each member had at once.
    pub peaks: Vec<usize>,
    hang_timeout: Duration,
    most_arrivals: usize,
    /// How often bytes were lost of which it is not clear whose they were.
    pub unclear: usize,
    /// How many connections could not be made.
    pub refused: usize,
    pub error: Option<String>,
    trace: Option<String>,
    began: Instant,
    pub seen: Coverage,
}

pub type SharedRecord = Arc<Mutex<Record>>;

/// Panics are not expected: what goes wrong is noted.
pub fn lock(record: &SharedRecord) -> MutexGuard<'_, Record> {
    record.lock().unwrap()
}

impl Record {
    pub fn new(history: &History, is_traced: bool) -> SharedRecord {
        let settings = &history.settings;
        let members = settings.slots.len();
        Arc::new(Mutex::new(Self {
            facts: BTreeMap::new(),
            busy: (0..members).map(|_| vec![]).collect(),
            slots: settings.slots.clone(),
            peaks: vec![0; members],
            hang_timeout: Duration::from_millis(settings.request_timeout) * 2,
            most_arrivals: if settings.hedge.is_some() { MOST_ARRIVALS * 2 } else { MOST_ARRIVALS },
            unclear: 0,
            refused: 0,
            error: None,
            trace: is_traced.then(String::new),
            began: Instant::now(),
            seen: Coverage::default(),
        }))
    }

    pub fn tell(&mut self, what: impl FnOnce() -> String) {
        let now = self.began.elapsed();
        if let Some(trace) = &mut self.trace {
            let _ = writeln!(trace, "      {:7.1} ms: {}", now.as_secs_f64() * 1e3, what());
        }
    }

    pub fn take_trace(&mut self) -> String {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes the first rule that is broken.
    pub fn note(&mut self, checked: Checked) {
        if let Err(error) = checked {
            self.tell(|| format!("BROKEN: {error}"));
            self.error.get_or_insert(error);
        }
    }

    /// A member has got the head of a request.
    pub fn arrive(&mut self, member: usize, id: u64) -> Option<(Ask, Script, MemberAnswer, usize)> {
        let Some(facts) = self.facts.get_mut(&id) else {
            self.note(Err(format!("member {member} gets request {id}, which no client has sent")));
            return None;
        };
        let attempt = facts.attempts.len();
        let script = facts.ask.scripts[attempt.min(facts.ask.scripts.len() - 1)].clone();
        let ask = facts.ask.clone();
        let answer = MemberAnswer::of(&script, ask.method, id, attempt);
        facts.attempts.push(answer.clone());
        let most = if ask.method.is_idempotent() { self.most_arrivals } else { 1 };
        self.note(ensure(attempt < most, || {
            format!("{} {id} reaches members {} times", ask.method.name(), attempt + 1)
        }));
        self.tell(|| {
            format!("member {member} gets {} {id}.{attempt}, {:?}", ask.method.name(), script.fault)
        });
        self.take_slot(member, (id, attempt));
        Some((ask, script, answer, attempt))
    }

    fn take_slot(&mut self, member: usize, request: (u64, usize)) {
        let now = Instant::now();
        let busy = &mut self.busy[member];
        busy.retain(|one| one.until > now);
        busy.push(Busy { request, until: now + self.hang_timeout });
        let (count, slots) = (busy.len(), self.slots[member]);
        self.peaks[member] = self.peaks[member].max(count);
        self.note(ensure(count <= slots, || {
            format!(
                "member {member} has {count} requests at once, and {slots} slots: {request:?} is the last"
            )
        }));
    }

    /// The member works on the request no more.
    pub fn leave_slot(&mut self, member: usize, request: (u64, usize)) {
        self.busy[member].retain(|one| one.request != request);
    }

    /// Bytes for a member that it does not read.
    pub fn discard(&mut self, bytes: &[u8]) {
        let id = id_in(&String::from_utf8_lossy(bytes));
        match id.and_then(|id| self.facts.get_mut(&id)) {
            Some(facts) => facts.lost += 1,
            None => self.unclear += 1,
        }
        self.tell(|| format!("{} bytes of request {id:?} are not read", bytes.len()));
    }
}

/// How often something happened in which a bug could show.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coverage {
    pub whole: u64,
    pub repeated: u64,
    pub cut: u64,
    pub lost: u64,
    pub bad: u64,
    pub late: u64,
    pub no_slot: u64,
    pub unreachable: u64,
    pub left: u64,
    pub reused: u64,
    pub interims: u64,
    pub hedged: u64,
    pub surplus: u64,
    pub streamed: u64,
}

impl Coverage {
    fn all(&mut self) -> [&mut u64; 14] {
        let Self { whole, repeated, cut, lost, bad, late, no_slot, .. } = self;
        let Self { unreachable, left, reused, interims, hedged, surplus, streamed, .. } = self;
        [
            whole,
            repeated,
            cut,
            lost,
            bad,
            late,
            no_slot,
            unreachable,
            left,
            reused,
            interims,
            hedged,
            surplus,
            streamed,
        ]
    }

    pub fn add(&mut self, mut other: Self) {
        self.all().into_iter().zip(other.all()).for_each(|(sum, one)| *sum += *one);
    }

    /// Everything has happened at least once. Otherwise the histories would show little.
    pub fn assert_complete(mut self) {
        assert!(self.all().into_iter().all(|count| *count > 0), "{self:?}");
    }
}
