//! In which order the waiting requests of a pool get slots. Knows no requests.

use std::time::Duration;

/// In which order the waiting requests of one class get slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In order of arrival.
    #[default]
    Arrival,
    /// Those first that are expected to cost little.
    ShortFirst {
        /// How much later than in order of arrival a request may get its slot because others overtake it.
        delay: Duration,
    },
}
