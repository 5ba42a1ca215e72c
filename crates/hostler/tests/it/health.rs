//! Health checks of Hostler: on which address, on which path, and when they succeed.

use hostler_testkit::{ReceivedAnswer, Site, eventually, held_port, upstream};

use crate::metrics::samples;
use crate::{in_front_of, site};

/// A drain that lasts as long as the test.
const PATH: &str = "server.health_path = '/healthz/'\nserver.drain_wait = '1h'\n";

async fn asked(site: &Site, path: &str) -> ReceivedAnswer {
    site.send(format!("GET {path} HTTP/1.1\r\nHost: any.test\r\nConnection: close\r\n\r\n")).await
}

#[tokio::test]
async fn health_checks_are_answered_on_the_data_port_and_reach_no_app() {
    let app = upstream().start().await;
    let site = in_front_of(&app, PATH).await;
    for path in [
        "/healthz",
        "/healthz?x=1",
        "/healthz/ready",
        "/healthz/ready/app",
        "/healthz/live",
        "/healthz/startup",
    ] {
        asked(&site, path).await.assert_ok("ok\n").assert_field("cache-control", "no-store");
    }
    asked(&site, "/healthz/ready/none").await.assert_status(404);
    let head = "HEAD /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut client = site.connect().await;
    client.send(head).await;
    client.maybe_answer("HEAD").await.unwrap().assert_status(200);
    let status = site.status().await;
    assert_eq!(
        (&status["health"]["ready"], &status["health"]["checks"]),
        (&true.into(), &7.into()),
        "{status}"
    );
    assert_eq!(status["unrouted"]["answers"]["2xx"], 0);
    assert_eq!(app.requests().len(), 0);
    // A path that only begins alike belongs to the routes, and so does a POST.
    for path in ["/healthzz", "/healthz/other", "/healthz/ready/app/x"] {
        asked(&site, path).await.assert_ok("ok");
    }
    site.post("/healthz", "x").await.assert_ok("ok");
    let lines = site.exchanges(4).await;
    let targets: Vec<_> = lines.iter().filter_map(|line| line["target"].as_str()).collect();
    assert_eq!(targets, ["/healthzz", "/healthz/other", "/healthz/ready/app/x", "/healthz"]);
}

#[tokio::test]
async fn a_health_check_is_logged_where_configured() {
    let app = upstream().start().await;
    let site = in_front_of(&app, &format!("{PATH}server.log_health_checks = true")).await;
    asked(&site, "/healthz/live").await.assert_ok("ok\n");
    assert_eq!(site.access("/healthz/live").await["status"], 200);
}

#[tokio::test]
async fn a_pool_without_a_reachable_member_is_named_unless_it_does_not_count() {
    let app = upstream().start().await;
    let gone = held_port();
    let config = format!(
        "{PATH}routes = [{{ match = '/gone/*', pool = 'gone' }}, {{ match = '*', pool = 'app' }}]\n\
         pools.gone = {{ members = ['{}'], queue.timeout = '1ms' }}\n",
        gone.address()
    );
    let site = site(&config).with("app", &app).start().await;
    asked(&site, "/healthz").await.assert_ok("ok\n");
    eventually("the loss to be known", async || {
        asked(&site, "/gone/1").await.assert_status(502);
        let answer = asked(&site, "/healthz/ready").await;
        (answer.status == 503).then(|| assert_eq!(answer.text(), "pool gone: no member can be reached\n"))
    })
    .await;
    // It serves. That one member became ready after the start changes nothing.
    asked(&site, "/healthz/startup").await.assert_ok("ok\n");
    asked(&site, "/healthz/live").await.assert_ok("ok\n");
    site.rewrite(&format!(
        "server.health_pools = ['app']\n{config}pools.app.members = ['{}']\n",
        app.address()
    ));
    site.command(&["reload"]).await.assert_exit(0);
    asked(&site, "/healthz/ready").await.assert_ok("ok\n");
    eventually("the loss to be known again", async || {
        // Refused by the member, or by the queue while the member is ejected.
        assert!([502, 503].contains(&asked(&site, "/gone/1").await.status));
        (asked(&site, "/healthz/ready/gone").await.status == 503).then_some(())
    })
    .await;
    asked(&site, "/healthz/ready").await.assert_ok("ok\n");
}

#[tokio::test]
async fn a_draining_process_is_live_and_not_ready() {
    let app = upstream().start().await;
    let mut site = in_front_of(&app, PATH).await;
    asked(&site, "/healthz").await.assert_ok("ok\n");
    site.ask_admin("/health").await.assert_ok("ok\n");
    site.ask_to_drain();
    let answer = eventually("health checks to fail", async || {
        Some(asked(&site, "/healthz").await).filter(|answer| answer.status == 503)
    })
    .await;
    assert_eq!(answer.text(), "draining: no new clients\n");
    for path in ["/healthz/ready", "/healthz/ready/app"] {
        asked(&site, path).await.assert_status(503);
    }
    for path in ["/healthz/live", "/healthz/startup"] {
        asked(&site, path).await.assert_ok("ok\n");
    }
    // As gorouter does: without a reason.
    assert_eq!(site.ask_admin("/health").await.assert_status(503).text(), "");
    assert_eq!(site.ask_admin("/health/ready").await.assert_status(503).text(), answer.text());
    site.ask_admin("/health/ready/app").await.assert_status(503);
    site.ask_admin("/health/live").await.assert_ok("ok\n");
    site.ask_admin("/health/startup").await.assert_ok("ok\n");
    assert_eq!(site.status().await["health"]["ready"], false);
    let samples = samples(&site).await;
    assert_eq!((samples["hostler_ready"], samples["hostler_draining"]), (0.0, 1.0), "no alert");
    asked(&site, "/").await.assert_ok("ok");
    site.terminate();
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn a_stop_fails_health_checks_on_the_admin_address_while_requests_are_finished() {
    let app = upstream().holds_requests().start().await;
    let mut site = in_front_of(&app, "server.drain_timeout = '1h'").await;
    let mut running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    site.terminate();
    site.says("stopping").await;
    site.ask_admin("/health/ready").await.assert_status(503);
    site.ask_admin("/health/live").await.assert_ok("ok\n");
    app.release_all();
    running.answer().await.assert_ok("/running");
    assert_eq!(site.exit().await, 0);
}
