//! Listening sockets: one a data-plane thread on the same address, shared out by the kernel. Knows no connections.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// As many may knock before we open.
pub(super) const BACKLOG: i32 = 4096;

/// Binds `count` listeners to one address (port 0: one free port for all of them).
///
/// With `SO_REUSEPORT` alone a second Hostler on the same port would start without a word and take half of the requests. So
/// the address is first bound without it: that fails if anybody else has it.
pub fn bind(mut address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    if address.port() != 0 {
        drop(socket(address, false)?);
    }
    let mut listeners = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = socket(address, true)?;
        // A free port that was found and let go could be anybody's by now: the first socket finds it and keeps it.
        address = socket.local_addr()?.as_socket().unwrap_or(address);
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        listeners.push(socket.into());
    }
    Ok(listeners)
}

/// What the kernel takes beyond what the network can have at once. It tells when half of that has gone.
const UNSENT: u32 = 32 * 1024;

/// Has the kernel take little more from us than the clients' windows let it send: else it takes megabytes for one that does not read, and
/// says nothing for as long as that one needs for a third of them. Connections have this from their listener.
pub(super) fn hold_little(listener: &tokio::net::TcpListener) {
    // Where the system has none of it, slow clients only look slower than they are.
    let _ = SockRef::from(listener).set_tcp_notsent_lowat(UNSENT);
}

fn socket(address: SocketAddr, reuse_port: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // `[::]` is every address of either family, whatever the system's default says.
        socket.set_only_v6(false)?;
    }
    // Connections of a Hostler that has just ended must not keep the next from starting.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(reuse_port)?;
    socket.bind(&address.into())?;
    Ok(socket)
}
