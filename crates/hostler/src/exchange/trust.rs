//! Who the client is: the socket's address, or what a trusted proxy says (contracts/lookups.md, section 5). Knows no requests
//! beyond their fields.

use std::net::{IpAddr, SocketAddr};

use hostler_wire::{Fields, Name, tokens};
use ipnet::IpNet;

/// What one header may hold before we stop reading: 32 hops and 4 kB are more than any honest chain.
const MOST_HOPS: usize = 32;
const MOST_BYTES: usize = 4096;

/// Whose word is taken, and where it is written.
#[derive(Debug, Clone)]
pub struct Trust {
    /// Networks whose forwarding headers are believed; empty: nobody's.
    pub networks: Vec<IpNet>,
    /// The one header that names the client.
    pub header: Name,
}

impl Default for Trust {
    fn default() -> Self {
        Self { networks: Vec::new(), header: Name::XForwardedFor }
    }
}

/// The outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress {
    /// The client, as far as anybody trustworthy knows.
    pub ip: IpAddr,
    /// The peer of the connection is trusted: its forwarding headers are passed on.
    pub peer_trusted: bool,
}

impl Trust {
    /// Walks the header from the right, over trusted hops, to the first that is not.
    pub fn client(&self, peer: IpAddr, fields: &Fields) -> ClientAddress {
        let peer = peer.to_canonical();
        if !self.covers(peer) {
            return ClientAddress { ip: peer, peer_trusted: false };
        }
        let mut client = peer;
        let hops = fields.all(self.header).rev().flat_map(|line| {
            // Only the end of an overlong line counts: the left is what a stranger wrote.
            let line = &line[line.len().saturating_sub(MOST_BYTES)..];
            line.rsplit(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|hop| !hop.is_empty())
        });
        for hop in hops.take(MOST_HOPS) {
            let Some(ip) = self.parse(hop) else { break };
            client = ip;
            if !self.covers(ip) {
                break;
            }
        }
        ClientAddress { ip: client, peer_trusted: true }
    }

    fn covers(&self, ip: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&ip))
    }

    fn parse(&self, hop: &[u8]) -> Option<IpAddr> {
        let text = std::str::from_utf8(hop).ok()?;
        match self.header {
            Name::Forwarded => forwarded_for(text).and_then(address),
            _ => address(text),
        }
    }
}

/// `for=` of one element of a `Forwarded` field (RFC 7239).
fn forwarded_for(element: &str) -> Option<&str> {
    let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let mut named = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    named.next().map(|(_, value)| value.trim())
}

/// An address with or without port, brackets and quotes; nothing that only some parsers would take for one.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    let ip = bare.parse::<IpAddr>().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))?;
    Some(ip.to_canonical())
}

/// The members of every line of a list field, for joining lines.
pub fn joined(fields: &Fields, name: Name) -> impl Iterator<Item = &[u8]> {
    fields.all(name).flat_map(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hostler_wire::{Limits, RequestHead};

    fn client(header: Name, peer: &str, lines: &[&str]) -> String {
        let networks = ["10.0.0.0/8", "2001:db8:ff::/48"].iter().map(|net| net.parse().unwrap()).collect();
        let fields: String = lines.iter().map(|line| format!("{}: {line}\r\n", header.as_str())).collect();
        let mut head = RequestHead::default();
        head.parse(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes(), &Limits::default())
            .unwrap();
        Trust { networks, header }.client(peer.parse().unwrap(), &head.fields).ip.to_string()
    }

    #[test]
    fn the_contracts_vectors() {
        let long = vec!["1.2.3.4"; 10_000].join(",");
        let cases: &[(&str, &[&str], &str)] = &[
            ("198.51.100.7", &["8.8.8.8"], "198.51.100.7"),
            ("10.0.0.1", &["8.8.8.8"], "8.8.8.8"),
            ("10.0.0.1", &["6.6.6.6, 81.2.69.160, 10.9.9.9"], "81.2.69.160"),
            ("::ffff:10.0.0.1", &["8.8.8.8"], "8.8.8.8"),
            ("10.0.0.1", &["1.1.1.1", "81.2.69.160"], "81.2.69.160"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["10.1.1.1"], "10.1.1.1"),
            ("10.0.0.1", &["garbage"], "10.0.0.1"),
            ("10.0.0.1", &["1.2.3.4:5678"], "1.2.3.4"),
            ("10.0.0.1", &["2001:db8::1"], "2001:db8::1"),
            ("10.0.0.1", &["[2001:db8::1]:443"], "2001:db8::1"),
            ("10.0.0.1", &["\"[2001:db8::1]\""], "2001:db8::1"),
            ("10.0.0.1", &["::ffff:1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", &["fe80::1%eth0"], "10.0.0.1"),
            ("10.0.0.1", &["010.0.0.1"], "10.0.0.1"),
            ("10.0.0.1", &["0x7f.1"], "10.0.0.1"),
            ("10.0.0.1", &["127.1"], "10.0.0.1"),
            ("10.0.0.1", &["2130706433"], "10.0.0.1"),
            ("10.0.0.1", &[" 1.2.3.4 ,"], "1.2.3.4"),
            ("10.0.0.1", &[""], "10.0.0.1"),
            ("10.0.0.1", &["1.2.3.4, evil"], "10.0.0.1"),
            ("10.0.0.1", &["1.2.3.4, evil, 10.0.0.2"], "10.0.0.2"),
            ("2001:db8:ff::1", &["9.9.9.9"], "9.9.9.9"),
            ("10.0.0.1", &[&long], "1.2.3.4"),
        ];
        for (peer, lines, expected) in cases {
            assert_eq!(client(Name::XForwardedFor, peer, lines), *expected, "{peer} {:.60?}", lines);
        }
    }

    #[test]
    fn forwarded_is_read_as_rfc_7239_writes_it() {
        let cases: &[(&str, &str)] = &[
            ("for=192.0.2.43", "192.0.2.43"),
            ("For=\"[2001:db8::17]:4711\";proto=https", "2001:db8::17"),
            ("for=1.1.1.1, proto=https;for=192.0.2.43", "192.0.2.43"),
            ("for=unknown", "10.0.0.1"),
            ("for=_hidden", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
        ];
        for (value, expected) in cases {
            assert_eq!(client(Name::Forwarded, "10.0.0.1", &[value]), *expected, "{value}");
        }
    }
}
