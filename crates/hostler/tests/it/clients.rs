//! Limits for one client, so that others are served: connections and requests under way.

use hostler_testkit::{
    Client, ConnectionEnding, Frame, Site, authority, eventually, frame_client, tls_clients, upstream,
};

use crate::tls::{ONE, started};
use crate::tunnels::may_open_many_files;
use crate::{http2, in_front_of};

async fn open(site: &Site, connections: usize) {
    let what = format!("{connections} connections");
    eventually(what, async || (site.status().await["connections"]["open"] == connections).then_some(()))
        .await;
}

/// A request of a client that a load balancer at 127.0.0.2 names.
async fn named(site: &Site, client: &str, path: &str) -> Client {
    let mut connection = site.connect_from("127.0.0.2").await;
    let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    connection.send(format!("PROXY TCP4 {client} 203.0.113.1 4000 443\r\n{head}")).await;
    connection
}

#[tokio::test]
async fn a_client_with_too_many_connections_gets_a_refusal_and_others_are_served() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.client_connections = 2").await;
    let (mut one, mut two) = (site.connect().await, site.connect().await);
    one.get("/").await.assert_ok("ok");
    two.get("/").await.assert_ok("ok");
    let mut third = site.connect().await;
    let answer = third.answer().await;
    answer.assert_refused(429, "client_connections").assert_says("server.client_connections");
    answer.assert_field("retry-after", "1").assert_field("connection", "close");
    third.assert_closed().await;
    // Another client, and the one that has its connections.
    site.connect_from("127.0.0.2").await.get("/").await.assert_ok("ok");
    one.get("/").await.assert_ok("ok");
    site.says("127.0.0.1 has 2 connections, as many as it may (server.client_connections)").await;
    let clients = &site.status().await["connections"]["clients"];
    assert_eq!((&clients["refused_connections"], &clients["refused_requests"]), (&1.into(), &0.into()));

    drop((two, third));
    open(&site, 1).await;
    site.connect().await.get("/").await.assert_ok("ok");
}

#[tokio::test]
async fn the_status_names_the_client_with_the_most_requests() {
    let app = upstream().holds_requests().start().await;
    // By default there is no limit for a loopback address, so its requests are not counted.
    let site = in_front_of(&app, "server.client_requests = 100\npools.app.concurrency = 1").await;
    let mut waiting = Vec::new();
    for client in ["127.0.0.1", "127.0.0.2", "127.0.0.2"] {
        let mut connection = site.connect_from(client).await;
        connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        waiting.push(connection);
    }
    site.settles("app", 1, 2).await;
    let clients = &site.status().await["connections"]["clients"];
    assert_eq!((&clients["counted"], &clients["requests"]), (&2.into(), &3.into()), "{clients}");
    assert_eq!(clients["busiest"], serde_json::json!({ "client": "127.0.0.2", "requests": 2 }));
    app.release_all();
    for mut connection in waiting {
        connection.answer().await.assert_status(200);
    }
    eventually("no request under way", async || {
        (site.status().await["connections"]["clients"]["busiest"].is_null()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_client_that_goes_on_connecting_cannot_use_up_all_connections() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.client_connections = 5\nserver.max_connections = 40").await;
    let mut crowd = Vec::new();
    for _ in 0..200 {
        crowd.push(site.connect().await);
    }
    site.connect_from("127.0.0.2").await.get("/").await.assert_ok("ok");
    assert_eq!(site.status().await["connections"]["refused"], 0, "of all connections there are enough");
}

#[tokio::test]
async fn with_tls_a_connection_over_the_limit_is_closed_before_the_handshake() {
    let ca = authority();
    let app = upstream().start().await;
    let site = started(&ca, &format!("server.client_connections = 1\n{ONE}"), &app).await;
    let clients = tls_clients(&ca);
    let mut first = clients.connect("a.test", site.tls_address()).await;
    first.get("/").await.assert_ok("ok");
    assert!(clients.try_connect("a.test", site.tls_address()).await.is_err());
    let connections = &site.status().await["connections"];
    assert_eq!(connections["handshakes"]["failed"]["client_connections"], 1);
    assert_eq!(connections["handshakes"]["completed"], 1);
}

#[tokio::test]
async fn a_client_with_too_many_requests_under_way_gets_a_refusal_and_others_are_served() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "server.client_requests = 2\npools.app.concurrency = 2").await;
    let (mut one, mut two) = (site.begin("/1").await, site.begin("/2").await);
    site.settles("app", 2, 0).await;
    let mut third = site.connect().await;
    let answer = third.get("/3").await;
    answer
        .assert_refused(429, "client_requests")
        .assert_field("retry-after", "1")
        .assert_no_field("connection");
    let mut other = site.connect_from("127.0.0.2").await;
    other.send("GET /other HTTP/1.1\r\nHost: a\r\n\r\n").await;
    site.settles("app", 2, 1).await;
    app.release_all();
    one.answer().await.assert_ok("/1");
    two.answer().await.assert_ok("/2");
    other.answer().await.assert_ok("/other");
    third.get("/4").await.assert_ok("/4");
    assert_eq!(site.status().await["connections"]["clients"]["refused_requests"], 1);
}

/// Each would keep the memory of its request until the client is cut off.
#[tokio::test]
async fn refused_streams_that_wait_for_their_client_are_limited_in_number() {
    const CONNECTIONS: u32 = 9;
    const STREAMS: u32 = 120;
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "server.client_requests = 1").await;
    let mut held = site.begin("/held").await;
    site.settles("app", 1, 0).await;
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")];
    let (mut clients, mut refused, mut reset) = (Vec::new(), 0, 0);
    for _ in 0..CONNECTIONS {
        let mut client = frame_client(site.address()).await;
        // Without a window, no refusal can be sent whole.
        client.send(&[Frame::new(Frame::SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0])]).await;
        let requests: Vec<_> = (0..STREAMS).map(|n| Frame::request(2 * n + 1, &fields)).collect();
        client.send(&requests).await;
        let mut ended = 0;
        while ended < STREAMS {
            let frame = client.next().await.expect("the connection goes on");
            match frame.kind {
                Frame::HEADERS => refused += 1,
                Frame::RST_STREAM => {
                    assert_eq!(frame.code(), 7, "REFUSED_STREAM");
                    reset += 1;
                }
                _ => continue,
            }
            ended += 1;
        }
        clients.push(client);
    }
    assert_eq!((refused, reset), (1001, CONNECTIONS * STREAMS - 1001));
    let counted = &site.status().await["connections"]["clients"]["refused_requests"];
    assert_eq!(*counted, CONNECTIONS * STREAMS);
    drop(clients);
    app.release_all();
    held.answer().await.assert_ok("/held");
}

#[tokio::test]
async fn streams_of_http_2_are_requests_under_way() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "server.client_requests = 2\npools.app.concurrency = 1").await;
    let mut talk = http2::talk(&site).await;
    let held = [talk.begin(http2::get("/1"), true).await.0, talk.begin(http2::get("/2"), true).await.0];
    site.settles("app", 1, 1).await;
    let (refused, _) = talk.ask(http2::get("/3")).await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["hostler-refusal"]),
        (429, &"client_requests".parse().unwrap())
    );
    app.release_all();
    for answer in held {
        assert_eq!(http2::whole(answer).await.0.status(), 200);
    }
    assert_eq!(talk.ask(http2::get("/4")).await.0.status(), 200);
}

#[tokio::test]
async fn a_trusted_proxys_connections_are_not_counted_and_its_requests_count_for_the_named_client() {
    let app = upstream().holds_requests().start().await;
    let limits =
        "server.client_connections = 1\nserver.client_requests = 1\nserver.trusted_proxies = ['127.0.0.1']";
    let site = in_front_of(&app, limits).await;
    let begin = async |client: &str, path: &str| {
        let mut proxy = site.connect().await;
        proxy.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n")).await;
        proxy
    };
    let mut first = begin("192.0.2.1", "/1").await;
    let mut other = begin("192.0.2.2", "/2").await;
    // A proxy that names no client is the client itself, and is not counted.
    let mut uncounted = [site.begin("/3").await, site.begin("/4").await];
    app.has_seen(4).await;
    begin("192.0.2.1", "/5").await.answer().await.assert_refused(429, "client_requests");
    // One network of 64 bits is one client.
    let mut v6 = begin("2001:db8::1", "/6").await;
    app.has_seen(5).await;
    begin("2001:db8::2", "/7").await.answer().await.assert_refused(429, "client_requests");
    app.release_all();
    for client in [&mut first, &mut other, &mut v6].into_iter().chain(&mut uncounted) {
        client.answer().await.assert_status(200);
    }
    let idle = async || (site.status().await["connections"]["clients"]["counted"] == 0).then_some(());
    eventually("no client to be counted any more", idle).await;
}

#[tokio::test]
async fn with_trusted_hops_connections_are_not_counted_and_requests_are() {
    let app = upstream().holds_requests().start().await;
    let limits = "server.client_connections = 1\nserver.client_requests = 1\nserver.trusted_hops = 1";
    let site = in_front_of(&app, limits).await;
    let begin = async |client: &str| {
        let mut proxy = site.connect().await;
        proxy.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n")).await;
        proxy
    };
    let _held = [begin("192.0.2.1").await, begin("192.0.2.2").await];
    app.has_seen(2).await;
    begin("192.0.2.2").await.answer().await.assert_refused(429, "client_requests");
    app.release_all();
}

#[tokio::test]
async fn the_client_that_a_proxy_header_names_is_counted() {
    let app = upstream().start().await;
    let site =
        in_front_of(&app, "server.client_connections = 1\nserver.proxy_protocol = ['127.0.0.2']").await;
    let mut first = named(&site, "81.2.69.160", "/").await;
    first.answer().await.assert_ok("ok");
    named(&site, "81.2.69.160", "/").await.answer().await.assert_refused(429, "client_connections");
    named(&site, "81.2.69.161", "/").await.answer().await.assert_ok("ok");
    // A health check by a load balancer, which names no client.
    let check = "PROXY UNKNOWN\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut checks = Vec::new();
    for _ in 0..3 {
        let mut balancer = site.connect_from("127.0.0.2").await;
        balancer.send(check).await;
        balancer.answer().await.assert_ok("ok");
        checks.push(balancer);
    }
}

#[tokio::test]
async fn by_default_a_public_client_gets_a_share_of_connections_and_a_private_one_nearly_all() {
    may_open_many_files();
    let app = upstream().start().await;
    let balanced = "server.proxy_protocol = ['127.0.0.2']\n";
    // A quarter, and at least 100.
    for (most, share) in [(300, 100), (600, 150)] {
        let site = in_front_of(&app, &format!("{balanced}server.max_connections = {most}")).await;
        let mut crowd = Vec::new();
        for _ in 0..share {
            let mut client = named(&site, "81.2.69.160", "/").await;
            client.answer().await.assert_ok("ok");
            crowd.push(client);
        }
        named(&site, "81.2.69.160", "/").await.answer().await.assert_refused(429, "client_connections");
        // One proxy may use all of the rest.
        for _ in share..most {
            let mut client = site.connect().await;
            client.get("/").await.assert_ok("ok");
            crowd.push(client);
        }
        site.connect().await.answer().await.assert_refused(503, "too_many_connections");
    }
}

#[tokio::test]
async fn by_default_one_private_client_leaves_the_last_connections_to_others() {
    may_open_many_files();
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.max_connections = 1000").await;
    let mut crowd = Vec::new();
    for _ in 0..936 {
        crowd.push(site.connect().await);
    }
    open(&site, 936).await;
    site.connect().await.answer().await.assert_refused(429, "client_connections");
    site.connect_from("127.0.0.2").await.get("/").await.assert_ok("ok");
}

#[tokio::test]
async fn the_limits_of_a_client_can_be_turned_off() {
    let app = upstream().holds_requests().start().await;
    let off = "server.client_connections = 'off'\nserver.client_requests = 'off'\nserver.proxy_protocol = ['127.0.0.2']";
    let site =
        in_front_of(&app, &format!("{off}\nserver.max_connections = 300\npools.app.queue.limit = 300")).await;
    let mut crowd = Vec::new();
    for _ in 0..150 {
        crowd.push(named(&site, "81.2.69.160", "/").await);
    }
    app.has_seen(64).await;
    app.release_all();
    for client in &mut crowd {
        client.answer().await.assert_status(200);
    }
}

#[tokio::test]
async fn the_limit_of_requests_does_not_hold_for_the_health_check_of_a_balancer() {
    let app = upstream().holds_requests().start().await;
    let keys = "server.client_requests = 1\npools.app.concurrency = 1\nplatform.secure_cookies = true";
    let site = in_front_of(&app, keys).await;
    let mut one = site.begin("/1").await;
    site.settles("app", 1, 0).await;
    let check = "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: HTTP-Monitor/1.1\r\n\r\n";
    site.send(check).await.assert_ok("ok\n");
    site.get("/2").await.assert_refused(429, "client_requests");
    app.release_all();
    one.answer().await.assert_ok("/1");
}

#[tokio::test]
async fn a_tunnel_counts_as_a_request_of_its_client() {
    let app = upstream()
        .answers("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: any\r\n\r\n")
        .start()
        .await;
    let site = in_front_of(&app, "server.client_requests = 1").await;
    let mut tunnel = site.connect().await;
    tunnel.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: any\r\n\r\n").await;
    tunnel.next_head().await.unwrap();
    site.get("/").await.assert_refused(429, "client_requests");
    drop(tunnel);
    let idle = async || (site.status().await["connections"]["clients"]["counted"] == 0).then_some(());
    eventually("the tunnel to be gone", idle).await;
}

#[tokio::test]
async fn a_refused_client_can_read_the_refusal_while_it_still_sends() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.client_connections = 1").await;
    let _held = site.connect().await;
    open(&site, 1).await;
    let mut client = site.connect().await;
    client.send(hostler_testkit::request("POST /", "", &vec![b'x'; 200_000])).await;
    client.answer().await.assert_refused(429, "client_connections");
    assert_eq!(client.rest().await, (String::new(), ConnectionEnding::Cut));
}
