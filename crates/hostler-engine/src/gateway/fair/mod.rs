//! The keys under which requests share the slots of a fair pool, and what each key has cost lately. The pool decides whose
//! request is next: it knows only the hash of a key, and this module knows no queue.

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use hostler_config::FairBy;
use hostler_dispatch::FairKey;
use hostler_wire::Name;
use serde::Serialize;

use super::crawler;
use super::sticky::cookies;
use crate::exchange::{Exchange, FairCharge, FairKeyView, KeyCosts, clock};

/// The prefix lengths of the networks that count as one client. A provider gives a site a network of this size (RFC 6177).
const NETWORK_V4: u32 = 24;
const NETWORK_V6: u32 = 48;

/// What gives the requests of one pool their keys, and what the keys have cost.
#[derive(Debug)]
pub struct FairKeys {
    by: Box<[FairBy]>,
    /// A random one, so that clients cannot choose keys that collide.
    hasher: RandomState,
    costs: Arc<KeyCosts>,
}

/// A fair pool in the status.
#[derive(Debug, Clone, Serialize)]
pub struct FairView {
    /// What gives requests their keys, as in the configuration.
    pub by: Vec<String>,
    /// The keys that have cost the most in the last minute.
    pub keys: Vec<FairKeyView>,
}

/// What a key is made of.
#[derive(Hash)]
enum KeyPart<'a> {
    Network(IpAddr),
    Crawler(&'a str),
    Header(&'a str, &'a [u8]),
    Cookie(&'a str, &'a [u8]),
    None,
}

impl FairKeys {
    /// `None` if the list is empty: the pool is not fair. `before`: those of the same pool before a reload.
    pub fn new(by: &[FairBy], before: Option<&Arc<Self>>) -> Option<Arc<Self>> {
        if let Some(same) = before.filter(|before| *before.by == *by) {
            return Some(same.clone());
        }
        let new = || Self {
            by: by.into(),
            hasher: RandomState::new(),
            costs: Arc::new(KeyCosts::new(clock::now())),
        };
        (!by.is_empty()).then(|| Arc::new(new()))
    }

    /// The key of a request, which the pool gets. The exchange charges it at its end.
    pub(super) fn of(&self, exchange: &mut Exchange) -> FairKey {
        if let Some(charge) = &exchange.log_facts.fair {
            return FairKey::of(charge.key);
        }
        let key = self.hasher.hash_one(self.part(exchange));
        let words = (!self.costs.knows(key)).then(|| self.words(exchange, key).into());
        let charge = FairCharge { costs: self.costs.clone(), key, words };
        exchange.log_facts.fair = Some(Arc::new(charge));
        FairKey::of(key)
    }

    fn part<'a>(&'a self, exchange: &'a Exchange) -> KeyPart<'a> {
        let fields = &exchange.head.fields;
        let of = |by: &'a FairBy| match by {
            FairBy::Client => Some(KeyPart::Network(network(exchange.client.ip))),
            FairBy::Crawler => {
                crawler::name(std::str::from_utf8(fields.first(Name::UserAgent)?).ok()?).map(KeyPart::Crawler)
            }
            FairBy::Header(name) => fields.get(name).map(|value| KeyPart::Header(name, value)),
            FairBy::Cookie(name) => cookies(fields, name)
                .find(|value| !value.is_empty())
                .map(|value| KeyPart::Cookie(name, value)),
        };
        self.by.iter().find_map(of).unwrap_or(KeyPart::None)
    }

    /// The key in words, without the value of a header field or a cookie: it may be a secret.
    fn words(&self, exchange: &Exchange, key: u64) -> String {
        match self.part(exchange) {
            KeyPart::Network(ip) => network_name(ip),
            KeyPart::Crawler(name) => format!("crawler {name}"),
            KeyPart::Header(name, _) => format!("header {name} #{:06x}", key & 0xFF_FFFF),
            KeyPart::Cookie(name, _) => format!("cookie {name} #{:06x}", key & 0xFF_FFFF),
            KeyPart::None => "no key".into(),
        }
    }

    /// What the keys have cost, for the ledger.
    pub fn costs(&self) -> &KeyCosts {
        &self.costs
    }

    /// What the keys have cost.
    pub fn view(&self) -> FairView {
        let by = self.by.iter().map(ToString::to_string).collect();
        FairView { by, keys: self.costs.view(clock::now()) }
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & (u32::MAX << (32 - NETWORK_V4))).into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << (128 - NETWORK_V6))).into(),
    }
}

fn network_name(network: IpAddr) -> String {
    let mut name = format!("client {network}");
    // Writing to a String cannot fail.
    let _ = write!(name, "/{}", if network.is_ipv4() { NETWORK_V4 } else { NETWORK_V6 });
    name
}

#[cfg(test)]
mod tests;
