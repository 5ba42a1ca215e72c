//! What clients get at the moment when a member of a registered route leaves.

use hostler_testkit::{client as http_client, nats, ok, upstream, within};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::registrar::{answers, client, lists, registration, say, site_on};
use crate::tunnels::{GOING_AWAY, Member, tunnel};

#[tokio::test]
async fn a_route_that_loses_its_last_member_gives_way_without_a_refusal() {
    let Some(nats) = nats().start().await else { return };
    let (first, second) = (upstream().start().await, upstream().script(|_| ok("second")).start().await);
    for (config, other, route) in [
        ("", "a.test", "a.test/api"),
        ("keep_empty = \"0s\"", "a.test", "a.test/api"),
        ("keep_empty = \"0s\"", "*.test", "a.test"),
    ] {
        let site = site_on(&nats, config).await;
        let client = client(&nats).await;
        say(&client, "router.register", &registration(&second, &[other])).await;
        for _ in 0..3 {
            say(&client, "router.register", &registration(&first, &[route])).await;
            answers(&site, "a.test", "/api/1", "ok").await;
            let mut visitor = http_client(site.address()).await;
            say(&client, "router.unregister", &registration(&first, &[route])).await;
            within("the other route", async {
                let mut refusals = 0;
                loop {
                    visitor.send("GET /api/1 HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
                    let answer = visitor.answer().await;
                    if answer.body == b"second" {
                        break;
                    }
                    // Only a request that had found the route before it lost its member is refused.
                    refusals += usize::from(answer.status != 200);
                    assert!(refusals <= 1, "{}", answer.text());
                }
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_member_that_unregisters_ends_the_tunnels_of_its_earlier_registrations_too() {
    let Some(nats) = nats().start().await else { return };
    let (site, member) = (site_on(&nats, "prune_interval = \"100ms\"").await, Member::start().await);
    let (client, port) = (client(&nats).await, member.0.local_addr().unwrap().port());
    let named =
        |id| json!({ "host": "127.0.0.1", "port": port, "uris": ["a.test"], "private_instance_id": id });
    let mut tunnels = Vec::new();
    // route-registrar has another id after each of its restarts.
    for id in ["first", "second", "third"] {
        say(&client, "router.register", &named(id)).await;
        lists(&site, "the registration", |routes| routes["a.test"][0]["private_instance_id"] == id).await;
        tunnels.push(tunnel(&site, &member, "websocket").await);
    }
    let mut brief = named("third");
    brief["stale_threshold_in_seconds"] = json!(1);
    say(&client, "router.register", &brief).await;
    lists(&site, "the member to be pruned", |routes| routes["a.test"] == json!([])).await;
    for (visitor, end) in &mut tunnels {
        end.send([0x82, 1, b'x']).await;
        assert_eq!(visitor.read_exactly(3).await, [0x82, 1, b'x'], "it is open");
    }
    // Only its client had lost NATS.
    say(&client, "router.register", &named("third")).await;
    say(&client, "router.unregister", &named("third")).await;
    for (visitor, _end) in &mut tunnels {
        assert_eq!(visitor.read_exactly(4).await, GOING_AWAY);
    }
}

#[tokio::test]
async fn a_member_that_unregisters_after_it_was_pruned_ends_its_tunnels_too() {
    let Some(nats) = nats().start().await else { return };
    let client = client(&nats).await;
    for config in ["", "keep_empty = \"0s\""] {
        let site = site_on(&nats, &format!("prune_interval = \"100ms\"\n{config}")).await;
        let member = Member::start().await;
        let port = member.0.local_addr().unwrap().port();
        let mut named = json!({ "host": "127.0.0.1", "port": port, "uris": ["a.test"] });
        say(&client, "router.register", &named).await;
        lists(&site, "the registration", |routes| routes["a.test"][0].is_object()).await;
        let (mut visitor, _end) = tunnel(&site, &member, "websocket").await;
        named["stale_threshold_in_seconds"] = json!(1);
        say(&client, "router.register", &named).await;
        lists(&site, "the member to be pruned", |routes| !routes["a.test"][0].is_object()).await;
        say(&client, "router.unregister", &named).await;
        assert_eq!(visitor.read_exactly(4).await, GOING_AWAY);
    }
}

#[tokio::test]
async fn an_idle_connection_of_an_earlier_registration_is_closed_with_its_member_although_a_tunnel_is_open() {
    let Some(nats) = nats().start().await else { return };
    let (site, member) = (site_on(&nats, "").await, Member::start().await);
    let (client, port) = (client(&nats).await, member.0.local_addr().unwrap().port());
    let register = async |id: &str| {
        let named =
            json!({ "host": "127.0.0.1", "port": port, "uris": ["a.test"], "private_instance_id": id });
        say(&client, "router.register", &named).await;
        lists(&site, "the registration", |routes| routes["a.test"][0]["private_instance_id"] == id).await;
    };
    register("first").await;
    let _tunnel = tunnel(&site, &member, "websocket").await;
    let mut visitor = http_client(site.address()).await;
    visitor.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut idle = member.accept().await;
    idle.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    visitor.answer().await.assert_ok("ok");
    register("second").await;
    idle.stream.shutdown().await.unwrap();
    let end = within("Hostler to close it, too", idle.stream.read(&mut [0; 1])).await;
    assert_eq!(end.unwrap(), 0);
}

#[tokio::test]
async fn a_request_for_an_instance_that_cannot_be_reached_is_told_so_each_time() {
    let Some(nats) = nats().start().await else { return };
    let app = upstream().start().await;
    let site = site_on(&nats, "").await;
    let client = client(&nats).await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let guid = "3f2b8c1e-8a44-4f0e-9d56-0c1d2e3f4a5b";
    let dead = json!({
        "host": "127.0.0.1", "port": port, "uris": ["a.test"], "app": guid, "private_instance_index": "0",
    });
    say(&client, "router.register", &dead).await;
    say(&client, "router.register", &registration(&app, &["a.test"])).await;
    lists(&site, "both", |routes| routes["a.test"][1].is_object()).await;
    let ask = format!("GET / HTTP/1.1\r\nHost: a.test\r\nX-CF-App-Instance: {guid}:0\r\n\r\n");
    for _ in 0..3 {
        let answer = site.send(ask.as_str()).await;
        answer.assert_status(502);
        let error = answer.field("x-cf-routererror").unwrap();
        assert!(error.starts_with("endpoint_failure (") && error != "endpoint_failure (EOF)", "{error}");
    }
}
