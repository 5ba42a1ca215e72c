//! Reads the PROXY header of a load balancer, which names the client, and no byte after it. Does not know who may send one.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};

use ppp::{v1, v2};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// The longest header of version 1, a line, with its end.
const MOST_TEXT: usize = 107;
/// The longest header of version 2 that is accepted. It may contain values that Hostler ignores, such as certificates.
const MOST_BINARY: usize = 4096;
/// The shortest header of both versions: `PROXY UNKNOWN` and the end of the line.
const SHORTEST: usize = 15;
/// The first part of version 2, which contains the length of the rest.
const BINARY_START: usize = 16;
/// Version 2 and the command of a balancer's own connection, such as a health check. The specification says to ignore what follows, also the
/// family: some senders name one and no addresses of it, which the library takes for malformed.
const LOCAL: u8 = 0x20;

/// The contents of a PROXY header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProxyHeader {
    /// The address of the client, and the address that it connected to.
    Addresses { client: SocketAddr, server: SocketAddr },
    /// No addresses: a connection of the load balancer itself, or one without IP. The socket's addresses count.
    Nothing,
}

/// Why no header could be read.
#[derive(Debug)]
pub(super) enum ProxyError {
    /// The connection ended before.
    Left,
    /// The bytes are no valid PROXY header.
    Malformed,
}

impl From<io::Error> for ProxyError {
    fn from(_: io::Error) -> Self {
        Self::Left
    }
}

/// The state of a header after the bytes so far.
enum HeaderProgress {
    /// It is complete.
    Whole(ProxyHeader),
    /// At least this many more bytes belong to it.
    Wants(usize),
    /// It is a line whose end has not arrived.
    WantsLine,
}

/// Reads a header. The caller sets the deadline.
pub(super) async fn read(stream: &mut TcpStream) -> Result<ProxyHeader, ProxyError> {
    let mut header = Vec::with_capacity(MOST_TEXT);
    loop {
        let wanted = match look(&header)? {
            HeaderProgress::Whole(said) => return Ok(said),
            HeaderProgress::Wants(bytes) => bytes,
            // The bytes after the line are not part of it: they are peeked at before they are consumed.
            HeaderProgress::WantsLine => {
                let mut ahead = [0; MOST_TEXT];
                let seen = stream.peek(&mut ahead).await?;
                memchr::memchr(b'\n', &ahead[..seen]).map_or(seen, |end| end + 1)
            }
        };
        let before = header.len();
        let taken = (&mut *stream).take(wanted as u64).read_buf(&mut header).await?;
        if taken == 0 || header.len() == before {
            return Err(ProxyError::Left);
        }
    }
}

/// Parses the bytes so far. A byte that no header has at its place is an error at once.
fn look(header: &[u8]) -> Result<HeaderProgress, ProxyError> {
    let begins = |whole: &[u8]| whole.starts_with(&header[..header.len().min(whole.len())]);
    if header.is_empty() {
        Ok(HeaderProgress::Wants(SHORTEST))
    } else if begins(v2::PROTOCOL_PREFIX) {
        look_at_binary(header)
    } else if begins(v1::PROTOCOL_PREFIX.as_bytes()) {
        look_at_text(header)
    } else {
        Err(ProxyError::Malformed)
    }
}

fn look_at_binary(header: &[u8]) -> Result<HeaderProgress, ProxyError> {
    let Some(start) = header.first_chunk::<BINARY_START>() else {
        return Ok(HeaderProgress::Wants(BINARY_START - header.len()));
    };
    let whole = BINARY_START + usize::from(u16::from_be_bytes([start[14], start[15]]));
    if whole > MOST_BINARY {
        return Err(ProxyError::Malformed);
    }
    if header.len() < whole {
        return Ok(HeaderProgress::Wants(whole - header.len()));
    }
    if start[v2::PROTOCOL_PREFIX.len()] == LOCAL {
        return Ok(HeaderProgress::Whole(ProxyHeader::Nothing));
    }
    let parsed = v2::Header::try_from(header).map_err(|_| ProxyError::Malformed)?;
    let is_tcp = parsed.protocol == v2::Protocol::Stream;
    let said = match (parsed.command, parsed.addresses) {
        (v2::Command::Proxy, v2::Addresses::IPv4(ip)) if is_tcp => ProxyHeader::Addresses {
            client: (ip.source_address, ip.source_port).into(),
            server: (ip.destination_address, ip.destination_port).into(),
        },
        (v2::Command::Proxy, v2::Addresses::IPv6(ip)) if is_tcp => {
            said_of_ipv6(ip.source_address, ip.source_port, ip.destination_address, ip.destination_port)
        }
        // A Unix socket, or unspecified: the specification says to use the socket's addresses.
        _ => ProxyHeader::Nothing,
    };
    Ok(HeaderProgress::Whole(said))
}

fn look_at_text(header: &[u8]) -> Result<HeaderProgress, ProxyError> {
    match header.last() {
        Some(b'\n') => {}
        _ if header.len() >= MOST_TEXT => return Err(ProxyError::Malformed),
        _ => return Ok(HeaderProgress::WantsLine),
    }
    let parsed = v1::Header::try_from(header).map_err(|_| ProxyError::Malformed)?;
    // The library stops at the first carriage return, and accepts a line feed in the middle of an `UNKNOWN` line.
    if parsed.header.len() != header.len() || memchr::memchr(b'\n', header) != Some(header.len() - 1) {
        return Err(ProxyError::Malformed);
    }
    let said = match parsed.addresses {
        v1::Addresses::Tcp4(ip) => ProxyHeader::Addresses {
            client: (ip.source_address, ip.source_port).into(),
            server: (ip.destination_address, ip.destination_port).into(),
        },
        v1::Addresses::Tcp6(ip) => {
            said_of_ipv6(ip.source_address, ip.source_port, ip.destination_address, ip.destination_port)
        }
        v1::Addresses::Unknown => ProxyHeader::Nothing,
    };
    Ok(HeaderProgress::Whole(said))
}

fn said_of_ipv6(client: Ipv6Addr, client_port: u16, server: Ipv6Addr, server_port: u16) -> ProxyHeader {
    ProxyHeader::Addresses { client: (client, client_port).into(), server: (server, server_port).into() }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use proptest::prelude::*;

    use super::*;

    // A header that is cut off is an error.
    fn heard(bytes: &[u8], most: usize) -> (Option<ProxyHeader>, usize) {
        let mut taken = 0;
        loop {
            let ahead = &bytes[taken..bytes.len().min(taken + most)];
            let wanted = match look(&bytes[..taken]) {
                Ok(HeaderProgress::Whole(said)) => return (Some(said), taken),
                Ok(HeaderProgress::Wants(wanted)) => wanted.min(ahead.len()),
                Ok(HeaderProgress::WantsLine) => {
                    memchr::memchr(b'\n', ahead).map_or(ahead.len(), |end| end + 1).min(MOST_TEXT)
                }
                Err(_) => return (None, taken),
            };
            if wanted == 0 {
                return (None, taken);
            }
            taken += wanted;
        }
    }

    fn binary(client: SocketAddr, server: SocketAddr, extras: usize) -> Vec<u8> {
        let header = v2::Builder::with_addresses(
            v2::Version::Two | v2::Command::Proxy,
            v2::Protocol::Stream,
            v2::Addresses::from((client, server)),
        );
        let header = if extras == 0 { header } else { header.write_tlv(0xe0u8, &vec![7; extras]).unwrap() };
        header.build().unwrap()
    }

    fn addresses() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
        let v4 = (any::<(Ipv4Addr, u16)>(), any::<(Ipv4Addr, u16)>());
        let v6 = (any::<(Ipv6Addr, u16)>(), any::<(Ipv6Addr, u16)>());
        let address = |(ip, port): (IpAddr, u16)| SocketAddr::from((ip, port));
        prop_oneof![
            v4.prop_map(move |(a, b)| (address((a.0.into(), a.1)), address((b.0.into(), b.1)))),
            v6.prop_map(move |(a, b)| (address((a.0.into(), a.1)), address((b.0.into(), b.1)))),
        ]
    }

    proptest! {
        #[test]
        fn a_header_is_read_to_its_last_byte_and_not_one_further(
            (client, server) in addresses(),
            extras in 0..3000_usize,
            rest in proptest::collection::vec(any::<u8>(), 0..200),
            most in 1..5000_usize,
        ) {
            let said = ProxyHeader::Addresses { client, server };
            let family = if client.is_ipv4() { "TCP4" } else { "TCP6" };
            let (from, to) = (client.port(), server.port());
            let line = format!("PROXY {family} {} {} {from} {to}\r\n", client.ip(), server.ip());
            for header in [binary(client, server, extras), line.into_bytes()] {
                let whole = [&header[..], &rest].concat();
                prop_assert_eq!(heard(&whole, most), (Some(said), header.len()));
                // Cut off, it is none.
                prop_assert_eq!(heard(&header[..header.len() - 1], most).0, None);
            }
        }

        #[test]
        fn no_more_bytes_are_read_than_a_header_can_have(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
            start in proptest::sample::select(vec![&b""[..], b"PROXY ", b"PROXY TCP4 1.2.3.4 ", v2::PROTOCOL_PREFIX]),
            more in 0..6000_usize,
            most in 1..5000_usize,
        ) {
            bytes.splice(0..0, start.iter().copied());
            bytes.resize(bytes.len() + more, b' ');
            let (_, taken) = heard(&bytes, most);
            prop_assert!(taken <= MOST_BINARY);
        }
    }
}
