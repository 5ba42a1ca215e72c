//! How large a head, how much of bodies and how many streams a member in HTTP/2 accepts, and what follows for requests.

use std::future::pending;

use hostler_testkit::{eventually, request};

use crate::http2::{talk, whole};
use crate::http2_member::{Asked, Http2Plan};
use crate::http2_members::{behind_a_gate, in_front_of};

/// Does not read the body of `/unread`.
async fn reads_others(mut asked: Asked) {
    if asked.path() == "/unread" {
        return pending().await;
    }
    let (body, _) = asked.read().await;
    asked.ok(body).await;
}

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
    // Its connections have a window of 64 KiB, and so have its streams.
    let member = Http2Plan::default().start(reads_others).await;
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

#[tokio::test]
async fn uploads_of_a_client_that_the_member_does_not_read_leave_room_for_its_others() {
    let member = Http2Plan::default().start(reads_others).await;
    let site = in_front_of(&member, "[[routes]]\nmatch = \"*\"\npool = \"app\"\nbuffer = \"none\"\n").await;
    let mut talk = talk(&site).await;
    let post = |path: &str| http::Request::post(format!("http://site.test{path}")).body(()).unwrap();
    let mut unread = Vec::new();
    // Together they have more unread than the window of a connection, with 256 KiB for each stream.
    for _ in 0..6 {
        let (answer, mut sent) = talk.begin(post("/unread"), false).await;
        sent.send_data(vec![7; 600_000].into(), true).unwrap();
        unread.push((answer, sent));
    }
    eventually("the requests", async || (member.requests() == 6).then_some(())).await;
    let large = vec![7; 2_000_000];
    let (answer, mut sent) = talk.begin(post("/"), false).await;
    sent.send_data(large.clone().into(), true).unwrap();
    assert_eq!(whole(answer).await.1, large);
}

#[tokio::test]
async fn requests_that_come_before_the_stream_limit_is_known_keep_to_it() {
    const HELD: usize = 20;
    let plan = Http2Plan { most_streams: Some(2), ..Http2Plan::default() };
    let (member, opened) = behind_a_gate(plan).await;
    let site = in_front_of(&member, "server.threads = 1").await;
    let mut held = Vec::new();
    for _ in 0..HELD {
        held.push(site.begin("/held").await);
    }
    eventually("all requests", async || (member.requests() == HELD).then_some(())).await;
    opened.add_permits(HELD);
    for mut client in held {
        client.answer().await.assert_ok("/held");
    }
}
