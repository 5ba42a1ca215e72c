//! The examples with their own configurations: they start, answer, and refuse what they should refuse.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Once;

use hostler_testkit::{eventually, held_port, request};
use rustix::process::Signal;
use serde_json::json;

use super::proc;
use super::site::{Plan, Site, configured_by, repository};

/// Built as `npm start` builds them, unless `npm test` has built them already.
fn examples() -> PathBuf {
    static BUILT: Once = Once::new();
    let folder = repository().join("examples");
    BUILT.call_once(|| {
        if std::env::vars_os().any(|(name, _)| name == "EXAMPLES_BUILT") {
            return;
        }
        let script = "import { buildExamples } from './scripts/steps.mjs'; await buildExamples();";
        let output = Command::new("node")
            .args(["--input-type=module", "--eval", script])
            .current_dir(repository())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    });
    folder
}

fn plan(file: &str) -> Plan {
    configured_by(&examples().join(file)).option("server.access_log=json")
}

/// An example that calls another one through Hostler must know Hostler's address: `pool` and `variable`, and a path.
async fn start(file: &str, asks: &[(&str, &str, &str)]) -> Site {
    let port = held_port();
    let address = port.address();
    let plan = asks.iter().fold(plan(file), |plan, (pool, variable, path)| {
        plan.option(&format!("pools.{pool}.env.{variable}=http://{address}{path}"))
    });
    plan.option(&format!("server.listen={address}")).started().await
}

async fn the_homes_answer(site: &Site, base: &str) {
    let page = site.get(&format!("{base}/")).await;
    page.assert_status(200).assert_field("content-type", "text/html; charset=utf-8");
    assert!(page.text().matches("<article").count() >= 40, "a page of forty homes");
    site.get(&format!("{base}/nowhere")).await.assert_status(404).assert_no_field("hostler-refusal");
}

async fn the_api_answers(site: &Site) {
    let listings = site.get("/api/listings?from=0").await;
    listings.assert_status(200).assert_field("content-type", "application/json; charset=utf-8");
    let echo = request("POST /api/echo", "Content-Type: application/json\r\n", br#"{"a":1}"#);
    site.send(echo).await.assert_status(200).assert_says(r#""a":1"#);
    assert_eq!(site.get("/api/whoami").await.assert_status(200).json()["ip"], json!("127.0.0.1"));
    site.get("/api/nowhere").await.assert_status(404).assert_no_field("hostler-refusal");
}

async fn the_stays_answer(site: &Site, base: &str) {
    // On a busy machine the first renders may take longer than the second that the route allows.
    let text = eventually("a page of the worker's", async || {
        let page = site.get(&format!("{base}/")).await;
        page.assert_status(200);
        page.field("hostler-fallback").is_none().then(|| page.text())
    })
    .await;
    assert!(text.matches("<article").count() >= 10, "what the API has to offer");
    let mut sources = text.split("src=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let script = sources.find(|source| source.contains("/assets/app-")).unwrap();
    let fields = "Host: a\r\nAccept-Encoding: gzip, br";
    let file = site.send(format!("GET {script} HTTP/1.1\r\n{fields}\r\n\r\n")).await;
    file.assert_status(200)
        .assert_field("content-encoding", "br")
        .assert_field("content-type", "text/javascript; charset=utf-8")
        .assert_field("x-content-type-options", "nosniff")
        .assert_field("cache-control", "public, max-age=31536000, immutable");
    assert_eq!(site.access(script).await.get("pool"), None, "no worker was asked");
    site.get(&format!("{base}/assets/../server.mjs")).await.assert_refused(400, "bad_target");
    site.get(&format!("{base}/nowhere")).await.assert_status(404).assert_no_field("hostler-refusal");
}

async fn the_islands_answer(site: &Site, base: &str) {
    // The first renders are slow, and the page does not wait for them: the browser renders then.
    eventually("each island to name who rendered it", async || {
        let page = site.get(&format!("{base}/")).await;
        page.assert_status(200);
        (page.text().matches("</b> worker ").count() == 5).then_some(())
    })
    .await;
    let job = json!({"one": {"name": "Nobody", "data": {}}}).to_string();
    let batch = request("POST /batch", "Content-Type: application/json\r\n", job.as_bytes());
    let answer = site.send(batch).await;
    answer.assert_status(200).assert_no_field("hostler-fallback");
    assert_eq!(answer.json()["results"]["one"]["success"], json!(false), "there is no such component");
}

async fn the_photos_answer(site: &Site) {
    let found = site.get("/view/52551849781").await;
    let address = found.assert_status(302).field("location").unwrap();
    let picture = address.find("/services/pictures/").map(|from| &address[from..]);
    site.get(picture.unwrap()).await.assert_status(200).assert_field("content-type", "image/svg+xml");
    site.get("/view/unknown").await.assert_status(404).assert_no_field("hostler-refusal");
}

async fn the_chat_answers(site: &Site, base: &str) {
    let page = site.get(&format!("{base}/room/lobby")).await;
    page.assert_status(200).assert_says(&format!("<base href=\"{base}/\">"));
    site.get(&format!("{base}/room/")).await.assert_status(404).assert_no_field("hostler-refusal");
    let fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut client = site.connect().await;
    client.send(format!("GET {base}/socket HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n{fields}\r\n")).await;
    client.answer().await.assert_status(403).assert_no_field("hostler-refusal");
    let mut client = site.connect().await;
    client.send(format!("GET {base}/socket HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
    let head = client.next_head().await.unwrap();
    assert!(head.start_line().starts_with("HTTP/1.1 101 "), "{head:?}");
}

/// All links of the front page work.
async fn its_links_lead_somewhere(site: &Site) {
    let front = site.get("/").await;
    front.assert_status(200).assert_field("content-type", "text/html; charset=utf-8");
    let text = front.text();
    let links: Vec<_> = text.split("href=\"/").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(links.len() >= 15, "{links:?}");
    for link in links {
        let answer = eventually("an answer that is no fallback", async || {
            let answer = site.get(&format!("/{}", link.replace("&amp;", "&"))).await;
            answer.field("hostler-fallback").is_none().then_some(answer)
        })
        .await;
        let expected = if link.ends_with("/nowhere") { 404..=404 } else { 200..=399 };
        assert!(expected.contains(&answer.status), "/{link}: {}", answer.status);
        answer.assert_no_field("hostler-refusal");
    }
}

/// No worker is asked. A private address has no place.
async fn the_places_answer(site: &Site, base: &str) {
    let page = site.get(&format!("{base}/")).await;
    page.assert_status(200).assert_says("IP Geolocation by DB-IP").assert_says("GeoNames");
    assert!(
        page.field("content-security-policy").is_some_and(|policy| policy.starts_with("default-src 'none'"))
    );
    let dots = site.get(&format!("{base}/data/dots.json")).await;
    assert_eq!(dots.assert_status(200).json()["codes"].as_array().unwrap().len(), 40_976);
    let you = site.get(&format!("{base}/api/geo")).await;
    assert_eq!(you.assert_status(200).json()["type"], json!("loopback"));
    let code = site.get(&format!("{base}/api/postal/us/97209")).await;
    assert_eq!(code.assert_status(200).json()["city"], json!("Portland"));
    site.get(&format!("{base}/nowhere")).await.assert_status(404);
}

#[tokio::test]
async fn the_examples_answer_behind_one_address() {
    let asks = [
        ("stays", "API_URL", "/api"),
        ("islands-page", "HYPERNOVA_URL", "/batch"),
        ("photos", "FLICKR_URL", "/services/rest/"),
    ];
    let site = start("hostler.toml", &asks).await;
    its_links_lead_somewhere(&site).await;
    the_homes_answer(&site, "/homes").await;
    the_api_answers(&site).await;
    the_stays_answer(&site, "/stays").await;
    the_islands_answer(&site, "/islands").await;
    the_photos_answer(&site).await;
    the_chat_answers(&site, "/chat").await;
    the_places_answer(&site, "/places").await;
    site.get("/places").await.assert_status(308).assert_field("location", "./places/");
    site.get("/get_city").await.assert_ok("{\"city\":\"Unknown\"}\n");
    assert_eq!(site.get("/api/zipinfo/byzip/97209").await.assert_status(200).json()["state"], json!("OR"));
    let listings = || site.get("/api/listings?country=IE&from=0");
    listings().await.assert_status(200);
    let again = listings().await;
    assert!(
        again.field("cache-status").is_some_and(|status| status.starts_with("Hostler; hit")),
        "{again:?}"
    );

    // No worker is left to answer this.
    let status = site.status().await;
    let pools = status["pools"].as_array().unwrap();
    for worker in pools.iter().flat_map(|pool| pool["workers"].as_array().unwrap()) {
        proc::kill(worker["pid"].as_u64().unwrap() as u32);
    }
    site.get("/ping").await.assert_ok("PONG\n");
    let line = site.access("/ping").await;
    assert_eq!((&line["route"], line.get("pool"), &line["attempts"]), (&json!("/ping"), None, &json!(0)));
    site.is_ready().await;
    site.stop().await;
}

#[tokio::test]
async fn the_homes_answer_by_their_own_file() {
    let site = start("ssr-page/hostler.toml", &[]).await;
    the_homes_answer(&site, "").await;
    site.stop().await;
}

#[tokio::test]
async fn the_api_answers_by_its_own_file() {
    let site = start("express-api/hostler.toml", &[]).await;
    the_api_answers(&site).await;
    site.get("/elsewhere").await.assert_refused(404, "no_route");
    site.stop().await;
}

#[tokio::test]
async fn the_stays_answer_by_their_own_file() {
    let site = start("hyperloop/hostler.toml", &[("stays", "API_URL", "/api")]).await;
    the_stays_answer(&site, "").await;
    the_api_answers(&site).await;
    site.stop().await;
}

/// The frozen API is the slowest one: the page waits for it, and the visitor does not.
#[tokio::test]
async fn the_stays_fallback_comes_after_the_second_of_its_route() {
    let all = [
        ("stays", "API_URL", "/api"),
        ("islands-page", "HYPERNOVA_URL", "/batch"),
        ("photos", "FLICKR_URL", "/services/rest/"),
    ];
    for (file, asks, page) in
        [("hyperloop/hostler.toml", &all[..1], "/"), ("hostler.toml", &all[..], "/stays/")]
    {
        let site = start(file, asks).await;
        let status = site.status().await;
        let api =
            status["pools"].as_array().unwrap().iter().find(|pool| pool["name"] == json!("api")).unwrap();
        for worker in api["workers"].as_array().unwrap() {
            proc::signal(worker["pid"].as_u64().unwrap() as u32, Signal::STOP);
        }
        let fields = "Host: a\r\nAccept: text/html";
        let shell = site.send(format!("GET {page} HTTP/1.1\r\n{fields}\r\n\r\n")).await;
        shell.assert_status(200).assert_field("hostler-fallback", "answer_timeout");
        let took = site.access(page).await["total_ms"].as_f64().unwrap();
        assert!((950.0..5_000.0).contains(&took), "{file}: after {took} ms, of which 1,000 are the page's");
        for worker in api["workers"].as_array().unwrap() {
            proc::signal(worker["pid"].as_u64().unwrap() as u32, Signal::CONT);
        }
        site.stop().await;
    }
}

#[tokio::test]
async fn the_islands_answer_by_their_own_file() {
    let site = start("islands/hostler.toml", &[("page", "HYPERNOVA_URL", "/batch")]).await;
    the_islands_answer(&site, "").await;
    site.stop().await;
}

#[tokio::test]
async fn the_photos_answer_by_their_own_file() {
    let site = start("original-photos/hostler.toml", &[("photos", "FLICKR_URL", "/services/rest/")]).await;
    the_photos_answer(&site).await;
    site.stop().await;
}

/// The links on the page of the photos, and their results.
const SAMPLES: [(&str, u16); 11] = [
    ("52551849781", 302),
    ("8391270110", 302),
    ("2610", 302),
    ("unknown", 404),
    ("fault-private", 403),
    ("fault-busy", 503),
    ("fault-html", 502),
    ("fault-reset_once", 302),
    ("fault-silent", 504),
    ("fault-small", 302),
    ("fault-video", 302),
];

#[tokio::test]
async fn the_photos_samples_can_be_tried_in_any_order() {
    let port = held_port();
    let address = port.address();
    let site = plan("original-photos/hostler.toml")
        .option(&format!("server.listen={address}"))
        .option(&format!("pools.photos.env.FLICKR_URL=http://{address}/services/rest/"))
        .option("pools.photos.env.TRY_TIMEOUT_MS=2000")
        .option("pools.flickr.env.LATENCY_MS=0")
        .started()
        .await;
    let page = site.get("/").await.text();
    let offered: Vec<_> =
        page.split("href=\"/view/").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(offered, SAMPLES.map(|(id, _)| id));
    // Names without a stored answer, in both orders: each kind is followed by each of the other kinds.
    let worst = ["fault-busy_until", "fault-busy_silent", "fault-reset", "fault-drip", "fault-key"];
    let rounds = [SAMPLES.to_vec(), SAMPLES.into_iter().rev().collect()];
    for (round, samples) in rounds.iter().enumerate() {
        for (number, (id, expected)) in samples.iter().enumerate() {
            let id = if id.starts_with("fault-") { format!("{id}-{round}") } else { (*id).to_owned() };
            let answer = site.get(&format!("/view/{id}")).await;
            answer.assert_status(*expected).assert_no_field("hostler-refusal");
            site.get(&format!("/view/{round}00{number}")).await.assert_status(302);
        }
        for id in worst {
            let answer = site.get(&format!("/view/{id}-{round}")).await;
            assert!(answer.status >= 500, "{id}: {}", answer.status);
            site.get(&format!("/view/{round}{}", id.len())).await.assert_status(302);
        }
    }
    let status = site.status().await;
    for pool in status["pools"].as_array().unwrap() {
        for worker in pool["workers"].as_array().unwrap() {
            assert_eq!(worker["restarts"], json!(0), "{worker}");
        }
    }
    site.stop().await;
}

#[tokio::test]
async fn the_chat_answers_by_its_own_file() {
    let site = start("chat/hostler.toml", &[]).await;
    the_chat_answers(&site, "").await;
    site.stop().await;
}

#[tokio::test]
async fn the_places_answer_by_their_own_file() {
    let site = start("places/hostler.toml", &[]).await;
    the_places_answer(&site, "").await;
    site.stop().await;
}

#[test]
fn the_front_page_counts_what_the_configuration_starts() {
    let text = |file: &str| std::fs::read_to_string(repository().join("examples").join(file)).unwrap();
    let (page, config) = (text("front.html"), text("hostler.toml"));
    let pools = config.lines().filter(|line| line.starts_with("command ")).count();
    let workers = config
        .lines()
        .filter_map(|line| line.strip_prefix("workers "))
        .map(|rest| rest.trim_start_matches([' ', '=']).trim().parse::<usize>().unwrap());
    assert_eq!((pools, workers.sum()), (8, 10), "the page says these numbers in words");
    assert!(page.contains("eight Node services with ten workers"));
    // The API has no card.
    assert_eq!(page.matches("<article").count() + 1, 7);
    assert!(page.contains("<h1>Seven examples behind one address.</h1>"));
}
