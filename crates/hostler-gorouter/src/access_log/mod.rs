//! The access line of an exchange in gorouter's format, from the values of the exchange. Knows no files.

mod line;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

use hostler_engine::exchange::{Exchange, Protocol};
use hostler_engine::journal::LogRules;
use hostler_wire::Name;
use line::AccessLine;
use tokio::time::Instant;

use crate::request::{self, Registered};

/// Writes the line of an exchange.
pub fn write(exchange: &Exchange, out: &mut Vec<u8>, rules: &LogRules) {
    let mut line = values(exchange);
    if let Cow::Owned(redacted) = LogRules::redacted_host(&line.host) {
        line.host = Cow::Owned(redacted);
    }
    if let Cow::Owned(redacted) = rules.redacted_target(&line.target) {
        line.target = Cow::Owned(redacted);
    }
    if let Cow::Owned(redacted) = rules.redacted(&line.referer) {
        line.referer = Cow::Owned(redacted);
    }
    line.write(out);
}

/// The values of the line.
fn values(exchange: &Exchange) -> AccessLine<'_> {
    let Exchange { head, log_facts, timings, .. } = exchange;
    let field = |name| String::from_utf8_lossy(head.fields.first(name).unwrap_or_default());
    let registered = request::registered(exchange);
    let instance = registered.and_then(|registered| registered.instance.as_deref());
    let (app, index, id) = instance.map_or(("", "", ""), |found| (&*found.app, &*found.index, &*found.id));
    let backend = log_facts.member.as_deref().unwrap_or_default();
    let response_time = timings.started.elapsed();
    let times = AccessTimes::of(exchange, registered, Instant::now());
    let was_sent = log_facts.member.is_some();
    AccessLine {
        host: String::from_utf8_lossy(exchange.host()),
        started: began(response_time),
        method: String::from_utf8_lossy(head.method()),
        target: String::from_utf8_lossy(head.target()),
        protocol: protocol(exchange),
        status: log_facts.status,
        bytes_in: log_facts.bytes_in,
        bytes_out: log_facts.bytes_out,
        referer: field(Name::Referer),
        user_agent: field(Name::UserAgent),
        client: client(exchange.peer).to_string(),
        backend,
        x_forwarded_for: request::forwarded_for(exchange, was_sent),
        x_forwarded_proto: request::forwarded_proto(exchange, was_sent),
        vcap_request_id: registered.map_or(exchange.id.as_str(), |registered| registered.id.as_str()),
        response_time,
        gorouter_time: times.own(response_time),
        app_id: app,
        app_index: index,
        instance_id: id,
        failed_attempts: registered.map_or(0, |registered| registered.failed_attempts),
        failed_attempts_time: times.failed,
        // Names are looked up as part of connecting.
        dns_time: times.backend.map(|_| Duration::ZERO),
        dial_time: times.backend.map(|_| timings.connecting),
        tls_time: times.backend.map(|_| Duration::ZERO),
        backend_time: times.backend,
        x_cf_routererror: error(exchange, registered),
    }
}

/// The parts of the response time.
struct AccessTimes {
    failed: Option<Duration>,
    backend: Option<Duration>,
}

impl AccessTimes {
    fn of(exchange: &Exchange, registered: Option<&Registered>, now: Instant) -> Self {
        let Some(registered) = registered else {
            return Self { failed: None, backend: exchange.timings.slot_hold };
        };
        Self {
            failed: (registered.failed_attempts > 0).then_some(registered.failed_time),
            backend: registered.attempted.map(|began| now.saturating_duration_since(began)),
        }
    }

    fn own(&self, all: Duration) -> Duration {
        let others = [self.failed, self.backend].into_iter().flatten().sum();
        all.saturating_sub(others)
    }
}

/// A dual-stack socket shows an IPv4 client as `::ffff:192.0.2.1`, and Go does not.
fn client(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(peer.ip().to_canonical(), peer.port())
}

fn began(response_time: Duration) -> jiff::Timestamp {
    let now = jiff::Timestamp::now();
    now.checked_sub(response_time).unwrap_or(now)
}

fn protocol(exchange: &Exchange) -> &str {
    match exchange.protocol {
        Protocol::Http2 => "HTTP/2.0",
        Protocol::Http1 => exchange.head.version_text(),
    }
}

/// gorouter's error for a request whose client has left.
const CANCELED: &str = "endpoint_failure (context canceled)";

/// The error of the line: what `X-Cf-RouterError` said in a refusal, or would have said to a client that has left. A request that a member
/// answered has none, even if an earlier attempt failed.
fn error<'a>(exchange: &'a Exchange, registered: Option<&'a Registered>) -> &'a str {
    let Some(registered) = registered else {
        return exchange.log_facts.refusal.unwrap_or_default();
    };
    let facts = &exchange.log_facts;
    match &registered.error {
        // An app may answer 499 itself.
        _ if facts.status == 499 && facts.refusal.is_some() && facts.member.is_some() => CANCELED,
        Some(error) if facts.refusal.is_some() => error,
        _ if memchr::memchr(b';', exchange.head.target()).is_some() => "deprecated-semicolon-params",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use hostler_engine::exchange::Sweep;
    use hostler_wire::Limits;

    use super::*;

    #[test]
    fn a_request_whose_client_has_left_has_gorouters_error_if_a_member_got_it() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let mut exchange = Exchange::new(address, address, Sweep::new().deadline());
        exchange.registered = Some(Registered::new(true));
        (exchange.log_facts.status, exchange.log_facts.refusal) = (499, Some("client_left"));
        assert_eq!(values(&exchange).x_cf_routererror, "");
        exchange.log_facts.member = Some("10.0.0.7:3000".into());
        assert_eq!(values(&exchange).x_cf_routererror, "endpoint_failure (context canceled)");
    }

    #[test]
    fn a_request_that_no_member_got_has_the_forwarding_fields_of_a_trusted_client() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let mut exchange = Exchange::new(address, address, Sweep::new().deadline());
        let head = b"GET / HTTP/1.1\r\nX-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\n\r\n";
        exchange.head.parse(head, &Limits::default()).unwrap();
        let logged = |exchange: &Exchange| {
            let line = values(exchange);
            (line.x_forwarded_for, line.x_forwarded_proto.to_owned())
        };
        assert_eq!(logged(&exchange), (String::new(), String::new()));
        for (trusted, compat) in [(true, false), (false, true)] {
            exchange.client.peer_trusted = trusted;
            exchange.registered = Some(Registered::new(compat));
            assert_eq!(logged(&exchange), ("9.9.9.9".to_owned(), "https".to_owned()));
        }
    }

    #[test]
    fn a_member_without_an_instance_id_has_none_in_the_line() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let mut exchange = Exchange::new(address, address, Sweep::new().deadline());
        let mut registered = Registered::new(false);
        registered.instance = Some(Arc::default());
        exchange.registered = Some(registered);
        exchange.log_facts.member = Some("10.0.0.7:3000".into());
        let line = values(&exchange);
        assert_eq!((line.backend, line.instance_id), ("10.0.0.7:3000", ""));
    }

    #[test]
    fn an_ipv4_client_of_a_dual_stack_socket_is_shown_as_go_shows_it() {
        for (peer, shown) in [
            ("[::ffff:192.0.2.7]:4711", "192.0.2.7:4711"),
            ("[2001:db8::7]:4711", "[2001:db8::7]:4711"),
            ("192.0.2.7:4711", "192.0.2.7:4711"),
        ] {
            let exchange =
                Exchange::new(peer.parse().unwrap(), peer.parse().unwrap(), Sweep::new().deadline());
            assert_eq!(values(&exchange).client, shown);
        }
    }

    #[test]
    fn the_time_of_other_hops_does_not_count() {
        let ms = Duration::from_millis;
        let times = AccessTimes { failed: Some(ms(70)), backend: Some(ms(20)) };
        assert_eq!(times.own(ms(100)), ms(10));
        assert_eq!(AccessTimes { failed: None, backend: None }.own(ms(3)), ms(3));
        assert_eq!(times.own(ms(1)), Duration::ZERO, "clocks are read one after another");
    }
}
