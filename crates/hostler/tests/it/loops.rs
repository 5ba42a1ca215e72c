//! Requests that come back to a Hostler where they have been, and chains of Hostlers that are no loop.

use hostler_testkit::{Site, eventually, held_port, upstream};

use crate::{in_front_of, site};

async fn before(member: &Site) -> Site {
    site("").with_member("app", &member.address().to_string()).start().await
}

#[tokio::test]
async fn a_looping_request_is_refused_at_its_second_pass() {
    let port = held_port();
    let one = site("").with_member("app", &port.address().to_string()).start().await;
    let two = before(&one).await;
    one.rewrite(&format!("[pools.app]\nmembers = [\"{}\"]\n", two.address()));
    one.command(&["reload"]).await.assert_exit(0);
    let answer = one.get("/").await;
    answer.assert_refused(508, "loop").assert_says("is in a loop");
    let lines = eventually("both lines of the first", async || {
        let lines = one.access_lines();
        (lines.len() == 2).then_some(lines)
    });
    let lines = lines.await;
    assert_eq!(lines.iter().filter(|line| line["refusal"] == "loop").count(), 1, "{lines:?}");
    assert_eq!(two.exchanges(1).await.len(), 1, "it has seen it once");
}

#[tokio::test]
async fn a_hostler_behind_a_hostler_is_no_loop() {
    let app = upstream().start().await;
    let host = in_front_of(&app, "").await;
    let edge = before(&host).await;
    let outer = before(&edge).await;
    outer.get("/").await.assert_ok("ok");
    let via = app.only_request().head.all("via");
    assert_eq!(via.len(), 3, "{via:?}");
    assert!(via[0] != via[1] && via[1] != via[2] && via[0] != via[2], "{via:?}");
    // Other names in `Via`, and other proxies of the same name, are ignored.
    let answer =
        outer.send("GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 hostler, 1.0 hostler-0123456789abcdef\r\n\r\n");
    answer.await.assert_ok("ok");
}
