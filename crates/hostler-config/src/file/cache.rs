//! The keys of `[cache]`, as written: where Hostler stores responses. Knows no routes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{MemcachedAddress, OneOrMany, Period, Size};

/// The `[cache]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Cache {
    /// The memory for stored responses. Everything counts: bodies, heads, keys and compressed forms.
    ///
    /// When it is full, Hostler removes the responses that are requested least. A response that a crawler requests
    /// once does not displace one that clients request every minute. Raise it if `hostler status` shows few hits.
    pub memory: Size<1_048_576, 1_099_511_627_776>,
    /// The largest response that Hostler stores, never more than `memory`. A larger one goes to its client and is
    /// not stored.
    pub max_entry: Size<1024, 1_073_741_824>,
    /// memcached servers that several Hostlers share. A response that one Hostler has stored, the others need not
    /// fetch.
    ///
    /// Each address is `"host:port"`, `"[IPv6]:port"` or `"unix:/path"`. Consistent hashing of these texts
    /// distributes the keys over the servers. So all Hostlers must have the same texts, in any order.
    ///
    /// A program that can write to these servers can change your pages. Use a network that no other programs can
    /// reach.
    #[schemars(extend("x-default" = "none"))]
    pub memcached: OneOrMany<MemcachedAddress>,
    /// The longest time that a request waits for memcached.
    ///
    /// If a server is slower three times in a row, Hostler does not use it until it answers in time again. Meanwhile
    /// Hostler fetches that server's responses from the members. Raise it if memcached is on another network and its
    /// answers take longer.
    pub timeout: Period,
    /// The largest item that Hostler sends to memcached. For more than 1 MB, start memcached with `-I`.
    pub max_item: Size<1024, 1_073_741_824>,
    /// The prefix of all keys in memcached.
    ///
    /// Hostlers of one site use the same namespace. Two sites that share a memcached use different ones.
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
