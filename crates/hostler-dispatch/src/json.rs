//! Durations as whole numbers in JSON. Does not know what the durations measure.

use std::time::Duration;

use serde::{Serialize, Serializer};

/// Milliseconds; null for a duration that is missing.
pub fn milliseconds<S: Serializer>(
    time: &(impl Copy + Into<Option<Duration>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*time).into().map(|time| time.as_millis() as u64).serialize(serializer)
}

/// Microseconds; null for a duration that is missing.
pub fn microseconds<S: Serializer>(
    time: &(impl Copy + Into<Option<Duration>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*time).into().map(|time| time.as_micros() as u64).serialize(serializer)
}
