//! Request bodies: the chunked coding, and requests of HTTP/2 without a body.

use hostler_testkit::{Frame, frame_client, upstream};

use crate::in_front_of;

const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

#[tokio::test]
async fn a_malformed_chunked_body_is_refused_and_never_reaches_the_member() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let cases = [
        ("g\r\n", "chunk size"),
        ("\r\n", "chunk size"),
        ("-1\r\n", "chunk size"),
        ("0x1\r\na\r\n", "chunk size"),
        ("1_0\r\n", "chunk size"),
        (" 1\r\na\r\n", "chunk size"),
        ("fffffffffffffffff\r\n", "chunk size"),
        ("1\na\r\n", "chunk size"),
        ("1 \r\na\r\n", "extension"),
        ("1;\u{0}\r\na\r\n", "extension"),
        ("1;x\na\r\n", "extension"),
        ("1\r\nab\r\n", "CR LF"),
        ("1\r\na\n0\r\n\r\n", "CR LF"),
        ("1\r\na0\r\n\r\n", "CR LF"),
        ("1\ra\r\n", "CR LF"),
        ("0\r\n\n", "CR LF"),
        ("0\r\nX: y\n\r\n", "CR LF"),
        ("0\r\nX : y\r\n\r\n", "trailer"),
        ("0\r\n X: y\r\n\r\n", "trailer"),
        ("0\r\nX\r\n\r\n", "trailer"),
    ];
    for (body, word) in cases {
        let mut client = site.connect().await;
        client.send(format!("{CHUNKED}{body}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 400, "{body:?}{answer:?}");
        answer.assert_refused(400, "bad_body").assert_says(word).assert_field("connection", "close");
        client.assert_closed().await;
        assert_eq!(app.targets(), Vec::<String>::new(), "after {body:?}");
    }
}

#[tokio::test]
async fn endless_chunk_extensions_are_refused() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let answer =
        site.send(format!("{CHUNKED}{}", format!("1;{}\r\nx\r\n", "e".repeat(100)).repeat(1000))).await;
    answer.assert_refused(400, "bad_body").assert_says("extensions");
    let answer =
        site.send(format!("{CHUNKED}0\r\n{}", "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".repeat(1000))).await;
    answer.assert_refused(400, "bad_body").assert_says("trailer section");
}

#[tokio::test]
async fn a_chunked_body_reaches_the_member_with_its_length() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    site.send(format!("{CHUNKED}3;ext=\"a;b\"\r\nabc\r\n0A\r\n0123456789\r\n000\r\n\r\n"))
        .await
        .assert_ok("ok");
    let seen = app.only_request();
    assert_eq!(seen.body, b"abc0123456789");
    assert_eq!(
        (seen.field("content-length").as_deref(), seen.field("transfer-encoding")),
        (Some("13"), None)
    );
}

#[tokio::test]
async fn an_empty_body_stays_empty() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    site.send(format!("{CHUNKED}0\r\n\r\n")).await.assert_ok("ok");
    site.post("/", "").await.assert_ok("ok");
    site.get("/").await.assert_ok("ok");
    let lengths: Vec<_> = app.requests().iter().map(|seen| seen.field("content-length")).collect();
    assert_eq!(lengths, [Some("0".into()), Some("0".into()), None]);
}

#[tokio::test]
async fn trailers_of_a_request_reach_the_member() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let fields = "Trailer: X-Sum\r\n";
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}Transfer-Encoding: chunked\r\n\r\n");
    site.send(format!("{head}3\r\nabc\r\n0\r\nX-Sum: 9\r\nContent-Length: 7\r\nHost: evil\r\n\r\n"))
        .await
        .assert_ok("ok");
    let seen = app.only_request();
    assert_eq!((seen.body.as_slice(), seen.trailers), (&b"abc"[..], vec!["X-Sum: 9".to_owned()]));
}

#[tokio::test]
async fn trailers_cannot_carry_fields_that_belong_to_the_head() {
    let app = upstream().start().await;
    let route = "request_headers = { set = { X-User = 'me' }, remove = ['X-Secret'] }";
    for buffer in ["full", "none"] {
        let config = format!("[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = '{buffer}'\n{route}");
        let site = in_front_of(&app, &config).await;
        let evil = [
            "X-Forwarded-For",
            "X_Forwarded_For",
            "X-Real-IP",
            "Forwarded",
            "Client-Cert",
            "Authorization",
            "Cookie",
            "Content-Type",
            "Content-Length",
            "Content-Encoding",
            "Host",
            "Transfer-Encoding",
            "Connection",
            "Expect",
            "Trailer",
            "If-Match",
            "X-Request-Id",
            "Hostler-Any",
            "X-User",
            "x_user",
            "X-Secret",
        ];
        let lines: String = evil.iter().map(|name| format!("{name}: evil\r\n")).collect();
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n";
        site.send(format!("{head}{lines}X-Sum: 9\r\nContent-Digest: x\r\n\r\n")).await.assert_ok("ok");
        let seen = app.requests().pop().unwrap();
        assert_eq!(seen.trailers, ["X-Sum: 9", "Content-Digest: x"], "{buffer}");
        site.send(format!("{head}{lines}\r\n")).await.assert_ok("ok");
        let seen = app.requests().pop().unwrap();
        assert_eq!((seen.body.as_slice(), seen.trailers), (&b"abc"[..], Vec::<String>::new()), "{buffer}");
    }
}

#[tokio::test]
async fn a_request_with_a_truncated_body_reaches_no_member() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    client.send("POST /left HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf").await;
    drop(client);
    let line = site.access("/left").await;
    assert_eq!(
        (&line["status"], &line["refusal"], &line["aborted"]),
        (&499.into(), &"client_left".into(), &"client".into())
    );
    assert_eq!(app.requests().len(), 0);
}

/// As a program sends it that learns only after the head that there is no body.
#[tokio::test]
async fn a_request_of_http2_that_an_empty_frame_ends_has_no_body() {
    let fresh = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello";
    let app = upstream().answers(fresh).start().await;
    let site = in_front_of(&app, "[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n").await;
    let mut client = frame_client(site.address()).await;
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")];
    for stream in [1, 3] {
        let end = Frame::new(Frame::DATA, Frame::END_STREAM, stream, "");
        client.send(&[Frame::head(stream, &fields), end]).await;
        assert_eq!(client.next_of(Frame::HEADERS).await.stream, stream);
    }
    let seen = app.only_request();
    assert_eq!((seen.field("content-length"), seen.field("transfer-encoding")), (None, None));
}
