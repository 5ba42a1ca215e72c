//! The announcement of pools to routers, over a real NATS server: when it starts and ends, and what it says.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use hostler_testkit::{NatsServer, Site, eventually, nats, ok, text, upstream, within};
use serde_json::{Value, json};

use crate::{in_front_of, site};

const ANNOUNCED: &str = "pools.app.announce = [\"shop.test\", \"*.shop.test/api\"]\n";

fn config(nats: &NatsServer) -> String {
    format!("registrar.nats = \"{}\"\n{ANNOUNCED}", nats.url())
}

/// A NATS client that reads the messages to routers.
async fn router(nats: &NatsServer) -> (Client, Subscriber) {
    let client = async_nats::connect(nats.url()).await.unwrap();
    let ear = client.subscribe("router.*").await.unwrap();
    client.flush().await.unwrap();
    (client, ear)
}

/// The next message of a subject.
async fn next(ear: &mut Subscriber, subject: &str) -> Value {
    let message = async {
        loop {
            let message = ear.next().await.unwrap();
            if message.subject.as_str() == subject {
                return message.payload;
            }
        }
    };
    serde_json::from_slice(&within(subject.to_owned(), message).await).unwrap()
}

fn address_in(message: &Value) -> SocketAddr {
    format!("{}:{}", message["host"].as_str().unwrap(), message["port"]).parse().unwrap()
}

/// The line number of a log line.
fn line_of(site: &Site, text: &str) -> usize {
    let lines = site.lines();
    lines.iter().position(|line| line.contains(text)).unwrap_or_else(|| panic!("no {text:?}: {lines:#?}"))
}

#[tokio::test]
async fn a_pool_is_registered_with_gorouter_and_unregistered_before_listeners_close() {
    let Some(nats) = nats().start().await else { return };
    let (_client, mut ear) = router(&nats).await;
    let app = upstream().start().await;
    let mut site = in_front_of(&app, &config(&nats)).await;

    let message = next(&mut ear, "router.register").await;
    assert_eq!(address_in(&message), site.address());
    assert_eq!(message["uris"], json!(["*.shop.test/api", "shop.test"]));
    assert_eq!(message["tags"], json!({ "component": "hostler", "pool": "app" }));
    assert_eq!(message["private_instance_id"].as_str().unwrap().len(), 36);

    site.terminate();
    let last = next(&mut ear, "router.unregister").await;
    assert_eq!((&last["uris"], address_in(&last)), (&message["uris"], site.address()));
    assert_eq!(site.exit().await, 0);
    assert!(line_of(&site, "unregistered") < line_of(&site, "stopping: no new connections"));
}

#[tokio::test]
async fn a_drain_unregisters_the_pool_while_requests_are_still_served() {
    let Some(nats) = nats().start().await else { return };
    let (_client, mut ear) = router(&nats).await;
    let app = upstream().start().await;
    let site = in_front_of(&app, &format!("{}server.drain_wait = \"1h\"\n", config(&nats))).await;
    next(&mut ear, "router.register").await;
    site.ask_to_drain();
    next(&mut ear, "router.unregister").await;
    site.get("/").await.assert_status(200);
}

#[tokio::test]
async fn a_starting_router_gets_registrations_at_once_and_sets_their_interval() {
    let Some(nats) = nats().start().await else { return };
    let (client, mut ear) = router(&nats).await;
    let app = upstream().start().await;
    let slow = format!(
        "{}\nregistrar.register_interval = \"60s\"\nregistrar.stale_threshold = \"60s\"",
        config(&nats)
    );
    let _site = in_front_of(&app, &slow).await;
    next(&mut ear, "router.register").await;

    client
        .publish("router.start", r#"{"id":"r","minimumRegisterIntervalInSeconds":1}"#.into())
        .await
        .unwrap();
    // The first message answers the start. The interval until the next one is a minute.
    for _ in 0..3 {
        next(&mut ear, "router.register").await;
    }
}

#[tokio::test]
async fn a_running_router_is_asked_for_its_interval() {
    let Some(nats) = nats().start().await else { return };
    let (client, mut ear) = router(&nats).await;
    let mut greetings = client.subscribe("router.greet").await.unwrap();
    client.flush().await.unwrap();
    let app = upstream().start().await;
    let slow = format!(
        "{}\nregistrar.register_interval = \"60s\"\nregistrar.stale_threshold = \"60s\"",
        config(&nats)
    );
    let _site = in_front_of(&app, &slow).await;

    let greeting = within("a greeting", greetings.next()).await.unwrap();
    let start = r#"{"id":"r","minimumRegisterIntervalInSeconds":1}"#;
    client.publish(greeting.reply.unwrap(), start.into()).await.unwrap();
    for _ in 0..4 {
        next(&mut ear, "router.register").await;
    }
}

#[tokio::test]
async fn a_returning_nats_server_gets_all_registrations_again() {
    let Some(mut nats) = nats().start().await else { return };
    let app = upstream().start().await;
    let quick = format!("{}\nregistrar.register_interval = \"1s\"", config(&nats));
    let site = in_front_of(&app, &quick).await;
    eventually("the announcement", async || {
        site.lines().iter().any(|line| line.contains(": announced")).then_some(())
    })
    .await;
    nats.stop();
    nats.start_again().await;
    let (_client, mut ear) = router(&nats).await;
    // The connection may be up again before this client has subscribed. Then the next message comes after the interval.
    let message = next(&mut ear, "router.register").await;
    assert_eq!(address_in(&message), site.address());
}

#[tokio::test]
async fn the_log_says_that_routers_do_not_hear_of_an_announcement_yet() {
    let Some(mut nats) = nats().start().await else { return };
    nats.stop();
    let app = upstream().start().await;
    let site = in_front_of(&app, &format!("registrar.start_delay = \"0s\"\n{}", config(&nats))).await;
    site.says("shop.test: announced; routers hear of it when NATS is connected").await;
    nats.start_again().await;
    site.says("nats: connected").await;
    site.terminate();
    let line = site.says(": unregistered").await;
    assert!(!line.contains("routers"), "{line}");
}

#[tokio::test]
async fn only_ready_pools_are_announced_and_a_reload_unregisters_removed_names() {
    let Some(nats) = nats().start().await else { return };
    let (_client, mut ear) = router(&nats).await;
    let app = upstream().start().await;
    let never = "pools.idle.command = [\"sleep\", \"1000\"]\npools.idle.workers = 1\npools.idle.announce = \"idle.test\"\n\
                 [[routes]]\nmatch = \"idle.test\"\npool = \"idle\"\n[[routes]]\nmatch = \"*\"\npool = \"app\"\n";
    let site = site(&format!("{}{never}", config(&nats))).with("app", &app).start().await;
    let message = next(&mut ear, "router.register").await;
    assert_eq!(message["tags"]["pool"], "app");
    assert!(!site.lines().iter().any(|line| line.contains("idle.test: announced")));

    let text = std::fs::read_to_string(site.folder().join("hostler.toml")).unwrap();
    site.write_file(&text.replace("\"shop.test\", ", ""));
    site.hang_up();
    let gone = next(&mut ear, "router.unregister").await;
    assert_eq!(gone["uris"], json!(["shop.test"]), "a reload takes back what is announced no more");
}

#[tokio::test]
async fn a_reload_unregisters_a_removed_pool_before_it_removes_its_route() {
    let Some(nats) = nats().start().await else { return };
    let (_client, mut ear) = router(&nats).await;
    let app = upstream().start().await;
    let members = format!("members = [\"{}\"]\n", app.address());
    let old = format!(
        "pools.old.{members}pools.old.announce = \"old.test\"\n[[routes]]\nmatch = \"old.test\"\npool = \"old\"\n"
    );
    let with = |more: &str| {
        let all = "[[routes]]\nmatch = \"*\"\npool = \"app\"\n";
        format!("{}pools.app.{members}{more}{all}", config(&nats))
    };
    let site = site(&with(&old)).start().await;
    site.says("old.test: announced").await;
    site.rewrite(&with(""));
    site.command(&["reload"]).await.assert_exit(0);
    let gone = next(&mut ear, "router.unregister").await;
    assert_eq!(gone["uris"], json!(["old.test"]));
    site.says("old.test: unregistered").await;
    site.says("reload: pool old: removed").await;
    assert!(line_of(&site, "old.test: unregistered") < line_of(&site, "reload: pool old: removed"));
    site.get("/").await.assert_status(200);
}

#[tokio::test]
async fn a_router_announces_no_pool_before_the_upgrade_after_which_it_accepts_no_routes() {
    let Some(nats) = nats().start().await else { return };
    let (client, mut ear) = router(&nats).await;
    let app = upstream().start().await;
    let accepting = format!(
        "routes = [{{ match = '*', pool = 'app' }}]\nregistrar = {{ nats = '{}', start_delay = '0s' }}\n",
        nats.url()
    );
    let site = in_front_of(&app, &accepting).await;
    let pool = format!("pools.app = {{ members = ['{}'], announce = 'shop.test' }}\n", app.address());
    site.rewrite(&format!("{accepting}{pool}"));
    let said = site.command(&["reload"]).await.assert_exit(0).stdout.clone();
    assert!(said.contains("registrar: not applied yet; run `hostler upgrade`"), "{said}");
    site.command(&["upgrade"]).await.assert_exit(0);
    let mut processes = BTreeSet::new();
    for _ in 0..3 {
        client.publish("router.start", "{}".into()).await.unwrap();
        let message = next(&mut ear, "router.register").await;
        processes.insert(message["private_instance_id"].to_string());
    }
    assert_eq!(processes.len(), 1, "only the new process has announced it");
}

#[tokio::test]
async fn a_pool_whose_members_are_all_unhealthy_is_unregistered_until_one_is_healthy() {
    let Some(nats) = nats().start().await else { return };
    let (_client, mut ear) = router(&nats).await;
    let health = Arc::new(AtomicBool::new(true));
    let seen = health.clone();
    let script = move || match seen.load(Ordering::Relaxed) {
        true => ok("fine"),
        false => text("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"),
    };
    let app = upstream().script(move |_| script()).start().await;
    let check = "pools.app.health_check = { path = '/up', interval = '50ms', timeout = '5s', unhealthy = 2, healthy = 2 }";
    let _site = in_front_of(&app, &format!("{}{check}\n", config(&nats))).await;
    let message = next(&mut ear, "router.register").await;
    health.store(false, Ordering::Relaxed);
    let gone = next(&mut ear, "router.unregister").await;
    assert_eq!((&gone["uris"], &gone["port"]), (&message["uris"], &message["port"]));
    health.store(true, Ordering::Relaxed);
    next(&mut ear, "router.register").await;
}

#[tokio::test]
async fn a_successor_unregisters_what_it_announces_no_more() {
    let Some(nats) = nats().start().await else { return };
    let (_client, mut ear) = router(&nats).await;
    let app = upstream().start().await;
    let site = in_front_of(&app, &config(&nats)).await;
    let message = next(&mut ear, "router.register").await;
    let text = std::fs::read_to_string(site.folder().join("hostler.toml")).unwrap();
    site.write_file(&text.replace("\"shop.test\", ", ""));
    site.command(&["upgrade"]).await.assert_exit(0);
    let gone = next(&mut ear, "router.unregister").await;
    assert_eq!(gone["uris"], json!(["shop.test"]));
    assert_eq!((&gone["host"], &gone["port"]), (&message["host"], &message["port"]));
}

#[tokio::test]
async fn a_successor_with_another_address_unregisters_the_old_one_after_it_has_registered_its_own() {
    let Some(nats) = nats().start().await else { return };
    let (_client, mut ear) = router(&nats).await;
    let app = upstream().start().await;
    let config = format!("registrar.advertise = \"old.internal:8443\"\n{}", config(&nats));
    let site = in_front_of(&app, &config).await;
    next(&mut ear, "router.register").await;
    let text = std::fs::read_to_string(site.folder().join("hostler.toml")).unwrap();
    site.write_file(&text.replace("old.internal", "new.internal"));
    site.command(&["upgrade"]).await.assert_exit(0);
    let come = async {
        loop {
            let message = next(&mut ear, "router.register").await;
            if message["host"] == "new.internal" {
                return;
            }
        }
    };
    within("the new address", come).await;
    let gone = next(&mut ear, "router.unregister").await;
    assert_eq!(gone["uris"], json!(["*.shop.test/api", "shop.test"]));
    assert_eq!((&gone["host"], &gone["port"]), (&json!("old.internal"), &json!(8443)));
}
