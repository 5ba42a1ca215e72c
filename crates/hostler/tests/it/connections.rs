//! Client connections: keep-alive, pipelining, closing, and their limit.

use std::io::ErrorKind;

use hostler_testkit::{ConnectionEnding, eventually, ok, text, upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::in_front_of;

#[tokio::test]
async fn a_connection_serves_one_request_after_another() {
    let app = upstream().script(|seen| ok(seen.target())).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    for path in ["/1", "/2", "/3"] {
        client.get(path).await.assert_ok(path).assert_no_field("connection");
    }
    assert_eq!(site.status().await["connections"]["open"], 1);
    assert_eq!(app.connections(), 1, "the connection to the member is kept as well");
}

/// Modules for NTLM in Node keep the user with the socket.
#[tokio::test]
async fn no_client_gets_a_connection_to_a_member_on_which_another_has_authenticated_itself() {
    let app = upstream().script(|seen| ok(seen.target())).start().await;
    let site = in_front_of(&app, "server.threads = 1").await;
    for (path, credentials) in
        [("/1", "Basic YTpi"), ("/2", "NTLM TlRM"), ("/3", "negotiate YII="), ("/4", "Bearer NTLM")]
    {
        let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: {credentials}\r\n\r\n");
        site.send(head).await.assert_ok(path);
    }
    site.get("/5").await.assert_ok("/5");
    let connections: Vec<_> = app.requests().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [1, 1, 2, 3, 3]);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let app = upstream()
        .script(|seen| ok(format!("{} {}", seen.target(), String::from_utf8_lossy(&seen.body))))
        .start()
        .await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    let (get, post) = ("HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    let chunked = "HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n";
    client.send(format!("GET /1 {get}POST /2 {post}POST /3 {chunked}\r\n\r\nGET /4 {get}GET /5 {get}")).await;
    for body in ["/1 ", "/2 abc", "/3 de", "/4 ", "/5 "] {
        client.answer().await.assert_ok(body);
    }
    assert_eq!(app.targets(), ["/1", "/2", "/3", "/4", "/5"]);
    assert_eq!(app.most_running(), 1, "the second begins when the first is answered");
}

#[tokio::test]
async fn a_hundred_pipelined_requests_in_pieces_of_any_size_are_all_answered() {
    let app = upstream().script(|seen| ok(seen.target())).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    let requests: String = (0..100).map(|n| format!("GET /{n} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    for piece in requests.as_bytes().chunks(997) {
        client.send(piece).await;
    }
    for n in 0..100 {
        client.answer().await.assert_ok(&format!("/{n}"));
    }
}

#[tokio::test]
async fn a_request_that_comes_byte_by_byte_is_answered() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    for byte in b"\r\nPOST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" {
        client.send([*byte]).await;
    }
    client.answer().await.assert_ok("ok");
    assert_eq!(app.only_request().body, b"abc");
}

#[tokio::test]
async fn a_client_that_sends_connection_close_gets_its_connection_closed() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Close, x\r\n\r\n").await;
    client.answer().await.assert_ok("ok").assert_field("connection", "close");
    client.assert_closed().await;
}

#[tokio::test]
async fn the_connection_of_a_last_request_is_gone_with_its_answer() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    for request in ["GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"] {
        let mut client = TcpStream::connect(site.address()).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
        // Only a connection that is closed in both directions is reset by more bytes.
        client.write_all(b"x").await.unwrap();
        let reset = eventually("a reset", async || client.take_error().unwrap()).await;
        assert!(matches!(reset.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{reset}");
    }
}

#[tokio::test]
async fn a_client_that_sends_more_than_its_last_request_gets_its_answer_without_a_reset() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = TcpStream::connect(site.address()).await.unwrap();
    let last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    client.write_all(format!("{last}GET /more HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    client.write_all(b"more").await.unwrap();
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    assert!(client.take_error().unwrap().is_none());
    assert_eq!(app.targets(), ["/"]);
}

#[tokio::test]
async fn http_1_0_is_answered_and_closed() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    client.send("GET /x HTTP/1.0\r\n\r\n").await;
    client.answer().await.assert_ok("ok").assert_field("content-length", "2");
    client.assert_closed().await;
    let seen = app.only_request();
    assert_eq!(seen.head.start_line(), "GET /x HTTP/1.1");
    assert_eq!(seen.field("host"), Some(site.address().to_string()), "HTTP/1.1 does not go without Host");
}

#[tokio::test]
async fn http_1_0_is_kept_with_connection_keep_alive() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    for _ in 0..2 {
        client.send("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n").await;
        client.answer().await.assert_ok("ok").assert_field("connection", "keep-alive");
    }
}

#[tokio::test]
async fn http_1_0_gets_an_answer_of_unknown_length_up_to_the_close() {
    let app = upstream()
        .answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        .start()
        .await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    client.send("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n").await;
    let answer = client.answer().await;
    answer.assert_ok("abc").assert_no_field("transfer-encoding").assert_field("connection", "close");
}

#[tokio::test]
async fn an_answer_of_unknown_length_is_chunked_for_http_1_1() {
    let closing = [text("HTTP/1.1 200 OK\r\n\r\nuntil the end"), vec![hostler_testkit::Step::Close]].concat();
    let app = upstream().does(closing).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    for _ in 0..2 {
        client.get("/").await.assert_ok("until the end").assert_field("transfer-encoding", "chunked");
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_without_an_answer() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.idle_timeout = '700ms'").await;
    let mut fresh = site.connect().await;
    fresh.assert_closed().await;
    let mut used = eventually("a connection to be used before its time is over", async || {
        let mut used = site.connect().await;
        used.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        used.maybe_answer("GET").await?.assert_ok("ok");
        Some(used)
    })
    .await;
    used.assert_closed().await;
}

#[tokio::test]
async fn a_connection_over_the_limit_gets_a_refusal() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.max_connections = 2").await;
    let mut first = site.connect().await;
    let mut second = site.connect().await;
    first.get("/").await.assert_ok("ok");
    second.get("/").await.assert_ok("ok");

    let mut third = site.connect().await;
    let answer = third.answer().await;
    answer.assert_refused(503, "too_many_connections").assert_says("server.max_connections");
    answer.assert_field("retry-after", "1").assert_field("connection", "close");
    third.assert_closed().await;
    first.get("/").await.assert_ok("ok");

    drop(second);
    eventually("room for another", async || (site.status().await["connections"]["open"] == 1).then_some(()))
        .await;
    site.get("/").await.assert_ok("ok");
    assert_eq!(site.status().await["connections"]["refused"], 1);
}

#[tokio::test]
async fn a_client_that_has_finished_sending_still_gets_its_answer() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    client.send("GET /half HTTP/1.1\r\nHost: a\r\n\r\n").await;
    app.has_seen(1).await;
    client.finish_sending().await;
    client.answer().await.assert_ok("ok");
    assert_eq!(client.rest().await, (String::new(), ConnectionEnding::Cut));
}

#[tokio::test]
async fn a_client_that_finishes_sending_while_its_request_waits_has_left() {
    let app = upstream().holds_requests().start().await;
    let config = "pools.app.concurrency = 1\n[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'";
    let site = in_front_of(&app, config).await;
    let mut running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    let mut waits = site.begin("/waits").await;
    site.settles("app", 1, 1).await;
    // It does not wait for a slot, but for the answer to the first request.
    let mut follows = site.begin("/running").await;
    waits.finish_sending().await;
    follows.finish_sending().await;
    for client in [&mut waits, &mut follows] {
        assert_eq!(client.rest().await.0, "");
    }
    site.settles("app", 1, 0).await;
    assert_eq!(site.access("/waits").await["refusal"], "client_left");
    app.release_all();
    running.answer().await.assert_ok("/running");
    assert_eq!(app.targets(), ["/running"]);
}

#[tokio::test]
async fn a_client_that_leaves_while_its_upload_waits_unread_leaves_the_queue() {
    let app = upstream().holds_requests().start().await;
    let config = "pools.app.concurrency = 1\n[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'";
    let site = in_front_of(&app, config).await;
    let mut running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    // More than Hostler reads of a request that waits, and less than the system holds.
    let mut waits = site.connect().await;
    waits.send("POST /waits HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n").await;
    waits.send(vec![7; 40_000]).await;
    site.settles("app", 1, 1).await;
    drop(waits);
    site.settles("app", 1, 0).await;
    assert_eq!(site.access("/waits").await["refusal"], "client_left");
    app.release_all();
    running.answer().await.assert_ok("/running");
    assert_eq!(app.targets(), ["/running"]);
}

#[tokio::test]
async fn a_refusal_keeps_a_connection_that_is_in_step() {
    let app = upstream().script(|seen| ok(seen.target())).start().await;
    let site = in_front_of(&app, "[[routes]]\nmatch = '/app/*'\npool = 'app'").await;
    let mut client = site.connect().await;
    let with = "HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send(format!("HEAD /none {with}GET /none {with}GET /app/1 {with}")).await;
    let head = client.answer_to("HEAD").await;
    head.assert_refused(404, "no_route").assert_no_field("connection");
    let get = client.answer().await;
    get.assert_refused(404, "no_route")
        .assert_field("content-length", &head.field("content-length").unwrap());
    client.answer().await.assert_ok("/app/1");
    // Not if a body follows that the member does not read.
    client.post("/none", "body").await.assert_refused(404, "no_route").assert_field("connection", "close");
    client.assert_closed().await;
}

#[tokio::test]
async fn a_browser_gets_a_refusal_as_a_page_and_an_api_client_as_a_problem() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "[[routes]]\nmatch = '/app/*'\npool = 'app'").await;
    let mut client = site.connect().await;
    let asking = |accept: &str| format!("GET /none HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n");
    client.send(asking("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")).await;
    let page = client.answer().await;
    page.assert_refused(404, "no_route").assert_field("content-type", "text/html; charset=utf-8");
    let id = page.field("x-request-id").unwrap();
    page.assert_says("<title>404 Not Found</title>").assert_says(&format!("<dd>{id}</dd>"));
    assert!(!page.text().contains("{{"), "all places of the template are filled: {}", page.text());
    client.send(asking("application/json")).await;
    let problem = client.answer().await;
    problem.assert_refused(404, "no_route").assert_field("content-type", "application/problem+json");
    let members = problem.json();
    assert_eq!(members["status"], 404);
    assert_eq!(members["request_id"], problem.field("x-request-id").unwrap());
    client.send(asking("*/*")).await;
    let text = client.answer().await;
    text.assert_field("content-type", "text/plain; charset=utf-8");
    assert_eq!(text.text(), "404 Not Found\nno route for this host and path\n");
}

#[tokio::test]
async fn a_refusal_of_one_pipelined_request_leaves_the_others_alone() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1\npools.app.queue.timeout = '100ms'").await;
    let mut running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    let mut client = site.connect().await;
    client.send(hostler_testkit::request("POST /refused", "", &vec![b'x'; 50_000])).await;
    client.send("GET /later HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.answer().await.assert_refused(503, "queue_timeout").assert_no_field("connection");
    app.release_all();
    running.answer().await.assert_ok("/running");
    let later = client.answer().await;
    assert!(later.status == 503 || later.body == b"/later", "{later:?}");
    assert!(!app.targets().contains(&"/refused".to_owned()));
}
