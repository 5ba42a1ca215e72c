//! Registered routes with real members: what reaches these, and what the client gets.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use hostler_pool::dispatch::{BenchSettings, Choice, MemberId, Membership, Pool, PoolSettings, Priority};
use hostler_testkit::{Seen, Step, Upstream, no_upstream, ok, text, upstream};
use hostler_wire::{Address, BodyLength, Fields, Limits, ResponseHead};

use super::{Platform, Rules, answer};
use crate::config::{self, Compat, ForwardedClientCert, ForwardedProto, ZonePreference};
use crate::exchange::{BodyError, Connections, Downstream, Edits, Exchange, Instance, Scheme, Sweep, Trust};
use crate::gateway::{
    Answer, Changes, Gateway, Poison, PoisonSettings, PoolTarget, Route, SpoolSettings, Target,
};
use crate::journal::{Form, Journal, Writer};
use crate::proxy::{CallSettings, Endpoint, Meter};
use crate::route::Table;

const GUID: &str = "11111111-2222-3333-4444-555555555555";

/// A gateway with one registered route, `app.test`, and its pool.
struct Edge {
    gateway: Gateway,
    pool: Pool<Endpoint>,
    meter: Arc<Meter>,
    connections: Arc<Connections>,
    sweep: Sweep,
    failed: Arc<Mutex<Vec<MemberId>>>,
}

/// What the client got.
struct Got {
    status: u16,
    /// Field lines that are not the member's own, as `name: value`.
    lines: Vec<String>,
    body: String,
    exchange: Exchange,
}

/// A client with a body, that waits.
struct Client(Vec<u8>);

impl Downstream for Client {
    fn poll_left(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
    fn allow_body(&mut self, _: u64) {}
    fn poll_body(
        &mut self,
        _: &mut Context<'_>,
        into: &mut Vec<u8>,
        _: usize,
    ) -> Poll<Result<bool, BodyError>> {
        into.append(&mut self.0);
        Poll::Ready(Ok(true))
    }
    fn trailers(&self) -> Option<&Fields> {
        None
    }
    fn interim(&mut self, _: &mut Context<'_>, _: &ResponseHead) {}
}

fn edge(settings: config::Platform) -> Edge {
    edge_with(settings, PoolSettings { choice: Choice::RoundRobin, ..PoolSettings::default() }, false)
}

fn edge_with(settings: config::Platform, pool: PoolSettings, has_route_service: bool) -> Edge {
    let connections = Arc::new(Connections::default());
    let rules = Arc::new(Rules::new(settings, connections.clone()));
    let (pool, meter) = (Pool::new("app.test", pool), Arc::new(Meter::new(1)));
    let failed: Arc<Mutex<Vec<MemberId>>> = Arc::default();
    let told = failed.clone();
    let platform = Platform {
        rules: rules.clone(),
        context_path: "/".into(),
        has_route_service,
        on_failed: Some(Arc::new(move |member| told.lock().unwrap().push(member))),
    };
    let route = route(platform, pool.clone(), meter.clone());
    let table: Table<Arc<Route>> = [("app.test".parse().unwrap(), Arc::new(route))].into_iter().collect();
    let gateway = Gateway {
        routes: ArcSwap::from_pointee(table),
        spool: ArcSwap::from_pointee(SpoolSettings { memory: 1024, folder: std::env::temp_dir() }),
        platform: ArcSwapOption::new(Some(rules)),
        unrouted: Arc::default(),
    };
    let sweep = Sweep::new();
    tokio::spawn(sweep.clone().run());
    Edge { gateway, pool, meter, connections, sweep, failed }
}

fn route(platform: Platform, pool: Pool<Endpoint>, meter: Arc<Meter>) -> Route {
    let journal = Journal::new(Form::Json, false, Writer::new(std::io::sink()));
    let never = PoisonSettings { kills: 0, keep_off: Duration::ZERO, crowded: true };
    let target = PoolTarget {
        name: "app.test".into(),
        pool,
        queue_timeout: Duration::from_secs(20),
        request_timeout: Duration::from_secs(30),
        call: CallSettings {
            connect_timeout: Duration::from_secs(20),
            hang_timeout: Duration::from_secs(60),
            tunnel_idle_timeout: Duration::from_secs(60),
            limits: Limits::default(),
        },
        meter,
        poison: Arc::new(Poison::new("app.test".into(), never, journal)),
    };
    Route {
        pattern: "app.test".into(),
        target: Target::Pool(target),
        max_body: 1024,
        streams_body: false,
        priority: Priority::Normal,
        platform: Some(Arc::new(platform)),
        fallback: None,
        changes: Changes::default(),
        counters: Arc::default(),
    }
}

impl Edge {
    fn endpoint(&self, address: &str, instance: Instance) -> Endpoint {
        let (host, port) = address.rsplit_once(':').unwrap();
        let dial = Address::Tcp(host.into(), port.parse().unwrap()).into();
        let mut endpoint = Endpoint::new(dial, address.into(), self.meter.clone(), 1, None);
        endpoint.instance = Some(Arc::new(instance));
        endpoint
    }

    fn join(&self, member: &Upstream, instance: Instance) -> Membership<Endpoint> {
        self.pool.join(self.endpoint(member.address(), instance), 10)
    }

    async fn get(&self, fields: &str) -> Got {
        self.ask("GET /x", &format!("Host: app.test\r\n{fields}"), b"").await
    }

    async fn ask(&self, line: &str, fields: &str, body: &[u8]) -> Got {
        self.ask_as(line, fields, body, |_| {}).await
    }

    async fn ask_as(&self, line: &str, fields: &str, body: &[u8], with: impl FnOnce(&mut Exchange)) -> Got {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 36156));
        let mut exchange = Exchange::new(address, address, self.sweep.deadline());
        with(&mut exchange);
        let head = format!("{line} HTTP/1.1\r\n{fields}\r\n");
        exchange.head.parse(head.as_bytes(), &Limits::default()).unwrap();
        exchange.begin(&Trust::default());
        exchange.length = BodyLength::Known(body.len() as u64);
        let answer = self.gateway.answer(&mut exchange, &mut Client(body.into()), 0).await;
        let got = match answer {
            Ok(Answer::Member(mut call)) => {
                let (status, lines) =
                    (call.answer().status, added(&exchange.to_client, &call.answer().fields));
                let mut body = Vec::new();
                while !std::future::poll_fn(|cx| call.poll_body(cx, &mut body, 1024)).await.unwrap() {}
                call.finish(&mut exchange);
                (status, lines, body)
            }
            Ok(Answer::Fixed(fixed)) => (fixed.head.status, Vec::new(), fixed.body.clone()),
            Ok(_) => panic!("neither a member's answer nor a fixed one"),
            Err(instead) => {
                let words = answer_words(&mut exchange, &instead.refusal);
                let mut lines = added(&exchange.to_client, &words.head.fields);
                lines.extend(words.head.fields.iter().map(|(_, name, value)| line_of(name, value)));
                (words.head.status, lines, words.body.into())
            }
        };
        let (status, lines, body) = got;
        Got { status, lines, body: String::from_utf8(body).unwrap(), exchange }
    }
}

fn answer_words(exchange: &mut Exchange, refusal: &crate::gateway::Refusal) -> super::Words {
    answer(exchange, refusal).unwrap_or_else(|| panic!("gorouter has a word for {refusal:?}"))
}

fn added(edits: &Edits, fields: &Fields) -> Vec<String> {
    edits.lines(fields).map(|(name, value)| line_of(name.as_bytes(), value)).collect()
}

fn line_of(name: &[u8], value: &[u8]) -> String {
    format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
}

impl Got {
    #[track_caller]
    fn assert(&self, status: u16, body: &str) -> &Self {
        assert_eq!((self.status, self.body.as_str()), (status, body), "{:?}", self.lines);
        self
    }

    fn field(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.lines.iter().find_map(|line| line.strip_prefix(&prefix))
    }
}

fn instance(id: &str, index: &str) -> Instance {
    Instance { app: GUID.into(), id: id.into(), index: index.into(), ..Instance::default() }
}

/// A member that answers with its own name.
async fn named(name: &'static str) -> Upstream {
    upstream().script(move |_| ok(name)).start().await
}

fn gorouter() -> config::Platform {
    config::Platform { compat: Compat::Gorouter, ..Default::default() }
}

fn seen(member: &Upstream) -> Seen {
    member.requests().pop().unwrap()
}

#[tokio::test]
async fn a_member_reads_what_it_is_asked_as_and_by_which_name_the_request_goes() {
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
    assert_eq!(got.exchange.registered.as_ref().unwrap().id.as_str(), id);
}

#[tokio::test]
async fn what_is_not_known_of_a_member_is_empty_and_its_address_is_its_name() {
    let (edge, member) = (edge(config::Platform::default()), named("a").await);
    let _joined = edge.join(&member, Instance::default());
    edge.get("X-Request-Start: 7\r\n").await.assert(200, "a");
    let seen = seen(&member);
    assert_eq!(seen.field("X-CF-ApplicationID").as_deref(), Some(""));
    assert_eq!(seen.field("X-CF-InstanceID").as_deref(), Some(member.address()));
    assert_eq!(seen.head.all("X-Request-Start"), ["7"]);
}

#[tokio::test]
async fn what_a_registration_says_cannot_break_out_of_its_line() {
    let (edge, member) = (edge(config::Platform::default()), upstream().answers(SESSION).start().await);
    let _joined = edge.join(&member, instance("x\r\nEvil: 1; a", "0"));
    let got = edge.get("").await;
    assert_eq!(seen(&member).field("X-CF-InstanceID").as_deref(), Some("xEvil:1;a"));
    assert_eq!(seen(&member).field("Evil"), None);
    assert_eq!(got.field("Set-Cookie"), None);
}

const SESSION: &str = "HTTP/1.1 200 OK\r\nSet-Cookie: JSESSIONID=1; Secure\r\nX-CF-Proxy-Signature: s\r\nContent-Length: 0\r\n\r\n";

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
async fn an_authentication_that_is_negotiated_goes_on_where_it_began_or_nowhere() {
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
async fn a_request_for_an_instance_gets_that_one_or_a_word_why_not() {
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
    let got = edge.get("X-CF-App-Instance: nonsense\r\n").await;
    got.assert(400, "400 Bad Request: Invalid X-CF-App-Instance Header\n");
    let got = edge.get("X-CF-Process-Instance: nonsense\r\n").await;
    got.assert(400, "400 Bad Request: Invalid X-CF-Process-Instance Header\n");
}

#[tokio::test]
async fn what_no_route_matches_is_refused_in_gorouters_words() {
    let edge = edge(config::Platform::default());
    let got = edge.ask("GET /", "Host: nope.test\r\n", b"").await;
    got.assert(404, "404 Not Found: Requested route ('nope.test') does not exist.\n");
    assert_eq!(got.field("Cache-Control"), Some("no-cache, no-store"));
    assert_eq!(got.field("X-Content-Type-Options"), Some("nosniff"));
    for fields in ["", "Host: 127.0.0.1\r\n"] {
        let got = edge.ask("GET /", fields, b"").await;
        got.assert(400, "400 Bad Request: Request had empty Host header\n");
    }
    let got = edge.ask("GET /", &format!("Host: nope.test\r\nX-CF-App-Instance: {GUID}:0\r\n"), b"").await;
    assert_eq!(got.status, 400);
}

#[tokio::test]
async fn a_route_without_members_says_so_at_once() {
    for settings in [config::Platform::default(), gorouter()] {
        let got = edge(settings).get("").await;
        got.assert(
            503,
            "503 Service Unavailable: Requested route ('app.test') has no available endpoints.\n",
        );
        assert_eq!(got.field("Cache-Control"), Some("public,max-age=2"));
        assert_eq!(got.field("X-Cf-Routererror"), Some("no_endpoints"));
        assert!(got.field("X-Vcap-Request-Id").is_some());
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

/// Half a minute: nobody comes back from there in a test.
fn long_bench() -> PoolSettings {
    let bench = BenchSettings { min: Duration::from_secs(30), max: Duration::from_secs(30) };
    PoolSettings { choice: Choice::RoundRobin, bench, ..PoolSettings::default() }
}

#[tokio::test]
async fn what_was_never_sent_goes_to_another_member_whatever_the_method() {
    for settings in [config::Platform::default(), gorouter()] {
        let edge = edge_with(settings, long_bench(), false);
        let (dead, b) = (no_upstream().await, named("b").await);
        let gone = edge.pool.join(edge.endpoint(&dead, instance("dead", "0")), 10);
        let _b = edge.join(&b, instance("inst-B", "1"));
        let got = edge.ask("POST /x", "Host: app.test\r\nContent-Length: 3\r\n", b"abc").await;
        got.assert(200, "b");
        let registered = got.exchange.registered.as_ref().unwrap();
        assert_eq!((registered.failed_attempts, got.exchange.trail.attempts), (1, 2));
        assert_eq!(registered.instance.as_ref().unwrap().id, "inst-B");
        assert_eq!(seen(&b).head.all("X-CF-InstanceID"), ["inst-B"], "what was for the other is gone");
        assert_eq!(*edge.failed.lock().unwrap(), [gone.id()]);
    }
}

#[tokio::test]
async fn gorouter_asks_nobody_twice_and_waits_for_nobody() {
    let pool = PoolSettings { queue_limit: 0, ..long_bench() };
    let edge = edge_with(gorouter(), pool, false);
    let dead = no_upstream().await;
    let _dead = edge.pool.join(edge.endpoint(&dead, instance("dead", "0")), 10);
    for _ in 0..3 {
        let got = edge.get("").await;
        got.assert(502, "502 Bad Gateway: Registered endpoint failed to handle the request.\n");
        let error = format!("endpoint_failure (dial tcp {dead}: connect: connection refused)");
        assert_eq!(got.field("X-Cf-Routererror"), Some(&*error));
        assert_eq!(got.exchange.trail.attempts, 1, "the benched one is tried again, but once a request");
    }
}

#[tokio::test]
async fn without_compat_a_refusal_says_nothing_of_what_is_behind_us() {
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
async fn a_get_that_was_cut_off_goes_to_another_and_a_post_does_not() {
    let hang_up = || upstream().does(vec![Step::Close]);
    for settings in [config::Platform::default(), gorouter()] {
        let edge = edge_with(settings, long_bench(), false);
        let (a, b) = (hang_up().start().await, named("b").await);
        let _joined = [edge.join(&a, instance("inst-A", "0")), edge.join(&b, instance("inst-B", "1"))];
        edge.get("").await.assert(200, "b");
        let post = format!("Host: app.test\r\nContent-Length: 1\r\nX-CF-App-Instance: {GUID}:0\r\n");
        let got = edge_with_one(&edge, &a, &post).await;
        assert_eq!((got.status, got.field("X-Cf-Routererror")), (502, Some("endpoint_failure (EOF)")));
    }
}

/// A POST, once the member's suspense is over.
async fn edge_with_one(edge: &Edge, _member: &Upstream, fields: &str) -> Got {
    hostler_testkit::eventually("the member to be tried again", async || {
        let got = edge.ask("POST /x", fields, b"1").await;
        (got.status != 503).then_some(got)
    })
    .await
}

#[tokio::test]
async fn near_members_are_asked_first_and_the_others_when_that_fails() {
    let settings = config::Platform {
        zone: Some("z1".into()),
        zone_preference: ZonePreference::LocallyOptimistic,
        ..Default::default()
    };
    let edge = edge_with(settings, long_bench(), false);
    let (far, near, dead) = (named("far").await, named("near").await, no_upstream().await);
    let _far = edge.join(&far, Instance::default());
    let joined = edge.pool.join_near(edge.endpoint(near.address(), Instance::default()), 10);
    for _ in 0..3 {
        edge.get("").await.assert(200, "near");
    }
    drop(joined);
    let _dead = edge.pool.join_near(edge.endpoint(&dead, Instance::default()), 10);
    edge.get("").await.assert(200, "far");
}

#[tokio::test]
async fn who_is_forwarded_for_is_believed_as_gorouter_does_only_with_compat() {
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
        assert_eq!(super::forwarded_for(&got.exchange), address);
        assert_eq!(super::forwarded_proto(&got.exchange), proto);
    }
}

#[tokio::test]
async fn the_scheme_is_what_the_settings_say() {
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
        assert_eq!(super::forwarded_proto(&got.exchange), expected);
    }
}

#[tokio::test]
async fn a_clients_certificate_is_what_the_settings_say() {
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
async fn who_knows_the_key_is_told_the_way() {
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

#[tokio::test]
async fn a_health_check_is_answered_for_any_host_until_the_end_is_announced() {
    let edge = edge(config::Platform::default());
    let fields = "Host: app.test\r\nUser-Agent: HTTP-Monitor/1.1\r\n";
    edge.ask("GET /any", fields, b"").await.assert(200, "ok\n");
    edge.connections.announce_end();
    edge.ask("GET /any", fields, b"").await.assert(503, "");
    let other = "Host: app.test\r\nUser-Agent: HTTP-Monitor/1.10\r\n";
    assert_eq!(edge.ask("GET /", other, b"").await.body.lines().count(), 1, "a request like any other");
}
