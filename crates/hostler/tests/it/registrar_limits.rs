//! What a registration must not do: reach Hostler's own listeners, take paths of configured routes, fill the memory.

use std::path::Path;
use std::time::Duration;

use async_nats::{Client, ConnectOptions};
use hostler_testkit::{Site, Step, eventually, nats, ok, upstream};
use serde_json::{Value, json};

use crate::registrar::{client, get, registration, say, site_on};
use crate::site;

async fn register(client: &Client, message: &Value) {
    say(client, "router.register", message).await;
}

/// Registers until the route is served: Hostler may not have subscribed yet.
async fn serves(site: &Site, client: &Client, message: &Value, host: &str) {
    eventually(format!("{host} to be served"), async || {
        register(client, message).await;
        (get(site, host, "/").await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_registration_of_hostlers_own_address_is_refused_and_logged() {
    let Some(nats) = nats().start().await else { return };
    let app = upstream().start().await;
    let site = site_on(&nats, "[server]\nlisten = [\"127.0.0.1:0\", \"[::]:0\"]").await;
    let client = client(&nats).await;
    serves(&site, &client, &registration(&app, &["good.test"]), "good.test").await;
    let (admin, public) = (site.admin().port(), site.addresses()[1].port());
    let own = [
        ("127.0.0.1", admin),
        ("0.0.0.0", admin),
        ("::ffff:127.0.0.1", admin),
        ("127.0.0.1", public),
        ("127.9.9.9", public),
        ("::1", public),
    ];
    for (number, (host, port)) in own.into_iter().enumerate() {
        register(&client, &json!({ "host": host, "port": port, "uris": [format!("own{number}.test")] }))
            .await;
    }
    eventually("all to be counted", async || {
        let status = site.status().await;
        (status["registrar"]["messages"]["refused"]["own_address"] == own.len()).then_some(())
    })
    .await;
    for number in 0..own.len() {
        get(&site, &format!("own{number}.test"), "/status").await.assert_status(404);
    }
    site.says(&format!(
        "the member 127.0.0.1:{admin} is refused: it is 127.0.0.1:{admin}, an address of this Hostler"
    ))
    .await;
}

#[tokio::test]
async fn a_name_that_leads_to_hostler_itself_is_not_followed() {
    let Some(nats) = nats().start().await else { return };
    let site = site_on(&nats, "queue = { timeout = \"300ms\" }").await;
    let client = client(&nats).await;
    let admin = site.admin().port();
    let names = json!({ "host": "localhost", "port": admin, "uris": ["name.test"] });
    // Not in the notation of an address, but the resolver accepts it as one.
    let spelled = json!({ "host": "127.1", "port": admin, "uris": ["spelled.test"] });
    for (host, message) in [("name.test", names), ("spelled.test", spelled)] {
        let answer = eventually(format!("{host} to be known"), async || {
            register(&client, &message).await;
            Some(get(&site, host, "/status").await).filter(|answer| answer.status != 404)
        });
        answer.await.assert_status(502);
    }
    let lines = eventually("both lines", async || {
        let lines = site.access_lines();
        let lines: Vec<_> = lines.into_iter().filter(|line| line["refusal"] == "unreachable").collect();
        (lines.len() >= 2).then_some(lines)
    });
    let details = lines.await;
    let is_named =
        |line: &Value| line["detail"].as_str().unwrap().contains("an address of this Hostler itself");
    assert!(details.iter().all(is_named), "{details:?}");
}

#[tokio::test]
async fn a_registration_cannot_take_paths_of_a_configured_route() {
    let Some(nats) = nats().start().await else { return };
    let (ours, theirs) =
        (upstream().script(|_| ok("ours")).start().await, upstream().script(|_| ok("theirs")).start().await);
    let config = |path: &str| {
        format!(
            "routes = [{{ match = \"a.test{path}\", pool = \"app\" }}]\npools.app.members = [\"{}\"]\n\
             registrar = {{ nats = \"{}\", start_delay = \"0s\" }}",
            ours.address(),
            nats.url()
        )
    };
    let site = site(&config("/*")).start().await;
    let client = client(&nats).await;
    let uris = ["a.test", "a.test/deep", "*.test", "b.test"];
    serves(&site, &client, &registration(&theirs, &uris), "b.test").await;
    get(&site, "a.test", "/deep/1").await.assert_ok("ours");
    get(&site, "c.test", "/deep/1").await.assert_ok("theirs");
    site.says("route a.test/deep is not served: a configured route of this host has its paths").await;
    assert_eq!(site.status().await["registrar"]["not_served"], 2);
    let listed: Value =
        serde_json::from_str(&site.command(&["routes", "--json"]).await.assert_exit(0).stdout).unwrap();
    let deep = listed["routes"].as_array().unwrap().iter().find(|row| row["route"] == "a.test/deep").unwrap();
    assert!(deep["target"].as_str().unwrap().starts_with("not served"), "{deep}");
    // Paths beside the configured ones can be registered.
    site.rewrite(&config("/api/*"));
    site.command(&["reload"]).await.assert_exit(0);
    get(&site, "a.test", "/deep/1").await.assert_ok("theirs");
    get(&site, "a.test", "/api/1").await.assert_ok("ours");
    assert_eq!(site.status().await["registrar"]["not_served"], 0);
}

#[tokio::test]
async fn registrations_over_the_limits_are_refused_and_known_ones_stay() {
    let Some(nats) = nats().start().await else { return };
    let app = upstream().start().await;
    let limits = "max_uris = 3\nmax_routes = 4\nmax_message_size = \"2 KiB\"\n";
    let site = site_on(&nats, limits).await;
    let client = client(&nats).await;
    serves(&site, &client, &registration(&app, &["a.test", "b.test"]), "a.test").await;
    register(&client, &registration(&app, &["1.test", "2.test", "3.test", "4.test"])).await;
    let mut long = registration(&app, &["long.test"]);
    long["app"] = "x".repeat(3000).into();
    register(&client, &long).await;
    register(&client, &registration(&app, &["c.test", "d.test", "e.test"])).await;
    let refused = eventually("the refusals", async || {
        let refused = site.status().await["registrar"]["messages"]["refused"].clone();
        (refused["routes"] == 1).then_some(refused)
    });
    let refused = refused.await;
    assert_eq!(
        (&refused["uris"], &refused["message_size"], &refused["memory"]),
        (&1.into(), &1.into(), &0.into())
    );
    assert_eq!(site.status().await["registrar"]["routes"], 4);
    get(&site, "d.test", "/").await.assert_ok("ok");
    for host in ["1.test", "long.test", "e.test"] {
        get(&site, host, "/").await.assert_status(404);
    }
    register(&client, &registration(&app, &["a.test"])).await;
    get(&site, "a.test", "/").await.assert_ok("ok");
    for key in ["max_uris", "max_message_size", "max_routes"] {
        site.says(&format!("registrar.{key}")).await;
    }
}

#[tokio::test]
async fn idle_connections_of_many_registered_routes_make_room_for_others() {
    const FEW: u64 = 256;
    let Some(nats) = nats().start().await else { return };
    let app = upstream().start().await;
    let config = format!("registrar = {{ nats = '{}', start_delay = '0s' }}", nats.url());
    let site = site(&config).with_open_files(FEW, FEW).start().await;
    let client = client(&nats).await;
    let hosts: Vec<String> = (0..FEW).map(|number| format!("h{number}.test")).collect();
    let uris: Vec<&str> = hosts.iter().map(String::as_str).collect();
    serves(&site, &client, &registration(&app, &uris), &hosts[0]).await;
    for host in &hosts {
        get(&site, host, "/").await.assert_ok("ok");
    }
}

#[tokio::test]
async fn one_message_with_many_uris_uses_little_memory() {
    let Some(nats) = nats().start().await else { return };
    let app = upstream().start().await;
    let site = site_on(&nats, "").await;
    let client = client(&nats).await;
    serves(&site, &client, &registration(&app, &["a.test"]), "a.test").await;
    // As many as a message of the largest size holds.
    let uris: Vec<String> = (0..60_000).map(|n| format!("h{n}.test")).collect();
    let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
    register(&client, &registration(&app, &uris)).await;
    eventually("it to be refused", async || {
        (site.status().await["registrar"]["messages"]["refused"]["message_size"] == 1).then_some(())
    })
    .await;
    assert_eq!(site.status().await["registrar"]["routes"], 1);
    // The same holds for the end of registrations: as many URIs keep the control thread as busy.
    let too_long = [&uris[..], &["a.test"][..]].concat();
    let too_many = [&uris[..1000], &["a.test"][..]].concat();
    for uris in [&too_long, &too_many] {
        say(&client, "router.unregister", &registration(&app, uris)).await;
    }
    eventually("both to be refused", async || {
        let refused = site.status().await["registrar"]["messages"]["refused"].clone();
        (refused["message_size"] == 2 && refused["uris"] == 1).then_some(())
    })
    .await;
    get(&site, "a.test", "/").await.assert_ok("ok");
}

#[tokio::test]
async fn routes_that_come_and_go_at_once_do_not_fill_the_memory() {
    let Some(nats) = nats().start().await else { return };
    let app = upstream().start().await;
    let site = site_on(&nats, "keep_empty = \"0s\"").await;
    let client = client(&nats).await;
    serves(&site, &client, &registration(&app, &["a.test"]), "a.test").await;
    let memory = async || site.status().await["memory"].as_u64().unwrap();
    let before = memory().await;
    // All of them at once would need more than 150 MiB.
    for round in 0..40 {
        let uris: Vec<String> = (0..1000).map(|n| format!("h{n}.round-{round}.test")).collect();
        let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
        let message = registration(&app, &uris);
        register(&client, &message).await;
        say(&client, "router.unregister", &message).await;
    }
    eventually("all of them to be removed", async || {
        (site.status().await["registrar"]["messages"]["unregistered"] == 40).then_some(())
    })
    .await;
    let after = memory().await;
    assert!(after < before + (64 << 20), "{before} bytes became {after}");
    get(&site, "a.test", "/").await.assert_ok("ok");
}

#[tokio::test]
async fn a_request_at_a_silent_member_is_answered_by_another() {
    let Some(nats) = nats().start().await else { return };
    let silent = upstream().script(|_| [vec![Step::Hold], ok("silent")].concat()).start().await;
    let other = upstream().script(|_| ok("other")).start().await;
    let keys = "request_timeout = \"16s\"\nregister_interval = \"1s\"\nstale_threshold = \"2s\"\nprune_interval = \"500ms\"";
    let site = site_on(&nats, keys).await;
    let client = client(&nats).await;
    let (first, second) = (registration(&silent, &["a.test"]), registration(&other, &["a.test"]));
    eventually("both to be known", async || {
        register(&client, &first).await;
        register(&client, &second).await;
        (site.status().await["registrar"]["members"] == 2).then_some(())
    })
    .await;
    let mut waiting = site.connect().await;
    // Both are asked in turn: one of two requests goes to the silent one.
    let mut waiting_too = site.connect().await;
    waiting.send("GET /1 HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    waiting_too.send("GET /2 HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let speaking = {
        let (client, second) = (client.clone(), second.clone());
        let mut pace = tokio::time::interval(Duration::from_secs(1));
        tokio::spawn(async move {
            loop {
                pace.tick().await;
                register(&client, &second).await;
            }
        })
    };
    waiting.answer().await.assert_ok("other");
    waiting_too.answer().await.assert_ok("other");
    assert_eq!(silent.requests().len(), 1, "it had one of the two");
    speaking.abort();
    silent.release_all();
}

/// The configuration in the page on routers, with passwords of the test.
fn nats_config() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/router.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("```nats\n").expect("the page has a configuration of nats-server");
    rest.split_once("```").unwrap().0.to_owned()
}

#[tokio::test]
async fn with_the_nats_permissions_of_the_guide_only_permitted_users_register() {
    let Some(nats) = nats().config(&nats_config()).start().await else { return };
    let app = upstream().start().await;
    let url = nats.url();
    let config = format!(
        "[registrar]\nnats = \"{url}\"\nuser = \"edge\"\npassword = \"edge-password\"\nstart_delay = \"0s\"\n"
    );
    let site = site(&config).start().await;
    let known = |user: &str| ConnectOptions::with_user_and_password(user.into(), format!("{user}-password"));
    let app_host = known("app-host").connect(nats.url()).await.unwrap();
    let other = known("monitoring").connect(nats.url()).await.unwrap();
    assert!(async_nats::connect(nats.url()).await.is_err(), "a connection without a user name is refused");
    serves(&site, &app_host, &registration(&app, &["a.test"]), "a.test").await;
    register(&other, &registration(&app, &["b.test"])).await;
    // Earlier messages of other clients have arrived by then.
    serves(&site, &app_host, &registration(&app, &["c.test"]), "c.test").await;
    get(&site, "b.test", "/").await.assert_status(404);
}
