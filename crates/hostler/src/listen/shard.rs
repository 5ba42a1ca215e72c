//! What the connections of one data-plane thread share, and the origin of one connection. Knows no routes and no members.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use hostler_coding::Allowance;
use hostler_engine::exchange::{ClientConnection, Connections, Exchange, RecentExchanges, Scheme, Sweep};
use hostler_engine::gateway::{Gateway, access_line};
use hostler_engine::journal::{Journal, Level, SeldomLine};
use tokio::time::Instant;

use super::h2::StreamTasks;
use super::settings::Settings;
use crate::traces::Tracer;

/// The log names a flood at most this often: its client may come again at once, and a new connection costs it less than a line costs the log.
const FLOOD_PAUSE: Duration = Duration::from_secs(10);

/// What the connections of one data-plane thread share.
pub struct Shard {
    /// The number of the thread, from 0.
    pub index: usize,
    /// The thread's deadlines.
    pub sweep: Sweep,
    /// The current settings. A connection keeps the settings that it found here when it began.
    pub settings: Arc<ArcSwap<Settings>>,
    /// Answers the requests.
    pub gateway: Arc<Gateway>,
    /// The access log.
    pub journal: Journal,
    /// Exports traces. None if they are off.
    pub tracer: Option<Arc<Tracer>>,
    /// Client connections of all shards.
    pub connections: Arc<Connections>,
    /// Keeps ended exchanges for the live page while one is open.
    pub recent: Arc<RecentExchanges>,
    /// Limits the memory and time for encoding answers.
    pub encoding: Arc<Allowance>,
    /// The tasks that serve HTTP/2 streams.
    pub stream_tasks: Arc<StreamTasks>,
    /// The last line about a flood of HTTP/2 frames.
    pub flood_line: Mutex<SeldomLine>,
}

/// The source of a connection: the facts that all its exchanges have in common.
#[derive(Debug, Clone)]
pub(super) struct ConnectionOrigin {
    /// The client's address, from the socket or from a PROXY header.
    pub peer: SocketAddr,
    /// True if `peer` comes from a PROXY header.
    pub told: bool,
    pub local: SocketAddr,
    pub scheme: Scheme,
    /// The client certificate, in DER.
    pub certificate: Option<Arc<[u8]>>,
    /// Counts the connection for its client, if the connections of clients are limited.
    pub place: Option<Arc<ClientConnection>>,
}

impl ConnectionOrigin {
    /// The origin according to the socket alone.
    pub fn new(peer: SocketAddr, local: SocketAddr) -> Self {
        Self { peer, told: false, local, scheme: Scheme::Http, certificate: None, place: None }
    }

    /// The client as in other lines of the log. A dual-stack socket shows an IPv4 client as `::ffff:192.0.2.1`.
    fn client(&self) -> SocketAddr {
        SocketAddr::new(self.peer.ip().to_canonical(), self.peer.port())
    }

    /// Whether it began with a TLS handshake.
    pub fn is_tls(&self) -> bool {
        self.scheme == Scheme::Https
    }

    /// An exchange for the first request of the connection.
    pub fn exchange(&self, sweep: &Sweep) -> Exchange {
        let mut exchange = Exchange::new(self.peer, self.local, sweep.deadline());
        exchange.peer_was_told = self.told;
        exchange.scheme = self.scheme;
        exchange.certificate.clone_from(&self.certificate);
        exchange.place.clone_from(&self.place);
        exchange
    }
}

impl Shard {
    /// Whether a connection ends with its current request: all do, or other client certificates are accepted than at its TLS handshake.
    pub(super) fn ends(&self, settings: &Settings, is_tls: bool) -> bool {
        self.connections.is_ending() || is_tls && settings.are_outdated()
    }

    /// Whether a connection ends if it is idle.
    pub(super) fn ends_idle(&self, settings: &Settings, is_tls: bool) -> bool {
        self.connections.is_draining() || is_tls && settings.are_outdated()
    }

    /// Counts a connection that is closed because of a flood of frames.
    pub(super) fn note_flood(&self, origin: &ConnectionOrigin, flood: &impl Display) {
        self.connections.count_flood();
        let mut line = self.flood_line.lock().unwrap_or_else(PoisonError::into_inner);
        if line.is_due(FLOOD_PAUSE, Instant::now()) {
            drop(line);
            let text = format!("HTTP/2 connection from {} closed: {flood}", origin.client());
            self.journal.event(Level::Warn, &text);
        }
    }

    /// Finds the trace of a request that begins.
    pub(super) fn trace(&self, exchange: &mut Exchange) {
        if let Some(tracer) = &self.tracer {
            tracer.begin(exchange);
        }
    }

    /// Counts an exchange that has ended, and writes its lines in the logs.
    pub(super) fn settle(&self, exchange: &mut Exchange) {
        exchange.under_way = None;
        self.connections.cut.count(exchange.log_facts.aborted);
        // A kept-alive connection keeps its exchange, and its next request may come much later.
        exchange.body = Default::default();
        self.recent.note(self.index, exchange);
        self.gateway.settle(exchange);
        if exchange.is_health_check && !self.settings.load().log_health_checks {
            return;
        }
        if let Some(tracer) = &self.tracer {
            tracer.settle(exchange);
        }
        self.journal.access(|| access_line(exchange));
        if let Some(write) = self.gateway.access_format {
            let level = Level::of_status(exchange.log_facts.status);
            self.journal.line(level, |out, rules| write(exchange, out, rules));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_client_of_a_dual_stack_socket_has_its_own_address_in_the_log() {
        for (peer, shown) in [
            ("[::ffff:192.0.2.1]:4000", "192.0.2.1:4000"),
            ("192.0.2.1:4000", "192.0.2.1:4000"),
            ("[2001:db8::1]:4000", "[2001:db8::1]:4000"),
        ] {
            let origin = ConnectionOrigin::new(peer.parse().unwrap(), ([127, 0, 0, 1], 80).into());
            assert_eq!(origin.client().to_string(), shown);
        }
    }
}
