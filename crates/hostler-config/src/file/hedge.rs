//! Second tries of requests at another member, as written. Knows no members.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Period, Switch, Value, one_string};

/// Whether a request is sent to a second member: `true`, `false`, or a table with settings.
pub type HedgeSwitch = Switch<Hedge>;

/// When a request is sent to a second member, and how many are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Hedge {
    /// The time without a response after which Hostler asks another member: a percentile of the last responses of the route, such as
    /// `"p95"`, or a time, such as `"50ms"`.
    ///
    /// From `"p50"` to `"p99.9"`. With a percentile, nothing is sent to a second member before the route has had 64 responses.
    pub after: HedgeAfter,
    /// How many requests are sent to a second member at most, as a share of all requests of the pool.
    ///
    /// From `"0.1%"` to `"50%"`.
    pub budget: Share,
}

impl Default for Hedge {
    fn default() -> Self {
        Self { after: HedgeAfter::Percentile(950), budget: Share(20) }
    }
}

impl Value for Hedge {}

/// How long a request waits for its first member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HedgeAfter {
    /// A percentile of the times of the last responses, in thousandths: 950 is p95.
    Percentile(u32),
    /// A fixed time.
    Time(Duration),
}

impl FromStr for HedgeAfter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(percentile) = text.strip_prefix('p') else {
            return match text.parse() {
                Ok(Period(time)) => Ok(Self::Time(time)),
                Err(_) => Err(format!("{text:?} is not {}", <Self as crate::value::OneString>::EXPECTS)),
            };
        };
        match thousandths(percentile) {
            Some(percentile @ 500..=999) => Ok(Self::Percentile(percentile)),
            _ => Err(format!("{text:?} is not a percentile from \"p50\" to \"p99.9\"")),
        }
    }
}

impl fmt::Display for HedgeAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percentile(thousandths) => write!(f, "p{}", f64::from(*thousandths) / 10.0),
            Self::Time(time) => Period(*time).fmt(f),
        }
    }
}

one_string!(HedgeAfter, kind: "percentile or duration", expects: "a percentile such as \"p95\", or a duration such as \"50ms\"");

/// A share in thousandths: 20 is 2 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(pub u32);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_suffix('%').and_then(|percent| thousandths(percent.trim_end())) {
            Some(share @ 1..=500) => Ok(Self(share)),
            _ => Err(format!("{text:?} is not a share from \"0.1%\" to \"50%\"")),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 10.0)
    }
}

one_string!(Share, kind: "percentage", expects: "a share such as \"2%\"");

/// A number of percent, such as `99.9`, in thousandths. `None` if it has a sign, more digits than that, or is no number.
fn thousandths(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = text.parse().ok().filter(|_| is_plain)?;
    let scaled = number * 10.0;
    ((scaled - scaled.round()).abs() < 1e-6 && scaled < 1e6).then_some(scaled.round() as u32)
}
