//! What happens to a request that no member answers: another member, or gorouter's words.

use std::pin::pin;

use hostler_dispatch::{Claim, EjectSettings, MemberPreference};
use hostler_testkit::eventually;
use tokio::time::timeout;

use super::*;

#[tokio::test]
async fn an_unknown_route_is_refused_with_gorouters_text() {
    let edge = edge(config::Platform::default());
    let got = edge.ask("GET /", "Host: nope.test\r\n", b"").await;
    got.assert(404, "404 Not Found: Requested route ('nope.test') does not exist.\n");
    assert_eq!(got.field("Cache-Control"), Some("no-cache, no-store"));
    assert_eq!(got.field("X-Content-Type-Options"), Some("nosniff"));
    for fields in ["", "Host: 127.0.0.1\r\n", "Host: 127.0.0.1:8080\r\n"] {
        let got = edge.ask("GET /", fields, b"").await;
        got.assert(400, "400 Bad Request: Request had empty Host header\n");
    }
    let over_ipv6 = |exchange: &mut Exchange| exchange.peer_ip = "::1".into();
    let got = edge.ask_as("GET /", "Host: [::1]:8080\r\n", b"", over_ipv6).await;
    got.assert(400, "400 Bad Request: Request had empty Host header\n");
    let got = edge.ask("GET /", &format!("Host: nope.test\r\nX-CF-App-Instance: {GUID}:0\r\n"), b"").await;
    assert_eq!(got.status, 400);
}

#[tokio::test]
async fn a_route_without_members_is_refused_at_once() {
    for (settings, compat) in [(config::Platform::default(), false), (gorouter(), true)] {
        let got = edge(settings).get("").await;
        got.assert(
            503,
            "503 Service Unavailable: Requested route ('app.test') has no available endpoints.\n",
        );
        assert_eq!(got.field("Cache-Control"), Some("public,max-age=2"));
        assert_eq!(got.field("X-Cf-Routererror"), Some("no_endpoints"));
        assert!(got.field("X-Vcap-Request-Id").is_some());
        assert_eq!(got.field("Retry-After"), (!compat).then_some("1"));
    }
}

#[tokio::test]
async fn a_route_that_is_bound_to_a_route_service_is_refused() {
    let edge = edge_with(config::Platform::default(), PoolSettings::default(), true);
    let got = edge.get("").await;
    got.assert(502, "502 Bad Gateway: Support for route services is disabled.\n");
    let got = edge.get("Connection: Upgrade\r\nUpgrade: websocket\r\n").await;
    assert_eq!((got.status, got.field("X-Cf-Routererror")), (503, Some("route_service_unsupported")));
}

#[tokio::test]
async fn an_unsent_request_goes_to_another_member_with_any_method() {
    for settings in [config::Platform::default(), gorouter()] {
        let edge = edge_with(settings, long_bench(), false);
        let (dead, b) = (no_upstream(), named("b").await);
        let gone = edge.pool.join(edge.endpoint(&dead, instance("dead", "0")), 10);
        let _b = edge.join(&b, instance("inst-B", "1"));
        let mut got = edge.ask("POST /x", "Host: app.test\r\nContent-Length: 3\r\n", b"abc").await;
        got.assert(200, "b");
        let registered = registered(&got.exchange).unwrap();
        assert_eq!((registered.failed_attempts, got.exchange.log_facts.attempts), (1, 2));
        assert_eq!(registered.instance.as_ref().unwrap().id, "inst-B");
        assert_eq!(
            seen(&b).head.all("X-CF-InstanceID"),
            ["inst-B"],
            "the fields for the other member are gone"
        );
        assert_eq!(*edge.failed.lock().unwrap(), [(gone.id(), MemberFault::Unfit)]);
        // If the body of the response had broken off, the first attempt would not be the reason.
        let instead = refused(&mut got.exchange, &Refusal::WorkerLost(String::new()));
        let error = instead.head.fields.get("X-Cf-Routererror");
        assert_eq!(error, Some(&b"endpoint_failure (EOF)"[..]));
    }
}

#[tokio::test]
async fn that_the_lookup_of_a_name_fails_says_not_that_the_member_is_gone() {
    let edge = edge_with(config::Platform::default(), long_bench(), false);
    let b = named("b").await;
    // For such a name no server is asked.
    let unfound = edge.pool.join(edge.endpoint("\0:1", instance("unfound", "0")), 10);
    let _b = edge.join(&b, instance("inst-B", "1"));
    edge.get("").await.assert(200, "b");
    assert_eq!(*edge.failed.lock().unwrap(), [(unfound.id(), MemberFault::Unfound)]);
}

#[tokio::test]
async fn with_compat_no_member_is_asked_twice_and_no_request_waits() {
    let pool = PoolSettings { queue_limit: 0, ..long_bench() };
    let edge = edge_with(gorouter(), pool, false);
    let dead = no_upstream();
    let _dead = edge.pool.join(edge.endpoint(&dead, instance("dead", "0")), 10);
    for _ in 0..3 {
        let got = edge.get("").await;
        got.assert(502, "502 Bad Gateway: Registered endpoint failed to handle the request.\n");
        let error = format!("endpoint_failure (dial tcp {dead}: connect: connection refused)");
        assert_eq!(got.field("X-Cf-Routererror"), Some(&*error));
        assert_eq!(
            got.exchange.log_facts.attempts, 1,
            "the unreachable one is tried again, but once a request"
        );
    }
}

#[tokio::test]
async fn without_compat_a_refusal_names_no_member() {
    let pool = PoolSettings { queue_limit: 0, ..long_bench() };
    let edge = edge_with(config::Platform::default(), pool, false);
    let held = upstream().holds_requests().start().await;
    let _full = edge.pool.join(edge.endpoint(held.address(), instance("a", "0")), 1);
    let (first, second) = tokio::join!(edge.get(""), async {
        held.has_seen(1).await;
        let second = edge.get("").await;
        held.release_all();
        second
    });
    first.assert(200, "/x");
    second.assert(
        503,
        "503 Service Unavailable: Requested route ('app.test') has reached the connection limit.\n",
    );
    assert_eq!(second.field("X-Cf-Routererror"), Some("Connection Limit Reached"));
}

#[tokio::test]
async fn a_request_that_waits_when_the_last_member_leaves_is_refused_at_once() {
    let edge = edge(config::Platform::default());
    let held = upstream().holds_requests().start().await;
    let member = edge.pool.join(edge.endpoint(held.address(), instance("a", "0")), 1);
    let leaving = async {
        eventually("a request to wait", async || (edge.pool.snapshot().queue_length == 1).then_some(()))
            .await;
        drop(member);
    };
    let (first, second) = tokio::join!(edge.get(""), async {
        held.has_seen(1).await;
        let (second, ()) = tokio::join!(edge.get(""), leaving);
        held.release_all();
        second
    });
    first.assert(200, "/x");
    assert_eq!((second.status, second.field("X-Cf-Routererror")), (503, Some("no_endpoints")));
}

#[tokio::test]
async fn an_interrupted_get_goes_to_another_member_and_a_post_does_not() {
    let hang_up = || upstream().does(vec![Step::Close]);
    for settings in [config::Platform::default(), gorouter()] {
        let edge = edge_with(settings, long_bench(), false);
        let (a, b) = (hang_up().start().await, named("b").await);
        let _joined = [edge.join(&a, instance("inst-A", "0")), edge.join(&b, instance("inst-B", "1"))];
        edge.get("").await.assert(200, "b");
        let post = format!("Host: app.test\r\nContent-Length: 1\r\nX-CF-App-Instance: {GUID}:0\r\n");
        let got = until_tried(&edge, &post).await;
        assert_eq!((got.status, got.field("X-Cf-Routererror")), (502, Some("endpoint_failure (EOF)")));
    }
}

#[tokio::test]
async fn the_last_attempt_of_a_request_waits_for_a_late_answer_until_the_deadline() {
    let settings = config::Platform { max_attempts: Some(config::Count(1)), ..Default::default() };
    let moment = Duration::from_millis(1);
    let eject = EjectSettings { failures: 1, min: moment, max: moment, share: 50 };
    let edge = edge_with(settings, PoolSettings { eject, ..PoolSettings::default() }, false);
    let (slow, b) = (upstream().holds_requests().start().await, named("b").await);
    let members = [edge.join(&slow, instance("slow", "0")), edge.join(&b, instance("inst-B", "1"))];
    // A request has timed out there. Until it responds, a request is late there after a second.
    let preference = MemberPreference { only: Some(members[0].id()), ..MemberPreference::default() };
    let lease = edge.pool.acquire(Claim { preference, ..Claim::default() }).await.unwrap();
    assert!(lease.strike().is_some(), "it is ejected");
    drop(lease);
    eventually("it to get requests again", async || (edge.pool.reachable_members() == 2).then_some(())).await;
    let aimed = format!("X-CF-App-Instance: {GUID}:0\r\n");
    let mut asking = pin!(edge.get(&aimed));
    assert!(timeout(Duration::from_secs(3), asking.as_mut()).await.is_err(), "it waits on");
    slow.release_all();
    asking.await.assert(200, "/x");
}

/// A POST, once the member's suspense is over.
async fn until_tried(edge: &Edge, fields: &str) -> Got {
    eventually("the member to be tried again", async || {
        let got = edge.ask("POST /x", fields, b"1").await;
        (got.status != 503).then_some(got)
    })
    .await
}

#[tokio::test]
async fn a_health_check_is_answered_for_any_host_until_the_end_is_announced() {
    let edge = edge(config::Platform::default());
    let fields = "Host: app.test\r\nUser-Agent: HTTP-Monitor/1.1\r\n";
    edge.ask("GET /any", fields, b"").await.assert(200, "ok\n");
    edge.connections.announce_end();
    edge.ask("GET /any", fields, b"").await.assert(503, "");
    let other = "Host: app.test\r\nUser-Agent: HTTP-Monitor/1.10\r\n";
    assert_eq!(
        edge.ask("GET /", other, b"").await.body.lines().count(),
        1,
        "it is handled like all other requests"
    );
}
