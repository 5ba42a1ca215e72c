//! The key of a request, under which it shares slots or is limited: its client, crawler, header field or cookie. Knows no queue and no
//! limit.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use hostler_config::FairBy;

use super::crawler;
use super::sticky::cookies;
use crate::exchange::{Exchange, KeyName, KeyWords};

/// Which addresses are one client: the prefix lengths of their networks.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientNetwork {
    v4: u8,
    v6: u8,
}

impl ClientNetwork {
    /// A provider gives a site a network of this size (RFC 6177).
    pub const SITE: Self = Self { v4: 24, v6: 48 };
    /// An address; of IPv6 the network of one link.
    pub const HOST: Self = Self { v4: 32, v6: 64 };

    pub fn of(self, address: IpAddr) -> IpAddr {
        match address.to_canonical() {
            IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & (u32::MAX << (32 - self.v4))).into(),
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << (128 - self.v6))).into(),
        }
    }

    fn name(self, network: IpAddr) -> KeyName {
        let (prefix, whole) = if network.is_ipv4() { (self.v4, 32) } else { (self.v6, 128) };
        KeyName::Client { network, prefix: Some(prefix).filter(|prefix| *prefix < whole) }
    }
}

/// What a key is made of.
#[derive(Hash)]
pub(super) enum KeyPart<'a> {
    Network(IpAddr),
    Crawler(AnyCase<'a>),
    Header(&'a Arc<str>, &'a [u8]),
    Cookie(&'a Arc<str>, &'a [u8]),
    /// The request has none of these.
    None,
}

/// A name that is the same in any case of letters: `SEMrushBot` and `SemrushBot` are one crawler.
pub(super) struct AnyCase<'a>(&'a str);

impl Hash for AnyCase<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.bytes().for_each(|byte| state.write_u8(byte.to_ascii_lowercase()));
    }
}

impl<'a> KeyPart<'a> {
    /// Makes ready what the entries of this list need.
    pub fn prepare(by: &[FairBy]) {
        crawler::prepare(by.contains(&FairBy::Crawler));
    }

    /// The first of the list that the request has.
    pub fn of(by: &'a [FairBy], client: ClientNetwork, exchange: &'a Exchange) -> Self {
        let fields = &exchange.head.fields;
        let of = |by: &'a FairBy| match by {
            FairBy::Client => Some(Self::Network(client.of(exchange.client.ip))),
            FairBy::Crawler => crawler::of(fields).map(|name| Self::Crawler(AnyCase(name))),
            FairBy::Header(name) => fields.get(name).map(|value| Self::Header(name, value)),
            FairBy::Cookie(name) => {
                cookies(fields, name).find(|value| !value.is_empty()).map(|value| Self::Cookie(name, value))
            }
        };
        by.iter().find_map(of).unwrap_or(Self::None)
    }

    /// What the key is, without the value of a header field or a cookie. `client`: as given to [`of`](Self::of).
    pub fn name(&self, client: ClientNetwork) -> KeyName {
        match self {
            Self::Network(network) => client.name(*network),
            Self::Crawler(AnyCase(name)) => KeyName::Crawler((*name).into()),
            Self::Header(name, _) => KeyName::Header((*name).clone()),
            Self::Cookie(name, _) => KeyName::Cookie((*name).clone()),
            Self::None => KeyName::None,
        }
    }

    /// In words. `key`: the hash of this key.
    pub fn words(&self, client: ClientNetwork, key: u64) -> String {
        KeyWords { name: &self.name(client), key }.to_string()
    }
}
