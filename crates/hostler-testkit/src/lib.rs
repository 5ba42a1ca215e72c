//! The language that Hostler's tests speak: `site`, `upstream`, `client`, `nats`, `memcached`, `eventually`. Knows Hostler only from outside, as a program.
//!
//! Nothing here is shared with what is tested: the reader of messages is a second opinion on HTTP/1.1, the upstream sends
//! and records exact bytes, the site is the real binary in a process of its own.
//!
//! A test waits for what it needs to see ([`eventually`]) and never for a time to pass. Everything has a deadline
//! ([`PATIENCE`]) and says what it had seen when it ran out.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that panics has failed, as it should"
)]

mod answer;
mod authority;
mod client;
mod eventually;
mod frames;
mod log;
mod meddler;
mod memcached;
mod message;
mod mmdb;
mod nats;
mod plan;
mod port;
mod process;
mod program;
mod site;
mod tls;
mod upstream;

pub use answer::{ConnectionEnding, ReceivedAnswer};
pub use authority::{Authority, IssuedCertificate, authority};
pub use client::{Client, client, client_from, client_with_window, try_client, try_client_from};
pub use eventually::{PATIENCE, eventually, within};
pub use frames::{Frame, FrameClient, block, frame_client};
pub use meddler::{Meddler, Meddling, meddler};
pub use memcached::{Memcached, memcached, memcached_at};
pub use message::{MessageHead, chunked, request};
pub use mmdb::{Mmdb, mmdb, mmdb_v4};
pub use nats::{NatsPlan, NatsServer, nats};
pub use plan::{SitePlan, site};
pub use port::{HeldPort, held_port};
pub use process::{Output, run};
pub use program::h2spec;
pub use site::Site;
pub use tls::{TlsClients, tls_clients, tls_clients_of, tls_clients_with};
pub use upstream::{Seen, Step, Upstream, UpstreamPlan, no_upstream, ok, text, upstream};
