//! Helpers of Hostler's tests: `site`, `upstream`, `client`, `nats`, `memcached`, `collector`, `eventually`, `simulation`. Knows Hostler only from
//! outside, as a program.
//!
//! Nothing here is shared with the tested code. The reader of messages is an independent implementation of HTTP/1.1. The
//! upstream sends and records exact bytes. The site is the real program in its own process.
//!
//! A test waits for a condition ([`eventually`]) and never for a fixed time. Every wait has a deadline ([`WAIT_LIMIT`]),
//! and a test that misses it prints the last state.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that panics has failed, as it should"
)]

mod answer;
mod authority;
mod client;
mod defaults;
mod eventually;
mod fault_proxy;
mod files;
mod frames;
mod log;
mod memcached;
mod message;
mod mmdb;
mod nats;
mod otlp;
mod plan;
mod port;
mod process;
mod program;
mod server_process;
mod simulation;
mod site;
mod stream;
mod tls;
mod upstream;
mod version_1;

pub use answer::{ConnectionEnding, ReceivedAnswer};
pub use authority::{Authority, IssuedCertificate, authority, self_signed};
pub use client::{Client, client, client_from, client_with_window, try_client, try_client_from};
pub use eventually::{WAIT_LIMIT, eventually, within};
pub use fault_proxy::{FaultProxy, LinkFault, fault_proxy};
pub use files::{folder_of, write_files};
pub use frames::{Frame, FrameClient, block, frame_client, frame_client_that_reads_late, indexed_block};
pub use memcached::{memcached, memcached_at, memcached_with_password};
pub use message::{MessageHead, chunked, request};
pub use mmdb::{Mmdb, mmdb, mmdb_v4};
pub use nats::{NatsPlan, NatsServer, nats};
pub use otlp::{CollectorPlan, SpanReceiver, attribute, collector, hex};
pub use plan::{SitePlan, site};
pub use port::{HeldPort, held_port};
pub use process::{Output, run};
pub use program::{h2spec, node_22, say_skipped};
pub use server_process::ServerProcess;
pub use simulation::{Simulation, is_planted, planted_bug, planted_bugs_are_found, random_histories};
pub use site::Site;
pub use tls::{TlsClients, tls_clients, tls_clients_of, tls_clients_with};
pub use upstream::{Seen, Step, Upstream, UpstreamPlan, no_upstream, ok, text, upstream};
pub use version_1::{VERSION_1, VERSION_1_KEY};
