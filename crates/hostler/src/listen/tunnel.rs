//! A connection that has become a tunnel: in a task of its own, and written down at its end. Knows not what goes through it.

use std::sync::Arc;
use std::time::Duration;

use hostler_engine::exchange::{Connections, Exchange, OpenTunnel};
use hostler_engine::proxy::{Call, ClientEnd, Ended, Tunnel};
use hostler_wire::ResponseHead;

use super::client::Http1Client;
use super::{Shard, head};

/// Tunnels end so much one after another when they all have to, but all in ...
const APART: Duration = Duration::from_micros(500);
/// ... this time: their clients come back at once, each with a request.
const SPREAD: Duration = Duration::from_secs(2);

/// What a connection has become.
pub(super) struct UpgradedConnection {
    tunnel: Tunnel,
    /// Ended long before the tunnel, but for what is known of it only then.
    exchange: Exchange,
    _counted: OpenTunnel,
}

impl UpgradedConnection {
    /// The member has answered with 101, and the client's end has heard of it in its own protocol.
    pub fn new(shard: &Shard, client: ClientEnd, mut exchange: Exchange, call: Box<Call>) -> Box<Self> {
        // Its times are over; one that is due for ever would be looked at for ever.
        exchange.deadline.forget();
        exchange.body = Default::default();
        let tunnel = Tunnel::new(client, call.switch(&mut exchange));
        Box::new(Self { tunnel, exchange, _counted: OpenTunnel::new(&shard.connections) })
    }

    /// Carries on for as long as it lasts, in a task of its own, which is much smaller than one that serves requests.
    /// What counts it lives as long.
    pub fn go_on(mut self: Box<Self>, shard: Arc<Shard>, count: impl Send + 'static) {
        tokio::spawn(async move {
            let ended = self.tunnel.carry(shard.connections.is_ending(), || delay(&shard.connections)).await;
            self.note(ended);
            shard.settle(&mut self.exchange);
            drop(self);
            drop(count);
        });
    }

    fn note(&mut self, ended: Ended) {
        let log_facts = &mut self.exchange.log_facts;
        let (bytes_in, bytes_out) = self.tunnel.bytes();
        (log_facts.bytes_in, log_facts.bytes_out) = (log_facts.bytes_in + bytes_in, bytes_out);
        match ended {
            Ended::Whole => {}
            Ended::Dismissed => {
                log_facts.detail = Some("the tunnel's worker leaves, or all is ending".into())
            }
            Ended::Idle => log_facts.detail = Some("nothing went through in tunnel_idle_timeout".into()),
            Ended::Client => log_facts.aborted = Some("client"),
            Ended::ClientStalled => log_facts.aborted = Some("client stalled"),
            Ended::Worker => log_facts.aborted = Some("worker"),
            Ended::WorkerStalled => log_facts.aborted = Some("worker stalled"),
        }
    }
}

/// How long one that is told to end stays.
fn delay(connections: &Connections) -> Duration {
    let tunnels = u32::try_from(connections.tunnels()).unwrap_or(u32::MAX);
    SPREAD.min(APART.saturating_mul(tunnels)).mul_f64(fastrand::f64())
}

impl Http1Client {
    /// Leaves HTTP with the member's word for it.
    pub fn switch(mut self, answer: &ResponseHead, exchange: &mut Exchange) -> ClientEnd {
        exchange.log_facts.status = 101;
        head::write_switch(&mut self.outbox, answer, &exchange.to_client);
        self.into_end(exchange.deadline.sweep().deadline())
    }
}
