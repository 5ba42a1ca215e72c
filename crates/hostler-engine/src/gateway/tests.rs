//! Helpers for the tests of the gateway: a gateway, a route, a pool without members, and a request. Knows no test.

mod history;
mod reload;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use hostler_dispatch::{Pool, PoolSettings};
use hostler_wire::Limits;

use super::{
    Gateway, Health, Poison, PoisonSettings, PoolTarget, PoolTargetSettings, Route, SpoolSettings, Target,
};
use crate::exchange::{Connections, Exchange, MemoryBudget, Sweep};
use crate::journal::{Journal, LogFormat};
use crate::proxy::Meter;
use crate::route::Table;

pub(super) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn journal() -> Journal {
    Journal::new(LogFormat::Json, false, std::fs::File::create("/dev/null").unwrap()).unwrap()
}

/// A target with a queue timeout of 5 s and a request timeout of 30 s.
pub(super) fn target() -> PoolTarget {
    let settings = PoisonSettings {
        kills: 0,
        keep_off: seconds(1),
        crowded: false,
        suspect_after: seconds(1),
        request_timeout: seconds(1),
    };
    let poison = Arc::new(Poison::new("app".into(), settings, journal(), None));
    let settings = PoolTargetSettings {
        queue_timeout: seconds(5),
        request_timeout: seconds(30),
        connect_timeout: seconds(1),
        hang_timeout: Some(seconds(60)),
        hangs_up_at_once: false,
        tunnel_idle_timeout: seconds(60),
        response_idle_timeout: seconds(60),
        stream_idle_timeout: seconds(60),
        limits: Limits::default(),
        max_interim_answers: 100,
    };
    PoolTarget::new(Pool::new("app", PoolSettings::default()), Arc::new(Meter::new(1)), poison, settings)
}

/// A route for all paths that takes bodies of 1 MiB and keeps nothing.
fn route(target: PoolTarget) -> Route {
    Route::new("*".into(), Target::Pool(target), 1 << 20)
}

/// Leads all paths to this route.
fn table(route: Arc<Route>) -> Table<Arc<Route>> {
    [("*".parse().unwrap(), route)].into_iter().collect()
}

/// A gateway with the memory for one request body, and for those of all requests.
fn gateway(routes: Table<Arc<Route>>, body: usize, all_bodies: u64) -> Gateway {
    Gateway {
        routes: ArcSwap::from_pointee(routes),
        spool: ArcSwap::from_pointee(SpoolSettings { memory: body }),
        request_memory: MemoryBudget::new(all_bodies),
        registrar: ArcSwapOption::empty(),
        health: Arc::new(Health::new(Arc::new(Connections::default()))),
        access_format: None,
        development: None,
        unrouted: Arc::default(),
    }
}

pub(super) fn exchange() -> Exchange {
    let sweep = Sweep::new();
    tokio::spawn(sweep.clone().run());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    Exchange::new(address, address, sweep.deadline())
}

/// A request from this address with these field lines.
pub(super) fn request(ip: &str, fields: &str) -> Exchange {
    let mut exchange = exchange();
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    exchange.head.parse(head.as_bytes(), &Limits::default()).unwrap();
    exchange.client.ip = ip.parse().unwrap();
    exchange
}
