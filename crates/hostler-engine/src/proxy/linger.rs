//! What goes on in the background after the client has its answer or has left: the slot stays taken until the member has finished. Knows no
//! client.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Call, CallEnding};
use crate::exchange::{Ending, NoClient, PendingEnd};

/// A worker whose event loop runs answers a FIN with its own at once. One that does not within this time is stuck.
const FIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads and drops the rest of the answer. After `hang_timeout` the worker counts as hung.
pub(super) fn until_finished(mut call: Call) -> Option<PendingEnd> {
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
        await_kill(call, finished).await;
    });
    pending_end
}

/// Closes our side. The member's own FIN shows that it has noticed.
pub(super) fn after_hanging_up(mut call: Call) -> Option<PendingEnd> {
    let (pending_end, finished) = followed(&call);
    tokio::spawn(async move {
        let time_limit =
            call.settings.hang_timeout.saturating_sub(call.lease.since().elapsed()).max(FIN_TIMEOUT);
        if timeout(time_limit, hang_up(&mut call)).await.is_ok() {
            tell(finished, End::Whole, &call);
            call.end(CallEnding::Released);
            return;
        }
        await_kill(call, finished).await;
    });
    pending_end
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
async fn await_kill(mut call: Call, finished: Finished) {
    let lost = Ending::Lost { alone: call.is_alone() };
    if !call.lease.is_ours() && !call.headed {
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
        match ready!(call.poll_body(cx, sink, usize::MAX)) {
            Ok(false) => {}
            Ok(true) => return Poll::Ready(End::Whole),
            Err(_) => return Poll::Ready(End::Broken),
        }
    }
}
