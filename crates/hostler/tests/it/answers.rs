//! Answers flow to the client as the member produces them, at the client's speed, without holding a slot for it.

use std::time::Duration;

use hostler_testkit::{ConnectionEnding, Step, client_with_window, eventually, ok, text, upstream};
use serde_json::Value;

use crate::in_front_of;
use crate::tunnels::{Member, in_front};

const MIB: usize = 1 << 20;

#[tokio::test]
async fn an_answer_arrives_chunk_by_chunk() {
    let steps = [
        text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        vec![Step::Hold],
        text("5\r\nfirst\r\n"),
        vec![Step::Hold],
        text("6\r\nsecond\r\n"),
        vec![Step::Hold],
        text("0\r\n\r\n"),
    ]
    .concat();
    let app = upstream().does(steps).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.begin("/").await;
    assert!(
        client.next_head().await.unwrap().text().contains("Transfer-Encoding: chunked"),
        "the head alone"
    );
    app.release(1);
    assert_eq!(client.read_until("first\r\n").await, "000005\r\nfirst\r\n");
    app.release(1);
    assert_eq!(client.read_until("second\r\n").await, "000006\r\nsecond\r\n");
    site.settles("app", 1, 0).await;
    app.release(1);
    assert_eq!(client.read_until("\r\n\r\n").await, "0\r\n\r\n");
    site.settles("app", 0, 0).await;
}

#[tokio::test]
async fn an_answer_of_known_length_is_passed_on_while_it_arrives() {
    let steps =
        [text("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"), vec![Step::Hold], text("def")].concat();
    let app = upstream().does(steps).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.begin("/").await;
    client.read_until("\r\n\r\nabc").await;
    app.release(1);
    client.read_until("def").await;
    app.release(1);
    client.get("/again").await.assert_ok("abcdef");
}

const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\r\n";

#[tokio::test]
async fn server_sent_events_arrive_one_by_one() {
    let events = (1..=3).flat_map(|n| [vec![Step::Hold], text(format!("data: {n}\n\n"))].concat());
    let app = upstream().does([text(EVENTS), events.collect()].concat()).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.begin("/events").await;
    client.read_until("\r\n\r\n").await;
    for n in 1..=3 {
        app.release(1);
        client.read_until(&format!("data: {n}\n\n")).await;
    }
}

#[tokio::test]
async fn an_event_stream_without_its_client_is_closed_at_the_member() {
    let app =
        upstream().does([text(EVENTS), text("data: 1\n\n"), vec![Step::AwaitFin]].concat()).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.begin("/events").await;
    client.read_until("data: 1\n\n").await;
    site.settles("app", 0, 0).await;
    drop(client);
    eventually("the member to be told", async || app.requests()[0].fin.then_some(())).await;
    assert_eq!(site.access("/events").await["stream_end"], "client");
}

#[tokio::test]
async fn a_slot_is_free_when_the_member_has_finished_however_slowly_the_client_reads() {
    let app = upstream().does(ok(vec![b'x'; MIB - 1000])).start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    let mut slow = client_with_window(4096, site.address()).await;
    slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    slow.next_head().await;
    app.has_seen(1).await;
    site.settles("app", 0, 0).await;
    site.get("/other").await.assert_status(200);
    assert_eq!(slow.read_exactly(MIB - 1000).await.len(), MIB - 1000);
}

#[tokio::test]
async fn a_client_that_pauses_gets_the_rest_when_it_reads_on() {
    // More than all kernel buffers hold, and our smallest buffer is full whenever the client pauses.
    let size = 16 * MIB;
    let app = upstream().does(ok(vec![b'x'; size])).start().await;
    let site = in_front_of(&app, "server.answer_buffer = '4 KiB'").await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = client_with_window(100_000, site.address()).await;
        client.send("GET /paused HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.next_head().await;
        clients.push(client);
    }
    // While one is served, the others pause.
    for mut client in clients {
        for _ in 0..8 {
            client.read_exactly(size / 8).await;
        }
        client.get("/paused").await.assert_status(200);
    }
}

#[tokio::test]
async fn a_client_that_leaves_while_its_request_runs_changes_nothing_for_the_slot() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    let running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    let mut waiting = site.begin("/waiting").await;
    site.settles("app", 1, 1).await;
    running.reset();
    // That nothing happens can only be seen while other things happen.
    for _ in 0..20 {
        let pool = site.pool("app").await;
        assert_eq!((&pool["in_use"], &pool["queue_length"]), (&1.into(), &1.into()));
    }
    app.release(1);
    app.has_seen(2).await;
    app.release(1);
    waiting.answer().await.assert_ok("/waiting");
    assert_eq!(app.most_running(), 1);
}

#[tokio::test]
async fn fifty_clients_that_leave_at_once_never_give_a_member_two_requests() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    let mut leaving = Vec::new();
    for n in 0..50 {
        leaving.push(site.begin(&format!("/leaving/{n}")).await);
    }
    site.settles("app", 1, 49).await;
    let mut staying = site.begin("/staying").await;
    site.settles("app", 1, 50).await;
    drop(leaving);
    site.settles("app", 1, 1).await;
    app.release_all();
    staying.answer().await.assert_ok("/staying");
    assert_eq!(app.targets(), ["/leaving/0", "/staying"]);
    assert_eq!(app.most_running(), 1);
}

#[tokio::test]
async fn a_short_rest_of_an_answer_is_read_when_the_client_leaves_in_the_middle() {
    let first = text("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\nfirst");
    let rest = text("x".repeat(200_000 - 5));
    let app = upstream().does([first, vec![Step::Hold], rest].concat()).start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    let mut client = site.begin("/left").await;
    client.read_until("first").await;
    app.release(1);
    client.reset();
    assert_eq!(site.access("/left").await["aborted"], "client");
    site.settles("app", 0, 0).await;
    app.release_all();
    site.get("/next").await.assert_status(200);
    assert_eq!(app.connections(), 1, "the connection is as good as new");
}

/// A small answer, and one for which there is no room in the sockets, each once its request was seen.
fn held_answers() -> [Vec<Step>; 2] {
    [2, 16 * MIB].map(|bytes| {
        let head = text(format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n"));
        [vec![Step::Hold], head, text("x".repeat(bytes))].concat()
    })
}

#[tokio::test]
async fn a_client_that_has_left_before_its_answer_begins_is_logged_with_499() {
    for steps in held_answers() {
        for resets in [false, true] {
            let mut line = Value::Null;
            // On a busy machine the kernel may show the end of the connection too late. Then Hostler cannot know of it.
            for _ in 0..5 {
                let app = upstream().does(steps.clone()).start().await;
                let site = in_front_of(&app, "pools.app.concurrency = 1").await;
                let client = site.begin("/left").await;
                app.has_seen(1).await;
                match resets {
                    true => client.reset(),
                    false => drop(client),
                }
                app.release_all();
                line = site.access("/left").await;
                if line["status"] == 499 {
                    break;
                }
            }
            assert_eq!(
                (&line["status"], &line["refusal"], &line["aborted"], &line["bytes_out"]),
                (&499.into(), &"client_left".into(), &"client".into(), &0.into()),
                "{resets} {line}"
            );
        }
    }
}

#[tokio::test]
async fn a_client_that_has_only_finished_sending_and_takes_its_answer_has_not_left() {
    for steps in held_answers() {
        let app = upstream().does(steps).start().await;
        let site = in_front_of(&app, "pools.app.concurrency = 1").await;
        let mut client = site.begin("/stays").await;
        app.has_seen(1).await;
        client.finish_sending().await;
        app.release_all();
        let body = client.answer().await.assert_status(200).body.len();
        let line = site.access("/stays").await;
        assert_eq!((&line["status"], &line["bytes_out"]), (&200.into(), &body.into()), "{line}");
        assert_eq!((&line["refusal"], &line["aborted"]), (&Value::Null, &Value::Null), "{line}");
    }
}

#[tokio::test]
async fn the_line_of_a_client_that_has_left_says_which_refusal_it_missed() {
    let app = upstream().holds_requests().start().await;
    // On a busy machine the client needs some of this time to leave.
    let config = "pools.app.concurrency = 1\npools.app.request_timeout = '3s'";
    let site = in_front_of(&app, config).await;
    let client = site.begin("/left").await;
    app.has_seen(1).await;
    drop(client);
    let line = site.access("/left").await;
    assert_eq!((&line["status"], &line["refusal"]), (&499.into(), &"client_left".into()), "{line}");
    assert_eq!(line["detail"], "the client left before Hostler could send it a 504 (answer_timeout)");
}

#[tokio::test]
async fn a_client_that_leaves_a_long_answer_ends_it_at_the_member() {
    let member = Member::start().await;
    let site = in_front(&member, "pools.app.concurrency = 1").await;
    let mut client = site.begin("/long").await;
    let mut end = member.accept().await;
    end.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    end.send("5\r\nfirst\r\n").await;
    client.read_until("first").await;
    client.reset();
    // The next write shows that the client has left.
    end.send("6\r\nsecond\r\n").await;
    assert_eq!(end.rest().await, (vec![], true), "its connection is closed");
    // The slot is taken until the member has closed its side, too.
    site.settles("app", 1, 0).await;
    end.finish_sending().await;
    site.settles("app", 0, 0).await;
    assert_eq!(site.access("/long").await["aborted"], "client");
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_while_its_answer_pauses() {
    for framing in ["Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n", "Content-Length: 9\r\n\r\nfirst"] {
        let member = Member::start().await;
        let site = in_front(&member, "pools.app.concurrency = 1").await;
        let mut client = site.begin("/pauses").await;
        let mut end = member.accept().await;
        end.send(format!("HTTP/1.1 200 OK\r\n{framing}")).await;
        client.read_until("first").await;
        drop(client);
        // The member sends nothing more.
        assert_eq!(end.rest().await, (vec![], true), "its connection is closed");
        end.finish_sending().await;
        site.settles("app", 0, 0).await;
        assert_eq!(site.access("/pauses").await["aborted"], "client");
    }
}

#[tokio::test]
async fn a_client_that_has_finished_sending_gets_the_rest_of_an_answer_that_goes_on() {
    let member = Member::start().await;
    let site = in_front(&member, "pools.app.concurrency = 1").await;
    let mut client = site.begin("/goes-on").await;
    let mut end = member.accept().await;
    end.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await;
    client.read_until("first").await;
    client.finish_sending().await;
    // In all it takes longer than a pause may.
    let mut pace = tokio::time::interval(Duration::from_millis(200));
    for n in 0..8 {
        pace.tick().await;
        end.send(format!("6\r\npiece{n}\r\n")).await;
        client.read_until(&format!("piece{n}")).await;
    }
    end.send("0\r\n\r\n").await;
    client.read_until("0\r\n\r\n").await;
    assert_ne!(site.access("/goes-on").await["aborted"], "client");
}

#[tokio::test]
async fn an_answer_that_pauses_for_too_long_is_ended_and_its_slot_is_free() {
    for framing in ["Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n", "Content-Length: 9\r\n\r\nfirst"] {
        let member = Member::start().await;
        let config = "pools.app.concurrency = 1\npools.app.response_idle_timeout = \"200ms\"";
        let site = in_front(&member, config).await;
        let mut client = site.begin("/stalls").await;
        let mut end = member.accept().await;
        end.send(format!("HTTP/1.1 200 OK\r\n{framing}")).await;
        client.read_until("first").await;
        assert_eq!(client.rest().await.1, ConnectionEnding::Reset, "it is not whole");
        assert_eq!(end.rest().await, (vec![], true), "its connection is closed");
        end.finish_sending().await;
        site.settles("app", 0, 0).await;
        let line = site.access("/stalls").await;
        assert_eq!(
            (&line["aborted"], &line["detail"]),
            (&"worker".into(), &"the worker sent no byte for response_idle_timeout".into())
        );
    }
}

#[tokio::test]
async fn an_answer_with_connection_close_ends_cleanly() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    client.answer().await.assert_ok("ok");
    assert_eq!(client.rest().await, (String::new(), ConnectionEnding::Cut));
}
