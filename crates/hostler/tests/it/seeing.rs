//! What an operator sees: the Status and the access log, in JSON and as text.

use hostler_testkit::{eventually, upstream};
use serde_json::Value;

use crate::{in_front_of, site};

#[tokio::test]
async fn the_status_shows_pools_members_routes_and_the_program_itself() {
    let app = upstream().holds_requests().start().await;
    let config = "
        pools.app.concurrency = 1
        pools.app.queue.limit = 7
        [[routes]]
        match = '*'
        pool = 'app'
        [[routes]]
        match = '/ping'
        respond = 'PONG'";
    let site = in_front_of(&app, config).await;
    let _running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    let _waiting = site.begin("/waiting").await;
    site.settles("app", 1, 1).await;
    site.get("/ping").await.assert_ok("PONG");
    site.send("X\r\n\r\n").await.assert_refused(400, "bad_head");
    site.exchanges(2).await;

    let status = site.status().await;
    assert_eq!((&status["state"], &status["pid"]), (&"running".into(), &site.pid().into()));
    assert!(
        status["version"].is_string()
            && status["uptime_ms"].is_u64()
            && status["connections"]["open"].is_u64()
    );
    assert!(status["memory"].as_u64().unwrap() > 1 << 20);
    assert!(status["process"]["started"].is_string(), "{status}");
    let later = site.status().await;
    assert_eq!(later["process"]["started"], status["process"]["started"], "it has not restarted");

    let pool = &status["pools"][0];
    for (key, value) in [("slots", 1), ("in_use", 1), ("queue_length", 1), ("queue_limit", 7)] {
        assert_eq!(pool[key], value, "{key} in {pool}");
    }
    assert!(pool["oldest_wait_ms"].is_u64(), "{pool}");
    let member = &pool["members"][0];
    let expected = (&app.address().into(), &Value::from(1), &Value::from(1), &Value::from(false));
    assert_eq!((&member["endpoint"], &member["in_use"], &member["slots"], &member["unreachable"]), expected);
    assert!(member["joined_ms"].is_u64(), "{member}");

    let routes = status["routes"].as_array().unwrap();
    let shown: Vec<_> = routes.iter().map(|route| (&route["pattern"], &route["target"])).collect();
    assert_eq!(shown, [(&"*".into(), &"pool app".into()), (&"/ping".into(), &"respond 200".into())]);
    assert_eq!(routes[1]["answers"]["2xx"], 1);
    assert_eq!(status["unrouted"]["refusals"]["bad_head"], 1);
    app.release_all();
}

#[tokio::test]
async fn counters_separate_answers_and_refusals_by_route_and_class() {
    let app = upstream()
        .script(|seen| {
            hostler_testkit::text(format!("HTTP/1.1 {} X\r\nContent-Length: 0\r\n\r\n", &seen.target()[1..]))
        })
        .start()
        .await;
    let site = in_front_of(&app, "server.max_body_size = 10").await;
    for (path, times) in [("/200", 3), ("/302", 2), ("/404", 1), ("/500", 4)] {
        for _ in 0..times {
            site.get(path).await;
        }
    }
    site.post("/200", [b'x'; 11]).await.assert_refused(413, "body_too_large");
    site.exchanges(11).await;
    let route = site.status().await["routes"][0].clone();
    let counts = ["2xx", "3xx", "4xx", "5xx"].map(|class| route["answers"][class].as_u64().unwrap());
    assert_eq!(counts, [3, 2, 2, 4], "{route}");
    assert_eq!(route["refusals"]["body_too_large"], 1);
}

#[tokio::test]
async fn queue_wait_slot_hold_and_worker_time_are_measured_separately() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    let mut first = site.begin("/first").await;
    site.settles("app", 1, 0).await;
    let mut second = site.begin("/second").await;
    eventually("a wait of 50 ms", async || {
        (site.pool("app").await["oldest_wait_ms"].as_u64()? >= 50).then_some(())
    })
    .await;
    app.release_all();
    first.answer().await.assert_status(200);
    second.answer().await.assert_status(200);

    let (first, second) = (site.access("/first").await, site.access("/second").await);
    let of = |line: &Value, key: &str| line[key].as_f64().unwrap_or_else(|| panic!("no {key} in {line}"));
    assert!(of(&first, "queue_wait_ms") < of(&first, "worker_time_ms"), "{first}");
    assert!(of(&second, "queue_wait_ms") >= 50.0, "{second}");
    for line in [&first, &second] {
        assert!(of(line, "slot_hold_ms") >= of(line, "worker_time_ms"), "{line}");
        assert!(of(line, "total_ms") >= of(line, "queue_wait_ms") + of(line, "slot_hold_ms") - 1.0, "{line}");
    }
    let times = &site.pool("app").await["times"];
    for histogram in ["queue_wait", "slot_hold", "worker_time"] {
        assert_eq!(times[histogram]["count"], 2, "{histogram} in {times}");
        assert!(times[histogram]["p99_us"].as_u64() >= times[histogram]["p50_us"].as_u64(), "{times}");
    }
    assert!(times["queue_wait"]["max_us"].as_u64().unwrap() >= 50_000, "{times}");
}

#[tokio::test]
async fn every_exchange_is_one_line_with_all_its_facts() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let fields = "User-Agent: test \"one\"\r\nReferer: http://before\r\nX-Request-Id: id-1\r\n";
    site.send(format!("POST /a?b=%22 HTTP/1.1\r\nHost: Site.test\r\n{fields}Content-Length: 4\r\n\r\nbody"))
        .await;
    let line = site.access("/a?b=%22").await;
    let expected = [
        ("event", "access"),
        ("id", "id-1"),
        ("client", "127.0.0.1"),
        ("method", "POST"),
        ("host", "Site.test"),
        ("route", "*"),
        ("pool", "app"),
        ("member", app.address()),
        ("user_agent", "test \"one\""),
        ("referer", "http://before"),
    ];
    for (key, value) in expected {
        assert_eq!(line[key], value, "{key} in {line}");
    }
    for (key, value) in [("status", 200), ("attempts", 1), ("bytes_in", 4), ("bytes_out", 2)] {
        assert_eq!(line[key], value, "{key} in {line}");
    }
    assert!(line["time"].as_str().unwrap().ends_with('Z') && line["total_ms"].is_f64(), "{line}");
    assert_eq!(line.get("refusal").or(line.get("aborted")), None);
}

#[tokio::test]
async fn a_log_line_has_the_busy_slots_and_the_queue_length_at_arrival() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 2\npools.app.queue.limit = 2").await;
    let mut clients = Vec::new();
    for (path, in_use, waiting) in [("/1", 1, 0), ("/2", 2, 0), ("/3", 2, 1), ("/4", 2, 2)] {
        clients.push(site.begin(path).await);
        site.settles("app", in_use, waiting).await;
    }
    site.get("/5").await.assert_refused(503, "queue_full");
    app.release_all();
    for client in &mut clients {
        client.answer().await.assert_status(200);
    }
    for (path, in_use, queue_length) in [("/1", 0, 0), ("/2", 1, 0), ("/3", 1, 0), ("/4", 1, 1)] {
        let line = site.access(path).await;
        let expected = (&Value::from(in_use), &Value::from(queue_length));
        // Whether another slot of the worker was free by then is random.
        let is_right = line["in_use"] == *expected.0 || path > "/2" && line["in_use"] == 0;
        assert!(is_right && line["queue_length"] == *expected.1, "{path}: {line}");
    }
    let refused = site.access("/5").await;
    assert_eq!((&refused["queue_length"], refused.get("in_use")), (&2.into(), None), "{refused}");
}

#[tokio::test]
async fn a_refusal_is_one_line_with_its_reason() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    site.send("POST /bad HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n")
        .await
        .assert_refused(400, "bad_framing");
    let line = site.refusal("bad_framing").await;
    assert_eq!(
        (&line["status"], &line["target"], &line["attempts"]),
        (&400.into(), &"/bad".into(), &0.into())
    );
    assert_eq!(line["detail"], "more than one Content-Length");
}

#[tokio::test]
async fn nothing_that_a_client_sends_can_forge_a_line() {
    let app = upstream().start().await;
    for form in ["json", "pretty"] {
        let site = in_front_of(&app, &format!("server.access_log = '{form}'")).await;
        site.send(b"GET /\xc2\x9b31m\xe2\x80\xae HTTP/1.1\r\nHost: a\r\nUser-Agent: \"}\t{\"event\":\"forged\"}\r\n\r\n").await;
        site.get("/end").await;
        site.says("/end").await;
        let lines = site.lines();
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines.iter().all(|line| !line.starts_with("{\"event\":\"forged")), "{lines:?}");
        // JSON is for machines. In text for people, control characters must not move the cursor.
        assert!(form == "json" || lines.iter().all(|line| !line.contains('\u{9b}')), "{lines:?}");
    }
}

#[tokio::test]
async fn the_log_can_be_text_or_off() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.access_log = 'pretty'").await;
    site.get("/people").await.assert_ok("ok");
    let line = site.says("/people").await;
    assert!(line.contains("200 GET site.test/people") && line.contains(app.address()), "{line}");
    site.send("X\r\n\r\n").await.assert_refused(400, "bad_head");
    let line = site.says("refused").await;
    assert!(line.contains("bad_head") && line.contains("the request line is malformed"), "{line}");

    let silent = in_front_of(&app, "server.access_log = 'off'").await;
    silent.get("/silent").await.assert_ok("ok");
    silent.terminate();
    silent.says("stopped").await;
    assert!(silent.lines().iter().all(|line| !line.contains("/silent")));
}

#[tokio::test]
async fn hostler_status_prints_a_table_or_json() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    site.get("/").await.assert_ok("ok");
    site.exchanges(1).await;
    let admin = site.admin().to_string();
    let run = async |arguments: &[&str]| {
        hostler_testkit::run(
            env!("CARGO_BIN_EXE_hostler"),
            &[&["status", "--admin", &admin], arguments].concat(),
            site.folder(),
        )
        .await
    };
    let table = run(&[]).await;
    table.assert_exit(0);
    for part in ["running", "pool app", "slots in use", "queue wait", app.address(), "route", "(none)"] {
        assert!(table.stdout.contains(part), "expected {part:?} in\n{}", table.stdout);
    }
    let json: Value = serde_json::from_str(&run(&["--json"]).await.assert_exit(0).stdout).unwrap();
    assert_eq!((&json["pid"], &json["pools"][0]["name"]), (&site.pid().into(), &"app".into()));
}

#[tokio::test]
async fn hostler_status_reports_when_no_hostler_answers() {
    let no_hostler = hostler_testkit::no_upstream();
    let plan = site("").with_member("app", &no_hostler);
    let output = plan.run(&["status", "--admin", &no_hostler]).await;
    output.assert_exit(1).assert_complains(&format!("no Hostler answers on {no_hostler}"));
}

#[tokio::test]
async fn a_command_names_the_hostler_of_its_folder_if_the_file_has_another_address() {
    let (folder, no_hostler) = (tempfile::tempdir().unwrap(), hostler_testkit::no_upstream());
    let folder = folder.path();
    std::fs::write(folder.join("hostler.toml"), format!("server.admin = '{no_hostler}'\n")).unwrap();
    // As a Hostler with workers keeps it.
    std::fs::create_dir(folder.join("hostler-1")).unwrap();
    let note = format!("127.0.0.1:8081\n{}", folder.display());
    std::fs::write(folder.join("hostler-1/admin"), note).unwrap();
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_hostler"))
        .arg("status")
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("in this folder has another address: --admin 127.0.0.1:8081"), "{said}");
}

#[tokio::test]
async fn the_admin_listener_answers_status_and_nothing_else() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut admin = hostler_testkit::client(site.admin()).await;
    admin
        .get_of("localhost", "/status")
        .await
        .assert_status(200)
        .assert_field("content-type", "application/json");
    admin.get_of("localhost", "/").await.assert_status(200).assert_says("/status");
    admin.send("GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html,*/*;q=0.8\r\n\r\n").await;
    let page = admin.answer().await;
    page.assert_status(200).assert_field("content-type", "text/html; charset=utf-8");
    page.assert_says("<title>Hostler live</title>").assert_says("script type=\"module\"");
    admin.get_of("localhost", "/other").await.assert_status(404);
    assert_eq!(app.requests().len(), 0);
    // The public listener does not answer it either.
    site.get("/status").await.assert_ok("ok");
}
