//! A connection that has become a tunnel: runs in a task of its own, and is logged at its end. Does not know what the bytes mean.

use std::sync::Arc;
use std::time::Duration;

use hostler_engine::exchange::{Connections, Exchange, OpenTunnel};
use hostler_engine::gateway::log_name;
use hostler_engine::proxy::{CallBox, ClientEnd, Ended, Tunnel};
use hostler_wire::ResponseHead;

use super::client::Http1Client;
use super::head;
use super::shard::Shard;
use super::unsettled::Unsettled;

/// The average time between the ends of two tunnels or streams when all must end, because their clients reconnect at once.
const MEAN_INTERVAL: Duration = Duration::from_micros(500);
/// The time in which all have ended.
const LONGEST_DELAY: Duration = Duration::from_secs(2);

/// A tunnel with the exchange that it began as.
pub(super) struct UpgradedConnection {
    tunnel: Tunnel,
    /// The exchange, to be logged when the tunnel has ended.
    exchange: Exchange,
    _counted: OpenTunnel,
}

impl UpgradedConnection {
    /// A tunnel after the member's 101. The client has been told in its own protocol.
    pub fn new(shard: &Shard, client: ClientEnd, mut exchange: Exchange, call: CallBox) -> Box<Self> {
        // The exchange's deadline no longer counts, and the sweep need not check it.
        exchange.deadline.forget();
        exchange.body = Default::default();
        exchange.trailers = None;
        // The log needs the head at the end. Its buffer may be too large, because a longer head has used it before.
        exchange.head.fields.shrink_to_fit();
        let mut tunnel = Tunnel::new(client, call.switch(&mut exchange));
        tunnel.name(|| log_name(&exchange, &shard.journal));
        Box::new(Self { tunnel, exchange, _counted: OpenTunnel::new(&shard.connections) })
    }

    /// Runs the tunnel in a task of its own, which is much smaller than a task that serves requests. `count` is dropped at its end.
    pub fn spawn(mut self: Box<Self>, shard: Arc<Shard>, count: impl Send + 'static) {
        tokio::spawn(async move {
            let Self { tunnel, exchange, _counted } = &mut *self;
            let unsettled = Unsettled::new(&shard, exchange);
            let counted = CountedTunnel { tunnel, exchange: &mut *unsettled.exchange };
            let ended =
                counted.tunnel.carry(shard.connections.is_ending(), || delay(&shard.connections)).await;
            note(ended, counted.exchange);
            drop(counted);
            unsettled.settle();
            drop(self);
            drop(count);
        });
    }
}

/// A tunnel that is carried. Its bytes are noted at its end, also if its task is dropped because Hostler stops.
struct CountedTunnel<'a> {
    tunnel: &'a mut Tunnel,
    exchange: &'a mut Exchange,
}

impl Drop for CountedTunnel<'_> {
    fn drop(&mut self) {
        let log_facts = &mut self.exchange.log_facts;
        let (bytes_in, bytes_out) = self.tunnel.bytes();
        (log_facts.bytes_in, log_facts.bytes_out) = (log_facts.bytes_in + bytes_in, bytes_out);
    }
}

fn note(ended: Ended, exchange: &mut Exchange) {
    let log_facts = &mut exchange.log_facts;
    match ended {
        Ended::Whole => {}
        Ended::Dismissed => {
            log_facts.detail = Some("the tunnel's worker leaves its pool, or Hostler stops".into())
        }
        Ended::Idle => {
            log_facts.detail = Some("client and worker sent no byte for tunnel_idle_timeout".into())
        }
        Ended::Client | Ended::ClientFirst => log_facts.aborted = Some("client"),
        Ended::ClientStalled => log_facts.aborted = Some("client stalled"),
        Ended::Worker => log_facts.aborted = Some("worker"),
        Ended::WorkerStalled => log_facts.aborted = Some("worker stalled"),
    }
}

/// How long a tunnel or a stream waits before it ends when all must end.
pub(super) fn delay(connections: &Connections) -> Duration {
    let all = u32::try_from(connections.tunnels() + connections.streams()).unwrap_or(u32::MAX);
    LONGEST_DELAY.min(MEAN_INTERVAL.saturating_mul(all)).mul_f64(fastrand::f64())
}

impl Http1Client {
    /// Answers with the member's 101 and leaves HTTP.
    pub fn switch(mut self, answer: &ResponseHead, exchange: &mut Exchange) -> ClientEnd {
        exchange.log_facts.status = 101;
        head::write_switch(&mut self.outbox, answer, &exchange.to_client);
        self.into_end(exchange.deadline.sweep().deadline())
    }
}
