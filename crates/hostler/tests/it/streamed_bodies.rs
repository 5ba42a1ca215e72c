//! Bodies that stream to a member (`buffer = "none"`) while its answer has begun: who waits for whom, and for how long.

use std::net::Shutdown;
use std::time::Duration;

use hostler_testkit::{Client, Frame, Site, WAIT_LIMIT, frame_client, upstream, within};
use http::{HeaderMap, Request, Response};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{interval, timeout};

use crate::http2_member::{Asked, Http2Plan, send};
use crate::tunnels::{End, Member, in_front};
use crate::{http2, http2_members, in_front_of, site};

const MIB: usize = 1 << 20;

/// A route whose bodies stream.
const STREAMING: &str = "pools.app.concurrency = 1\nserver.max_body_size = \"64 MiB\"
routes = [{ match = \"/*\", pool = \"app\", buffer = \"none\" }]";

/// The member begins its response to the request of this client, which has got the beginning.
async fn begun(member: &Member, client: &mut Client) -> End {
    let mut end = member.accept().await;
    end.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await;
    client.read_until("first\r\n").await;
    end
}

/// The log says which side has broken off the exchange with this path, and why.
async fn assert_broken_off(site: &Site, path: &str, side: &str, why: &str) {
    let line = site.access(path).await;
    assert_eq!((&line["aborted"], &line["detail"]), (&side.into(), &why.into()));
}

#[tokio::test]
async fn an_answer_that_pauses_while_its_member_does_not_take_the_body_is_ended_and_its_slot_is_free() {
    let member = Member::start().await;
    let config = format!("pools.app.response_idle_timeout = \"200ms\"\n{STREAMING}");
    let site = in_front(&member, &config).await;
    let mut client = site.connect().await;
    client.send(format!("POST /stuck HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", 64 * MIB)).await;
    let mut end = begun(&member, &mut client).await;
    // Much more than the system holds for a member that does not read. Hostler's reset ends it.
    client.send(vec![7; 64 * MIB]).await;
    assert_eq!(client.rest().await.0, "", "the answer is not whole");
    assert!(end.rest().await.0.len() < 64 * MIB, "its connection is closed");
    end.finish_sending().await;
    site.settles("app", 0, 0).await;
    assert_broken_off(&site, "/stuck", "worker", "the worker sent no byte for response_idle_timeout").await;
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
    assert_broken_off(&site, "/refused", "worker", "the worker sent no byte for response_idle_timeout").await;
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
    let mut end = begun(&member, &mut client).await;
    let taking = async {
        // In all it takes longer than a pause may.
        let mut pace = interval(Duration::from_millis(150));
        for _ in 0..16 {
            pace.tick().await;
            end.read(4 * MIB).await;
        }
        end.send("0\r\n\r\n").await;
    };
    tokio::join!(client.send(vec![7; 64 * MIB]), taking);
    client.read_until("0\r\n\r\n").await;
}

/// With this, a client may not pause for as long as the members of these tests send.
const BRIEF: &str = "server.body_timeout = \"1s\"";

#[tokio::test]
async fn a_client_may_pause_in_a_body_without_a_length_when_its_answer_has_begun() {
    let member = Member::start().await;
    let site = in_front(&member, &format!("{BRIEF}\n{STREAMING}")).await;
    let mut client = site.connect().await;
    client.send("POST /talk HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n").await;
    let mut end = member.accept().await;
    end.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    let mut pace = interval(Duration::from_millis(150));
    for _ in 0..12 {
        pace.tick().await;
        end.send("1\r\nx\r\n").await;
    }
    client.send("1\r\nb\r\n0\r\n\r\n").await;
    let mut body = Vec::new();
    while !body.ends_with(b"\r\n0\r\n\r\n") {
        body.extend(end.read(1).await);
    }
    end.send("0\r\n\r\n").await;
    client.read_until("0\r\n\r\n").await;
    assert_eq!(site.access("/talk").await["bytes_in"], 2);
}

#[tokio::test]
async fn messages_of_http2_may_stream_both_ways_for_longer_than_body_timeout() {
    let script = async |mut asked: Asked| {
        let mut stream = asked.begin(Response::new(()));
        let mut pace = interval(Duration::from_millis(150));
        for _ in 0..12 {
            pace.tick().await;
            stream = send(stream, "x".into(), false).await.expect("the call goes on");
        }
        let (body, _) = asked.read().await;
        send(stream, body.into(), true).await;
    };
    let member = Http2Plan::default().start(script).await;
    let site = http2_members::in_front_of(&member, &format!("{BRIEF}\n{STREAMING}")).await;
    let mut talk = http2::talk(&site).await;
    let request = Request::post("http://site.test/talk").body(()).unwrap();
    let (answer, mut messages) = talk.begin(request, false).await;
    messages.send_data("a".into(), false).unwrap();
    let mut answer = within("an answer", answer).await.unwrap().into_body();
    let mut come = Vec::new();
    while come.len() < 12 {
        come.extend_from_slice(&within("a message", answer.data()).await.unwrap().unwrap());
    }
    messages.send_data("b".into(), true).unwrap();
    while let Some(data) = within("the rest", answer.data()).await {
        come.extend_from_slice(&data.unwrap());
    }
    assert_eq!(come, b"xxxxxxxxxxxxab");
    let line = site.access("/talk").await;
    assert_eq!((&line["bytes_in"], &line["bytes_out"]), (&2.into(), &14.into()));
}

#[tokio::test]
async fn a_call_in_which_no_side_sends_anything_is_ended_and_its_slot_is_free() {
    let member = Member::start().await;
    let config = format!("pools.app.response_idle_timeout = \"200ms\"\n{STREAMING}");
    let site = in_front(&member, &config).await;
    let mut client = site.connect().await;
    client.send("POST /silent HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n").await;
    let mut end = begun(&member, &mut client).await;
    assert_eq!(client.rest().await.0, "", "the answer is not whole");
    end.rest().await;
    end.finish_sending().await;
    site.settles("app", 0, 0).await;
    assert_broken_off(&site, "/silent", "worker", "the worker sent no byte for response_idle_timeout").await;
}

#[tokio::test]
async fn a_client_may_not_pause_in_a_body_of_known_length_although_its_answer_has_begun() {
    let member = Member::start().await;
    let site = in_front(&member, &format!("{BRIEF}\n{STREAMING}")).await;
    let mut client = site.connect().await;
    client.send("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf").await;
    let mut end = begun(&member, &mut client).await;
    assert_eq!(client.rest().await.0, "", "the answer is not whole");
    end.rest().await;
    end.finish_sending().await;
    site.settles("app", 0, 0).await;
    assert_broken_off(&site, "/upload", "client", "the request body stalled").await;
}

#[tokio::test]
async fn trailers_behind_a_streamed_body_of_known_length_obey_the_route() {
    let (tell, mut told) = unbounded_channel();
    let script = move |mut asked: Asked| {
        let tell = tell.clone();
        async move {
            let (_, trailers) = asked.read().await;
            tell.send(trailers.unwrap()).unwrap();
            asked.ok("").await;
        }
    };
    let member = Http2Plan::default().start(script).await;
    let config = "routes = [{ match = \"/*\", pool = \"app\", buffer = \"none\", \
                  request_headers = { set = { X-User = \"ours\" } } }]";
    let site = http2_members::in_front_of(&member, config).await;
    let mut talk = http2::talk(&site).await;
    let request = Request::post("http://site.test/").header("content-length", "1").body(()).unwrap();
    let (answer, mut sent) = talk.begin(request, false).await;
    sent.send_data("a".into(), false).unwrap();
    let trailers = [("x-user", "theirs"), ("x-sum", "7")];
    let trailers = trailers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
    sent.send_trailers(HeaderMap::from_iter(trailers)).unwrap();
    assert_eq!(http2::whole(answer).await.0.status(), 200);
    let come = within("trailers", told.recv()).await.unwrap();
    assert_eq!((come.len(), come["x-sum"].as_bytes()), (1, &b"7"[..]), "{come:?}");
    assert_eq!(member.seen()[0].1["x-user"], "ours");
}

#[tokio::test]
async fn an_upload_is_not_late_while_another_that_waits_fills_the_window_of_its_connection() {
    let app = upstream().start().await;
    // Without memory the window does not grow, and has 65,535 bytes.
    let site = in_front_of(&app, &format!("server.request_memory = 0\n{BRIEF}\n{STREAMING}")).await;
    let mut client = frame_client(site.address()).await;
    let post = [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "a")];
    let mut frames = vec![Frame::head(1, &post), Frame::new(Frame::DATA, 0, 1, "a"), Frame::head(3, &post)];
    for length in [16_384, 16_384, 16_384, 16_382] {
        frames.push(Frame::new(Frame::DATA, 0, 3, vec![b'b'; length]));
    }
    client.send(&frames).await;
    site.settles("app", 1, 1).await;
    let mut pace = interval(Duration::from_millis(150));
    for _ in 0..12 {
        pace.tick().await;
        client.send(&[Frame::new(Frame::PING, 0, 0, [0; 8])]).await;
        loop {
            let frame = client.next().await.expect("the connection goes on");
            assert!(!matches!(frame.kind, Frame::HEADERS | Frame::RST_STREAM), "{frame:?}");
            if frame.kind == Frame::PING {
                break;
            }
        }
    }
    let cancel = Frame::new(Frame::RST_STREAM, 0, 3, [0, 0, 0, 8]);
    client.send(&[cancel, Frame::new(Frame::DATA, Frame::END_STREAM, 1, "")]).await;
    assert_eq!(client.next_of(Frame::HEADERS).await.stream, 1);
    assert!(app.requests()[0].is_whole);
}
