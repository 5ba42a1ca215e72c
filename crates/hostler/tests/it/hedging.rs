//! Second tries at another member: the first head counts, the other member is told to stop, and the budget holds.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hostler_testkit::{Client, Site, Step, Upstream, eventually, ok, text, upstream};
use serde_json::json;

use crate::http2_member::Http2Plan;
use crate::site;

/// Each request whose target begins with `/slow` is held, the others are answered at once.
async fn member(name: &'static str) -> Upstream {
    let script = move |seen: &hostler_testkit::Seen| match seen.target().starts_with("/slow") {
        true => [vec![Step::Hold], ok(name)].concat(),
        false => ok(name),
    };
    upstream().script(script).start().await
}

/// A pool `app` of these members with these keys.
async fn pool(members: &[&Upstream], keys: &str) -> Site {
    let config = format!("[pools.app]\nchoice = 'round_robin'\n{keys}\n");
    let plan = members.iter().fold(site(&config), |plan, member| plan.with("app", member));
    plan.start().await
}

async fn hedge(site: &Site) -> serde_json::Value {
    site.pool("app").await["hedge"].clone()
}

/// Waits until one of the counters has this value.
async fn counts(site: &Site, counter: &str, value: u64) {
    eventually(format!("{value} {counter}"), async || (hedge(site).await[counter] == value).then_some(()))
        .await;
}

/// Both members have this request.
async fn reaches_both(members: [&Upstream; 2], target: &str) {
    eventually(format!("{target} at both members"), async || {
        members.iter().all(|member| member.targets().iter().any(|seen| seen == target)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_slow_answer_is_replaced_by_that_of_another_member_and_the_slow_one_keeps_its_slot() {
    // It notices that it is told to stop, and works on until the test releases it.
    let stubborn = |seen: &hostler_testkit::Seen| match seen.target().as_str() {
        "/slow" => [vec![Step::AwaitFin, Step::Hold], ok("a")].concat(),
        _ => ok("a"),
    };
    let (a, b) = (upstream().script(stubborn).start().await, member("b").await);
    let site = pool(&[&a, &b], "hedge = { after = '20ms', budget = '50%' }").await;
    // The first requests earn the second try. A POST has none itself.
    for _ in 0..2 {
        site.post("/quick", "").await.assert_status(200);
    }
    // In turn: the first try is at `a`.
    let mut client = site.begin("/slow").await;
    reaches_both([&a, &b], "/slow").await;
    b.release(1);
    client.answer().await.assert_ok("b");
    let line = site.access("/slow").await;
    assert_eq!(
        (&line["hedge"], &line["attempts"], &line["member"]),
        (&json!("won"), &json!(2), &json!(b.address())),
        "{line}"
    );
    // The other member was told to stop, and still works: its slot is not free.
    eventually("the loser is told to stop", async || {
        a.requests().iter().any(|seen| seen.target() == "/slow" && seen.fin).then_some(())
    })
    .await;
    site.settles("app", 1, 0).await;
    a.release_all();
    site.settles("app", 0, 0).await;
    let seen = hedge(&site).await;
    assert_eq!((&seen["sent"], &seen["won"]), (&json!(1), &json!(1)), "{seen}");
    let counters = site.pool("app").await["counters"].clone();
    assert_eq!((&counters["member_timeouts"], &counters["member_failures"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn a_second_try_over_a_kept_connection_that_ends_goes_over_a_new_one() {
    let closes = |seen: &hostler_testkit::Seen| match seen.target().starts_with("/slow") && seen.nth > 1 {
        true => vec![Step::Close],
        false => ok("b"),
    };
    let (a, b) = (member("a").await, upstream().script(closes).start().await);
    let site = pool(&[&a, &b], "hedge = { after = '20ms', budget = '50%' }").await;
    // One connection, so one thread, which keeps a connection to each member.
    let mut client = site.connect().await;
    for _ in 0..2 {
        client.post("/quick", "").await.assert_status(200);
    }
    client.get("/slow").await.assert_ok("b");
    let slow = b.requests().into_iter().filter(|seen| seen.target() == "/slow");
    assert_eq!(slow.map(|seen| (seen.connection, seen.nth)).collect::<Vec<_>>(), [(1, 2), (2, 1)]);
    assert_eq!(hedge(&site).await["won"], 1);
    a.release_all();
}

#[tokio::test]
async fn after_64_answers_a_second_try_follows_the_usual_time_of_the_route() {
    let (a, b) = (member("a").await, member("b").await);
    let site = pool(&[&a, &b], "hedge = { budget = '50%' }").await;
    let mut early = site.begin("/slow/early").await;
    site.settles("app", 1, 0).await;
    a.release(1);
    early.answer().await.assert_status(200);
    assert_eq!(hedge(&site).await["after_ms"], json!({}), "too few answers");
    for _ in 0..96 {
        site.get("/quick").await.assert_status(200);
    }
    assert!(hedge(&site).await["after_ms"]["*"].as_f64() > Some(0.0));
    let mut client = site.begin("/slow").await;
    reaches_both([&a, &b], "/slow").await;
    a.release_all();
    b.release_all();
    client.answer().await.assert_status(200);
}

#[tokio::test]
async fn a_second_try_may_be_due_after_a_quarter_of_the_time_of_the_request() {
    let (a, b) = (member("a").await, member("b").await);
    let keys = "request_timeout = '4s'\nhedge = { after = '1200ms', budget = '50%' }";
    let site = pool(&[&a, &b], keys).await;
    for _ in 0..2 {
        site.post("/quick", "").await.assert_status(200);
    }
    let mut client = site.begin("/slow").await;
    reaches_both([&a, &b], "/slow").await;
    b.release(1);
    client.answer().await.assert_ok("b");
    counts(&site, "won", 1).await;
    a.release_all();
}

#[tokio::test]
async fn there_are_never_more_second_tries_than_the_budget_allows() {
    let (a, b) = (member("a").await, member("b").await);
    let site = pool(&[&a, &b], "hedge = { after = '1ms', budget = '2%' }").await;
    let mut clients = Vec::new();
    for number in 0..100 {
        clients.push(site.begin(&format!("/slow/{number}")).await);
    }
    eventually("each request was late", async || {
        let hedge = hedge(&site).await;
        (hedge["sent"].as_u64().unwrap() + hedge["no_budget"].as_u64().unwrap() == 100).then_some(())
    })
    .await;
    assert_eq!(hedge(&site).await["sent"], 2);
    eventually("102 requests at the members", async || {
        (a.requests().len() + b.requests().len() == 102).then_some(())
    })
    .await;
    a.release_all();
    b.release_all();
    for client in &mut clients {
        client.answer().await.assert_status(200);
    }
}

#[tokio::test]
async fn a_request_earns_once_although_its_first_member_cannot_be_reached() {
    let (a, b) = (member("a").await, member("b").await);
    let members = format!("members = ['127.0.0.1:1', '{}', '{}']", a.address(), b.address());
    let site = pool(&[], &format!("{members}\nhedge = {{ after = '20ms', budget = '34%' }}")).await;
    site.post("/quick", "").await.assert_status(200);
    assert_eq!(site.access("/quick").await["attempts"], 2);
    let mut client = site.begin("/slow").await;
    counts(&site, "no_budget", 1).await;
    assert_eq!(hedge(&site).await["sent"], 0);
    a.release_all();
    b.release_all();
    client.answer().await.assert_status(200);
}

#[tokio::test]
async fn only_get_and_head_without_a_body_are_tried_twice() {
    let (a, b) = (member("a").await, member("b").await);
    let site = pool(&[&a, &b], "hedge = { after = '1ms', budget = '50%' }").await;
    for _ in 0..20 {
        site.post("/quick", "").await.assert_status(200);
    }
    let requests = [
        ("POST /slow/post", "", "hi"),
        ("PUT /slow/put", "", "hi"),
        ("DELETE /slow/delete", "", ""),
        ("GET /slow/body", "", "hi"),
        ("GET /slow/events", "Accept: text/event-stream\r\n", ""),
        ("HEAD /slow/head", "", ""),
        ("GET /slow/get", "", ""),
    ];
    let mut clients: Vec<(Client, &str)> = Vec::new();
    for (line, fields, body) in requests {
        let mut client = site.connect().await;
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        client.send(format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}{length}\r\n{body}")).await;
        clients.push((client, line.split(' ').next().unwrap()));
    }
    reaches_both([&a, &b], "/slow/head").await;
    reaches_both([&a, &b], "/slow/get").await;
    counts(&site, "sent", 2).await;
    let all = [a.targets(), b.targets()].concat();
    for target in ["/slow/post", "/slow/put", "/slow/delete", "/slow/body", "/slow/events"] {
        assert_eq!(all.iter().filter(|seen| *seen == target).count(), 1, "{target}: {all:?}");
    }
    a.release_all();
    b.release_all();
    for (client, method) in &mut clients {
        client.answer_to(method).await.assert_status(200);
    }
}

#[tokio::test]
async fn there_is_no_second_try_without_a_free_slot_at_another_member() {
    let a = member("a").await;
    let alone = pool(&[&a], "hedge = { after = '1ms', budget = '50%' }").await;
    for _ in 0..2 {
        alone.post("/quick", "").await.assert_status(200);
    }
    let mut client = alone.begin("/slow").await;
    counts(&alone, "no_slot", 1).await;
    a.release(1);
    client.answer().await.assert_ok("a");
    assert_eq!(a.targets().iter().filter(|seen| *seen == "/slow").count(), 1);

    let (a, b) = (member("a").await, member("b").await);
    let site = pool(&[&a, &b], "concurrency = 1\nhedge = { after = '1ms', budget = '50%' }").await;
    let mut clients = Vec::new();
    for number in 0..2 {
        let mut client = site.connect().await;
        client.send(format!("POST /slow/{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")).await;
        clients.push(client);
        site.settles("app", number + 1, 0).await;
    }
    clients.push(site.begin("/slow/get").await);
    site.settles("app", 2, 1).await;
    a.release(1);
    counts(&site, "no_slot", 1).await;
    assert_eq!(hedge(&site).await["sent"], 0);
    a.release_all();
    b.release_all();
    for client in &mut clients {
        client.answer().await.assert_status(200);
    }
    assert_eq!([a.targets(), b.targets()].concat().len(), 3);
}

#[tokio::test]
async fn if_both_members_fail_the_client_gets_one_refusal() {
    let fails = |seen: &hostler_testkit::Seen| match seen.target().starts_with("/slow") {
        true => vec![Step::Hold, Step::Close],
        false => ok("ok"),
    };
    let (a, b) = (upstream().script(fails).start().await, upstream().script(fails).start().await);
    let site = pool(&[&a, &b], "hedge = { after = '1ms', budget = '50%' }").await;
    for _ in 0..2 {
        site.post("/quick", "").await.assert_status(200);
    }
    let mut client = site.begin("/slow").await;
    reaches_both([&a, &b], "/slow").await;
    a.release_all();
    b.release_all();
    client.answer().await.assert_status(502);
    let line = site.access("/slow").await;
    assert_eq!(line["hedge"], "lost", "{line}");
    site.settles("app", 0, 0).await;
    assert_eq!(site.access_lines().iter().filter(|line| line["target"] == "/slow").count(), 1);
}

#[tokio::test]
async fn if_one_member_fails_the_answer_of_the_other_one_counts() {
    let fails = |seen: &hostler_testkit::Seen| match seen.target().starts_with("/slow") {
        true => vec![Step::Hold, Step::Close],
        false => ok("a"),
    };
    let (a, b) = (upstream().script(fails).start().await, member("b").await);
    let site = pool(&[&a, &b], "hedge = { after = '1ms', budget = '50%' }").await;
    for _ in 0..2 {
        site.post("/quick", "").await.assert_status(200);
    }
    let mut client = site.begin("/slow").await;
    reaches_both([&a, &b], "/slow").await;
    a.release_all();
    eventually("the failed call has ended", async || (site.pool("app").await["in_use"] == 1).then_some(()))
        .await;
    b.release_all();
    client.answer().await.assert_ok("b");
}

#[tokio::test]
async fn a_second_member_that_answers_with_a_failure_does_not_come_first() {
    let fails = |seen: &hostler_testkit::Seen| match seen.target().starts_with("/slow") {
        true => text("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"),
        false => ok("b"),
    };
    let (a, b) = (member("a").await, upstream().script(fails).start().await);
    let site = pool(&[&a, &b], "hedge = { after = '1ms', budget = '50%' }").await;
    for _ in 0..2 {
        site.post("/quick", "").await.assert_status(200);
    }
    let mut client = site.begin("/slow").await;
    reaches_both([&a, &b], "/slow").await;
    eventually("the second try has ended", async || (site.pool("app").await["in_use"] == 1).then_some(()))
        .await;
    a.release_all();
    client.answer().await.assert_ok("a");
    assert_eq!(site.access("/slow").await["hedge"], "lost");
}

#[tokio::test]
async fn the_stream_of_a_member_in_http_2_is_reset_when_another_member_has_answered() {
    let reset = Arc::new(AtomicBool::new(false));
    let seen = reset.clone();
    let slow = Http2Plan::default()
        .start(move |mut asked| {
            let reset = reset.clone();
            async move {
                if asked.path() != "/slow" {
                    return asked.ok("slow").await;
                }
                let _ = poll_fn(|cx| asked.respond.poll_reset(cx)).await;
                reset.store(true, Ordering::Relaxed);
            }
        })
        .await;
    let quick = Http2Plan::default().start(|asked| asked.ok("quick")).await;
    let config = "[pools.app]\nprotocol = 'http2'\nchoice = 'round_robin'\nhedge = { after = '5ms', budget = '50%' }\n";
    let plan = site(config).with_member("app", slow.address()).with_member("app", quick.address());
    let site = plan.start().await;
    for _ in 0..2 {
        site.post("/", "").await.assert_status(200);
    }
    site.get("/slow").await.assert_ok("quick");
    eventually("the stream is reset", async || seen.load(Ordering::Relaxed).then_some(())).await;
    site.settles("app", 0, 0).await;
    assert_eq!(site.access("/slow").await["hedge"], "won");
}
