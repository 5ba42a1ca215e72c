//! Behaviour like Cloud Foundry's gorouter where routes may be registered: the answer for unknown routes, health checks, the access line,
//! SIGUSR1.

use hostler_testkit::{ReceivedAnswer, Site, Step, client, eventually, nats, text, upstream};
use serde_json::json;

use crate::registrar::{registration, say};
use crate::site;

const OWN: &str = "platform.compat = 'gorouter'\nserver.access_log = 'gorouter'\nserver.drain_wait = '1h'\n\
    routes = [{ match = 'own.test', pool = 'app' }]\n";

async fn get(site: &Site, host: &str, fields: &str) -> ReceivedAnswer {
    site.send(format!("GET /x?y=1 HTTP/1.1\r\nHost: {host}\r\nUser-Agent: curl/7.88.1\r\n{fields}\r\n")).await
}

async fn health(site: &Site) -> ReceivedAnswer {
    site.send("GET / HTTP/1.1\r\nHost: whatever\r\nUser-Agent: HTTP-Monitor/1.1\r\n\r\n").await
}

/// The line with all varying digits as `0`, and the UUID's letters too.
fn shape(line: &str) -> String {
    let is_hex_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let words = line.split_inclusive([' ', '"']).map(|word| {
        let core = word.trim_end_matches([' ', '"']);
        let is_uuid = core.len() == 36 && core.chars().all(|c| c == '-' || is_hex_digit(c));
        let kept = if is_uuid { "UUID" } else { core };
        format!("{}{}", shrunk(kept), &word[core.len()..])
    });
    words.collect()
}

/// Every number as `0`.
fn shrunk(word: &str) -> String {
    let mut out = String::new();
    for letter in word.chars() {
        match letter.is_ascii_digit() {
            true if out.ends_with('0') => {}
            true => out.push('0'),
            false => out.push(letter),
        }
    }
    out
}

#[tokio::test]
async fn an_unknown_route_gets_gorouters_refusal_and_log_line() {
    let app = upstream().start().await;
    let site = site(OWN).with("app", &app).start().await;
    let answer = get(&site, "nope.example.test", "").await;
    answer
        .assert_status(404)
        .assert_field("x-cf-routererror", "unknown_route")
        .assert_field("cache-control", "no-cache, no-store")
        .assert_field("x-content-type-options", "nosniff")
        .assert_field("content-type", "text/plain; charset=utf-8");
    assert_eq!(answer.text(), "404 Not Found: Requested route ('nope.example.test') does not exist.\n");
    let captured = concat!(
        "nope.example.test - [2026-11-21T19:21:57.498812203Z] \"GET /x?y=1 HTTP/1.1\" 404 0 69 \"-\" \"curl/7.88.1\" ",
        "\"127.0.0.1:36232\" \"-\" x_forwarded_for:\"-\" x_forwarded_proto:\"-\" ",
        "vcap_request_id:\"6319ede9-aa4a-4790-7256-e18018619676\" response_time:0.000281 gorouter_time:0.000281 ",
        "app_id:\"-\" app_index:\"-\" instance_id:\"-\" failed_attempts:0 failed_attempts_time:\"-\" dns_time:\"-\" ",
        "dial_time:\"-\" tls_time:\"-\" backend_time:\"-\" x_cf_routererror:\"unknown_route\"",
    );
    assert_eq!(shape(&site.says("nope.example.test - ").await), shape(captured));
}

#[tokio::test]
async fn a_request_to_a_configured_route_is_unchanged_and_has_a_gorouter_log_line() {
    let app = upstream().start().await;
    let site = site(OWN).with("app", &app).start().await;
    get(&site, "own.test", "X-CF-App-Instance: nonsense\r\n")
        .await
        .assert_ok("ok")
        .assert_no_field("x-vcap-request-id");
    assert_eq!(app.only_request().field("x-cf-app-instance").as_deref(), Some("nonsense"));
    let line = site.says("own.test - ").await;
    for part in
        ["\"GET /x?y=1 HTTP/1.1\" 200 0 2 ", "x_forwarded_for:\"127.0.0.1\"", "app_id:\"-\"", app.address()]
    {
        assert!(line.contains(part), "{line}");
    }
}

#[tokio::test]
async fn with_compat_a_head_that_is_too_large_gets_gorouters_answer() {
    let app = upstream().start().await;
    let site = site(&format!("{OWN}server.max_header_fields = 4\n")).with("app", &app).start().await;
    let answer = get(&site, "own.test", "A: 1\r\nB: 2\r\nC: 3\r\n").await;
    answer.assert_status(431).assert_field("x-cf-routererror", "max-request-size-exceeded");
    assert_eq!(answer.text(), "");
}

#[tokio::test]
async fn the_line_of_a_head_that_is_no_request_shows_what_came() {
    let app = upstream().start().await;
    let site = site(OWN).with("app", &app).start().await;
    for (head, status, line) in [
        ("GET /a?token=1 HTTP/3.0\r\nHost: a\r\n\r\n", 505, r#" "GET /a?token=[redacted] HTTP/3.0" 505 "#),
        ("GET /b HTTP/1.\"\r\nHost: a\r\n\r\n", 400, r#" "GET /b HTTP/1.\"" 400 "#),
        ("GET /c HTTP/1.0\r\nBad Name: 1\r\n\r\n", 400, r#" "GET /c HTTP/1.0" 400 "#),
        ("G\0T /d HTTP/1.1\r\nHost: a\r\n\r\n", 400, r#" "-" 400 "#),
    ] {
        site.send(head).await.assert_status(status);
        site.says(line).await;
    }
}

#[tokio::test]
async fn the_gorouter_line_of_a_client_that_has_left_says_499_and_no_bytes() {
    let app = upstream().holds_requests().start().await;
    let site = site(OWN).with("app", &app).start().await;
    let mut line = String::new();
    // On a busy machine the kernel may show the reset too late. Then Hostler cannot know of it.
    for attempt in 1..=5 {
        let mut client = client(site.address()).await;
        client.send(format!("GET / HTTP/1.1\r\nHost: own.test\r\nUser-Agent: try-{attempt}\r\n\r\n")).await;
        app.has_seen(attempt).await;
        client.reset();
        app.release(1);
        line = site.says(&format!("\"try-{attempt}\"")).await;
        if line.contains(r#""GET / HTTP/1.1" 499 0 0 "-" "try-"#) {
            return;
        }
    }
    panic!("{line}");
}

#[tokio::test]
async fn after_sigusr1_health_checks_fail_and_requests_are_served_until_the_drain_wait_ends() {
    let app = upstream().start().await;
    let mut site = site(OWN).with("app", &app).start().await;
    health(&site).await.assert_ok("ok\n").assert_field("cache-control", "private, max-age=0");
    site.ask_to_drain();
    eventually("health checks to fail", async || (health(&site).await.status == 503).then_some(())).await;
    assert_eq!(health(&site).await.text(), "");
    get(&site, "own.test", "").await.assert_ok("ok");
    // A second signal changes nothing.
    site.ask_to_drain();
    let mut newcomer = client(site.address()).await;
    newcomer.send("GET / HTTP/1.1\r\nHost: own.test\r\n\r\n").await;
    newcomer.answer().await.assert_ok("ok").assert_no_field("connection");
    site.terminate();
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn after_the_drain_wait_accepted_requests_are_finished() {
    let app = upstream().holds_requests().start().await;
    let config = OWN.replace("'1h'", "'0s'") + "server.drain_timeout = '1h'\n";
    let mut site = site(&config).with("app", &app).start().await;
    let mut running = client(site.address()).await;
    running.send("GET /slow HTTP/1.1\r\nHost: own.test\r\n\r\n").await;
    app.has_seen(1).await;
    site.ask_to_drain();
    site.says("stopping").await;
    app.release_all();
    running.answer().await.assert_ok("/slow");
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn a_reload_changes_the_settings_of_registered_routes() {
    let app = upstream().start().await;
    let own = "routes = [{ match = 'own.test', pool = 'app' }]\n";
    let site = site(own).with("app", &app).start().await;
    get(&site, "nope.test", "").await.assert_refused(404, "no_route");
    let members = format!("pools.app = {{ members = ['{}'] }}\n", app.address());
    site.rewrite(&format!("{own}{members}platform.healthcheck_user_agent = 'mine'\n"));
    let output = site.command(&["reload"]).await;
    assert!(output.stdout.contains("platform: changed"), "{output:?}");
    get(&site, "nope.test", "").await.assert_status(404).assert_field("x-cf-routererror", "unknown_route");
    health(&site).await.assert_status(404);
    site.send("GET / HTTP/1.1\r\nHost: x\r\nUser-Agent: mine\r\n\r\n").await.assert_ok("ok\n");
}

#[tokio::test]
async fn a_reload_says_that_compat_and_zone_need_an_upgrade() {
    let app = upstream().start().await;
    let own = "routes = [{ match = 'own.test', pool = 'app' }]\n";
    let site = site(&format!("{own}platform.compat = 'gorouter'\n")).with("app", &app).start().await;
    let members = format!("pools.app = {{ members = ['{}'] }}\n", app.address());
    let mut said = String::new();
    for _ in 0..2 {
        site.rewrite(&format!("{own}{members}platform.zone = 'z1'\n"));
        said = site.command(&["reload"]).await.assert_exit(0).stdout.clone();
        for key in ["compat", "zone"] {
            let expected = format!("platform.{key}: not applied yet; run `hostler upgrade`");
            assert!(said.contains(&expected), "{said}");
        }
    }
    assert!(said.contains("nothing else has changed"), "{said}");
    // Without the section the rules of the start go on.
    site.rewrite(&format!("{own}{members}"));
    site.command(&["reload"]).await.assert_exit(0);
    get(&site, "nope.test", "").await.assert_status(404).assert_field("x-cf-routererror", "unknown_route");
}

#[tokio::test]
async fn registered_routes_keep_their_rules_while_a_removed_registrar_waits_for_an_upgrade() {
    let Some(nats) = nats().start().await else { return };
    let app = upstream().start().await;
    let own = "routes = [{ match = 'own.test', respond = 'own' }]\n";
    let registrar = format!("{own}registrar = {{ nats = '{}', start_delay = '0s' }}\n", nats.url());
    let site = site(&registrar).start().await;
    let speaker = crate::registrar::client(&nats).await;
    eventually("a.test to be served", async || {
        say(&speaker, "router.register", &registration(&app, &["a.test"])).await;
        (get(&site, "a.test", "").await.status == 200).then_some(())
    })
    .await;
    site.rewrite(&format!("{own}server.compress = true\n"));
    let said = site.command(&["reload"]).await.assert_exit(0).stdout.clone();
    for expected in [
        "registrar: not applied yet; run `hostler upgrade`",
        "server.compress: not applied yet for registered routes; run `hostler upgrade`",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    get(&site, "b.test", "").await.assert_status(404).assert_field("x-cf-routererror", "unknown_route");
    // What is written of the section again reaches the routes.
    site.rewrite(&format!("{registrar}platform.forwarded_proto = 'https'\n"));
    site.command(&["reload"]).await.assert_exit(0);
    get(&site, "a.test", "").await.assert_ok("ok");
    let seen = app.requests().last().unwrap().field("x-forwarded-proto");
    assert_eq!(seen.as_deref(), Some("https"));
}

#[tokio::test]
async fn a_registered_route_is_logged_with_its_instance_and_its_tunnels_have_names_as_well() {
    let Some(nats) = nats().start().await else { return };
    let hello = "HTTP/1.1 200 OK\r\nSet-Cookie: JSESSIONID=1\r\nContent-Length: 2\r\n\r\nhi";
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    let app = upstream().in_turn([text(hello), [text(switch), vec![Step::AwaitFin, Step::Close]].concat()]);
    let app = app.start().await;
    let config =
        format!("server.access_log = 'gorouter'\n[registrar]\nnats = '{}'\nstart_delay = '0s'\n", nats.url());
    let site = site(&config).start().await;
    let (host, port) = app.address().rsplit_once(':').unwrap();
    let message = json!({
        "host": host, "port": port.parse::<u16>().unwrap(), "uris": ["app.test"], "app": "guid", "tags": null,
        "private_instance_id": "inst-A", "private_instance_index": "7",
    });
    let speaker = async_nats::connect(nats.url()).await.unwrap();
    let answer = eventually("the route to be served", async || {
        speaker.publish("router.register", message.to_string().into()).await.unwrap();
        speaker.flush().await.unwrap();
        let answer = get(&site, "app.test", "").await;
        (answer.status != 404).then_some(answer)
    })
    .await;
    answer.assert_ok("hi");
    let cookies = answer.head.all("set-cookie");
    assert_eq!(cookies, ["JSESSIONID=1", "__VCAP_ID__=inst-A; Path=/; HttpOnly"]);
    let line = site.says("app_index:\"7\"").await;
    let id = answer.field("x-vcap-request-id").unwrap();
    for part in ["app_id:\"guid\"", "instance_id:\"inst-A\"", &id, app.address(), "failed_attempts:0"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let mut tunnel = client(site.address()).await;
    tunnel.send("GET / HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n").await;
    let head = tunnel.next_head().await.unwrap();
    assert!(head.start_line().contains(" 101 "), "{}", head.text());
    assert_eq!(
        head.field("x-vcap-request-id").as_deref(),
        app.requests()[1].field("x-vcap-request-id").as_deref()
    );
    assert!(head.field("x-vcap-request-id").is_some());
}

#[tokio::test]
async fn only_a_health_check_may_have_an_empty_host() {
    let app = upstream().start().await;
    let empty = "GET / HTTP/1.1\r\nHost:\r\n";
    let monitor = "User-Agent: HTTP-Monitor/1.1\r\n";
    let site = site(OWN).with("app", &app).start().await;
    let answer = site.send(format!("{empty}{monitor}\r\n")).await;
    answer.assert_ok("ok\n").assert_field("cache-control", "private, max-age=0");
    for head in [format!("{empty}\r\n"), "GET / HTTP/1.0\r\n\r\n".into()] {
        let answer = site.send(head).await;
        answer.assert_status(400).assert_field("x-cf-routererror", "empty_host");
        answer.assert_field("cache-control", "public,max-age=2");
        assert_eq!(answer.text(), "400 Bad Request: Request had empty Host header\n");
    }
    site.send(format!("GET / HTTP/1.1\r\n{monitor}\r\n")).await.assert_status(400);
    site.send(format!("{empty}Host: a\r\n{monitor}\r\n")).await.assert_status(400);
    assert_eq!(app.requests().len(), 0);
    let own = crate::site("routes = [{ match = 'own.test', pool = 'app' }]").with("app", &app).start().await;
    own.send(format!("{empty}{monitor}\r\n")).await.assert_refused(400, "bad_host");
}
