//! Registered routes with real members: what the members get, and what the client gets.

mod aims;
mod failures;
mod heads;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use hostler_config::{self as config, Compat, ForwardedClientCert, ForwardedProto, ZonePreference};
use hostler_dispatch::{BackoffSettings, MemberChoice, MemberId, Membership, Pool, PoolSettings};
use hostler_testkit::{Seen, Step, Upstream, no_upstream, ok, text, upstream};
use hostler_wire::{Address, BodyLength, Fields, Limits, ResponseHead, Whole};

use super::{MemberFault, PlatformRules, RegisteredRoute, forwarded_for, forwarded_proto, registered};
use hostler_engine::exchange::{
    BodyError, Connections, Downstream, Edits, Exchange, Instance, MemoryBudget, Scheme, Sweep, Trust,
};
use hostler_engine::gateway::{
    Answer, Gateway, Health, Poison, PoisonSettings, PoolTarget, PoolTargetSettings, Refusal, Route,
    SpoolSettings, Target,
};
use hostler_engine::journal::{Journal, LogFormat};
use hostler_engine::proxy::{Endpoint, Meter};
use hostler_engine::route::Table;

const GUID: &str = "11111111-2222-3333-4444-555555555555";

/// A gateway with one registered route, `app.test`, and its pool.
struct Edge {
    gateway: Gateway,
    pool: Pool<Endpoint>,
    meter: Arc<Meter>,
    connections: Arc<Connections>,
    sweep: Sweep,
    failed: Arc<Mutex<Vec<(MemberId, MemberFault)>>>,
}

/// What the client got.
struct Got {
    status: u16,
    /// Field lines that the member has not sent, as `name: value`.
    lines: Vec<String>,
    body: String,
    exchange: Exchange,
}

/// A client with a body. It never leaves.
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
    fn interim(&mut self, _: &mut Context<'_>, _: &ResponseHead) -> bool {
        false
    }
}

fn edge(settings: config::Platform) -> Edge {
    edge_with(settings, PoolSettings { choice: MemberChoice::RoundRobin, ..PoolSettings::default() }, false)
}

fn edge_with(settings: config::Platform, pool: PoolSettings, has_route_service: bool) -> Edge {
    edge_below("/", settings, pool, has_route_service)
}

/// `path`: that of the route's URI.
fn edge_below(path: &str, settings: config::Platform, pool: PoolSettings, has_route_service: bool) -> Edge {
    let connections = Arc::new(Connections::default());
    let health = Arc::new(Health::new(connections.clone()));
    health.watch(Vec::new());
    let rules = Arc::new(PlatformRules::new(settings, health.clone()));
    let (pool, meter) = (Pool::new("app.test", pool), Arc::new(Meter::new(1)));
    let failed: Arc<Mutex<Vec<(MemberId, MemberFault)>>> = Arc::default();
    let told = failed.clone();
    let kind = RegisteredRoute {
        rules: rules.clone(),
        context_path: path.into(),
        has_route_service,
        presence: Arc::default(),
        on_failed: Arc::new(move |member, fault| told.lock().unwrap().push((member, fault))),
    };
    let route = route(kind, pool.clone(), meter.clone());
    let table: Table<Arc<Route>> = [("app.test".parse().unwrap(), Arc::new(route))].into_iter().collect();
    let gateway = Gateway {
        routes: ArcSwap::from_pointee(table),
        spool: ArcSwap::from_pointee(SpoolSettings { memory: 1024 }),
        request_memory: MemoryBudget::new(1 << 20),
        registrar: ArcSwapOption::from_pointee(rules.for_gateway()),
        health,
        access_format: None,
        development: None,
        unrouted: Arc::default(),
    };
    let sweep = Sweep::new();
    tokio::spawn(sweep.clone().run());
    Edge { gateway, pool, meter, connections, sweep, failed }
}

fn route(kind: RegisteredRoute, pool: Pool<Endpoint>, meter: Arc<Meter>) -> Route {
    let journal = Journal::new(LogFormat::Json, false, std::fs::File::create("/dev/null").unwrap()).unwrap();
    let poison = Arc::new(Poison::new("app.test".into(), PoisonSettings::OFF, journal, None));
    let settings = PoolTargetSettings {
        queue_timeout: Duration::from_secs(20),
        request_timeout: Duration::from_secs(30),
        connect_timeout: Duration::from_secs(20),
        hang_timeout: None,
        hangs_up_at_once: false,
        tunnel_idle_timeout: Duration::from_secs(60),
        response_idle_timeout: Duration::from_secs(60),
        stream_idle_timeout: Duration::from_secs(60),
        limits: Limits::default(),
        max_interim_answers: 100,
    };
    let target = PoolTarget::new(pool, meter, poison, settings);
    Route { kind: Some(Arc::new(kind)), ..Route::new("app.test".into(), Target::Pool(target), 1024) }
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
            Ok(Answer::Whole(whole)) => (whole.head.status, Vec::new(), whole.body.to_vec()),
            Ok(_) => panic!("neither a member's answer nor a fixed one"),
            Err(instead) => {
                let Whole { head, body } = refused(&mut exchange, &instead.refusal);
                let mut lines = added(&exchange.to_client, &head.fields);
                lines.extend(head.fields.iter().map(|(_, name, value)| line_of(name, value)));
                (head.status, lines, body.to_vec())
            }
        };
        let (status, lines, body) = got;
        Got { status, lines, body: String::from_utf8(body).unwrap(), exchange }
    }
}

fn refused(exchange: &mut Exchange, refusal: &Refusal) -> Whole {
    exchange.registered_answer(refusal).unwrap_or_else(|| panic!("gorouter has words for {refusal:?}"))
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

/// The first answer of a session.
const SESSION: &str = "HTTP/1.1 200 OK\r\nSet-Cookie: JSESSIONID=1; Secure\r\nX-CF-Proxy-Signature: s\r\nContent-Length: 0\r\n\r\n";

/// An ejected member does not come back during a test.
fn long_bench() -> PoolSettings {
    let backoff = BackoffSettings { min: Duration::from_secs(30), max: Duration::from_secs(30) };
    PoolSettings { choice: MemberChoice::RoundRobin, backoff, ..PoolSettings::default() }
}
