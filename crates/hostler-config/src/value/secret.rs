//! Text that is never shown: not in errors, not in logs.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A password or the like.
#[derive(Clone, PartialEq)]
pub struct Secret(pub String);

impl<'de> Deserialize<'de> for Secret {
    /// The error of the library would show a password such as `4711` that is written without quotes.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer);
        text.map(Self).map_err(|_| D::Error::custom("must be a string, in quotes"))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("(secret)")
    }
}
