//! Listening sockets: bound anew, or taken over from a predecessor. Knows no connections.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use super::StartError;
use crate::config;
use crate::listen;

/// What a socket is for: the key that names its address, and the address as it is written there (port 0 stays 0).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(super) struct Purpose {
    pub key: String,
    pub address: SocketAddr,
}

/// Sockets that somebody else has bound.
pub(super) type Inherited = BTreeMap<Purpose, Vec<TcpListener>>;

/// All sockets of one Hostler.
pub(super) struct Listeners {
    /// For each address one a thread, shared out by the kernel.
    data: Vec<(Purpose, Vec<TcpListener>)>,
    admin: Option<(Purpose, TcpListener)>,
}

impl Listeners {
    /// Takes over what is there already and binds the rest; what is left of `inherited` is closed.
    pub fn open(server: &config::Server, mut inherited: Inherited) -> Result<Self, StartError> {
        let data = server.listen.iter().map(|&address| {
            let purpose = Purpose { key: "server.listen".into(), address };
            let sockets = match inherited.remove(&purpose) {
                Some(sockets) => Ok(sockets),
                None => listen::bind(address, server.threads),
            };
            match sockets {
                Ok(sockets) => Ok((purpose, sockets)),
                Err(source) => Err(StartError::Listen { address, key: "server.listen", source }),
            }
        });
        let data = data.collect::<Result<_, _>>()?;
        let admin = match server.admin {
            Some(address) => Some(open_admin(address, &mut inherited)?),
            None => None,
        };
        Ok(Self { data, admin })
    }

    /// Where clients connect; a free port is known by now.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.data.iter().filter_map(|(_, sockets)| sockets.first()?.local_addr().ok()).collect()
    }

    pub fn admin(&self) -> io::Result<Option<TcpListener>> {
        self.admin.as_ref().map(|(_, socket)| socket.try_clone()).transpose()
    }

    /// The sockets of each thread: every socket has one thread at least, every thread one of each address. Sockets that were
    /// taken over may be more or fewer than threads, and none is added or closed then: the kernel gives the connections of one
    /// that goes to nobody else.
    pub fn by_thread(&self, threads: usize) -> io::Result<Vec<Vec<TcpListener>>> {
        let mut shares: Vec<Vec<TcpListener>> = (0..threads).map(|_| Vec::new()).collect();
        for (_, sockets) in &self.data {
            for turn in 0..threads.max(sockets.len()) {
                let Some(socket) = sockets.get(turn % sockets.len().max(1)) else { continue };
                shares[turn % threads].push(socket.try_clone()?);
            }
        }
        Ok(shares)
    }

    /// All of them, for a successor.
    pub fn copies(&self) -> io::Result<Vec<(Purpose, Vec<OwnedFd>)>> {
        let admin = self.admin.iter().map(|(purpose, socket)| (purpose, std::slice::from_ref(socket)));
        let data = self.data.iter().map(|(purpose, sockets)| (purpose, sockets.as_slice()));
        data.chain(admin)
            .map(|(purpose, sockets)| {
                let copies = sockets.iter().map(|socket| socket.try_clone().map(OwnedFd::from));
                Ok((purpose.clone(), copies.collect::<io::Result<_>>()?))
            })
            .collect()
    }
}

fn open_admin(address: SocketAddr, inherited: &mut Inherited) -> Result<(Purpose, TcpListener), StartError> {
    let purpose = Purpose { key: "server.admin".into(), address };
    let socket = match inherited.remove(&purpose).and_then(|mut sockets| sockets.pop()) {
        Some(socket) => Ok(socket),
        None => TcpListener::bind(address),
    };
    let ready = socket.and_then(|socket| {
        socket.set_nonblocking(true)?;
        Ok((purpose, socket))
    });
    ready.map_err(|source| StartError::Listen { address, key: "server.admin", source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listeners(sockets: usize) -> Listeners {
        let address = "127.0.0.1:0".parse().unwrap();
        let purpose = Purpose { key: "server.listen".into(), address };
        Listeners { data: vec![(purpose, listen::bind(address, sockets).unwrap())], admin: None }
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
