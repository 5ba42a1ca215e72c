//! Listening sockets: one per data-plane thread on the same address. The kernel spreads connections over them. Knows no connections.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// How many connections the kernel queues before they are accepted.
pub(super) const BACKLOG: i32 = 4096;

/// Binds `count` listeners to one address (port 0: one free port for all of them).
///
/// With `SO_REUSEPORT` alone, a second Hostler on the same port would start without an error and take half of the requests. So the
/// address is first bound without the option, which fails if another process has the address.
pub fn bind(mut address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    if address.port() != 0 {
        drop(socket(address, false)?);
    }
    let mut listeners: Vec<TcpListener> = Vec::with_capacity(count);
    for _ in 0..count {
        if let (Some(first), false) = (listeners.first(), cfg!(target_os = "linux")) {
            // Only Linux spreads connections over such sockets. Elsewhere all threads accept from one.
            listeners.push(first.try_clone()?);
            continue;
        }
        let socket = socket(address, true)?;
        // The first socket finds the free port and keeps it, so that no other process can take it.
        address = socket.local_addr()?.as_socket().unwrap_or(address);
        limit_unsent(&socket);
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        listeners.push(socket.into());
    }
    Ok(listeners)
}

/// How many bytes the kernel may hold beyond the client's window. The socket is writable again when half of them are sent.
const UNSENT: u32 = 32 * 1024;

/// Limits the unsent bytes that the kernel holds for each connection of the listener (`TCP_NOTSENT_LOWAT`). Otherwise the kernel takes
/// megabytes for a client that does not read, and a slow client looks stalled for a long time. A connection has the limit only if the
/// listener had it when the connection came.
fn limit_unsent(listener: &Socket) {
    // On a system without this option, slow clients only look slower than they are.
    #[cfg(target_os = "linux")]
    let _ = listener.set_tcp_notsent_lowat(UNSENT);
    #[cfg(not(target_os = "linux"))]
    let _ = (listener, UNSENT);
}

fn socket(address: SocketAddr, reuse_port: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // `[::]` means all addresses of both families, whatever the system's default is.
        socket.set_only_v6(false)?;
    }
    // Connections of a Hostler that has just ended must not prevent the next start.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(reuse_port)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_first_connection_has_the_limit_of_unsent_bytes_before_it_is_accepted() {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0)), 1).unwrap().remove(0);
        listener.set_nonblocking(false).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(socket2::SockRef::from(&accepted).tcp_notsent_lowat().unwrap(), UNSENT);
    }
}
