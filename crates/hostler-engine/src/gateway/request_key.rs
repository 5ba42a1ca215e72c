//! The key of a request, under which it shares slots or is limited: its client, crawler, header field or cookie. Knows no queue and no
//! limit.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use hostler_config::FairBy;
use hostler_wire::{Fields, split_host};
use percent_encoding::percent_decode;

use super::crawler::{self, NamesOfNetworks};
use super::field_lines;
use super::sticky::cookies;
use crate::exchange::{Exchange, KeyName, KeyWords};

/// Fields that have one value. Of several lines, Node.js gives the app the first one. If the others counted, a client with one valid key would
/// have a new key for each second line that it makes up.
const ONE_VALUE: [&str; 5] = ["authorization", "proxy-authorization", "user-agent", "referer", "from"];
/// Those of them whose value is a scheme with credentials, such as `Bearer abc`.
const CREDENTIALS: [&str; 2] = ["authorization", "proxy-authorization"];

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
        match hostler_address::of_client(address) {
            IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & (u32::MAX << (32 - self.v4))).into(),
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << (128 - self.v6))).into(),
        }
    }

    fn name(self, network: IpAddr) -> KeyName {
        let (prefix, whole) = if network.is_ipv4() { (self.v4, 32) } else { (self.v6, 128) };
        KeyName::Client { network, prefix: Some(prefix).filter(|prefix| *prefix < whole) }
    }
}

/// What gives requests their keys.
#[derive(Debug)]
pub(super) struct RequestKeys {
    by: Box<[FairBy]>,
    client: ClientNetwork,
    /// Which crawler each network said it is. `None`: the list does not ask for crawlers.
    names: Option<Arc<NamesOfNetworks>>,
}

/// What a key is made of.
#[derive(Hash)]
pub(super) enum KeyPart<'a> {
    Network(IpAddr),
    Crawler(AnyCase<'a>),
    /// A crawler whose network came under another name before, if no other entry of the list fits the request.
    OtherCrawlers,
    Header(FieldName<'a>, Cow<'a, [u8]>),
    Cookie(&'a Arc<str>, Cow<'a, [u8]>),
    /// No entry of the list fits the request.
    None,
}

/// A name that is the same in any case of letters: `SEMrushBot` and `SemrushBot` are one crawler.
pub(super) struct AnyCase<'a>(Cow<'a, str>);

impl Hash for AnyCase<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.bytes().for_each(|byte| state.write_u8(byte.to_ascii_lowercase()));
    }
}

/// The name of a header field as the configuration writes it. Written in another case of letters it makes the same key.
pub(super) struct FieldName<'a>(&'a Arc<str>);

impl Hash for FieldName<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        AnyCase(Cow::Borrowed(self.0)).hash(state);
    }
}

impl RequestKeys {
    pub fn new(by: &[FairBy], client: ClientNetwork) -> Self {
        Self { by: by.into(), client, names: names(by, None) }
    }

    /// The keys by another list. It shares the networks and the known names of crawlers with this one.
    pub fn with(&self, by: &[FairBy]) -> Self {
        Self { by: by.into(), client: self.client, names: names(by, self.names.as_ref()) }
    }

    /// The entries of the list, in order.
    pub fn by(&self) -> &[FairBy] {
        &self.by
    }

    /// The key by the first entry of the list that fits the request. To be asked only once for each request.
    pub fn of<'a>(&'a self, exchange: &'a Exchange) -> KeyPart<'a> {
        let fields = &exchange.head.fields;
        let client = || self.client.of(exchange.client.ip);
        let mut has_other_name = false;
        let of = |by: &'a FairBy| match by {
            FairBy::Client => Some(KeyPart::Network(client())),
            FairBy::Crawler => {
                let name = crawler::of(fields).map(AnyCase)?;
                has_other_name = !self.names.as_ref()?.is_first(client(), &name);
                (!has_other_name).then_some(KeyPart::Crawler(name))
            }
            FairBy::Header(name) => header(fields, name).map(|value| KeyPart::Header(FieldName(name), value)),
            FairBy::Cookie(name) => {
                let mut values = cookies(fields, name).map(cookie).filter(|value| !value.is_empty());
                values.next().map(|value| KeyPart::Cookie(name, value))
            }
        };
        let found = self.by.iter().find_map(of);
        found.unwrap_or(if has_other_name { KeyPart::OtherCrawlers } else { KeyPart::None })
    }

    /// What the key is, without the value of a header field or a cookie.
    pub fn name(&self, part: &KeyPart<'_>) -> KeyName {
        match part {
            KeyPart::Network(network) => self.client.name(*network),
            KeyPart::Crawler(AnyCase(name)) => KeyName::Crawler((**name).into()),
            KeyPart::OtherCrawlers => KeyName::OtherCrawlers,
            KeyPart::Header(FieldName(name), _) => KeyName::Header((*name).clone()),
            KeyPart::Cookie(name, _) => KeyName::Cookie((*name).clone()),
            KeyPart::None => KeyName::None,
        }
    }

    /// In words. `key`: the hash of this key.
    pub fn words(&self, part: &KeyPart<'_>, key: u64) -> String {
        KeyWords { name: &self.name(part), key }.to_string()
    }
}

/// Where the names of crawlers are remembered. `known`: those of another list.
fn names(by: &[FairBy], known: Option<&Arc<NamesOfNetworks>>) -> Option<Arc<NamesOfNetworks>> {
    let has_crawlers = by.contains(&FairBy::Crawler);
    crawler::prepare(has_crawlers);
    has_crawlers.then(|| known.cloned().unwrap_or_else(|| Arc::new(NamesOfNetworks::new())))
}

/// The value of a field. An empty one says nothing, so the request counts as one without this field.
fn header<'a>(fields: &'a Fields, name: &'a str) -> Option<Cow<'a, [u8]>> {
    let mut lines = fields.values(name);
    let first = lines.next()?;
    let is_one_of = |names: &[&str]| names.iter().any(|one| one.eq_ignore_ascii_case(name));
    if lines.next().is_none() || is_one_of(&ONE_VALUE) {
        let value = Some(first).filter(|value| !value.is_empty())?;
        return Some(match value {
            value if is_one_of(&CREDENTIALS) => credentials(value),
            value if is_one_of(&["host"]) => host(value),
            value => Cow::Borrowed(value),
        });
    }
    let mut value = Vec::new();
    field_lines::join(fields, name, &mut value);
    fields.values(name).any(|line| !line.is_empty()).then_some(Cow::Owned(value))
}

/// Credentials as apps read them: the case of the scheme does not count (RFC 9110 section 11.1), nor does the number of spaces behind it. A
/// value without a scheme is as it is.
fn credentials(written: &[u8]) -> Cow<'_, [u8]> {
    let Some(space) = memchr::memchr(b' ', written) else { return Cow::Borrowed(written) };
    let (scheme, rest) = written.split_at(space);
    Cow::Owned([&*scheme.to_ascii_lowercase(), b" ", rest.trim_ascii_start()].concat())
}

/// A host as routes compare it: without the port and the final dot, in any case of letters.
fn host(written: &[u8]) -> Cow<'_, [u8]> {
    let (name, _) = split_host(written);
    Cow::Owned(name.strip_suffix(b".").unwrap_or(name).to_ascii_lowercase())
}

/// The value of a cookie as apps read it. Written in another way, it is the same key.
fn cookie(written: &[u8]) -> Cow<'_, [u8]> {
    let inner = written.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    percent_decode(inner.unwrap_or(written)).into()
}

#[cfg(test)]
mod tests {
    use std::hash::DefaultHasher;

    use hostler_wire::{Limits, RequestHead};

    use super::*;

    #[test]
    fn the_name_of_a_field_makes_the_same_key_in_any_case_of_letters() {
        let key = |name: &str, value: &'static str| {
            let mut hasher = DefaultHasher::new();
            let name = name.into();
            KeyPart::Header(FieldName(&name), Cow::Borrowed(value.as_bytes())).hash(&mut hasher);
            hasher.finish()
        };
        assert_eq!(key("X-Api-Key", "a"), key("x-api-key", "a"));
        assert_ne!(key("X-Api-Key", "a"), key("X-Api-Key", "A"));
        assert_ne!(key("X-Api-Key", "a"), key("X-Api-Keys", "a"));
    }

    #[test]
    fn clients_behind_nat64_are_the_clients_that_they_are_without_it() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for (network, behind, without) in [
            (ClientNetwork::HOST, "64:ff9b::192.0.2.1", "192.0.2.1"),
            (ClientNetwork::SITE, "64:ff9b::192.0.2.1", "192.0.2.0"),
            (ClientNetwork::HOST, "64:ff9b:0:1::1", "64:ff9b:0:1::"),
            (ClientNetwork::HOST, "2002:c000:201:7::1", "2002:c000:201:7::"),
        ] {
            assert_eq!(network.of(ip(behind)), ip(without));
        }
    }

    #[test]
    fn a_host_makes_the_same_key_however_it_is_written() {
        let mut head = RequestHead::default();
        for written in ["shop.example", "Shop.EXAMPLE", "shop.example.", "shop.example:8443"] {
            let text = format!("GET / HTTP/1.1\r\nHost: {written}\r\n\r\n");
            head.parse(text.as_bytes(), &Limits::default()).unwrap();
            assert_eq!(header(&head.fields, "Host").as_deref(), Some(&b"shop.example"[..]), "{written}");
        }
    }
}
