//! Sends one request to one member and reads the answer. Knows no routes, no queue and no retries: it gets a lease and reports how the call
//! went.

mod arriving;
mod ask;
mod call;
mod call_box;
mod call_ending;
mod call_settings;
mod checked;
mod connecting;
mod connector;
mod descriptors;
mod ending;
mod endpoint;
mod failure;
mod health_check;
mod http2;
mod keeping;
mod lane;
mod leaving;
mod lingering;
mod link;
mod live_stream;
mod marked_down;
mod meter;
mod names;
mod read_ahead;
mod request;
mod second_try;
#[cfg(test)]
pub mod tests;
mod tunnel;
mod upload;

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use hostler_dispatch::Lease;
use hostler_wire::MemberConnection;
use rustix::io::Errno;
use tokio::time::{Instant, sleep};

use crate::exchange::{Body, Downstream, Exchange, held_again};
use crate::journal::Level;

pub use crate::exchange::Instance;

pub use arriving::ArrivingAnswer;
pub use ask::{WholeAnswer, ask, ask_status, post};
pub use call::Call;
pub use call_box::CallBox;
pub use call_ending::CallEnding;
pub use call_settings::CallSettings;
pub use checked::Checked;
pub use connector::{Connector, MemberProtocol, MemberTls};
pub use descriptors::{ROOM_PAUSE, descriptor_wanted};
pub use ending::{ALONE_TIME, CallRemains};
pub use endpoint::{Endpoint, MemberNews, OnHang, OwnWorker};
pub use failure::{Failure, TlsFault};
pub use health_check::{CheckSettings, Checking};
pub use leaving::{LEAVING_TIME, LeavingClient};
pub use link::is_for_our_cache;
pub use live_stream::StreamEnd;
pub use meter::{Meter, Spread, Times};
pub use names::NameAddresses;
#[cfg(test)]
pub use request::write_head;
pub use request::{MOVED, goes_on, tells_certificate, writes};
pub use second_try::{FirstHead, SecondTry};
pub use tunnel::{ClientEnd, Ended, MemberEnd, Tunnel};

use connecting::{go_on, note_connected};
use ending::{FailedStart, end_lease};

/// How often a request looks whether a descriptor for its connection is free.
const PAUSE: Duration = Duration::from_millis(50);

/// Sends the request to the leased member and waits for the head of the answer.
pub async fn forward<D: Downstream>(
    exchange: &mut Exchange,
    client: &mut D,
    lease: Lease<Endpoint>,
    settings: &CallSettings,
    thread: usize,
) -> Result<CallBox, Failure> {
    exchange.log_facts.member = Some(held_again(&mut exchange.before.member, &lease.label));
    // Few HTTP/2 servers support tunnels, and nearly all of them speak HTTP/1.1 too.
    if is_for_http2(exchange, &lease) && exchange.offer.is_none() {
        return Box::pin(over_http2(exchange, client, lease, settings, thread)).await;
    }
    // The slot was granted just now, so its time is the current time.
    let now = lease.since();
    if let Some(idle) = lease.checkout(thread, is_repeatable(exchange), now) {
        let call = CallBox::new(Call::begin(exchange, lease, idle, settings, thread, now));
        match call.head(exchange, client).await {
            // A member that is not a worker of ours may close a kept-alive connection at the moment in which it is reused. That is not the
            // member's failure, so the same lease tries once more on a new connection. A worker of ours never does this; it is dying.
            Err((Failure::Unanswered(_), Some(lease))) if !lease.is_ours() && is_repeatable(exchange) => {
                let again = Box::pin(on_new_connection(exchange, client, lease, settings, thread)).await;
                exchange.was_swallowed = matches!(&again, Err(failure) if failure.was_never_sent());
                return again;
            }
            // The app has closed the connection since its last response, and has read nothing of this request. If instead the worker ends, no
            // new connection can be made, and another worker gets the request.
            Err((Failure::Unprocessed(_), Some(lease)))
                if lease.is_ours() && !matches!(exchange.body, Body::Streaming) =>
            {
                lease.note_closed();
                exchange.pending_end = None;
                return Box::pin(on_new_connection(exchange, client, lease, settings, thread)).await;
            }
            outcome => return outcome.map_err(end_lease),
        }
    }
    Box::pin(on_new_connection(exchange, client, lease, settings, thread)).await
}

/// Whether the member speaks HTTP/2, and no member has required HTTP/1.1 for this request.
fn is_for_http2(exchange: &Exchange, lease: &Lease<Endpoint>) -> bool {
    lease.connector.spoken() == MemberProtocol::Http2 && !exchange.needs_http1
}

/// In HTTP/2, if the member offers it.
async fn over_http2<D: Downstream>(
    exchange: &mut Exchange,
    client: &mut D,
    lease: Lease<Endpoint>,
    settings: &CallSettings,
    thread: usize,
) -> Result<CallBox, Failure> {
    match http2::forward(exchange, client, lease, settings, thread).await {
        Err((Failure::Tls(TlsFault::NoHttp2, _), Some(lease))) => {
            fall_back(&lease);
            on_new_connection(exchange, client, lease, settings, thread).await
        }
        // The member requires HTTP/1.1. Without TLS it speaks that at the same port, as for a request with `Upgrade`.
        Err((Failure::Unprocessed(_), Some(lease))) if exchange.needs_http1 && !exchange.has_lost_body => {
            lease.tell_http1();
            let now = Instant::now();
            match lease.checkout(thread, is_repeatable(exchange), now) {
                Some(idle) => {
                    let call = CallBox::new(Call::begin(exchange, lease, idle, settings, thread, now));
                    call.head(exchange, client).await.map_err(end_lease)
                }
                None => on_new_connection(exchange, client, lease, settings, thread).await,
            }
        }
        outcome => outcome.map_err(end_lease),
    }
}

/// Sends the request to the leased member, and does not wait for the answer. `is_first`: it may go over a kept connection. Also says whether
/// it did.
async fn begin_call(
    exchange: &Exchange,
    mut lease: Lease<Endpoint>,
    settings: &CallSettings,
    thread: usize,
    is_first: bool,
) -> Result<(CallBox, bool), Failure> {
    if is_for_http2(exchange, &lease) {
        match http2::begin_call(exchange, lease, settings, thread).await {
            Err((Failure::Tls(TlsFault::NoHttp2, _), Some(again))) => {
                fall_back(&again);
                lease = again;
            }
            outcome => return outcome.map(|call| (call, false)).map_err(end_lease),
        }
    }
    let granted = lease.since();
    let kept = if is_first { lease.checkout(thread, true, granted) } else { None };
    let is_kept = kept.is_some();
    let (lease, connection, now) = match kept {
        Some(idle) => (lease, idle, granted),
        None => {
            let (lease, connection) = connect(lease, exchange, settings, thread).await.map_err(end_lease)?;
            (lease, connection, Instant::now())
        }
    };
    Ok((CallBox::new(Call::begin(exchange, lease, connection, settings, thread, now)), is_kept))
}

/// A member with TLS that does not offer HTTP/2 gets HTTP/1.1 until it does. Nothing was sent to it yet.
fn fall_back(lease: &Lease<Endpoint>) {
    if lease.connector.note_http2(false) {
        lease.tell("does not offer HTTP/2 (ALPN), and gets its requests in HTTP/1.1");
    }
}

/// Looks in the background whether a member that did not offer HTTP/2 does so now.
fn look_for_http2(lease: &Lease<Endpoint>, settings: &CallSettings) {
    if !lease.connector.is_to_be_asked(Instant::now()) {
        return;
    }
    let (connector, time_limit) = (lease.connector.clone(), settings.connect_timeout);
    let (label, news) = (lease.label.clone(), lease.news.clone());
    tokio::spawn(async move {
        let is_offered = connector.connect(MemberProtocol::Http2, time_limit).await.is_ok();
        if is_offered
            && connector.note_http2(true)
            && let Some(MemberNews { journal, pool }) = news
        {
            let text = format!("{pool}: member {label} offers HTTP/2 now, and gets its requests in HTTP/2");
            journal.event(Level::Info, &text);
        }
    });
}

/// The caller boxes this: most requests find an idle connection and should not carry the room for it.
async fn on_new_connection<D: Downstream>(
    exchange: &mut Exchange,
    client: &mut D,
    lease: Lease<Endpoint>,
    settings: &CallSettings,
    thread: usize,
) -> Result<CallBox, Failure> {
    let began = Instant::now();
    exchange.prepares();
    let connected = connect(lease, exchange, settings, thread).await;
    exchange.timings.connecting += began.elapsed();
    exchange.awaits();
    match connected {
        Ok((lease, connection)) => {
            look_for_http2(&lease, settings);
            let call =
                CallBox::new(Call::begin(exchange, lease, connection, settings, thread, Instant::now()));
            call.head(exchange, client).await.map_err(end_lease)
        }
        // The member speaks only HTTP/2. `Upgrade` may be ignored (RFC 9110 section 7.8), so the request goes to it as an ordinary one.
        Err((Failure::NotExpressible, Some(lease))) => {
            exchange.offer = None;
            lease.connector.note_http2(true);
            http2::forward(exchange, client, lease, settings, thread).await.map_err(end_lease)
        }
        Err(failed) => Err(end_lease(failed)),
    }
}

/// Waits until a descriptor for a new connection is free. Returns an idle connection if there is one earlier.
async fn wait_for_descriptor(
    lease: &Lease<Endpoint>,
    exchange: &Exchange,
    until: Instant,
    thread: usize,
) -> Result<Option<Box<MemberConnection>>, Failure> {
    while !descriptors::has_room() {
        if exchange.deadline.is_due() {
            return Err(Failure::TimedOut);
        }
        if Instant::now() >= until {
            return Err(Failure::NoDescriptor(Errno::MFILE));
        }
        descriptors::want();
        sleep(PAUSE).await;
        if let Some(idle) = lease.checkout(thread, is_repeatable(exchange), Instant::now()) {
            return Ok(Some(idle));
        }
    }
    Ok(None)
}

/// Connects. While Hostler has no descriptor or no local port for that, waits for one or for an idle connection, for `connect_timeout` at
/// most.
async fn connect(
    mut lease: Lease<Endpoint>,
    exchange: &Exchange,
    settings: &CallSettings,
    thread: usize,
) -> Result<(Lease<Endpoint>, Box<MemberConnection>), FailedStart> {
    let until = Instant::now() + settings.connect_timeout;
    loop {
        match wait_for_descriptor(&lease, exchange, until, thread).await {
            Ok(None) => {}
            Ok(Some(idle)) => return Ok((lease, idle)),
            Err(failure) => return Err((failure, Some(lease))),
        }
        match connect_once(lease, exchange, settings).await {
            Err((Failure::NoDescriptor(_), Some(again)))
                if !exchange.deadline.is_due() && Instant::now() < until =>
            {
                lease = again;
            }
            connected => return connected,
        }
        sleep(PAUSE).await;
        if let Some(idle) = lease.checkout(thread, is_repeatable(exchange), Instant::now()) {
            return Ok((lease, idle));
        }
    }
}

/// Connects within `connect_timeout` and the request's own deadline. Only the first counts against the member, so the attempt goes on after
/// the second.
async fn connect_once(
    lease: Lease<Endpoint>,
    exchange: &Exchange,
    settings: &CallSettings,
) -> Result<(Lease<Endpoint>, Box<MemberConnection>), FailedStart> {
    let (connector, time_limit) = (lease.connector.clone(), settings.connect_timeout);
    let mut attempt = Box::pin(async move { connector.connect(MemberProtocol::Http1, time_limit).await });
    let connected = poll_fn(|cx| match attempt.as_mut().poll(cx) {
        Poll::Ready(connected) => Poll::Ready(Some(connected)),
        Poll::Pending => exchange.deadline.poll_due(cx).map(|()| None),
    });
    let connected = connected.await;
    match connected {
        Some(Ok(stream)) => {
            note_connected(&lease);
            Ok((lease, Box::new(MemberConnection::new(stream))))
        }
        Some(Err(failure)) => Err((failure, Some(lease))),
        None => {
            go_on(lease, attempt);
            Err((Failure::TimedOut, None))
        }
    }
}

/// True if the member has not got the request, and another one can get it whole. In TLS 1.3 a member rejects our certificate after the
/// handshake: then it has not got the request, but a part of a streamed body is gone.
pub fn may_move(failure: &Failure, exchange: &Exchange) -> bool {
    failure.was_never_sent() && !failure.is_by_hostler() && !exchange.has_lost_body
}

/// True if the request was sent, but may and can be sent again.
pub fn may_repeat(failure: &Failure, exchange: &Exchange) -> bool {
    failure.was_unprocessed() && !exchange.has_lost_body
        || (failure.was_cut_off() || failure.was_marked_down()) && is_repeatable(exchange)
}

/// True if the request may and can be sent again although it may have been worked on.
pub fn is_repeatable(exchange: &Exchange) -> bool {
    (exchange.is_idempotent() || planted!(PostRepeated)) && !matches!(exchange.body, Body::Streaming)
}
