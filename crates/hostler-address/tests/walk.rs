//! The address of the client: a table of cases, the limits of the walk, and properties that hold for any header.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::net::IpAddr;
use std::num::NonZeroUsize;

use hostler_address::{AddressHeader, AddressKind, AddressSource, ClientAddress, Peer, Trust};
use proptest::prelude::*;

fn trusting() -> Trust {
    let networks = ["10.0.0.0/8", "2001:db8:ff::/48"].iter().map(|net| net.parse().unwrap()).collect();
    Trust { networks, ..Trust::default() }
}

fn counting(hops: usize) -> Trust {
    Trust { hops: NonZeroUsize::new(hops), ..Trust::default() }
}

fn client(trust: &Trust, peer: &str, lines: &[&str]) -> ClientAddress {
    trust.client(Peer::Socket(peer.parse().unwrap()), lines.iter().map(|line| line.as_bytes()))
}

/// The address, the header it was found in, and whether it is doubtful.
fn shown(client: ClientAddress) -> String {
    let found = if client.source == AddressSource::Socket { "" } else { " <- header" };
    format!("{}{found}{}", client.ip, if client.doubtful { " ?" } else { "" })
}

#[test]
fn the_client_is_the_first_untrusted_address_from_the_right() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("198.51.100.7", &["8.8.8.8"], "198.51.100.7"),
        ("10.0.0.1", &["8.8.8.8"], "8.8.8.8 <- header"),
        ("10.0.0.1", &["6.6.6.6, 81.2.69.160, 10.9.9.9"], "81.2.69.160 <- header"),
        ("::ffff:10.0.0.1", &["8.8.8.8"], "8.8.8.8 <- header"),
        ("10.0.0.1", &["1.1.1.1", "81.2.69.160"], "81.2.69.160 <- header"),
        ("10.0.0.1", &[], "10.0.0.1"),
        ("10.0.0.1", &["10.1.1.1"], "10.1.1.1 <- header"),
        ("10.0.0.1", &["garbage"], "10.0.0.1 ?"),
    ];
    for (peer, lines, expected) in cases {
        assert_eq!(shown(client(&trusting(), peer, lines)), *expected, "{peer} {lines:?}");
    }
}

#[test]
fn an_invalid_entry_ends_the_walk() {
    let cases: &[(&[&str], &str)] = &[
        (&["1.2.3.4"], "1.2.3.4 <- header"),
        (&["1.2.3.4:5678"], "1.2.3.4 <- header"),
        (&["2001:db8::1"], "2001:db8::1 <- header"),
        (&["[2001:db8::1]:443"], "2001:db8::1 <- header"),
        (&["\"[2001:db8::1]\""], "2001:db8::1 <- header"),
        (&["::ffff:1.2.3.4"], "1.2.3.4 <- header"),
        (&["fe80::1%eth0"], "10.0.0.1 ?"),
        (&["010.0.0.1"], "10.0.0.1 ?"),
        (&["0x7f.1"], "10.0.0.1 ?"),
        (&["127.1"], "10.0.0.1 ?"),
        (&["2130706433"], "10.0.0.1 ?"),
        (&[" 1.2.3.4 ,"], "1.2.3.4 <- header"),
        (&["1.2.3.4, evil"], "10.0.0.1 ?"),
        (&["1.2.3.4, evil, 10.0.0.2"], "10.0.0.2 <- header ?"),
        (&["1.2.3.4, unknown, 10.0.0.2"], "10.0.0.2 <- header ?"),
        (&["1.2.3.4,, 10.0.0.2"], "10.0.0.2 <- header ?"),
        (&[""], "10.0.0.1"),
        (&[","], "10.0.0.1"),
        (&["8.8.8.8", "", ", "], "8.8.8.8 <- header"),
        (&["1.2.3.4\u{0}"], "10.0.0.1 ?"),
    ];
    for (lines, expected) in cases {
        assert_eq!(shown(client(&trusting(), "10.0.0.1", lines)), *expected, "{lines:?}");
    }
}

#[test]
fn a_private_or_documentation_address_is_not_global() {
    for (lines, kind) in [
        (&[][..], AddressKind::Private),
        (&["10.1.1.1"], AddressKind::Private),
        (&["192.168.1.1"], AddressKind::Private),
        (&["203.0.113.9"], AddressKind::Documentation),
        (&["8.8.8.8"], AddressKind::Global),
    ] {
        assert_eq!(AddressKind::of(client(&trusting(), "10.0.0.1", lines).ip), kind, "{lines:?}");
    }
}

#[test]
fn forwarded_is_another_header() {
    let trust = Trust { header: AddressHeader::Forwarded, ..trusting() };
    for (line, expected) in [
        ("for=\"[2001:db8::17]:4711\";proto=https, for=192.0.2.43", "192.0.2.43 <- header"),
        ("for=192.0.2.43, for=\"[2001:db8:ff::17]:4711\";proto=https", "192.0.2.43 <- header"),
        ("for=unknown", "10.0.0.1 ?"),
        ("for=_hidden", "10.0.0.1 ?"),
        ("proto=https", "10.0.0.1 ?"),
        ("for=1.1.1.1, proto=https;for=10.0.0.3", "1.1.1.1 <- header"),
        // A client's open quote does not hide the entry of the proxy.
        ("for=\"6.6.6.6, for=81.2.69.160", "81.2.69.160 <- header"),
        ("for=6.6.6.6;x=\", for=81.2.69.160;y=\"", "81.2.69.160 <- header"),
    ] {
        assert_eq!(shown(client(&trust, "10.0.0.1", &[line])), expected, "{line}");
    }
}

#[test]
fn the_proxy_that_names_the_client_says_whether_its_request_came_over_tls() {
    let trusting = Trust { header: AddressHeader::Forwarded, ..trusting() };
    let counting = Trust { header: AddressHeader::Forwarded, ..counting(2) };
    for (line, walked, counted) in [
        ("for=1.1.1.1;proto=https, for=10.0.0.2;proto=http", Some(true), Some(true)),
        (
            "for=6.6.6.6;proto=https, for=1.1.1.1;proto=http, for=10.0.0.2;proto=https",
            Some(false),
            Some(false),
        ),
        ("for=1.1.1.1, for=10.0.0.2;proto=https", None, None),
        ("for=_hidden;proto=https, for=10.0.0.2;proto=http", Some(true), Some(true)),
        // Too few entries: the request has not passed all proxies.
        ("for=1.1.1.1;proto=https", Some(true), None),
    ] {
        assert_eq!(client(&trusting, "10.0.0.1", &[line]).https, walked, "{line}");
        assert_eq!(client(&counting, "10.0.0.1", &[line]).https, counted, "{line}");
    }
    assert_eq!(client(&trusting, "198.51.100.7", &["for=1.1.1.1;proto=https"]).https, None);
}

#[test]
fn a_very_long_header_is_read_only_up_to_a_limit() {
    let stranger = vec!["8.8.8.8"; 10_000].join(",");
    assert_eq!(shown(client(&trusting(), "10.0.0.1", &[&stranger])), "8.8.8.8 <- header");
    let many = vec!["10.0.0.2"; 10_000].join(",");
    assert_eq!(shown(client(&trusting(), "10.0.0.1", &[&many])), "10.0.0.2 <- header ?");
    let lines = vec!["10.0.0.2"; 10_000];
    assert_eq!(shown(client(&trusting(), "10.0.0.1", &lines)), "10.0.0.2 <- header ?");
    let chain = |hops: usize| format!("8.8.8.8,{}", vec!["10.0.0.2"; hops].join(","));
    assert_eq!(shown(client(&trusting(), "10.0.0.1", &[&chain(31)])), "8.8.8.8 <- header");
    assert_eq!(shown(client(&trusting(), "10.0.0.1", &[&chain(32)])), "10.0.0.2 <- header ?");
    let nothing = ",".repeat(10_000);
    assert_eq!(shown(client(&trusting(), "10.0.0.1", &[&nothing])), "10.0.0.1 ?");
}

#[test]
fn an_entry_that_the_limit_cuts_is_ignored() {
    // The last 4096 bytes begin within the address: `1.2.69.160` would be a valid address too.
    for blanks in 4080..4100 {
        let line = format!("81.2.69.160{}", " ".repeat(blanks));
        let found = shown(client(&trusting(), "10.0.0.1", &[&line]));
        let whole = line.len() <= 4096;
        assert_eq!(found, if whole { "81.2.69.160 <- header" } else { "10.0.0.1 ?" }, "{blanks}");
    }
}

#[test]
fn trusted_hops_counts_proxies_from_the_right() {
    let cases: &[(usize, &[&str], &str)] = &[
        (1, &["6.6.6.6, 81.2.69.160"], "81.2.69.160 <- header"),
        (2, &["6.6.6.6, 81.2.69.160", "203.0.113.5"], "81.2.69.160 <- header"),
        (2, &["81.2.69.160, evil"], "198.51.100.7 ?"),
        (2, &["evil, 203.0.113.5"], "203.0.113.5 <- header ?"),
        // Too few entries: the request has not passed all proxies, so its header does not count.
        (2, &["8.8.8.8"], "198.51.100.7 ?"),
        (1, &[], "198.51.100.7 ?"),
        (40, &["8.8.8.8"], "198.51.100.7 ?"),
    ];
    for (hops, lines, expected) in cases {
        assert_eq!(shown(client(&counting(*hops), "198.51.100.7", lines)), *expected, "{hops} {lines:?}");
    }
    let one = Trust { header: AddressHeader::CfConnectingIp, ..counting(2) };
    assert_eq!(shown(client(&one, "198.51.100.7", &["81.2.69.160"])), "81.2.69.160 <- header");
}

#[test]
fn the_source_of_the_client_address_is_named() {
    let told = |trust: Trust, peer: Peer, line: &str| {
        trust.client(peer, [line.as_bytes()].into_iter()).source.as_str()
    };
    let (proxy, stranger) = ("10.0.0.1".parse().unwrap(), "8.8.8.8".parse().unwrap());
    assert_eq!(told(trusting(), Peer::Socket(proxy), "8.8.8.8"), "x-forwarded-for");
    assert_eq!(told(trusting(), Peer::Socket(proxy), "evil"), "socket");
    assert_eq!(told(trusting(), Peer::ProxyProtocol(stranger), "8.8.8.8"), "proxy-protocol");
    assert_eq!(told(trusting(), Peer::ProxyProtocol(proxy), "8.8.8.8"), "x-forwarded-for");
    for header in [
        AddressHeader::Forwarded,
        AddressHeader::XRealIp,
        AddressHeader::CfConnectingIp,
        AddressHeader::TrueClientIp,
    ] {
        let line = if header == AddressHeader::Forwarded { "for=8.8.8.8" } else { "8.8.8.8" };
        assert_eq!(told(Trust { header, ..trusting() }, Peer::Socket(proxy), line), header.name());
    }
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    let entry = prop_oneof![
        4 => any::<IpAddr>().prop_map(|ip| ip.to_string()),
        4 => any::<u16>().prop_map(|low| format!("10.0.{}.{}", low >> 8, low & 0xff)),
        1 => "[ -~]{0,20}",
    ];
    proptest::collection::vec(
        proptest::collection::vec(entry, 0..6).prop_map(|entries| entries.join(", ")),
        0..4,
    )
}

proptest! {
    #[test]
    fn an_untrusted_client_has_its_socket_address_with_any_fields(lines in lines(), peer in any::<IpAddr>()) {
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let found = client(&Trust::default(), &peer.to_string(), &lines);
        prop_assert_eq!(found, ClientAddress::of(Peer::Socket(peer)));
    }

    #[test]
    fn entries_left_of_the_client_change_nothing(lines in lines(), before in lines(), ip in any::<IpAddr>()) {
        let ip = ip.to_canonical();
        prop_assume!(!trusting().networks.iter().any(|net| net.contains(&ip)));
        let honest = format!("{ip}");
        let hops = ["10.0.0.7", "10.0.0.8"];
        let expected = client(&trusting(), "10.0.0.1", &[&honest, hops[0], hops[1]]);
        prop_assert_eq!(expected.ip, ip);
        let mut all: Vec<_> = before.iter().chain(&lines).map(String::as_str).collect();
        all.extend([honest.as_str(), hops[0], hops[1]]);
        prop_assert_eq!(client(&trusting(), "10.0.0.1", &all), expected);
        let joined = all.join(",");
        prop_assert_eq!(client(&trusting(), "10.0.0.1", &[&joined]), expected);
    }

    #[test]
    fn the_client_found_is_an_entry_or_the_peer(lines in lines()) {
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let found = client(&trusting(), "10.0.0.1", &lines);
        let named = |line: &&str| line.split(',').any(|entry| {
            entry.trim().parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical() == found.ip) || entry.contains(&found.ip.to_string())
        });
        prop_assert!(found.peer_trusted);
        prop_assert!(found.source == AddressSource::Socket || lines.iter().any(named), "{found:?}");
    }
}
