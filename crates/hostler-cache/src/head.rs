//! The parts of a message's head that the cache reads, for any type of head. Knows no bytes on a wire.

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The fields of a head.
pub trait Head {
    /// The values of all lines with this name (in any case), in order, without white space around them.
    fn lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]>
    where
        Self: 'a;
}

/// Milliseconds since 1970, by the wall clock, because several machines share it. Every decision gets it from its caller.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Moment(pub u64);

impl Moment {
    /// The current time of the system's clock.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// Milliseconds since this process first asked, by a clock that is never set back. It orders purges and fetches of one Hostler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Tick(pub u64);

impl Tick {
    /// The current time. It is never zero, which means never.
    pub fn now() -> Self {
        static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
        Self(u64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1)
    }
}
