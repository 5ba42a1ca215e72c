//! A malformed answer of a member is a 502, or a transfer that visibly breaks off: never a short answer that looks complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hostler_testkit::{ConnectionEnding, ReceivedAnswer, Step, eventually, text, upstream};
use http::{Response, response};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::http2_member::{Asked, Http2Member, Http2Plan, answer_heads, send};
use crate::{http2_members, in_front_of, site};

/// What a member sends before it closes, and the possible results.
enum Outcome {
    /// The client gets a refusal.
    Refused,
    /// The client sees that the answer is incomplete.
    Broken,
    /// The answer is valid, with this body.
    Good(&'static str),
}

use Outcome::{Broken, Good, Refused};

const CASES: &[(&str, Outcome)] = &[
    // No head.
    ("", Refused),
    ("garbage", Refused),
    ("garbage\r\n\r\n", Refused),
    ("\u{16}\u{3}\u{1}\u{2}\r\n\r\n", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Le", Refused),
    // Status lines.
    ("HTTP/1.1\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("HTTP/1.1 abc OK\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("ICY 200 OK\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("HTTP/1.1 200 O\u{0}K\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", Good("ok")),
    ("HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok", Good("ok")),
    // Lines.
    ("HTTP/1.1 200 OK\nContent-Length: 2\n\nok", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\nok", Refused),
    ("HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("HTTP/1.1 200 OK\r\nX: a\u{0}\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok", Refused),
    ("HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 2\r\n\r\nok", Refused),
    // Ambiguous lengths.
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        Refused,
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        Refused,
    ),
    ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok", Refused),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok", Refused),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", Refused),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        Refused,
    ),
    ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", Refused),
    // Interim answers.
    ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", Refused),
    ("HTTP/1.1 100 Continue\r\n\r\n", Refused),
    ("HTTP/1.1 103 Early Hints\r\n\r\ngarbage\r\n\r\n", Refused),
    // Bodies: the head may have been sent before the error.
    ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", Broken),
    ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\n", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\nX: y", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nlonger\r\n0\r\n\r\n", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", Refused),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\n0\n\n", Refused),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n-1\r\n", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nbad trailer\r\n\r\n", Broken),
    // More bytes than announced: the announced ones count, and the connection is not used again.
    ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay", Good("ok")),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nevil!",
        Good("ok"),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\nevil",
        Good("ok"),
    ),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\n\r\n", Good("ok")),
];

/// A whole answer with a refusal by Hostler.
fn is_refused(answer: &ReceivedAnswer) -> bool {
    answer.status == 502
        && answer.ending == ConnectionEnding::Whole
        && answer.field("hostler-refusal").is_some()
}

#[tokio::test]
async fn every_broken_answer_is_visibly_broken() {
    let app = upstream()
        .script(|seen| match seen.target().strip_prefix("/case/") {
            Some(number) => [text(CASES[number.parse::<usize>().unwrap()].0), vec![Step::Close]].concat(),
            None => hostler_testkit::ok("fine"),
        })
        .start()
        .await;
    let site = in_front_of(&app, "").await;
    for version in ["1.1", "1.0"] {
        for (number, (bytes, outcome)) in CASES.iter().enumerate() {
            let mut client = site.connect().await;
            let line = format!("POST /case/{number} HTTP/{version}\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
            client.send(line).await;
            let answer = client.maybe_answer("POST").await;
            let fine = match (outcome, &answer) {
                (Refused, Some(answer)) => is_refused(answer),
                // An answer that breaks off before any byte was sent may be a refusal too. If nothing had arrived before the reset, the
                // client gets nothing.
                (Broken, Some(answer)) => answer.ending != ConnectionEnding::Whole || is_refused(answer),
                (Broken, None) => true,
                (Good(body), Some(answer)) => {
                    answer.ending == ConnectionEnding::Whole && answer.body == body.as_bytes()
                }
                (_, None) => false,
            };
            assert!(fine, "HTTP/{version} {bytes:?} became {answer:?}");
            site.connect().await.get("/fine").await.assert_ok("fine");
        }
    }
    site.settles("app", 0, 0).await;
}

#[tokio::test]
async fn a_head_that_is_only_too_large_is_logged_with_the_setting_that_allows_it() {
    for (fields, setting) in [
        ("X: y\r\n".repeat(101), "(server.max_header_fields)"),
        (format!("X: {}\r\n", "y".repeat(70_000)), "(server.max_header_size)"),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 0\r\n\r\n");
        let app = upstream().script(move |_| text(&answer)).start().await;
        let site = in_front_of(&app, "").await;
        site.get("/x").await.assert_refused(502, "bad_answer");
        let line = site.access("/x").await;
        assert!(line["detail"].as_str().is_some_and(|detail| detail.ends_with(setting)), "{line}");
    }
}

#[tokio::test]
async fn a_head_over_http2_has_the_limits_of_http_1_1() {
    // In HTTP/1.1 a field has 78 bytes, and HTTP/2 counts 106: the limit lies between the two.
    let member = Http2Plan::default().start(|mut asked| async move {
        let fields = if asked.path() == "/fits" { 95 } else { 110 };
        let head = (10..10 + fields)
            .fold(Response::builder(), |head, number| head.header(format!("x-{number:03}"), "y".repeat(69)));
        send(asked.begin(head.body(()).unwrap()), "ok".into(), true).await;
    });
    let member = member.await;
    let config = "server.max_header_size = '8 KiB'\nserver.max_header_fields = 200";
    let site = http2_members::in_front_of(&member, config).await;
    site.get("/fits").await.assert_ok("ok");
    site.get("/x").await.assert_refused(502, "bad_answer");
    let line = site.access("/x").await;
    assert!(
        line["detail"].as_str().is_some_and(|detail| detail.ends_with("(server.max_header_size)")),
        "{line}"
    );
}

/// A member in HTTP/2 that answers `/held` only when there is a permit, and everything else with this head.
async fn member_with(gate: &Arc<Semaphore>, head: fn() -> response::Builder) -> Http2Member {
    let gate = gate.clone();
    let script = move |mut asked: Asked| {
        let gate = gate.clone();
        async move {
            if asked.path() == "/held" {
                gate.acquire().await.unwrap().forget();
                return asked.ok("").await;
            }
            asked.respond.send_response(head().body(()).unwrap(), true).unwrap();
        }
    };
    Http2Plan::default().start(script).await
}

/// Asks for malformed answers while another client waits for its own, over the same connection to the member.
async fn bad_answers_harm_no_other(head: fn() -> response::Builder, times: usize) {
    let gate = Arc::new(Semaphore::new(0));
    let member = member_with(&gate, head).await;
    let site = http2_members::in_front_of(&member, "").await;
    let mut held = site.connect().await;
    held.send("POST /held HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").await;
    eventually("the request", async || (member.requests() == 1).then_some(())).await;
    let mut client = site.connect().await;
    for _ in 0..times {
        client.get("/x").await.assert_refused(502, "bad_answer");
    }
    gate.add_permits(1);
    held.answer().await.assert_ok("");
    assert_eq!((member.connections(), member.requests()), (1, 1 + times));
}

#[tokio::test]
async fn a_long_head_over_http2_does_not_end_the_answers_of_others() {
    // With ten CONTINUATION frames.
    let head = || {
        (0..40).fold(Response::builder(), |head, number| head.header(format!("x-{number}"), "y".repeat(5000)))
    };
    bad_answers_harm_no_other(head, 1).await;
}

#[tokio::test]
async fn many_malformed_answers_over_http2_do_not_end_the_answers_of_others() {
    // The `h2` crate resets the stream, because no body follows. It forgets one such reset with each eighth stream.
    bad_answers_harm_no_other(|| Response::builder().header("content-length", "5"), 1300).await;
}

/// Begins to answer a request, and says with the same bytes that it was not processed: HEADERS with `:status: 200`, and RST_STREAM with
/// REFUSED_STREAM.
fn deny([a, b, c, d]: [u8; 4]) -> Vec<u8> {
    let answer = [0, 0, 1, 1, 4, a, b, c, d, 0x88];
    let reset = [0, 0, 4, 3, 0, a, b, c, d, 0, 0, 0, 7];
    [&answer[..], &reset].concat()
}

#[tokio::test]
async fn a_post_whose_answer_has_begun_is_not_sent_again_although_its_member_denies_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = requests.clone();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(answer_heads(connection, counted.clone(), deny));
        }
    });
    let site = site("pools.app.protocol = \"http2\"").with_member("app", &address).start().await;
    site.post("/", "abc").await.assert_refused(502, "worker_lost");
    assert_eq!(requests.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_answer_that_breaks_after_it_has_begun_is_aborted() {
    let cases = [
        ("Content-Length: 10", "first", "", Step::Close),
        ("Content-Length: 12", "first", "second", Step::Reset),
        ("Transfer-Encoding: chunked", "5\r\nfirst\r\n", "", Step::Close),
        ("Transfer-Encoding: chunked", "5\r\nfirst\r\n", "", Step::Reset),
        ("Transfer-Encoding: chunked", "5\r\nfirst\r\n", "x\r\n", Step::Close),
        ("Transfer-Encoding: chunked", "5\r\nfirst\r\n", "0\r\n", Step::Close),
    ];
    for (field, first, second, end) in cases {
        let head = format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\n{first}");
        let app =
            upstream().does([text(head), vec![Step::Hold], text(second), vec![end]].concat()).start().await;
        let site = in_front_of(&app, "").await;
        for version in ["1.1", "1.0"] {
            let mut client = site.connect().await;
            client.send(format!("GET /{version} HTTP/{version}\r\nHost: a\r\n\r\n")).await;
            app.has_seen(if version == "1.1" { 1 } else { 2 }).await;
            let head = client.next_head().await.unwrap().text();
            client.read_until("first").await;
            app.release(1);
            let (rest, ending) = client.rest().await;
            assert!(!rest.contains("0\r\n\r\n"), "no end was invented: {head}{rest}");
            // The end of this body is the end of the connection.
            let unframed = !head.contains("Content-Length") && !head.contains("chunked");
            assert!(
                !unframed || ending == ConnectionEnding::Reset,
                "HTTP/{version}, {field}: {head}{rest} {ending:?}"
            );
            let line = site.access(&format!("/{version}")).await;
            assert_eq!((&line["status"], &line["aborted"]), (&200.into(), &"worker".into()), "{line}");
        }
        assert_eq!(site.status().await["routes"][0]["aborted"], 2);
    }
}

#[tokio::test]
async fn an_answer_with_too_large_a_head_is_refused() {
    let field = format!("X: {}\r\n", "x".repeat(1000));
    let heads = [field.repeat(70), "X: y\r\n".repeat(101)];
    let scripts = heads.map(|fields| text(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 0\r\n\r\n")));
    let app = upstream().in_turn(scripts).start().await;
    let site = in_front_of(&app, "").await;
    for _ in 0..2 {
        site.get("/").await.assert_refused(502, "bad_answer").assert_says("malformed");
    }
    site.get("/").await.assert_ok("ok");
}

#[tokio::test]
async fn a_refusal_for_a_broken_answer_gives_details_only_in_the_log() {
    let app = upstream().answers("HTTP/1.1 200 OK\r\nSecret : x\r\n\r\n").start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    let answer = client.get("/secret").await;
    answer.assert_refused(502, "bad_answer").assert_no_field("connection");
    assert!(!answer.text().contains("Secret"), "{answer:?}");
    let line = site.access("/secret").await;
    assert!(line["detail"].as_str().unwrap().contains("header line 2 is malformed (Secret )"), "{line}");
    client.get("/secret").await.assert_refused(502, "bad_answer");
    assert_eq!(app.connections(), 2, "a connection out of step is not used again");
}

#[tokio::test]
async fn an_unsolicited_answer_closes_only_its_connection() {
    let unasked = [text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), vec![Step::Hold]].concat();
    let evil = text("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nevil!");
    let app = upstream().in_turn([[unasked, evil].concat()]).start().await;
    let site = in_front_of(&app, "").await;
    site.get("/1").await.assert_ok("ok");
    app.release(1);
    eventually("the unasked answer to be sent", async || (app.running() == 0).then_some(())).await;
    for _ in 0..5 {
        site.get("/2").await.assert_ok("ok");
    }
}

#[tokio::test]
async fn an_unsolicited_answer_is_not_used_for_the_next_request() {
    let both =
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nevil!";
    let app = upstream().in_turn([text(both)]).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    for _ in 0..3 {
        client.get("/").await.assert_ok("ok");
    }
    assert_eq!(app.connections(), 2);
}

#[tokio::test]
async fn a_websocket_to_a_member_without_tls_that_speaks_only_http2_is_refused_and_the_log_says_why() {
    // The first frame of an HTTP/2 server: SETTINGS.
    let app = upstream().answers(b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64").start().await;
    let site = site("pools.app.protocol = \"http2\"").with("app", &app).start().await;
    let mut client = site.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    client.answer().await.assert_refused(502, "bad_answer");
    let line = site.access("/").await;
    assert!(line["detail"].as_str().unwrap().contains("it is in HTTP/2"), "{line}");
    app.only_request();
}
