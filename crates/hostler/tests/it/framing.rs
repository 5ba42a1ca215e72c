//! The end of an answer, and what comes before and after it: HEAD, 204, 304, interim answers, trailers.

use bytes::Bytes;
use hostler_testkit::{Frame, Step, Upstream, eventually, frame_client, text, upstream};
use http::Response;

use crate::http2_member::{Asked, Http2Plan, send};
use crate::{cache_hits, http2_members, in_front_of};

#[tokio::test]
async fn an_answer_to_head_has_no_body_although_its_fields_give_a_length() {
    let app = upstream()
        .script(|seen| match (seen.method().as_str(), seen.target().as_str()) {
            ("HEAD", "/length") => text("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
            ("HEAD", "/chunked") => text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            ("HEAD", _) => text("HTTP/1.1 200 OK\r\n\r\n"),
            _ => text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        })
        .start()
        .await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    for (path, length) in [("/length", Some("1000")), ("/chunked", None), ("/neither", None)] {
        client.send(format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        let answer = client.answer_to("HEAD").await;
        assert_eq!(answer.assert_status(200).field("content-length").as_deref(), length, "{path}");
        client.get("/").await.assert_ok("ok");
    }
    assert_eq!(app.connections(), 1, "and the connection to the member is still in step");
}

#[tokio::test]
async fn answers_without_content_stay_without() {
    let app = upstream()
        .script(|seen| match seen.target().as_str() {
            "/204" => text("HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n"),
            "/204-length" => text("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"),
            "/304" => text("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 1000\r\n\r\n"),
            _ => text("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        })
        .start()
        .await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    for _ in 0..2 {
        client
            .get("/204")
            .await
            .assert_status(204)
            .assert_field("x-a", "b")
            .assert_no_field("transfer-encoding");
        client.get("/204-length").await.assert_status(204).assert_no_field("content-length");
        client.get("/304").await.assert_status(304).assert_field("content-length", "1000");
        client.get("/empty").await.assert_ok("").assert_field("content-length", "0");
    }
    assert_eq!(app.connections(), 1);
}

#[tokio::test]
async fn a_body_of_an_http2_member_after_a_204_or_a_304_does_not_reach_the_client() {
    let script = async |mut asked: Asked| {
        let status = asked.path()[1..].parse::<u16>().unwrap();
        let stream = asked.begin(Response::builder().status(status).body(()).unwrap());
        send(stream, Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"), true).await;
    };
    let member = Http2Plan::default().start(script).await;
    let site = http2_members::in_front_of(&member, "").await;
    for status in [204, 304] {
        let mut client = site.connect().await;
        client.send(format!("GET /{status} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await;
        let (text, _) = client.rest().await;
        assert!(!text.contains("evil"), "{text}");
    }
}

#[tokio::test]
async fn no_answer_follows_a_205_that_announces_a_body() {
    let app = upstream()
        .script(|seen| match seen.target().as_str() {
            "/empty" => text("HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"),
            "/length" => text("HTTP/1.1 205 Reset Content\r\nContent-Length: 2\r\n\r\nhi"),
            _ => text("HTTP/1.1 205 Reset Content\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"),
        })
        .start()
        .await;
    let site = in_front_of(&app, "").await;
    for path in ["/length", "/chunked"] {
        let mut client = site.connect().await;
        client.get("/empty").await.assert_status(205).assert_no_field("connection");
        client.get(path).await.assert_status(205).assert_says("hi").assert_field("connection", "close");
        client.assert_closed().await;
    }
}

#[tokio::test]
async fn no_answer_follows_a_stored_205_that_announces_a_body() {
    let answer = "HTTP/1.1 205 Reset Content\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nhi";
    let app = upstream().answers(answer).start().await;
    let site = cache_hits::with_cache(&app).await;
    for _ in 0..2 {
        let mut client = site.connect().await;
        client.get("/").await.assert_status(205).assert_says("hi").assert_field("connection", "close");
        client.assert_closed().await;
    }
    assert_eq!(app.requests().len(), 1, "the second answer is the stored one");
}

#[tokio::test]
async fn an_empty_answer_of_unknown_length_is_an_empty_answer() {
    let app =
        upstream().answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    for _ in 0..2 {
        assert_eq!(client.get("/").await.assert_ok("").chunks, [0]);
    }
}

const HINTS: &str =
    "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n";

#[tokio::test]
async fn early_hints_arrive_before_the_answer() {
    let steps = [
        text(HINTS),
        vec![Step::Hold],
        text("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b.js>\r\n\r\n"),
        text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ];
    let app = upstream().does(steps.concat()).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.begin("/").await;
    let first = client.next_head().await.unwrap();
    assert_eq!(first.text(), "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n");
    app.release(1);
    let answer = client.answer().await;
    let interim: Vec<_> = answer.assert_ok("ok").interim.iter().map(|head| head.start_line()).collect();
    assert_eq!(interim, ["HTTP/1.1 102 Processing", "HTTP/1.1 103 Early Hints"]);
    app.release(1);
    client.get("/again").await.assert_ok("ok");
}

#[tokio::test]
async fn http_1_0_gets_no_interim_answer() {
    let app =
        upstream().answers([HINTS, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"].concat()).start().await;
    let site = in_front_of(&app, "").await;
    let answer = site.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n").await;
    assert_eq!(answer.assert_ok("ok").interim, []);
}

#[tokio::test]
async fn a_members_100_continue_is_not_passed_to_the_client() {
    let app = upstream()
        .answers("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        .start()
        .await;
    let site = in_front_of(&app, "").await;
    let answer = site.post("/", "body").await;
    assert_eq!(answer.assert_ok("ok").interim, []);
}

/// This many interim heads with this many bytes in a field of each, then an answer.
fn hinted(count: usize, bytes: usize) -> String {
    let hint = format!("HTTP/1.1 103 Early Hints\r\nLink: {}\r\n\r\n", "x".repeat(bytes));
    format!("{}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", hint.repeat(count))
}

async fn is_closed(app: &Upstream) {
    eventually("the member's connection to be closed", async || (app.open() == 0).then_some(())).await;
}

#[tokio::test]
async fn interim_answers_are_bounded_in_number_and_in_bytes() {
    let fits = upstream().answers(hinted(100, 500)).start().await;
    let answer = in_front_of(&fits, "").await.get("/").await;
    assert_eq!(answer.assert_ok("ok").interim.len(), 100);
    for (count, bytes, keys) in
        [(101, 5, ""), (3, 30_000, ""), (1, 5, "server.max_interim_answers = 0"), (10_000, 5, "")]
    {
        let app = upstream().answers(hinted(count, bytes)).start().await;
        let site = in_front_of(&app, keys).await;
        let answer = site.get("/").await;
        answer.assert_refused(502, "interim_answers").assert_says("too many interim responses");
        assert!(answer.interim.len() <= 100);
        let logged = site.refusal("interim_answers").await;
        let detail = logged["detail"].as_str().unwrap();
        assert!(detail.contains("interim responses (1xx)") && detail.contains("65536 bytes"), "{logged}");
        site.settles("app", 0, 0).await;
        is_closed(&app).await;
    }
}

#[tokio::test]
async fn a_member_that_sends_endless_interim_answers_after_the_client_left_is_disconnected() {
    let hints = "HTTP/1.1 102 Processing\r\n\r\n".repeat(10_000);
    let steps = [vec![Step::Hold], text(hints), vec![Step::Hold]];
    let app = upstream().does(steps.concat()).start().await;
    let site = in_front_of(&app, "pools.app.request_timeout = '1h'\npools.app.concurrency = 1").await;
    let client = site.begin("/").await;
    eventually("it to be asked", async || (!app.requests().is_empty()).then_some(())).await;
    drop(client);
    app.release(1);
    site.settles("app", 0, 0).await;
    // The member goes on, and finds the end of its connection.
    app.release_all();
    is_closed(&app).await;
}

#[tokio::test]
async fn trailers_of_an_answer_reach_the_client() {
    let body = "3\r\nabc\r\n0\r\nServer-Timing: db;dur=3\r\nX-Sum: 9\r\nContent-Length: 5\r\nTransfer-Encoding: x\r\n\r\n";
    let head = "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n";
    let app = upstream().answers([head, body].concat()).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    for _ in 0..2 {
        let answer = client.get("/").await;
        assert_eq!(
            answer.assert_ok("abc").assert_field("trailer", "X-Sum").trailers,
            ["Server-Timing: db;dur=3", "X-Sum: 9"]
        );
    }
    let answer = site.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n").await;
    answer.assert_ok("abc");
}

#[tokio::test]
async fn trailers_of_an_answer_cannot_carry_fields_that_belong_to_the_head() {
    let lines = "Set-Cookie: a=b\r\nset_cookie: a=b\r\nContent-Type: text/html\r\nLocation: /evil\r\nCache-Control: public\r\n\
        Connection: close\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\nHostler-Refusal: no\r\nCache-Status: hit\r\n\
        X-Powered: no\r\nWWW-Authenticate: Basic\r\nAccess-Control-Allow-Origin: *\r\ngrpc-status: 0\r\n";
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n";
    let app = upstream().answers(format!("{head}{lines}\r\n")).start().await;
    let config = "[[routes]]\nmatch = '*'\npool = 'app'\nresponse_headers = { remove = ['X-Powered'] }";
    let site = in_front_of(&app, config).await;
    let answer = site.get("/").await;
    assert_eq!(answer.assert_ok("abc").trailers, ["grpc-status: 0"]);
    let mut client = frame_client(site.address()).await;
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")];
    client.send(&[Frame::request(1, &fields)]).await;
    client.next_of(Frame::HEADERS).await;
    let trailers = client.next_of(Frame::HEADERS).await;
    let shown = String::from_utf8_lossy(&trailers.payload);
    assert!(trailers.payload.len() < 20, "grpc-status and nothing else: {shown}");
}

#[tokio::test]
async fn a_member_may_answer_in_http_1_0() {
    let app = upstream()
        .script(|seen| match seen.target().as_str() {
            "/length" => text("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            _ => [text("HTTP/1.0 200 OK\r\n\r\nto the end"), vec![Step::Close]].concat(),
        })
        .start()
        .await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    client.get("/length").await.assert_ok("ok");
    client.get("/length").await.assert_ok("ok");
    client.get("/close").await.assert_ok("to the end").assert_field("transfer-encoding", "chunked");
    assert_eq!(app.connections(), 3, "HTTP/1.0 connections are not kept");
}
