//! Streams: answers without end take no slot, are limited, and end in order. Raw bytes on both sides.

use bytes::Bytes;
use flate2::read::GzDecoder;
use hostler_testkit::{Client, ConnectionEnding, Site, WAIT_LIMIT, client_with_window, eventually, within};
use http::Response;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::http2::{get, talk};
use crate::http2_member::{Asked, Http2Plan};
use crate::tunnels::{End, Member, in_front};

const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const END: &str = "0\r\n\r\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn request(method: &str, fields: &str) -> String {
    format!("{method} /events HTTP/1.1\r\nHost: a.test\r\n{fields}Content-Length: 0\r\n\r\n")
}

/// An open stream that has carried one event: the client's end and the member's end.
async fn opened(site: &Site, member: &Member, request: &str) -> (Client, End) {
    let mut client = site.connect().await;
    client.send(request).await;
    let mut end = member.accept().await;
    end.send(format!("{EVENTS}{}", chunk("data: 1\n\n"))).await;
    client.read_until("data: 1\n\n\r\n").await;
    (client, end)
}

pub(super) async fn stream(site: &Site, member: &Member) -> (Client, End) {
    opened(site, member, &request("GET", "")).await
}

async fn has_streams(site: &Site, streams: usize) {
    eventually(format!("{streams} streams"), async || {
        let status = site.status().await;
        let found = &status["connections"]["streams"];
        (found == streams && site.pool("app").await["streams"] == streams).then_some(())
    })
    .await;
}

/// Removes the member `old` from its pool.
async fn replace(site: &Site, new: &Member) {
    site.rewrite(&format!("[pools.app]\nmembers = ['{}']", new.address()));
    site.command(&["reload"]).await.assert_exit(0);
}

#[tokio::test]
async fn a_stream_takes_no_slot_once_its_head_has_come() {
    let member = Member::start().await;
    let site = in_front(&member, "pools.app.concurrency = 1").await;
    let mut first = site.connect().await;
    first.send(request("GET", "")).await;
    let mut end = member.accept().await;
    site.settles("app", 1, 0).await;
    end.send(EVENTS).await;
    site.settles("app", 0, 0).await;
    let _second = stream(&site, &member).await;
    has_streams(&site, 2).await;
    let mut page = site.connect().await;
    page.send("GET /page HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    member.accept().await.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage").await;
    page.answer().await.assert_ok("page");
    let pool = site.pool("app").await;
    assert_eq!(
        (&pool["counters"]["streams"], &pool["members"][0]["streams"]),
        (&2.into(), &2.into()),
        "{pool}"
    );
    assert_eq!(pool["times"]["slot_hold"]["count"], 3, "a slot was held until the head came");
    let table = site.command(&["status"]).await.stdout;
    assert!(table.contains(", 2 streams"), "{table}");
    // The app ends it: the connection is used again.
    end.send(END).await;
    first.read_until(END).await;
    has_streams(&site, 1).await;
    let line = site.access("/events").await;
    assert_eq!((&line["stream_end"], line.get("aborted")), (&"worker".into(), None), "{line}");
    assert!(line["slot_hold_ms"].as_f64().unwrap() < line["total_ms"].as_f64().unwrap(), "{line}");
}

#[tokio::test]
async fn parts_that_replace_each_other_are_a_stream_and_other_endless_answers_are_not() {
    for (kind, length, streams) in [
        ("multipart/x-mixed-replace; boundary=b", "Transfer-Encoding: chunked", 1),
        ("text/event-stream", "Connection: close", 1),
        ("text/event-stream", "Content-Length: 100", 0),
        ("application/x-ndjson", "Transfer-Encoding: chunked", 0),
        ("text/html", "X-Accel-Buffering: no\r\nTransfer-Encoding: chunked", 0),
    ] {
        let member = Member::start().await;
        let site = in_front(&member, "").await;
        let mut client = site.begin("/events").await;
        let mut end = member.accept().await;
        end.send(format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{length}\r\n\r\n")).await;
        end.send(if length.contains("chunked") { chunk("first") } else { "first".into() }).await;
        client.read_until("first").await;
        let pool = site.pool("app").await;
        let found = (pool["streams"].as_u64(), pool["in_use"].as_u64());
        assert_eq!(found, (Some(streams), Some(1 - streams)), "{kind}, {length}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_its_stream_ends_it_at_the_member_at_once() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    let (client, mut end) = stream(&site, &member).await;
    drop(client);
    assert_eq!(end.rest().await, (vec![], true));
    // It counts until the member has closed its side, too.
    assert_eq!(site.pool("app").await["streams"], 1);
    end.finish_sending().await;
    has_streams(&site, 0).await;
    let line = site.access("/events").await;
    assert_eq!((&line["stream_end"], line.get("aborted")), (&"client".into(), None), "{line}");
    assert_eq!(site.status().await["routes"][0]["aborted"], 0);
}

#[tokio::test]
async fn a_member_that_breaks_its_stream_off_breaks_it_off_for_the_client() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    let (mut client, end) = stream(&site, &member).await;
    drop(end);
    assert_eq!(client.rest().await, (String::new(), ConnectionEnding::Reset));
    has_streams(&site, 0).await;
    let line = site.access("/events").await;
    assert_eq!((&line["stream_end"], &line["aborted"]), (&"worker".into(), &"worker".into()), "{line}");
}

#[tokio::test]
async fn over_the_limit_an_event_source_is_refused_before_the_member_is_asked() {
    let member = Member::start().await;
    let site = in_front(&member, "pools.app.max_streams = 1").await;
    let source = request("GET", "Accept: text/event-stream\r\n");
    let open = opened(&site, &member, &source).await;
    let refused = site.send(&source).await;
    refused.assert_refused(503, "too_many_streams");
    assert!(refused.field("retry-after").is_some(), "{refused:?}");
    // A request that does not say what it expects is refused when its answer turns out to be a stream.
    let mut other = site.connect().await;
    other.send(request("GET", "")).await;
    let mut end = member.accept().await;
    end.send(EVENTS).await;
    other.answer().await.assert_refused(503, "too_many_streams");
    assert_eq!(end.rest().await, (vec![], true), "the member is told");
    drop(end);
    site.settles("app", 0, 0).await;
    let counters = site.pool("app").await["counters"].clone();
    assert_eq!(counters["refused_streams"], 2, "{counters}");
    drop(open);
    has_streams(&site, 0).await;
    opened(&site, &member, &source).await;
}

#[tokio::test]
async fn streams_of_event_sources_spread_over_members() {
    let members = [Member::start().await, Member::start().await];
    let [one, other] = [&members[0], &members[1]].map(Member::address);
    let site =
        crate::site(&format!("[pools.app]\nmembers = ['{one}', '{other}']\nchoice = 'warm'")).start().await;
    let mut open = Vec::new();
    for _ in 0..6 {
        let mut client = site.connect().await;
        client.send(request("GET", "Accept: text/event-stream\r\n")).await;
        let mut end = tokio::select! {
            end = members[0].accept() => end,
            end = members[1].accept() => end,
        };
        end.send(format!("{EVENTS}{}", chunk("data: 1\n\n"))).await;
        client.read_until("data: 1\n\n").await;
        open.push((client, end));
    }
    let pool = site.pool("app").await;
    assert_eq!((&pool["members"][0]["streams"], &pool["members"][1]["streams"]), (&3.into(), &3.into()));
}

#[tokio::test]
async fn a_member_that_leaves_ends_its_streams_between_two_events() {
    let (member, new) = (Member::start().await, Member::start().await);
    let site = in_front(&member, "").await;
    let (mut between, mut between_end) = stream(&site, &member).await;
    let (mut inside, mut inside_end) = stream(&site, &member).await;
    inside_end.send(chunk("id: 2\ndata: 2")).await;
    inside.read_until("data: 2\r\n").await;
    replace(&site, &new).await;
    assert_eq!(between.read_until(END).await, END);
    assert_eq!(between_end.rest().await, (vec![], true), "the member learns it, too");
    inside_end.send(chunk("\n\ndata: too late")).await;
    let last = inside.read_until(END).await;
    assert!(last.ends_with(&format!("2\r\n\n\n\r\n{END}")) && !last.contains("too late"), "{last}");
    assert_eq!(inside_end.rest().await, (vec![], true));
    let line = site.access("/events").await;
    assert_eq!((&line["stream_end"], line.get("aborted")), (&"hostler".into(), None), "{line}");
    assert_eq!(line["detail"], "the stream's worker leaves its pool, or Hostler stops");
    // The connections are kept, and the next request goes to the other member.
    between.send(request("GET", "")).await;
    let mut end = new.accept().await;
    end.send(format!("{EVENTS}{}", chunk("data: 3\n\n"))).await;
    between.read_until("data: 3\n\n").await;
}

#[tokio::test]
async fn a_stream_that_stays_inside_an_event_is_ended_after_five_seconds() {
    let (member, new) = (Member::start().await, Member::start().await);
    let site = in_front(&member, "").await;
    let (mut client, mut end) = stream(&site, &member).await;
    end.send(chunk("data: never")).await;
    client.read_until("never\r\n").await;
    let began = Instant::now();
    replace(&site, &new).await;
    assert_eq!(client.read_until(END).await, END);
    let waited = began.elapsed();
    assert!(waited > Duration::from_millis(4500), "the event had {waited:?} to become whole");
    assert_eq!(end.rest().await, (vec![], true));
}

#[tokio::test]
async fn the_stream_of_a_post_has_the_time_of_a_request() {
    let (member, new) = (Member::start().await, Member::start().await);
    let site = in_front(&member, "").await;
    let (mut asks, mut answers) = opened(&site, &member, &request("POST", "")).await;
    let (mut listens, _end) = stream(&site, &member).await;
    has_streams(&site, 2).await;
    replace(&site, &new).await;
    assert_eq!(listens.read_until(END).await, END);
    answers.send(format!("{}{END}", chunk("data: the rest\n\n"))).await;
    asks.read_until(&format!("data: the rest\n\n\r\n{END}")).await;
    eventually("no stream", async || (site.status().await["connections"]["streams"] == 0).then_some(()))
        .await;
}

#[tokio::test]
async fn a_stream_without_a_byte_is_ended_after_its_time() {
    let member = Member::start().await;
    let site = in_front(&member, "pools.app.stream_idle_timeout = \"200ms\"").await;
    let (mut client, mut end) = stream(&site, &member).await;
    assert_eq!(client.read_until(END).await, END);
    assert_eq!(end.rest().await, (vec![], true));
    let line = site.access("/events").await;
    assert_eq!(
        (&line["stream_end"], &line["detail"]),
        (&"hostler".into(), &"the worker sent no byte for stream_idle_timeout".into())
    );
}

#[tokio::test]
async fn a_stop_ends_streams_and_their_connections() {
    let member = Member::start().await;
    let mut site = in_front(&member, "server.drain_timeout = \"1h\"").await;
    let (mut client, mut end) = stream(&site, &member).await;
    site.terminate();
    assert_eq!(client.rest().await, (END.into(), ConnectionEnding::Cut));
    assert_eq!(end.rest().await, (vec![], true));
    drop(end);
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn a_stream_to_http_1_0_ends_with_the_connection() {
    let (member, new) = (Member::start().await, Member::start().await);
    let site = in_front(&member, "").await;
    let mut client = site.connect().await;
    client.send("GET /events HTTP/1.0\r\nHost: a.test\r\n\r\n").await;
    let mut end = member.accept().await;
    end.send(format!("{EVENTS}{}", chunk("data: 1\n\n"))).await;
    client.read_until("data: 1\n\n").await;
    replace(&site, &new).await;
    assert_eq!(client.rest().await, (String::new(), ConnectionEnding::Cut));
}

#[tokio::test]
async fn a_client_that_does_not_read_its_stream_takes_little_memory_and_keeps_no_member() {
    let (member, new) = (Member::start().await, Member::start().await);
    let site = in_front(&member, "server.answer_buffer = '64 KiB'").await;
    let mut client = client_with_window(4096, site.address()).await;
    client.send(request("GET", "")).await;
    let mut end = member.accept().await;
    end.send(EVENTS).await;
    let event = chunk(&format!("data: {}\n\n", "x".repeat(64 << 10)));
    let flooded = async {
        use tokio::io::AsyncWriteExt;
        let mut sent = 0;
        while let Ok(Ok(())) =
            tokio::time::timeout(Duration::from_secs(2), end.stream.write_all(event.as_bytes())).await
        {
            sent += event.len();
        }
        sent
    };
    let sent = tokio::time::timeout(WAIT_LIMIT, flooded).await.expect("the member must wait");
    assert!(sent < 16 << 20, "{sent} bytes were taken for a client that reads nothing");
    let status = site.status().await;
    assert_eq!(status["spool"]["answers"], 0, "a stream goes to no file");
    assert!(status["answer_memory"]["used"].as_u64().unwrap() <= 256 << 10, "{}", status["answer_memory"]);
    has_streams(&site, 1).await;
    replace(&site, &new).await;
    within("the member's end", async {
        use tokio::io::AsyncReadExt;
        end.stream.read_to_end(&mut Vec::new()).await
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn an_encoded_stream_ends_whole() {
    let (member, new) = (Member::start().await, Member::start().await);
    let site = in_front(&member, "[server.compress]\nevent_streams = true\n").await;
    let mut client = site.connect().await;
    client.send(request("GET", "Accept-Encoding: gzip\r\n")).await;
    let mut end = member.accept().await;
    end.send(format!("{EVENTS}{}", chunk("data: 1\n\n"))).await;
    eventually("a stream", async || (site.pool("app").await["streams"] == 1).then_some(())).await;
    replace(&site, &new).await;
    let answer = client.answer().await;
    assert_eq!(answer.field("content-encoding").as_deref(), Some("gzip"), "{answer:?}");
    let mut text = String::new();
    GzDecoder::new(&answer.body[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text, "data: 1\n\n");
}

#[tokio::test]
async fn streams_of_http2_clients_end_with_end_stream() {
    let (member, new) = (Member::start().await, Member::start().await);
    let site = in_front(&member, "pools.app.concurrency = 1").await;
    let mut talk = talk(&site).await;
    let mut streams = Vec::new();
    for _ in 0..2 {
        let (answer, _) = talk.begin(get("/events"), true).await;
        let mut end = member.accept().await;
        end.send(format!("{EVENTS}{}", chunk("data: 1\n\n"))).await;
        let mut body = within("a head", answer).await.unwrap().into_body();
        assert_eq!(within("an event", body.data()).await.unwrap().unwrap(), "data: 1\n\n");
        streams.push((body, end));
    }
    has_streams(&site, 2).await;
    let (gone, mut gone_end) = streams.pop().unwrap();
    drop(gone);
    assert_eq!(gone_end.rest().await, (vec![], true), "a reset stream ends at the member");
    drop(gone_end);
    has_streams(&site, 1).await;
    replace(&site, &new).await;
    let (mut body, mut end) = streams.pop().unwrap();
    while let Some(data) = within("END_STREAM, and no reset", body.data()).await {
        assert_eq!(data.unwrap(), "");
    }
    assert!(body.is_end_stream());
    assert_eq!(end.rest().await, (vec![], true));
}

#[tokio::test]
async fn streams_of_http2_members_take_no_slot_and_are_reset_at_their_end() {
    let told = Arc::new(Semaphore::new(0));
    let tell = told.clone();
    let member = Http2Plan::default()
        .start(move |mut asked: Asked| {
            let tell = tell.clone();
            async move {
                let head = Response::builder().header("content-type", "text/event-stream").body(()).unwrap();
                let mut stream = asked.begin(head);
                stream.send_data(Bytes::from_static(b"data: 1\n\n"), false).unwrap();
                let _ = std::future::poll_fn(|cx| stream.poll_reset(cx)).await;
                tell.add_permits(1);
            }
        })
        .await;
    let new = Member::start().await;
    let site = crate::http2_members::in_front_of(&member, "pools.app.concurrency = 1").await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = site.begin("/").await;
        client.read_until("data: 1\n\n\r\n").await;
        clients.push(client);
    }
    has_streams(&site, 2).await;
    replace(&site, &new).await;
    for mut client in clients {
        assert_eq!(client.read_until(END).await, END);
    }
    within("both streams reset", told.acquire_many(2)).await.unwrap().forget();
    has_streams(&site, 0).await;
}
