//! Amounts: durations with a unit, sizes in bytes, counts in a range.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use humantime::DurationError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

use super::one_string;

/// With this many digits in all, a duration is far below the point where [`humantime`] panics: a sum of `u64::MAX` seconds and a second in
/// smaller units.
const MOST_DIGITS: usize = 15;

/// Reads a duration such as `1m 30s`, of any length.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    match text.chars().filter(char::is_ascii_digit).count() {
        ..=MOST_DIGITS => humantime::parse_duration(text),
        _ => Err(DurationError::NumberOverflow),
    }
}

/// A duration as written: `"5s"`, `"250ms"`, `"1m 30s"`; from 1 ms to 7 days.
///
/// The upper bound keeps every deadline (now + period) representable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period(pub Duration);

impl Period {
    const LEAST: Duration = Duration::from_millis(1);
    /// The longest one.
    pub const MOST: Duration = Duration::from_secs(7 * 24 * 3600);

    /// This number of seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let period = parse_duration(text).map_err(|_| {
            let number = text.trim();
            // Not for `1e3` or `-5`: no unit makes a duration of them.
            match number.parse::<f64>().is_ok() && parse_duration(&format!("{number}s")).is_ok() {
                true => format!("{text:?} has no unit; write \"{number}s\" for seconds or \"{number}ms\""),
                false => format!("{text:?} is not a duration such as \"30s\", \"250ms\" or \"1m 30s\""),
            }
        })?;
        if (Self::LEAST..=Self::MOST).contains(&period) {
            Ok(Self(period))
        } else {
            Err(format!("{text:?} is out of range; a duration is from 1ms to 7days"))
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

one_string!(Period, kind: "duration", expects: "a duration with its unit, such as \"30s\"");

/// A duration as in [`Period`], or `"0s"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay(pub Duration);

impl Delay {
    /// This number of seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl FromStr for Delay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match parse_duration(text) {
            Ok(Duration::ZERO) => Ok(Self(Duration::ZERO)),
            _ => text.parse::<Period>().map(|period| Self(period.0)),
        }
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Period(self.0).fmt(f)
    }
}

one_string!(Delay, kind: "duration or \"0s\"", expects: "a duration with its unit, such as \"30s\", or \"0s\"");

/// Bytes: `"64 KiB"`, `"10 MB"` or a bare number, from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size<const MIN: u64, const MAX: u64>(pub u64);

impl<const MIN: u64, const MAX: u64> Size<MIN, MAX> {
    fn checked(bytes: u64) -> Result<Self, String> {
        if (MIN..=MAX).contains(&bytes) {
            Ok(Self(bytes))
        } else {
            Err(format!(
                "{} is out of range; it must be from {} to {}",
                ShowSize(bytes),
                ShowSize(MIN),
                ShowSize(MAX)
            ))
        }
    }
}

/// Shows bytes in the largest binary unit that divides them, so that no digit is rounded.
pub struct ShowSize(pub u64);

impl fmt::Display for ShowSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")]
            .into_iter()
            .find(|(shift, _)| self.0 != 0 && self.0.trailing_zeros() >= *shift);
        match unit {
            Some((shift, name)) => write!(f, "{} {name}", self.0 >> shift),
            None => write!(f, "{} B", self.0),
        }
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Size<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> Visitor<'_> for Visit<MIN, MAX> {
            type Value = Size<MIN, MAX>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"64 KiB\", \"10 MB\" or a number of bytes")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                let bytes = parse_size::parse_size(text).map_err(|_| {
                    E::custom(format!(
                        "{text:?} is not a size such as \"64 KiB\", \"10 MB\" or a number of bytes"
                    ))
                })?;
                Size::checked(bytes).map_err(E::custom)
            }
            fn visit_i64<E: Error>(self, bytes: i64) -> Result<Self::Value, E> {
                let bytes = u64::try_from(bytes).map_err(|_| E::custom(format!("{bytes} is negative")))?;
                Size::checked(bytes).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Size<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&ShowSize(self.0))
    }
}

impl<const MIN: u64, const MAX: u64> JsonSchema for Size<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "size".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let kind = format!("size, {} to {}", ShowSize(MIN), ShowSize(MAX));
        json_schema!({ "type": ["string", "integer"], "x-kind": kind, "minimum": MIN, "maximum": MAX })
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count<const MIN: u64, const MAX: u64>(pub u64);

impl<const MIN: u64, const MAX: u64> Count<MIN, MAX> {
    /// The number, if it is in the range.
    pub fn checked(number: i64) -> Result<Self, String> {
        let in_range = u64::try_from(number).ok().filter(|number| (MIN..=MAX).contains(number));
        in_range.map(Self).ok_or_else(|| format!("{number} is out of range; it must be from {MIN} to {MAX}"))
    }

    /// As an index type; lossless, since no `MAX` exceeds 32 bits.
    pub fn get(self) -> usize {
        const { assert!(MAX <= u32::MAX as u64) };
        self.0 as usize
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Count<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> Visitor<'_> for Visit<MIN, MAX> {
            type Value = Count<MIN, MAX>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {MIN} to {MAX}")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Count::checked(number).map_err(E::custom)
            }
        }
        deserializer.deserialize_i64(Visit)
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Count<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<const MIN: u64, const MAX: u64> JsonSchema for Count<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "number".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let kind = format!("number, {MIN} to {MAX}");
        json_schema!({ "type": "integer", "x-kind": kind, "minimum": MIN, "maximum": MAX })
    }
}
