//! One request to one member, and its answer. Knows no routes, no queue and no retries: it gets a lease and says how it went.

mod ask;
mod call;
mod checked;
mod connector;
mod ending;
mod endpoint;
mod health_check;
mod hearsay;
mod http2;
mod interim;
mod lane;
mod linger;
mod link;
mod meter;
mod request;
mod tls;
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

/// What a call needs besides the exchange.
#[derive(Debug, Clone)]
pub struct CallSettings {
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a call that nobody waits for any more may go on before its worker counts as hung.
    pub hang_timeout: Duration,
    /// How long a tunnel may be without a byte in either direction.
    pub tunnel_idle_timeout: Duration,
    /// How large an answer's head may be; all interim heads of an answer together may be as large.
    pub limits: Limits,
    /// How many interim heads an answer may have.
    pub max_interim_answers: usize,
}

/// Why there is no answer. The lease is back, or it goes on alone until the member has finished.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No connection could be made: the request was never sent.
    #[error("could not connect: {0}")]
    Unreachable(std::io::Error),
    /// A connection, but not one over which the member may be told anything: the request was never sent.
    #[error("{0}: {1}")]
    Tls(TlsFault, String),
    /// The member has said that it has not looked at the request.
    #[error("{0}")]
    Unprocessed(String),
    /// The member's protocol has no way to say what the request says.
    #[error("the request cannot be said in HTTP/2")]
    Unspeakable,
    /// The connection ended without a byte of an answer: the request may have been worked on.
    #[error("{0}")]
    Unanswered(CallError),
    /// The connection ended in the middle of an answer of which nothing was passed on.
    #[error("{0}")]
    Broken(CallError),
    /// What came is not HTTP.
    #[error("{0}")]
    BadAnswer(CallError),
    /// The deadline came first; the slot stays taken until the member has finished.
    #[error("no answer in time")]
    TimedOut,
    /// The member has been given up while it was waited for; it may have worked on the request.
    #[error("the member does not answer")]
    Forsaken,
    /// The client's side failed while its body was being passed on.
    #[error("{0}")]
    Body(BodyError),
}

impl Failure {
    /// The member has seen nothing of the request, which may be sent to any other.
    pub fn was_never_sent(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Tls(..))
    }

    /// The member has seen the request, and left it alone.
    pub fn was_unprocessed(&self) -> bool {
        matches!(self, Self::Unprocessed(_))
    }

    /// Its answer was late, and others may have one.
    pub fn was_forsaken(&self) -> bool {
        matches!(self, Self::Forsaken)
    }

    /// The member hung up without a word against the request: another may answer it.
    pub fn was_cut_off(&self) -> bool {
        matches!(self, Self::Unanswered(_) | Self::Broken(_))
    }
}

/// Sends the request to the leased member and waits for the head of its answer.
pub async fn forward<D: Downstream>(
    exchange: &mut Exchange,
    client: &mut D,
    lease: Lease<Endpoint>,
    settings: &CallSettings,
    thread: usize,
) -> Result<Box<Call>, Failure> {
    exchange.log_facts.member = Some(lease.label.clone());
    // Few of those who speak HTTP/2 know tunnels in it; nearly all speak HTTP/1.1 beside it.
    if lease.connector.protocol == MemberProtocol::Http2 && exchange.offer.is_none() {
        return Box::pin(http2::forward(exchange, client, lease, settings, thread)).await;
    }
    // The slot has been given just now: the clock need not be read again.
    let now = lease.since();
    if let Some(idle) = lease.checkout(thread, exchange.is_idempotent(), now) {
        let call = Call::begin(exchange, lease, idle, settings, thread, now);
        match call.head(exchange, client).await {
            // Members of others may close a kept-alive connection in the moment in which it is used again. That is no word
            // on the member: the same lease tries once more, on a new connection. A worker of ours never does; it is dying.
            Err((Failure::Unanswered(_), Some(lease))) if !lease.is_ours() && is_repeatable(exchange) => {
                return Box::pin(on_new_connection(exchange, client, lease, settings, thread)).await;
            }
            outcome => return outcome.map_err(end_lease),
        }
    }
    Box::pin(on_new_connection(exchange, client, lease, settings, thread)).await
}

/// Boxed where it is called: most requests find a connection, and need not carry the room for it.
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

/// Connects, in `connect_timeout` and before the request's own deadline; only the first is the member's fault.
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

/// True when the request, though it was sent, may be sent again, and can be.
pub fn may_repeat(failure: &Failure, exchange: &Exchange) -> bool {
    failure.was_unprocessed() && !matches!(exchange.body, Body::Streaming)
        || (failure.was_cut_off() || failure.was_forsaken()) && is_repeatable(exchange)
}

/// True when the request, though it may have been worked on, may be sent again, and can be.
pub fn is_repeatable(exchange: &Exchange) -> bool {
    exchange.is_idempotent() && !matches!(exchange.body, Body::Streaming)
}
