//! What a member in HTTP/2 says that it accepts, and what follows for requests.

use crate::http2_member::Http2Plan;
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
