//! How much one client can use of what all clients share while it sends: memory, temporary files and time.

use std::time::Duration;

use hostler_testkit::{
    Client, Frame, Site, Step, block, client_with_window, eventually, frame_client, indexed_block, ok,
    request, text, upstream,
};

use super::http2::{get, talk, whole};
use crate::in_front_of;

/// A request whose body lacks its last byte.
async fn nearly(site: &Site, path: &str, bytes: usize) -> Client {
    let whole = request(&format!("POST {path}"), "", &vec![b'x'; bytes]);
    let mut client = site.connect().await;
    client.send(&whole[..whole.len() - 1]).await;
    client
}

async fn used(site: &Site, what: &str) -> (u64, u64) {
    let status = site.status().await;
    (status[what]["used"].as_u64().unwrap(), status[what]["limit"].as_u64().unwrap())
}

#[tokio::test]
async fn a_body_that_arrives_too_slowly_is_refused() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.min_receive_rate = '1 KiB'").await;
    let mut client = nearly(&site, "/", 100_000).await;
    let mut dripping = site.connect().await;
    dripping.send("POST /drips HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n").await;
    // Each pause counts five seconds at most: with one byte per pause, ten pauses reach the limit.
    let answer = loop {
        match tokio::time::timeout(Duration::from_secs(1), dripping.answer()).await {
            Ok(answer) => break answer,
            Err(_) => dripping.send_some(b"x"),
        };
    };
    answer.assert_refused(408, "min_receive_rate").assert_says("server.min_receive_rate");
    dripping.assert_closed().await;
    assert_eq!(app.requests().len(), 0, "neither has held a slot");
    // One pause counts five seconds at most.
    client.send("x").await;
    client.answer().await.assert_ok("ok");
    assert_eq!(site.access("/drips").await["refusal"], "min_receive_rate");
}

#[tokio::test]
async fn a_body_is_not_held_while_the_answer_goes_on() {
    const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n";
    const LINES: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n";
    let app = upstream()
        .script(|seen| match seen.target().as_str() {
            "/events" => [text(EVENTS), vec![Step::Hold]].concat(),
            "/lines" => [text(LINES), vec![Step::Hold]].concat(),
            _ => ok(vec![b'x'; 4 << 20]),
        })
        .start()
        .await;
    let site = in_front_of(&app, "server.answer_buffer = '8 MiB'\nserver.body_memory = '10 KiB'").await;
    for path in ["/events", "/lines", "/large"] {
        for bytes in [100_000, 9000] {
            let mut client = client_with_window(4096, site.address()).await;
            client.send(request(&format!("POST {path}"), "", &vec![b'x'; bytes])).await;
            client.next_head().await.expect("an answer");
            eventually("nothing of the request to be held", async || {
                let held = used(&site, "request_memory").await.0 + used(&site, "spool").await.0;
                (held == 0).then_some(())
            })
            .await;
        }
    }
}

#[tokio::test]
async fn bodies_of_many_clients_stay_within_the_body_memory() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.request_memory = '256 KiB'\nserver.min_receive_rate = '0 B'").await;
    let mut crowd = Vec::new();
    for _ in 0..40 {
        crowd.push(nearly(&site, "/", 100_000).await);
    }
    // 4 MB were sent: what is not in memory is in files.
    eventually("all bodies to have come", async || {
        let ((memory, limit), (files, _)) = (used(&site, "request_memory").await, used(&site, "spool").await);
        assert!(memory <= limit, "{memory} of {limit}");
        (files + memory > 3_500_000).then_some(())
    })
    .await;
    assert_ne!(site.status().await["request_memory"]["refused"], 0);
    for client in &mut crowd {
        client.send("x").await;
        client.answer().await.assert_ok("ok");
    }
    // The kept-alive connections, whose next requests may come much later.
    eventually("nothing to be held any more", async || {
        (used(&site, "request_memory").await.0 + used(&site, "spool").await.0 == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_upload_that_waits_for_a_slot_stops_no_other_although_little_memory_is_left() {
    let app = upstream().start().await;
    let settings = "server.request_memory = '4 MiB'\nserver.body_timeout = '5m'\nserver.min_receive_rate = '0 B'\n\
                    pools.app.concurrency = 1\n";
    let routes =
        "[[routes]]\nmatch = '/held'\npool = 'app'\n[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'\n";
    let site = in_front_of(&app, &[settings, routes].concat()).await;
    let mut held = Vec::new();
    loop {
        let (before, limit) = used(&site, "request_memory").await;
        if before > limit / 2 {
            break;
        }
        held.push(nearly(&site, "/held", 100_000).await);
        eventually("one more body in memory", async || {
            (used(&site, "request_memory").await.0 >= before + 99_999).then_some(())
        })
        .await;
    }
    let mut client = talk(&site).await;
    let post = |path: &str| http::Request::post(format!("http://site.test{path}")).body(()).unwrap();
    let (first, mut sent) = client.begin(post("/first"), false).await;
    site.settles("app", 1, 0).await;
    // More than the smallest window of a connection.
    let (second, mut waiting) = client.begin(post("/second"), false).await;
    waiting.send_data(vec![b'x'; 100_000].into(), true).unwrap();
    site.settles("app", 1, 1).await;
    sent.send_data(vec![b'y'; 200_000].into(), true).unwrap();
    for upload in [first, second] {
        assert_eq!(whole(upload).await.1, b"ok");
    }
}

#[tokio::test]
async fn long_heads_of_many_streams_stay_within_the_request_memory() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "server.request_memory = '512 KiB'").await;
    let mut greedy = talk(&site).await;
    let mut large = get("/");
    large.headers_mut().insert("x-large", "x".repeat(60_000).parse().unwrap());
    let mut held = Vec::new();
    for _ in 0..20 {
        held.push(greedy.begin(large.clone(), true).await.0);
    }
    let refused = held.split_off(8);
    for answer in refused {
        let (answer, _) = whole(answer).await;
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.headers()["hostler-refusal"], "request_memory");
        assert_eq!(answer.headers()["retry-after"], "1");
    }
    let taken = used(&site, "request_memory").await.0;
    assert!((60_000..=512 << 10).contains(&taken), "{taken}");
    // Usual heads, also of the same connection, and one long head of another client.
    let mut other = talk(&site).await;
    let usual = greedy.begin(get("/"), true).await.0;
    let of_other = other.begin(large.clone(), true).await.0;
    eventually("the requests at the app", async || {
        app.release_all();
        (app.requests().len() > 3).then_some(())
    })
    .await;
    for answer in [usual, of_other] {
        assert_eq!(whole(answer).await.0.status(), 200);
    }
    eventually("nothing to be held any more", async || {
        (used(&site, "request_memory").await.0 == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn long_heads_of_refused_streams_stay_within_the_request_memory() {
    const STREAMS: u32 = 20;
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.request_memory = '512 KiB'").await;
    let mut greedy = frame_client(site.address()).await;
    // Without a window, no refusal can be sent whole.
    greedy.send(&[Frame::new(Frame::SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0])]).await;
    let value = "x".repeat(500);
    for stream in (0..STREAMS).map(|count| 2 * count + 1) {
        let path = format!("/{stream}");
        let path = (":path", path.as_str());
        let usual = block(&[(":method", "GET"), (":scheme", "http"), path, (":authority", "a.test")]);
        // A field in the table, which each byte after it repeats. It comes more than a hundred times.
        let repeated = indexed_block(&[("x-long", value.as_str())]);
        let head = [usual, repeated, vec![0x80 | 62; 110]].concat();
        greedy.send(&[Frame::request_of(stream, head)]).await;
        assert_eq!(greedy.next_of(Frame::HEADERS).await.stream, stream, "the head of a refusal");
    }
    let taken = used(&site, "request_memory").await.0;
    assert!((50_000..=256 << 10).contains(&taken), "{taken}");
    assert_ne!(site.status().await["request_memory"]["refused"], 0);
    let mut large = get("/");
    large.headers_mut().insert("x-large", "x".repeat(60_000).parse().unwrap());
    assert_eq!(talk(&site).await.ask(large).await.0.status(), 200);
    drop(greedy);
    eventually("nothing to be held any more", async || {
        (used(&site, "request_memory").await.0 == 0).then_some(())
    })
    .await;
    // Of the last one there was no memory for more than its request line.
    site.access(&format!("/{}", 2 * STREAMS - 1)).await;
}

#[tokio::test]
async fn many_connections_of_one_client_leave_memory_for_the_requests_of_others() {
    const CONNECTIONS: u64 = 20;
    let app = upstream().start().await;
    let limits = "server.request_memory = '512 KiB'\nserver.min_receive_rate = '0 B'\n\
        server.proxy_protocol = ['127.0.0.2']";
    let site = in_front_of(&app, limits).await;
    let whole = request("POST /", "", &[b'x'; 60_000]);
    let mut greedy = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = site.connect_from("127.0.0.2").await;
        connection.send("PROXY TCP4 81.2.69.160 203.0.113.1 4000 80\r\n").await;
        connection.send(&whole[..whole.len() - 1]).await;
        greedy.push(connection);
    }
    eventually("the bodies, half of the memory full at most", async || {
        let (memory, spool) = (used(&site, "request_memory").await.0, used(&site, "spool").await.0);
        (memory <= 256 << 10 && memory + spool >= CONNECTIONS * 50_000).then_some(())
    })
    .await;
    drop(greedy);
}

#[tokio::test]
async fn many_windows_of_one_client_leave_memory_for_the_requests_of_others() {
    const CONNECTIONS: usize = 20;
    let app = upstream().holds_requests().start().await;
    let settings = "server.request_memory = '4 MiB'\nserver.proxy_protocol = ['127.0.0.2']\n\
                    pools.app.concurrency = 1\npools.app.queue.timeout = '5m'\n";
    let routes = "[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'\n";
    let site = in_front_of(&app, &[settings, routes].concat()).await;
    let fields = [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "a.test")];
    let mut upload = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    upload.extend(Frame::new(Frame::SETTINGS, 0, 0, "").bytes());
    upload.extend(Frame::head(1, &fields).bytes());
    // Nearly all of the smallest window of a connection. It is not read while the request waits.
    upload.extend(Frame::new(Frame::DATA, 0, 1, vec![b'x'; 16_000]).bytes().repeat(4));
    let mut greedy = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = site.connect_from("127.0.0.2").await;
        connection.send("PROXY TCP4 81.2.69.160 203.0.113.1 4000 80\r\n").await;
        connection.send(&upload).await;
        greedy.push(connection);
    }
    eventually("a window that got no more memory", async || {
        (site.status().await["request_memory"]["refused"] != 0).then_some(())
    })
    .await;
    eventually("half of the memory at most to be taken", async || {
        let (taken, limit) = used(&site, "request_memory").await;
        (taken <= limit / 2).then_some(())
    })
    .await;
    drop(greedy);
}

#[tokio::test]
async fn a_full_spool_refuses_only_requests_that_need_it() {
    let app = upstream().start().await;
    let limits =
        "server.spool_size = '256 KiB'\nserver.body_memory = '1 KiB'\nserver.min_receive_rate = '0 B'";
    let site = in_front_of(&app, limits).await;
    let mut holds = nearly(&site, "/", 120_000).await;
    eventually("a body in the spool", async || (used(&site, "spool").await.0 > 100_000).then_some(())).await;
    // A new connection may hold half of what is free.
    let full = site.post("/", vec![b'x'; 100_000]).await;
    full.assert_refused(503, "spool_full").assert_field("retry-after", "1");
    site.post("/", "small").await.assert_ok("ok");
    site.get("/").await.assert_ok("ok");
    holds.send("x").await;
    holds.answer().await.assert_ok("ok");
    assert_ne!(site.status().await["spool"]["full"], 0);
}

#[tokio::test]
async fn many_connections_of_one_client_leave_room_in_the_spool_for_others() {
    let app = upstream().start().await;
    let limits = "server.spool_size = '1 MiB'\nserver.body_memory = '1 KiB'\nserver.min_receive_rate = '0 B'\n\
        server.proxy_protocol = ['127.0.0.2']";
    let site = in_front_of(&app, limits).await;
    let begins = async |client: &str, path: &str| {
        let mut connection = site.connect_from("127.0.0.2").await;
        connection.send(format!("PROXY TCP4 {client} 203.0.113.1 4000 80\r\n")).await;
        let whole = request(&format!("POST {path}"), "", &vec![b'x'; 100_000]);
        connection.send(&whole[..whole.len() - 1]).await;
        connection
    };
    let mut greedy = Vec::new();
    for bytes in (1..=9).map(|count| count * 90_000) {
        greedy.push(begins("81.2.69.160", "/").await);
        eventually("a body in the spool, or a refusal", async || {
            let spool = &site.status().await["spool"];
            (spool["used"].as_u64()? >= bytes || spool["full"] != 0).then_some(())
        })
        .await;
    }
    let mut other = begins("81.2.69.161", "/other").await;
    other.send("x").await;
    other.answer().await.assert_ok("ok");
}

#[tokio::test]
async fn a_body_larger_than_the_spool_gets_507() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.spool_size = '64 KiB'\nserver.body_memory = '1 KiB'").await;
    let answer = site.post("/", vec![b'x'; 100_000]).await;
    answer.assert_refused(507, "spool_size").assert_says("server.spool_size");
    assert_eq!(app.requests().len(), 0);
}
