//! Calls of gRPC: a refusal has a status of gRPC, and a call that is cancelled is cancelled at the member, too.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use h2::Reason;
use hostler_testkit::{Site, eventually, upstream, within};
use http::{HeaderMap, Request};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::http2::{Talk, get, talk, whole};
use crate::http2_member::{Asked, Http2Member, Http2Plan};
use crate::{http2_members, in_front_of};

fn call(path: &str, media_type: &str) -> Request<()> {
    let request = Request::post(format!("http://site.test{path}"));
    request.header("content-type", media_type).header("te", "trailers").body(()).unwrap()
}

/// The fields of an answer that ends with its head.
async fn refused(talk: &mut Talk, path: &str, message: Vec<u8>) -> HeaderMap {
    let (answer, mut sent) = talk.begin(call(path, "application/grpc+proto"), false).await;
    // A refusal may come before the message.
    let _ = sent.send_data(message.into(), true);
    let answer = within("an answer", answer).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.body().is_end_stream(), "nothing follows the head: {answer:?}");
    assert_eq!(answer.headers()["content-type"], "application/grpc");
    answer.headers().clone()
}

#[tokio::test]
async fn a_refused_call_of_grpc_gets_a_status_that_its_client_understands() {
    let app = upstream().holds_requests().start().await;
    let config = "server.max_body_size = \"1 KiB\"\npools.app.request_timeout = \"200ms\"";
    let site = in_front_of(&app, config).await;
    let mut talk = talk(&site).await;

    let late = refused(&mut talk, "/late", b"hello".to_vec()).await;
    assert_eq!(late["grpc-status"], "4");
    assert_eq!(late["grpc-message"], "the response did not begin in time");
    assert_eq!(late["hostler-refusal"], "answer_timeout");
    let line = site.access("/late").await;
    assert_eq!((&line["status"], &line["refusal"]), (&504.into(), &"answer_timeout".into()));

    let large = refused(&mut talk, "/large", vec![7; 2000]).await;
    assert_eq!(large["grpc-status"], "8");
    assert_eq!(large["hostler-refusal"], "body_too_large");
}

#[tokio::test]
async fn other_requests_of_http2_get_refusals_of_http() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "routes = [{ match = \"/known\", pool = \"app\" }]").await;
    let mut talk = talk(&site).await;
    for request in [call("/unknown", "application/grpc-web+proto"), get("/unknown")] {
        let (head, body) = talk.ask(request).await;
        assert_eq!(head.status(), 404);
        assert!(!head.headers().contains_key("grpc-status"), "{head:?}");
        assert!(!body.is_empty());
    }
}

#[tokio::test]
async fn a_streamed_call_that_the_member_did_not_process_is_sent_again() {
    let script = async |mut asked: Asked| match asked.nth {
        1 => asked.respond.send_reset(Reason::REFUSED_STREAM),
        // The message may have come by now, or not.
        2 => {
            asked.read().await;
            asked.respond.send_reset(Reason::REFUSED_STREAM);
        }
        _ => {
            let (body, _) = asked.read().await;
            asked.ok(body).await;
        }
    };
    let member = Http2Plan::default().start(script).await;
    let config = "routes = [{ match = \"/*\", pool = \"app\", buffer = \"none\" }]";
    let site = http2_members::in_front_of(&member, config).await;
    let mut talk = talk(&site).await;
    let (answer, mut message) = talk.begin(call("/again", "application/grpc"), false).await;
    message.send_data("hello".into(), true).unwrap();
    let (head, body) = whole(answer).await;
    assert_eq!((head.status().as_u16(), &body[..]), (200, &b"hello"[..]));
    assert_eq!(member.requests(), 3);
}

/// A member that answers nothing, and tells how its calls are reset.
async fn silent() -> (Http2Member, UnboundedReceiver<Reason>) {
    let (tell, told) = unbounded_channel();
    let script = move |mut asked: Asked| {
        let tell = tell.clone();
        async move {
            if let Ok(reason) = poll_fn(|cx| asked.respond.poll_reset(cx)).await {
                tell.send(reason).unwrap();
            }
        }
    };
    (Http2Plan::default().start(script).await, told)
}

#[tokio::test]
async fn a_call_of_grpc_that_its_client_cancels_is_cancelled_at_the_member() {
    let (member, mut told) = silent().await;
    let site = http2_members::in_front_of(&member, "pools.app.concurrency = 1").await;
    let mut talk = talk(&site).await;
    let cancelled = talk.begin(call("/cancelled", "application/grpc"), true).await;
    eventually("the call", async || (member.requests() == 1).then_some(())).await;
    drop(cancelled);
    assert_eq!(within("the end of the call", told.recv()).await, Some(Reason::CANCEL));
    site.settles("app", 0, 0).await;
}

#[tokio::test]
async fn a_call_of_grpc_whose_messages_the_member_does_not_take_is_cancelled_there_too() {
    /// The window of the member, which it never enlarges.
    const WINDOW: usize = 65_535;
    let (tell, mut told) = unbounded_channel();
    let full = Arc::new(Semaphore::new(0));
    let filled = full.clone();
    let script = move |mut asked: Asked| {
        let (tell, filled) = (tell.clone(), filled.clone());
        async move {
            let mut come = 0;
            while let Some(Ok(data)) = asked.request.body_mut().data().await {
                come += data.len();
                if come >= WINDOW {
                    filled.add_permits(1);
                    break;
                }
            }
            if let Ok(reason) = poll_fn(|cx| asked.respond.poll_reset(cx)).await {
                tell.send(reason).unwrap();
            }
        }
    };
    let member = Http2Plan::default().start(script).await;
    let config = "routes = [{ match = \"/*\", pool = \"app\", buffer = \"none\" }]";
    let site = http2_members::in_front_of(&member, config).await;
    let mut talk = talk(&site).await;
    let (answer, mut messages) = talk.begin(call("/cancelled", "application/grpc"), false).await;
    messages.send_data(vec![7; 3 * WINDOW].into(), false).unwrap();
    within("a full window", full.acquire()).await.unwrap().forget();
    drop((answer, messages));
    assert_eq!(within("the end of the call", told.recv()).await, Some(Reason::CANCEL));
    site.settles("app", 0, 0).await;
}

#[tokio::test]
async fn a_call_of_grpc_that_is_late_is_cancelled_at_the_member() {
    let (member, mut told) = silent().await;
    let config = "pools.app.concurrency = 1\npools.app.request_timeout = \"200ms\"";
    let site = http2_members::in_front_of(&member, config).await;
    let mut talk = talk(&site).await;
    let late = refused(&mut talk, "/late", b"hello".to_vec()).await;
    assert_eq!(late["grpc-status"], "4");
    assert_eq!(within("the end of the call", told.recv()).await, Some(Reason::CANCEL));
    site.settles("app", 0, 0).await;
}

/// A member whose first connection is silent after its first call, which has been made: as if the network dropped its packets.
async fn silent_from_its_second_call() -> (Http2Member, Site, Talk) {
    let script = async |asked: Asked| match (asked.connection, asked.nth) {
        (1, 2..) => std::future::pending().await,
        _ => asked.ok("").await,
    };
    let member = Http2Plan::default().start(script).await;
    let site = http2_members::in_front_of(&member, "").await;
    let mut talk = talk(&site).await;
    let (head, _) = talk.ask(call("/first", "application/grpc")).await;
    assert_eq!(head.status(), 200);
    (member, site, talk)
}

#[tokio::test]
async fn a_connection_that_was_silent_during_a_cancelled_call_gets_no_more_calls() {
    let (member, site, mut talk) = silent_from_its_second_call().await;
    let (answer, sent) = talk.begin(call("/cancelled", "application/grpc"), true).await;
    eventually("the call", async || (member.requests() == 2).then_some(())).await;
    assert!(timeout(Duration::from_secs(1), answer).await.is_err());
    drop(sent);
    site.settles("app", 0, 0).await;
    let (head, _) = talk.ask(call("/next", "application/grpc")).await;
    assert_eq!(head.status(), 200);
    assert_eq!((member.requests(), member.connections()), (3, 2));
}

#[tokio::test]
async fn a_connection_that_is_silent_during_many_short_calls_gets_no_more_of_them() {
    let (member, _site, mut talk) = silent_from_its_second_call().await;
    // None of the calls alone is as long as the silence of a dead connection.
    let head = eventually("a response", async || {
        let (answer, _sent) = talk.begin(call("/short", "application/grpc"), true).await;
        timeout(Duration::from_millis(200), answer).await.ok()
    })
    .await;
    assert_eq!(head.unwrap().status(), 200);
    assert!(member.connections() >= 2);
}
