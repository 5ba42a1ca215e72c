//! One queue per pool: in order of arrival, to any member with a free slot; with limits. A client may leave the queue.

use std::collections::HashSet;

use hostler_testkit::{Upstream, eventually, ok, upstream};

use crate::{in_front_of, site, with_a_full_queue};

const ONE_SLOT: &str = "pools.app.concurrency = 1\n";

#[tokio::test]
async fn fifty_requests_for_one_slot_are_served_in_order_of_arrival_and_one_at_a_time() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, ONE_SLOT).await;
    let mut clients = Vec::new();
    for n in 0..50 {
        clients.push(site.begin(&format!("/{n}")).await);
        site.settles("app", 1, n).await;
    }
    app.release_all();
    for (n, client) in clients.iter_mut().enumerate() {
        client.answer().await.assert_ok(&format!("/{n}"));
    }
    let expected: Vec<_> = (0..50).map(|n| format!("/{n}")).collect();
    assert_eq!((app.targets(), app.most_running()), (expected, 1));
}

#[tokio::test]
async fn several_threads_share_one_queue_and_no_slot_is_given_twice() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, &format!("{ONE_SLOT}server.threads = 4")).await;
    let mut clients = Vec::new();
    for n in 0..50 {
        clients.push(site.begin(&format!("/{n}")).await);
    }
    site.settles("app", 1, 49).await;
    app.release_all();
    for client in &mut clients {
        client.answer().await.assert_status(200);
    }
    assert_eq!((app.requests().len(), app.most_running()), (50, 1));
}

#[tokio::test]
async fn a_member_gets_as_many_requests_at_once_as_it_has_slots() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 3").await;
    let mut clients = Vec::new();
    for n in 0..10 {
        clients.push(site.begin(&format!("/{n}")).await);
    }
    site.settles("app", 3, 7).await;
    app.has_seen(3).await;
    app.release_all();
    for client in &mut clients {
        client.answer().await.assert_status(200);
    }
    assert_eq!(app.most_running(), 3);
}

#[tokio::test]
async fn a_full_queue_is_refused_at_once() {
    let app = upstream().holds_requests().start().await;
    let (site, [mut first, mut second]) = with_a_full_queue(&app).await;

    let mut third = site.connect().await;
    let refused = third.get("/third").await;
    refused
        .assert_refused(503, "queue_full")
        .assert_field("retry-after", "1")
        .assert_says("1 requests wait already");
    refused.assert_no_field("connection");
    app.release_all();
    first.answer().await.assert_ok("/first");
    second.answer().await.assert_ok("/second");
    third.get("/again").await.assert_ok("/again");
    assert_eq!(site.pool("app").await["counters"]["refused_full"], 1);
}

#[tokio::test]
async fn refusals_do_not_wait_for_workers() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 2\npools.app.queue.limit = 1").await;
    let _stuck = [site.begin("/a").await, site.begin("/b").await];
    site.settles("app", 2, 0).await;
    let _waiting = site.begin("/c").await;
    site.settles("app", 2, 1).await;
    // One request after the other on one connection, while nothing else can happen: no free slot, no timeout.
    let mut client = site.connect().await;
    client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n".repeat(200)).await;
    for _ in 0..200 {
        client.answer().await.assert_refused(503, "queue_full").assert_no_field("connection");
    }
    let pool = site.pool("app").await;
    assert_eq!(
        (&pool["in_use"], &pool["queue_length"], &pool["counters"]["refused_full"]),
        (&2.into(), &1.into(), &200.into()),
        "{pool}"
    );
    assert_eq!(app.requests().len(), 2);
}

#[tokio::test]
async fn a_queue_of_zero_refuses_every_request_that_would_wait() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1\npools.app.queue.limit = 0").await;
    let mut first = site.begin("/first").await;
    site.settles("app", 1, 0).await;
    site.get("/second").await.assert_refused(503, "queue_full");
    app.release(1);
    first.answer().await.assert_ok("/first");
}

#[tokio::test]
async fn a_request_that_waits_too_long_is_refused_and_never_reaches_the_member() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1\npools.app.queue.timeout = '200ms'").await;
    let mut first = site.begin("/first").await;
    site.settles("app", 1, 0).await;
    let mut second = site.connect().await;
    let refused = second.get("/second").await;
    refused.assert_refused(503, "queue_timeout").assert_field("retry-after", "1");
    let line = site.access("/second").await;
    assert!(line["queue_wait_ms"].as_f64().unwrap() >= 200.0, "{line}");
    app.release_all();
    first.answer().await.assert_ok("/first");
    second.get("/third").await.assert_ok("/third");
    assert_eq!(app.targets(), ["/first", "/third"]);
}

#[tokio::test]
async fn a_client_that_leaves_while_it_waits_leaves_the_queue() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, ONE_SLOT).await;
    let mut first = site.begin("/first").await;
    site.settles("app", 1, 0).await;
    let closing = site.begin("/closing").await;
    site.settles("app", 1, 1).await;
    let resetting = site.begin("/resetting").await;
    site.settles("app", 1, 2).await;
    let mut last = site.begin("/last").await;
    site.settles("app", 1, 3).await;
    drop(closing);
    resetting.reset();
    site.settles("app", 1, 1).await;
    let line = site.access("/closing").await;
    assert_eq!(
        (&line["status"], &line["refusal"], &line["attempts"]),
        (&499.into(), &"client_left".into(), &0.into())
    );
    app.release_all();
    first.answer().await.assert_ok("/first");
    last.answer().await.assert_ok("/last");
    assert_eq!(app.targets(), ["/first", "/last"]);
}

#[tokio::test]
async fn a_client_that_leaves_with_more_requests_in_the_pipe_leaves_the_queue() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, ONE_SLOT).await;
    let mut first = site.begin("/first").await;
    site.settles("app", 1, 0).await;
    let mut leaving = site.connect().await;
    leaving.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n").await;
    site.settles("app", 1, 1).await;
    drop(leaving);
    site.settles("app", 1, 0).await;
    app.release_all();
    first.answer().await.assert_ok("/first");
    assert_eq!(app.targets(), ["/first"]);
}

#[tokio::test]
async fn an_answer_without_a_worker_needs_no_slot() {
    let app = upstream().holds_requests().start().await;
    let config = r#"
        pools.app.concurrency = 1
        [[routes]]
        match = "*"
        pool = "app"
        [[routes]]
        match = "/ping"
        respond = "PONG\n"
        [[routes]]
        match = "/gone"
        respond = { status = 410, body = "gone", headers = { X-Why = "moved" } }
        [[routes]]
        match = "/nothing"
        respond = { status = 204 }"#;
    let site = in_front_of(&app, config).await;
    let mut busy = site.begin("/busy").await;
    site.settles("app", 1, 0).await;
    let mut client = site.connect().await;
    for _ in 0..3 {
        let answer = client.get("/ping").await;
        answer.assert_ok("PONG\n").assert_field("content-type", "text/plain; charset=utf-8");
        assert!(answer.field("date").is_some());
        client.send("HEAD /ping HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.answer_to("HEAD").await.assert_status(200).assert_field("content-length", "5");
        client
            .post("/gone", "a body")
            .await
            .assert_status(410)
            .assert_says("gone")
            .assert_field("x-why", "moved");
        client.get("/nothing").await.assert_status(204).assert_no_field("content-length");
    }
    app.release(1);
    busy.answer().await.assert_ok("/busy");
    assert_eq!(app.targets(), ["/busy"]);
}

#[tokio::test]
async fn a_page_is_answered_from_a_file_as_it_was_when_the_configuration_was_loaded() {
    let plan = site("[[routes]]\nmatch = '/'\nrespond = { file = 'front.html' }\n");
    let page = plan.folder().join("front.html");
    std::fs::write(&page, "<!doctype html><title>Éxamples</title>").unwrap();
    let site = plan.start().await;
    std::fs::write(&page, "<!doctype html><title>Others</title>").unwrap();
    let mut client = site.connect().await;
    let answer = client.get("/").await;
    answer.assert_ok("<!doctype html><title>Éxamples</title>");
    answer.assert_field("content-type", "text/html; charset=utf-8").assert_field("content-length", "39");
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.answer_to("HEAD").await.assert_status(200).assert_field("content-length", "39");
    client.get("/elsewhere").await.assert_refused(404, "no_route");

    site.command(&["reload"]).await.assert_exit(0);
    site.get("/").await.assert_ok("<!doctype html><title>Others</title>");
    std::fs::remove_file(&page).unwrap();
    let refused = site.command(&["reload"]).await;
    assert!(refused.stderr.contains("routes[0].respond.file: "), "{}", refused.stderr);
    site.get("/").await.assert_ok("<!doctype html><title>Others</title>");
}

#[tokio::test]
async fn a_request_without_a_route_is_refused() {
    let app = upstream().start().await;
    let config = "
        [[routes]]
        match = '/app/*'
        pool = 'app'
        [[routes]]
        match = 'shop.test'
        pool = 'app'";
    let site = in_front_of(&app, config).await;
    let mut client = site.connect().await;
    client.get("/app/x").await.assert_ok("ok");
    let refused = client.get("/other").await;
    refused
        .assert_refused(404, "no_route")
        .assert_says("no route for this host and path")
        .assert_no_field("connection");
    client.send("GET /other HTTP/1.1\r\nHost: SHOP.test:8080\r\n\r\n").await;
    client.answer().await.assert_ok("ok");
}

/// Starts three members with this balancing.
async fn three(choice: &str) -> (Vec<Upstream>, hostler_testkit::Site) {
    let mut plan = site(&format!("pools.app.choice = '{choice}'\npools.app.concurrency = 2"));
    let mut members = Vec::new();
    for _ in 0..3 {
        let member = upstream().holds_requests().start().await;
        plan = plan.with("app", &member);
        members.push(member);
    }
    (members, plan.start().await)
}

fn seen(members: &[Upstream]) -> Vec<usize> {
    members.iter().map(|member| member.requests().len()).collect()
}

#[tokio::test]
async fn the_member_used_last_gets_the_next_request() {
    let (members, site) = three("warm").await;
    members.iter().for_each(Upstream::release_all);
    for _ in 0..30 {
        site.get("/").await.assert_status(200);
    }
    let used: Vec<_> = seen(&members).into_iter().filter(|n| *n > 0).collect();
    assert_eq!(used, [30], "one member stays warm: {:?}", seen(&members));
}

#[tokio::test]
async fn a_warm_member_that_is_busy_is_not_given_more_while_another_is_idle() {
    let (members, site) = three("warm").await;
    let mut clients = Vec::new();
    for n in 1..=6 {
        clients.push(site.begin("/").await);
        site.settles("app", n, 0).await;
    }
    eventually("two requests at each", async || (seen(&members) == [2, 2, 2]).then_some(())).await;
    members.iter().for_each(Upstream::release_all);
    for client in &mut clients {
        client.answer().await.assert_status(200);
    }
}

#[tokio::test]
async fn members_can_be_used_in_turn() {
    let (members, site) = three("round_robin").await;
    members.iter().for_each(Upstream::release_all);
    for _ in 0..30 {
        site.get("/").await.assert_status(200);
    }
    assert_eq!(seen(&members), [10, 10, 10]);
}

#[tokio::test]
async fn the_least_busy_member_can_be_preferred() {
    let (members, site) = three("least_busy").await;
    let mut clients = Vec::new();
    for n in 1..=3 {
        clients.push(site.begin("/").await);
        site.settles("app", n, 0).await;
    }
    eventually("one request at each", async || (seen(&members) == [1, 1, 1]).then_some(())).await;
    // The second one becomes free and is then the least busy.
    members[1].release(1);
    site.settles("app", 2, 0).await;
    clients.push(site.begin("/").await);
    members[1].has_seen(2).await;
    members.iter().for_each(Upstream::release_all);
    for client in &mut clients {
        client.answer().await.assert_status(200);
    }
}

#[tokio::test]
async fn each_pool_has_its_own_queue() {
    let slow = upstream().holds_requests().start().await;
    let quick = upstream().script(|seen| ok(format!("quick {}", seen.target()))).start().await;
    let config = "
        pools.slow.concurrency = 1
        [[routes]]
        match = '*'
        pool = 'slow'
        [[routes]]
        match = '/quick/*'
        pool = 'quick'";
    let site = site(config).with("slow", &slow).with("quick", &quick).start().await;
    let mut first = site.begin("/1").await;
    let mut second = site.begin("/2").await;
    site.settles("slow", 1, 1).await;
    site.get("/quick/1").await.assert_ok("quick /quick/1");
    slow.release_all();
    first.answer().await.assert_ok("/1");
    second.answer().await.assert_ok("/2");
}

#[tokio::test]
async fn a_member_on_a_unix_socket_is_a_member_like_any_other() {
    let plan = site("server.threads = 2");
    let path = plan.folder().join("app.sock");
    let app = upstream().script(|seen| ok(seen.target())).on_unix(&path).start().await;
    let site = plan.with("app", &app).start().await;
    let answers: HashSet<_> = [site.get("/a").await, site.post("/b", "body").await].map(|a| a.text()).into();
    assert_eq!(answers, HashSet::from(["/a".to_owned(), "/b".to_owned()]));
    assert_eq!(app.requests()[1].body, b"body");
    assert_eq!(site.access("/a").await["member"], app.address());
}
