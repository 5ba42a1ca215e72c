//! Traces: contexts that are continued or begun, the spans that a collector gets, a collector over TLS, and one that is down.

use hostler_testkit::{
    Site, SpanReceiver, Step, attribute, authority, eventually, hex, memcached, text, upstream,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpSocket;

use crate::http2::{get, talk};
use crate::{in_front_of, site};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";
const CACHED: &str = "[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";
const STORABLE: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";

async fn get_with(site: &Site, target: &str, fields: &str) {
    let mut client = site.connect().await;
    client.send(format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n")).await;
    client.answer().await;
}

#[tokio::test]
async fn a_continued_trace_has_spans_for_request_queue_slot_and_worker() {
    let (collector, address) = SpanReceiver::start().await;
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
async fn a_method_that_the_conventions_do_not_know_has_its_name_in_an_attribute_of_its_own() {
    let (collector, address) = SpanReceiver::start().await;
    let app = upstream().start().await;
    let site = in_front_of(&app, &format!("traces.endpoint = 'http://{address}'\ntraces.sample = 1")).await;
    site.send("BREW /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.assert_ok("ok");
    let spans = collector.of("/x").await;
    let [server, _, _, worker] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((server.name.as_str(), worker.name.as_str()), ("HTTP *", "HTTP"));
    for span in [server, worker] {
        let get = |key| attribute(span, key).unwrap_or_default();
        let told = ["http.request.method", "http.request.method_original"].map(get);
        assert_eq!(told, ["_OTHER", "BREW"]);
    }
    site.get("/y").await.assert_ok("ok");
    assert_eq!(attribute(&collector.of("/y").await[0], "http.request.method_original"), None);
}

#[tokio::test]
async fn what_a_client_sends_makes_no_large_spans() {
    let (collector, address) = SpanReceiver::start().await;
    let app = upstream().start().await;
    let site = in_front_of(&app, &format!("traces.endpoint = 'http://{address}'\ntraces.sample = 0")).await;
    // Spaces around the entries belong to a valid state.
    let state = format!("a=1,{}b=2", " ".repeat(20_000));
    let path = format!("/{}", "x".repeat(10_000));
    get_with(&site, &path, &format!("traceparent: 00-{TRACE}-{PARENT}-01\r\ntracestate: {state}\r\n")).await;
    let spans = collector.of(&path[..2048]).await;
    assert!(spans.iter().all(|span| span.trace_state.is_empty()), "{spans:?}");
    assert_eq!(app.requests()[0].field("tracestate"), Some(state));
}

#[tokio::test]
async fn a_password_is_in_no_span_however_long_it_is() {
    let (collector, address) = SpanReceiver::start().await;
    let app = upstream().start().await;
    let site = in_front_of(&app, &format!("traces.endpoint = 'http://{address}'\ntraces.sample = 1")).await;
    let with_password = format!("me:{}@a.test", "p".repeat(3000));
    let head = format!("GET /https://{with_password}/ HTTP/1.1\r\nHost: {with_password}\r\n\r\n");
    site.send(head).await.assert_status(400);
    let spans = collector.of("/https://[redacted]@a.test/").await;
    assert_eq!(attribute(&spans[0], "server.address").as_deref(), Some("[redacted]@a.test"));
}

#[tokio::test]
async fn an_invalid_context_begins_a_new_trace_without_the_clients_state() {
    let (collector, address) = SpanReceiver::start().await;
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
    let (collector, address) = SpanReceiver::start().await;
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

    let collector = SpanReceiver::default();
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
    let (collector, address) = SpanReceiver::start().await;
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
    let (collector, address) = SpanReceiver::start().await;
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
    let (collector, address) = SpanReceiver::start().await;
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

#[tokio::test]
async fn the_cache_has_a_span_with_what_it_did() {
    let (collector, address) = SpanReceiver::start().await;
    let app = upstream().script(|_| text(STORABLE)).start().await;
    let config = format!("traces.endpoint = 'http://{address}'\ntraces.sample = 1\n{CACHED}");
    let site = site(&config).with("app", &app).start().await;
    let names = |spans: &[Span]| spans.iter().map(|span| span.name.clone()).collect::<Vec<_>>();
    let traced = |trace: &str| format!("traceparent: 00-{trace}-{PARENT}-01\r\n");
    get_with(&site, "/x", &traced(TRACE)).await;
    let miss = collector.of_trace(TRACE).await;
    assert_eq!(names(&miss), ["GET *", "cache", "queue", "slot", "GET"]);
    assert_eq!(attribute(&miss[1], "hostler.cache").as_deref(), Some("miss"));
    assert_eq!(miss[1].parent_span_id, miss[0].span_id);
    assert!(miss[0].start_time_unix_nano <= miss[1].start_time_unix_nano, "{miss:?}");
    assert!(miss[1].end_time_unix_nano <= miss[4].end_time_unix_nano, "{miss:?}");

    // Another trace for the same URL: the answer is in memory now.
    let second = TRACE.replace("4bf9", "aaaa");
    get_with(&site, "/x", &traced(&second)).await;
    let hit = collector.of_trace(&second).await;
    assert_eq!(names(&hit), ["GET *", "cache"]);
    assert_eq!(attribute(&hit[1], "hostler.cache").as_deref(), Some("hit"));
}

#[tokio::test]
async fn the_span_of_the_worker_has_its_own_answer_and_not_that_of_the_client() {
    let (collector, address) = SpanReceiver::start().await;
    let fields = "Cache-Control: max-age=0, stale-if-error=60\r\nETag: \"v1\"\r\n";
    let answers = [
        text(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok")),
        text(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n")),
        text("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"),
    ];
    let lost = vec![vec![Step::Close]; 10];
    let app = upstream().in_turn([answers.to_vec(), lost].concat()).start().await;
    let config = format!("traces.endpoint = 'http://{address}'\ntraces.sample = 1\n{CACHED}");
    let site = site(&config).with("app", &app).start().await;
    let cases =
        [(Some("200"), None), (Some("304"), None), (Some("503"), Some("503")), (None, Some("_OTHER"))];
    for (at, (status, error)) in cases.into_iter().enumerate() {
        let trace = format!("{:032x}", at + 1);
        get_with(&site, "/x", &format!("traceparent: 00-{trace}-{PARENT}-01\r\n")).await;
        let spans = collector.of_trace(&trace).await;
        let (server, worker) = (&spans[0], spans.last().unwrap());
        let code = |span| attribute(span, "http.response.status_code");
        assert_eq!((code(server).as_deref(), code(worker).as_deref()), (Some("200"), status), "{spans:?}");
        assert_eq!((worker.kind, attribute(worker, "error.type").as_deref()), (3, error), "{spans:?}");
        assert_eq!((server.status.is_some(), worker.status.is_some()), (false, error.is_some()), "{spans:?}");
    }
}

#[tokio::test]
async fn a_look_into_memcached_has_a_span() {
    let Some(memcached) = memcached().await else { return };
    let (collector, address) = SpanReceiver::start().await;
    let (app, idle) = (upstream().script(|_| text(STORABLE)).start().await, upstream().start().await);
    let server = memcached.address().to_string();
    let config = format!(
        "cache = {{ memcached = '{server}', timeout = '5s' }}\ntraces = {{ endpoint = 'http://{address}', sample = 1 }}\n{CACHED}"
    );
    let one = site(&config).with("app", &app).start().await;
    let other = site(&config).with("app", &idle).start().await;
    for site in [&one, &other] {
        site.says(&format!("memcached {server}: it answers")).await;
    }
    get_with(&one, "/x", "").await;
    let stored =
        async || one.status().await["cache"]["memcached"][0]["stored"].as_u64().filter(|&count| count > 0);
    eventually("the response to be in memcached", stored).await;
    get_with(&other, "/x", &format!("traceparent: 00-{TRACE}-{PARENT}-01\r\n")).await;

    let spans = collector.of_trace(TRACE).await;
    let names: Vec<_> = spans.iter().map(|span| (span.name.as_str(), span.kind)).collect();
    assert_eq!(names, [("GET *", 2), ("cache", 1), ("memcached", 3)]);
    let (cache, memcached) = (&spans[1], &spans[2]);
    assert_eq!(attribute(cache, "hostler.cache").as_deref(), Some("hit"));
    assert_eq!(attribute(memcached, "db.system.name").as_deref(), Some("memcached"));
    assert_eq!(memcached.parent_span_id, cache.span_id);
    assert!(cache.start_time_unix_nano <= memcached.start_time_unix_nano, "{spans:?}");
    assert!(memcached.end_time_unix_nano <= cache.end_time_unix_nano, "{spans:?}");
}

#[tokio::test]
async fn a_wait_for_the_answer_of_another_request_has_a_span() {
    let (collector, address) = SpanReceiver::start().await;
    let app = upstream().script(|_| [vec![Step::Hold], text(STORABLE)].concat()).start().await;
    let config = format!("traces.endpoint = 'http://{address}'\ntraces.sample = 1\n{CACHED}");
    let site = site(&config).with("app", &app).start().await;
    let mut round = 0;
    let waited = eventually("a request that has waited for another one", async || {
        round += 1;
        let trace = |at: usize| format!("{:032x}", 100 * round + at);
        let mut clients = Vec::new();
        for at in 1..=50 {
            let mut client = site.connect().await;
            let context = format!("traceparent: 00-{}-{PARENT}-01", trace(at));
            client.send(format!("GET /{round} HTTP/1.1\r\nHost: a\r\n{context}\r\n\r\n")).await;
            clients.push(client);
        }
        app.has_seen(round).await;
        app.release(1);
        let mut waited = None;
        for (client, at) in clients.iter_mut().zip(1..) {
            let answer = client.answer().await;
            answer.assert_ok("ok");
            let has_waited = answer.field("cache-status").unwrap().contains("collapsed");
            waited = waited.or(has_waited.then(|| trace(at)));
        }
        // On a busy machine Hostler may read all other requests after the answer has come.
        waited
    })
    .await;
    let spans = collector.of_trace(&waited).await;
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["GET *", "cache", "cache wait"]);
    assert_eq!(attribute(&spans[1], "hostler.cache").as_deref(), Some("collapsed"));
    let (cache, wait) = (&spans[1], &spans[2]);
    assert_eq!(wait.parent_span_id, cache.span_id);
    assert!(cache.start_time_unix_nano <= wait.start_time_unix_nano, "{spans:?}");
    assert!(wait.end_time_unix_nano <= cache.end_time_unix_nano, "{spans:?}");
}

#[tokio::test]
async fn a_collector_over_tls_gets_the_spans_with_the_fields_that_are_set() {
    let trust = authority();
    let tls = trust.vouch_for(&["127.0.0.1"]).for_server(None);
    let (collector, address) = SpanReceiver::start_with_tls(tls).await;
    let app = upstream().start().await;
    let config = format!(
        "traces = {{ endpoint = 'https://{address}', sample = 1, headers = 'api-key=s3cret', tls.ca = 'ca.pem' }}"
    );
    let plan = site(&config).with("app", &app);
    std::fs::write(plan.folder().join("ca.pem"), trust.cert()).unwrap();
    let site = plan.start().await;
    site.get("/x").await.assert_ok("ok");
    assert_eq!(collector.of("/x").await.len(), 4);
    assert_eq!(collector.field("api-key").as_deref(), Some("s3cret"));
    assert_eq!(collector.field("host"), Some(address.to_string()));
    let told = format!("{:?} {}", site.lines(), site.status().await);
    assert!(!told.contains("s3cret"), "{told}");
}

#[tokio::test]
async fn a_collector_with_a_certificate_of_another_authority_gets_nothing() {
    let (trust, other) = (authority(), authority());
    let tls = other.vouch_for(&["127.0.0.1"]).for_server(None);
    let (collector, address) = SpanReceiver::start_with_tls(tls).await;
    let app = upstream().start().await;
    let config = format!("traces = {{ endpoint = 'https://{address}', sample = 1, tls.ca = 'ca.pem' }}");
    let plan = site(&config).with("app", &app);
    std::fs::write(plan.folder().join("ca.pem"), trust.cert()).unwrap();
    let site = plan.start().await;
    site.get("/x").await.assert_ok("ok");
    let said = site.says("takes no spans").await;
    assert!(said.contains("certificate"), "{said}");
    assert!(collector.paths().is_empty());
}

#[tokio::test]
async fn spans_that_the_collector_rejects_are_told_once() {
    let (collector, address) = SpanReceiver::start().await;
    collector.reject();
    let app = upstream().start().await;
    let site = in_front_of(&app, &format!("traces.endpoint = 'http://{address}'\ntraces.sample = 1")).await;
    site.get("/one").await.assert_ok("ok");
    let said = site.says("rejects spans").await;
    assert!(said.contains("too old"), "{said}");
    collector.of("/one").await;
    site.get("/two").await.assert_ok("ok");
    collector.of("/two").await;
    let told = site.lines().iter().filter(|line| line.contains("rejects spans")).count();
    assert_eq!(told, 1);
    // The receiver rejects four spans of each batch, and each of the two requests has four. They come in two batches.
    let traces = eventually("both batches to be counted", async || {
        let traces = site.status().await["traces"].clone();
        (traces["exported"] == 2).then_some(traces)
    });
    assert_eq!(traces.await["rejected_spans"], 8);
}
