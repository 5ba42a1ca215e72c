//! The end of a call: what each ending does to the connection, the slot and the statistics. Knows no retries and no client protocol.

use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::{Lease, LeaseEnding, SlotCost};
use hostler_wire::{CallError, Name};
use hostler_worker::UnfinishedRequest;
use tokio::time::{Instant, sleep};

use super::http2::{Fault, KeptBody};
use super::lingering::{end_stream, linger_after_hanging_up, linger_until_finished};
use super::link::Link;
use super::live_stream::StreamEnd;
#[cfg(test)]
use super::tests::{end_wrongly, ends_wrongly};
use super::{Call, CallEnding, Endpoint, Failure, MemberEnd};
use crate::exchange::{Body, Exchange, PendingEnd, clock};

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

/// A connection in HTTP/2 over which nothing has come for this long, while calls wait, may be dead. It is longer than a round trip.
const SILENT_TIME: Duration = Duration::from_millis(500);

impl Call {
    /// Ends the call.
    pub fn end(mut self, how: CallEnding) -> CallRemains {
        let (mut cost, mut pending_end, mut has_handed_over) = (None, None, false);
        self.avoid_dead_connection(how);
        match how {
            CallEnding::Whole => (cost, has_handed_over) = self.finish_whole(),
            #[cfg(test)]
            CallEnding::Unwanted if ends_wrongly() => end_wrongly(self),
            CallEnding::Unwanted if self.is_stream() => end_stream(self),
            CallEnding::Unwanted if self.is_endless() => pending_end = linger_after_hanging_up(self, true),
            CallEnding::Unwanted | CallEnding::MarkedDown => pending_end = self.linger(true),
            CallEnding::TimedOut => {
                if !self.lease.is_ours() && !self.awaits_body() {
                    self.strike();
                }
                // One request is one timeout, however long the member goes on.
                pending_end = self.linger(false);
            }
            CallEnding::ClientFailed => pending_end = linger_after_hanging_up(self, true),
            CallEnding::Outrun => pending_end = linger_after_hanging_up(self, false),
            CallEnding::HungUp => {
                cost = self.settle(Instant::now());
                pending_end = self.broken_off();
                let ending = of_hang_up(self.lease.is_ours(), self.headed);
                self.lease.end(ending);
            }
            CallEnding::BadAnswer | CallEnding::Released => {
                let now = Instant::now();
                cost = self.settle(now);
                // The member was told to stop, and its app may go on.
                self.lease.end(match how {
                    CallEnding::Released if !self.headed => LeaseEnding::Abandoned(now),
                    _ => LeaseEnding::Finished(now),
                });
            }
        }
        CallRemains { cost, pending_end, has_handed_over }
    }

    /// New calls do not use an HTTP/2 connection that may be dead: one without a response in time, and one over which nothing has come since
    /// a call began that is given up, or the calls before it. The calls of clients that wait for less than `request_timeout` never time out
    /// here. If the network drops the packets of a connection, the kernel notices it only after a quarter of an hour.
    fn avoid_dead_connection(&self, how: CallEnding) {
        let Link::Http2(stream) = &self.link else { return };
        let may_be_dead = match how {
            CallEnding::TimedOut => true,
            CallEnding::Unwanted | CallEnding::MarkedDown | CallEnding::ClientFailed | CallEnding::Outrun => {
                let silent_since = if self.headed { None } else { stream.silent_since(self.began) };
                silent_since.is_some_and(|since| since.elapsed() >= SILENT_TIME)
            }
            CallEnding::Whole | CallEnding::HungUp | CallEnding::BadAnswer | CallEnding::Released => false,
        };
        if may_be_dead {
            self.lease.http2_connections(self.thread).avoid(stream.permit());
        }
    }

    /// Goes on with a call for which no client waits. `blames`: a member that does not finish has failed. The member is told to stop at
    /// once in two cases. A member with a part of the request body would wait for the rest without an end. A member with an unanswered
    /// upgrade (or with `hangs_up_at_once`) has no work to finish.
    fn linger(self, blames: bool) -> Option<PendingEnd> {
        let ends_unanswered = self.settings.hangs_up_at_once || self.link.has_offer();
        match !self.headed && ends_unanswered || self.is_uploading() {
            true => linger_after_hanging_up(self, blames),
            false => linger_until_finished(self, blames),
        }
    }

    /// The member has finished, or its stream ends. The slot is free now, even if the client has not read everything.
    pub fn finish(self, exchange: &mut Exchange) {
        let how = match self.note_stream_end(exchange, StreamEnd::Member) {
            None | Some(StreamEnd::Member) => CallEnding::Whole,
            Some(_) => CallEnding::Unwanted,
        };
        exchange.is_answered = matches!(how, CallEnding::Whole);
        self.end(how).note(exchange);
        // The next similar request may be tried now: the client may take long to read this answer.
        exchange.turn = None;
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
        mut self,
        exchange: &mut Exchange,
        failure: Failure,
    ) -> (Failure, Option<Lease<Endpoint>>) {
        let how = match failure {
            Failure::MarkedDown => CallEnding::MarkedDown,
            Failure::TimedOut => {
                if let Some(expected) = &mut exchange.log_facts.expected {
                    expected.held_in_vain = Some(self.lease.since().elapsed());
                }
                CallEnding::TimedOut
            }
            Failure::Body(_) => CallEnding::ClientFailed,
            // The connection is closed, so nothing can tell when the member finishes.
            _ => {
                if let (Failure::Unanswered(_), Link::Http1(connection)) = (&failure, &self.link) {
                    self.lease.note_ended(connection, self.began);
                }
                exchange.needs_http1 |= self.needs_http1();
                let is_lost = matches!(exchange.body, Body::Streaming)
                    && !(failure.was_unprocessed() && self.gives_body_back(exchange));
                exchange.has_lost_body |= is_lost;
                exchange.pending_end = self.broken_off();
                return (failure, Some(self.lease));
            }
        };
        self.end(how).note(exchange);
        (failure, None)
    }

    fn needs_http1(&self) -> bool {
        matches!(&self.link, Link::Http2(stream) if stream.what_fault() == Some(Fault::NeedsHttp1))
    }

    /// Makes it possible to send a streamed body again. False if a part of it is gone.
    fn gives_body_back(&mut self, exchange: &mut Exchange) -> bool {
        let Link::Http2(stream) = &mut self.link else { return false };
        match stream.take_kept() {
            Some(KeptBody { bytes, end: Some(trailers) }) => {
                (exchange.body, exchange.trailers) = (Body::Memory(Arc::new(bytes.into())), trailers);
                true
            }
            // The rest would have to follow what was kept.
            Some(kept) => kept.bytes.is_empty(),
            None => false,
        }
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
        let Self { lease, link, thread, authenticates, .. } = self;
        if let Link::Http1(mut connection) = link
            && !authenticates
            && (is_uploaded || planted!(HalfSentKept))
            && (connection.is_reusable(now) || planted!(UnfitKept))
        {
            lease.checkin(thread, connection);
        }
        (cost, lease.finish(now))
    }

    /// Lets the stream end in order when its member leaves, or now if Hostler `is_ending`. It then goes on for `delay`, so that clients
    /// that are disconnected together do not come back together.
    pub fn end_stream_with_member(
        &mut self,
        is_ending: bool,
        delay: impl FnOnce() -> Duration + Send + 'static,
    ) {
        let Some(live_stream) = &mut self.live_stream else { return };
        let dismissed = self.lease.dismissed();
        live_stream.end_after(async move {
            if !is_ending {
                dismissed.await;
            }
            sleep(delay()).await;
        });
    }

    /// How many bytes of the request the member has taken. None while it waits for more of the client's body. With `may_pause`, never None.
    pub fn taken_by_member(&self, may_pause: bool) -> Option<usize> {
        (may_pause || !self.awaits_body()).then(|| self.link.written())
    }

    /// Counts a request that the member has not answered in time.
    pub(super) fn strike(&self) {
        if let Some(out) = self.lease.strike() {
            self.lease.tell_ejected(out);
        }
    }

    /// Names the request, which the log shows if its worker is killed before it has finished. None: the member is not a worker of ours.
    pub fn note_unfinished(&self, name: Arc<str>) -> Option<UnfinishedRequest> {
        Some(self.lease.exit_watch()?.note_unfinished(name, self.lease.since()))
    }

    /// The member has no other request.
    pub(super) fn is_alone(&self) -> bool {
        self.lease.is_alone(ALONE_TIME)
    }

    /// What is to be found out about the worker of a call that broke off. None for a stream, which counts as answered, unless it was the
    /// only work of its worker and had just begun. None for a member that is not a worker of ours.
    fn broken_off(&self) -> Option<PendingEnd> {
        let (exit_watch, since, alone) = (self.lease.exit_watch()?, self.lease.since(), self.is_alone());
        let is_suspect = !self.is_stream() || (alone && since.elapsed() < ALONE_TIME);
        is_suspect.then(|| PendingEnd::broken_off(exit_watch.clone(), self.lease.clock(), since, alone))
    }

    /// The payer of the slot is told what it has cost. None for a stream, which returned its slot when it began.
    fn settle(&mut self, now: Instant) -> Option<SlotCost> {
        if self.is_stream() {
            return None;
        }
        let since = self.lease.since();
        let unpaid = || SlotCost { hold: now.saturating_duration_since(since), cpu: None };
        let cost = self.lease.settle(now).unwrap_or_else(unpaid);
        self.lease.meter.record_slot_hold(self.thread, cost.hold);
        Some(cost)
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
                log_facts.detail = Some("the stream's worker leaves its pool, or Hostler stops".into());
            }
            StreamEnd::Idle => {
                log_facts.detail = Some("the worker sent no byte for stream_idle_timeout".into())
            }
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

/// Why there is no answer, and the lease. None: its member still works on the request, or Hostler still connects to it.
pub(super) type FailedStart = (Failure, Option<Lease<Endpoint>>);

/// How the lease ends of a call on which its member has hung up. A worker of ours that does so is probably dying. Another member may have
/// only ended this request: by a time limit for its response, because its handler failed, or because one of its processes ended.
/// `has_begun`: the head of the response has come, so the member works.
fn of_hang_up(is_ours: bool, has_begun: bool) -> LeaseEnding {
    match (is_ours, has_begun) {
        (true, _) => LeaseEnding::HungUp,
        (false, true) => LeaseEnding::Finished(Instant::now()),
        (false, false) => LeaseEnding::Unanswered,
    }
}

/// Ends the lease of a call without an answer, if it came back. A worker that has closed the connection is probably dying, so other workers
/// are tried first.
pub(super) fn end_lease((failure, lease): FailedStart) -> Failure {
    // Dropped, it returns a slot that was not used.
    let Some(lease) = lease.filter(|_| !failure.is_by_hostler()) else { return failure };
    let how = match &failure {
        failure if failure.was_never_sent() => {
            if failure.was_silence()
                && !lease.is_ours()
                && let Some(out) = lease.strike()
            {
                lease.tell_ejected(out);
            }
            LeaseEnding::Unreachable
        }
        failure if failure.was_cut_off() => of_hang_up(lease.is_ours(), false),
        failure if failure.was_unprocessed() => LeaseEnding::Unprocessed,
        _ => LeaseEnding::Finished(Instant::now()),
    };
    lease.end(how);
    failure
}
