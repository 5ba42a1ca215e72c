//! Registered members and routes with IPv6 addresses.

use std::net::Ipv6Addr;

use hostler_testkit::{nats, say_skipped};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::registrar::{answers, client, say, site_on};

#[tokio::test]
async fn an_ipv6_address_is_a_host_of_a_member_and_of_a_route() {
    let Some(nats) = nats().start().await else { return };
    let listener = match TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await {
        Ok(listener) => listener,
        Err(error) => return say_skipped(&format!("nothing can listen at ::1: {error}")),
    };
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nv6")
                .await;
            // Read to the end, so that the answer is not lost with a reset.
            tokio::spawn(async move { stream.read_to_end(&mut Vec::new()).await });
        }
    });
    let (site, client) = (site_on(&nats, "").await, client(&nats).await);
    for (host, uri) in [("[::1]", "bracketed.test"), ("::1", "plain.test"), ("::1", "[::1]")] {
        say(&client, "router.register", &json!({ "host": host, "port": port, "uris": [uri] })).await;
        answers(&site, uri, "/", "v6").await;
    }
    answers(&site, "[0:0::1]:8080", "/", "v6").await;
}
