//! Tunnels whose clients read nothing: what waits for them is counted and bounded, and goes on when they read.

use std::collections::BTreeMap;

use hostler_testkit::{Frame, Site, authority, eventually, frame_client_that_reads_late, tls_clients};
use tokio::io::AsyncWriteExt;

use crate::http2_tunnels::accept;
use crate::slow_clients::is_given_back;
use crate::tls::{ONE, secured};
use crate::tunnels::{End, Member, handshake, has_tunnels, in_front, switched, tunnel};

const TUNNELS: u32 = 10;
/// The most bytes that wait in one direction of a tunnel.
const OF_ONE: u64 = 64 << 10;
/// The most bytes that all streams of a connection have in the send buffer of HTTP/2, but for the last piece.
const OF_CONNECTION: u64 = 256 << 10;

/// A member that sends short messages as long as the tunnel takes them.
fn floods(mut end: End) {
    tokio::spawn(async move { while end.stream.write_all(&[7; 1000]).await.is_ok() {} });
}

async fn used(site: &Site) -> u64 {
    site.status().await["answer_memory"]["used"].as_u64().unwrap()
}

#[tokio::test]
async fn what_waits_in_a_tunnel_counts_as_memory_for_answers() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    let (client, end) = tunnel(&site, &member, "any").await;
    floods(end);
    eventually("bytes that wait", async || (used(&site).await > 0).then_some(())).await;
    assert!(used(&site).await <= OF_ONE);
    drop(client);
    is_given_back(&site).await;
}

#[tokio::test]
async fn what_tls_holds_of_a_tunnel_counts_as_memory_for_answers() {
    let (trust, member) = (authority(), Member::start().await);
    let site = secured(&trust, ONE).with_member("app", &member.address()).start().await;
    let mut client = tls_clients(&trust).connect("a.test", site.tls_address()).await;
    client.send(handshake("any")).await;
    let mut end = member.accept().await;
    end.send(switched("any")).await;
    floods(end);
    eventually("bytes that wait", async || (used(&site).await > 0).then_some(())).await;
    assert!(used(&site).await <= OF_ONE);
    drop(client);
    is_given_back(&site).await;
}

#[tokio::test]
async fn websockets_of_one_http_2_connection_share_its_send_buffer_and_each_goes_on() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    let mut client = frame_client_that_reads_late(site.address()).await;
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/chat"),
        (":authority", "a"),
        ("sec-websocket-version", "13"),
    ];
    let mut ends = Vec::new();
    for stream in (0..TUNNELS).map(|n| 2 * n + 1) {
        client.send(&[Frame::head(stream, &fields)]).await;
        let mut end = member.accept().await;
        let answering = accept(&end.head);
        end.send(answering).await;
        ends.push(end);
    }
    has_tunnels(&site, TUNNELS as usize).await;
    ends.into_iter().for_each(floods);
    eventually("a full send buffer", async || (used(&site).await >= OF_CONNECTION).then_some(())).await;
    let most = OF_CONNECTION + (16 << 10) + u64::from(TUNNELS) * OF_ONE;
    assert!(used(&site).await <= most, "{} bytes wait", used(&site).await);
    let mut received = BTreeMap::<u32, usize>::new();
    while received.len() < TUNNELS as usize || received.values().any(|bytes| *bytes < 200_000) {
        let frame = client.next_of(Frame::DATA).await;
        assert!(frame.payload.iter().all(|byte| *byte == 7));
        *received.entry(frame.stream).or_default() += frame.payload.len();
    }
    drop(client);
    is_given_back(&site).await;
}
