//! The promises of Hostler, one test for each: the real program on real sockets, in front of scripted members. Needs no Node.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

// Clients
mod bodies;
mod certificates;
mod clients;
mod connections;
mod expectations;
mod http2;
mod http2_floods;
mod http2_heads;
mod http2_lasting;
mod http2_tunnels;
mod idle_memory;
mod large_bodies;
mod limits;
mod live;
mod one_client;
mod proxy_protocol;
mod slow_clients;
mod strictness;
mod tls;
mod unread_streams;
mod unread_tunnels;
// Between clients and members
mod answers;
mod batches;
mod buffering;
mod changes;
mod compressed_parts;
mod compression;
mod conditions;
mod dispatch;
mod early_hints;
mod fields;
mod files;
mod files_on_routes;
mod geo_headers;
mod grpc;
mod lookups_hostile;
mod lookups_random;
mod priorities;
mod rate_limits;
mod whole;
// Members
mod cache_flights;
mod cache_for_one;
mod cache_forms;
mod cache_hits;
mod cache_keys;
mod cache_memory;
mod cache_readers;
mod cache_shared;
mod cache_stale;
mod fallback;
mod faults;
mod framing;
mod hedging;
mod http1_required;
mod http2_member;
mod http2_member_limits;
mod http2_members;
mod log_rules;
mod loops;
mod malformed_answers;
mod member_health;
mod member_tls;
mod metrics;
mod streamed_bodies;
mod streams;
mod tunnel_ends;
mod tunnels;
// Lookups
mod geo;
mod geo_data;
mod health;
mod nats_tls;
mod openapi;
mod postal;
mod postal_data;
// Registered routes
mod platform;
// The program
mod activation;
mod admin_access;
mod announcing;
mod blocked_output;
mod command;
mod descriptors;
mod orders;
mod registrar;
mod registrar_addresses;
mod registrar_leaving;
mod registrar_limits;
mod registrar_outages;
mod registrar_upgrade;
mod reloading;
mod seeing;
mod sticky;
mod stopping;
mod top;
mod traces;
mod upgrading;

use hostler_testkit::{Client, Site, SitePlan, Upstream};
use rustix::process::{Pid, Signal, kill_process};

/// A site with this configuration.
fn site(config: &str) -> SitePlan {
    hostler_testkit::site(env!("CARGO_BIN_EXE_hostler"), config)
}

/// Sends a signal to a process, which must still run.
fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// A running site with one pool, `app`, of one member.
async fn in_front_of(upstream: &Upstream, config: &str) -> Site {
    site(config).with("app", upstream).start().await
}

/// A running site whose pool `app` has one slot and room for one waiting request. `/first` has the slot, and `/second` waits.
async fn with_a_full_queue(upstream: &Upstream) -> (Site, [Client; 2]) {
    let site = in_front_of(upstream, "pools.app.concurrency = 1\npools.app.queue.limit = 1").await;
    let first = site.begin("/first").await;
    site.settles("app", 1, 0).await;
    let second = site.begin("/second").await;
    site.settles("app", 1, 1).await;
    (site, [first, second])
}
