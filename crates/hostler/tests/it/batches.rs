//! Routes with `fallback = "hypernova"`: what a client gets for a batch that no worker renders, for every reason.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use hostler_testkit::{
    Client, ReceivedAnswer, Site, Step, Upstream, client_with_window, eventually, no_upstream, request, text,
    upstream,
};
use serde_json::{Value, json};

use crate::site;
use crate::slow_clients::is_given_back;

const BATCH: &str = r#"{"0":{"name":"a/Boom.js","data":{"text":"</script > & -->"}}}"#;
const JSON: &str = "Content-Type: application/json\r\n";

/// One worker with one slot.
async fn in_front_of(app: &Upstream, config: &str) -> Site {
    let route = "[[routes]]\nmatch = '/batch/*'\npool = 'app'\nfallback = 'hypernova'";
    site(&format!("pools.app.concurrency = 1\n{config}\n{route}")).with("app", app).start().await
}

/// A site whose only slot is in use, and the request that uses it.
async fn full(config: &str) -> (Site, Upstream, Client) {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, &format!("pools.app.queue.limit = 0\n{config}")).await;
    let mut first = site.connect().await;
    first.send(batch(JSON, BATCH)).await;
    site.settles("app", 1, 0).await;
    (site, app, first)
}

fn batch(fields: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    request("POST /batch", fields, body.as_ref())
}

async fn ask(site: &Site, fields: &str, body: impl AsRef<[u8]>) -> ReceivedAnswer {
    site.send(batch(fields, body)).await
}

fn gzipped(text: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

#[track_caller]
fn assert_stands_in(answer: &ReceivedAnswer, status: u16, reason: &str) {
    answer
        .assert_status(200)
        .assert_field("content-type", "application/json; charset=utf-8")
        .assert_field("cache-control", "no-store")
        .assert_field("hostler-fallback", reason)
        .assert_no_field("hostler-refusal");
    let all = answer.json();
    assert_eq!((&all["success"], &all["error"]), (&true.into(), &Value::Null));
    let job = &all["results"]["0"];
    assert_eq!((&job["statusCode"], &job["success"]), (&status.into(), &false.into()));
    let message = job["error"]["message"].as_str().unwrap();
    assert!(message.ends_with(&format!("({reason})")), "{message}");
    let html = job["html"].as_str().unwrap();
    assert!(html.starts_with("<div data-hypernova-key=\"aBoomjs\" data-hypernova-id=\""), "{html}");
    assert!(html.ends_with(r#"<!--{"text":"\u003c/script &gt; &amp; --&gt;"}--></script>"#), "{html}");
}

#[tokio::test]
async fn a_batch_over_a_full_queue_gets_the_fallback() {
    let (site, app, mut first) = full("").await;
    let mut client = site.connect().await;
    for _ in 0..2 {
        client.send(batch(JSON, BATCH)).await;
        let answer = client.answer().await;
        assert_stands_in(&answer, 503, "queue_full");
        answer.assert_no_field("connection");
    }
    let line = site.refusal("queue_full").await;
    assert_eq!((&line["status"], &line["fallback"]), (&200.into(), &true.into()), "{line}");
    site.exchanges(2).await;
    let route = site.status().await["routes"][0].clone();
    assert_eq!((&route["fallbacks"]["queue_full"], &route["answers"]["2xx"]), (&2.into(), &2.into()));
    app.release_all();
    first.answer().await.assert_status(200).assert_no_field("hostler-fallback");
}

#[tokio::test]
async fn a_batch_without_a_reachable_worker_gets_the_fallback() {
    let route =
        "pools.app.queue.timeout = '1s'\n[[routes]]\nmatch = '*'\npool = 'app'\nfallback = 'hypernova'";
    let site = site(route).with_member("app", &no_upstream()).start().await;
    assert_stands_in(&ask(&site, JSON, BATCH).await, 502, "unreachable");
}

#[tokio::test]
async fn a_batch_that_times_out_gets_the_fallback() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.request_timeout = '1s'").await;
    assert_stands_in(&ask(&site, JSON, BATCH).await, 504, "answer_timeout");
    assert_stands_in(&ask(&site, JSON, BATCH).await, 503, "queue_timeout");
    app.release_all();
}

#[tokio::test]
async fn a_batch_with_a_broken_answer_gets_the_fallback_and_is_sent_once() {
    let answers = [
        text("nonsense\r\n\r\n"),
        text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
        vec![Step::Close],
        text("HTTP/1.1 500 X\r\nContent-Length: 4\r\n\r\noops"),
    ];
    let app = upstream().in_turn(answers).start().await;
    let site = in_front_of(&app, "").await;
    for reason in ["bad_answer", "bad_answer", "worker_lost"] {
        assert_stands_in(&ask(&site, JSON, BATCH).await, 502, reason);
    }
    let own = ask(&site, JSON, BATCH).await;
    own.assert_status(500).assert_says("oops").assert_no_field("hostler-fallback");
    assert_eq!(app.requests().len(), 4, "a POST is not repeated");
}

#[tokio::test]
async fn hypernova_client_gets_one_error_for_the_batch_and_keeps_the_markup() {
    let (site, _app, _first) = full("").await;
    let message = "not rendered on the server: the queue is full: 0 requests wait already (queue_full)";
    let error =
        json!({ "name": "RuntimeError", "message": message, "stack": [format!("RuntimeError: {message}")] });
    // hypernova of PyPI, which is built on requests, reads errors in the same way.
    for agent in ["axios/0.15.3", "python-requests/2.34.2"] {
        let fields = format!("{JSON}User-Agent: {agent}\r\n");
        let answer = ask(&site, &fields, r#"{"Boom.js":{"name":"Boom.js","data":{}}}"#).await.json();
        assert_eq!((&answer["success"], &answer["error"]), (&false.into(), &error), "{agent}");
        let job = &answer["results"]["Boom.js"];
        assert_eq!((&job["error"], &job["success"]), (&Value::Null, &false.into()), "{agent}");
        assert!(job["html"].as_str().unwrap().contains("data-hypernova-key=\"Boomjs\""), "{agent}");
    }
}

#[tokio::test]
async fn batches_in_memory_in_a_file_and_compressed_get_the_same_fallback() {
    let (site, _app, _first) = full("server.body_memory = '4 KiB'").await;
    // The key "0" occurs twice; the last one counts.
    let filling = "<".repeat(900_000);
    let large = format!(r#"{{"0":{{"name":"B","data":"{filling}"}},{}"#, &BATCH[1..]);
    for body in [BATCH, &large] {
        assert_stands_in(&ask(&site, JSON, body).await, 503, "queue_full");
        let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        let head = format!("POST /batch HTTP/1.1\r\nHost: a\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n");
        assert_stands_in(&site.send(head + &chunks).await, 503, "queue_full");
    }
    let whole = format!(r#"{{"0":{{"name":"B","data":"{filling}"}}}}"#);
    let answer = ask(&site, JSON, &whole).await.json();
    assert!(answer["results"]["0"]["html"].as_str().unwrap().len() > 6 * filling.len());
    let jobs = format!("[{}]", vec![r#"{"name":"A","data":{}}"#; 10_000].join(","));
    let answer = ask(&site, JSON, &jobs).await.json();
    assert_eq!(answer["results"].as_object().unwrap().len(), 10_000);

    for none in ["", "identity"] {
        let coded = format!("{JSON}Content-Encoding: {none}\r\n");
        assert_stands_in(&ask(&site, &coded, BATCH).await, 503, "queue_full");
    }
    let gzip = format!("{JSON}Content-Encoding: gzip\r\n");
    for body in [BATCH, &large] {
        assert_stands_in(&ask(&site, &gzip, gzipped(body)).await, 503, "queue_full");
    }
    let bomb = gzipped(&format!("[{}]", " ".repeat(5_000_000)));
    assert!(bomb.len() < 10_000);
    ask(&site, &gzip, bomb).await.assert_refused(503, "queue_full");
    ask(&site, &gzip, BATCH).await.assert_refused(503, "queue_full");
}

#[tokio::test]
async fn a_fallback_without_room_in_memory_waits_in_a_file_and_arrives_as_it_was() {
    // Each mark becomes six bytes, so the answer is larger than what the kernel takes of it.
    const MARKS: usize = 1_000_000;
    let (site, _app, _first) = full("server.answer_memory = '256 KiB'").await;
    let mut slow = client_with_window(4096, site.address()).await;
    slow.send(batch(JSON, format!(r#"{{"0":{{"name":"B","data":"{}"}}}}"#, "<".repeat(MARKS)))).await;
    eventually("its rest in a file", async || {
        let status = site.status().await;
        let used = |what: &str| status[what]["used"].as_u64();
        (used("answer_memory")? <= 256 << 10 && used("spool")? >= 1 << 20).then_some(())
    })
    .await;
    let answer = slow.answer().await;
    let html = answer.json()["results"]["0"]["html"].as_str().unwrap().to_owned();
    assert_eq!(html.matches(r"\u003c").count(), MARKS);
    is_given_back(&site).await;
    // A connection that has had such an answer is used again.
    slow.send(batch(JSON, BATCH)).await;
    assert_stands_in(&slow.answer().await, 503, "queue_full");
}

#[tokio::test]
async fn a_body_that_is_no_batch_gets_the_refusal() {
    let (site, _app, _first) = full("server.max_body_size = '2 MiB'").await;
    let deep = "[".repeat(200_000);
    let large = format!(r#"{{"0":{{"name":"B","data":"{}"}}}}"#, "x".repeat(1_024_000));
    for body in ["", "null", "{\"a\":", "{}{}", &deep, &large] {
        ask(&site, JSON, body).await.assert_refused(503, "queue_full");
    }
    for fields in ["", "Content-Type: text/plain\r\n", "Content-Type: application/json; charset=utf-16\r\n"] {
        ask(&site, fields, BATCH).await.assert_refused(503, "queue_full");
    }
    let coded = format!("{JSON}Content-Encoding: br\r\n");
    ask(&site, &coded, BATCH).await.assert_refused(503, "queue_full");
    site.get("/batch").await.assert_refused(503, "queue_full");
    site.send(request("PUT /batch", JSON, BATCH.as_bytes())).await.assert_refused(503, "queue_full");
    site.post("/else", BATCH).await.assert_refused(404, "no_route");
}

#[tokio::test]
async fn invalid_utf8_is_read_as_node_reads_it() {
    let (site, _app, _first) = full("").await;
    let answer = ask(&site, JSON, b"\xef\xbb\xbf{\"0\":{\"name\":\"\xffA\",\"data\":\"\xc3\"}}").await.json();
    let job = &answer["results"]["0"];
    assert_eq!(job["name"], "\u{fffd}A");
    assert!(job["html"].as_str().unwrap().ends_with("<!--\"\u{fffd}\"--></script>"));
}
