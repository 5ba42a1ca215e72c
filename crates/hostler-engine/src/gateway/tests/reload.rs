//! Requests in progress while the routes change: each one ends by the rules of its own route.

use std::sync::{Arc, Weak};

use hostler_config::{Fallback, LoadedFile};
use hostler_dispatch::Membership;
use hostler_testkit::{Upstream, upstream};
use hostler_wire::{Address, CallError, Limits};
use tokio::time::Instant;

use super::{exchange, gateway, table, target};
use crate::exchange::{Exchange, NoClient};
use crate::gateway::worker_hold::WorkerHold;
use crate::gateway::{Answer, Gateway, PoolTarget, Route, Target};
use crate::proxy::{CallBox, Endpoint};

/// A gateway whose routes are about to change, and a request by the old route.
struct Reload {
    gateway: Gateway,
    exchange: Exchange,
    call: CallBox,
    old: Weak<Route>,
    _member: (Upstream, Membership<Endpoint>),
}

/// A route for all paths, with a page with its name as fallback.
fn route(name: &str, target: PoolTarget) -> Arc<Route> {
    let page =
        LoadedFile { path: name.into(), content_type: "text/plain".into(), body: name.to_owned().into() };
    Arc::new(Route { max_body: 1024, fallback: Some(Fallback::File(Arc::new(page))), ..super::route(target) })
}

/// The request has gone to a member by the old route, and the head of its answer has come.
async fn begun(old: Arc<Route>) -> Reload {
    let member = upstream().answers("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").start().await;
    let Target::Pool(target) = &old.target else { panic!("the route leads to a pool") };
    let (host, port) = member.address().rsplit_once(':').unwrap();
    let address = Address::Tcp(host.into(), port.parse().unwrap());
    let endpoint = Endpoint::new(address.into(), "1".into(), target.meter.clone(), 1, None);
    let membership = target.pool.join(endpoint, 1);
    let weak = Arc::downgrade(&old);
    let gateway = gateway(table(old), 1024, 1 << 20);
    let mut exchange = exchange();
    exchange.head.parse(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &Limits::default()).unwrap();
    let Ok(Answer::Member(call)) = gateway.answer(&mut exchange, &mut NoClient, 0).await else {
        panic!("the member answers");
    };
    Reload { gateway, exchange, call, old: weak, _member: (member, membership) }
}

#[tokio::test]
async fn an_answer_that_breaks_off_after_a_reload_has_the_fallback_of_its_own_route() {
    let Reload { gateway, mut exchange, call, .. } = begun(route("old", target())).await;
    gateway.routes.store(Arc::new(table(route("new", target()))));
    let refusal = call.give_up(&mut exchange, CallError::Cut).into();
    let Err(failed) = gateway.instead(&mut exchange, refusal).await else { panic!("no cache stands in") };
    assert_eq!(failed.fallback.unwrap().into_body(), "old");
}

#[tokio::test]
async fn an_answer_that_breaks_off_after_a_reload_ends_no_suspicion() {
    let old = target();
    let poison = old.poison.clone();
    let Reload { gateway, mut exchange, call, .. } = begun(route("old", old)).await;
    poison.hold(&poison.identity(&exchange), WorkerHold::Blocks, Instant::now());
    exchange.is_suspect = true;
    gateway.routes.store(Arc::new(table(route("new", target()))));
    let refusal = call.give_up(&mut exchange, CallError::Cut).into();
    assert!(gateway.instead(&mut exchange, refusal).await.is_err(), "no cache stands in");
    gateway.settle(&mut exchange);
    assert_eq!(poison.view().one_at_a_time, 1);
}

#[tokio::test]
async fn after_a_reload_a_request_reports_on_its_own_pool() {
    let (old, new) = (target(), target());
    let poisons = [old.poison.clone(), new.poison.clone()];
    let Reload { gateway, mut exchange, call, .. } = begun(route("old", old)).await;
    for poison in &poisons {
        poison.hold(&poison.identity(&exchange), WorkerHold::Blocks, Instant::now());
        assert_eq!(poison.view().one_at_a_time, 1);
    }
    exchange.is_suspect = true;
    gateway.routes.store(Arc::new(table(route("new", new))));
    call.finish(&mut exchange);
    gateway.settle(&mut exchange);
    let gated = poisons.map(|poison| poison.view().one_at_a_time);
    assert_eq!(gated, [0, 1], "the old pool has answered it, and the new pool has not");
}

#[tokio::test]
async fn a_slow_client_does_not_hold_a_removed_route() {
    let Reload { gateway, mut exchange, call, old, .. } = begun(route("old", target())).await;
    gateway.routes.store(Arc::new(table(route("new", target()))));
    drop(gateway.routes.load());
    call.finish(&mut exchange);
    assert_eq!(old.strong_count(), 0);
}
