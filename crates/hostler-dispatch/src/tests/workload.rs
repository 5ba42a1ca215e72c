//! What simulated requests cost, and what they say about it. Knows neither pool nor clock.

use std::time::Duration;

use crate::{CostLabel, CostTable};

/// How long a slot is held.
#[derive(Clone, Copy, Debug)]
pub enum Holding {
    Fixed(Duration),
    Exponential(Duration),
    /// The first or, with this probability, the second.
    Either(Duration, f64, Duration),
}

impl Holding {
    pub fn mean(self) -> Duration {
        match self {
            Self::Fixed(mean) | Self::Exponential(mean) => mean,
            Self::Either(one, share, other) => one.mul_f64(1.0 - share) + other.mul_f64(share),
        }
    }

    pub fn roll(self, dice: &mut fastrand::Rng) -> Duration {
        match self {
            Self::Fixed(time) => time,
            Self::Exponential(mean) => exponential(mean, dice),
            Self::Either(one, share, other) => {
                if dice.f64() < share {
                    other
                } else {
                    one
                }
            }
        }
    }
}

pub fn exponential(mean: Duration, dice: &mut fastrand::Rng) -> Duration {
    mean.mul_f64(-(1.0 - dice.f64()).ln())
}

/// Requests that get their slot in the last part of each period take longer.
#[derive(Clone, Copy, Debug)]
pub struct SlowSpell {
    pub period: Duration,
    pub part: Duration,
    pub factor: f64,
}

/// Long requests have another label than the others, and the pool learns what each label costs.
pub struct Labels {
    pub table: CostTable<()>,
    /// Requests that hold their slot for longer than this are long.
    pub long: Duration,
    /// This part of the labels is wrong.
    pub wrong: f64,
    pub dice: fastrand::Rng,
}

impl Labels {
    pub fn of(&mut self, hold: Duration) -> CostLabel {
        let is_wrong = self.dice.f64() < self.wrong;
        CostLabel { kind: 1 + u64::from((hold > self.long) != is_wrong), shape: 0 }
    }
}
