//! The addresses that this program listens on, and whether a connection to an address would arrive there. Knows no names
//! and no members.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Addresses that this program listens on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnAddresses(Vec<SocketAddr>);

impl OwnAddresses {
    /// The listening addresses as they are bound. A wildcard stands for all addresses of this machine.
    pub fn new(listening: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self(listening.into_iter().collect())
    }

    /// The listening address at which a connection to `address` would arrive. `None`: it does not arrive at this program.
    pub fn find(&self, address: SocketAddr) -> Option<SocketAddr> {
        let ip = plainly(address.ip());
        let mut same_port = self.0.iter().filter(|own| own.port() == address.port());
        same_port.find(|own| reaches(own.ip().to_canonical(), ip)).copied()
    }
}

/// A connection to the unspecified address reaches this machine.
fn plainly(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// An IPv6 wildcard accepts IPv4 as well.
fn reaches(own: IpAddr, ip: IpAddr) -> bool {
    match own {
        own if own.is_unspecified() => (own.is_ipv6() || ip.is_ipv4()) && is_local(ip),
        own => own == ip,
    }
}

/// Whether it is an address of this machine: only those can be bound. If the system can bind other addresses too
/// (`net.ipv4.ip_nonlocal_bind`), the address is ours if the system would use it as the source of packets to it.
fn is_local(ip: IpAddr) -> bool {
    let is_bindable = |ip: IpAddr| UdpSocket::bind((ip, 0)).is_ok();
    if ip.is_loopback() {
        return true;
    }
    // An address for documentation (RFC 5737, RFC 3849), so no machine has it.
    let (documentation, any): (IpAddr, IpAddr) = match ip {
        IpAddr::V4(_) => (Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::UNSPECIFIED.into()),
        IpAddr::V6(_) => {
            (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(), Ipv6Addr::UNSPECIFIED.into())
        }
    };
    if !is_bindable(documentation) {
        return is_bindable(ip);
    }
    let sent_from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((ip, 9))?;
        socket.local_addr()
    });
    sent_from.is_ok_and(|from| from.ip() == ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(own: &str, address: &str) -> bool {
        OwnAddresses::new([own.parse().unwrap()]).find(address.parse().unwrap()).is_some()
    }

    #[test]
    fn an_own_address_is_recognised_in_every_notation() {
        for (own, address) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("127.0.0.1:80", "[::ffff:127.0.0.1]:80"),
            ("127.0.0.1:80", "0.0.0.0:80"),
            ("[::1]:80", "[::]:80"),
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("0.0.0.0:80", "127.9.9.9:80"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("[::]:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
        ] {
            assert!(finds(own, address), "{own} {address}");
        }
        for (own, address) in [
            ("127.0.0.1:80", "127.0.0.1:81"),
            ("127.0.0.1:80", "127.0.0.2:80"),
            ("127.0.0.1:80", "[::1]:80"),
            ("0.0.0.0:80", "[::1]:80"),
            ("0.0.0.0:80", "192.0.2.7:80"),
            ("[::]:80", "[2001:db8::7]:80"),
            ("10.0.0.5:80", "0.0.0.0:80"),
        ] {
            assert!(!finds(own, address), "{own} {address}");
        }
    }
}
