//! The live page: its files and its stream of events.

use std::io::Read as _;
use std::time::Duration;

use flate2::read::GzDecoder;
use hostler_testkit::{Client, Site, Step, client, eventually, text, upstream};
use serde_json::Value;

use crate::{in_front_of, site};

/// A live page that has read the first two events.
async fn page(site: &Site) -> (Client, Value, Value) {
    let mut page = client(site.admin()).await;
    page.send("GET /live/events HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let head = page.read_until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"), "{head}");
    let history = next(&mut page, "history").await;
    let status = next(&mut page, "status").await;
    (page, history, status)
}

/// The data of the next event of this name.
async fn next(page: &mut Client, name: &str) -> Value {
    page.read_until(&format!("event: {name}\ndata: ")).await;
    let data = page.read_until("\n\n").await;
    // A long event comes in several chunks, whose sizes are between.
    serde_json::from_str(data.trim()).unwrap_or_else(|error| panic!("{error} in {data}"))
}

#[tokio::test]
async fn a_live_page_gets_history_status_and_pictures_of_waiting_and_running_requests() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    // They begin before the page is opened.
    let running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    let waiting = site.begin("/waiting").await;
    site.settles("app", 1, 1).await;

    let (mut page, history, status) = page(&site).await;
    assert_eq!(history["marks"][0]["text"], "Hostler started");
    assert_eq!(status["status"]["pools"][0]["name"], "app");
    let frame = next(&mut page, "frame").await;
    let pool = &frame["pools"][0];
    assert_eq!((&pool["queue"], &pool["lanes"][0]["in_use"]), (&1.into(), &1.into()), "{frame}");
    let held = &pool["lanes"][0]["held"][0];
    assert!(held[0].as_u64() < pool["waiting"][0][0].as_u64(), "the running request came first: {frame}");
    assert_eq!(frame["routes"][held[1].as_u64().unwrap() as usize], "*");

    app.release_all();
    for mut request in [running, waiting] {
        request.answer().await.assert_status(200);
    }
    let since = held[0].clone();
    let ended = loop {
        let frame = next(&mut page, "frame").await;
        if let Some(ended) = frame["ended"].as_array().unwrap().iter().find(|ended| ended["since"] == since) {
            break ended.clone();
        }
    };
    assert_eq!((&ended["status"], &ended["lane"]), (&200.into(), &app.address().into()), "{ended}");
    assert!(ended["hold_us"].as_u64() > Some(0), "{ended}");
}

#[tokio::test]
async fn a_live_page_is_told_what_broke_a_response_off() {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 4 << 20);
    let steps = [text(head), text(vec![b'z'; 2 << 20]), vec![Step::Close]].concat();
    let app = upstream().does(steps).start().await;
    let site = in_front_of(&app, "").await;
    let (mut page, ..) = page(&site).await;
    // From the first picture on, Hostler looks at the requests that end.
    next(&mut page, "frame").await;
    site.begin("/cut").await.answer().await.assert_broken();
    let ended = loop {
        let frame = next(&mut page, "frame").await;
        if let Some(ended) = frame["ended"].as_array().unwrap().first() {
            break ended.clone();
        }
    };
    assert_eq!((&ended["status"], &ended["aborted"]), (&200.into(), &"worker".into()), "{ended}");
}

#[tokio::test]
async fn all_live_pages_get_the_same_pictures() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let (mut first, ..) = page(&site).await;
    let (mut second, ..) = page(&site).await;
    let seen = next(&mut second, "frame").await;
    loop {
        let frame = next(&mut first, "frame").await;
        assert!(frame["now"].as_u64() <= seen["now"].as_u64(), "no picture of its own: {seen}");
        if frame == seen {
            break;
        }
    }
}

#[tokio::test]
async fn the_number_of_live_pages_is_limited() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut pages = Vec::new();
    for _ in 0..32 {
        pages.push(page(&site).await);
    }
    let mut admin = client(site.admin()).await;
    admin.get_of("localhost", "/live/events").await.assert_status(503);
    pages.clear();
    eventually("a place for another page", async || {
        let mut admin = client(site.admin()).await;
        admin.send("GET /live/events HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        admin.read_until("\r\n").await.contains("200").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_live_page_that_reads_nothing_does_not_hold_up_the_others_or_the_stop() {
    let app = upstream().start().await;
    let mut site = in_front_of(&app, "").await;
    let (mut reading, ..) = page(&site).await;
    let mut silent = client(site.admin()).await;
    silent.send("GET /live/events HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    for _ in 0..20 {
        next(&mut reading, "frame").await;
    }
    let began = tokio::time::Instant::now();
    site.terminate();
    reading.rest().await;
    assert_eq!(site.exit().await, 0);
    // Less than the time after which a client that reads nothing is cut off.
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_file_of_the_page_is_kept_by_browsers_under_its_hash_only() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut admin = client(site.admin()).await;
    admin.send("GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n").await;
    let page = admin.answer().await;
    page.assert_status(200);
    let policy = page.head.field("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    let text = page.text();
    let file = text.split("src=\"").nth(1).unwrap().split('"').next().unwrap();
    let script = admin.get_of("localhost", file).await;
    script.assert_status(200).assert_field("cache-control", "public, max-age=31536000, immutable");
    admin.get_of("localhost", "/live/000000000000/main.js").await.assert_status(404);
}

#[tokio::test]
async fn the_documentation_is_on_the_admin_listener() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut admin = client(site.admin()).await;
    admin.get_of("localhost", "/docs").await.assert_status(308).assert_field("location", "/docs/");
    let contents = admin.get_of("localhost", "/docs/").await;
    contents.assert_status(200).assert_field("content-type", "text/html; charset=utf-8");
    assert!(contents.text().contains("<a href=\"guide/live.md\">"), "{}", contents.text());

    let page = admin.get_of("localhost", "/docs/guide/live.md").await;
    page.assert_status(200).assert_field("vary", "accept-encoding");
    let policy = page.head.field("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("script"), "{policy}");
    admin
        .send("GET /docs/guide/live.md HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip, br\r\n\r\n")
        .await;
    let compressed = admin.answer().await;
    compressed.assert_status(200).assert_field("content-encoding", "gzip");
    let mut text = String::new();
    GzDecoder::new(&*compressed.body).read_to_string(&mut text).unwrap();
    assert_eq!(text, page.text());

    let picture = admin.get_of("localhost", "/docs/lanes.svg").await;
    picture.assert_status(200).assert_field("content-type", "image/svg+xml");
    for path in ["/docs/guide", "/docs/guide/nothing.md", "/docs/../Cargo.toml", "/docs/%2e%2e/Cargo.toml"] {
        admin.get_of("localhost", path).await.assert_status(404);
    }
}

#[tokio::test]
async fn every_refusal_links_to_its_explanation() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut admin = client(site.admin()).await;
    let refusals: Value =
        serde_json::from_str(&admin.get_of("localhost", "/live/refusals").await.text()).unwrap();
    let page = admin.get_of("localhost", "/docs/reference/refusals.md").await.text();
    let refusals = refusals.as_object().unwrap();
    assert!(refusals.len() > 20, "{refusals:?}");
    for (reason, about) in refusals {
        let heading = about["page"].as_str().unwrap().strip_prefix("reference/refusals.md#").unwrap();
        assert!(page.contains(&format!("id=\"{heading}\"")), "{reason}: {heading}");
    }
}

#[tokio::test]
async fn the_oldest_request_is_told_whatever_pool_and_member_it_is_at() {
    let app = upstream().holds_requests().start().await;
    // More pools than a picture has. The oldest request is in the last one.
    let names: Vec<_> = (0..40).map(|at| format!("p{at:02}")).collect();
    let routes = names.iter().map(|name| format!("[[routes]]\nmatch = '/{name}'\npool = '{name}'\n"));
    let plan = names.iter().fold(site(&routes.collect::<String>()), |plan, name| plan.with(name, &app));
    let site = plan.start().await;
    let mut under_way = Vec::new();
    for (at, name) in names.iter().rev().enumerate() {
        under_way.push(site.begin(&format!("/{name}")).await);
        app.has_seen(at + 1).await;
    }
    let (.., status) = page(&site).await;
    let mut admin = client(site.admin()).await;
    let asked = admin.get_of("localhost", "/live/requests").await.text();
    let asked: Value = serde_json::from_str(&asked).unwrap();
    for (found, number) in [(&status["oldest"], 10), (&asked["oldest"], 40)] {
        assert_eq!(found.as_array().unwrap().len(), number, "{found}");
        assert_eq!((&found[0]["pool"], &found[0]["route"]), (&"p39".into(), &"/p39".into()), "{found}");
    }
    app.release_all();
    for mut request in under_way {
        request.answer().await.assert_status(200);
    }
}

#[tokio::test]
async fn the_oldest_and_the_slowest_requests_are_told_to_who_asks() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    let mut running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    let mut waiting = site.begin("/waiting").await;
    site.settles("app", 1, 1).await;
    let asked = async || {
        let mut admin = client(site.admin()).await;
        serde_json::from_str::<Value>(&admin.get_of("localhost", "/live/requests").await.text()).unwrap()
    };
    let found = asked().await;
    let oldest = found["oldest"].as_array().unwrap();
    let lanes: Vec<_> = oldest.iter().map(|request| request["lane"].as_str()).collect();
    assert_eq!(lanes, [Some(app.address()), None], "{found}");
    assert!(oldest.iter().all(|request| request["pool"] == "app" && request["route"] == "*"), "{found}");
    assert!(oldest[0]["age_us"].as_u64() > oldest[1]["age_us"].as_u64(), "{found}");

    app.release_all();
    running.answer().await.assert_status(200);
    waiting.answer().await.assert_status(200);
    let slowest = eventually("the two requests that have ended", async || {
        let found = asked().await;
        (found["slowest"].as_array().unwrap().len() == 2).then_some(found)
    })
    .await;
    assert_eq!(slowest["oldest"], serde_json::json!([]));
    let [first, second] = [0, 1].map(|at| slowest["slowest"][at]["total_us"].as_u64().unwrap());
    assert!(first >= second && second > 0, "{slowest}");
}
