//! Ports that the system gives to no other process. Knows nothing of the programs that will use them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A held port of this machine. Until a program listens on it, connections are refused.
///
/// A port that was found and released goes to the next process that asks for any port, and all tests ask. This port is
/// bound, so no process gets it by chance. It is not listened on, so `SO_REUSEADDR` lets a program listen on it by its
/// number.
pub struct HeldPort {
    _socket: TcpSocket,
    address: SocketAddr,
}

/// Finds a free port, and holds it as long as the value lives.
///
/// # Panics
/// If there is no free port.
pub fn held_port() -> HeldPort {
    held_port_at(Ipv4Addr::LOCALHOST.into())
}

/// Finds a free port of this address.
///
/// # Panics
/// If there is no free port, or no such address.
pub fn held_port_at(host: IpAddr) -> HeldPort {
    let socket = if host.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind((host, 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    HeldPort { _socket: socket, address }
}

impl HeldPort {
    /// The address with the port.
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
    fn a_held_port_refuses_until_a_program_listens_on_it_by_its_number() {
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
