//! Sends one request to one member and reads the answer. Knows no routes, no queue and no retries: it gets a lease and reports how the call
//! went.

mod ask;
mod call;
mod checked;
mod connector;
mod ending;
mod endpoint;
mod health_check;
mod http2;
mod interim;
mod lane;
mod linger;
mod link;
mod meter;
mod request;
mod tls;
mod trusted_fields;
mod tunnel;
mod upload;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use hostler_dispatch::Lease;
use hostler_wire::{CallError, Limits, MemberConnection};
use tokio::time::Instant;

use crate::exchange::{Body, BodyError, Downstream, Exchange};

pub use crate::exchange::Instance;

pub use ask::{WholeAnswer, ask, post};
pub use call::Call;
pub use checked::Checked;
pub use connector::{Connector, MemberProtocol, MemberTls};
pub use ending::{CallEnding, CallRemains};
pub use endpoint::{Endpoint, MemberNews, OnHang, Ours};
pub use health_check::{CheckSettings, Checking};
pub use interim::is_for_our_cache;
pub use meter::{Meter, Spread, Times};
#[cfg(test)]
pub use request::write_head;
pub use request::{goes_on, writes};
pub use tls::TlsFault;
pub use tunnel::{ClientEnd, Ended, MemberEnd, Tunnel};

use ending::end_lease;

/// The settings of a call.
#[derive(Debug, Clone)]
pub struct CallSettings {
    /// The time limit for connecting.
    pub connect_timeout: Duration,
    /// How long a call may go on after its client has left, before its worker counts as hung.
    pub hang_timeout: Duration,
    /// How long a tunnel may be without a byte in either direction.
    pub tunnel_idle_timeout: Duration,
    /// Limits of an answer's head. All interim heads of an answer together have the same limit.
    pub limits: Limits,
    /// How many interim heads an answer may have.
    pub max_interim_answers: usize,
}

/// Why there is no answer. Either the lease has come back, or it stays taken until the member has finished.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No connection could be made. The request was never sent.
    #[error("could not connect: {0}")]
    Unreachable(std::io::Error),
    /// TLS failed. The request was never sent.
    #[error("{0}: {1}")]
    Tls(TlsFault, String),
    /// The member says that it has not processed the request.
    #[error("{0}")]
    Unprocessed(String),
    /// HTTP/2, the member's protocol, cannot express the request.
    #[error("HTTP/2 cannot express the request")]
    Unspeakable,
    /// The connection ended before the first byte of an answer. The request may have been worked on.
    #[error("{0}")]
    Unanswered(CallError),
    /// The connection ended in the middle of an answer, before any of it was passed on.
    #[error("{0}")]
    Broken(CallError),
    /// The answer is not HTTP.
    #[error("{0}")]
    BadAnswer(CallError),
    /// The deadline has passed. The slot stays taken until the member has finished.
    #[error("no answer in time")]
    TimedOut,
    /// The pool gave the member up during the wait. It may have worked on the request.
    #[error("the member does not answer")]
    Forsaken,
    /// The client's side failed while its body was being passed on.
    #[error("{0}")]
    Body(BodyError),
}

impl Failure {
    /// The member got nothing of the request, so any other member may get it.
    pub fn was_never_sent(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Tls(..))
    }

    /// The member got the request, and says that it has not processed it.
    pub fn was_unprocessed(&self) -> bool {
        matches!(self, Self::Unprocessed(_))
    }

    /// The answer was late, and another member may be asked.
    pub fn was_forsaken(&self) -> bool {
        matches!(self, Self::Forsaken)
    }

    /// The member closed the connection without an answer to the request: another may answer it.
    pub fn was_cut_off(&self) -> bool {
        matches!(self, Self::Unanswered(_) | Self::Broken(_))
    }
}

/// Sends the request to the leased member and waits for the head of the answer.
pub async fn forward<D: Downstream>(
    exchange: &mut Exchange,
    client: &mut D,
    lease: Lease<Endpoint>,
    settings: &CallSettings,
    thread: usize,
) -> Result<Box<Call>, Failure> {
    exchange.log_facts.member = Some(lease.label.clone());
    // Few HTTP/2 servers support tunnels, and nearly all of them speak HTTP/1.1 too.
    if lease.connector.protocol == MemberProtocol::Http2 && exchange.offer.is_none() {
        return Box::pin(http2::forward(exchange, client, lease, settings, thread)).await;
    }
    // The slot was granted just now, so its time is the current time.
    let now = lease.since();
    if let Some(idle) = lease.checkout(thread, exchange.is_idempotent(), now) {
        let call = Call::begin(exchange, lease, idle, settings, thread, now);
        match call.head(exchange, client).await {
            // A member that is not a worker of ours may close a kept-alive connection at the moment in which it is reused. That is not the
            // member's failure, so the same lease tries once more on a new connection. A worker of ours never does this; it is dying.
            Err((Failure::Unanswered(_), Some(lease))) if !lease.is_ours() && is_repeatable(exchange) => {
                return Box::pin(on_new_connection(exchange, client, lease, settings, thread)).await;
            }
            outcome => return outcome.map_err(end_lease),
        }
    }
    Box::pin(on_new_connection(exchange, client, lease, settings, thread)).await
}

/// The caller boxes this: most requests find an idle connection and should not carry the room for it.
async fn on_new_connection<D: Downstream>(
    exchange: &mut Exchange,
    client: &mut D,
    lease: Lease<Endpoint>,
    settings: &CallSettings,
    thread: usize,
) -> Result<Box<Call>, Failure> {
    let began = Instant::now();
    exchange.prepares();
    let connected = connect(&lease, exchange, settings).await;
    exchange.timings.connecting += began.elapsed();
    exchange.awaits();
    match connected {
        Ok(connection) => {
            let call = Call::begin(exchange, lease, Box::new(connection), settings, thread, Instant::now());
            call.head(exchange, client).await.map_err(end_lease)
        }
        Err(failure) => Err(end_lease((failure, Some(lease)))),
    }
}

/// Connects within `connect_timeout` and the request's own deadline. Only the first counts against the member.
async fn connect(
    lease: &Lease<Endpoint>,
    exchange: &Exchange,
    settings: &CallSettings,
) -> Result<MemberConnection, Failure> {
    let mut connecting = pin!(lease.connector.connect(MemberProtocol::Http1, settings.connect_timeout));
    poll_fn(|cx| {
        if let Poll::Ready(connected) = connecting.as_mut().poll(cx) {
            return Poll::Ready(connected.map(MemberConnection::new));
        }
        exchange.deadline.poll_due(cx).map(|()| Err(Failure::TimedOut))
    })
    .await
}

/// True if the request was sent, but may and can be sent again.
pub fn may_repeat(failure: &Failure, exchange: &Exchange) -> bool {
    failure.was_unprocessed() && !matches!(exchange.body, Body::Streaming)
        || (failure.was_cut_off() || failure.was_forsaken()) && is_repeatable(exchange)
}

/// True if the request may and can be sent again although it may have been worked on.
pub fn is_repeatable(exchange: &Exchange) -> bool {
    exchange.is_idempotent() && !matches!(exchange.body, Body::Streaming)
}
