//! A request that is too large or too slow is refused with a clear text, and its connection is closed.

use hostler_testkit::{chunked, ok, request, text, upstream};

use crate::{http2, in_front_of};

/// A head of exactly this many bytes.
fn head_of(bytes: usize) -> String {
    let start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    format!("{start}{}\r\n\r\n", "x".repeat(bytes - start.len() - 4))
}

#[tokio::test]
async fn a_header_block_may_have_64_kib_and_not_a_byte_more() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    site.send(head_of(64 * 1024)).await.assert_ok("ok");
    let mut client = site.connect().await;
    client.send(head_of(64 * 1024 + 1)).await;
    let answer = client.answer().await;
    answer
        .assert_refused(431, "header_too_large")
        .assert_says("65536 bytes")
        .assert_says("server.max_header_size");
    client.assert_closed().await;
}

#[tokio::test]
async fn a_header_block_without_end_is_refused_as_soon_as_it_is_too_large() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    client.send(&head_of(100_000)[..70_000]).await;
    client.answer().await.assert_refused(431, "header_too_large");
}

#[tokio::test]
async fn a_request_line_without_end_is_refused() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let answer = site.send(format!("GET /{}", "x".repeat(70_000))).await;
    answer
        .assert_refused(414, "start_line_too_large")
        .assert_says("start line")
        .assert_says("server.max_header_size");
}

#[tokio::test]
async fn a_header_may_have_100_fields_and_not_one_more() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let with = |fields: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(fields - 1));
    site.send(with(100)).await.assert_ok("ok");
    let answer = site.send(with(101)).await;
    answer.assert_refused(431, "too_many_fields").assert_says("100").assert_says("server.max_header_fields");
}

#[tokio::test]
async fn the_limits_of_a_head_can_be_set() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.max_header_size = '8 KiB'\nserver.max_header_fields = 2").await;
    site.send(head_of(8192)).await.assert_ok("ok");
    site.send(head_of(8193)).await.assert_refused(431, "header_too_large");
    let long_line = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(8192));
    site.send(long_line).await.assert_refused(414, "start_line_too_large");
    site.send("GET / HTTP/1.1\r\nHost: a\r\nB: c\r\nD: e\r\n\r\n")
        .await
        .assert_refused(431, "too_many_fields");
}

#[tokio::test]
async fn the_allowed_number_of_fields_passes_in_every_protocol() {
    let answer = |fields: usize| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{}\r\nok", "X: y\r\n".repeat(fields - 1))
    };
    let app = upstream()
        .script(move |seen| match seen.target().strip_prefix("/answer/") {
            Some(fields) => text(answer(fields.parse().unwrap())),
            None => ok("ok"),
        })
        .start()
        .await;
    let site = in_front_of(&app, "server.max_header_fields = 1000").await;
    let with = |fields: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(fields - 1));
    site.send(with(1000)).await.assert_ok("ok");
    site.send(with(1001)).await.assert_refused(431, "too_many_fields").assert_says("1000");
    let mut client = http2::talk(&site).await;
    for (fields, status) in [(1000, 200), (1001, 431)] {
        let mut request = http2::get("/");
        // The authority is one of them.
        for _ in 1..fields {
            request.headers_mut().append("x", "y".parse().unwrap());
        }
        assert_eq!(client.ask(request).await.0.status(), status, "{fields}");
    }
    assert!(
        app.requests().iter().all(|seen| seen.head.all("x").len() == 999),
        "all of them, and nothing else"
    );
    assert_eq!(site.get("/answer/1000").await.assert_ok("ok").head.all("x").len(), 999);
    site.get("/answer/1001").await.assert_refused(502, "bad_answer");
}

#[tokio::test]
async fn a_body_may_have_10_mib_and_not_a_byte_more() {
    const MOST: usize = 10 << 20;
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    site.post("/", vec![b'x'; MOST]).await.assert_ok("ok");
    assert_eq!(app.only_request().body.len(), MOST);

    let mut client = site.connect().await;
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", MOST + 1)).await;
    let answer = client.answer().await;
    answer.assert_refused(413, "body_too_large").assert_says("10485760 bytes").assert_says("max_body_size");
    client.assert_closed().await;
    assert_eq!(app.requests().len(), 1);
}

#[tokio::test]
async fn a_chunked_body_is_counted_while_it_arrives() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.max_body_size = '100 KiB'").await;
    let chunks = |bytes: usize| {
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        [&head[..], &chunked(vec![b'x'; bytes].chunks(999))].concat()
    };
    site.send(chunks(100 << 10)).await.assert_ok("ok");
    let answer = site.send(chunks((100 << 10) + 1)).await;
    answer.assert_refused(413, "body_too_large").assert_says("102400 bytes");
    assert_eq!(app.requests().len(), 1);
}

#[tokio::test]
async fn a_client_that_sends_on_after_a_413_can_still_read_it() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.max_body_size = '1 KiB'").await;
    let mut client = site.connect().await;
    client.send(request("POST /", "", &vec![b'x'; 3 << 20])).await;
    client.answer().await.assert_refused(413, "body_too_large");
}

#[tokio::test]
async fn a_route_can_have_its_own_limit() {
    let app = upstream().start().await;
    let config = "
        server.max_body_size = 10
        [[routes]]
        match = '*'
        pool = 'app'
        [[routes]]
        match = '/upload'
        pool = 'app'
        max_body_size = 20";
    let site = in_front_of(&app, config).await;
    site.post("/", [b'x'; 11]).await.assert_refused(413, "body_too_large");
    site.post("/upload", [b'x'; 20]).await.assert_ok("ok");
    site.post("/upload", [b'x'; 21]).await.assert_refused(413, "body_too_large");
}

#[tokio::test]
async fn a_streamed_body_has_its_limit_as_well() {
    let app = upstream().start().await;
    let config = "[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'\nmax_body_size = 1000";
    let site = in_front_of(&app, config).await;
    site.post("/", [b'x'; 1001]).await.assert_refused(413, "body_too_large");
    assert_eq!(app.requests().len(), 0);
    let body = chunked([vec![b'x'; 900], vec![b'x'; 101]]);
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    site.send([&head[..], &body].concat()).await.assert_refused(413, "body_too_large");
    assert!(
        app.requests().iter().all(|seen| !seen.is_whole),
        "the member must not take the rest for the whole"
    );
}

#[tokio::test]
async fn a_head_that_does_not_come_in_time_is_refused() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.header_timeout = '1s'").await;
    for start in ["G", "GET / HTTP/1.1\r\nHost: a\r\nX: "] {
        let mut client = site.connect().await;
        client.send(start).await;
        let answer = client.answer().await;
        answer.assert_refused(408, "header_timeout").assert_says("server.header_timeout");
        client.assert_closed().await;
    }
}

#[tokio::test]
async fn a_head_that_arrives_byte_by_byte_times_out_too() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.header_timeout = '1s'").await;
    let mut client = site.connect().await;
    client.send("GET / HTTP/1.1\r\n").await;
    hostler_testkit::eventually("the refusal", async || {
        client.send_some(b"X: y\r\n");
        site.access_lines().into_iter().find(|line| line["refusal"] == "header_timeout")
    })
    .await;
    client.answer().await.assert_refused(408, "header_timeout");
}

#[tokio::test]
async fn a_body_that_stalls_is_refused_and_never_held_a_slot() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.body_timeout = '200ms'").await;
    for body in ["Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhal"] {
        let mut client = site.connect().await;
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{body}")).await;
        let answer = client.answer().await;
        answer.assert_refused(408, "body_timeout").assert_says("server.body_timeout");
        client.assert_closed().await;
    }
    assert_eq!(app.requests().len(), 0);
}

#[tokio::test]
async fn a_client_that_reads_nothing_of_its_answer_is_disconnected() {
    let large = vec![b'x'; 20 << 20];
    let app = upstream().does(hostler_testkit::ok(large)).start().await;
    let site = in_front_of(&app, "server.send_timeout = '300ms'").await;
    let mut client = hostler_testkit::client_with_window(4096, site.address()).await;
    client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(site.access("/large").await["aborted"], "client stalled");
    client.answer().await.assert_broken();
}
