//! PROXY headers: the client is the one that a load balancer names. A header from another sender, or a missing one, is refused.

use hostler_testkit::{
    Client, Site, Upstream, authority, client_from, eventually, mmdb, tls_clients, upstream,
};

use crate::tls::{ONE, secured};
use crate::{in_front_of, site};

/// A site with a load balancer at `127.0.0.2`.
const BALANCED: &str = "server.proxy_protocol = ['127.0.0.2']\nserver.access_log = 'json'";
const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";

async fn balanced(app: &Upstream) -> Site {
    in_front_of(app, BALANCED).await
}

async fn from_balancer(site: &Site) -> Client {
    site.connect_from("127.0.0.2").await
}

/// Version 2: command and version, family and protocol, and the rest.
fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [b"\r\n\r\n\0\r\nQUIT\n".as_slice(), &[0x20 | command, family], &length, rest].concat()
}

/// From 81.2.69.160:4000 to 203.0.113.1:443.
const IPV4: [u8; 12] = [81, 2, 69, 160, 203, 0, 113, 1, 0x0f, 0xa0, 0x01, 0xbb];

fn ipv6() -> Vec<u8> {
    let address = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().octets();
    [&address("2001:db8::7")[..], &address("2001:db8::1"), &[0x0f, 0xa0, 0x01, 0xbb]].concat()
}

/// About 300 bytes that Hostler ignores.
fn extras() -> Vec<u8> {
    [&[0x04, 0x00, 0xf9][..], &[0; 249], &[0x05, 0x00, 0x2d], &[7; 45]].concat()
}

#[tokio::test]
async fn the_proxy_header_names_the_client() {
    let app = upstream().start().await;
    let site = balanced(&app).await;
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"PROXY TCP4 81.2.69.160 203.0.113.1 4000 443\r\n".to_vec(), "81.2.69.160"),
        (b"PROXY TCP6 2001:db8::7 2001:db8::1 4000 443\r\n".to_vec(), "2001:db8::7"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.2"),
        (b"PROXY UNKNOWN ffff:f 1 2 anything\r\n".to_vec(), "127.0.0.2"),
        (binary(1, 0x11, &IPV4), "81.2.69.160"),
        (binary(1, 0x11, &[&IPV4[..], &extras()].concat()), "81.2.69.160"),
        (binary(1, 0x21, &ipv6()), "2001:db8::7"),
        (binary(1, 0x21, &[ipv6(), extras()].concat()), "2001:db8::7"),
        (binary(0, 0x00, &[]), "127.0.0.2"),
        (binary(0, 0x11, &IPV4), "127.0.0.2"),
        (binary(0, 0x00, &extras()), "127.0.0.2"),
        (binary(0, 0x11, &[]), "127.0.0.2"),
        (binary(0, 0x21, &IPV4), "127.0.0.2"),
        (binary(0, 0x51, &[]), "127.0.0.2"),
        (binary(1, 0x31, &[0; 216]), "127.0.0.2"),
        (binary(1, 0x12, &IPV4), "127.0.0.2"),
        (binary(1, 0x00, &[]), "127.0.0.2"),
    ];
    for (at, (header, expected)) in cases.iter().enumerate() {
        let mut whole = from_balancer(&site).await;
        whole.send([header, REQUEST.as_bytes()].concat()).await;
        whole.answer().await.assert_ok("ok");
        let told = app.requests().last().unwrap().field("x-forwarded-for");
        assert_eq!(told.as_deref(), Some(*expected), "case {at}");
    }
    let access = site.exchanges(cases.len()).await;
    assert_eq!(access[0]["client"], "81.2.69.160");
}

#[tokio::test]
async fn the_source_of_a_client_address_from_a_proxy_header_is_shown() {
    let geo = "[geo]\ndatabases = 'places.mmdb'\n[[routes]]\nmatch = '*'\ngeo = true";
    let plan = site(&format!("{BALANCED}\n{geo}"));
    mmdb("City")
        .city("81.2.69.0/24", &[("en", "London")], "GB", (51.5, -0.1))
        .write(plan.folder(), "places.mmdb");
    let site = plan.start().await;
    for (header, expected) in [
        ("PROXY TCP4 81.2.69.160 203.0.113.1 4000 443\r\n", ["81.2.69.160", "proxy-protocol", "London"]),
        ("PROXY TCP6 ::ffff:81.2.69.1 ::1 4000 443\r\n", ["81.2.69.1", "proxy-protocol", "London"]),
        ("PROXY UNKNOWN\r\n", ["127.0.0.2", "socket", ""]),
    ] {
        let mut client = from_balancer(&site).await;
        client.send(format!("{header}GET /geo HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        let told = client.answer().await.json();
        let told = ["ip", "source", "city"].map(|field| told[field].as_str().unwrap_or_default().to_owned());
        assert_eq!(told, expected, "{header}");
    }
}

#[tokio::test]
async fn a_header_may_come_byte_by_byte() {
    let app = upstream().start().await;
    let site = balanced(&app).await;
    let text = b"PROXY TCP4 81.2.69.160 203.0.113.1 4000 443\r\n".to_vec();
    for header in [text, binary(1, 0x11, &[&IPV4[..], &extras()].concat())] {
        let mut client = from_balancer(&site).await;
        for byte in header {
            client.send([byte]).await;
            // Each piece is read on its own, because the other side can run here.
            tokio::task::yield_now().await;
        }
        client.send(REQUEST).await;
        client.answer().await.assert_ok("ok");
        assert_eq!(app.requests().last().unwrap().field("x-forwarded-for").unwrap(), "81.2.69.160");
    }
}

#[tokio::test]
async fn an_invalid_proxy_header_ends_the_connection_and_is_counted() {
    let app = upstream().start().await;
    let site = balanced(&app).await;
    let endless = [b"PROXY TCP4 ".as_slice(), &[b'1'; 200]].concat();
    let lied = "PROXY TCP4 81.2.69.160 203.0.113.1 4000 443\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let cases: Vec<Vec<u8>> = vec![
        REQUEST.as_bytes().to_vec(),
        b"PROXY TCP4 81.2.69.160 203.0.113.1 4000 99999\r\n".to_vec(),
        b"PROXY TCP4 2001:db8::7 2001:db8::1 4000 443\r\n".to_vec(),
        b"PROXY TCP5 81.2.69.160 203.0.113.1 4000 443\r\n".to_vec(),
        b"PROXY TCP4 81.2.69.160\r\n".to_vec(),
        b"PROXY UNKNOWN a\nb\r\n".to_vec(),
        lied.as_bytes().to_vec(),
        endless,
        // A version, a command and a family that do not exist; missing addresses; too many bytes.
        [b"\r\n\r\n\0\r\nQUIT\n".as_slice(), &[0x31, 0x11, 0, 12], &IPV4].concat(),
        binary(5, 0x11, &IPV4),
        binary(1, 0x51, &IPV4),
        binary(1, 0x11, &IPV4[..8]),
        binary(1, 0x11, &vec![0; 60_000]),
    ];
    for (at, bytes) in cases.iter().enumerate() {
        let mut client = from_balancer(&site).await;
        client.send(bytes).await;
        assert_eq!(client.rest().await.0, "", "case {at}");
    }
    eventually("all of them counted", async || {
        let failed = site.status().await["connections"]["handshakes"]["failed"]["no_proxy_header"].clone();
        (failed == cases.len()).then_some(())
    })
    .await;
    assert_eq!(app.requests().len(), 0);
}

#[tokio::test]
async fn an_untrusted_peer_cannot_send_a_proxy_header() {
    let app = upstream().start().await;
    let site = balanced(&app).await;
    let mut stranger = client_from("127.0.0.3".parse().unwrap(), site.address()).await;
    stranger.send(format!("PROXY TCP4 81.2.69.160 203.0.113.1 4000 443\r\n{REQUEST}")).await;
    stranger.answer().await.assert_refused(400, "bad_head");
    assert_eq!(site.refusal("bad_head").await["client"], "127.0.0.3");
    let mut plain = client_from("127.0.0.3".parse().unwrap(), site.address()).await;
    plain.send(REQUEST).await;
    plain.answer().await.assert_ok("ok");
    assert_eq!(app.only_request().field("x-forwarded-for").unwrap(), "127.0.0.3");
}

#[tokio::test]
async fn a_connection_without_its_proxy_header_times_out() {
    let app = upstream().start().await;
    let site = in_front_of(&app, &format!("{BALANCED}\nserver.header_timeout = '2s'")).await;
    from_balancer(&site).await.assert_closed().await;
    let mut slow = from_balancer(&site).await;
    slow.send("PROXY TCP4 81.2").await;
    slow.rest().await;
    eventually("both counted", async || {
        let failed = site.status().await["connections"]["handshakes"]["failed"].clone();
        (failed["silent"] == 1 && failed["proxy_timeout"] == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_proxy_header_precedes_tls_and_no_byte_is_lost() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = secured(&trust, &format!("server.proxy_protocol = ['127.0.0.2']\n{ONE}"));
    let site = site.with("app", &app).start().await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut stream = socket.connect(site.tls_address()).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, &binary(1, 0x11, &IPV4)).await.unwrap();
    let mut client = tls_clients(&trust).over("a.test", stream).await.unwrap();
    client.get("/").await.assert_ok("ok");
    let seen = app.only_request();
    assert_eq!(seen.field("x-forwarded-for").unwrap(), "81.2.69.160");
    assert_eq!(seen.field("x-forwarded-proto").unwrap(), "https");
}
