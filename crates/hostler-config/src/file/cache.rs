//! The keys of `[cache]`, as written: where routes that have a cache keep their answers. Knows no route.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{MemcachedAddress, OneOrMany, Period, Size};

/// The `[cache]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Cache {
    /// Bytes of memory for stored answers, all of it counted: bodies, heads, keys, compressed forms. When it is full, what is asked
    /// for least goes; what a crawler asks for once does not push out what others ask for every minute.
    pub memory: Size<1_048_576, 1_099_511_627_776>,
    /// The largest answer that is stored, never more than `memory`. A larger one goes to its client alone.
    pub max_entry: Size<1024, 1_073_741_824>,
    /// memcached servers that several Hostlers share: what one has stored, the others need not fetch. Each is `"host:port"`,
    /// `"[IPv6]:port"` or `"unix:/path"`; keys are spread over them by consistent hashing of these words, so that all Hostlers must write the same,
    /// in any order. Whoever can write to them can write your pages: never in a network that others are in.
    #[schemars(extend("x-default" = "none: every Hostler for itself"))]
    pub memcached: OneOrMany<MemcachedAddress>,
    /// The longest that a request waits for memcached. A server that is slower three times in a row is left alone until it answers
    /// in time again; its share is fetched from the members meanwhile, and nothing else is different.
    pub timeout: Period,
    /// The largest item that is sent to memcached. More than 1 MB takes a server that was started with `-I`.
    pub max_item: Size<1024, 1_073_741_824>,
    /// What all names in memcached begin with. Hostlers of one site have one; two sites at one memcached have two.
    pub namespace: String,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            memory: Size(64 << 20),
            max_entry: Size(8 << 20),
            memcached: OneOrMany::default(),
            timeout: Period(std::time::Duration::from_millis(50)),
            max_item: Size(1_000_000),
            namespace: "hostler".into(),
        }
    }
}
