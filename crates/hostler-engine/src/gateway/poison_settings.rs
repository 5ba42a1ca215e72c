//! The settings of [`super::poison`]: plain data.

use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub struct PoisonSettings {
    /// Deaths after which a request is convicted. 0 switches this off.
    pub kills: usize,
    /// How long a convicted request is refused.
    pub keep_off: Duration,
    /// Workers hold several requests at once.
    pub crowded: bool,
    /// How long a request goes on after its client has left before it counts as holding its worker, if it blocks the
    /// event loop.
    pub suspect_after: Duration,
    /// The same if it does not block the event loop: any request may take this long.
    pub request_timeout: Duration,
}

impl PoisonSettings {
    /// No request is ever convicted or suspected.
    pub const OFF: Self = Self {
        kills: 0,
        keep_off: Duration::ZERO,
        crowded: true,
        suspect_after: Duration::ZERO,
        request_timeout: Duration::ZERO,
    };
}
