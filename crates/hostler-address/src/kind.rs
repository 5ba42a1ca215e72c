//! What an address is used for, by IANA's registries of special-purpose addresses (as of October 2026), and the IPv4
//! address that an IPv6 address may contain. Knows no places.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is used for. Only [`AddressKind::Global`] addresses have a place on earth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressKind {
    /// A public address on the internet.
    Global,
    /// In a private network (RFC 1918, RFC 4193; site-local addresses, RFC 3879).
    Private,
    /// Between a provider and its customers: carrier-grade NAT (RFC 6598).
    Shared,
    /// This machine.
    Loopback,
    /// On the local link.
    LinkLocal,
    /// The unspecified address.
    Unspecified,
    /// For documentation (RFC 5737, RFC 3849, RFC 9637).
    Documentation,
    /// For measurements of devices (RFC 2544, RFC 5180).
    Benchmarking,
    /// For groups of receivers.
    Multicast,
    /// For all hosts on the local link.
    Broadcast,
    /// Protocols use it among themselves, or to carry other addresses.
    Protocol,
    /// Not assigned yet.
    Reserved,
}

impl AddressKind {
    /// What this address, or the IPv4 address in it, is used for.
    pub fn of(ip: IpAddr) -> Self {
        match plain(ip) {
            IpAddr::V4(ip) => of_v4(ip),
            IpAddr::V6(ip) => of_v6(ip),
        }
    }

    /// Its name, as in responses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Private => "private",
            Self::Shared => "shared",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Unspecified => "unspecified",
            Self::Documentation => "documentation",
            Self::Benchmarking => "benchmarking",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::Protocol => "protocol",
            Self::Reserved => "reserved",
        }
    }

    /// Whether a database can know its place. Some databases have wrong entries for other kinds.
    pub const fn has_place(self) -> bool {
        matches!(self, Self::Global)
    }
}

/// The IPv4 address that an IPv6 address contains: mapped (RFC 4291 section 2.5.5.2), through NAT64 (RFC 6052), 6to4 (RFC
/// 3056) or Teredo (RFC 4380). Any other address is returned as it is.
pub fn plain(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = ip else { return ip };
    let [first, second, third, fourth, fifth, sixth, seventh, eighth] = v6.segments();
    match (first, second) {
        (0, 0) => ip.to_canonical(),
        (0x64, 0xff9b) if (third, fourth, fifth, sixth) == (0, 0, 0, 0) => v4(seventh, eighth),
        (0x2001, 0) => v4(!seventh, !eighth),
        (0x2002, _) => v4(second, third),
        _ => ip,
    }
}

/// The address that a client has. IPv4 clients that come through NAT64 (RFC 6052) or as mapped addresses share one network of IPv6, so each has
/// its IPv4 address. Any other address is returned as it is.
pub fn of_client(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) if v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0] => plain(ip),
        _ => ip.to_canonical(),
    }
}

fn v4(high: u16, low: u16) -> IpAddr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into()
}

/// Blocks of services that the registry calls globally reachable (AS112, AMT) are `Global`.
fn of_v4(ip: Ipv4Addr) -> AddressKind {
    match ip.octets() {
        [0, 0, 0, 0] => AddressKind::Unspecified,
        [0, ..] => AddressKind::Reserved,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressKind::Private,
        [100, 64..=127, ..] => AddressKind::Shared,
        [127, ..] => AddressKind::Loopback,
        [169, 254, ..] => AddressKind::LinkLocal,
        // This includes two anycast addresses that are reachable, because they belong to no single host, and the former
        // relay of 6to4.
        [192, 0, 0, _] | [192, 88, 99, _] => AddressKind::Protocol,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => AddressKind::Documentation,
        [198, 18..=19, ..] => AddressKind::Benchmarking,
        [255, 255, 255, 255] => AddressKind::Broadcast,
        [224..=239, ..] => AddressKind::Multicast,
        [240..=255, ..] => AddressKind::Reserved,
        _ => AddressKind::Global,
    }
}

fn of_v6(ip: Ipv6Addr) -> AddressKind {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressKind::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        // Translation within a network (RFC 8215), discard-only (RFC 6666), and dummy addresses (RFC 9780).
        [0x64, 0xff9b, 1, ..] | [0x100, 0, 0, 0 | 1, ..] => AddressKind::Protocol,
        [0x2001, 2, 0, ..] => AddressKind::Benchmarking,
        [0x2001, 0xdb8, ..] | [0x3fff, ..=0x0fff, ..] => AddressKind::Documentation,
        // The IETF's own block: hashes in the form of addresses (ORCHID), drones, anycast.
        [0x2001, ..=0x01ff, ..] => AddressKind::Protocol,
        // Segment routing (RFC 9602).
        [0x5f00, ..] => AddressKind::Protocol,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressKind::Private,
        [0xfe80..=0xfebf, ..] => AddressKind::LinkLocal,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        // All global unicast addresses.
        [0x2000..=0x3fff, ..] => AddressKind::Global,
        _ => AddressKind::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every block of the two registries, multicast, and blocks that are deprecated or not assigned.
    const BLOCKS: &[(&str, AddressKind)] = &[
        ("0.0.0.0/32", AddressKind::Unspecified),
        ("0.0.0.1/32", AddressKind::Reserved),
        ("0.128.0.0/9", AddressKind::Reserved),
        ("10.0.0.0/8", AddressKind::Private),
        ("100.64.0.0/10", AddressKind::Shared),
        ("127.0.0.0/8", AddressKind::Loopback),
        ("169.254.0.0/16", AddressKind::LinkLocal),
        ("172.16.0.0/12", AddressKind::Private),
        ("192.0.0.0/24", AddressKind::Protocol),
        ("192.0.0.0/29", AddressKind::Protocol),
        ("192.0.0.8/32", AddressKind::Protocol),
        ("192.0.0.9/32", AddressKind::Protocol),
        ("192.0.0.10/32", AddressKind::Protocol),
        ("192.0.0.170/31", AddressKind::Protocol),
        ("192.0.2.0/24", AddressKind::Documentation),
        ("192.31.196.0/24", AddressKind::Global),
        ("192.52.193.0/24", AddressKind::Global),
        ("192.88.99.0/24", AddressKind::Protocol),
        ("192.168.0.0/16", AddressKind::Private),
        ("192.175.48.0/24", AddressKind::Global),
        ("198.18.0.0/15", AddressKind::Benchmarking),
        ("198.51.100.0/24", AddressKind::Documentation),
        ("203.0.113.0/24", AddressKind::Documentation),
        ("224.0.0.0/4", AddressKind::Multicast),
        ("240.0.0.0/5", AddressKind::Reserved),
        ("255.255.255.254/32", AddressKind::Reserved),
        ("255.255.255.255/32", AddressKind::Broadcast),
        ("::/128", AddressKind::Unspecified),
        ("::1/128", AddressKind::Loopback),
        ("::2/128", AddressKind::Reserved),
        ("::ffff:0:0:0/96", AddressKind::Reserved),
        ("64:ff9b:1::/48", AddressKind::Protocol),
        ("100::/64", AddressKind::Protocol),
        ("100:0:0:1::/64", AddressKind::Protocol),
        ("2001:1::1/128", AddressKind::Protocol),
        ("2001:1::2/128", AddressKind::Protocol),
        ("2001:1::3/128", AddressKind::Protocol),
        ("2001:2::/48", AddressKind::Benchmarking),
        ("2001:3::/32", AddressKind::Protocol),
        ("2001:4:112::/48", AddressKind::Protocol),
        ("2001:10::/28", AddressKind::Protocol),
        ("2001:20::/28", AddressKind::Protocol),
        ("2001:30::/28", AddressKind::Protocol),
        ("2001:100::/24", AddressKind::Protocol),
        ("2001:db8::/32", AddressKind::Documentation),
        ("2620:4f:8000::/48", AddressKind::Global),
        ("3fff::/20", AddressKind::Documentation),
        ("5f00::/16", AddressKind::Protocol),
        ("fc00::/7", AddressKind::Private),
        ("fe80::/10", AddressKind::LinkLocal),
        ("fec0::/10", AddressKind::Private),
        ("ff00::/8", AddressKind::Multicast),
        ("4000::/4", AddressKind::Reserved),
    ];

    #[test]
    fn each_block_of_the_registries_is_known_from_its_first_address_to_its_last() {
        for (block, kind) in BLOCKS {
            let block: ipnet::IpNet = block.parse().unwrap();
            for ip in [block.network(), block.broadcast()] {
                assert_eq!(AddressKind::of(ip), *kind, "{ip} in {block}");
            }
        }
    }

    #[test]
    fn addresses_next_to_a_block_are_outside_it() {
        let neighbours = [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.88.98.255",
            "192.88.100.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "2001:200::",
            "2001:db7:ffff::",
            "2001:db9::",
            "2003::",
            "2000::",
            "3fff:1000::",
            "3ffe:ffff::",
        ];
        for ip in neighbours {
            assert_eq!(AddressKind::of(ip.parse().unwrap()), AddressKind::Global, "{ip}");
        }
    }

    #[test]
    fn an_address_that_embeds_another_has_the_kind_of_the_embedded_one() {
        let cases = [
            ("::ffff:81.2.69.160", "81.2.69.160", AddressKind::Global),
            ("::ffff:10.0.0.1", "10.0.0.1", AddressKind::Private),
            ("64:ff9b::5102:45a0", "81.2.69.160", AddressKind::Global),
            ("64:ff9b::a00:1", "10.0.0.1", AddressKind::Private),
            ("2002:5102:45a0::1", "81.2.69.160", AddressKind::Global),
            ("2002:a00:1::1", "10.0.0.1", AddressKind::Private),
            // The example of RFC 4380 section 4: client 192.0.2.45.
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "192.0.2.45", AddressKind::Documentation),
            ("2001:0:4136:e378:8000:63bf:aefd:ba5f", "81.2.69.160", AddressKind::Global),
            ("64:ff9b:0:1::5102:45a0", "64:ff9b:0:1::5102:45a0", AddressKind::Reserved),
            ("::5102:45a0", "::5102:45a0", AddressKind::Reserved),
            ("2001:db8::1", "2001:db8::1", AddressKind::Documentation),
        ];
        for (ip, within, kind) in cases {
            let ip = ip.parse().unwrap();
            assert_eq!((plain(ip), AddressKind::of(ip)), (within.parse().unwrap(), kind), "{ip}");
        }
    }

    proptest! {
        #[test]
        fn ipv4_kinds_agree_with_the_standard_library(ip in any::<Ipv4Addr>(), narrow in any::<bool>()) {
            // Half of the addresses are in the special blocks. Of random addresses, nearly all are global.
            let ip = if narrow { Ipv4Addr::from_bits(ip.to_bits() | 0xe000_0000) } else { ip };
            let kind = AddressKind::of(ip.into());
            prop_assert_eq!(kind == AddressKind::Private, ip.is_private());
            prop_assert_eq!(kind == AddressKind::Loopback, ip.is_loopback());
            prop_assert_eq!(kind == AddressKind::LinkLocal, ip.is_link_local());
            prop_assert_eq!(kind == AddressKind::Multicast, ip.is_multicast());
            prop_assert_eq!(kind == AddressKind::Documentation, ip.is_documentation());
            prop_assert_eq!(kind == AddressKind::Broadcast, ip.is_broadcast());
        }

        #[test]
        fn an_embedded_address_embeds_no_other(ip in any::<IpAddr>()) {
            prop_assert_eq!(plain(plain(ip)), plain(ip));
            prop_assert!(!(ip.is_loopback() || ip.is_multicast() || ip.is_unspecified()) || !AddressKind::of(ip).has_place());
        }
    }
}
