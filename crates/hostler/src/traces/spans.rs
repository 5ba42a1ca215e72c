//! The spans of a request, made from the facts that the access log has. Knows no collector.

use std::time::Duration;

use hostler_engine::exchange::trace::{CacheStep, span_id, trace_state_of};
use hostler_engine::exchange::{
    Exchange, LogFacts, OTHER_METHOD, Protocol, TraceContext, clock, known_method,
};
use hostler_engine::journal::LogRules;
use hostler_wire::Version;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use tokio::time::Instant;

/// The W3C flags of a span: sampled, and it is known whether the parent is another program's.
const FLAGS: u32 = 0x101;
const PARENT_IS_REMOTE: u32 = 0x200;
/// The most bytes of a text that a client has chosen. Heads may have 64 KiB, 1280 requests wait while the collector is slow, and collectors
/// refuse large messages: the spans of other requests would be lost with it.
const MOST_TEXT: usize = 2048;

/// An attribute with a text.
pub fn text(key: &str, value: impl Into<String>) -> KeyValue {
    attribute(key, Value::StringValue(value.into()))
}

fn number(key: &str, value: impl Into<i64>) -> KeyValue {
    attribute(key, Value::IntValue(value.into()))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// The span of the request first, then those of cache, queue, slot and worker as far as the request has got.
pub fn of(exchange: &Exchange, context: &TraceContext) -> Vec<Span> {
    let tree = SpanTree { exchange, context, times: SpanTimes::now(exchange), state: trace_state(exchange) };
    let mut spans = Vec::with_capacity(5);
    spans.push(tree.server());
    tree.cache(&mut spans);
    tree.pool(&mut spans);
    spans
}

/// What all spans of a request are made from.
struct SpanTree<'a> {
    exchange: &'a Exchange,
    context: &'a TraceContext,
    times: SpanTimes,
    /// Of a trace that is continued.
    state: String,
}

impl SpanTree<'_> {
    fn span(&self, name: &str, kind: SpanKind, id: [u8; 8], (from, to): (Instant, Instant)) -> Span {
        Span {
            trace_id: self.context.trace_id.to_vec(),
            span_id: id.to_vec(),
            trace_state: self.state.clone(),
            name: name.into(),
            kind: kind as i32,
            start_time_unix_nano: self.times.unix(from),
            end_time_unix_nano: self.times.unix(to.max(from)),
            flags: FLAGS,
            ..Span::default()
        }
    }

    fn child(&self, name: &str, kind: SpanKind, parent: &[u8], during: (Instant, Instant)) -> Span {
        Span { parent_span_id: parent.to_vec(), ..self.span(name, kind, span_id(), during) }
    }

    fn server(&self) -> Span {
        let during = (self.times.started, self.times.end);
        let mut server = self.span(&name(self.exchange), SpanKind::Server, self.context.server_span, during);
        if let Some(parent) = self.context.parent {
            server.parent_span_id = parent.to_vec();
            server.flags |= PARENT_IS_REMOTE;
        }
        server.attributes = server_attributes(self.exchange);
        let facts = &self.exchange.log_facts;
        server.status = (facts.status >= 500 || facts.aborted.is_some()).then(error);
        server
    }

    /// From the question to the cache until the answer is found, or until it is clear that a member must be asked.
    fn cache(&self, spans: &mut Vec<Span>) {
        let at = |step| self.context.cache.of(step).map(|during| self.times.inside(during));
        let Some(during) = at(CacheStep::Whole) else { return };
        let mut cache = self.child("cache", SpanKind::Internal, &self.context.server_span, during);
        let facts = &self.exchange.log_facts;
        cache.attributes.extend(facts.cached().map(|result| text("hostler.cache", result)));
        let age = facts.age.and_then(|age| i64::try_from(age).ok());
        cache.attributes.extend(age.map(|age| number("hostler.cache_age", age)));
        let below = |name, kind, step| Some(self.child(name, kind, &cache.span_id, at(step)?));
        let flight = below("cache wait", SpanKind::Internal, CacheStep::Flight);
        let mut memcached = below("memcached", SpanKind::Client, CacheStep::Memcached);
        memcached.iter_mut().for_each(|span| span.attributes.push(text("db.system.name", "memcached")));
        spans.push(cache);
        spans.extend(flight.into_iter().chain(memcached));
    }

    /// The spans of queue, slot and worker.
    fn pool(&self, spans: &mut Vec<Span>) {
        let (exchange, times, server) = (self.exchange, &self.times, &self.context.server_span);
        let pool = || exchange.log_facts.pool.as_deref().map(|pool| text("hostler.pool", pool));
        if let Some(length) = exchange.log_facts.queue_length {
            let mut queue = self.child("queue", SpanKind::Internal, server, times.queue(exchange));
            queue.attributes.push(number("hostler.queue_length", i64::try_from(length).unwrap_or(i64::MAX)));
            queue.attributes.extend(pool());
            spans.push(queue);
        }
        if let Some(during) = times.slot(exchange) {
            let mut slot = self.child("slot", SpanKind::Internal, server, during);
            slot.attributes.extend(pool());
            let during = times.worker(exchange, during);
            let mut worker = self.child(method(exchange), SpanKind::Client, &slot.span_id, during);
            worker.span_id = self.context.client_span.to_vec();
            worker.attributes = worker_attributes(exchange);
            worker.status = worker_error(&exchange.log_facts).map(|_| error());
            spans.extend([slot, worker]);
        }
    }
}

/// The facts give times by the clock that never jumps; spans need the time of day.
struct SpanTimes {
    started: Instant,
    end: Instant,
    end_unix: u64,
}

impl SpanTimes {
    fn now(exchange: &Exchange) -> Self {
        let end_unix = u64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or_default();
        let started = exchange.timings.started;
        Self { started, end: clock::now().max(Instant::now()).max(started), end_unix }
    }

    fn unix(&self, at: Instant) -> u64 {
        let before = self.end.saturating_duration_since(at).as_nanos();
        self.end_unix.saturating_sub(u64::try_from(before).unwrap_or(u64::MAX))
    }

    /// Times by the exact clock, kept between the begin and the end of the request.
    fn inside(&self, (from, to): (Instant, Instant)) -> (Instant, Instant) {
        (from.clamp(self.started, self.end), to.clamp(self.started, self.end))
    }

    /// All waits as one. It ends where the last slot begins, or with a last wait that has brought none.
    fn queue(&self, exchange: &Exchange) -> (Instant, Instant) {
        let until = exchange.timings.vain_wait.map(|(_, until)| until);
        let to = until.or(exchange.timings.slot_since).unwrap_or(self.end);
        let from = to.checked_sub(exchange.timings.queue_wait).unwrap_or(self.started);
        (from.max(self.started), to)
    }

    /// The last slot. It may end after the client has left, and a slot that is still held has no end yet. That of a failed try was over when
    /// the request waited again.
    fn slot(&self, exchange: &Exchange) -> Option<(Instant, Instant)> {
        let since = exchange.timings.slot_since?;
        let waited_again = exchange.timings.vain_wait.map(|(from, _)| from);
        let to = exchange.timings.slot_hold.map(|hold| since + hold).or(waited_again).unwrap_or(self.end);
        Some((since, to.min(self.end)))
    }

    /// From the first byte to the worker until the head of its answer.
    fn worker(&self, exchange: &Exchange, (since, to): (Instant, Instant)) -> (Instant, Instant) {
        let connecting =
            if exchange.log_facts.attempts > 1 { Duration::ZERO } else { exchange.timings.connecting };
        let from = (since + connecting).min(to);
        (from, exchange.timings.worker_time.map_or(to, |time| (from + time).min(self.end)))
    }
}

fn name(exchange: &Exchange) -> String {
    match &exchange.log_facts.route {
        Some(route) => format!("{} {route}", method(exchange)),
        None => method(exchange).into(),
    }
}

fn method(exchange: &Exchange) -> &'static str {
    known_method(exchange.head.method()).unwrap_or("HTTP")
}

fn server_attributes(exchange: &Exchange) -> Vec<KeyValue> {
    let facts = &exchange.log_facts;
    // Clipped when the secrets are out: the `@` that makes a text a password may be far behind it.
    let (path, host) = (String::from_utf8_lossy(exchange.path()), String::from_utf8_lossy(exchange.host()));
    let (path, host) = (LogRules::default().redacted_target(&path), LogRules::redacted_host(&host));
    let version = match (exchange.protocol, exchange.head.version) {
        (Protocol::Http2, _) => "2",
        (_, Version::Http10) => "1.0",
        (_, Version::Http11) => "1.1",
    };
    let mut list: Vec<_> = request_method(exchange).collect();
    // Without the query: secrets are there.
    list.extend([
        text("url.path", clipped(&path)),
        text("url.scheme", exchange.scheme.as_str()),
        text("client.address", exchange.client.ip.to_string()),
        text("network.protocol.version", version),
        text("hostler.request_id", exchange.id.as_str()),
    ]);
    let (address, port) = server(clipped(&host));
    list.extend(address);
    list.extend(port);
    let some = |key, value: Option<&str>| value.map(|value| text(key, value));
    list.extend(some("http.route", facts.route.as_deref()));
    list.extend(some("hostler.pool", facts.pool.as_deref()));
    list.extend(some("hostler.refusal", facts.refusal));
    list.extend(some("hostler.cache", facts.cached()));
    list.extend(some("hostler.aborted", facts.aborted));
    list.extend((facts.status > 0).then(|| status_code(facts.status)));
    list.extend(server_error(facts).map(|kind| text("error.type", kind)));
    list
}

/// Host and port apart, as the semantic conventions ask: an IPv6 address without brackets.
fn server(authority: &str) -> (Option<KeyValue>, Option<KeyValue>) {
    let (host, port) = match authority.rsplit_once(':') {
        // A path of a Unix socket and an IPv6 address without a port may have a colon, too.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse::<u16>() {
            Ok(port) => (host, Some(port)),
            Err(_) => (authority, None),
        },
        _ => (authority, None),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let address = (!host.is_empty()).then(|| text("server.address", host));
    (address, port.map(|port| number("server.port", port)))
}

fn worker_attributes(exchange: &Exchange) -> Vec<KeyValue> {
    let facts = &exchange.log_facts;
    let mut list: Vec<_> = request_method(exchange).collect();
    // Of a worker the member is its number, which is no address.
    let member = facts.member.as_deref().filter(|member| member.contains([':', '/', '.']));
    if let Some((address, port)) = member.map(server) {
        list.extend(address);
        list.extend(port);
    }
    if facts.attempts > 1 {
        list.push(number("http.request.resend_count", facts.attempts - 1));
    }
    list.extend(facts.member_status.map(status_code));
    list.extend(worker_error(facts).map(|kind| text("error.type", kind)));
    list
}

/// A method that the semantic conventions do not know is `_OTHER`. As the client has written it, it is in an attribute of its own.
fn request_method(exchange: &Exchange) -> impl Iterator<Item = KeyValue> {
    let written = String::from_utf8_lossy(exchange.head.method());
    let known = known_method(exchange.head.method());
    let is_other = known.is_none() && !written.is_empty();
    let original = is_other.then(|| text("http.request.method_original", clipped(&written)));
    [text("http.request.method", known.unwrap_or(OTHER_METHOD))].into_iter().chain(original)
}

fn status_code(status: u16) -> KeyValue {
    number("http.response.status_code", status)
}

/// The kind of the error of the request. By the semantic conventions a server's span is an error for 5xx only.
fn server_error(facts: &LogFacts) -> Option<String> {
    let word = facts.refusal.or(facts.aborted).map(str::to_owned);
    word.or_else(|| (facts.status >= 500).then(|| facts.status.to_string()))
}

/// The kind of the error of the call. The client may have got another answer than the worker's: a stored one, a fallback or a refusal. By
/// the semantic conventions a client's span is an error for 4xx, too, and `_OTHER` is an error without a name.
fn worker_error(facts: &LogFacts) -> Option<String> {
    match (facts.refusal.or(facts.aborted), facts.member_status) {
        (Some(word), _) => Some(word.into()),
        (None, Some(status)) => (status >= 400).then(|| status.to_string()),
        (None, None) => Some("_OTHER".into()),
    }
}

fn error() -> Status {
    Status { code: StatusCode::Error as i32, message: String::new() }
}

/// The beginning of a text, so that the spans of a request stay small.
fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_TEXT)]
}

/// Empty if the trace begins here, or if the state is long. The worker gets a long one, too. Each span would have a copy of it.
fn trace_state(exchange: &Exchange) -> String {
    if exchange.trace.as_ref().is_none_or(|trace| trace.parent.is_none()) {
        return String::new();
    }
    trace_state_of(&exchange.head.fields).filter(|state| state.len() <= MOST_TEXT).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use hostler_engine::exchange::Sweep;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_slot_ends_when_its_request_waits_for_another_one() {
        let address = ([127, 0, 0, 1], 80).into();
        let mut exchange = Exchange::new(address, address, Sweep::new().deadline());
        let at = |millis| exchange.timings.started + Duration::from_millis(millis);
        let (since, waited) = (at(10), (at(50), at(250)));
        exchange.log_facts.queue_length = Some(0);
        (exchange.timings.slot_since, exchange.timings.vain_wait) = (Some(since), Some(waited));
        exchange.timings.queue_wait = Duration::from_millis(210);
        advance(Duration::from_millis(260)).await;
        let context = TraceContext::of(&exchange.head.fields, 1, true);
        let spans = of(&exchange, &context);
        let millis = |nanos: u64| (nanos - spans[0].start_time_unix_nano) / 1_000_000;
        let times: Vec<_> = spans
            .iter()
            .map(|span| (millis(span.start_time_unix_nano), millis(span.end_time_unix_nano)))
            .collect();
        assert_eq!(times, [(0, 260), (40, 250), (10, 50), (10, 50)], "request, queue, slot, worker");
    }

    #[test]
    fn host_and_port_are_apart() {
        for (authority, address, port) in [
            ("shop.example", Some("shop.example"), None),
            ("shop.example:8080", Some("shop.example"), Some(8080)),
            ("[2001:db8::1]:443", Some("2001:db8::1"), Some(443)),
            ("[2001:db8::1]", Some("2001:db8::1"), None),
            ("2001:db8::1", Some("2001:db8::1"), None),
            ("/run/app.sock", Some("/run/app.sock"), None),
            ("shop.example:", Some("shop.example:"), None),
            ("", None, None),
        ] {
            let expected = (
                address.map(|address| text("server.address", address)),
                port.map(|port: i64| number("server.port", port)),
            );
            assert_eq!(server(authority), expected, "{authority}");
        }
    }
}
