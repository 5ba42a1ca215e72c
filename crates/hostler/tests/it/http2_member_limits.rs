//! How large a head and how much of bodies a member in HTTP/2 accepts, and what follows for requests.

use std::future::pending;

use hostler_testkit::{eventually, request};

use crate::http2_member::{Asked, Http2Plan};
use crate::http2_members::in_front_of;

#[tokio::test]
async fn a_head_that_is_larger_than_the_member_accepts_is_refused_and_not_sent() {
    let plan = Http2Plan { most_head: Some(4000), ..Http2Plan::default() };
    let member = plan.start(|asked| asked.ok("")).await;
    let site = in_front_of(&member, "").await;
    let mut client = site.connect().await;
    // The limit is known once the first request has been answered.
    client.get("/").await.assert_ok("");
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {}\r\n\r\n", "x".repeat(4000))).await;
    client.answer().await.assert_refused(431, "member_head_limit").assert_says("4000 bytes");
    client.get("/").await.assert_ok("");
    assert_eq!((member.requests(), member.connections()), (2, 1));
}

#[tokio::test]
async fn an_upload_that_the_member_does_not_read_holds_up_no_other() {
    let script = async |mut asked: Asked| {
        if asked.path() == "/unread" {
            return pending().await;
        }
        let (body, _) = asked.read().await;
        asked.ok(body).await;
    };
    // Its connections have a window of 64 KiB, and so have its streams.
    let member = Http2Plan::default().start(script).await;
    let site = in_front_of(&member, "").await;
    let large = vec![7; 200_000];
    let mut unread = site.connect().await;
    unread.send(request("POST /unread", "", &large)).await;
    eventually("the request", async || (member.requests() == 1).then_some(())).await;
    assert_eq!(site.post("/", &large).await.assert_status(200).body, large);
    for _ in 0..3 {
        site.post("/", "abc").await.assert_ok("abc");
        site.get("/").await.assert_ok("");
    }
    assert_eq!(member.connections(), 2);
}
