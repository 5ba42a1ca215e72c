//! `GET /metrics`: the figures of the status, in formats that Prometheus reads.

use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};

use hostler_testkit::{ReceivedAnswer, Site, authority, client, eventually, nats, ok, upstream};

use crate::streams::stream;
use crate::tls::{ONE, started};
use crate::tunnels::{GOING_AWAY, Member, in_front, tunnel};
use crate::{in_front_of, registrar};

const ROUTES: &str = "
    pools.app.concurrency = 1
    [[routes]]
    match = '/say \"hi\"/*'
    respond = 'hi'
    [[routes]]
    match = '*'
    pool = 'app'";

async fn metrics(site: &Site, accept: &str) -> ReceivedAnswer {
    let mut client = client(site.admin()).await;
    client
        .send(format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{accept}Connection: close\r\n\r\n"))
        .await;
    client.answer().await
}

/// Each sample with its labels, and its value.
pub(super) async fn samples(site: &Site) -> HashMap<String, f64> {
    let text = metrics(site, "").await.assert_status(200).text();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

#[tokio::test]
async fn a_request_is_counted_by_route_method_and_status() {
    let app = upstream().answers("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").start().await;
    let site = in_front_of(&app, ROUTES).await;
    for _ in 0..3 {
        site.get("/page").await.assert_ok("ok");
    }
    site.send("BREW / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    site.send("X\r\n\r\n").await.assert_refused(400, "bad_head");
    site.exchanges(5).await;
    let samples = samples(&site).await;
    let count = |method: &str, status: &str, route: &str| {
        let labels = format!(
            "http_request_method=\"{method}\",http_response_status_code=\"{status}\",http_route=\"{route}\",url_scheme=\"http\""
        );
        let name = |suffix: &str, more: &str| {
            format!("http_server_request_duration_seconds_{suffix}{{{more}{labels}}}")
        };
        let count = samples.get(&name("count", "")).copied().unwrap_or_default();
        assert_eq!(
            samples.get(&name("bucket", "le=\"+Inf\",")).copied().unwrap_or_default(),
            count,
            "{samples:#?}"
        );
        count
    };
    assert_eq!(count("GET", "200", "*"), 3.0, "{samples:#?}");
    assert_eq!(count("_OTHER", "200", "*"), 1.0, "{samples:#?}");
    assert_eq!(count("_OTHER", "400", ""), 1.0, "{samples:#?}");
    assert_eq!(samples["hostler_refusals_total{http_route=\"\",reason=\"bad_head\"}"], 1.0);
    assert_eq!(samples["hostler_slots_granted_total{pool=\"app\"}"], 4.0);
    assert_eq!(samples["hostler_worker_seconds_count{pool=\"app\"}"], 4.0);
    assert!(samples["hostler_worker_seconds_sum{pool=\"app\"}"] > 0.0);
}

#[tokio::test]
async fn a_tunnel_and_a_stream_count_with_the_time_until_they_were_open() {
    let member = Member::start().await;
    let ends = "pools.app.tunnel_idle_timeout = \"1s\"\npools.app.stream_idle_timeout = \"1s\"";
    let site = in_front(&member, ends).await;
    let (mut client, end) = tunnel(&site, &member, "websocket").await;
    assert_eq!(client.read_exactly(4).await, GOING_AWAY);
    drop((client, end));
    site.exchanges(1).await;
    let (mut client, _end) = stream(&site, &member).await;
    client.read_until("0\r\n\r\n").await;
    let lines = site.exchanges(2).await;
    let samples = samples(&site).await;
    for (line, status) in lines.iter().zip(["101", "200"]) {
        let label = format!("http_response_status_code=\"{status}\"");
        let is_sum = |name: &&String| {
            name.starts_with("http_server_request_duration_seconds_sum{") && name.contains(&label)
        };
        let name = samples.keys().find(is_sum).unwrap_or_else(|| panic!("{status} in {samples:#?}"));
        let total = line["total_ms"].as_f64().unwrap() / 1000.0;
        assert!(total - samples[name] > 0.5, "{name} is {}, and it was open: {line}", samples[name]);
    }
}

#[tokio::test]
async fn registered_routes_count_together() {
    let Some(nats) = nats().start().await else { return };
    let app = upstream().script(|_| ok("here")).start().await;
    let site = registrar::site_on(&nats, "").await;
    let said = registrar::registration(&app, &["one.test", "two.test"]);
    registrar::say(&registrar::client(&nats).await, "router.register", &said).await;
    for host in ["one.test", "two.test"] {
        registrar::answers(&site, host, "/", "here").await;
    }
    eventually("both requests to be counted", async || {
        (site.status().await["registered"]["answers"]["2xx"] == 2).then_some(())
    })
    .await;
    let labels = "http_request_method=\"GET\",http_response_status_code=\"200\",http_route=\"(registered)\",url_scheme=\"http\"";
    let count = format!("http_server_request_duration_seconds_count{{{labels}}}");
    let samples = samples(&site).await;
    assert_eq!(samples.get(&count), Some(&2.0));
    assert_eq!(samples["hostler_queue_wait_seconds_count{pool=\"(registered)\"}"], 2.0);
    let shown = site.command(&["status"]).await.stdout.clone();
    assert!(shown.lines().any(|line| line.trim_start().starts_with("(registered)")), "{shown}");
}

#[tokio::test]
async fn a_queue_that_stands_is_seen() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, ROUTES).await;
    let _running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    let _waiting = site.begin("/waiting").await;
    site.settles("app", 1, 1).await;
    let samples = samples(&site).await;
    for (name, value) in [
        ("hostler_slots{pool=\"app\"}", 1.0),
        ("hostler_slots_in_use{pool=\"app\"}", 1.0),
        ("hostler_queue_length{pool=\"app\",priority=\"normal\"}", 1.0),
        ("hostler_queue_length{pool=\"app\",priority=\"high\"}", 0.0),
        ("hostler_members{pool=\"app\",state=\"up\"}", 1.0),
        ("hostler_ready", 1.0),
        ("hostler_draining", 0.0),
    ] {
        assert_eq!(samples[name], value, "{name}");
    }
    assert!(samples["hostler_queue_oldest_wait_seconds{pool=\"app\"}"] > 0.0);
    for name in [
        "process_cpu_seconds_total",
        "process_open_fds",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
    ] {
        assert!(samples[name] > 0.0, "{name}");
    }
    app.release_all();
}

#[tokio::test]
async fn a_certificate_that_is_listed_twice_has_one_sample() {
    let (trust, app) = (authority(), upstream().start().await);
    let twice = ONE.replace("[{", "[{ cert = 'a.pem', key = 'a.key' }, {");
    let site = started(&trust, &twice, &app).await;
    let text = metrics(&site, "").await.assert_status(200).text();
    for metric in ["hostler_certificate_not_before_seconds{", "hostler_certificate_not_after_seconds{"] {
        assert_eq!(text.lines().filter(|line| line.starts_with(metric)).count(), 1, "{metric} {text}");
    }
}

/// The checker of Prometheus itself.
fn assert_promtool_accepts(text: &str) {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Exit code 3: advice. Gauges of the conventions have no unit in their names.
    assert!(output.status.success() && said.is_empty(), "{}: {said}", output.status);
}

#[tokio::test]
async fn prometheus_accepts_the_metrics_and_openmetrics_is_available() {
    let app = upstream().answers("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").start().await;
    let site = in_front_of(&app, ROUTES).await;
    site.get("/say%20%22hi%22/x").await;
    site.get("/page").await.assert_ok("ok");
    site.exchanges(2).await;
    let plain = metrics(&site, "").await;
    assert_eq!(plain.field("content-type").unwrap(), "text/plain; version=0.0.4; charset=utf-8");
    assert_promtool_accepts(&plain.text());
    let open =
        metrics(&site, "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n").await;
    assert_eq!(
        open.field("content-type").unwrap(),
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    assert!(open.text().ends_with("# EOF\n"), "{}", open.text());
    assert_eq!(open.field("cache-control").unwrap(), "no-store");
}

fn monitoring() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/monitoring")
}

/// Names in an expression that look like Hostler's metrics.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| {
        ["hostler_", "http_server_", "process_", "nodejs_"].iter().any(|start| word.starts_with(start))
    })
}

#[test]
fn the_dashboard_the_alerts_and_the_guide_name_only_metrics_that_exist() {
    let known: Vec<_> = hostler::admin::METRICS.iter().map(|metric| metric.name).collect();
    let suffixes = ["_total", "_bucket", "_count", "_sum", "_info"];
    let is_known = |name: &str| {
        let short = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
        known.contains(&short) || known.contains(&name) || known.iter().any(|known| known.starts_with(name))
    };
    for file in ["grafana.json", "hostler.rules.yml", "hostler.rules.test.yml", "../guide/metrics.md"] {
        let text = std::fs::read_to_string(monitoring().join(file)).unwrap();
        let all: Vec<_> = names(&text).collect();
        assert!(all.len() > 5, "{file}: {all:?}");
        let unknown: Vec<_> = all.into_iter().filter(|name| !is_known(name)).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
}

#[test]
fn no_panel_of_the_dashboard_cuts_off_a_rate() {
    let text = std::fs::read_to_string(monitoring().join("grafana.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let limited = panels.filter(|panel| panel["fieldConfig"]["defaults"]["max"].is_number());
    let cut: Vec<_> = limited.filter(|panel| panel["targets"].to_string().contains("rate(")).collect();
    assert!(cut.is_empty(), "{cut:?}");
}

#[test]
fn the_alert_rules_do_what_they_say() {
    for (command, file) in
        [(["check", "rules"], "hostler.rules.yml"), (["test", "rules"], "hostler.rules.test.yml")]
    {
        let output =
            Command::new("promtool").args(command).arg(file).current_dir(monitoring()).output().unwrap();
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{said}");
    }
}
