//! The trace context that a real worker sees.

use super::site::configured;

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
