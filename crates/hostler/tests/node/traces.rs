//! The trace context that a real worker sees, and the spans that a real OpenTelemetry Collector gets.

use std::path::Path;

use hostler_testkit::{CollectorPlan, SpanReceiver, attribute, authority, collector, hex};

use super::site::{Site, configured};

const APP: &str = "
require('node:http').createServer((request, response) => response.end(JSON.stringify(request.headers))).listen(3000);
";

#[tokio::test]
async fn a_worker_gets_the_clients_trace_with_a_span_of_hostler_as_parent() {
    // Port 9 takes no spans. That must not matter to the worker.
    let plan = configured(
        "traces.endpoint = 'http://127.0.0.1:9'\n[pools.app]\ncommand = 'node app.cjs'\nworkers = 1",
    );
    std::fs::write(plan.folder().join("app.cjs"), APP).unwrap();
    let site = plan.started().await;
    let mut client = site.connect().await;
    let given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    client
        .send(format!("GET / HTTP/1.1\r\nHost: a\r\ntraceparent: {given}\r\ntracestate: a=1,b=2\r\n\r\n"))
        .await;
    let seen: serde_json::Value = serde_json::from_str(&client.answer().await.text()).unwrap();
    let told = seen["traceparent"].as_str().unwrap();
    assert_eq!((&told[..36], &told[52..], told.len()), (&given[..36], "-01", 55));
    assert_ne!(told, given);
    assert_eq!(seen["tracestate"], "a=1,b=2");
}

/// What the worker saw, in a request through Hostler.
async fn seen_by_worker(site: &Site, fields: &str) -> serde_json::Value {
    let mut client = site.connect().await;
    client.send(format!("GET /traced HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
    serde_json::from_str(&client.answer().await.text()).unwrap()
}

/// Hostler with a worker and a Collector that sends on to a receiver of the test. None: the Collector is not installed.
async fn traced_by(
    plan: CollectorPlan,
    scheme: &str,
    authority: Option<&Path>,
) -> Option<(Site, SpanReceiver, impl Sized)> {
    let (receiver, address) = SpanReceiver::start().await;
    let collector = plan.start(address).await?;
    let tls = authority.map_or(String::new(), |file| format!("traces.tls.ca = '{}'\n", file.display()));
    let config = format!(
        "traces.endpoint = '{scheme}://{}'\ntraces.sample = 1\n{tls}[pools.app]\ncommand = 'node app.cjs'\nworkers = 1",
        collector.address()
    );
    let plan = configured(&config);
    std::fs::write(plan.folder().join("app.cjs"), APP).unwrap();
    Some((plan.started().await, receiver, collector))
}

#[tokio::test]
async fn a_real_collector_log_and_worker_agree_about_the_trace_of_a_request() {
    let Some((site, receiver, _collector)) = traced_by(collector(), "http", None).await else { return };
    let seen = seen_by_worker(&site, "").await;
    let spans = receiver.of("/traced").await;
    let names: Vec<_> = spans.iter().map(|span| (span.name.as_str(), span.kind)).collect();
    assert_eq!(names, [("GET *", 2), ("queue", 1), ("slot", 1), ("GET", 3)]);
    let trace = hex(&spans[0].trace_id);
    assert_eq!(site.access("/traced").await["trace_id"], trace);
    assert_eq!(seen["traceparent"], format!("00-{trace}-{}-01", hex(&spans[3].span_id)));
    assert_eq!(attribute(&spans[0], "hostler.pool").as_deref(), Some("app"));
    assert_eq!(spans[3].parent_span_id, spans[2].span_id);
    assert_eq!(site.status().await["traces"]["dropped"], 0);
}

#[tokio::test]
async fn a_real_collector_over_tls_gets_the_spans_of_a_continued_trace() {
    let (trust, plan) = (authority(), collector().over_tls());
    let own = trust.vouch_for(&["127.0.0.1"]);
    let ca = plan.folder().join("ca.pem");
    for (name, text) in [("ca.pem", trust.cert()), ("cert.pem", own.cert), ("key.pem", own.key)] {
        std::fs::write(plan.folder().join(name), text).unwrap();
    }
    let Some((site, receiver, _collector)) = traced_by(plan, "https", Some(&ca)).await else { return };
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let fields = format!("traceparent: 00-{trace}-00f067aa0ba902b7-01\r\ntracestate: a=1\r\n");
    let seen = seen_by_worker(&site, &fields).await;
    let spans = receiver.of_trace(trace).await;
    assert!(spans.len() == 4 && spans.iter().all(|span| span.trace_state == "a=1"), "{spans:?}");
    assert_eq!(hex(&spans[0].parent_span_id), "00f067aa0ba902b7");
    assert_eq!(seen["traceparent"], format!("00-{trace}-{}-01", hex(&spans[3].span_id)));
}
