//! Ports that the system gives to nobody else. Knows not who will listen there, if anybody does.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A port of this machine, for somebody who is told its number: until he listens, connections are refused.
///
/// A port that was found and let go is given to the next who asks for any, and all tests do. This one is bound, so that nobody
/// gets it by chance, and not listened on, so that `SO_REUSEADDR` lets him listen who asks for it by its number.
pub struct HeldPort {
    _socket: TcpSocket,
    address: SocketAddr,
}

/// Finds one, and holds it as long as it lives.
///
/// # Panics
/// If there is none left.
pub fn held_port() -> HeldPort {
    held_port_at(Ipv4Addr::LOCALHOST.into())
}

/// One of this address.
///
/// # Panics
/// If there is none left, or no such address.
pub fn held_port_at(host: IpAddr) -> HeldPort {
    let socket = if host.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind((host, 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    HeldPort { _socket: socket, address }
}

impl HeldPort {
    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_held_port_refuses_until_somebody_listens_on_it_by_its_number() {
        let port = held_port();
        for _ in 0..2 {
            let refused = TcpStream::connect(port.address()).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            let listener = TcpListener::bind(port.address()).unwrap();
            TcpStream::connect(port.address()).unwrap();
            drop(listener);
        }
    }
}
