//! The header fields that members and clients of registered routes read.

use super::*;

#[tokio::test]
async fn a_member_gets_its_instance_and_the_request_id() {
    let (edge, member) = (edge(config::Platform::default()), named("a").await);
    let _joined = edge.join(&member, instance("inst-A", "0"));
    let fields =
        format!("X-Vcap-Request-Id: forged\r\nX-CF-InstanceID: forged\r\nX-CF-App-Instance: {GUID}:0\r\n");
    let got = edge.get(&fields).await;
    let seen = seen(&member);
    assert_eq!(seen.field("X-CF-ApplicationID").as_deref(), Some(GUID));
    assert_eq!(seen.head.all("X-CF-InstanceID"), ["inst-A"]);
    assert_eq!(seen.field("X-CF-InstanceIndex").as_deref(), Some("0"));
    assert_eq!(seen.field("X-CF-App-Instance"), None);
    let id = got.field("X-Vcap-Request-Id").unwrap();
    assert_eq!(seen.head.all("X-Vcap-Request-Id"), [id]);
    assert!(seen.field("X-Request-Start").unwrap().parse::<u64>().unwrap() > 1_700_000_000_000);
    assert_eq!(registered(&got.exchange).unwrap().id.as_str(), id);
}

#[tokio::test]
async fn unknown_facts_of_a_member_are_empty_and_its_address_is_its_name() {
    let (edge, member) = (edge(config::Platform::default()), named("a").await);
    let _joined = edge.join(&member, Instance::default());
    edge.get("X-Request-Start: 7\r\n").await.assert(200, "a");
    let seen = seen(&member);
    assert_eq!(seen.field("X-CF-ApplicationID").as_deref(), Some(""));
    assert_eq!(seen.field("X-CF-InstanceID").as_deref(), Some(member.address()));
    assert_eq!(seen.head.all("X-Request-Start"), ["7"]);
}

#[tokio::test]
async fn a_client_cannot_remove_the_time_of_its_request() {
    let (edge, member) = (edge(config::Platform::default()), named("a").await);
    let _joined = edge.join(&member, Instance::default());
    edge.get("X-Request-Start: 7\r\nConnection: X-Request-Start\r\n").await.assert(200, "a");
    let start = seen(&member).field("X-Request-Start").unwrap();
    assert!(start.parse::<u64>().unwrap() > 1_700_000_000_000, "{start}");
}

#[tokio::test]
async fn text_of_a_registration_cannot_add_a_header_line() {
    let (edge, member) = (edge(config::Platform::default()), upstream().answers(SESSION).start().await);
    let _joined = edge.join(&member, instance("x\r\nEvil: 1; a", "0"));
    let got = edge.get("").await;
    assert_eq!(seen(&member).field("X-CF-InstanceID").as_deref(), Some("xEvil:1;a"));
    assert_eq!(seen(&member).field("Evil"), None);
    assert_eq!(got.field("Set-Cookie"), None);
}

#[tokio::test]
async fn forwarded_for_from_any_client_is_trusted_only_with_compat() {
    let fields = "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Client-Cert: c\r\n";
    for (compat, address, proto, cert) in [
        (Compat::None, "127.0.0.1", "http", None),
        (Compat::Gorouter, "9.9.9.9, 127.0.0.1", "https", Some("c")),
    ] {
        let edge = edge(config::Platform { compat, ..Default::default() });
        let member = named("a").await;
        let _joined = edge.join(&member, Instance::default());
        let got = edge.get(fields).await;
        let seen = seen(&member);
        assert_eq!(seen.head.all("X-Forwarded-For"), [address]);
        assert_eq!(seen.head.all("X-Forwarded-Proto"), [proto]);
        assert_eq!(seen.field("X-Forwarded-Client-Cert").as_deref(), cert);
        assert_eq!(forwarded_for(&got.exchange, true), address);
        assert_eq!(super::forwarded_proto(&got.exchange, true), proto);
    }
}

#[tokio::test]
async fn forwarded_proto_follows_the_settings() {
    for (forwarded_proto, scheme, expected) in [
        (ForwardedProto::Keep, Scheme::Http, "https"),
        (ForwardedProto::Sanitize, Scheme::Http, "http"),
        (ForwardedProto::Sanitize, Scheme::Https, "https"),
        (ForwardedProto::Https, Scheme::Http, "https"),
    ] {
        let edge = edge(config::Platform { forwarded_proto, ..gorouter() });
        let member = named("a").await;
        let _joined = edge.join(&member, Instance::default());
        let fields = "Host: app.test\r\nX-Forwarded-Proto: https\r\n";
        let got = edge.ask_as("GET /", fields, b"", |exchange| exchange.scheme = scheme).await;
        assert_eq!(seen(&member).head.all("X-Forwarded-Proto"), [expected]);
        assert_eq!(super::forwarded_proto(&got.exchange, true), expected);
    }
}

#[tokio::test]
async fn the_client_certificate_field_follows_the_settings() {
    use ForwardedClientCert::{AlwaysForward, Forward, SanitizeSet};
    for (forwarded_client_cert, certificate, expected) in [
        (AlwaysForward, None, Some("theirs")),
        (Forward, None, None),
        (Forward, Some(b"der"), Some("theirs")),
        (SanitizeSet, None, None),
        (SanitizeSet, Some(b"der"), Some("ZGVy")),
    ] {
        let edge = edge(config::Platform { forwarded_client_cert, ..gorouter() });
        let member = named("a").await;
        let _joined = edge.join(&member, Instance::default());
        let fields = "Host: app.test\r\nX-Forwarded-Client-Cert: theirs\r\n";
        let with = |exchange: &mut Exchange| {
            exchange.certificate = certificate.map(|der| Arc::from(der.as_slice()));
        };
        edge.ask_as("GET /", fields, b"", with).await;
        let seen = seen(&member);
        assert_eq!(seen.field("X-Forwarded-Client-Cert").as_deref(), expected, "{forwarded_client_cert:?}");
    }
}

#[tokio::test]
async fn a_request_with_the_trace_key_learns_its_router_and_member() {
    let edge = edge(config::Platform { trace_key: Some("22".into()), ..Default::default() });
    let member = named("a").await;
    let _joined = edge.join(&member, Instance::default());
    let got = edge.get("X-Vcap-Trace: 22\r\n").await;
    assert_eq!(got.field("X-Vcap-Router"), Some("127.0.0.1"));
    assert_eq!(got.field("X-Vcap-Backend"), Some(member.address()));
    assert_eq!(got.field("X-Cf-Routeendpoint"), Some(member.address()));
    for fields in ["", "X-Vcap-Trace: 23\r\n"] {
        assert_eq!(edge.get(fields).await.field("X-Vcap-Router"), None);
    }
}
