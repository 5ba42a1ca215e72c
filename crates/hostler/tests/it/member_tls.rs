//! TLS to members: which certificates are trusted, what is logged about others, and that everything else is as in plain text.

use std::path::Path;
use std::sync::Arc;

use hostler_testkit::{
    Authority, IssuedCertificate, Site, SitePlan, Step, VERSION_1, VERSION_1_KEY, authority, no_upstream, ok,
    request, self_signed, text, upstream,
};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ResolvesServerCertUsingSni;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::http2_member::Http2Plan;
use crate::site;

/// A pool that does not wait long for its members.
const SHORT_QUEUE_TIMEOUT: &str = "[pools.app.queue]\ntimeout = \"200ms\"\n";

/// A site that trusts an authority.
fn trusting(authority: &Authority, config: &str) -> SitePlan {
    let plan = site(&format!("{config}\n[pools.app.tls]\nca = \"ca.pem\"\n"));
    write(plan.folder(), "ca.pem", &authority.cert());
    plan
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

async fn refused(site: &Site, reason: &str) -> String {
    site.get("/").await.assert_refused(502, reason);
    let line = site.refusal(reason).await;
    line["detail"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_member_over_tls_is_like_any_other_and_its_connection_is_kept() {
    let trust = authority();
    let config = trust.vouch_for(&["127.0.0.1"]).for_server(None);
    let app = upstream().script(|seen| ok(&seen.body)).over_tls(config).start().await;
    let site = trusting(&trust, "").with("app", &app).start().await;
    let mut client = site.connect().await;
    client.get("/").await.assert_ok("");
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    // Sent again if needed: a request that must not be sent twice gets no connection that was idle for a second.
    client.send(request("PUT /", "", &large)).await;
    assert_eq!(client.answer().await.assert_status(200).body, large);
    client.get("/").await.assert_ok("");
    assert_eq!(app.connections(), 1);
}

#[tokio::test]
async fn a_member_with_only_tls_1_2_is_reached() {
    let trust = authority();
    let certificate = trust.vouch_for(&["127.0.0.1"]);
    let newer = certificate.for_server(None);
    let older = ServerConfig::builder_with_protocol_versions(&[&TLS12]).with_no_client_auth();
    let config = older.with_cert_resolver(newer.cert_resolver.clone());
    let app = upstream().over_tls(config).start().await;
    let site = trusting(&trust, "").with("app", &app).start().await;
    site.get("/").await.assert_ok("ok");
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let app = upstream().over_tls(authority().vouch_for(&["127.0.0.1"]).for_server(None)).start().await;
    let site = trusting(&authority(), SHORT_QUEUE_TIMEOUT).with("app", &app).start().await;
    assert!(refused(&site, "member_untrusted").await.contains("UnknownIssuer"));
    assert_eq!(app.requests().len(), 0);
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let trust = authority();
    let app = upstream().over_tls(trust.vouched_for(&["127.0.0.1"]).for_server(None)).start().await;
    let site = trusting(&trust, SHORT_QUEUE_TIMEOUT).with("app", &app).start().await;
    assert!(refused(&site, "member_untrusted").await.contains("expired"));
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_unless_server_name_is_set_to_it() {
    let trust = authority();
    let app = upstream().over_tls(trust.vouch_for(&["app-7.internal"]).for_server(None)).start().await;
    let strict = trusting(&trust, SHORT_QUEUE_TIMEOUT).with("app", &app).start().await;
    refused(&strict, "member_wrong_name").await;
    let named = format!("{SHORT_QUEUE_TIMEOUT}[pools.app.tls]\nca = \"ca.pem\"\nserver_name = ");
    for (name, is_taken) in [("app-7.internal", true), ("app-8.internal", false)] {
        let plan = site(&format!("{named}\"{name}\"")).with("app", &app);
        write(plan.folder(), "ca.pem", &trust.cert());
        let site = plan.start().await;
        match is_taken {
            true => drop(site.get("/").await.assert_ok("ok")),
            false => drop(refused(&site, "member_wrong_name").await),
        }
    }
}

#[tokio::test]
async fn with_verify_off_every_certificate_is_accepted() {
    let app = upstream().over_tls(authority().vouched_for(&["x.test"]).for_server(None)).start().await;
    let site = site("[pools.app.tls]\nverify = false").with("app", &app).start().await;
    site.get("/").await.assert_ok("ok");
}

#[tokio::test]
async fn with_verify_off_a_certificate_of_version_1_is_accepted() {
    let key = PrivateKeyDer::from_pem_slice(VERSION_1_KEY.as_bytes()).unwrap();
    let cert = CertificateDer::from_pem_slice(VERSION_1.as_bytes()).unwrap();
    let shown = CertifiedKey::new(vec![cert], any_supported_type(&key).unwrap());
    let shown = Arc::new(SingleCertAndKey::from(shown));
    for version in [&TLS12, &TLS13] {
        let builder = ServerConfig::builder_with_protocol_versions(&[version]).with_no_client_auth();
        let app = upstream().over_tls(builder.with_cert_resolver(shown.clone())).start().await;
        let site = site("[pools.app.tls]\nverify = false").with("app", &app).start().await;
        site.get("/").await.assert_ok("ok");
    }
}

#[tokio::test]
async fn a_certificate_that_is_trusted_itself_is_accepted() {
    let own = self_signed(&["127.0.0.1"]);
    let app = upstream().over_tls(own.for_server(None)).start().await;
    let trusting = |cert: &str, keys: &str| {
        let plan = site(&format!("{SHORT_QUEUE_TIMEOUT}[pools.app.tls]\nca = \"ca.pem\"\n{keys}"));
        write(plan.folder(), "ca.pem", cert);
        plan.with("app", &app).start()
    };
    trusting(&own.cert, "").await.get("/").await.assert_ok("ok");
    let named = trusting(&own.cert, "server_name = \"other.test\"\n").await;
    refused(&named, "member_wrong_name").await;
    let stranger = trusting(&self_signed(&["127.0.0.1"]).cert, "").await;
    refused(&stranger, "member_untrusted").await;
}

#[tokio::test]
async fn a_member_without_tls_and_an_unreachable_one_have_different_errors() {
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = plain.accept().await {
            let _ = stream.read(&mut [0; 1]).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await;
            // Closing with unread bytes would reset the connection and lose the answer.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    let trust = authority();
    let member = format!("https://{address}");
    let site_of_plain = trusting(&trust, SHORT_QUEUE_TIMEOUT).with_member("app", &member).start().await;
    refused(&site_of_plain, "member_not_tls").await;
    let unreachable = format!("https://{}", no_upstream());
    let site_of_unreachable =
        trusting(&trust, SHORT_QUEUE_TIMEOUT).with_member("app", &unreachable).start().await;
    refused(&site_of_unreachable, "unreachable").await;
}

#[tokio::test]
async fn a_member_that_never_finishes_the_handshake_is_given_up_after_connect_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let member = format!("https://{}", silent.local_addr().unwrap());
    let config = format!("pools.app.connect_timeout = \"100ms\"\n{SHORT_QUEUE_TIMEOUT}");
    let site = trusting(&authority(), &config).with_member("app", &member).start().await;
    assert!(refused(&site, "member_handshake").await.contains("in time"));
    // It counts as one that accepts no connection in time: with others beside it, it would be ejected.
    assert!(site.pool("app").await["counters"]["member_timeouts"].as_u64() > Some(0));
}

#[tokio::test]
async fn a_member_that_requests_a_client_certificate_gets_it() {
    let trust = authority();
    let (clients, strangers) = (authority(), authority());
    let config = || trust.vouch_for(&["127.0.0.1"]).for_server(Some(&clients));
    let app = upstream().over_tls(config()).start().await;
    let with = |certificate: Option<IssuedCertificate>| {
        let keys = if certificate.is_some() { "cert = \"our.pem\"\nkey = \"our.key\"\n" } else { "" };
        let plan = site(&format!("{SHORT_QUEUE_TIMEOUT}[pools.app.tls]\nca = \"ca.pem\"\n{keys}"));
        write(plan.folder(), "ca.pem", &trust.cert());
        if let Some(IssuedCertificate { cert, key }) = certificate {
            write(plan.folder(), "our.pem", &cert);
            write(plan.folder(), "our.key", &key);
        }
        plan.with("app", &app).start()
    };
    let known = with(Some(clients.vouch_for(&["edge.test"]))).await;
    known.get("/").await.assert_ok("ok");
    for unknown in [Some(strangers.vouch_for(&["edge.test"])), None] {
        let site = with(unknown).await;
        refused(&site, "member_wants_certificate").await;
    }
    assert_eq!(app.requests().len(), 1);
}

#[tokio::test]
async fn a_streamed_body_of_which_a_part_is_gone_is_not_sent_to_the_next_member() {
    let (trust, clients) = (authority(), authority());
    let certificate = trust.vouch_for(&["127.0.0.1"]);
    let good = upstream().over_tls(certificate.for_server(None)).start().await;
    // In TLS 1.3 it rejects Hostler after the handshake.
    let bad = upstream().over_tls(certificate.for_server(Some(&clients))).start().await;
    let config = "pools.app.choice = \"round_robin\"
        routes = [{ match = \"/*\", pool = \"app\", buffer = \"none\" }]";
    let site = trusting(&trust, config).with("app", &bad).with("app", &good).start().await;
    let mut statuses = Vec::new();
    for _ in 0..2 {
        let request = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        statuses.push(site.send(request).await.status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 502]);
    let bodies: Vec<_> = good.requests().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, [b"abc"]);
}

#[tokio::test]
async fn a_member_in_http2_that_requires_a_client_certificate_has_the_same_error() {
    let (trust, clients) = (authority(), authority());
    let mut config = trust.vouch_for(&["127.0.0.1"]).for_server(Some(&clients));
    config.alpn_protocols = vec![b"h2".to_vec()];
    let member = Http2Plan { tls: Some(config), ..Http2Plan::default() }.start(|asked| asked.ok("")).await;
    let config = format!("pools.app.protocol = \"http2\"\n{SHORT_QUEUE_TIMEOUT}");
    let site = trusting(&trust, &config).with_member("app", member.address()).start().await;
    refused(&site, "member_wants_certificate").await;
    assert_eq!(member.requests(), 0);
}

#[tokio::test]
async fn a_member_without_a_certificate_for_the_name_wants_none_of_hostler() {
    let builder = ServerConfig::builder_with_protocol_versions(&[&TLS13]).with_no_client_auth();
    let config = builder.with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
    let app = upstream().over_tls(config).start().await;
    let site = trusting(&authority(), SHORT_QUEUE_TIMEOUT).with("app", &app).start().await;
    assert!(refused(&site, "member_handshake").await.contains("AccessDenied"));
}

#[tokio::test]
async fn a_request_for_a_member_without_tls_goes_to_the_next_member() {
    let trust = authority();
    let good = upstream().over_tls(trust.vouch_for(&["127.0.0.1"]).for_server(None)).start().await;
    let bad = upstream().over_tls(authority().vouch_for(&["127.0.0.1"]).for_server(None)).start().await;
    let plan = trusting(&trust, "pools.app.choice = \"round_robin\"");
    let site = plan.with("app", &bad).with("app", &good).start().await;
    for n in 0..4 {
        site.post("/", format!("{n}")).await.assert_ok("ok");
    }
    assert_eq!((good.requests().len(), bad.requests().len()), (4, 0));
}

#[tokio::test]
async fn an_answer_that_ends_with_the_connection_needs_close_notify() {
    let trust = authority();
    let config = trust.vouch_for(&["127.0.0.1"]).for_server(None);
    let cut = [text("HTTP/1.1 200 OK\r\n\r\nhalf of it"), vec![Step::Close]].concat();
    let app = upstream().does(cut).over_tls(config).start().await;
    let site = trusting(&trust, "").with("app", &app).start().await;
    site.get("/").await.assert_broken();
}

#[tokio::test]
async fn a_member_that_closes_without_an_answer_and_without_close_notify_has_only_closed() {
    let trust = authority();
    let config = trust.vouch_for(&["127.0.0.1"]).for_server(None);
    let app = upstream().does(vec![Step::Close]).over_tls(config).start().await;
    let site = trusting(&trust, "").with("app", &app).start().await;
    assert_eq!(refused(&site, "worker_lost").await, "connection closed before a response");
}

#[tokio::test]
async fn a_websocket_goes_through_a_member_over_tls() {
    let trust = authority();
    let config = trust.vouch_for(&["127.0.0.1"]).for_server(None);
    let switched = "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello";
    let app = upstream().answers(switched).over_tls(config).start().await;
    let site = trusting(&trust, "").with("app", &app).start().await;
    let mut client = site.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    client.read_until("\r\n\r\n").await;
    assert_eq!(client.read_exactly(5).await, b"hello");
    crate::tunnels::has_tunnels(&site, 1).await;
}
