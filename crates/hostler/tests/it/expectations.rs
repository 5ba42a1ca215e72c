//! Expect: 100-continue (RFC 9110 section 10.1.1).

use hostler_testkit::upstream;

use crate::{in_front_of, with_a_full_queue};

const ASKING: &str = "PUT /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n";

#[tokio::test]
async fn a_client_that_waits_for_100_continue_gets_it() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    client.send(format!("{ASKING}Content-Length: 4\r\n\r\n")).await;
    assert_eq!(client.next_head().await.unwrap().text(), "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(app.requests().len(), 0, "no slot is taken while the body is not there");
    client.send("body").await;
    client.answer().await.assert_ok("ok");
    let seen = app.only_request();
    assert_eq!((seen.body.as_slice(), seen.field("expect")), (&b"body"[..], None));
}

#[tokio::test]
async fn a_client_that_already_sends_its_body_gets_no_100_continue() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    for _ in 0..2 {
        client.send(format!("{ASKING}Content-Length: 4\r\n\r\nbody")).await;
        let answer = client.answer().await;
        assert_eq!(answer.assert_ok("ok").interim, []);
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_before_it_is_sent() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.max_body_size = '1 KiB'").await;
    let mut client = site.connect().await;
    client.send(format!("{ASKING}Content-Length: 1025\r\n\r\n")).await;
    let answer = client.answer().await;
    assert_eq!(answer.assert_refused(413, "body_too_large").interim, []);
    client.assert_closed().await;
}

#[tokio::test]
async fn a_body_that_never_fits_into_the_spool_is_refused_before_it_is_sent() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.spool_size = '64 KiB'\nserver.body_memory = '1 KiB'").await;
    let mut client = site.connect().await;
    // One client can have half of the spool.
    client.send(format!("{ASKING}Content-Length: 32769\r\n\r\n")).await;
    let answer = client.answer().await;
    assert_eq!(answer.assert_refused(507, "spool_size").interim, []);
    client.assert_closed().await;
}

#[tokio::test]
async fn a_full_queue_refuses_a_large_body_before_it_is_sent_and_keeps_the_connection_of_a_small_one() {
    let app = upstream().holds_requests().start().await;
    let (site, [mut first, mut second]) = with_a_full_queue(&app).await;

    let large = "PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n".to_owned();
    for head in [large, format!("{ASKING}Content-Length: 4\r\n\r\n")] {
        let mut client = site.connect().await;
        client.send(head).await;
        let answer = client.answer().await;
        assert_eq!(answer.assert_refused(503, "queue_full").interim, []);
        client.assert_closed().await;
    }
    let mut client = site.connect().await;
    for _ in 0..2 {
        client.send("PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody").await;
        client.answer().await.assert_refused(503, "queue_full").assert_no_field("connection");
    }
    assert_eq!(site.pool("app").await["counters"]["refused_full"], 4);
    app.release_all();
    first.answer().await.assert_ok("/first");
    second.answer().await.assert_ok("/second");
}

#[tokio::test]
async fn a_request_without_a_route_is_refused_before_its_body_is_sent() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "[[routes]]\nmatch = '/other'\npool = 'app'").await;
    let mut client = site.connect().await;
    client.send(format!("{ASKING}Content-Length: 4\r\n\r\n")).await;
    let answer = client.answer().await;
    assert_eq!(answer.assert_refused(404, "no_route").interim, []);
    client.assert_closed().await;
}

#[tokio::test]
async fn a_streamed_body_gets_100_continue_when_it_has_a_slot() {
    let app = upstream().holds_requests().at_head().start().await;
    let config = "pools.app.concurrency = 1\n[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'";
    let site = in_front_of(&app, config).await;
    let mut first = site.begin("/first").await;
    site.settles("app", 1, 0).await;
    let mut second = site.connect().await;
    second.send(format!("{ASKING}Content-Length: 4\r\n\r\n")).await;
    site.settles("app", 1, 1).await;
    app.release(1);
    first.answer().await.assert_ok("/first");
    assert_eq!(second.next_head().await.unwrap().text(), "HTTP/1.1 100 Continue\r\n\r\n");
    second.send("body").await;
    app.release(1);
    second.answer().await.assert_ok("/x");
}

#[tokio::test]
async fn another_expectation_is_refused() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    for expectation in ["tea", "100-continue, tea", "100-continue\r\nExpect: tea"] {
        let answer = site.send(format!("GET / HTTP/1.1\r\nHost: a\r\nExpect: {expectation}\r\n\r\n")).await;
        answer.assert_refused(417, "expectation").assert_says("Expect");
    }
    assert_eq!(app.requests().len(), 0);
}

#[tokio::test]
async fn expectations_of_http_1_0_are_ignored() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let answer = site.send("PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi").await;
    assert_eq!(answer.assert_ok("ok").interim, []);
}
