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
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        listeners.push(socket.into());
    }
    Ok(listeners)
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
