//! Which proxies may name a client: a walk over the entries of a forwarding header from the right, as long as they are
//! trusted. Knows no requests, only the lines of one field.

use std::net::IpAddr;
use std::num::NonZeroUsize;

use ipnet::IpNet;

use super::{AddressHeader, hop};

/// The most entries and bytes of a header that are read. No real chain of proxies has more.
const MOST_ENTRIES: usize = 32;
const MOST_BYTES: usize = 4096;

/// Which proxies are trusted, and which header they write. By default none is, because a client can write any header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// The trusted proxies. IPv4-mapped networks are written as IPv4.
    pub networks: Vec<IpNet>,
    /// The number of proxies that each request passes, instead of `networks`, for proxies with unknown addresses. A
    /// client that can bypass one of them can pretend to be any address.
    pub hops: Option<NonZeroUsize>,
    /// The one header that names the client. With two headers, their order would be unknown.
    pub header: AddressHeader,
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The address of the socket.
    Socket(IpAddr),
    /// The address in a PROXY header, from a trusted sender.
    ProxyProtocol(IpAddr),
}

/// The address of a client, as far as trusted sources name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress {
    /// The address. IPv4 addresses are IPv4, in any notation.
    pub ip: IpAddr,
    /// Where the address was found.
    pub source: AddressSource,
    /// The peer of the connection is trusted, so its forwarding headers count.
    pub peer_trusted: bool,
    /// The header did not lead to the client: an entry is not an address, or there are too many or too few entries. The
    /// address is the last one before the problem.
    pub doubtful: bool,
    /// Whether the client's request came over TLS, as the proxy says that names the client (`proto` in `Forwarded`).
    /// `None`: it does not say so.
    pub https: Option<bool>,
}

/// Where a client's address was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressSource {
    /// The other end of the socket.
    Socket,
    /// A PROXY header.
    ProxyProtocol,
    /// The header of a proxy.
    Header(AddressHeader),
}

impl AddressSource {
    /// Its name, as in responses and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::ProxyProtocol => "proxy-protocol",
            Self::Header(header) => header.name(),
        }
    }
}

impl ClientAddress {
    /// The peer of the connection as the client. This needs no trust.
    pub fn of(peer: Peer) -> Self {
        let (ip, source) = match peer {
            Peer::Socket(ip) => (ip, AddressSource::Socket),
            Peer::ProxyProtocol(ip) => (ip, AddressSource::ProxyProtocol),
        };
        // A socket for both families reports `::ffff:10.0.0.1`. This address is in no IPv4 network and in few databases.
        Self { ip: ip.to_canonical(), source, peer_trusted: false, doubtful: false, https: None }
    }
}

impl Trust {
    /// The address of the client. `lines` are the values of the header's lines, in the order in which they came.
    pub fn client<'a>(&self, peer: Peer, lines: impl DoubleEndedIterator<Item = &'a [u8]>) -> ClientAddress {
        let peer = ClientAddress::of(peer);
        match self.hops {
            Some(hops) => self.counted(peer, hops.get(), lines),
            None if self.covers(peer.ip) => self.walked(peer, lines),
            None => peer,
        }
    }

    /// Walks over trusted entries to the first one that is not trusted.
    fn walked<'a>(
        &self,
        peer: ClientAddress,
        lines: impl DoubleEndedIterator<Item = &'a [u8]>,
    ) -> ClientAddress {
        let mut client = ClientAddress { peer_trusted: true, ..peer };
        for entry in Entries::new(lines) {
            client.https = entry.and_then(|entry| hop::is_https(entry, self.header));
            let Some(ip) = entry.and_then(|entry| hop::parse(entry, self.header)) else {
                return ClientAddress { doubtful: true, ..client };
            };
            client = ClientAddress { ip, source: AddressSource::Header(self.header), ..client };
            if !self.covers(ip) {
                break;
            }
        }
        client
    }

    /// Counts this many entries. The outermost proxy has written the last of them.
    fn counted<'a>(
        &self,
        peer: ClientAddress,
        hops: usize,
        lines: impl DoubleEndedIterator<Item = &'a [u8]>,
    ) -> ClientAddress {
        let peer = ClientAddress { peer_trusted: true, ..peer };
        let hops = if self.header.is_list() { hops } else { 1 };
        let mut client = peer;
        let mut seen = 0;
        for entry in Entries::new(lines).take(hops) {
            client.https = entry.and_then(|entry| hop::is_https(entry, self.header));
            let Some(ip) = entry.and_then(|entry| hop::parse(entry, self.header)) else {
                return ClientAddress { doubtful: true, ..client };
            };
            client = ClientAddress { ip, source: AddressSource::Header(self.header), ..client };
            seen += 1;
        }
        // The request has not passed all proxies, so the client may have written the entries.
        if seen < hops { ClientAddress { doubtful: true, ..peer } } else { client }
    }

    /// Whether this address is a trusted proxy.
    pub fn covers(&self, ip: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&ip))
    }
}

/// The entries of a list from the right. An item is `None` if the entry is beyond the limits.
///
/// A comma separates entries even within quotes: an entry ends where the entry of the next proxy begins, and an open
/// quote of an untrusted client must not hide that entry.
struct Entries<'a, L> {
    lines: L,
    line: Option<&'a [u8]>,
    bytes: usize,
    entries: usize,
    /// Empty entries at the very end are ignored.
    has_begun: bool,
}

impl<'a, L: DoubleEndedIterator<Item = &'a [u8]>> Entries<'a, L> {
    fn new(lines: L) -> Self {
        Self { lines, line: None, bytes: MOST_BYTES, entries: MOST_ENTRIES, has_begun: false }
    }

    /// The last entry of the rest. `None` if it is longer than the limit, because its end could be parsed as another
    /// address.
    fn split_last(&mut self, line: &'a [u8]) -> Option<&'a [u8]> {
        let seen = &line[line.len().saturating_sub(self.bytes)..];
        let entry = match seen.iter().rposition(|&byte| byte == b',') {
            Some(comma) => {
                let entry = &seen[comma + 1..];
                self.line = Some(&line[..line.len() - entry.len() - 1]);
                entry
            }
            None if seen.len() < line.len() => return None,
            None => seen,
        };
        self.bytes = self.bytes.saturating_sub(entry.len() + 1);
        Some(entry.trim_ascii())
    }
}

impl<'a, L: DoubleEndedIterator<Item = &'a [u8]>> Iterator for Entries<'a, L> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = self.line.take().or_else(|| self.lines.next_back())?;
            let room = self.entries.checked_sub(1);
            let Some(entry) = room.and_then(|_| self.split_last(line)) else { return Some(None) };
            self.entries -= 1;
            if !entry.is_empty() || self.has_begun {
                self.has_begun = true;
                return Some(Some(entry));
            }
        }
    }
}
