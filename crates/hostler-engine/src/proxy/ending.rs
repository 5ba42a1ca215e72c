//! The end of a call: what each ending does to the connection, the slot and the statistics, and what goes on in the background until the
//! member has finished. Knows no retries and no client protocol.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hostler_dispatch::{Lease, LeaseEnding, SlotCost};
use hostler_wire::{CallError, Name};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::link::Link;
use super::live_stream::StreamEnd;
#[cfg(test)]
use super::tests::{end_wrongly, ends_wrongly};
use super::tunnel::EXIT_DELAY;
use super::{Call, Endpoint, Failure, MemberEnd};
use crate::exchange::{Ending, Exchange, NoClient, PendingEnd, clock};

/// How a call ends, and what follows from it in `Call::end`.
///
/// | ending | connection | slot | also |
/// |---|---|---|---|
/// | `Whole` | kept for the next call, if it is fit | returned | |
/// | `Unwanted`, `Forsaken` | read to its end in the background | returned when the member has finished | |
/// | `TimedOut` | the same | the same | a strike against a member that is not a worker of ours |
/// | `Unwanted` for an endless answer, `ClientFailed`, `Outrun` | the member is told to stop | the same | |
/// | `HungUp` | closed | returned, and the member gets nothing for a moment | the worker's death is looked into |
/// | `BadAnswer`, `Released` | closed | returned | |
///
/// A stream has returned its slot already, so each of these only ends it. The time for which a slot was held is recorded when it is returned. A call ends in two more ways: one without an answer may give its
/// lease back to its caller (`Call::without_answer`), and one whose answer is 101 becomes a tunnel (`Call::switch`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnding {
    /// The answer has come whole: the member has finished.
    Whole,
    /// The client has left, or the answer is not needed.
    Unwanted,
    /// The answer did not begin before the deadline.
    TimedOut,
    /// The answer is late, the member was given up, and the request goes to another one.
    Forsaken,
    /// The client's side failed while its body was being passed on: the member has a part of a request.
    ClientFailed,
    /// Another member has answered the same request before. That is no failure of this one.
    Outrun,
    /// The member hung up in the middle of its answer.
    HungUp,
    /// What came is not HTTP.
    BadAnswer,
    /// The member was told to stop, and has closed the connection or does not react.
    Released,
}

pub struct CallRemains {
    /// What the slot has cost, for the log. None if the worker still works.
    pub cost: Option<SlotCost>,
    /// What goes on at a worker of ours: its death, or the rest of the answer.
    pub pending_end: Option<PendingEnd>,
    /// The slot went to a request that waited for it.
    pub has_handed_over: bool,
}

/// A request counts as alone at its worker if the worker had no other one for this long before it broke off.
pub const ALONE_TIME: Duration = Duration::from_secs(1);

/// A worker whose event loop runs answers a FIN with its own at once. One that does not within this time is stuck.
const FIN_TIMEOUT: Duration = Duration::from_secs(10);

impl Call {
    /// Ends the call.
    pub fn end(mut self, how: CallEnding) -> CallRemains {
        let (mut cost, mut pending_end, mut has_handed_over) = (None, None, false);
        match how {
            CallEnding::Whole => (cost, has_handed_over) = self.finish_whole(),
            #[cfg(test)]
            CallEnding::Unwanted if ends_wrongly() => end_wrongly(self),
            CallEnding::Unwanted if self.is_stream() => end_stream(self),
            CallEnding::Unwanted if self.is_endless() => pending_end = linger_after_hanging_up(self, true),
            CallEnding::Unwanted | CallEnding::Forsaken => pending_end = linger_until_finished(self),
            CallEnding::TimedOut => {
                if !self.lease.is_ours() {
                    self.strike();
                }
                if let Link::Http2(stream) = &self.link {
                    self.lease.http2_connections(self.thread).avoid(stream.permit());
                }
                pending_end = linger_until_finished(self);
            }
            CallEnding::ClientFailed => pending_end = linger_after_hanging_up(self, true),
            CallEnding::Outrun => pending_end = linger_after_hanging_up(self, false),
            CallEnding::HungUp => {
                cost = self.settle(Instant::now());
                pending_end = self.broken_off();
                self.lease.end(LeaseEnding::HungUp);
            }
            CallEnding::BadAnswer | CallEnding::Released => {
                let now = Instant::now();
                cost = self.settle(now);
                self.lease.end(LeaseEnding::Finished(now));
            }
        }
        CallRemains { cost, pending_end, has_handed_over }
    }

    /// The member has finished, or its stream ends. The slot is free now, even if the client has not read everything.
    pub fn finish(self, exchange: &mut Exchange) {
        let how = match self.note_stream_end(exchange, StreamEnd::Member) {
            None | Some(StreamEnd::Member) => CallEnding::Whole,
            Some(_) => CallEnding::Unwanted,
        };
        self.end(how).note(exchange);
        exchange.let_route_go();
    }

    /// The client has left.
    pub fn abandon(self, exchange: &mut Exchange) {
        self.note_stream_end(exchange, StreamEnd::Client);
        self.end(CallEnding::Unwanted).note(exchange);
    }

    /// The answer is broken. Nothing more can be read from this connection.
    pub fn give_up(self, exchange: &mut Exchange, error: CallError) -> Failure {
        self.note_stream_end(exchange, StreamEnd::Member);
        let (failure, remains) = self.break_off(error);
        remains.note(exchange);
        failure
    }

    /// As [`give_up`](Self::give_up), for a call that has outlived its exchange.
    pub fn break_off(self, error: CallError) -> (Failure, CallRemains) {
        let failure = self.failure(error);
        let how = if failure.was_cut_off() { CallEnding::HungUp } else { CallEnding::BadAnswer };
        (failure, self.end(how))
    }

    /// No head comes. Returns the lease, unless it belongs to a member that still works on the request.
    pub(super) fn without_answer(
        self,
        exchange: &mut Exchange,
        failure: Failure,
    ) -> (Failure, Option<Lease<Endpoint>>) {
        let how = match failure {
            Failure::Forsaken => CallEnding::Forsaken,
            Failure::TimedOut => CallEnding::TimedOut,
            Failure::Body(_) => CallEnding::ClientFailed,
            // The connection is closed, so nothing can tell when the member finishes.
            _ => {
                exchange.pending_end = self.broken_off();
                return (failure, Some(self.lease));
            }
        };
        self.end(how).note(exchange);
        (failure, None)
    }

    /// Returns the slot and keeps the connection for the tunnel.
    pub fn switch(mut self, exchange: &mut Exchange) -> MemberEnd {
        exchange.timings.note_cost(self.settle(Instant::now()));
        let named: Vec<_> = self.answer().fields.all(Name::Upgrade).collect();
        let is_websocket = matches!(named[..], [protocol] if protocol.eq_ignore_ascii_case(b"websocket"));
        let (stream, early) = self.link.into_stream().expect("invariant: only HTTP/1.1 switches");
        let idle_timeout = self.settings.tunnel_idle_timeout;
        MemberEnd { stream, early, is_websocket, idle_timeout, tunnel_guard: self.lease.tunnel_guard() }
    }

    /// Returns the connection for the next call if it is fit, then the slot. In this order, so that the next holder of the slot finds the
    /// connection. Says what the slot has cost, and whether it went to a request that waited.
    fn finish_whole(mut self) -> (Option<SlotCost>, bool) {
        let now = clock::now();
        let cost = self.settle(now);
        let is_uploaded = self.is_uploaded();
        let Self { lease, link, thread, .. } = self;
        if let Link::Http1(mut connection) = link
            && (is_uploaded || planted!(HalfSentKept))
            && (connection.is_reusable(now) || planted!(UnfitKept))
        {
            lease.checkin(thread, connection);
        }
        (cost, lease.finish(now))
    }

    /// Counts a request that the member has not answered in time.
    pub(super) fn strike(&self) {
        if let Some(out) = self.lease.strike() {
            self.lease.tell_ejected(out);
        }
    }

    /// The member has no other request.
    pub(super) fn is_alone(&self) -> bool {
        self.lease.is_alone(ALONE_TIME)
    }

    /// A stream counts as answered. Only if it was the only work of its worker and had just begun, its worker may have died over it.
    fn broken_off(&self) -> Option<PendingEnd> {
        let (exit_watch, since, alone) = (self.lease.exit_watch()?, self.lease.since(), self.is_alone());
        let is_suspect = !self.is_stream() || (alone && since.elapsed() < ALONE_TIME);
        is_suspect.then(|| PendingEnd::broken_off(exit_watch.clone(), since, alone))
    }

    /// The payer of the slot is told what it has cost. None for a stream, which returned its slot when it began.
    fn settle(&mut self, now: Instant) -> Option<SlotCost> {
        if self.is_stream() {
            return None;
        }
        let hold = now.saturating_duration_since(self.lease.since());
        self.lease.meter.record_slot_hold(self.thread, hold);
        Some(self.lease.settle(now).unwrap_or(SlotCost { hold, cpu: None }))
    }

    /// Notes for the log which side ended the stream. `side` has ended it unless Hostler has. None if the answer is no stream.
    fn note_stream_end(&self, exchange: &mut Exchange, side: StreamEnd) -> Option<StreamEnd> {
        let end = self.live_stream.as_ref()?.ended().unwrap_or(side);
        let log_facts = &mut exchange.log_facts;
        log_facts.stream_end = Some(match end {
            StreamEnd::Client => "client",
            StreamEnd::Member => "worker",
            StreamEnd::Dismissed | StreamEnd::Idle => "hostler",
        });
        match end {
            StreamEnd::Client | StreamEnd::Member => {}
            StreamEnd::Dismissed => {
                log_facts.detail = Some("the stream's worker leaves, or all is ending".into());
            }
            StreamEnd::Idle => log_facts.detail = Some("nothing came in stream_idle_timeout".into()),
        }
        Some(end)
    }
}

impl CallRemains {
    /// Notes them in the exchange.
    fn note(self, exchange: &mut Exchange) {
        exchange.timings.note_cost(self.cost);
        exchange.has_handed_over |= self.has_handed_over;
        if self.pending_end.is_some() {
            exchange.pending_end = self.pending_end;
        }
    }
}

/// Ends the lease of a call without an answer, if it came back. A worker that has closed the connection is probably dying, so other workers
/// are tried first.
pub(super) fn end_lease((failure, lease): (Failure, Option<Lease<Endpoint>>)) -> Failure {
    let Some(lease) = lease else { return failure };
    let how = match &failure {
        failure if failure.was_never_sent() => {
            // A member that was silent while we connected will be silent again: it is gone or overloaded.
            let is_silent =
                matches!(failure, Failure::Unreachable(error) if error.kind() == ErrorKind::TimedOut);
            if is_silent
                && !lease.is_ours()
                && let Some(out) = lease.strike()
            {
                lease.tell_ejected(out);
            }
            LeaseEnding::Unreachable
        }
        failure if failure.was_cut_off() || failure.was_unprocessed() => LeaseEnding::HungUp,
        _ => LeaseEnding::Finished(Instant::now()),
    };
    lease.end(how);
    failure
}

/// Reads and drops the rest of the answer. After `hang_timeout` the worker counts as hung.
fn linger_until_finished(mut call: Call) -> Option<PendingEnd> {
    let (pending_end, finished) = followed(&call);
    tokio::spawn(async move {
        let time_limit = call.settings.hang_timeout.saturating_sub(call.lease.since().elapsed());
        if let Ok(end) = timeout(time_limit, drain(&mut call)).await {
            tell(finished, end, &call);
            call.end(if end == End::Whole { CallEnding::Whole } else { CallEnding::Released });
            return;
        }
        // An answer that has begun may be a stream without end: close our side first and see whether the worker reacts.
        if call.headed && timeout(FIN_TIMEOUT, hang_up(&mut call)).await.is_ok() {
            tell(finished, End::Whole, &call);
            call.end(CallEnding::Released);
            return;
        }
        await_kill(call, finished, true).await;
    });
    pending_end
}

/// Closes our side. The member's own FIN shows that it has noticed. `blames`: a member that does not react has failed.
fn linger_after_hanging_up(mut call: Call, blames: bool) -> Option<PendingEnd> {
    let (pending_end, finished) = followed(&call);
    tokio::spawn(async move {
        let time_limit =
            call.settings.hang_timeout.saturating_sub(call.lease.since().elapsed()).max(FIN_TIMEOUT);
        if timeout(time_limit, hang_up(&mut call)).await.is_ok() {
            tell(finished, End::Whole, &call);
            call.end(CallEnding::Released);
            return;
        }
        await_kill(call, finished, blames).await;
    });
    pending_end
}

/// Ends a stream at its member: closes our side, and shortly after the whole connection, if the member does not close it. No slot waits for
/// this. A worker gets its signal only after the end of its last stream, so its app has some time to react.
fn end_stream(mut call: Call) {
    tokio::spawn(async move {
        let _ = timeout(FIN_TIMEOUT, hang_up(&mut call)).await;
        let is_dismissed =
            call.live_stream.as_ref().and_then(|stream| stream.ended()) == Some(StreamEnd::Dismissed);
        if is_dismissed && call.lease.is_ours() {
            sleep(EXIT_DELAY).await;
        }
        call.end(CallEnding::Released);
    });
}

type Finished = Option<oneshot::Sender<Ending>>;

/// Lets the exchange learn whether the worker dies over this call.
fn followed(call: &Call) -> (Option<PendingEnd>, Finished) {
    let followed = call
        .lease
        .exit_watch()
        .map(|exit_watch| PendingEnd::lingering(exit_watch.clone(), call.lease.since()));
    followed.unzip()
}

/// Reports how the call ended. The receiver decides what a break means. The call still has its slot.
fn tell(finished: Finished, end: End, call: &Call) {
    if let Some(finished) = finished {
        // The receiver may be gone.
        let _ = finished.send(match end {
            End::Whole => Ending::Whole,
            End::Broken => Ending::Lost { alone: call.is_alone() },
        });
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    Broken,
}

/// The supervisor kills the worker, which closes the connection. Only then is the slot given back (the member has left the pool by then).
async fn await_kill(mut call: Call, finished: Finished, blames: bool) {
    let lost = Ending::Lost { alone: call.is_alone() };
    if blames && !call.lease.is_ours() && !call.headed {
        call.strike();
    }
    call.lease.report_hang(call.lease.member());
    let _ = timeout(FIN_TIMEOUT, drain(&mut call)).await;
    if let Some(finished) = finished {
        let _ = finished.send(lost);
    }
    call.end(CallEnding::Released);
}

async fn hang_up(call: &mut Call) {
    poll_fn(|cx| call.link.poll_hang_up(cx)).await;
    drain(call).await;
}

async fn drain(call: &mut Call) -> End {
    let mut sink = Vec::new();
    poll_fn(|cx| poll_drain(call, &mut sink, cx)).await
}

/// Ready when the answer is complete, or the connection has ended.
fn poll_drain(call: &mut Call, sink: &mut Vec<u8>, cx: &mut Context<'_>) -> Poll<End> {
    // The rest of a request that was read whole is still sent: a worker that waits for it would never finish.
    let _ = call.poll_upload(cx, &mut NoClient);
    while !call.headed && !call.has_switched() {
        if ready!(call.poll_next_head(cx)).is_err() {
            return Poll::Ready(End::Broken);
        }
        let head = call.link.head();
        call.headed = !head.is_interim() || head.status == 101;
        if call.headed {
            // The member is slow, but it answers: no reason to give it up.
            call.reached();
        }
    }
    if call.link.head().status == 101 {
        // The tunnel has no client, so its connection is closed at once.
        return Poll::Ready(End::Whole);
    }
    loop {
        sink.clear();
        match ready!(call.link.poll_body(cx, sink, usize::MAX)) {
            Ok(false) => {}
            Ok(true) => return Poll::Ready(End::Whole),
            Err(_) => return Poll::Ready(End::Broken),
        }
    }
}
