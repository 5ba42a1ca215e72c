//! Listening sockets: bound here, or taken over from a predecessor. Knows no connections.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use hostler_address::OwnAddresses;
use hostler_config::Config;

use crate::listen::{self, ListenerKind};

/// What a socket is for: the key that contains its address, and the address as written there (port 0 stays 0).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(super) struct Purpose {
    pub key: String,
    pub address: SocketAddr,
}

/// An address on which Hostler could not listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} ({key}): {source}{}", self.advice())]
pub struct ListenError {
    address: SocketAddr,
    /// The configuration key of the address.
    key: &'static str,
    source: io::Error,
}

impl ListenError {
    /// What an operator can do.
    fn advice(&self) -> String {
        let Self { address, key, source } = self;
        match source.kind() {
            io::ErrorKind::AddrInUse => {
                let port = address.port().checked_add(10).unwrap_or(8090);
                let other = SocketAddr::new(address.ip(), port);
                format!(
                    "; another process uses port {}: end it, or use another address, such as --{key} {other}",
                    address.port()
                )
            }
            io::ErrorKind::PermissionDenied if address.port() < 1024 => {
                "; a port below 1024 needs root or CAP_NET_BIND_SERVICE".into()
            }
            _ => String::new(),
        }
    }
}

/// Sockets that another process has bound.
pub(super) type Inherited = BTreeMap<Purpose, Vec<TcpListener>>;

/// The sockets of one thread.
pub(super) type ListenerShare = Vec<(ListenerKind, TcpListener)>;

pub(super) struct Listeners {
    /// For each address a socket for each thread; the kernel distributes connections over them.
    data: Vec<(Purpose, ListenerKind, Vec<TcpListener>)>,
    admin: Option<(Purpose, TcpListener)>,
}

impl Listeners {
    /// Takes over the inherited sockets and binds the missing ones. Inherited sockets without a use are closed. If `may_move_admin` and the
    /// admin port is taken, the system chooses another one.
    pub fn open(
        config: &Config,
        mut inherited: Inherited,
        may_move_admin: bool,
    ) -> Result<Self, ListenError> {
        let server = &config.server;
        let plain = server.listen.iter().map(|&address| (address, ListenerKind::Plain, "server.listen"));
        let tls = config.tls.iter().flat_map(|tls| &tls.listen);
        let tls = tls.map(|&address| (address, ListenerKind::Tls, "tls.listen"));
        let data = plain.chain(tls).map(|(address, listener_kind, key)| {
            let purpose = Purpose { key: key.into(), address };
            let sockets = match inherited.remove(&purpose) {
                Some(sockets) => Ok(sockets),
                None => listen::bind(address, server.threads),
            };
            match sockets {
                Ok(sockets) => Ok((purpose, listener_kind, sockets)),
                Err(source) => Err(ListenError { address, key, source }),
            }
        });
        let data = data.collect::<Result<_, _>>()?;
        let admin = match server.admin {
            Some(address) => Some(open_admin(address, &mut inherited, may_move_admin)?),
            None => None,
        };
        Ok(Self { data, admin })
    }

    /// The addresses for clients, with the real port where port 0 is configured.
    pub fn addresses(&self) -> impl Iterator<Item = (ListenerKind, SocketAddr)> {
        self.data.iter().filter_map(|(_, listener_kind, sockets)| {
            Some((*listener_kind, sockets.first()?.local_addr().ok()?))
        })
    }

    /// All addresses, with the admin listener's.
    pub fn own_addresses(&self) -> io::Result<OwnAddresses> {
        let admin =
            self.admin.iter().map(|(_, socket)| socket.local_addr()).collect::<io::Result<Vec<_>>>()?;
        Ok(OwnAddresses::new(self.addresses().map(|(_, address)| address).chain(admin)))
    }

    /// The port of the first TLS listener; 0 if there is none.
    pub fn tls_port(&self) -> u16 {
        self.addresses()
            .find(|(listener_kind, _)| *listener_kind == ListenerKind::Tls)
            .map_or(0, |(_, address)| address.port())
    }

    pub fn admin(&self) -> io::Result<Option<TcpListener>> {
        self.admin.as_ref().map(|(_, socket)| socket.try_clone()).transpose()
    }

    /// The configured address of the admin listener and the real one, if the configured port was taken.
    pub fn moved_admin(&self) -> Option<(SocketAddr, SocketAddr)> {
        let (purpose, socket) = self.admin.as_ref()?;
        let real = socket.local_addr().ok()?;
        let is_moved = purpose.address.port() != 0 && purpose.address.port() != real.port();
        is_moved.then_some((purpose.address, real))
    }

    /// Distributes the sockets over threads: every socket has at least one thread, and every thread has a socket of each address.
    /// Inherited sockets may be more or fewer than threads. None is added or closed then, because the kernel drops the queued connections
    /// of a closed socket.
    pub fn by_thread(&self, threads: usize) -> io::Result<Vec<ListenerShare>> {
        let mut shares: Vec<ListenerShare> = (0..threads).map(|_| Vec::new()).collect();
        for (_, listener_kind, sockets) in &self.data {
            for turn in 0..threads.max(sockets.len()) {
                let Some(socket) = sockets.get(turn % sockets.len().max(1)) else { continue };
                shares[turn % threads].push((*listener_kind, socket.try_clone()?));
            }
        }
        Ok(shares)
    }

    /// Duplicates of all sockets, for a successor.
    pub fn copies(&self) -> io::Result<Vec<(Purpose, Vec<OwnedFd>)>> {
        let admin = self.admin.iter().map(|(purpose, socket)| (purpose, std::slice::from_ref(socket)));
        let data = self.data.iter().map(|(purpose, _, sockets)| (purpose, sockets.as_slice()));
        data.chain(admin)
            .map(|(purpose, sockets)| {
                let copies = sockets.iter().map(|socket| socket.try_clone().map(OwnedFd::from));
                Ok((purpose.clone(), copies.collect::<io::Result<_>>()?))
            })
            .collect()
    }
}

/// The purpose keeps the configured address, so that a successor finds the socket.
fn open_admin(
    address: SocketAddr,
    inherited: &mut Inherited,
    may_move: bool,
) -> Result<(Purpose, TcpListener), ListenError> {
    let purpose = Purpose { key: "server.admin".into(), address };
    let socket = match inherited.remove(&purpose).and_then(|mut sockets| sockets.pop()) {
        Some(socket) => Ok(socket),
        None => TcpListener::bind(address).or_else(|error| match error.kind() {
            io::ErrorKind::AddrInUse if may_move => TcpListener::bind(SocketAddr::new(address.ip(), 0)),
            _ => Err(error),
        }),
    };
    let ready = socket.and_then(|socket| {
        socket.set_nonblocking(true)?;
        Ok((purpose, socket))
    });
    ready.map_err(|source| ListenError { address, key: "server.admin", source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listeners(sockets: usize) -> Listeners {
        let address = "127.0.0.1:0".parse().unwrap();
        let purpose = Purpose { key: "server.listen".into(), address };
        let data = vec![(purpose, ListenerKind::Plain, listen::bind(address, sockets).unwrap())];
        Listeners { data, admin: None }
    }

    #[test]
    fn every_socket_has_a_thread_and_every_thread_a_socket() {
        for (sockets, threads, shares) in
            [(2, 2, vec![1, 1]), (3, 2, vec![2, 1]), (1, 3, vec![1, 1, 1]), (2, 3, vec![1, 1, 1])]
        {
            let listeners = listeners(sockets);
            let by_thread = listeners.by_thread(threads).unwrap();
            assert_eq!(by_thread.iter().map(Vec::len).collect::<Vec<_>>(), shares, "{sockets} {threads}");
        }
    }
}
