//! Which server has which key: the consistent hashing of nginx (ketama), so that adding or removing a server moves few
//! keys. Knows only the names of servers.

use std::collections::HashMap;
use std::net::{Ipv6Addr, SocketAddr};

use pingora_ketama::{Bucket, Continuum};
use sha1::{Digest, Sha1};

/// The servers, by their index in the settings.
pub(super) struct Ring {
    points: Continuum,
    places: HashMap<SocketAddr, usize>,
}

impl Ring {
    pub fn new(names: &[Box<str>]) -> Self {
        let named = names.iter().map(|name| stand_in(name)).enumerate();
        let places: HashMap<_, _> = named.map(|(place, address)| (address, place)).collect();
        let buckets: Vec<_> = places.keys().map(|address| Bucket::new(*address, 1)).collect();
        Self { points: Continuum::new(&buckets), places }
    }

    pub fn of(&self, key: &[u8]) -> usize {
        self.points.node(key).and_then(|address| self.places.get(&address)).copied().unwrap_or_default()
    }
}

/// An address made from the name, because the ring takes only addresses. The real address of a name may change.
fn stand_in(name: &str) -> SocketAddr {
    let digest = Sha1::digest(name.as_bytes());
    let mut octets = [0; 16];
    octets.copy_from_slice(&digest[..16]);
    (Ipv6Addr::from(octets), u16::from_be_bytes([digest[16], digest[17]])).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<Box<str>> {
        (0..count).map(|at| format!("cache{at}.example:11211").into()).collect()
    }

    fn keys() -> impl Iterator<Item = String> {
        (0..10_000).map(|at| format!("example.org/products/{at}"))
    }

    #[test]
    fn each_server_has_a_share_of_the_keys_in_any_order_of_names() {
        let names = names(4);
        let turned: Vec<_> = names.iter().rev().cloned().collect();
        let (ring, other) = (Ring::new(&names), Ring::new(&turned));
        let mut shares = [0; 4];
        for key in keys() {
            shares[ring.of(key.as_bytes())] += 1;
            assert_eq!(names[ring.of(key.as_bytes())], turned[other.of(key.as_bytes())]);
        }
        assert!(shares.iter().all(|share| (1500..3700).contains(share)), "{shares:?}");
    }

    #[test]
    fn a_new_server_takes_keys_from_the_others_and_moves_none_between_them() {
        let (names, more) = (names(4), self::names(5));
        let (before, after) = (Ring::new(&names), Ring::new(&more));
        let moved: Vec<_> =
            keys().filter(|key| names[before.of(key.as_bytes())] != more[after.of(key.as_bytes())]).collect();
        assert!((1000..3500).contains(&moved.len()), "{}", moved.len());
        assert!(moved.iter().all(|key| after.of(key.as_bytes()) == 4));
    }

    #[test]
    fn one_server_has_all_keys() {
        let ring = Ring::new(&names(1));
        assert!(keys().all(|key| ring.of(key.as_bytes()) == 0));
    }
}
