//! What goes on after the client has its answer, or has left: the member works on, and its slot stays taken until it has finished.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Call, CallEnding};
use crate::exchange::{Ending, NoClient, PendingEnd};

/// A worker whose event loop turns answers a FIN with its own at once; one that does not in this time is stuck.
const FAREWELL: Duration = Duration::from_secs(10);

/// Reads and forgets the rest of the answer; past `hang_timeout` the member is taken for hung.
pub(super) fn until_finished(mut call: Call) -> Option<PendingEnd> {
    let (pending_end, finished) = followed(&call);
    tokio::spawn(async move {
        let time_limit = call.settings.hang_timeout.saturating_sub(call.lease.since().elapsed());
        if let Ok(end) = timeout(time_limit, drain(&mut call)).await {
            tell(finished, end, &call);
            call.end(if end == End::Whole { CallEnding::Whole } else { CallEnding::Released });
            return;
        }
        // An answer that has begun and does not end may be a stream without end: ask before judging.
        if call.headed && timeout(FAREWELL, hang_up(&mut call)).await.is_ok() {
            tell(finished, End::Whole, &call);
            call.end(CallEnding::Released);
            return;
        }
        condemn(call, finished).await;
    });
    pending_end
}

/// Tells the member that nobody listens any more; its own FIN says that it has understood.
pub(super) fn after_hanging_up(mut call: Call) -> Option<PendingEnd> {
    let (pending_end, finished) = followed(&call);
    tokio::spawn(async move {
        let time_limit =
            call.settings.hang_timeout.saturating_sub(call.lease.since().elapsed()).max(FAREWELL);
        if timeout(time_limit, hang_up(&mut call)).await.is_ok() {
            tell(finished, End::Whole, &call);
            call.end(CallEnding::Released);
            return;
        }
        condemn(call, finished).await;
    });
    pending_end
}

type Finished = Option<oneshot::Sender<Ending>>;

/// For whoever wants to know whether the worker dies over this call.
fn followed(call: &Call) -> (Option<PendingEnd>, Finished) {
    let followed = call
        .lease
        .exit_watch()
        .map(|exit_watch| PendingEnd::lingering(exit_watch.clone(), call.lease.since()));
    followed.unzip()
}

/// One that broke off is for the other end to judge. The call still has its slot.
fn tell(finished: Finished, end: End, call: &Call) {
    if let Some(finished) = finished {
        // Nobody need wait for it.
        let _ = finished.send(match end {
            End::Whole => Ending::Whole,
            End::Broken => Ending::Lost { alone: call.is_alone() },
        });
    }
}

/// How an answer ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    Broken,
}

/// The supervisor ends the worker, and with it the connection; only then is the slot given back (to a member that has
/// left by then).
async fn condemn(mut call: Call, finished: Finished) {
    let lost = Ending::Lost { alone: call.is_alone() };
    if !call.lease.is_ours() && !call.headed {
        call.strike();
    }
    call.lease.report_hang(call.lease.member());
    let _ = timeout(FAREWELL, drain(&mut call)).await;
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
    // What is left of a request that was read whole is still sent: a worker that waits for it would never finish.
    let _ = call.poll_upload(cx, &mut NoClient);
    while !call.headed && !call.has_switched() {
        if ready!(call.poll_next_head(cx)).is_err() {
            return Poll::Ready(End::Broken);
        }
        let head = call.link.head();
        call.headed = !head.is_interim() || head.status == 101;
        if call.headed {
            // Late, but it answers: no reason to do without it.
            call.reached();
        }
    }
    if call.link.head().status == 101 {
        // A tunnel to nobody ends with its connection, at once.
        return Poll::Ready(End::Whole);
    }
    loop {
        sink.clear();
        match ready!(call.poll_body(cx, sink, usize::MAX)) {
            Ok(false) => {}
            Ok(true) => return Poll::Ready(End::Whole),
            Err(_) => return Poll::Ready(End::Broken),
        }
    }
}
