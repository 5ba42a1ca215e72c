//! Members that hang and members with health checks: few requests are affected, and others are served by the other members.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hostler_testkit::{Site, Step, Upstream, authority, client, eventually, ok, text, upstream};
use rustix::process::Signal;

use crate::{signal, site};

const CHECKED: &str = "interval = '50ms'\ntimeout = '5s'\nunhealthy = 2\nhealthy = 2\n";

/// A Hostler is used as a member, because it can be stopped with a signal.
async fn member(answer: &str) -> Site {
    site(&format!("routes = [{{ match = '*', respond = '{answer}' }}]")).start().await
}

async fn frozen_member_among_two(choice: &str) {
    const SLOTS: usize = 4;
    let (good, bad) = (member("good").await, member("bad").await);
    let config = format!(
        "[pools.app]\nchoice = '{choice}'\nconcurrency = {SLOTS}\nrequest_timeout = '3s'\nqueue = {{ timeout = '3s' }}\n"
    );
    let plan = site(&config).with_member("app", &bad.address().to_string());
    let site = plan.with_member("app", &good.address().to_string()).start().await;
    site.get("/").await.assert_status(200);
    signal(bad.pid(), Signal::STOP);
    let address = site.address();
    let clients = (0..12).map(|_| {
        tokio::spawn(async move {
            let mut failed = 0;
            for n in 0..40 {
                // The slots of the stopped member stay in use: only their requests may fail.
                failed += usize::from(client(address).await.get(&format!("/{n}")).await.status != 200);
            }
            failed
        })
    });
    let clients: Vec<_> = clients.collect();
    let mut failed = 0;
    for client in clients {
        failed += client.await.unwrap();
    }
    println!("{choice}: {failed} of 480 requests failed");
    assert!(failed <= 2 * SLOTS, "{choice}: {failed}");
    let pool = site.pool("app").await;
    assert!(pool["counters"]["ejections"].as_u64().unwrap() >= 1, "{pool}");
    site.says(&format!("member {} is ejected for", bad.address())).await;
    signal(bad.pid(), Signal::CONT);
}

#[tokio::test]
async fn a_frozen_member_costs_few_requests_with_warm() {
    frozen_member_among_two("warm").await;
}

#[tokio::test]
async fn a_frozen_member_costs_few_requests_with_round_robin() {
    frozen_member_among_two("round_robin").await;
}

#[tokio::test]
async fn a_frozen_member_costs_few_requests_with_least_busy() {
    frozen_member_among_two("least_busy").await;
}

/// An upstream with its own health: `/health` reports it. Other paths are answered with its name, or not answered while it is ill.
async fn checked(name: &'static str, healthy: &Arc<AtomicBool>) -> Upstream {
    let healthy = healthy.clone();
    let script = move |target: &str| match (target, healthy.load(Ordering::Relaxed)) {
        ("/health", true) => ok("fine"),
        ("/health", false) => text("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"),
        (_, true) => ok(name),
        (_, false) => [vec![Step::Hold], ok(name)].concat(),
    };
    upstream().script(move |seen| script(&seen.target())).start().await
}

/// Waits for the health of the first member.
async fn counts_as(site: &Site, unhealthy: bool) {
    eventually(format!("the first member to be unhealthy: {unhealthy}"), async || {
        (site.pool("app").await["members"][0]["unhealthy"] == unhealthy).then_some(())
    })
    .await;
}

#[tokio::test]
async fn checks_that_were_removed_and_come_back_begin_anew() {
    let health = Arc::new(AtomicBool::new(true));
    let (app, other) =
        (checked("app", &health).await, checked("other", &Arc::new(AtomicBool::new(true))).await);
    let members = format!("[pools.app]\nmembers = ['{}', '{}']\n", app.address(), other.address());
    let checks = format!("{members}[pools.app.health_check]\npath = '/health'\n{CHECKED}");
    let site = site(&checks).start().await;
    health.store(false, Ordering::Relaxed);
    counts_as(&site, true).await;
    for (config, unhealthy) in [(&members, false), (&checks, true)] {
        site.rewrite(config);
        site.command(&["reload"]).await.assert_exit(0);
        counts_as(&site, unhealthy).await;
    }
}

#[tokio::test]
async fn a_member_that_fails_its_checks_gets_no_request_until_it_passes_them() {
    let health = Arc::new(AtomicBool::new(true));
    let (app, other) =
        (checked("app", &health).await, checked("other", &Arc::new(AtomicBool::new(true))).await);
    let config =
        format!("[pools.app]\nchoice = 'round_robin'\n[pools.app.health_check]\npath = '/health'\n{CHECKED}");
    let site = site(&config).with("app", &app).with("app", &other).start().await;
    let ask = async || site.get("/").await.assert_status(200).text();
    assert_ne!(ask().await, ask().await, "each has its turn");
    health.store(false, Ordering::Relaxed);
    counts_as(&site, true).await;
    for _ in 0..6 {
        assert_eq!(ask().await, "other");
    }
    let text = site.says("is unhealthy: 2 checks of /health in a row have failed").await;
    assert!(text.contains("it answered 500"), "{text}");
    let checks = site.pool("app").await["health_checks"].clone();
    assert_eq!(
        (&checks[0]["unhealthy"], &checks[0]["last_failure"]),
        (&true.into(), &"it answered 500".into())
    );
    assert_eq!((&checks[1]["unhealthy"], &checks[1]["failed"]), (&false.into(), &0.into()));
    health.store(true, Ordering::Relaxed);
    counts_as(&site, false).await;
    assert_ne!(ask().await, ask().await);
    site.says("is healthy again").await;
    let said = |text: &str| site.lines().iter().filter(|line| line.contains(text)).count();
    assert_eq!((said("is unhealthy"), said("is healthy again")), (1, 1));
    // Health checks are no traffic: they take no slot and are in no log.
    let pool = site.pool("app").await;
    assert_eq!((&pool["counters"]["granted"], &pool["counters"]["unhealthy"]), (&10.into(), &1.into()));
    assert!(site.access_lines().iter().all(|line| line["target"] != "/health"));
}

#[tokio::test]
async fn a_request_at_a_member_that_becomes_unhealthy_is_answered_by_another() {
    let health = Arc::new(AtomicBool::new(true));
    let held = checked("held", &health).await;
    let other = checked("other", &Arc::new(AtomicBool::new(true))).await;
    let config = format!(
        "[pools.app]\nchoice = 'round_robin'\nrequest_timeout = '20s'\n[pools.app.health_check]\npath = '/health'\n{}",
        CHECKED.replace("unhealthy = 2", "unhealthy = 40")
    );
    let site = site(&config).with("app", &held).with("app", &other).start().await;
    health.store(false, Ordering::Relaxed);
    let mut clients = [site.begin("/1").await, site.begin("/2").await];
    for client in &mut clients {
        client.answer().await.assert_ok("other");
    }
    assert!(held.targets().iter().any(|target| target != "/health"), "one was there first");
    counts_as(&site, true).await;
    held.release_all();
}

#[tokio::test]
async fn a_request_at_the_only_member_waits_on_when_that_becomes_unhealthy() {
    let health = Arc::new(AtomicBool::new(true));
    let held = checked("held", &health).await;
    let config = format!(
        "[pools.app]\nrequest_timeout = '14s'\n[pools.app.health_check]\npath = '/health'\n{CHECKED}"
    );
    let site = site(&config).with("app", &held).start().await;
    let mut client = site.begin("/1").await;
    health.store(false, Ordering::Relaxed);
    counts_as(&site, true).await;
    // After a quarter of its time an answer is late, and may be given up.
    let mut pace = tokio::time::interval(Duration::from_millis(500));
    for _ in 0..9 {
        pace.tick().await;
    }
    assert_eq!(site.pool("app").await["in_use"], 1, "the request is still there");
    held.release_all();
    client.answer().await.assert_ok("held");
}

#[tokio::test]
async fn the_checks_of_a_member_end_with_it_and_change_with_the_configuration() {
    let healthy = Arc::new(AtomicBool::new(true));
    let (gone, stays) = (checked("gone", &healthy).await, checked("stays", &healthy).await);
    let config = |members: &[&Upstream], rest: &str| {
        let members: Vec<_> = members.iter().map(|member| format!("'{}'", member.address())).collect();
        format!("[pools.app]\nmembers = [{}]\n{rest}", members.join(","))
    };
    let checks = format!("[pools.app.health_check]\npath = '/health'\n{CHECKED}");
    let site = site(&config(&[&gone, &stays], &checks)).start().await;
    gone.has_seen(3).await;
    site.rewrite(&config(&[&stays], &checks));
    site.command(&["reload"]).await.assert_exit(0);
    let (before, now) = (gone.requests().len(), stays.requests().len());
    stays.has_seen(now + 10).await;
    assert!(gone.requests().len() <= before + 1, "one may have been on its way");
    healthy.store(false, Ordering::Relaxed);
    counts_as(&site, true).await;
    // Without health checks the member counts as healthy again.
    site.rewrite(&config(&[&stays], ""));
    site.command(&["reload"]).await.assert_exit(0);
    counts_as(&site, false).await;
}

#[tokio::test]
async fn the_checks_of_a_pool_end_when_a_reload_removes_it() {
    let healthy = Arc::new(AtomicBool::new(true));
    let (gone, stays) = (checked("gone", &healthy).await, checked("stays", &healthy).await);
    let pool = |name: &str, member: &Upstream| {
        let checks = format!("[pools.{name}.health_check]\npath = '/health'\n{CHECKED}");
        format!("[pools.{name}]\nmembers = ['{}']\n{checks}", member.address())
    };
    let route = "routes = [{ match = '*', pool = 'app' }]\n";
    let site = site(&format!("{route}{}{}", pool("app", &stays), pool("old", &gone))).start().await;
    gone.has_seen(3).await;
    site.rewrite(&format!("{route}{}", pool("app", &stays)));
    let reloaded = site.command(&["reload"]).await;
    assert!(reloaded.assert_exit(0).stdout.contains("pool old: removed"), "{reloaded:?}");
    eventually("ten checks of one pool without one of the other", async || {
        let before = gone.requests().len();
        stays.has_seen(stays.requests().len() + 10).await;
        (gone.requests().len() == before).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_check_is_decided_by_the_head_of_a_response_whose_body_does_not_end() {
    let stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n";
    let member = upstream().answers(stream).start().await;
    let checks = CHECKED.replace("timeout = '5s'", "timeout = '500ms'");
    let site = site(&format!("[pools.app.health_check]\npath = '/events'\n{checks}"));
    let site = site.with("app", &member).start().await;
    eventually("checks that pass", async || {
        (site.pool("app").await["health_checks"][0]["passed"].as_u64()? > 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn health_checks_use_the_members_tls_and_protocol() {
    let trust = authority();
    let config = trust.vouch_for(&["127.0.0.1"]).for_server(None);
    let over_tls = upstream().script(|seen| ok(seen.target())).over_tls(config).start().await;
    let plain = member("fine").await;
    let checks = |pool: &str| format!("[pools.{pool}.health_check]\npath = '/health'\n{CHECKED}");
    let routes = "routes = [{ match = '/a', pool = 'a' }, { match = '/b', pool = 'b' }]\n";
    let text = format!(
        "{routes}[pools.b]\nprotocol = 'http2'\n{}{}[pools.a.tls]\nca = 'ca.pem'\n",
        checks("a"),
        checks("b")
    );
    let plan = site(&text).with("a", &over_tls).with_member("b", &plain.address().to_string());
    std::fs::write(plan.folder().join("ca.pem"), trust.cert()).unwrap();
    let site = plan.start().await;
    for pool in ["a", "b"] {
        let passed = eventually(format!("checks of {pool}"), async || {
            let check = site.pool(pool).await["health_checks"][0].clone();
            (check["passed"].as_u64()? > 1).then_some(check)
        });
        let check = passed.await;
        assert_eq!((&check["failed"], &check["unhealthy"]), (&0.into(), &false.into()), "{pool}: {check}");
    }
    assert_eq!(plain.access_lines().first().map(|line| line["protocol"].clone()), Some("HTTP/2".into()));
}

#[tokio::test]
async fn a_get_that_one_member_ends_goes_to_the_other_although_that_one_was_used_longer_ago() {
    let ending = upstream().does(vec![Step::Close]).start().await;
    let healthy = upstream().start().await;
    // In one of these orders it is asked first.
    for [first, second] in [[&ending, &healthy], [&healthy, &ending]] {
        let site = site("").with("app", first).with("app", second).start().await;
        site.get("/").await.assert_ok("ok");
        assert!(site.access("/").await["attempts"].as_u64().unwrap() <= 2);
    }
    assert!(!ending.requests().is_empty());
}
