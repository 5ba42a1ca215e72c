//! Members that refuse, leave or are slow: the client sees nothing of it where a retry is allowed, else a clear refusal. A POST is never
//! sent twice.

use std::time::Duration;

use hostler_testkit::{Seen, Step, eventually, no_upstream, ok, text, upstream};
use rustix::process::Signal;
use serde_json::Value;
use tokio::time::Instant;

use crate::{in_front_of, signal, site};

const ONE_SLOT: &str = "pools.app.concurrency = 1\n";

#[tokio::test]
async fn a_member_that_refuses_connections_is_skipped() {
    let app = upstream().start().await;
    let plan = site("pools.app.choice = 'round_robin'").with_member("app", &no_upstream());
    let site = plan.with("app", &app).start().await;
    for _ in 0..20 {
        site.get("/").await.assert_ok("ok");
    }
    // While the other member is ejected, no request meets it first.
    let mut asked = 0;
    eventually("a POST that was refused before", async || {
        site.post("/post", "body").await.assert_ok("ok");
        asked += 1;
        let is_second = |line: &Value| line["target"] == "/post" && line["attempts"].as_u64() > Some(1);
        site.access_lines().iter().any(is_second).then_some(())
    })
    .await;
    assert_eq!(app.requests().len(), 20 + asked);
    let status = site.status().await;
    assert!(status["routes"][0]["retries"].as_u64().unwrap() >= 1, "{status}");
    assert!(site.pool("app").await["counters"]["member_failures"].as_u64().unwrap() >= 1);
}

#[tokio::test]
async fn a_request_waits_for_a_member_that_comes_back() {
    let plan = site("");
    let path = plan.folder().join("app.sock");
    let site = plan.with_member("app", &format!("unix:{}", path.display())).start().await;
    let mut get = site.begin("/get").await;
    let mut post = site.connect().await;
    post.send("POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody").await;
    eventually("an attempt", async || {
        (site.pool("app").await["counters"]["member_failures"].as_u64()? > 2).then_some(())
    })
    .await;
    let app = upstream().on_unix(&path).start().await;
    get.answer().await.assert_ok("ok");
    post.answer().await.assert_ok("ok");
    assert_eq!(app.requests().len(), 2, "{:?}", app.targets());
    assert!(site.access("/get").await["attempts"].as_u64().unwrap() > 1);
}

#[tokio::test]
async fn requests_at_a_member_that_comes_back_do_not_wait_for_its_first_answer() {
    let plan = site("pools.app.queue.timeout = '60s'");
    let path = plan.folder().join("app.sock");
    let site = plan.with_member("app", &format!("unix:{}", path.display())).start().await;
    let mut clients = [site.begin("/1").await, site.begin("/2").await, site.begin("/3").await];
    eventually("an attempt", async || {
        (site.pool("app").await["counters"]["member_failures"].as_u64()? > 0).then_some(())
    })
    .await;
    let app = upstream().holds_requests().on_unix(&path).start().await;
    app.has_seen(3).await;
    app.release_all();
    for (client, target) in clients.iter_mut().zip(["/1", "/2", "/3"]) {
        client.answer().await.assert_ok(target);
    }
}

#[tokio::test]
async fn the_log_has_the_time_of_the_tries_that_failed() {
    let app = upstream()
        .in_turn([vec![Step::Hold, Step::Close], [vec![Step::Hold], ok("ok")].concat()])
        .start()
        .await;
    let site = in_front_of(&app, "").await;
    let waits = async |time: Duration| {
        let began = Instant::now();
        eventually("some time", async || (began.elapsed() >= time).then_some(())).await;
    };
    let mut client = site.begin("/twice").await;
    app.has_seen(1).await;
    waits(Duration::from_millis(300)).await;
    app.release(1);
    app.has_seen(2).await;
    app.release(1);
    client.answer().await.assert_ok("ok");
    let line = site.access("/twice").await;
    let of = |name: &str| line[name].as_f64().unwrap();
    assert!(line["attempts"] == 2 && of("failed_tries_ms") >= 300.0, "{line}");
    let parts = of("queue_wait_ms") + of("failed_tries_ms") + of("slot_hold_ms");
    assert!(parts <= of("total_ms") + 1.0, "{line}");
    site.get("/once").await.assert_ok("ok");
    assert!(site.access("/once").await.get("failed_tries_ms").is_none());
}

#[tokio::test]
async fn the_wait_of_a_request_that_is_sent_again_counts_once() {
    let last = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    let scripts = [[vec![Step::Hold], text(last)].concat(), vec![Step::Close]];
    let app = upstream().in_turn(scripts).start().await;
    let site = in_front_of(&app, ONE_SLOT).await;
    let mut first = site.begin("/first").await;
    site.settles("app", 1, 0).await;
    let mut second = site.begin("/second").await;
    eventually("a wait of 500 ms", async || {
        (site.pool("app").await["oldest_wait_ms"].as_u64()? >= 500).then_some(())
    })
    .await;
    app.release(1);
    first.answer().await.assert_ok("ok");
    second.answer().await.assert_ok("ok");
    let line = site.access("/second").await;
    assert_eq!(line["attempts"], 2, "{line}");
    let counted = &site.pool("app").await["times"]["queue_wait"];
    let of = |name: &str| counted[name].as_f64().unwrap();
    let sum = of("count") * of("mean_us") / 1000.0;
    assert!(sum < 1.5 * line["queue_wait_ms"].as_f64().unwrap(), "{counted} {line}");
}

#[tokio::test]
async fn when_no_member_is_reachable_the_client_gets_a_refusal_in_time() {
    let site = site("pools.app.queue.timeout = '300ms'").with_member("app", &no_upstream()).start().await;
    let mut client = site.connect().await;
    let answer = client.get("/down").await;
    answer.assert_refused(502, "unreachable").assert_says("cannot be reached").assert_no_field("connection");
    let line = site.access("/down").await;
    assert!(line["detail"].as_str().unwrap().contains("refused"), "the operator reads why: {line}");
    assert!(line["queue_wait_ms"].as_f64().unwrap() < 5000.0, "{line}");
    let attempts = line["attempts"].as_u64().unwrap();
    assert!((2..20).contains(&attempts), "in no tight loop: {line}");
}

#[tokio::test]
async fn every_client_that_waits_for_unreachable_members_learns_that_they_are() {
    let plan = site("pools.app.queue.timeout = '1s'");
    let site = plan.with_member("app", &no_upstream()).with_member("app", &no_upstream()).start().await;
    let mut clients = Vec::new();
    for n in 0..12 {
        clients.push(site.begin(&format!("/{n}")).await);
    }
    // Few of them try to connect. The others only wait.
    for client in &mut clients {
        client.answer().await.assert_refused(502, "unreachable");
    }
}

#[tokio::test]
async fn waiting_for_unreachable_members_has_the_limit_of_the_queue() {
    // Each failed attempt ends a wait. The next one must not start a new wait.
    let site = site("pools.app.queue.timeout = '3s'").with_member("app", &no_upstream()).start().await;
    site.get("/down").await.assert_refused(502, "unreachable");
    let waited = site.access("/down").await["queue_wait_ms"].as_f64().unwrap();
    assert!(waited < 4500.0, "waited {waited} ms");
}

/// Ends the second request of each connection in this way, which looks like a race with the keep-alive timeout.
fn second_on_its_connection(seen: &Seen, end: Step) -> Vec<Step> {
    if seen.nth == 2 { vec![end] } else { ok(seen.target()) }
}

#[tokio::test]
async fn a_connection_closed_at_the_moment_of_reuse_does_not_fail_a_get() {
    for end in [Step::Close, Step::Reset] {
        let app = upstream().script(move |seen| second_on_its_connection(seen, end.clone())).start().await;
        let site = in_front_of(&app, ONE_SLOT).await;
        let mut client = site.connect().await;
        for n in 0..10 {
            client.get(&format!("/{n}")).await.assert_ok(&format!("/{n}"));
        }
        let lines = site.exchanges(10).await;
        assert!(lines.iter().all(|line| line["status"] == 200), "{lines:?}");
    }
}

#[tokio::test]
async fn a_put_with_a_body_is_sent_again_whole() {
    let app = upstream().script(|seen| second_on_its_connection(seen, Step::Close)).start().await;
    let site = in_front_of(&app, ONE_SLOT).await;
    let mut client = site.connect().await;
    client.get("/first").await.assert_ok("/first");
    for (n, size) in [10, 300_000, 5].into_iter().enumerate() {
        let body = vec![b'a' + n as u8; size];
        client.send(hostler_testkit::request(&format!("PUT /{n}"), "", &body)).await;
        client.answer().await.assert_ok(&format!("/{n}"));
        assert!(app.requests().last().unwrap().body == body);
    }
}

#[tokio::test]
async fn a_post_is_never_sent_twice() {
    let app = upstream().script(|seen| second_on_its_connection(seen, Step::Close)).start().await;
    let mut asked = 0;
    let (_site, mut client, answer) = eventually("a POST on a connection that was used before", async || {
        // Another Hostler each time: one that has seen a connection end after its first response takes a new one for a POST.
        let site = in_front_of(&app, ONE_SLOT).await;
        let mut client = site.connect().await;
        client.get("/first").await.assert_ok("/first");
        asked += 1;
        // A connection that was idle for a second is not used for it.
        let answer = client.post("/post", "body").await;
        (answer.status != 200).then_some((site, client, answer))
    })
    .await;
    answer
        .assert_refused(502, "worker_lost")
        .assert_says("ended or closed the connection before it answered")
        .assert_no_field("connection");
    assert_eq!(app.targets().iter().filter(|target| *target == "/post").count(), asked);
    // A request with an idempotency key may be.
    client.get("/third").await.assert_ok("/third");
    client.send("POST /keyed HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 1\r\nContent-Length: 2\r\n\r\nhi").await;
    client.answer().await.assert_ok("/keyed");
    assert!(
        app.targets().ends_with(&["/third", "/keyed", "/keyed"].map(String::from)),
        "{:?}",
        app.targets()
    );
}

#[tokio::test]
async fn a_streamed_put_does_not_go_over_a_connection_that_its_member_may_be_closing() {
    let app = upstream().script(|seen| second_on_its_connection(seen, Step::Close)).start().await;
    let site = in_front_of(&app, "[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'").await;
    let mut client = site.connect().await;
    client.get("/first").await.assert_ok("/first");
    let idle = Instant::now();
    eventually("the connection to be old", async || (idle.elapsed().as_millis() > 1500).then_some(())).await;
    // It could not be sent again.
    client.send(hostler_testkit::request("PUT /put", "", b"body")).await;
    client.answer().await.assert_ok("/put");
    assert_eq!(app.connections(), 2);
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_not_used_again() {
    // The member closes after each answer without announcing it. Over a Unix socket Hostler notices the close at once. Over TCP the FIN
    // may still be on its way, so Hostler cannot know.
    let folder = tempfile::tempdir().unwrap();
    let closing = upstream().does([ok("ok"), vec![Step::Close]].concat());
    let app = closing.on_unix(&folder.path().join("app.sock")).start().await;
    let site = in_front_of(&app, ONE_SLOT).await;
    for n in 1..=20 {
        eventually("the connection to end", async || (app.open() == 0).then_some(())).await;
        site.post("/", "body").await.assert_ok("ok");
        assert_eq!(app.requests().len(), n);
    }
}

#[tokio::test]
async fn a_get_whose_member_dies_goes_to_another_and_a_post_does_not() {
    let dying = upstream().does(vec![Step::Close]).start().await;
    let healthy = upstream().start().await;
    let plan = site("pools.app.choice = 'round_robin'").with("app", &dying).with("app", &healthy);
    let site = plan.start().await;
    for _ in 0..10 {
        site.get("/").await.assert_ok("ok");
    }
    assert!(!dying.requests().is_empty());
    let before = dying.requests().len();
    let mut lost = 0;
    for _ in 0..20 {
        lost += usize::from(site.post("/post", "body").await.status == 502);
    }
    let posts = |targets: Vec<String>| targets.iter().filter(|target| *target == "/post").count();
    assert_eq!(posts(dying.targets()) + posts(healthy.targets()), 20, "each was sent once");
    assert_eq!(dying.requests().len() - before, lost, "what met the dying member was lost, and said so");
}

#[tokio::test]
async fn a_request_that_kills_every_member_is_sent_a_limited_number_of_times() {
    let app = upstream().does(vec![Step::Close]).start().await;
    let site = in_front_of(&app, "").await;
    site.get("/deadly").await.assert_refused(502, "worker_lost");
    assert_eq!(app.requests().len(), 3);
    assert_eq!(site.access("/deadly").await["attempts"], 3);
}

#[tokio::test]
async fn an_answer_that_breaks_off_before_its_first_byte_is_requested_again() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Fi";
    let broken = || [text(head), vec![Step::Close]].concat();
    let app = upstream().in_turn([broken(), broken(), ok("again"), broken()]).start().await;
    let site = in_front_of(&app, ONE_SLOT).await;
    let mut client = site.connect().await;
    client.get("/").await.assert_ok("again");
    assert_eq!(site.access("/").await["attempts"], 3);
    client.post("/post", "once").await.assert_refused(502, "worker_lost");
    assert_eq!(app.targets(), ["/", "/", "/", "/post"], "a POST is not sent again");
}

#[tokio::test]
async fn a_member_that_is_silent_too_long_is_a_504_and_keeps_its_slot() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, &format!("{ONE_SLOT}pools.app.request_timeout = '2s'")).await;
    let mut client = site.connect().await;
    let answer = client.get("/slow").await;
    answer
        .assert_refused(504, "answer_timeout")
        .assert_says("the response did not begin in time")
        .assert_no_field("connection");
    assert_eq!(app.running(), 1);
    let pool = site.pool("app").await;
    assert_eq!(pool["in_use"], 1, "the member has not finished: {pool}");

    let refused = client.get("/next").await;
    refused.assert_refused(503, "queue_timeout");
    app.release_all();
    site.settles("app", 0, 0).await;
    client.get("/last").await.assert_ok("/last");
    assert_eq!((app.targets(), app.most_running()), (vec!["/slow".to_owned(), "/last".to_owned()], 1));
}

/// Whether all threads of a process are stopped. One that still runs would get answers that come now.
fn is_stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let states = threads.map(|thread| std::fs::read_to_string(thread.path().join("stat")).unwrap());
    states.into_iter().all(|state| state.rsplit_once(") ").unwrap().1.starts_with('T'))
}

#[tokio::test]
async fn an_answer_that_came_while_hostler_was_stopped_is_not_late() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.request_timeout = '2s'").await;
    let began = Instant::now();
    let mut clients = Vec::new();
    for _ in 0..10 {
        clients.push(site.begin("/held").await);
    }
    app.has_seen(10).await;
    signal(site.pid(), Signal::STOP);
    eventually("each thread to be stopped", async || is_stopped(site.pid()).then_some(())).await;
    app.release_all();
    eventually("the answers and the timeout", async || {
        (app.running() == 0 && began.elapsed() > Duration::from_millis(2500)).then_some(())
    })
    .await;
    signal(site.pid(), Signal::CONT);
    for mut client in clients {
        client.answer().await.assert_ok("/held");
    }
}

#[tokio::test]
async fn an_answer_that_has_begun_in_time_may_take_longer() {
    let app = upstream()
        .script(|seen| match seen.target().as_str() {
            "/long" => [text("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nso"), vec![Step::Hold], text("on")]
                .concat(),
            _ => vec![Step::AwaitFin],
        })
        .start()
        .await;
    let site = in_front_of(&app, "pools.app.request_timeout = '2s'").await;
    let mut client = site.begin("/long").await;
    client.read_until("\r\n\r\nso").await;
    // A request that began later has run out of time.
    site.get("/silent").await.assert_refused(504, "answer_timeout");
    app.release(1);
    client.read_until("on").await;
}

#[tokio::test]
async fn a_route_can_have_its_own_request_timeout() {
    let app = upstream().holds_requests().start().await;
    let config = "
        pools.app.request_timeout = '60s'
        [[routes]]
        match = '*'
        pool = 'app'
        [[routes]]
        match = '/hasty'
        pool = 'app'
        request_timeout = '200ms'";
    let site = in_front_of(&app, config).await;
    let mut patient = site.begin("/patient").await;
    site.get("/hasty").await.assert_refused(504, "answer_timeout");
    app.release_all();
    patient.answer().await.assert_ok("/patient");
}

#[tokio::test]
async fn the_queue_counts_towards_the_time_for_an_answer() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, &format!("{ONE_SLOT}pools.app.request_timeout = '500ms'")).await;
    let mut first = site.begin("/first").await;
    site.settles("app", 1, 0).await;
    let refused = site.get("/second").await;
    refused.assert_refused(503, "queue_timeout");
    first.answer().await.assert_refused(504, "answer_timeout");
    app.release_all();
}
