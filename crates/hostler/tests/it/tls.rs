//! TLS towards clients: which certificate is shown, resumption, and connections without TLS.

use std::path::Path;

use hostler_testkit::{
    Authority, ConnectionEnding, IssuedCertificate, Site, SitePlan, Step, Upstream, authority, client,
    eventually, ok, text, tls_clients, tls_clients_of, upstream, within,
};
use rustls::ProtocolVersion;
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{in_front_of, site};

/// The parts of a site with one certificate.
pub(super) const ONE: &str = "
    [tls]
    listen = '127.0.0.1:0'
    certificates = [{ cert = 'a.pem', key = 'a.key' }]";

pub(super) fn write(folder: &Path, name: &str, certificate: &IssuedCertificate) {
    std::fs::write(folder.join(format!("{name}.pem")), &certificate.cert).unwrap();
    std::fs::write(folder.join(format!("{name}.key")), &certificate.key).unwrap();
}

/// A site that shows one certificate, for `a.test`.
pub(super) fn secured(authority: &Authority, config: &str) -> SitePlan {
    let plan = site(config);
    write(plan.folder(), "a", &authority.vouch_for(&["a.test"]));
    plan
}

pub(super) async fn started(authority: &Authority, config: &str, app: &Upstream) -> Site {
    secured(authority, config).with("app", app).start().await
}

#[tokio::test]
async fn tls_1_2_and_1_3_work_and_the_member_gets_the_scheme_https() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    for (version, spoken) in [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)] {
        let mut client = tls_clients_of(version, &trust).connect("a.test", site.tls_address()).await;
        client.get("/").await.assert_ok("ok");
        client.get("/").await.assert_ok("ok");
        assert_eq!((client.tls_version(), client.alpn()), (spoken, "http/1.1".into()));
    }
    site.get("/").await.assert_ok("ok");
    let told: Vec<_> = app.requests().iter().map(|seen| seen.field("x-forwarded-proto").unwrap()).collect();
    assert_eq!(told, ["https", "https", "https", "https", "http"]);
    let handshakes = &site.status().await["connections"]["handshakes"];
    assert_eq!((&handshakes["completed"], &handshakes["resumed"]), (&2.into(), &0.into()));
}

#[tokio::test]
async fn a_version_that_is_too_low_is_refused_and_counted() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, &format!("{ONE}\nmin_version = '1.3'"), &app).await;
    let refused = tls_clients_of(&TLS12, &trust).try_connect("a.test", site.tls_address()).await;
    assert!(refused.is_err());
    tls_clients(&trust).connect("a.test", site.tls_address()).await.get("/").await.assert_ok("ok");
    failed(&site, "incompatible").await;
}

/// Waits until a failure is counted under this name.
pub(super) async fn failed(site: &Site, reason: &str) {
    eventually(format!("a failure counted as {reason}"), async || {
        (site.status().await["connections"]["handshakes"]["failed"][reason] == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn bodies_arrive_whole_in_both_directions() {
    let trust = authority();
    let app = upstream().script(|seen| ok(&seen.body)).start().await;
    let site = started(&trust, ONE, &app).await;
    let mut client = tls_clients(&trust).connect("a.test", site.tls_address()).await;
    let large: Vec<u8> = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect();
    assert_eq!(client.post("/", &large).await.assert_status(200).body, large);
    client.get("/").await.assert_ok("");
}

#[tokio::test]
async fn a_tls_session_is_resumed_on_every_thread() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, &format!("server.threads = 4\n{ONE}"), &app).await;
    for version in [&TLS12, &TLS13] {
        let clients = tls_clients_of(version, &trust);
        for visit in 0..24 {
            let mut client = clients.connect("a.test", site.tls_address()).await;
            client.get("/").await.assert_ok("ok");
            assert_eq!(client.is_resumed(), visit > 0, "visit {visit} by {:?}", client.tls_version());
        }
    }
    assert_eq!(site.status().await["connections"]["handshakes"]["resumed"], 46);
}

#[tokio::test]
async fn a_successor_takes_tls_sockets_over() {
    let (trust, app) = (authority(), upstream().start().await);
    let mut site = started(&trust, ONE, &app).await;
    let mut before = tls_clients(&trust).connect("a.test", site.tls_address()).await;
    before.get("/").await.assert_ok("ok");
    site.command(&["upgrade"]).await.assert_exit(0);
    tls_clients(&trust).connect("a.test", site.tls_address()).await.get("/").await.assert_ok("ok");
    before.get("/").await.assert_ok("ok").assert_field("connection", "close");
    assert_eq!(before.rest().await, (String::new(), ConnectionEnding::Cut), "with a word for it");
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn a_complete_answer_ends_with_close_notify_and_a_truncated_one_without() {
    let trust = authority();
    let broken = text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    let app = upstream().in_turn([ok("whole"), [broken, vec![Step::Close]].concat()]).start().await;
    let site = started(&trust, ONE, &app).await;
    let clients = tls_clients(&trust);
    let mut client = clients.connect("a.test", site.tls_address()).await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await;
    client.answer().await.assert_ok("whole");
    assert_eq!(client.rest().await, (String::new(), ConnectionEnding::Cut));
    let mut client = clients.connect("a.test", site.tls_address()).await;
    client.get("/").await.assert_broken();
    assert_eq!(client.rest().await.1, ConnectionEnding::Reset);
}

#[tokio::test]
async fn an_idle_connection_ends_with_close_notify() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, &format!("server.idle_timeout = '700ms'\n{ONE}"), &app).await;
    let clients = tls_clients(&trust);
    let silent = clients.connect("a.test", site.tls_address()).await;
    let mut client = clients.connect("a.test", site.tls_address()).await;
    client.get("/").await.assert_ok("ok");
    for mut idle in [silent, client] {
        assert_eq!(idle.rest().await, (String::new(), ConnectionEnding::Cut));
    }
}

#[tokio::test]
async fn a_request_that_ends_without_close_notify_is_not_complete() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    let mut client = tls_clients(&trust).connect("a.test", site.tls_address()).await;
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
    client.cut_off();
    site.refusal("client_left").await;
    assert_eq!(app.requests().len(), 0);
}

#[tokio::test]
async fn a_stalled_handshake_times_out() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, &format!("server.header_timeout = '2s'\n{ONE}"), &app).await;
    let mut silent = client(site.tls_address()).await;
    silent.assert_closed().await;
    failed(&site, "silent").await;
    let mut slow = client(site.tls_address()).await;
    slow.send([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]).await;
    slow.rest().await;
    failed(&site, "timeout").await;
}

#[tokio::test]
async fn plain_http_on_a_tls_port_gets_a_400() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    let answer = client(site.tls_address()).await.get("/").await;
    answer.assert_refused(400, "plain_http").assert_says("https");
    let mut noise = client(site.tls_address()).await;
    noise.send("\0\0\0\0\0\0\0\0").await;
    noise.rest().await;
    failed(&site, "malformed").await;
    assert_eq!(app.requests().len(), 0);
}

#[tokio::test]
async fn a_client_of_tls_1_2_that_does_not_support_the_curve_of_the_key_is_incompatible() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    // ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 with x25519, and signatures of P-384 alone. The key is of P-256.
    let suites = [0, 2, 0xc0, 0x2b];
    let (groups, points) = ([0, 10, 0, 4, 0, 2, 0, 0x1d], [0, 11, 0, 2, 1, 0]);
    let signatures = [0, 13, 0, 4, 0, 2, 5, 3];
    let extensions = [&groups[..], &points, &signatures].concat();
    let sized = |kind: &[u8], rest: &[u8]| [kind, &[rest.len() as u8], rest].concat();
    let body = [&[3, 3][..], &[7; 32], &[0], &suites, &[1, 0], &sized(&[0], &extensions)].concat();
    let mut client = client(site.tls_address()).await;
    client.send(sized(&[0x16, 3, 1, 0], &sized(&[1, 0, 0], &body))).await;
    client.rest().await;
    failed(&site, "incompatible").await;
}

#[tokio::test]
async fn a_client_that_still_sends_can_read_why_its_handshake_failed() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    let mut noise = TcpStream::connect(site.tls_address()).await.unwrap();
    // More than Hostler reads before it ends the handshake. Bytes that it left unread would reset the connection.
    within("the noise to be read", noise.write_all(&vec![0_u8; 1 << 20])).await.unwrap();
    noise.shutdown().await.unwrap();
    let mut alert = Vec::new();
    within("the alert", noise.read_to_end(&mut alert)).await.unwrap();
    // The record of an alert, and a fatal one (RFC 8446 sections 5.1 and 6).
    assert_eq!((alert.len(), alert[0], alert[5]), (7, 21, 2), "{alert:?}");
    failed(&site, "malformed").await;
}

#[tokio::test]
async fn tls_on_a_port_without_tls_gets_a_400_at_once() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut hello = client(site.address()).await;
    // The beginning of a ClientHello. It has no line feed, at which it would be refused as well.
    hello.send([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]).await;
    hello.answer().await.assert_refused(400, "bad_head");
    let line = site.refusal("bad_head").await;
    assert!(line["detail"].as_str().unwrap().contains("TLS"), "{line}");
}

#[tokio::test]
async fn plain_requests_are_redirected_to_https_with_path_and_query() {
    let (trust, app) = (authority(), upstream().start().await);
    let config = format!(
        "server.trusted_proxies = ['127.0.0.9']\n{ONE}\nredirect_http = true\nhsts = {{ max_age = '1day', include_subdomains = true }}"
    );
    let site = started(&trust, &config, &app).await;
    let port = site.tls_address().port();
    let answer =
        site.send("POST /cart?a=%20b HTTP/1.1\r\nHost: a.test:8080\r\nContent-Length: 2\r\n\r\nhi").await;
    answer.assert_status(308).assert_field("location", &format!("https://a.test:{port}/cart?a=%20b"));
    answer.assert_no_field("strict-transport-security");
    let answer = site.send("GET / HTTP/1.0\r\n\r\n").await;
    answer.assert_refused(400, "bad_host").assert_field("content-type", "text/plain; charset=utf-8");
    site.refusal("bad_host").await;
    assert_eq!(app.requests().len(), 0);

    let mut client = tls_clients(&trust).connect("a.test", site.tls_address()).await;
    let answer = client.get("/").await;
    answer.assert_ok("ok").assert_field("strict-transport-security", "max-age=86400; includeSubDomains");
    // Without this, a proxy that ends TLS would be redirected in circles.
    let mut proxy = site.connect_from("127.0.0.9").await;
    proxy.send("GET / HTTP/1.1\r\nHost: a.test\r\nX-Forwarded-Proto: https\r\n\r\n").await;
    proxy.answer().await.assert_ok("ok");
    // Traefik says this of a WebSocket.
    proxy.send("GET / HTTP/1.1\r\nHost: a.test\r\nX-Forwarded-Proto: wss\r\n\r\n").await;
    proxy.answer().await.assert_ok("ok");
    let mut liar = site.connect().await;
    liar.send("GET / HTTP/1.1\r\nHost: a.test\r\nX-Forwarded-Proto: https\r\n\r\n").await;
    liar.answer().await.assert_status(308);
}

#[tokio::test]
async fn a_proxy_that_says_https_in_forwarded_is_not_redirected_in_circles() {
    let (trust, app) = (authority(), upstream().start().await);
    let proxies = "server.trusted_proxies = ['127.0.0.9']\nserver.client_ip_header = 'Forwarded'";
    let site = started(&trust, &format!("{proxies}\n{ONE}\nredirect_http = true"), &app).await;
    for (fields, status) in [
        ("Forwarded: for=203.0.113.7;proto=https", 200),
        ("Forwarded: for=203.0.113.7;proto=https, for=127.0.0.9;proto=http", 200),
        ("Forwarded: for=203.0.113.7\r\nX-Forwarded-Proto: https", 200),
        ("Forwarded: for=6.6.6.6;proto=https, for=203.0.113.7;proto=http", 308),
        ("Forwarded: for=203.0.113.7;proto=http\r\nX-Forwarded-Proto: https", 308),
    ] {
        let mut proxy = site.connect_from("127.0.0.9").await;
        proxy.send(format!("GET / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n\r\n")).await;
        proxy.answer().await.assert_status(status);
    }
    let told: Vec<_> = app.requests().iter().map(|seen| seen.field("x-forwarded-proto").unwrap()).collect();
    assert_eq!(told, ["https"; 3]);
}

#[tokio::test]
async fn a_redirect_to_https_uses_the_public_port() {
    let (trust, app) = (authority(), upstream().start().await);
    let config = format!("{ONE}\nredirect_http = true\npublic_port = 443");
    let site = started(&trust, &config, &app).await;
    let answer = site.send("GET /x HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").await;
    answer.assert_status(308).assert_field("location", "https://[::1]/x");
}

#[tokio::test]
async fn a_challenge_with_a_route_of_its_own_is_not_redirected_to_https() {
    let (trust, app) = (authority(), upstream().start().await);
    let config = format!(
        "{ONE}
        redirect_http = true
        [[routes]]
        match = 'a.test/.well-known/acme-challenge/*'
        static = {{ dir = 'acme' }}
        rewrite = {{ strip_prefix = '/.well-known/acme-challenge' }}
        [[routes]]
        match = '*'
        pool = 'app'"
    );
    let plan = secured(&trust, &config);
    std::fs::create_dir(plan.folder().join("acme")).unwrap();
    std::fs::write(plan.folder().join("acme/to-Ken_1"), "proof").unwrap();
    let site = plan.with("app", &app).start().await;
    for (host, path, status) in [
        ("a.test", "to-Ken_1", 200),
        ("a.test", "none", 404),
        ("a.test", "", 308),
        // An app could read another path in these than the route does.
        ("a.test", "x/../to-Ken_1", 308),
        ("a.test", "to%2DKen_1", 308),
        ("a.test", "../../", 308),
        // The route is for the other host.
        ("b.test", "to-Ken_1", 308),
    ] {
        let target = format!("/.well-known/acme-challenge/{path}");
        let answer = site.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        answer.assert_status(status);
    }
    assert_eq!(app.requests().len(), 0);
}

#[tokio::test]
async fn http2_is_negotiated_if_both_sides_support_it() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    for (offered, agreed) in [
        (&["h2", "http/1.1"][..], "h2"),
        (&["http/1.1", "h2"], "h2"),
        (&["http/1.0", "http/1.1"], "http/1.1"),
        (&["http/1.0"], "http/1.0"),
        (&[], ""),
    ] {
        let clients = tls_clients(&trust).speaking(offered);
        let client = clients.connect("a.test", site.tls_address()).await;
        assert_eq!(client.alpn(), agreed, "{offered:?}");
    }
    assert!(
        tls_clients(&trust).speaking(&["spdy/3"]).try_connect("a.test", site.tls_address()).await.is_err()
    );
    failed(&site, "no_common_protocol").await;

    let site = started(&trust, &format!("server.http2 = false\n{ONE}"), &app).await;
    let clients = tls_clients(&trust).speaking(&["h2", "http/1.1"]);
    assert_eq!(clients.connect("a.test", site.tls_address()).await.alpn(), "http/1.1");
}

#[tokio::test]
async fn a_websocket_over_tls_gets_its_close_frame() {
    let trust = authority();
    let switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Accept: xyz\r\n\r\n";
    let frame = [0x82, 2, 1, 2];
    let app = upstream()
        .does([text([switched.as_bytes(), &frame].concat()), vec![Step::Hold]].concat())
        .start()
        .await;
    let site = started(&trust, ONE, &app).await;
    let mut client = tls_clients(&trust).connect("a.test", site.tls_address()).await;
    client
        .send(
            "GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
               Sec-WebSocket-Key: abc\r\nSec-WebSocket-Version: 13\r\n\r\n",
        )
        .await;
    assert!(client.read_until("\r\n\r\n").await.starts_with("HTTP/1.1 101 "));
    assert_eq!(client.read_exactly(4).await, frame);
    assert_eq!(site.status().await["connections"]["tunnels"], 1);
    site.terminate();
    // 1001, "going away".
    assert_eq!(client.read_exactly(4).await, [0x88, 2, 0x03, 0xe9]);
}
