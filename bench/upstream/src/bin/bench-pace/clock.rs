//! The time in a loop that never waits, and the spans in which the loop did not run. Knows nothing of what the loop does.

#![expect(clippy::disallowed_types, reason = "it measures real time: there is no clock to pause")]

use std::time::{Duration, Instant};

/// No single call to the kernel takes this long: if two readings are farther apart, another process had the core.
pub const STALL: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    pub from: Duration,
    pub length: Duration,
}

/// Read it after each call to the kernel.
pub struct Clock {
    began: Instant,
    last: Duration,
    stalls: Vec<Stall>,
}

impl Clock {
    pub fn start() -> Self {
        Self { began: Instant::now(), last: Duration::ZERO, stalls: Vec::with_capacity(4096) }
    }

    /// The time since the start.
    pub fn now(&mut self) -> Duration {
        let now = self.began.elapsed();
        self.read(now);
        now
    }

    fn read(&mut self, now: Duration) {
        let length = now - self.last;
        if length > STALL {
            self.stalls.push(Stall { from: self.last, length });
        }
        self.last = now;
    }

    pub fn stalls(self) -> Vec<Stall> {
        self.stalls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_readings_far_apart_are_a_stall() {
        let mut clock = Clock::start();
        for micros in [200, 1_200, 2_201, 2_300] {
            clock.read(Duration::from_micros(micros));
        }
        let stall = Stall { from: Duration::from_micros(1_200), length: Duration::from_micros(1_001) };
        assert_eq!(clock.stalls(), [stall]);
    }
}
