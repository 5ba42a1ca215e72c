//! A second try of a request at another member, while the first one goes on. The first head counts, and the other member is told to stop.
//! Decides nothing: the gateway says when there is one.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hostler_dispatch::Lease;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::ending::end_lease;
use super::{CallBox, CallEnding, CallSettings, Endpoint, Failure, begin_call};
use crate::exchange::{Downstream, Exchange, NoClient};

/// A second try, in a task of its own. Dropping it tells its member to stop. Its slot is free when the member has finished.
pub struct SecondTry {
    outcome: oneshot::Receiver<Result<SecondAnswer, Failure>>,
    facts: SlotFacts,
}

/// A second try whose head has come.
struct SecondAnswer {
    call: CallBox,
    worker_time: Option<Duration>,
}

/// What the log says of the slot, if the second try wins.
struct SlotFacts {
    member: Arc<str>,
    since: Instant,
    beside: usize,
}

impl SecondAnswer {
    /// Its member has failed. The first one may still do better.
    fn is_failure(&self) -> bool {
        self.call.answer().status >= 500
    }
}

/// Which member has answered first.
pub enum FirstHead {
    First(CallBox),
    Second(CallBox),
}

impl SecondTry {
    /// Sends the request again. Only for a request without a body.
    pub fn begin(
        exchange: &Exchange,
        lease: Lease<Endpoint>,
        settings: &CallSettings,
        thread: usize,
    ) -> Self {
        debug_assert!(exchange.body.is_none(), "a body is sent once");
        let facts =
            SlotFacts { member: lease.label.clone(), since: lease.since(), beside: lease.others_in_use() };
        let (sender, outcome) = oneshot::channel();
        tokio::spawn(run(exchange.copy_for_second_try(), lease, settings.clone(), thread, sender));
        Self { outcome, facts }
    }

    fn note(&self, exchange: &mut Exchange, answered: &SecondAnswer) {
        exchange.log_facts.member = Some(self.facts.member.clone());
        exchange.log_facts.in_use = Some(self.facts.beside);
        exchange.timings.slot_since = Some(self.facts.since);
        exchange.timings.worker_time = answered.worker_time;
    }
}

impl Drop for SecondTry {
    /// Ends a response that has come but lost the race in the same way as one that has not come yet.
    fn drop(&mut self) {
        self.outcome.close();
        if let Ok(Ok(unwanted)) = self.outcome.try_recv() {
            unwanted.call.end(CallEnding::Outrun);
        }
    }
}

/// Sends the request and waits for the head, until the receiver is dropped: then the second try has lost the race.
async fn run(
    mut twin: Exchange,
    mut lease: Lease<Endpoint>,
    settings: CallSettings,
    thread: usize,
    mut sender: oneshot::Sender<Result<SecondAnswer, Failure>>,
) {
    let mut is_first = true;
    let outcome = loop {
        let begun = tokio::select! {
            // `biased`, with this branch first: a request that has lost is not sent, even if a connection is ready for it.
            biased;
            // Nothing was sent, so the slot is free with the end of this task.
            () = sender.closed() => return,
            begun = begin_call(&twin, lease, &settings, thread, is_first) => begun,
        };
        let (mut call, is_kept) = match begun {
            Ok(begun) => begun,
            Err(failure) => break Err(failure),
        };
        let headed = poll_fn(|cx| match call.poll_head(cx, &twin, &mut NoClient) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending => sender.poll_closed(cx).map(|()| None),
        });
        let failure = match headed.await {
            None => {
                call.end(CallEnding::Outrun);
                return;
            }
            Some(Ok(())) => {
                call.note_head(&mut twin);
                break Ok(SecondAnswer { call, worker_time: twin.timings.worker_time });
            }
            Some(Err(failure)) => failure,
        };
        match call.unboxed().without_answer(&mut twin, failure) {
            // As in a first try: that a member closes an old connection is no failure of it.
            (failure, Some(again)) if is_first && is_end_of_old(&failure, is_kept, again.is_ours()) => {
                (lease, is_first) = (again, false);
            }
            failed => break Err(end_lease(failed)),
        }
    };
    if let Err(Ok(unwanted)) = sender.send(outcome) {
        unwanted.call.end(CallEnding::Outrun);
    }
}

/// Whether the failure may only mean that the member has closed an old connection, as it may do at any time. In HTTP/2 the member says so.
/// A worker of ours never closes a kept connection because of a request; it is dying.
fn is_end_of_old(failure: &Failure, is_kept: bool, is_ours: bool) -> bool {
    failure.was_unprocessed() || is_kept && !is_ours && matches!(failure, Failure::Unanswered(_))
}

fn end_unwanted(outcome: Option<Result<SecondAnswer, Failure>>) {
    if let Some(Ok(unwanted)) = outcome {
        unwanted.call.end(CallEnding::Outrun);
    }
}

impl CallBox {
    /// Waits on for the head of this call or of the second try, whichever comes first, and ends the other one. A failure of one of them does
    /// not end the wait for the other. Nor does a 5xx of the second try end that for this call. `moves`: if both fail, the request may be
    /// sent to another member.
    pub async fn race<D: Downstream>(
        self,
        second: SecondTry,
        moves: bool,
        exchange: &mut Exchange,
        client: &mut D,
    ) -> Result<FirstHead, Failure> {
        let (mut first, mut second, mut failed) = (Some(self), Some(second), None);
        loop {
            let step = poll_fn(|cx| {
                if let Some(call) = &mut first
                    && let Poll::Ready(outcome) = call.poll_head(cx, exchange, client)
                {
                    return Poll::Ready(RaceStep::First(outcome));
                }
                if let Some(second) = &mut second
                    && let Poll::Ready(outcome) = Pin::new(&mut second.outcome).poll(cx)
                {
                    return Poll::Ready(RaceStep::Second(outcome.ok()));
                }
                match &first {
                    Some(_) => Poll::Pending,
                    None => exchange.deadline.poll_due(cx).map(|()| RaceStep::Over),
                }
            });
            match step.await {
                RaceStep::First(Ok(())) => {
                    if let Some(mut call) = first.take() {
                        call.note_head(exchange);
                        return Ok(FirstHead::First(call));
                    }
                }
                RaceStep::First(Err(Failure::TimedOut)) if exchange.waits_on() => {
                    if let Some(call) = first.as_mut().filter(|_| moves) {
                        call.watch_ejection();
                    }
                }
                RaceStep::First(Err(failure)) => {
                    let Some(call) = first.take() else { return Err(failure) };
                    let failure = end_lease(call.unboxed().without_answer(exchange, failure));
                    if second.is_none() || failure.is_by_client() {
                        return Err(failure);
                    }
                    failed = Some(failure);
                }
                RaceStep::Second(Some(Ok(answered))) if first.is_none() || !answered.is_failure() => {
                    if let Some(call) = first.take() {
                        call.end(CallEnding::Outrun);
                    }
                    if let Some(second) = second.take() {
                        second.note(exchange, &answered);
                    }
                    return Ok(FirstHead::Second(answered.call));
                }
                RaceStep::Second(outcome) => {
                    second = None;
                    match failed.take() {
                        Some(failure) => return Err(failure),
                        // The first try goes on.
                        None => end_unwanted(outcome),
                    }
                }
                RaceStep::Over if exchange.waits_on() => {}
                RaceStep::Over => return Err(failed.take().unwrap_or(Failure::TimedOut)),
            }
        }
    }
}

/// What has happened in a race.
enum RaceStep {
    First(Result<(), Failure>),
    /// None: the task of the second try was dropped.
    Second(Option<Result<SecondAnswer, Failure>>),
    /// The deadline has come, and the first try has failed before.
    Over,
}

#[cfg(test)]
mod tests {
    use hostler_wire::CallError;

    use super::*;

    #[test]
    fn only_a_member_that_is_no_worker_of_ours_may_close_a_kept_connection() {
        let unanswered = Failure::Unanswered(CallError::Closed);
        for (is_kept, is_ours, expected) in
            [(true, false, true), (true, true, false), (false, false, false), (false, true, false)]
        {
            assert_eq!(is_end_of_old(&unanswered, is_kept, is_ours), expected, "{is_kept} {is_ours}");
        }
        assert!(is_end_of_old(&Failure::Unprocessed("GOAWAY".into()), false, false));
    }
}
