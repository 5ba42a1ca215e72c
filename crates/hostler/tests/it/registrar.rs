//! Registered routes over a real NATS server: served at once, removed when silent, kept while NATS is away.

use std::time::Duration;

use async_nats::{Client, ConnectOptions, Subscriber};
use futures_util::StreamExt;
use hostler_testkit::{
    NatsServer, ReceivedAnswer, Site, Upstream, authority, eventually, nats, ok, upstream, within,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::site;

/// A site with a registrar, and a NATS client that reads all messages from now on.
pub(super) async fn site_on(nats: &NatsServer, config: &str) -> Site {
    let url = nats.url();
    let ear = client(nats).await;
    let mut starts = ear.subscribe("router.start").await.unwrap();
    let mut echo = ear.subscribe("echo").await.unwrap();
    say(&ear, "echo", &json!("the server has taken both")).await;
    heard(&mut echo).await;
    let site = site(&format!("[registrar]\nnats = \"{url}\"\nstart_delay = \"0s\"\n{config}")).start().await;
    // A connection is not enough: the server handles the subscription a moment later, but before this message.
    heard(&mut starts).await;
    assert_eq!(site.status().await["registrar"]["connected"], true);
    site
}

/// A NATS client of the test.
pub(super) async fn client(nats: &NatsServer) -> Client {
    async_nats::connect(nats.url()).await.unwrap()
}

pub(super) async fn say(client: &Client, subject: &'static str, message: &Value) {
    client.publish(subject, message.to_string().into()).await.unwrap();
    client.flush().await.unwrap();
}

/// The next message.
async fn heard(subscriber: &mut Subscriber) -> Value {
    let message = within("a message", subscriber.next()).await.unwrap();
    serde_json::from_slice(&message.payload).unwrap()
}

/// A recording of a real client: subjects and payloads in order.
fn captured(log: &str) -> impl Iterator<Item = (String, String)> {
    log.lines().filter_map(|line| {
        let (_time, rest) = line.split_once(' ')?;
        let (subject, payload) = rest.split_once("  ")?;
        matches!(subject, "router.register" | "router.unregister").then(|| (subject.into(), payload.into()))
    })
}

async fn replay(client: &Client, messages: impl IntoIterator<Item = (String, String)>) {
    for (subject, payload) in messages {
        client.publish(subject, payload.into()).await.unwrap();
    }
    client.flush().await.unwrap();
}

/// Waits until gorouter's `/routes` is as expected.
pub(super) async fn lists(site: &Site, what: &str, expected: impl Fn(&Value) -> bool) -> Value {
    eventually(what, async || {
        let routes = site.ask_admin("/routes").await.assert_status(200).json();
        expected(&routes).then_some(routes)
    })
    .await
}

/// A registration of an upstream for these URIs.
pub(super) fn registration(upstream: &Upstream, uris: &[&str]) -> Value {
    let (host, port) = upstream.address().trim_start_matches("https://").rsplit_once(':').unwrap();
    json!({ "host": host, "port": port.parse::<u16>().unwrap(), "uris": uris })
}

pub(super) async fn get(site: &Site, host: &str, path: &str) -> ReceivedAnswer {
    site.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await
}

pub(super) async fn answers(site: &Site, host: &str, path: &str, expected: &str) {
    eventually(&format!("{host}{path} to answer {expected:?}"), async || {
        let answer = get(site, host, path).await;
        (answer.status == 200 && answer.body == expected.as_bytes()).then_some(())
    })
    .await;
}

async fn refuses(site: &Site, host: &str, status: u16) {
    eventually(&format!("{host} to be refused with {status}"), async || {
        (get(site, host, "/").await.status == status).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_route_is_served_from_its_registration_on() {
    let Some(nats) = nats().start().await else { return };
    let app = upstream().script(|seen| ok(seen.target())).start().await;
    let site = site_on(&nats, "").await;
    let client = client(&nats).await;
    get(&site, "app.example.test", "/x").await.assert_status(404);
    let uris = ["App.example.test", "*.wild.example.test", "path.example.test/api"];
    say(&client, "router.register", &registration(&app, &uris)).await;
    answers(&site, "app.example.test:8080", "/x", "/x").await;
    answers(&site, "a.b.wild.example.test", "/", "/").await;
    answers(&site, "path.example.test", "/api/1", "/api/1").await;
    get(&site, "path.example.test", "/apix").await.assert_status(404);
    get(&site, "wild.example.test", "/").await.assert_status(404);
}

#[tokio::test]
async fn a_listed_route_is_served() {
    let Some(nats) = nats().start().await else { return };
    let app = upstream().script(|_| ok("here")).start().await;
    let site = site_on(&nats, "").await;
    let client = client(&nats).await;
    for number in 0..20 {
        let host = format!("app{number}.example.test");
        say(&client, "router.register", &registration(&app, &[&host])).await;
        lists(&site, "the host", |routes| routes[&host].is_array()).await;
        get(&site, &host, "/").await.assert_status(200);
    }
}

#[tokio::test]
async fn all_messages_of_route_registrar_are_understood() {
    let Some(nats) = nats().start().await else { return };
    let site = site_on(&nats, "").await;
    let client = client(&nats).await;
    let said: Vec<_> = captured(include_str!("captured/route-registrar-messages.log")).collect();
    let (life, end) = said.split_at(said.len() - 3);
    replay(&client, life.to_vec()).await;
    let routes = lists(&site, "four routes", |routes| {
        // The last message before the end: the checked member is back.
        routes.as_object().unwrap().len() == 4 && routes["checked.example.test"][0].is_object()
    })
    .await;
    let id = "a762e11d-77d1-4667-5eb5-c8d12ea46044";
    let of_app = json!([{
        "address": "127.0.0.1:3000", "availability_zone": "z1", "protocol": "http1", "tls": false, "ttl": 120,
        "tags": { "component": "node-app", "source_id": "s1" }, "private_instance_id": id,
        "load_balancing_algorithm": "least-connection",
    }]);
    assert_eq!(routes["app.example.test"], of_app);
    assert_eq!(routes["*.wild.example.test/api"], of_app);
    let of_tls = json!([{
        "address": "127.0.0.1:3443", "availability_zone": "z1", "protocol": "http2", "tls": true, "ttl": 120, "tags": null,
        "private_instance_id": id, "server_cert_domain_san": "app.internal",
    }]);
    assert_eq!(routes["tls.example.test"], of_tls);
    let shown = site.command(&["routes"]).await.assert_exit(0).stdout.clone();
    assert!(shown.contains("*.wild.example.test/api  registered  127.0.0.1:3000"), "{shown}");
    assert!(shown.contains("none  tls, http2, zone z1"), "{shown}");
    replay(&client, end.to_vec()).await;
    lists(&site, "no member", |routes| {
        routes.as_object().unwrap().values().all(|members| *members == json!([]))
    })
    .await;
}

#[tokio::test]
async fn registrations_recorded_for_gorouter_give_the_same_routes() {
    let Some(nats) = nats().start().await else { return };
    let site = site_on(&nats, "stale_threshold = \"20s\"").await;
    let client = client(&nats).await;
    replay(&client, captured(include_str!("captured/gorouter-nats-messages.log"))).await;
    let routes = lists(&site, "the last instance", |routes| {
        routes["app.example.test"][0]["private_instance_id"] == "inst-A2"
    })
    .await;
    let mut names: Vec<_> = routes.as_object().unwrap().keys().cloned().collect();
    names.sort();
    // Neither the one with an unsafe route service nor the one that is not JSON.
    let expected = [
        "*.wild.example.test",
        "app.example.test",
        "dead.example.test",
        "path.example.test/api",
        "retry.example.test",
        "rs2.example.test",
    ];
    assert_eq!(names, expected);
    assert_eq!(routes["dead.example.test"], json!([]));
    assert_eq!(routes["retry.example.test"].as_array().unwrap().len(), 2);
    assert_eq!(routes["rs2.example.test"][0]["route_service_url"], "https://x");
    assert_eq!(routes["app.example.test"][0]["ttl"], 20);
    assert_eq!(site.status().await["registrar"]["messages"]["invalid"], 2);
    let dropped = "a message to router.register is dropped: route_service_url does not begin with https";
    let line = site.says(dropped).await;
    assert!(line.contains("rs.example.test"), "it shows which message: {line}");
}

#[tokio::test]
async fn router_start_is_sent_at_the_start_on_request_and_after_a_reconnect() {
    let Some(mut nats) = nats().start().await else { return };
    // NATS is up before Hostler reconnects, so the client hears the message.
    let eager = ConnectOptions::new().reconnect_delay_callback(|_| Duration::from_millis(1));
    let client = eager.connect(nats.url()).await.unwrap();
    let mut starts = client.subscribe("router.start").await.unwrap();
    client.flush().await.unwrap();
    let site = site_on(&nats, "register_interval = \"1s\"\nstale_threshold = \"4s\"").await;
    let start = heard(&mut starts).await;
    assert_eq!(start["minimumRegisterIntervalInSeconds"], 1);
    assert_eq!(start["pruneThresholdInSeconds"], 4);
    assert_eq!(start["hosts"], json!(["127.0.0.1"]));
    // Diego greets with an empty payload, tools with an empty object.
    let mut answers = client.subscribe("_INBOX.x").await.unwrap();
    for greeting in ["", "{}"] {
        client.publish_with_reply("router.greet", "_INBOX.x", greeting.into()).await.unwrap();
        client.flush().await.unwrap();
        assert_eq!(heard(&mut answers).await, start);
    }
    // A greeting without a reply subject, and messages of other routers, are ignored.
    replay(&client, [("router.greet".into(), String::new()), ("router.start".into(), start.to_string())])
        .await;
    assert_eq!(heard(&mut starts).await, start);
    // If Hostler was first, it says it again later.
    eventually("it to say again that it is there", async || {
        nats.stop();
        nats.start_again().await;
        let said = timeout(Duration::from_secs(3), starts.next()).await.ok()??;
        (serde_json::from_slice::<Value>(&said.payload).unwrap() == start).then_some(())
    })
    .await;
    assert_eq!(site.status().await["registrar"]["messages"]["invalid"], 0);
}

#[tokio::test]
async fn a_silent_member_is_pruned_and_an_unregistered_one_leaves_at_once() {
    let Some(nats) = nats().start().await else { return };
    let app = upstream().start().await;
    let config = "prune_interval = \"100ms\"\nkeep_empty = \"0s\"";
    let site = site_on(&nats, config).await;
    let client = client(&nats).await;
    let mut brief = registration(&app, &["brief.test"]);
    brief["stale_threshold_in_seconds"] = json!(1);
    say(&client, "router.register", &registration(&app, &["long.test"])).await;
    eventually("brief.test to be served", async || {
        say(&client, "router.register", &brief).await;
        (get(&site, "brief.test", "/").await.status == 200).then_some(())
    })
    .await;
    refuses(&site, "brief.test", 404).await;
    site.says("1 member is removed, because it did not register again in time").await;
    get(&site, "long.test", "/").await.assert_ok("ok");
    say(&client, "router.unregister", &registration(&app, &["long.test"])).await;
    refuses(&site, "long.test", 404).await;
}

#[tokio::test]
async fn a_route_that_comes_back_has_no_options_of_its_former_life() {
    let Some(nats) = nats().start().await else { return };
    let app = upstream().start().await;
    let site = site_on(&nats, "prune_interval = \"50ms\"\nkeep_empty = \"0s\"").await;
    let client = client(&nats).await;
    let plain = registration(&app, &["a.test"]);
    let mut bound = plain.clone();
    bound["route_service_url"] = json!("https://service.test");
    say(&client, "router.register", &bound).await;
    refuses(&site, "a.test", 502).await;
    say(&client, "router.unregister", &bound).await;
    refuses(&site, "a.test", 404).await;
    say(&client, "router.register", &plain).await;
    answers(&site, "a.test", "/", "ok").await;
}

#[tokio::test]
async fn no_route_is_lost_while_nats_is_away() {
    let Some(mut nats) = nats().start().await else { return };
    let app = upstream().start().await;
    let config = "register_interval = \"1s\"\nstale_threshold = \"3s\"\nprune_interval = \"50ms\"";
    let site = site_on(&nats, config).await;
    let client = client(&nats).await;
    eventually("a.test to be served", async || {
        say(&client, "router.register", &registration(&app, &["a.test"])).await;
        (get(&site, "a.test", "/").await.status == 200).then_some(())
    })
    .await;
    nats.stop();
    eventually("the outage to be noticed", async || {
        (site.status().await["registrar"]["pruning_suspended"] == true).then_some(())
    })
    .await;
    get(&site, "a.test", "/").await.assert_ok("ok");
    assert_eq!(site.status().await["registrar"]["pruned"], 0);
    nats.start_again().await;
    // From here on its time starts again, and then it is removed.
    refuses(&site, "a.test", 503).await;
    site.says("NATS is back").await;
    site.says("did not register again").await;
    let lines = site.lines();
    let back = lines.iter().rposition(|line| line.contains("NATS is back")).unwrap();
    let silent = lines.iter().position(|line| line.contains("did not register again")).unwrap();
    assert!(back < silent, "{lines:?}");
}

#[tokio::test]
async fn a_configured_route_wins_unless_longer_registered_paths_are_allowed() {
    let Some(nats) = nats().start().await else { return };
    let (ours, theirs) =
        (upstream().script(|_| ok("ours")).start().await, upstream().script(|_| ok("theirs")).start().await);
    let (url, member) = (nats.url(), ours.address());
    let config = format!(
        "routes = [{{ match = \"a.test/*\", pool = \"app\" }}]\npools.app.members = [\"{member}\"]\n\
         registrar = {{ nats = \"{url}\", start_delay = \"0s\", allow_longer_paths = true }}"
    );
    let site = site(&config).start().await;
    let client = client(&nats).await;
    let uris = ["a.test", "a.test/deep", "b.test"];
    eventually("b.test to be served", async || {
        say(&client, "router.register", &registration(&theirs, &uris)).await;
        (get(&site, "b.test", "/").await.status == 200).then_some(())
    })
    .await;
    get(&site, "a.test", "/").await.assert_ok("ours");
    get(&site, "a.test", "/deep/1").await.assert_ok("theirs");
    say(&client, "router.unregister", &registration(&theirs, &["a.test/deep"])).await;
    answers(&site, "a.test", "/deep/1", "ours").await;
    let listed = site.command(&["routes", "--json"]).await.assert_exit(0).stdout.clone();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["routes"][0]["route"], "a.test");
    assert_eq!(listed["routes"][0]["target"], "pool app");
    assert_eq!(listed["routes"][0]["members"][0]["address"], ours.address());
    // The configuration can change under registered routes.
    site.rewrite(&config.replace("a.test/*", "c.test/*"));
    site.command(&["reload"]).await.assert_exit(0);
    get(&site, "c.test", "/").await.assert_ok("ours");
    get(&site, "a.test", "/").await.assert_ok("theirs");
    get(&site, "b.test", "/").await.assert_ok("theirs");
}

#[tokio::test]
async fn a_route_without_members_is_refused_until_a_member_registers() {
    let Some(nats) = nats().start().await else { return };
    let (first, second) = (upstream().start().await, upstream().script(|_| ok("second")).start().await);
    let site = site_on(&nats, "").await;
    let client = client(&nats).await;
    say(&client, "router.register", &registration(&first, &["a.test", "a.test/deep", "*.test"])).await;
    answers(&site, "a.test", "/", "ok").await;
    say(&client, "router.unregister", &registration(&first, &["a.test"])).await;
    refuses(&site, "a.test", 503).await;
    get(&site, "a.test", "/").await.assert_field("x-cf-routererror", "no_endpoints");
    get(&site, "a.test", "/deep").await.assert_ok("ok");
    say(&client, "router.register", &registration(&second, &["a.test"])).await;
    answers(&site, "a.test", "/", "second").await;
    // A route without members does not hide another route.
    say(&client, "router.unregister", &registration(&first, &["a.test/deep"])).await;
    answers(&site, "a.test", "/deep", "second").await;
}

#[tokio::test]
async fn a_member_with_tls_must_have_the_registered_identity() {
    let Some(nats) = nats().start().await else { return };
    let trust = authority();
    let app = upstream().over_tls(trust.vouch_for(&["app.internal"]).for_server(None)).start().await;
    let url = nats.url();
    let plan = site(&format!(
        "[registrar]\nnats = \"{url}\"\nstart_delay = \"0s\"\nqueue = {{ timeout = \"200ms\" }}\n\
         member_tls = {{ ca = \"ca.pem\" }}\n"
    ));
    std::fs::write(plan.folder().join("ca.pem"), trust.cert()).unwrap();
    let site = plan.start().await;
    let client = client(&nats).await;
    let over_tls = |uri: &str, san: &str| {
        let mut message = registration(&app, &[uri]);
        message["tls_port"] = message["port"].take();
        message["server_cert_domain_san"] = json!(san);
        message
    };
    eventually("the right one to be served", async || {
        say(&client, "router.register", &over_tls("right.test", "app.internal")).await;
        (get(&site, "right.test", "/").await.status == 200).then_some(())
    })
    .await;
    say(&client, "router.register", &over_tls("wrong.test", "other.internal")).await;
    lists(&site, "the wrong one", |routes| routes["wrong.test"][0].is_object()).await;
    let refused = get(&site, "wrong.test", "/").await;
    assert!(refused.status >= 500, "{refused:?}");
    // A member with TLS never becomes stale.
    lists(&site, "the wrong one to be taken out", |routes| routes["wrong.test"] == json!([])).await;
    get(&site, "right.test", "/").await.assert_ok("ok");
}

#[tokio::test]
async fn a_successor_has_all_registrations_of_its_predecessor_at_once() {
    let Some(nats) = nats().start().await else { return };
    let app = upstream().start().await;
    let mut site = site_on(&nats, "").await;
    say(&client(&nats).await, "router.register", &registration(&app, &["a.test/a%20b", "*.b.test"])).await;
    answers(&site, "x.b.test", "/", "ok").await;
    site.rewrite(&format!("[registrar]\nnats = \"{}\"\nstart_delay = \"1h\"", nats.url()));
    site.command(&["upgrade"]).await.assert_exit(0);
    get(&site, "x.b.test", "/").await.assert_ok("ok");
    get(&site, "a.test", "/a%20b/c").await.assert_ok("ok");
    assert_eq!(site.exit().await, 0);
}
