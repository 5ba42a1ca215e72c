//! A call after its end, if its member still works: the rest of the answer is read, or the member is told to stop, and the slot comes back when
//! the member has finished. Knows no retries and no client.

use std::future::{pending, poll_fn};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hostler_wire::CallError;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::live_stream::StreamEnd;
use super::tunnel::EXIT_DELAY;
use super::{Call, CallEnding};
use crate::exchange::{Ending, LoopWatch, NoClient, PendingEnd};

/// A worker whose event loop runs answers a FIN with its own at once. One that does not within this time is stuck.
const FIN_TIMEOUT: Duration = Duration::from_secs(10);

/// A worker that has not responded within its `hang_timeout` still gets this long to react to our FIN. So does a member with an unanswered
/// upgrade, if Hostler cannot see its event loop, and each other member before bytes of its answer mean that it does not look for our FIN.
const NOTICE_TIME: Duration = Duration::from_secs(1);

/// If the event loop of a worker runs, and the worker has not closed its side after this time, the app does not read the connection of the
/// upgrade.
const UNREAD_TIME: Duration = Duration::from_millis(250);

/// If a worker has had a request for this much longer than `hang_timeout`, it was not slow: Hostler itself did not run (in a paused
/// container, the worker did not run either).
const HELD_UP: Duration = Duration::from_secs(1);

/// The rest of an answer is read, so that its connection can be used again, if it ends within this time ...
const REST_TIME: Duration = Duration::from_millis(250);
/// ... and this many bytes.
const MOST_REST: usize = 256 * 1024;
/// If a member sends more than this after our FIN, its event loop runs: the connection is closed without a wait for its FIN. The buffers of
/// the kernel alone hold less.
const MOST_AFTER_FIN: usize = 4 * 1024 * 1024;

/// Reads and drops the rest of the answer. A member that goes on for long is told to stop. A worker that has not begun to answer after
/// `hang_timeout` counts as hung.
/// `blames`: a member that does not finish has failed.
pub(super) fn linger_until_finished(mut call: Call, blames: bool) -> Option<PendingEnd> {
    let (pending_end, finished) = followed(&call);
    tokio::spawn(async move {
        match timeout(time_left(&call), read_rest(&mut call)).await {
            Ok(Some(end)) => {
                tell(finished, end, &call);
                call.end(end.of_call());
            }
            Ok(None) => stop(call, finished, blames).await,
            // It has answered, so it does not hang, however long its answer takes.
            Err(_) if call.headed => stop(call, finished, blames).await,
            Err(_) => await_kill(call, finished, blames).await,
        }
    });
    pending_end
}

/// Tells the member to stop. `blames`: a member that does not react has failed.
pub(super) fn linger_after_hanging_up(call: Call, blames: bool) -> Option<PendingEnd> {
    let (pending_end, finished) = followed(&call);
    tokio::spawn(stop(call, finished, blames));
    pending_end
}

/// How long the member may still work on the request. If Hostler did not run for a while, the member gets the whole time again.
fn time_left(call: &Call) -> Duration {
    let (limit, held) = (call.settings.hang_timeout, call.lease.since().elapsed());
    // An answer that has begun may take as long as it needs.
    let was_held_up = !call.headed && held >= limit + HELD_UP;
    if was_held_up { limit } else { limit.saturating_sub(held) }
}

/// Closes our side. The member's own FIN shows that it has noticed. A worker that does not notice in its time hangs, unless its event loop turns
/// and the slot need not wait for the end of its work.
async fn stop(mut call: Call, finished: Finished, blames: bool) {
    let least = if call.headed { FIN_TIMEOUT } else { NOTICE_TIME };
    let time_limit = time_left(&call).max(least);
    let unread = unread_upgrade(&call);
    let noticed = async {
        tokio::select! {
            () = hang_up(&mut call) => {}
            () = unread => {}
        }
    };
    let has_noticed = timeout(time_limit, noticed).await.is_ok();
    // Node does not read our FIN behind the rest of an upload that the app leaves unread. A worker whose event loop turns does not hang.
    let need_not_finish = call.headed || call.settings.hangs_up_at_once;
    let event_loop = call.lease.clock().filter(|_| need_not_finish).map(LoopWatch::new);
    let ends = match event_loop {
        Some(event_loop) if !has_noticed => event_loop.turns().await,
        _ => has_noticed,
    };
    if ends {
        tell(finished, End::Closed, &call);
        call.end(CallEnding::Released);
        return;
    }
    await_kill(call, finished, blames).await;
}

/// Ends a stream at its member: closes our side, and shortly after the whole connection, if the member does not close it. No slot waits for
/// this. A worker gets its signal only after the end of its last stream, so its app has some time to react.
pub(super) fn end_stream(mut call: Call) {
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

/// Ready when the member ignores an upgrade. Node then reads nothing more from the connection, so our FIN stays unnoticed. If the event
/// loop of a worker still runs after that, the worker does not hang. The event loop of other members is not visible, so they get a fixed
/// time.
fn unread_upgrade(call: &Call) -> impl Future<Output = ()> + Send + use<> {
    let (has_offer, is_ours) = (call.link.has_offer(), call.lease.is_ours());
    let event_loop = call.lease.clock().map(LoopWatch::new);
    async move {
        match event_loop {
            _ if !has_offer => pending().await,
            Some(event_loop) => {
                sleep(UNREAD_TIME).await;
                while !event_loop.turns().await {}
            }
            None if is_ours => pending().await,
            None => sleep(NOTICE_TIME).await,
        }
    }
}

type Finished = Option<oneshot::Sender<Ending>>;

/// Lets the exchange learn whether the worker dies over this call.
fn followed(call: &Call) -> (Option<PendingEnd>, Finished) {
    let followed = call.lease.exit_watch().map(|exit_watch| {
        PendingEnd::lingering(exit_watch.clone(), call.lease.clock(), call.lease.since(), call.is_alone())
    });
    followed.unzip()
}

/// Reports how the call ended. The receiver decides what a break means. The call still has its slot.
fn tell(finished: Finished, end: End, call: &Call) {
    if let Some(finished) = finished {
        // The receiver may be gone.
        let _ = finished.send(match end {
            End::Whole => Ending::Whole,
            End::Closed => Ending::Closed { alone: call.is_alone() },
            End::HungUp | End::Failed => Ending::Lost { alone: call.is_alone() },
        });
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    /// The member has closed its side after our FIN.
    Closed,
    /// The member hung up before the end of its answer.
    HungUp,
    /// The connection failed in another way.
    Failed,
}

impl End {
    fn broken(call: &Call, error: CallError) -> Self {
        if call.failure(error).was_cut_off() { Self::HungUp } else { Self::Failed }
    }

    fn of_call(self) -> CallEnding {
        match self {
            Self::Whole => CallEnding::Whole,
            // As for a call whose client still waits: a worker may be about to die, and then the key of the request pays for that.
            Self::HungUp => CallEnding::HungUp,
            Self::Closed | Self::Failed => CallEnding::Released,
        }
    }
}

/// The supervisor kills the worker, which closes the connection. Only then is the slot given back (the member has left the pool by then).
async fn await_kill(mut call: Call, finished: Finished, blames: bool) {
    let lost = Ending::Lost { alone: call.is_alone() };
    if blames && !call.lease.is_ours() && !call.headed {
        call.strike();
    }
    call.lease.report_hang(call.lease.member());
    let _ = timeout(FIN_TIMEOUT, drain(&mut call, usize::MAX)).await;
    if let Some(finished) = finished {
        let _ = finished.send(lost);
    }
    call.end(CallEnding::Released);
}

async fn hang_up(call: &mut Call) {
    poll_fn(|cx| call.link.poll_hang_up(cx)).await;
    if planted!(UnawaitedFin) {
        return;
    }
    if call.lease.is_ours() {
        return drain(call, MOST_AFTER_FIN).await;
    }
    // What was on its way is read after this time. A member that then writes does not look for our FIN (many servers in Go, Python or PHP do
    // not). It notices when a write fails, so the connection must be closed.
    if timeout(NOTICE_TIME, drain(call, MOST_AFTER_FIN)).await.is_err() {
        drain(call, 0).await;
    }
}

/// Reads until the connection has ended, or more than so many bytes of a body have come.
async fn drain(call: &mut Call, most: usize) {
    if poll_fn(|cx| poll_begun(call, cx)).await.is_ok() {
        drain_body(call, most).await;
    }
}

/// Reads the answer to its end, however late it begins. None: it has begun, and the end is not near.
async fn read_rest(call: &mut Call) -> Option<End> {
    match poll_fn(|cx| poll_begun(call, cx)).await {
        Ok(()) => timeout(REST_TIME, drain_body(call, MOST_REST)).await.ok().flatten(),
        Err(end) => Some(end),
    }
}

/// Ready when the head has come. An error if no body follows: the answer is a 101, or the connection has ended.
fn poll_begun(call: &mut Call, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
    // The rest of a request that was read whole is still sent: a worker that waits for it would never finish.
    let _ = call.poll_upload(cx, &mut NoClient);
    while !call.headed && !call.has_switched() {
        if let Err(error) = ready!(call.poll_next_head(cx)) {
            return Poll::Ready(Err(End::broken(call, error)));
        }
        let head = call.link.head();
        call.headed = !head.is_interim() || head.status == 101;
        if call.headed {
            // The member is slow, but it answers: no reason to give it up.
            call.reached();
            if let Some(tell) = call.late_answer.take() {
                tell(call.link.head());
            }
        }
    }
    if call.link.head().status == 101 {
        // The tunnel has no client, so its connection is closed at once.
        return Poll::Ready(Err(End::Whole));
    }
    Poll::Ready(Ok(()))
}

/// Reads and drops the body. None: more bytes than `most` have come.
async fn drain_body(call: &mut Call, most: usize) -> Option<End> {
    let (mut sink, mut read) = (Vec::new(), 0);
    poll_fn(|cx| {
        let _ = call.poll_upload(cx, &mut NoClient);
        loop {
            sink.clear();
            let has_ended = ready!(call.link.poll_body(cx, &mut sink, usize::MAX));
            read += sink.len();
            match has_ended {
                Ok(true) => return Poll::Ready(Some(End::Whole)),
                Ok(false) if read > most => return Poll::Ready(None),
                Ok(false) => {}
                Err(error) => return Poll::Ready(Some(End::broken(call, error))),
            }
        }
    })
    .await
}
