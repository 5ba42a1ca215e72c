//! How tunnels end: closed by one side, half-closed, idle, and at a stop. Raw bytes on both sides.

use std::time::Duration;

use hostler_testkit::{ConnectionEnding, Site, WAIT_LIMIT, authority, tls_clients};
use tokio::time::Instant;

use crate::tls::{ONE, secured};
use crate::tunnels::{GOING_AWAY, Member, handshake, has_tunnels, in_front, switched, tunnel};

/// A text frame of a server.
fn frame(text: &str) -> Vec<u8> {
    [&[0x81, text.len() as u8], text.as_bytes()].concat()
}

/// A frame of a client, with a mask of zeroes.
fn masked(opcode: u8, payload: &[u8]) -> Vec<u8> {
    [&[0x80 | opcode, 0x80 | payload.len() as u8, 0, 0, 0, 0], payload].concat()
}

/// The payload of a masked Close frame with "going away".
#[track_caller]
fn assert_going_away(frame: &[u8]) {
    let [0x88, 0x82, a, b, _, _, high, low] = frame else { panic!("{frame:?}") };
    assert_eq!([high ^ a, low ^ b], [0x03, 0xe9]);
}

async fn reload(site: &Site, config: &str) {
    site.rewrite(config);
    site.command(&["reload"]).await.assert_exit(0);
}

#[tokio::test]
async fn each_direction_of_a_tunnel_ends_separately() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    let (mut client, mut end) = tunnel(&site, &member, "any").await;
    client.send("all of it").await;
    client.finish_sending().await;
    assert_eq!(end.rest().await, (b"all of it".to_vec(), true));
    end.send("and back").await;
    assert_eq!(client.read_exactly(8).await, b"and back");
    end.finish_sending().await;
    client.assert_closed().await;

    let (mut client, mut end) = tunnel(&site, &member, "any").await;
    end.send("all of it").await;
    end.finish_sending().await;
    assert_eq!(client.rest().await, ("all of it".into(), ConnectionEnding::Cut));
    client.send("and back").await;
    assert_eq!(end.read(8).await, b"and back");
    client.finish_sending().await;
    assert_eq!(end.rest().await, (vec![], true));
    has_tunnels(&site, 0).await;
}

#[tokio::test]
async fn the_log_has_a_line_for_a_tunnel_at_its_end() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    let (mut client, mut end) = tunnel(&site, &member, "any").await;
    client.send("12345").await;
    end.read(5).await;
    end.send("123").await;
    end.finish_sending().await;
    client.finish_sending().await;
    client.read_exactly(3).await;
    client.assert_closed().await;
    let line = site.access("/").await;
    assert_eq!(
        (&line["status"], &line["bytes_in"], &line["bytes_out"]),
        (&101.into(), &5.into(), &3.into()),
        "{line}"
    );
    assert!(line["slot_hold_ms"].is_number() && line["pool"] == "app", "{line}");
    assert_eq!(site.status().await["routes"][0]["answers"]["1xx"], 1);
}

#[tokio::test]
async fn the_log_has_the_bytes_of_a_tunnel_that_does_not_end_before_hostler() {
    let member = Member::start().await;
    let mut site = in_front(&member, "server.drain_timeout = \"200ms\"").await;
    let (mut client, mut end) = tunnel(&site, &member, "any").await;
    client.send("12345").await;
    end.read(5).await;
    end.send("123").await;
    client.read_exactly(3).await;
    site.terminate();
    assert_eq!(site.exit().await, 0);
    let line = site.access("/").await;
    assert_eq!(
        (&line["aborted"], &line["bytes_in"], &line["bytes_out"]),
        (&"stopped".into(), &5.into(), &3.into()),
        "{line}"
    );
}

#[tokio::test]
async fn the_log_says_whether_a_client_has_left_its_websocket_without_a_close_frame() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    let (mut client, mut end) = tunnel(&site, &member, "websocket").await;
    client.send(masked(1, b"hi")).await;
    client.finish_sending().await;
    assert_eq!(end.rest().await, (masked(1, b"hi"), true));
    end.finish_sending().await;
    client.assert_closed().await;
    assert_eq!(site.exchanges(1).await[0]["aborted"], "client");

    let (mut client, mut end) = tunnel(&site, &member, "websocket").await;
    client.send(masked(8, &[3, 0xe9])).await;
    client.finish_sending().await;
    assert_eq!(end.rest().await, (masked(8, &[3, 0xe9]), true));
    end.send(GOING_AWAY).await;
    end.finish_sending().await;
    assert_eq!(client.read_exactly(4).await, GOING_AWAY);
    client.assert_closed().await;
    assert!(site.exchanges(2).await[1]["aborted"].is_null());
}

#[tokio::test]
async fn a_websocket_over_tls_ends_in_order_also_without_the_close_message_of_tls() {
    let (trust, member) = (authority(), Member::start().await);
    let site = secured(&trust, ONE).with_member("app", &member.address()).start().await;
    for last in [masked(8, &[3, 0xe9]), masked(1, b"hi")] {
        let mut client = tls_clients(&trust).connect("a.test", site.tls_address()).await;
        client.send(handshake("websocket")).await;
        let mut end = member.accept().await;
        end.send(switched("websocket")).await;
        client.next_head().await.unwrap();
        client.send(&last).await;
        client.cut_off();
        assert_eq!(end.rest().await, (last, true));
        end.finish_sending().await;
        has_tunnels(&site, 0).await;
    }
    let lines = site.exchanges(2).await;
    assert!(lines[0]["aborted"].is_null(), "its Close frame has come: {lines:?}");
    assert_eq!(lines[1]["aborted"], "client");
}

#[tokio::test]
async fn a_client_that_resets_its_tunnel_frees_all_resources() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    for protocol in ["websocket", "any"] {
        let (client, mut end) = tunnel(&site, &member, protocol).await;
        client.reset();
        assert_eq!(
            end.rest().await,
            (vec![], false),
            "{protocol}: broken off, and not as if it were the end"
        );
        has_tunnels(&site, 0).await;
    }
}

#[tokio::test]
async fn a_member_that_resets_its_tunnel_resets_the_client_unless_a_close_frame_is_possible() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    let (mut client, end) = tunnel(&site, &member, "any").await;
    end.stream.set_zero_linger().unwrap();
    drop(end);
    assert_eq!(client.rest().await.1, ConnectionEnding::Reset);

    let (mut client, mut end) = tunnel(&site, &member, "websocket").await;
    end.send(frame("last words")).await;
    assert_eq!(client.read_exactly(12).await, frame("last words"));
    end.stream.set_zero_linger().unwrap();
    drop(end);
    assert_eq!(client.read_exactly(4).await, GOING_AWAY);
    client.send(masked(8, &[3, 0xe9])).await;
    client.assert_closed().await;
    has_tunnels(&site, 0).await;
}

#[tokio::test]
async fn a_member_may_reset_its_websocket_after_its_close_frame() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    let (mut client, mut end) = tunnel(&site, &member, "websocket").await;
    end.send(GOING_AWAY).await;
    assert_eq!(client.read_exactly(4).await, GOING_AWAY);
    end.stream.set_zero_linger().unwrap();
    drop(end);
    client.assert_closed().await;
    drop(client);
    assert!(site.exchanges(1).await[0]["aborted"].is_null());
}

#[tokio::test]
async fn after_a_member_dies_inside_a_frame_no_close_frame_is_sent() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    let (mut client, mut end) = tunnel(&site, &member, "websocket").await;
    end.send([0x82, 100, 1, 2, 3]).await;
    drop(end);
    // The first byte is not UTF-8, so the client shows it as U+FFFD.
    assert_eq!(client.rest().await.0, "\u{fffd}d\u{1}\u{2}\u{3}");
    has_tunnels(&site, 0).await;
}

#[tokio::test]
async fn a_websocket_ends_although_the_client_keeps_its_connection_open() {
    let member = Member::start().await;
    let site = in_front(&member, "pools.app.tunnel_idle_timeout = \"1h\"").await;
    for answers in [true, false] {
        let (mut client, mut end) = tunnel(&site, &member, "websocket").await;
        // Before the time begins: on a busy machine, the client may read late.
        let began = Instant::now();
        end.send(GOING_AWAY).await;
        assert_eq!(client.read_exactly(4).await, GOING_AWAY);
        if answers {
            client.send(masked(8, &[3, 0xe9])).await;
            end.read(8).await;
        }
        end.finish_sending().await;
        has_tunnels(&site, 0).await;
        let waited = began.elapsed();
        assert!(waited > Duration::from_millis(4500), "answers: {answers}: it had {waited:?} to close");
        assert_eq!(end.rest().await, (vec![], true), "answers: {answers}");
    }
}

#[tokio::test]
async fn a_tunnel_without_a_byte_is_closed_after_its_time() {
    let member = Member::start().await;
    let site = in_front(&member, "pools.app.tunnel_idle_timeout = \"200ms\"").await;
    let (mut client, mut end) = tunnel(&site, &member, "websocket").await;
    assert_eq!(client.read_exactly(4).await, GOING_AWAY);
    assert_going_away(&end.read(8).await);
    client.send(masked(8, &[3, 0xe9])).await;
    end.send(GOING_AWAY).await;
    client.assert_closed().await;
    assert_eq!(end.rest().await.0, b"");

    let (mut client, mut end) = tunnel(&site, &member, "any").await;
    assert_eq!(client.rest().await.0, "");
    assert_eq!(end.rest().await.0, b"");
    has_tunnels(&site, 0).await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_for_too_long_ends_its_tunnel() {
    let member = Member::start().await;
    let site = in_front(&member, "server.send_timeout = \"300ms\"").await;
    let (client, mut end) = tunnel(&site, &member, "any").await;
    let flood = vec![b'x'; 1 << 20];
    let flooded = async {
        use tokio::io::AsyncWriteExt;
        while end.stream.write_all(&flood).await.is_ok() {}
    };
    tokio::time::timeout(WAIT_LIMIT, flooded)
        .await
        .expect("the member is told that the client does not read");
    has_tunnels(&site, 0).await;
    drop(client);
}

#[tokio::test]
async fn a_stop_sends_the_close_frame_after_the_end_of_a_frame() {
    let member = Member::start().await;
    let mut site = in_front(&member, "server.drain_timeout = \"1m\"").await;
    let (mut client, mut end) = tunnel(&site, &member, "websocket").await;
    let text = frame("a message");
    end.send(&text[..4]).await;
    assert_eq!(client.read_exactly(4).await, &text[..4]);
    site.terminate();
    // The other direction is between two frames.
    assert_going_away(&end.read(8).await);
    end.send([&text[4..], &frame("one too many")].concat()).await;
    assert_eq!(client.read_exactly(text.len() - 4).await, &text[4..]);
    assert_eq!(client.read_exactly(4).await, GOING_AWAY);
    client.send([masked(1, b"lost"), masked(8, &[3, 0xe9])].concat()).await;
    end.send(GOING_AWAY).await;
    client.assert_closed().await;
    assert_eq!(end.rest().await.0, b"");
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn no_tunnel_can_keep_hostler_from_stopping() {
    let member = Member::start().await;
    let mut site = in_front(&member, "server.drain_timeout = \"1h\"").await;
    let (mut silent, _silent_end) = tunnel(&site, &member, "websocket").await;
    let (_any, _any_end) = tunnel(&site, &member, "any").await;
    let (mut inside, mut inside_end) = tunnel(&site, &member, "websocket").await;
    inside.send(&masked(1, b"the rest never comes")[..9]).await;
    inside_end.read(9).await;
    site.terminate();
    assert_eq!(silent.read_exactly(4).await, GOING_AWAY);
    assert_eq!(inside.read_exactly(4).await, GOING_AWAY);
    assert_eq!(inside_end.rest().await, (vec![], true), "no word inside a frame");
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn a_removed_pool_ends_its_tunnels() {
    let (member, other) = (Member::start().await, Member::start().await);
    let site = in_front(&member, "server.drain_timeout = \"1m\"").await;
    let (mut client, mut end) = tunnel(&site, &member, "websocket").await;
    reload(&site, &format!("[pools.other]\nmembers = ['{}']", other.address())).await;
    assert_eq!(client.read_exactly(4).await, GOING_AWAY);
    assert_going_away(&end.read(8).await);
    let (mut again, mut end) = tunnel(&site, &other, "websocket").await;
    again.send(masked(1, b"hi")).await;
    assert_eq!(end.read(8).await, masked(1, b"hi"));
}

#[tokio::test]
async fn a_removed_member_ends_its_tunnels_and_those_of_others_stay() {
    let (member, other) = (Member::start().await, Member::start().await);
    let site = in_front(&member, "").await;
    let (mut client, _end) = tunnel(&site, &member, "websocket").await;
    let (old, new) = (member.address(), other.address());
    reload(&site, &format!("[pools.app]\nmembers = ['{old}', '{new}']")).await;
    let (mut stays, mut stays_end) = tunnel(&site, &other, "websocket").await;
    reload(&site, &format!("[pools.app]\nmembers = ['{new}']")).await;
    assert_eq!(client.read_exactly(4).await, GOING_AWAY);
    stays.send(masked(1, b"hi")).await;
    assert_eq!(stays_end.read(8).await, masked(1, b"hi"));
    stays_end.send(frame("hi")).await;
    assert_eq!(stays.read_exactly(4).await, frame("hi"));
}
