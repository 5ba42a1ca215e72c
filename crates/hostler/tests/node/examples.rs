//! The examples, run by their own configuration: they start, answer, and say no where they should.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Once;

use hostler_testkit::request;
use serde_json::json;

use super::proc;
use super::site::{Site, configured_by, repository};

/// The page is bundled by its own build script.
fn examples() -> PathBuf {
    static BUILT: Once = Once::new();
    let folder = repository().join("examples");
    BUILT.call_once(|| {
        let output =
            Command::new("node").arg("build.mjs").current_dir(folder.join("ssr-page")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
    folder
}

async fn start(file: &str) -> Site {
    configured_by(&examples().join(file)).option("server.access_log=json").started().await
}

async fn the_page_answers(site: &Site, base: &str) {
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

async fn the_chat_answers(site: &Site, base: &str) {
    let page = site.get(&format!("{base}/room/lobby")).await;
    page.assert_status(200).assert_says(&format!("<base href=\"{base}/\">"));
    site.get(&format!("{base}/room/")).await.assert_status(404).assert_no_field("hostler-refusal");
}

#[tokio::test]
async fn the_examples_answer_behind_one_address() {
    let site = start("hostler.toml").await;
    site.get("/").await.assert_status(200).assert_field("content-type", "text/html; charset=utf-8");
    the_page_answers(&site, "/homes").await;
    the_api_answers(&site).await;
    the_chat_answers(&site, "/chat").await;
    let status = site.status().await;

    // No worker is left to answer this.
    for worker in
        status["pools"].as_array().unwrap().iter().flat_map(|pool| pool["workers"].as_array().unwrap())
    {
        proc::kill(worker["pid"].as_u64().unwrap() as u32);
    }
    site.get("/ping").await.assert_ok("PONG\n");
    let line = site.access("/ping").await;
    assert_eq!((&line["route"], line.get("pool"), &line["attempts"]), (&json!("/ping"), None, &json!(0)));
    site.is_ready().await;
    site.stop().await;
}

#[tokio::test]
async fn each_example_answers_by_its_own_file() {
    let page = start("ssr-page/hostler.toml").await;
    the_page_answers(&page, "").await;
    page.stop().await;
    let api = start("express-api/hostler.toml").await;
    the_api_answers(&api).await;
    api.get("/elsewhere").await.assert_refused(404, "no_route");
    api.stop().await;
    let chat = start("chat/hostler.toml").await;
    the_chat_answers(&chat, "").await;
    chat.stop().await;
}
