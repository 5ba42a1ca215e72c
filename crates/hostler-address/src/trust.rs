//! Whose word about a client is taken, and how far: a walk from the right over the proxies that are trusted. Knows no requests, only
//! the lines of one field.

use std::net::IpAddr;
use std::num::NonZeroUsize;

use ipnet::IpNet;

use super::{AddressHeader, hop};

/// What is read of a header: more entries, and more bytes, than any honest chain has.
const MOST_ENTRIES: usize = 32;
const MOST_BYTES: usize = 4096;

/// Whose word is taken, and where it is written. By default nobody's: whatever a stranger writes into a header is a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// Proxies that are believed, IPv4-mapped networks written as IPv4.
    pub networks: Vec<IpNet>,
    /// How many proxies each request has come through, wherever they are, instead of `networks`: for those whose addresses
    /// nobody knows. Whoever can get round one of them can claim to be anybody.
    pub hops: Option<NonZeroUsize>,
    /// The one header that names the client. Of two, nobody knows the order.
    pub header: AddressHeader,
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// As the socket says.
    Socket(IpAddr),
    /// As a PROXY header says, from somebody who is believed.
    ProxyProtocol(IpAddr),
}

/// Who the client is, as far as anybody trustworthy knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress {
    /// Its address: IPv4 as IPv4, however it was written.
    pub ip: IpAddr,
    /// Who says so.
    pub source: AddressSource,
    /// The peer of the connection is trusted: its forwarding headers are worth something.
    pub peer_trusted: bool,
    /// The header did not lead to the client: an entry was no address, or there were too many, or too few. The address is that of
    /// the last proxy up to which all was well.
    pub doubtful: bool,
}

/// Where a client's address was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressSource {
    /// It is the other end of the socket.
    Socket,
    /// In a PROXY header.
    ProxyProtocol,
    /// In the header of a proxy.
    Header(AddressHeader),
}

impl AddressSource {
    /// Its name, as in answers and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::ProxyProtocol => "proxy-protocol",
            Self::Header(header) => header.name(),
        }
    }
}

impl ClientAddress {
    /// A client that is the peer itself, whom nobody has to trust.
    pub fn of(peer: Peer) -> Self {
        let (ip, source) = match peer {
            Peer::Socket(ip) => (ip, AddressSource::Socket),
            Peer::ProxyProtocol(ip) => (ip, AddressSource::ProxyProtocol),
        };
        // A socket for both families says `::ffff:10.0.0.1`, which is in no IPv4 network and in few databases.
        Self { ip: ip.to_canonical(), source, peer_trusted: false, doubtful: false }
    }
}

impl Trust {
    /// Who the client is: `lines` are the values of the header's lines, in the order in which they came.
    pub fn client<'a>(&self, peer: Peer, lines: impl DoubleEndedIterator<Item = &'a [u8]>) -> ClientAddress {
        let peer = ClientAddress::of(peer);
        match self.hops {
            Some(hops) => self.counted(peer, hops.get(), lines),
            None if self.covers(peer.ip) => self.walked(peer, lines),
            None => peer,
        }
    }

    /// Over entries that are trusted to the first that is not.
    fn walked<'a>(
        &self,
        peer: ClientAddress,
        lines: impl DoubleEndedIterator<Item = &'a [u8]>,
    ) -> ClientAddress {
        let mut client = ClientAddress { peer_trusted: true, ..peer };
        for entry in Entries::new(lines) {
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

    /// Over so many entries, the last of which the outermost proxy has written.
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
            let Some(ip) = entry.and_then(|entry| hop::parse(entry, self.header)) else {
                return ClientAddress { doubtful: true, ..client };
            };
            client = ClientAddress { ip, source: AddressSource::Header(self.header), ..client };
            seen += 1;
        }
        // It has not come through all of them: what is there may be the client's own invention.
        if seen < hops { ClientAddress { doubtful: true, ..peer } } else { client }
    }

    /// Whether this address is that of a trusted proxy.
    pub fn covers(&self, ip: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&ip))
    }
}

/// The entries of a list from the right, none in place of the first that there is no room for.
///
/// Commas are commas here, also within quotes: an entry ends where the proxy that wrote it began, and a quote that a stranger has
/// left open must not swallow it.
struct Entries<'a, L> {
    lines: L,
    line: Option<&'a [u8]>,
    bytes: usize,
    entries: usize,
    /// Empty entries at the very end are nobody's.
    has_begun: bool,
}

impl<'a, L: DoubleEndedIterator<Item = &'a [u8]>> Entries<'a, L> {
    fn new(lines: L) -> Self {
        Self { lines, line: None, bytes: MOST_BYTES, entries: MOST_ENTRIES, has_begun: false }
    }

    /// The last entry of what is left; none if it is longer than what may be read, of which the end would be another address.
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
