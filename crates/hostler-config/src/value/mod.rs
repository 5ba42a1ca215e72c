//! The values of the configuration (durations, sizes, addresses, commands): reads text and checks it. Knows no keys.

mod address;
mod amount;
mod announced;
mod cpus;
mod listen_address;
mod meaning;
mod memcached;
mod nats;
mod origin;
mod secret;
mod shell;
mod status_range;
mod text;
mod wanted;
mod word_or;

pub use address::{Address, AdminAddress, MemberAddress, Proxy};
pub use amount::{Count, Delay, Period, ShowSize, Size, parse_duration};
pub use announced::Announced;
pub use cpus::Cpus;
pub use listen_address::ListenAddress;
pub use meaning::Meaning;
pub use memcached::MemcachedAddress;
pub use nats::NatsAddress;
pub use origin::{Origin, has_port_or_none, is_host};
pub use secret::Secret;
pub use shell::SHELL_OPERATORS;
pub use status_range::StatusRange;
pub use text::{CommandLine, FileName, OneOrMany, Plain, RequestPath};
pub use wanted::{TextPattern, Wanted};
pub use word_or::{
    Auto, AutoOrOff, ClientLimit, Slots, Spares, Switch, TextOr, Value, Word, WordOr, number_in_quotes,
};

/// A type that is one string in TOML.
pub trait OneString: std::str::FromStr<Err = String> {
    /// What is accepted, for errors.
    const EXPECTS: &'static str;
}

/// Makes a type one string in TOML: `FromStr` parses it, `Display` shows it, and `$kind` is its name in the reference.
macro_rules! one_string {
    ($type:ty, kind: $kind:literal, expects: $expects:literal) => {
        impl $crate::value::OneString for $type {
            const EXPECTS: &'static str = $expects;
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visit;
                impl serde::de::Visitor<'_> for Visit {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expects)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Visit)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $kind.into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "x-kind": $kind })
            }
        }
    };
}
pub(crate) use one_string;
