//! Bodies that stream to a member (`buffer = "none"`) while its answer has begun: who waits for whom, and for how long.

use std::net::Shutdown;
use std::time::Duration;

use hostler_testkit::WAIT_LIMIT;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::time::timeout;

use crate::site;
use crate::tunnels::{Member, in_front};

const MIB: usize = 1 << 20;

/// A route whose bodies stream.
const STREAMING: &str = "pools.app.concurrency = 1\nserver.max_body_size = \"64 MiB\"
routes = [{ match = \"/*\", pool = \"app\", buffer = \"none\" }]";

#[tokio::test]
async fn an_answer_that_pauses_while_its_member_does_not_take_the_body_is_ended_and_its_slot_is_free() {
    let member = Member::start().await;
    let config = format!("pools.app.response_idle_timeout = \"200ms\"\n{STREAMING}");
    let site = in_front(&member, &config).await;
    let mut client = site.connect().await;
    client.send(format!("POST /stuck HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", 64 * MIB)).await;
    let mut end = member.accept().await;
    end.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await;
    client.read_until("first\r\n").await;
    // Much more than the system holds for a member that does not read. Hostler's reset ends it.
    client.send(vec![7; 64 * MIB]).await;
    assert_eq!(client.rest().await.0, "", "the answer is not whole");
    assert!(end.rest().await.0.len() < 64 * MIB, "its connection is closed");
    end.finish_sending().await;
    site.settles("app", 0, 0).await;
    let line = site.access("/stuck").await;
    assert_eq!(
        (&line["aborted"], &line["detail"]),
        (&"worker".into(), &"nothing came in response_idle_timeout".into())
    );
}

#[tokio::test]
async fn an_answer_that_pauses_after_its_member_has_refused_the_body_is_ended() {
    let plan = site(&format!("pools.app.response_idle_timeout = \"200ms\"\n{STREAMING}"));
    let path = plan.folder().join("member.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let site = plan.with_member("app", &format!("unix:{}", path.display())).start().await;
    let mut client = site.connect().await;
    client.send("POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n").await;
    let (mut end, _) = timeout(WAIT_LIMIT, listener.accept()).await.unwrap().unwrap();
    end.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await.unwrap();
    client.read_until("first\r\n").await;
    // From now on writes to the member fail, and its answer may still go on.
    let end = end.into_std().unwrap();
    end.shutdown(Shutdown::Read).unwrap();
    client.send(vec![7; 100_000]).await;
    let line = site.access("/refused").await;
    assert_eq!(
        (&line["aborted"], &line["detail"]),
        (&"worker".into(), &"nothing came in response_idle_timeout".into())
    );
    drop(end);
    site.settles("app", 0, 0).await;
}

#[tokio::test]
async fn an_answer_may_pause_while_its_member_takes_the_body() {
    let member = Member::start().await;
    let config = format!("pools.app.response_idle_timeout = \"2s\"\n{STREAMING}");
    let site = in_front(&member, &config).await;
    let mut client = site.connect().await;
    client.send(format!("POST /takes HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", 64 * MIB)).await;
    let mut end = member.accept().await;
    end.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await;
    client.read_until("first").await;
    let taking = async {
        // In all it takes longer than a pause may.
        let mut pace = tokio::time::interval(Duration::from_millis(150));
        for _ in 0..16 {
            pace.tick().await;
            end.read(4 * MIB).await;
        }
        end.send("0\r\n\r\n").await;
    };
    tokio::join!(client.send(vec![7; 64 * MIB]), taking);
    client.read_until("0\r\n\r\n").await;
}
