//! HTTP/2 to members: many calls on one connection, and everything else as in HTTP/1.1.

use std::sync::Arc;

use bytes::Bytes;
use h2::Reason;
use hostler_testkit::{Site, authority, client_with_window, eventually, ok, upstream, within};
use http::{HeaderMap, Response};
use tokio::sync::Semaphore;

use crate::http2_member::{Asked, Http2Member, Http2Plan, send};
use crate::site;

pub(super) async fn in_front_of(member: &Http2Member, config: &str) -> Site {
    site(&format!("pools.app.protocol = \"http2\"\n{config}"))
        .with_member("app", member.address())
        .start()
        .await
}

/// A member that answers one request, with its path, for each permit.
pub(super) async fn behind_a_gate(plan: Http2Plan) -> (Http2Member, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let member = plan.start(move |asked| {
        let gate = gate.clone();
        async move {
            let path = asked.path();
            gate.acquire().await.unwrap().forget();
            asked.ok(path).await;
        }
    });
    (member.await, opened)
}

async fn echo(mut asked: Asked) {
    let (body, _) = asked.read().await;
    asked.ok(body).await;
}

#[tokio::test]
async fn a_member_in_http2_is_like_any_other() {
    let member = Http2Plan::default().start(echo).await;
    let site = in_front_of(&member, "").await;
    let mut client = site.connect().await;
    client.get("/").await.assert_ok("");
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    assert_eq!(client.post("/", &large).await.assert_status(200).body, large);
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.answer_to("HEAD").await.assert_status(200);
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        .await;
    client.answer().await.assert_ok("abc");
    assert_eq!(member.connections(), 1);
}

#[tokio::test]
async fn calls_at_the_same_time_share_one_connection() {
    let (member, opened) = behind_a_gate(Http2Plan::default()).await;
    let site = in_front_of(&member, "").await;
    let mut clients = Vec::new();
    for n in 0..40 {
        clients.push(site.begin(&format!("/{n}")).await);
    }
    eventually("forty requests", async || (member.requests() == 40).then_some(())).await;
    opened.add_permits(40);
    for (n, mut client) in clients.into_iter().enumerate() {
        client.answer().await.assert_ok(&format!("/{n}"));
    }
    assert_eq!(member.connections(), 1, "those that came together have not connected together");
}

#[tokio::test]
async fn a_member_in_http2_gets_the_fields_of_http_1_1() {
    let member = Http2Plan::default().start(|asked| asked.ok("")).await;
    let site = in_front_of(&member, "").await;
    site.send(
        "GET /a[b]?c=`d`|%20 HTTP/1.1\r\nHost: shop.test:81\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nTE: trailers, gzip\r\n\
         Keep-Alive: timeout=5\r\nCookie: a=1\r\nX-Twice: 1\r\nX-Twice: 2\r\nX-Forwarded-Proto: https\r\n\r\n",
    )
    .await
    .assert_status(200);
    let (target, fields) = member.seen().remove(0);
    assert_eq!(target, "GET http://shop.test:81/a[b]?c=%60d%60%7C%20");
    let all = |name| fields.get_all(name).iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>();
    assert_eq!((all("te"), all("x-twice"), all("cookie")), (vec!["trailers"], vec!["1", "2"], vec!["a=1"]));
    assert!(matches!(all("via")[..], [via] if via.starts_with("1.1 hostler-")), "{:?}", all("via"));
    assert_eq!(all("x-forwarded-proto"), ["http"]);
    assert_eq!((all("x-forwarded-for"), all("x-forwarded-host")), (vec!["127.0.0.1"], vec!["shop.test:81"]));
    for gone in ["host", "connection", "keep-alive", "x-hop", "content-length"] {
        assert!(!fields.contains_key(gone), "{gone}");
    }
}

#[tokio::test]
async fn trailers_pass_in_both_directions() {
    let script = async |mut asked: Asked| {
        let (body, trailers) = asked.read().await;
        let sum = trailers.unwrap()["x-sum"].clone();
        let stream = asked.begin(Response::new(()));
        let mut stream = send(stream, body.into(), false).await.unwrap();
        stream.send_trailers(HeaderMap::from_iter([("x-sum".parse().unwrap(), sum)])).unwrap();
    };
    let member = Http2Plan::default().start(script).await;
    let site = in_front_of(&member, "").await;
    let request =
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n";
    let answer = site.send(request).await;
    answer.assert_ok("abc");
    assert_eq!(answer.trailers, ["x-sum: 7"]);
}

#[tokio::test]
async fn interim_answers_are_passed_on() {
    let script = async |mut asked: Asked| {
        let hints = Response::builder().status(103).header("link", "</a.css>").body(()).unwrap();
        asked.respond.send_informational(hints).unwrap();
        asked.ok("done").await;
    };
    let member = Http2Plan::default().start(script).await;
    let site = in_front_of(&member, "").await;
    let mut client = site.begin("/").await;
    let hints = client.read_until("\r\n\r\n").await;
    assert!(hints.starts_with("HTTP/1.1 103") && hints.contains("link: </a.css>"), "{hints}");
    client.answer().await.assert_ok("done");
}

#[tokio::test]
async fn interim_answers_are_bounded_in_number() {
    let script = async |mut asked: Asked| {
        for _ in 0..11 {
            let hints = Response::builder().status(103).header("link", "</a.css>").body(()).unwrap();
            if asked.respond.send_informational(hints).is_err() {
                return;
            }
        }
        asked.ok("done").await;
    };
    let member = Http2Plan::default().start(script).await;
    let site = in_front_of(&member, "server.max_interim_answers = 10").await;
    site.get("/").await.assert_refused(502, "interim_answers");
}

#[tokio::test]
async fn a_request_that_the_member_did_not_process_is_sent_again_with_any_method() {
    let script = async |mut asked: Asked| match asked.nth {
        1 => asked.respond.send_reset(Reason::REFUSED_STREAM),
        _ => echo(asked).await,
    };
    let member = Http2Plan::default().start(script).await;
    let site = in_front_of(&member, "").await;
    site.post("/", "abc").await.assert_ok("abc");
    assert_eq!(member.requests(), 2);
}

#[tokio::test]
async fn a_request_that_may_have_been_processed_is_sent_again_only_if_idempotent() {
    let script = async |mut asked: Asked| match asked.nth {
        1 | 2 => asked.respond.send_reset(Reason::INTERNAL_ERROR),
        _ => echo(asked).await,
    };
    let member = Http2Plan::default().start(script).await;
    let site = in_front_of(&member, "").await;
    site.post("/", "abc").await.assert_refused(502, "worker_lost");
    site.get("/").await.assert_ok("");
    assert_eq!(member.requests(), 3);
}

#[tokio::test]
async fn a_member_that_says_goaway_gets_a_new_connection_and_no_request_is_lost() {
    let member = Http2Plan::default().start(echo).await;
    let site = in_front_of(&member, "").await;
    let mut client = site.connect().await;
    for n in 0..60 {
        if n % 10 == 5 {
            member.leave();
        }
        client.post("/", format!("{n}")).await.assert_ok(&n.to_string());
    }
    assert!(member.connections() >= 6, "{}", member.connections());
    eventually("the old connections to end", async || (member.open() == 1).then_some(())).await;
}

#[tokio::test]
async fn an_answer_reset_in_the_middle_is_truncated_for_the_client() {
    let script = async |mut asked: Asked| {
        let stream = asked.begin(Response::new(()));
        let mut stream = send(stream, vec![7; 300_000].into(), false).await.unwrap();
        stream.send_reset(Reason::NO_ERROR);
    };
    let member = Http2Plan::default().start(script).await;
    let site = in_front_of(&member, "").await;
    site.get("/").await.assert_broken();
    assert_eq!(site.access("/").await["aborted"], "worker");
}

#[tokio::test]
async fn no_byte_after_the_content_length_of_an_answer_reaches_the_client() {
    let script = async |mut asked: Asked| {
        let head = Response::builder().header("content-length", "10").body(()).unwrap();
        let stream = asked.begin(head);
        send(stream, Bytes::from_static(b"12345678901234567890"), true).await;
    };
    let member = Http2Plan::default().start(script).await;
    let site = in_front_of(&member, "").await;
    let mut client = site.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    let (text, _) = client.rest().await;
    assert!(!text.contains("12345678901"), "{text}");
}

#[tokio::test]
async fn calls_over_the_stream_limit_use_another_connection() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let plan = Http2Plan { most_streams: Some(2), ..Http2Plan::default() };
    let member = plan
        .start(move |asked| {
            let gate = gate.clone();
            async move {
                if asked.path() == "/held" {
                    gate.acquire().await.unwrap().forget();
                }
                asked.ok("").await;
            }
        })
        .await;
    let site = in_front_of(&member, "").await;
    // The limit is known once the first request has been answered.
    site.get("/").await.assert_ok("");
    let mut held = Vec::new();
    for n in 1..=5 {
        held.push(site.begin("/held").await);
        eventually("the request", async || (member.requests() == 1 + n).then_some(())).await;
    }
    assert_eq!(member.connections(), 3);
    opened.add_permits(5);
    for mut client in held {
        client.answer().await.assert_ok("");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_delays_no_other_client() {
    let script = async |asked: Asked| match &*asked.path() {
        "/large" => asked.ok(vec![7; 20 << 20]).await,
        _ => asked.ok("small").await,
    };
    let member = Http2Plan::default().start(script).await;
    let site = in_front_of(&member, "").await;
    let mut slow = client_with_window(4096, site.address()).await;
    slow.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").await;
    eventually("the large answer", async || (member.requests() == 1).then_some(())).await;
    for _ in 0..20 {
        site.get("/small").await.assert_ok("small");
    }
    assert_eq!(member.connections(), 1);
    assert_eq!(slow.answer().await.body.len(), 20 << 20);
}

#[tokio::test]
async fn the_slot_of_a_client_that_left_is_free_when_the_member_has_finished() {
    let (member, opened) = behind_a_gate(Http2Plan::default()).await;
    let site = in_front_of(&member, "pools.app.concurrency = 1").await;
    let client = site.begin("/first").await;
    eventually("the request", async || (member.requests() == 1).then_some(())).await;
    drop(client);
    let mut next = site.begin("/second").await;
    site.settles("app", 1, 1).await;
    assert_eq!(member.requests(), 1);
    opened.add_permits(2);
    next.answer().await.assert_ok("/second");
    site.settles("app", 0, 0).await;
}

#[tokio::test]
async fn an_event_stream_without_its_client_is_reset() {
    let told = Arc::new(Semaphore::new(0));
    let tell = told.clone();
    let member = Http2Plan::default()
        .start(move |mut asked| {
            let tell = tell.clone();
            async move {
                let head = Response::builder().header("content-type", "text/event-stream").body(()).unwrap();
                let mut stream = asked.begin(head);
                stream.send_data(Bytes::from_static(b"data: 1\n\n"), false).unwrap();
                let reason = std::future::poll_fn(|cx| stream.poll_reset(cx)).await.unwrap();
                assert_eq!(reason, Reason::CANCEL);
                tell.add_permits(1);
            }
        })
        .await;
    let site = in_front_of(&member, "").await;
    let mut client = site.begin("/").await;
    client.read_until("data: 1\n\n").await;
    drop(client);
    within("a reset with CANCEL", told.acquire()).await.unwrap().forget();
    site.settles("app", 0, 0).await;
}

#[tokio::test]
async fn a_connection_with_a_timed_out_call_is_not_used_again() {
    let script = async |asked: Asked| match asked.connection {
        1 => std::future::pending().await,
        _ => asked.ok("").await,
    };
    let member = Http2Plan::default().start(script).await;
    let site = in_front_of(&member, "pools.app.request_timeout = \"3s\"").await;
    site.get("/").await.assert_refused(504, "answer_timeout");
    site.get("/").await.assert_ok("");
    assert_eq!(member.connections(), 2);
}

#[tokio::test]
async fn http2_over_tls_is_negotiated_with_the_member() {
    let trust = authority();
    let mut config = trust.vouch_for(&["127.0.0.1"]).for_server(None);
    config.alpn_protocols = vec![b"http/1.1".to_vec(), b"h2".to_vec()];
    let member = Http2Plan { tls: Some(config), ..Http2Plan::default() }.start(echo).await;
    let plan = site("pools.app.protocol = \"http2\"\n[pools.app.tls]\nca = \"ca.pem\"\n");
    std::fs::write(plan.folder().join("ca.pem"), trust.cert()).unwrap();
    let site = plan.with_member("app", member.address()).start().await;
    for n in 0..3 {
        site.post("/", format!("{n}")).await.assert_ok(&n.to_string());
    }
    assert_eq!(member.connections(), 1);
    assert!(member.seen()[0].0.starts_with("POST https://"), "{:?}", member.seen());
}

#[tokio::test]
async fn a_member_over_tls_without_http2_gets_http_1_1() {
    let trust = authority();
    // Without ALPN, and with an alert.
    for offered in [vec![], vec![b"http/1.1".to_vec()]] {
        let mut config = trust.vouch_for(&["127.0.0.1"]).for_server(None);
        config.alpn_protocols = offered;
        let app = upstream().over_tls(config).start().await;
        let plan = site("[pools.app]\nprotocol = \"http2\"\ntls.ca = \"ca.pem\"\n");
        std::fs::write(plan.folder().join("ca.pem"), trust.cert()).unwrap();
        let site = plan.with("app", &app).start().await;
        let mut client = site.connect().await;
        for _ in 0..3 {
            client.get("/").await.assert_ok("ok");
        }
        site.says("does not offer HTTP/2 (ALPN), and gets its requests in HTTP/1.1").await;
        assert_eq!(site.pool("app").await["counters"]["member_failures"], 0);
    }
}

#[tokio::test]
async fn a_member_that_answers_http2_in_http_1_1_is_a_bad_answer() {
    let app = upstream().at_head().script(|_| ok("")).start().await;
    let site = site("pools.app.protocol = \"http2\"").with("app", &app).start().await;
    site.get("/").await.assert_refused(502, "bad_answer");
}

#[tokio::test]
async fn a_websocket_to_a_member_in_http2_uses_http_1_1() {
    let switched = "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello";
    let app = upstream().answers(switched).start().await;
    let site = site("pools.app.protocol = \"http2\"").with("app", &app).start().await;
    let mut client = site.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    client.read_until("\r\n\r\n").await;
    assert_eq!(client.read_exactly(5).await, b"hello");
    crate::tunnels::has_tunnels(&site, 1).await;
}

#[tokio::test]
async fn a_websocket_to_a_member_that_speaks_only_http2_is_an_ordinary_request_and_harms_no_other() {
    let trust = authority();
    let mut config = trust.vouch_for(&["127.0.0.1"]).for_server(None);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let member = Http2Plan { tls: Some(config), ..Http2Plan::default() }.start(echo).await;
    let plan = site("pools.app.protocol = \"http2\"\n[pools.app.tls]\nca = \"ca.pem\"\n");
    std::fs::write(plan.folder().join("ca.pem"), trust.cert()).unwrap();
    let site = plan.with_member("app", member.address()).start().await;
    for n in 1..=3 {
        let mut client = site.connect().await;
        client
            .send(format!(
                "GET /{n} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
            ))
            .await;
        client.answer().await.assert_ok("");
        let (_, fields) = member.seen().pop().unwrap();
        assert!(!fields.contains_key("upgrade"), "{fields:?}");
    }
    let counters = site.pool("app").await["counters"].clone();
    assert_eq!(counters["member_failures"], 0, "{counters}");
}
