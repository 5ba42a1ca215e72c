//! Commands to a running Hostler: which senders may give them, and the answers to invalid ones.

use hostler_testkit::{ReceivedAnswer, Site, client, upstream};

use crate::in_front_of;

async fn order(site: &Site, path: &str, fields: &str) -> ReceivedAnswer {
    let mut admin = client(site.admin()).await;
    admin.send(format!("POST {path} HTTP/1.1\r\n{fields}Content-Length: 0\r\n\r\n")).await;
    admin.answer_to("POST").await
}

const OURS: &str = "Host: 127.0.0.1:8081\r\nHostler-Command: 1\r\n";

#[tokio::test]
async fn a_web_page_in_the_operators_browser_can_send_no_command() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let cases = [
        // A form or a simple fetch: a browser sends these without a preflight request.
        "Host: 127.0.0.1:8081\r\nOrigin: http://evil.example\r\n",
        "Host: 127.0.0.1:8081\r\n",
        // DNS rebinding: a foreign name resolves to this listener.
        "Host: evil.example:8081\r\nHostler-Command: 1\r\n",
        "Host: 127.0.0.1:8081\r\nHostler-Command: 1\r\nOrigin: http://127.0.0.1:8080\r\n",
    ];
    for fields in cases {
        for path in ["/pools/app/pause", "/pools/app/resume", "/restart", "/reload", "/upgrade"] {
            order(&site, path, fields).await.assert_status(403);
        }
    }
    assert_eq!(site.pool("app").await["paused"], false);
    let mut admin = client(site.admin()).await;
    let asks_first = "OPTIONS /pools/app/pause HTTP/1.1\r\nHost: a\r\nOrigin: http://evil.example\r\n\
        Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: hostler-command\r\n\r\n";
    admin.send(asks_first).await;
    admin.answer_to("OPTIONS").await.assert_no_field("access-control-allow-origin");
    admin.get("/pools/app/pause").await.assert_status(403);
    order(&site, "/pools/app/pause", OURS).await.assert_status(200);
    assert_eq!(site.pool("app").await["paused"], true);
}

#[tokio::test]
async fn a_web_page_in_the_operators_browser_can_read_nothing() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut admin = client(site.admin()).await;
    for path in ["/", "/status", "/table", "/routes", "/health", "/health/ready", "/other"] {
        // DNS rebinding: a foreign name resolves to this listener.
        let refused = admin.get_of("evil.example:8081", path).await;
        refused
            .assert_status(403)
            .assert_says("Host must be an IP address, localhost or a name in server.admin_hosts");
        for field in ["Origin: http://evil.example", "Sec-Fetch-Site: cross-site"] {
            admin.send(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:8081\r\n{field}\r\n\r\n")).await;
            admin.answer().await.assert_status(403);
        }
    }
    // Clients that use an address: a kubelet, Prometheus, curl.
    let address = site.admin().to_string();
    for host in [&*address, "10.0.0.7:8081", "[::1]:8081", "localhost"] {
        for path in ["/status", "/health", "/health/live"] {
            admin.get_of(host, path).await.assert_status(200);
        }
    }
    site.command(&["status"]).await.assert_exit(0);
    // A load balancer's health check with HTTP/1.0.
    admin.send("GET /health HTTP/1.0\r\n\r\n").await;
    assert!(admin.read_until("ok\n").await.starts_with("HTTP/1.0 200"));
}

#[tokio::test]
async fn an_invalid_admin_command_gets_an_explanation() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let unknown = order(&site, "/pools/ap/pause", OURS).await;
    unknown.assert_status(404).assert_says("there is no pool \\\"ap\\\", did you mean \\\"app\\\"?");
    site.command(&["pause", "ap"]).await.assert_exit(1).assert_complains("did you mean \"app\"?");
    site.command(&["restart", "app"])
        .await
        .assert_exit(1)
        .assert_complains("Hostler does not run its members");
    site.command(&["restart"]).await.assert_exit(1).assert_complains("no pool has workers");
    site.command(&["resume", "app"]).await.assert_exit(1).assert_complains("not paused");
    site.command(&["pause", "app", "--timeout", "2h"]).await.assert_exit(2).assert_complains("at most 1h");
    site.command(&["pause", "app", "--timeout", "soon"]).await.assert_exit(2).assert_complains("--timeout");
    // A misspelt parameter is not taken for one that is missing: the pause or the drain would last longer than it was meant to.
    for (path, known) in [
        ("/pools/app/pause?tiemout=5s", "timeout"),
        ("/pools/app/workers/1/drain?length=5s", "for"),
        ("/pools/app/profile?second=1", "seconds"),
        ("/pools/app/workers/1/heap?forced=true", "force"),
    ] {
        order(&site, path, OURS).await.assert_status(400).assert_says("unknown field").assert_says(known);
    }
    assert_eq!(site.pool("app").await["paused"], false);
}

#[tokio::test]
async fn a_pause_holds_requests_and_loses_none() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "pools.app.queue.limit = 2").await;
    site.command(&["pause", "app"]).await.assert_exit(0);
    let mut held = [site.begin("/a").await, site.begin("/b").await];
    site.settles("app", 0, 2).await;
    site.get("/c").await.assert_refused(503, "queue_full");
    assert!(site.command(&["status"]).await.stdout.contains("2 waiting (limit 2"));
    assert!(site.command(&["status"]).await.stdout.contains("PAUSED"));
    let why = "pool app is paused and would serve in the new process: resume it first";
    site.command(&["upgrade"]).await.assert_exit(1).assert_complains(why);
    assert_eq!(app.requests().len(), 0);
    site.command(&["resume", "app"]).await.assert_exit(0);
    for client in &mut held {
        client.answer().await.assert_ok("ok");
    }
}

#[tokio::test]
async fn a_pause_ends_by_itself_after_its_time() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    site.command(&["pause", "app", "--timeout", "1h"]).await.assert_exit(0);
    let mut held = site.begin("/").await;
    site.settles("app", 0, 1).await;
    // The second command counts.
    site.command(&["pause", "app", "--timeout", "10ms"]).await.assert_exit(0);
    held.answer().await.assert_ok("ok");
    site.says("the pause was not ended within 10ms").await;
}

#[tokio::test]
async fn a_stop_serves_requests_that_a_pause_holds() {
    let app = upstream().start().await;
    let mut site = in_front_of(&app, "server.drain_timeout = '60s'").await;
    site.command(&["pause", "app", "--timeout", "1h"]).await.assert_exit(0);
    let mut held = site.begin("/").await;
    site.settles("app", 0, 1).await;
    site.terminate();
    held.answer().await.assert_ok("ok");
    assert_eq!(site.exit().await, 0);
}
