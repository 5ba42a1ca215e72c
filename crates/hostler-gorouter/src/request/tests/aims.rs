//! Which member gets a request by a registered route.

use super::*;

#[tokio::test]
async fn a_session_stays_with_its_instance_and_moves_when_that_is_gone() {
    let edge = edge(config::Platform::default());
    let (a, b) = (upstream().answers(SESSION).start().await, named("b").await);
    let joined = edge.join(&a, instance("inst-A", "0"));
    let _joined = edge.join(&b, instance("inst-B", "1"));
    let got = edge.get("").await;
    assert_eq!(got.field("Set-Cookie"), Some("__VCAP_ID__=inst-A; Path=/; HttpOnly; Secure"));
    assert!(!got.exchange.to_client.keeps(b"X-CF-Proxy-Signature"));
    let cookie = "Cookie: JSESSIONID=1; __VCAP_ID__=inst-A\r\n";
    for _ in 0..3 {
        edge.get(cookie).await;
    }
    assert_eq!((a.requests().len(), b.requests().len()), (4, 0));
    drop(joined);
    let got = edge.get(cookie).await;
    got.assert(200, "b");
    assert_eq!(got.field("Set-Cookie"), Some("__VCAP_ID__=inst-B; Path=/; HttpOnly"));
}

#[tokio::test]
async fn the_cookie_of_a_session_has_its_path_in_the_letters_of_the_request() {
    // With `compat` the path of the route is in lower case, but browsers compare the path of a cookie with case.
    let edge = edge_below("/shop", gorouter(), PoolSettings::default(), false);
    let member = upstream().answers(SESSION).start().await;
    let _joined = edge.join(&member, instance("inst-A", "0"));
    for (line, path) in [("GET /Shop/x", "/Shop"), ("GET /shop?a", "/shop"), ("GET /sh%6Fp", "/shop")] {
        let got = edge.ask(line, "Host: app.test\r\n", b"").await;
        let expected = format!("__VCAP_ID__=inst-A; Path={path}; HttpOnly; Secure");
        assert_eq!(got.field("Set-Cookie"), Some(expected.as_str()), "{line}");
    }
}

#[tokio::test]
async fn a_negotiated_authentication_stays_with_its_member_or_fails() {
    let settings = config::Platform { sticky_sessions_for_auth_negotiate: true, ..Default::default() };
    let edge = edge(settings);
    let asks = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 0\r\n\r\n";
    let a = upstream().in_turn([text(asks), ok("a")]).start().await;
    let joined = edge.join(&a, instance("inst-A", "0"));
    let _joined = edge.join(&named("b").await, instance("inst-B", "1"));
    let got = edge.get("").await;
    assert_eq!(
        got.field("Set-Cookie"),
        Some("__VCAP_ID__=inst-A; Path=/; Max-Age=60; HttpOnly; SameSite=Strict")
    );
    let step = "Authorization: Negotiate YII=\r\nCookie: __VCAP_ID__=inst-A\r\n";
    edge.get(step).await.assert(200, "a");
    drop(joined);
    let got = edge.get(step).await;
    assert_eq!(got.status, 502);
    assert_eq!(got.field("X-Cf-Routererror"), Some("endpoint_failure (No endpoints available)"));
}

#[tokio::test]
async fn a_request_for_an_instance_gets_it_or_a_refusal() {
    let edge = edge(config::Platform::default());
    let (a, b) = (named("a").await, named("b").await);
    let _a = edge.join(&a, instance("inst-A", "0"));
    let process = Instance { tags: [("process_id".into(), GUID.into())].into(), ..instance("inst-B", "1") };
    let _b = edge.join(&b, process);
    for _ in 0..3 {
        edge.get(&format!("X-CF-App-Instance: {GUID}:1\r\n")).await.assert(200, "b");
        edge.get(&format!("X-CF-Process-Instance: {GUID}\r\n")).await.assert(200, "b");
    }
    assert_eq!(seen(&b).field("X-CF-Process-Instance").as_deref(), Some(GUID));
    let got = edge.get(&format!("X-CF-App-Instance: {GUID}:7\r\n")).await;
    got.assert(
        400,
        &format!("400 Bad Request: Requested instance ('7') with guid ('{GUID}') does not exist for route ('app.test')\n"),
    );
    assert_eq!(got.field("X-Cf-Routererror"), Some("unknown_route"));
    let other = GUID.replace('1', "9");
    let got = edge.get(&format!("X-CF-Process-Instance: {other}\r\n")).await;
    got.assert(
        400,
        &format!("400 Bad Request: Requested instance with process guid ('{other}') does not exist for route ('app.test')\n"),
    );
    let got = edge.get("X-CF-App-Instance: nonsense\r\n").await;
    got.assert(400, "400 Bad Request: Invalid X-CF-App-Instance Header\n");
    let got = edge.get("X-CF-Process-Instance: nonsense\r\n").await;
    got.assert(400, "400 Bad Request: Invalid X-CF-Process-Instance Header\n");
}

#[tokio::test]
async fn a_request_for_an_instance_of_a_route_without_members_gets_the_refusal_of_an_unknown_instance() {
    for settings in [config::Platform::default(), gorouter()] {
        let edge = edge(settings);
        for (field, instance) in [
            ("X-CF-App-Instance: GUID:7", "instance ('7') with guid ('GUID')"),
            ("X-CF-Process-Instance: GUID", "instance with process guid ('GUID')"),
        ] {
            let got = edge.get(&format!("{}\r\n", field.replace("GUID", GUID))).await;
            let instance = instance.replace("GUID", GUID);
            let expected =
                format!("400 Bad Request: Requested {instance} does not exist for route ('app.test')\n");
            got.assert(400, &expected);
            assert_eq!(got.field("X-Cf-Routererror"), Some("unknown_route"));
            assert_eq!(got.field("Cache-Control"), Some("no-cache, no-store"));
        }
        let got = edge.get("").await;
        assert_eq!((got.status, got.field("X-Cf-Routererror")), (503, Some("no_endpoints")));
    }
}

#[tokio::test]
async fn a_client_need_not_send_its_body_to_a_route_without_a_member_for_the_request() {
    let edge = edge(config::Platform::default());
    let upload = async |field: &str| {
        let fields = format!("Host: app.test\r\nExpect: 100-continue\r\n{field}");
        let got = edge.ask("POST /x", &fields, b"body").await;
        (got.status, got.exchange.log_facts.bytes_in)
    };
    let unknown = format!("X-CF-App-Instance: {GUID}:7\r\n");
    assert_eq!((upload("").await, upload(&unknown).await), ((503, 0), (400, 0)));
    let member = named("a").await;
    let _joined = edge.join(&member, instance("inst-A", "0"));
    assert_eq!((upload("").await, upload(&unknown).await), ((200, 4), (400, 0)));
}

#[tokio::test]
async fn of_several_instances_that_a_request_asks_for_one_that_cannot_be_reached_fails_none() {
    for settings in [config::Platform::default(), gorouter()] {
        let edge = edge_with(settings, long_bench(), false);
        let (dead, b) = (no_upstream(), named("b").await);
        let of_process =
            || Instance { tags: [("process_id".into(), GUID.into())].into(), ..instance("inst", "0") };
        let _dead = edge.pool.join(edge.endpoint(&dead, of_process()), 10);
        let _b = edge.join(&b, of_process());
        let mut attempts = 0;
        for asked in ["X-CF-Process-Instance: GUID", "X-CF-App-Instance: GUID:0"] {
            for _ in 0..8 {
                let got = edge.get(&format!("{}\r\n", asked.replace("GUID", GUID))).await;
                got.assert(200, "b");
                attempts += got.exchange.log_facts.attempts;
            }
        }
        assert!(attempts <= 17, "it is tried once at most: {attempts}");
    }
}

#[tokio::test]
async fn near_members_are_tried_first_and_others_after_a_failure() {
    let settings = config::Platform {
        zone: Some("z1".into()),
        zone_preference: ZonePreference::LocallyOptimistic,
        ..Default::default()
    };
    let edge = edge_with(settings, long_bench(), false);
    let (far, near, dead) = (named("far").await, named("near").await, no_upstream());
    let _far = edge.join(&far, Instance::default());
    let joined = edge.pool.join_near(edge.endpoint(near.address(), Instance::default()), 10);
    for _ in 0..3 {
        edge.get("").await.assert(200, "near");
    }
    drop(joined);
    let _dead = edge.pool.join_near(edge.endpoint(&dead, Instance::default()), 10);
    edge.get("").await.assert(200, "far");
}
