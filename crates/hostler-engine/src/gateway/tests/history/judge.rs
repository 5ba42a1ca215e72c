//! Whether the end of a request is right: the answer is its own, whole answers are whole, and each failure has a cause.

use std::time::Duration;

use hostler_wire::BodyLength;

use super::client::{ClientAnswer, End, Ended};
use super::record::{Checked, Facts, Record, ensure};
use super::script::{Fault, MemberAnswer};
use super::steps::{Ask, Method, Settings};
use crate::exchange::BodyError;
use crate::gateway::Refusal;

/// How much later than its deadline a request may end: the sweep looks every 20 ms, and the timers have a grain of 1 ms.
const GRAIN: Duration = Duration::from_millis(60);
/// How often a request that may be repeated is sent, if members only hang up.
const MOST_SENDS: usize = 3;

impl Record {
    /// A request has ended.
    pub fn judge(&mut self, ask: &Ask, ended: &Ended, settings: &Settings) {
        self.tell(|| format!("{} {} ends: {}", ask.method.name(), ask.id, shown(&ended.end)));
        let checked = self.check_times(ask, ended, settings);
        self.note(checked);
        let checked = self.check_interims(ask, ended);
        self.note(checked);
        let checked = match &ended.end {
            End::Whole(answer) => self.check_answer(ask, answer, true),
            End::Cut(answer) => self.check_answer(ask, answer, false),
            End::Left => self.check_left(ask, ended),
            End::Refused(refusal) => self.check_refusal(ask, refusal, ended, settings),
        };
        self.note(checked);
        let is_whole = matches!(ended.end, End::Whole(_));
        self.note(ensure(is_whole || !settings.is_tame, || {
            format!("nothing goes wrong, and request {} ends: {}", ask.id, shown(&ended.end))
        }));
        self.count(ask, ended, settings);
    }

    fn check_times(&self, ask: &Ask, ended: &Ended, settings: &Settings) -> Checked {
        let (took, most) = (ended.answered - ended.asked, Duration::from_millis(settings.request_timeout));
        ensure(took <= most + GRAIN, || {
            format!("request {} waits {took:?} for its answer; the limit is {most:?}", ask.id)
        })
    }

    fn check_interims(&self, ask: &Ask, ended: &Ended) -> Checked {
        let mut interims = ended.interims.iter();
        ensure(interims.all(|(status, id)| (*status, *id) == (103, Some(ask.id))), || {
            format!("request {} gets interim answers of others, or a 100: {:?}", ask.id, ended.interims)
        })
    }

    fn check_answer(&self, ask: &Ask, answer: &ClientAnswer, is_whole: bool) -> Checked {
        let ClientAnswer { status, of: (id, attempt), length, body } = answer;
        ensure(*id == Some(ask.id), || format!("request {} gets the answer to {id:?}", ask.id))?;
        let facts = &self.facts[&ask.id];
        let meant = attempt.and_then(|attempt| facts.attempts.get(attempt));
        let Some(meant) = meant else { return Err(format!("request {} gets no answer of a member", ask.id)) };
        ensure(meant.status == *status, || format!("request {} gets a {status}", ask.id))?;
        if !is_whole {
            ensure(meant.ends_in_body, || format!("the answer to {} breaks off for no reason", ask.id))?;
            return ensure(meant.body.starts_with(body), || format!("request {} gets foreign bytes", ask.id));
        }
        ensure(meant.is_whole, || {
            format!("the answer {}.{attempt:?} counts as complete with {} bytes", ask.id, body.len())
        })?;
        ensure(meant.body == *body, || {
            format!("request {} gets {} bytes of {}, or others", ask.id, body.len(), meant.body.len())
        })?;
        let is_right = match length {
            BodyLength::Known(length) => *length == body.len() as u64,
            BodyLength::Chunked | BodyLength::UntilClose => ask.method != Method::Head,
        };
        ensure(is_right, || format!("the body of {} is framed as {length:?}", ask.id))
    }

    fn check_left(&self, ask: &Ask, ended: &Ended) -> Checked {
        // Without an order to leave it has lost patience with a member that hangs in its body.
        let hangs = self.facts[&ask.id].attempts.iter().any(|answer| !answer.is_whole && !answer.is_bad);
        ensure(ended.has_left || hangs, || format!("the client of {} leaves by itself", ask.id))
    }

    fn check_refusal(&self, ask: &Ask, refusal: &Refusal, ended: &Ended, settings: &Settings) -> Checked {
        let facts = &self.facts[&ask.id];
        let took = ended.answered - ended.asked;
        let is_any = |is: fn(&MemberAnswer) -> bool| facts.attempts.iter().any(is);
        let shortest = settings.queue_timeout.min(settings.request_timeout);
        let has_cause = match refusal {
            Refusal::QueueTimeout => took >= Duration::from_millis(shortest),
            Refusal::QueueFull { limit } => *limit == settings.queue_limit,
            Refusal::Overloaded => !settings.is_tame,
            Refusal::Unreachable(_) => self.refused > 0,
            Refusal::WorkerLost(_) => self.is_lost(facts, settings),
            Refusal::BadAnswer(_) => is_any(|answer| answer.is_bad),
            Refusal::InterimAnswers(_) => {
                facts.ask.scripts.iter().any(|one| one.fault == Fault::TooManyInterims)
            }
            // Or the member was given up, and no other had a slot in time.
            Refusal::AnswerTimeout => {
                let least = match facts.attempts.len() {
                    0 => settings.request_timeout,
                    _ => shortest,
                };
                took >= Duration::from_millis(least)
            }
            Refusal::ClientLeft | Refusal::Body(BodyError::Left) => ended.has_left,
            _ => false,
        };
        ensure(has_cause, || {
            format!("request {} is refused without a cause, after {took:?}: {refusal:?}", ask.id)
        })
    }

    /// A member hung up on the request in the middle of its answer. Or before it, and the request was sent so often that it may not be sent
    /// again.
    fn is_lost(&self, facts: &Facts, settings: &Settings) -> bool {
        let unread = facts.lost + self.unclear;
        let is_streamed = settings.streams_body && facts.ask.body > 0;
        let may_be_repeated = facts.ask.method.is_idempotent() && !is_streamed;
        let least = if may_be_repeated { MOST_SENDS } else { 1 };
        let in_body = facts.attempts.iter().any(|answer| answer.ends_in_body);
        let before = unread > 0 || facts.attempts.iter().any(|answer| answer.ends_before_head);
        in_body || before && facts.attempts.len() + unread >= least
    }

    fn count(&mut self, ask: &Ask, ended: &Ended, settings: &Settings) {
        let facts = &self.facts[&ask.id];
        let (attempts, seen) = (facts.attempts.len() + facts.lost, &mut self.seen);
        let place = match &ended.end {
            End::Whole(answer) => {
                let fault = |at: usize| facts.ask.scripts[at.min(facts.ask.scripts.len() - 1)].fault;
                seen.surplus += u64::from(answer.of.1.is_some_and(|at| fault(at) == Fault::Surplus));
                seen.repeated += u64::from(attempts > 1);
                &mut seen.whole
            }
            End::Cut(_) => &mut seen.cut,
            End::Left | End::Refused(Refusal::ClientLeft | Refusal::Body(_)) => &mut seen.left,
            End::Refused(Refusal::WorkerLost(_)) => &mut seen.lost,
            End::Refused(Refusal::BadAnswer(_) | Refusal::InterimAnswers(_)) => &mut seen.bad,
            End::Refused(Refusal::AnswerTimeout) => &mut seen.late,
            End::Refused(Refusal::Unreachable(_)) => &mut seen.unreachable,
            End::Refused(_) => &mut seen.no_slot,
        };
        *place += 1;
        seen.interims += ended.interims.len() as u64;
        seen.hedged += u64::from(ended.hedge == Some("won"));
        seen.streamed += u64::from(settings.streams_body && ask.body > 0 && attempts > 0);
    }
}

fn shown(end: &End) -> String {
    match end {
        End::Whole(answer) => format!("whole, {} with {} bytes", answer.status, answer.body.len()),
        End::Cut(answer) => format!("cut, {} with {} bytes", answer.status, answer.body.len()),
        End::Refused(refusal) => format!("{refusal:?}"),
        End::Left => "the client has left".into(),
    }
}
