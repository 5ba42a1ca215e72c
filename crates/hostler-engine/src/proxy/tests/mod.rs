//! What simulated histories need below the proxy: members that are tasks of the same thread, and bugs that can be planted. Knows no
//! gateway.

mod bugs;
mod client;
mod closes;
mod http2_again;
mod kept;
mod left;
mod ports;
mod race;
mod slow_ends;
mod unconnected;
mod who_pays;
mod wire;

use std::cell::RefCell;
use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hostler_wire::{Address, Stream};
use tokio::time::{Instant, sleep_until};

pub use bugs::{Bug, end_wrongly, ends_wrongly};
pub use client::TestClient;
pub use hostler_testkit::is_planted;
pub use wire::{Discarded, MemberSide, WireSettings, wire};

/// What becomes of an attempt to connect to a simulated member.
pub enum Dialled {
    Refused,
    /// This process has no file descriptor left.
    NoDescriptor,
    /// All local ports are in use.
    NoPort,
    /// Nothing answers.
    Silent,
    /// The connection is made after this long.
    Accepted(Stream, Duration),
}

/// A member to which the proxy of this thread can connect.
pub trait SimulatedMember: Send + Sync {
    fn dial(self: Arc<Self>) -> Dialled;
}

thread_local! {
    static MEMBERS: RefCell<Vec<Arc<dyn SimulatedMember>>> = const { RefCell::new(vec![]) };
}

/// The name of all addresses of simulated members, followed by the number of the member.
const PREFIX: &str = "/simulated/";

/// From now on these are the simulated members of this thread.
pub fn listen(members: Vec<Arc<dyn SimulatedMember>>) {
    MEMBERS.set(members);
}

/// The address of the member with this number.
pub fn simulated_address(member: usize) -> Address {
    Address::Unix(PathBuf::from(format!("{PREFIX}{member}")))
}

/// The simulated member with this address.
pub struct AtMember(Arc<dyn SimulatedMember>);

pub fn simulated(address: &Address) -> Option<AtMember> {
    let Address::Unix(path) = address else { return None };
    let number: usize = path.to_str()?.strip_prefix(PREFIX)?.parse().ok()?;
    MEMBERS.with_borrow(|members| members.get(number).cloned()).map(AtMember)
}

impl AtMember {
    pub async fn connect(self) -> io::Result<Stream> {
        match self.0.dial() {
            Dialled::Refused => Err(io::ErrorKind::ConnectionRefused.into()),
            Dialled::NoDescriptor => Err(rustix::io::Errno::MFILE.into()),
            Dialled::NoPort => Err(rustix::io::Errno::ADDRNOTAVAIL.into()),
            Dialled::Silent => pending().await,
            Dialled::Accepted(stream, after) => {
                if !after.is_zero() {
                    sleep_until(Instant::now() + after).await;
                }
                Ok(stream)
            }
        }
    }
}
