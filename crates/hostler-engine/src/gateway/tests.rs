//! Helpers for the tests of the gateway: a pool without members, and a request. Knows no test.

mod history;
mod reload;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::{Pool, PoolSettings};
use hostler_wire::Limits;

use super::{Poison, PoisonSettings, PoolTarget, PoolTargetSettings};
use crate::exchange::{Exchange, Sweep};
use crate::journal::{Journal, LogFormat};
use crate::proxy::Meter;

pub(super) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn journal() -> Journal {
    Journal::new(LogFormat::Json, false, std::fs::File::create("/dev/null").unwrap())
}

/// A target with a queue timeout of 5 s and a request timeout of 30 s.
pub(super) fn target() -> PoolTarget {
    let settings =
        PoisonSettings { kills: 0, keep_off: seconds(1), crowded: false, suspect_after: seconds(1) };
    let poison = Arc::new(Poison::new("app".into(), settings, journal()));
    let settings = PoolTargetSettings {
        queue_timeout: seconds(5),
        request_timeout: seconds(30),
        connect_timeout: seconds(1),
        hang_timeout: Some(seconds(60)),
        tunnel_idle_timeout: seconds(60),
        stream_idle_timeout: seconds(60),
        limits: Limits::default(),
        max_interim_answers: 100,
    };
    PoolTarget::new(Pool::new("app", PoolSettings::default()), Arc::new(Meter::new(1)), poison, settings)
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
