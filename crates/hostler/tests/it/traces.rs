//! Traces: contexts that are continued or begun, the spans that a collector gets, and a collector that is down.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::{Router, routing::post};
use hostler_testkit::{Site, eventually, text, upstream};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::{TcpListener, TcpSocket};

use crate::http2::{get, talk};
use crate::in_front_of;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// Receives OTLP over HTTP, and decodes it with the types of the OpenTelemetry project.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    fn serve(&self, listener: TcpListener) -> tokio::task::JoinHandle<()> {
        let spans = self.spans.clone();
        let take = move |headers: HeaderMap, body: Bytes| async move {
            assert_eq!(headers["content-type"], "application/x-protobuf");
            let Ok(request) = ExportTraceServiceRequest::decode(body) else { return StatusCode::BAD_REQUEST };
            let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
            spans.lock().unwrap().extend(scopes.flat_map(|scope| scope.spans));
            StatusCode::OK
        };
        let app = Router::new().route("/v1/traces", post(take));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() })
    }

    async fn start() -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let collector = Self::default();
        collector.serve(listener);
        (collector, address)
    }

    /// The spans of the request with this path, its own span first.
    async fn of(&self, path: &str) -> Vec<Span> {
        eventually("the spans of the request arrive", async || {
            let all = self.spans.lock().unwrap();
            let server = all.iter().find(|span| attribute(span, "url.path").as_deref() == Some(path))?;
            Some(all.iter().filter(|span| span.trace_id == server.trace_id).cloned().collect())
        })
        .await
    }

    fn paths(&self) -> Vec<String> {
        self.spans.lock().unwrap().iter().filter_map(|span| attribute(span, "url.path")).collect()
    }
}

fn attribute(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.clone()?.value? {
        Value::StringValue(text) => Some(text),
        Value::IntValue(number) => Some(number.to_string()),
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn get_with(site: &Site, target: &str, fields: &str) {
    let mut client = site.connect().await;
    client.send(format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n")).await;
    client.answer().await;
}

#[tokio::test]
async fn a_continued_trace_has_spans_for_request_queue_slot_and_worker() {
    let (collector, address) = Collector::start().await;
    let app = upstream().start().await;
    let site = in_front_of(&app, &format!("traces.endpoint = 'http://{address}'\ntraces.sample = 0")).await;
    let fields = format!("traceparent: 00-{TRACE}-{PARENT}-01\r\ntracestate: a=1\r\n");
    get_with(&site, "/x?token=secret", &fields).await;

    let spans = collector.of("/x").await;
    let names: Vec<_> = spans.iter().map(|span| (span.name.as_str(), span.kind)).collect();
    assert_eq!(names, [("GET *", 2), ("queue", 1), ("slot", 1), ("GET", 3)]);
    let [server, queue, slot, worker] = &spans[..] else { unreachable!() };
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE && span.trace_state == "a=1"));
    assert_eq!(hex(&server.parent_span_id), PARENT);
    assert_eq!((&queue.parent_span_id, &slot.parent_span_id), (&server.span_id, &server.span_id));
    assert_eq!(worker.parent_span_id, slot.span_id);
    for span in &spans {
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
        assert!(server.start_time_unix_nano <= span.start_time_unix_nano, "{span:?}");
        assert!(span.end_time_unix_nano <= server.end_time_unix_nano, "{span:?}");
    }
    assert!(queue.end_time_unix_nano <= worker.start_time_unix_nano);
    let get = |key| attribute(server, key).unwrap_or_default();
    let told = ["http.request.method", "http.response.status_code", "server.address", "http.route"].map(get);
    assert_eq!(told, ["GET", "200", "shop.example", "*"]);
    assert!(!format!("{spans:?}").contains("secret"));

    let seen = &app.requests()[0];
    let told = format!("00-{TRACE}-{}-01", hex(&worker.span_id));
    assert_eq!((seen.field("traceparent"), seen.field("tracestate").as_deref()), (Some(told), Some("a=1")));
    assert_eq!(site.access("/x?token=[redacted]").await["trace_id"], TRACE);
}

#[tokio::test]
async fn an_invalid_context_begins_a_new_trace_without_the_clients_state() {
    let (collector, address) = Collector::start().await;
    let app = upstream().start().await;
    let site = in_front_of(&app, &format!("traces.endpoint = 'http://{address}'\ntraces.sample = 1")).await;
    get_with(&site, "/x", &format!("traceparent: 00-{}-{PARENT}-01\r\ntracestate: a=1\r\n", "0".repeat(32)))
        .await;
    let spans = collector.of("/x").await;
    assert_eq!((spans[0].parent_span_id.len(), spans[0].trace_state.as_str()), (0, ""));
    let seen = &app.requests()[0];
    assert_eq!(seen.field("tracestate"), None);
    assert!(seen.field("traceparent").unwrap().contains(&hex(&spans[0].trace_id)));
}

#[tokio::test]
async fn without_sampling_only_refusals_and_slow_requests_are_exported() {
    let (collector, address) = Collector::start().await;
    let app = upstream().start().await;
    let config = format!("traces.endpoint = 'http://{address}'\ntraces.sample = 0\nserver.max_body_size = 3");
    let site = in_front_of(&app, &config).await;
    site.get("/ordinary").await.assert_ok("ok");
    site.post("/refused", "long").await.assert_refused(413, "body_too_large");
    let spans = collector.of("/refused").await;
    assert_eq!(attribute(&spans[0], "error.type").as_deref(), Some("body_too_large"));
    assert_eq!(spans.len(), 1, "the request did not get to a pool");
    assert_eq!(collector.paths(), ["/refused"]);

    let slow = in_front_of(&app, &format!("{config}\ntraces.slow = '0s'")).await;
    slow.get("/slow").await.assert_ok("ok");
    assert_eq!(collector.of("/slow").await.len(), 4);
}

#[tokio::test]
async fn a_collector_that_is_down_holds_up_no_request_and_gets_the_spans_later() {
    // Bound and not listening: it refuses connections, and keeps the port from others.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let app = upstream().start().await;
    let site = in_front_of(&app, &format!("traces.endpoint = 'http://{address}'\ntraces.sample = 1")).await;
    for _ in 0..1500 {
        site.get("/early").await.assert_ok("ok");
    }
    site.says("takes no spans").await;
    assert!(site.status().await["traces"]["dropped"].as_u64().unwrap() > 0);

    let collector = Collector::default();
    collector.serve(socket.listen(16).unwrap());
    site.says("takes spans again").await;
    let told = |what: &str| site.lines().iter().filter(|line| line.contains(what)).count();
    assert_eq!((told("takes no spans"), told("takes spans again")), (1, 1));
    assert!(collector.of("/early").await.len() >= 4);
    assert!(site.status().await["traces"]["exported"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn without_an_endpoint_the_clients_context_goes_on_unchanged() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let given = "traceparent: anything\r\ntracestate: a=1\r\n";
    get_with(&site, "/x", given).await;
    let seen = &app.requests()[0];
    assert_eq!(
        (seen.field("traceparent").as_deref(), seen.field("tracestate").as_deref()),
        (Some("anything"), Some("a=1"))
    );
    assert!(site.access("/x").await["trace_id"].is_null());
    assert!(site.status().await["traces"].is_null());
}

#[tokio::test]
async fn what_is_left_is_sent_when_hostler_stops() {
    let (collector, address) = Collector::start().await;
    let app = upstream().script(|_| text("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")).start().await;
    let mut site =
        in_front_of(&app, &format!("traces.endpoint = 'http://{address}'\ntraces.sample = 1")).await;
    site.get("/last").await;
    site.terminate();
    assert_eq!(site.exit().await, 0);
    assert_eq!(collector.paths(), ["/last"]);
}

#[tokio::test]
async fn an_http2_request_has_a_trace_of_its_own() {
    let (collector, address) = Collector::start().await;
    let app = upstream().start().await;
    let site = in_front_of(&app, &format!("traces.endpoint = 'http://{address}'\ntraces.sample = 1")).await;
    let mut client = talk(&site).await;
    client.ask(get("/first")).await;
    client.ask(get("/second")).await;
    let (first, second) = (collector.of("/first").await, collector.of("/second").await);
    assert_ne!(first[0].trace_id, second[0].trace_id);
    assert_eq!(attribute(&first[0], "network.protocol.version").as_deref(), Some("2"));
    assert!(app.requests()[0].field("traceparent").unwrap().contains(&hex(&first[3].span_id)));
}

#[tokio::test]
async fn a_websocket_has_a_trace_that_ends_with_it() {
    let (collector, address) = Collector::start().await;
    let app = upstream()
        .script(|_| {
            text(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                  Sec-WebSocket-Accept: xyz\r\n\r\n",
            )
        })
        .start()
        .await;
    let site = in_front_of(&app, &format!("traces.endpoint = 'http://{address}'\ntraces.sample = 1")).await;
    let mut client = site.connect().await;
    let fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\nSec-WebSocket-Version: 13\r\n";
    client.send(format!("GET /socket HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
    client.next_head().await.unwrap();
    drop(client);
    let spans = collector.of("/socket").await;
    assert_eq!(attribute(&spans[0], "http.response.status_code").as_deref(), Some("101"));
    assert!(app.requests()[0].field("traceparent").unwrap().contains(&hex(&spans[3].span_id)));
}
