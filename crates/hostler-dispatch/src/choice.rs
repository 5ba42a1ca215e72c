//! How a pool chooses among members with a free slot. Knows no members.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How a pool chooses among members with a free slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberChoice {
    /// The member with the fewest slots in use. Among equals, the most recently used one, because its caches and JIT are
    /// warm.
    #[default]
    Warm,
    /// The next member in turn.
    RoundRobin,
    /// The member with the smallest share of its slots in use. Among equals, the one that was used longest ago.
    LeastBusy,
}

/// The text is not the name of a [`MemberChoice`]. Holds the text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such choice {0:?}: use \"warm\", \"round_robin\" or \"least_busy\"")]
pub struct UnknownChoice(pub String);

impl MemberChoice {
    const ALL: [Self; 3] = [Self::Warm, Self::RoundRobin, Self::LeastBusy];

    /// The name used in the configuration and the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::RoundRobin => "round_robin",
            Self::LeastBusy => "least_busy",
        }
    }
}

impl fmt::Display for MemberChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for MemberChoice {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, UnknownChoice> {
        Self::ALL
            .into_iter()
            .find(|choice| choice.as_str() == text)
            .ok_or_else(|| UnknownChoice(text.to_owned()))
    }
}
