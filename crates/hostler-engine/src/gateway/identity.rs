//! What similar requests have in common: URL, path, route or client. Knows no suspects.

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use serde::Serialize;

use crate::exchange::Exchange;
use crate::journal::Journal;

/// The longest part of a URL that is kept for logs and status.
const MAX_URL: usize = 200;
/// A longer path segment counts as one that differs between requests.
const MAX_SEGMENT: usize = 32;
/// The prefix length of an IPv6 network that counts as one client.
const NETWORK_V6: u32 = 64;

/// What requests have in common, the most specific first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IdentityKind {
    /// Method, host and URL.
    Request,
    /// Method, host and path, without the query and with `*` for segments that vary, such as numbers.
    Path,
    Route,
    /// The client's address, or for IPv6 its network.
    Client,
}

impl IdentityKind {
    pub(super) const ALL: [Self; 4] = [Self::Request, Self::Path, Self::Route, Self::Client];
}

/// The keys of a request, one for each [`IdentityKind`].
pub(super) type Keys = [u64; IdentityKind::ALL.len()];

/// The keys of what one client alone is refused: the URL and the path of its request.
pub(super) fn own_keys(keys: &Keys) -> [Option<u64>; IdentityKind::ALL.len()] {
    let client = keys[IdentityKind::Client as usize].rotate_left(32);
    [Some(keys[0] ^ client), Some(keys[1] ^ client), None, None]
}

/// All keys of a request.
pub(super) fn with_own(keys: &Keys) -> impl Iterator<Item = u64> {
    keys.iter().copied().chain(own_keys(keys).into_iter().flatten())
}

/// The keys of a request, with a readable name for each.
#[derive(Clone)]
pub(super) struct RequestIdentity {
    pub keys: Keys,
    pub names: [Arc<str>; IdentityKind::ALL.len()],
    /// All requests of its route have its URL.
    pub is_batch: bool,
}

impl RequestIdentity {
    /// The request itself, as the log shows it.
    pub fn name(&self) -> &Arc<str> {
        &self.names[0]
    }
}

/// Hashes with a random key, so that clients cannot choose URLs whose keys collide.
#[derive(Default)]
pub(super) struct Keyring(RandomState);

impl Keyring {
    pub fn keys(&self, exchange: &Exchange) -> Keys {
        let (method, host) = (exchange.head.method(), exchange.host());
        [
            self.0.hash_one((IdentityKind::Request, method, host, exchange.head.target())),
            self.0.hash_one((IdentityKind::Path, method, host, pattern(exchange.path()))),
            self.0.hash_one((IdentityKind::Route, exchange.log_facts.route.as_deref())),
            self.0.hash_one((IdentityKind::Client, network(exchange.client.ip))),
        ]
    }

    /// The keys and their names. The names have no secrets that the log would not show.
    pub fn identity(&self, exchange: &Exchange, journal: &Journal) -> RequestIdentity {
        let path = pattern(exchange.path());
        // A path may hold a URL with a password: `/proxy/https://me:secret@shop.example/`.
        let path = named(exchange, &journal.redacted(&String::from_utf8_lossy(&path)));
        let route = exchange.log_facts.route.as_deref().unwrap_or_default();
        let names = [
            log_name(exchange, journal),
            format!("{path} (with any query)").into(),
            format!("route {route}").into(),
            format!("client {}", network_name(exchange.client.ip)).into(),
        ];
        RequestIdentity { keys: self.keys(exchange), names, is_batch: exchange.is_batch }
    }
}

/// The request itself, as the log shows it: `GET shop.example/cart?token=[redacted]`.
pub fn log_name(exchange: &Exchange, journal: &Journal) -> Arc<str> {
    named(exchange, &journal.redacted(&String::from_utf8_lossy(exchange.head.target()))).into()
}

fn named(exchange: &Exchange, path: &str) -> String {
    let [method, host] = [exchange.head.method(), exchange.host()].map(String::from_utf8_lossy);
    let url: String = host.chars().chain(path.chars()).take(MAX_URL).collect();
    format!("{method} {url}")
}

/// A path with `*` for each segment that is likely to vary: one with a digit or an escape, or a long one.
fn pattern(path: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(path.len());
    for (index, part) in path.split(|&byte| byte == b'/').enumerate() {
        if index > 0 {
            pattern.push(b'/');
        }
        let differs =
            part.len() > MAX_SEGMENT || part.iter().any(|byte| byte.is_ascii_digit() || *byte == b'%');
        pattern.extend_from_slice(if differs { b"*" } else { part });
    }
    pattern
}

fn network(address: IpAddr) -> IpAddr {
    match hostler_address::of_client(address) {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << (128 - NETWORK_V6))).into(),
        v4 => v4,
    }
}

pub(super) fn network_name(address: IpAddr) -> String {
    let network = network(address);
    let mut name = network.to_string();
    if network.is_ipv6() {
        // Writing to a String cannot fail.
        let _ = write!(name, "/{NETWORK_V6}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::tests::{exchange, journal};

    #[tokio::test]
    async fn the_names_of_a_request_show_no_secrets() {
        let mut exchange = exchange();
        let head = b"GET /https://me:secret@shop/?token=secret HTTP/1.1\r\nHost: a\r\n\r\n";
        exchange.head.parse(head, &hostler_wire::Limits::default()).unwrap();
        let names = Keyring::default().identity(&exchange, &journal()).names;
        assert!(names.iter().all(|name| !name.contains("secret")), "{names:?}");
        assert!(names[1].ends_with("@shop/ (with any query)"), "{names:?}");
    }

    #[test]
    fn paths_that_differ_in_numbers_alone_are_one_pattern() {
        let of = |path: &str| String::from_utf8(pattern(path.as_bytes())).unwrap();
        assert_eq!(of("/infinite/17"), of("/infinite/9f3c"));
        assert_eq!(of("/users/17/posts"), "/users/*/posts");
        assert_eq!(of("/about"), "/about");
        assert_eq!(of(&format!("/{}", "x".repeat(40))), "/*");
        assert_eq!((of("/"), of("*")), ("/".into(), "*".into()));
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        let name = |address: &str| network_name(address.parse().unwrap());
        assert_eq!(name("2001:db8:1:2:3::4"), "2001:db8:1:2::/64");
        assert_eq!(name("192.0.2.7"), "192.0.2.7");
        // Through NAT64.
        assert_eq!(name("64:ff9b::192.0.2.7"), "192.0.2.7");
    }
}
