//! Listening sockets: bound here, or taken over from a predecessor. Knows no connections.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;

use hostler_address::OwnAddresses;
use hostler_config::{Config, ListenAddress, Server, overlap};
use rustix::io::Errno;

use crate::admin::{AccessRules, AdminSocket};
use crate::listen::{self, ListenerKind};

/// What a socket is for: the key that contains its address, and the address as written there (port 0 stays 0).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(super) struct Purpose {
    pub key: String,
    pub address: ListenAddress,
}

/// An address on which Hostler could not listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} ({key}): {source}{}", self.advice())]
pub struct ListenError {
    address: ListenAddress,
    /// The configuration key of the address.
    key: &'static str,
    source: io::Error,
}

impl ListenError {
    /// What an operator can do.
    fn advice(&self) -> String {
        let Self { address, key, source } = self;
        let address = match address {
            ListenAddress::Tcp(address) => address,
            ListenAddress::Unix(path) => return advice_for_path(path, source.kind()),
        };
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
            io::ErrorKind::AddrNotAvailable => {
                format!(
                    "; this machine has no such address: use one of its own, or :{} for all of them",
                    address.port()
                )
            }
            _ if source.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error()) => {
                format!(
                    "; this machine has no IPv6: use an address of IPv4, or :{} for all of them",
                    address.port()
                )
            }
            _ => String::new(),
        }
    }
}

/// What an operator can do about the path of a Unix socket.
fn advice_for_path(path: &Path, kind: io::ErrorKind) -> String {
    let folder = path.parent().unwrap_or(path).display();
    match kind {
        io::ErrorKind::AddrInUse => "; another process listens there: end it, or use another path".into(),
        io::ErrorKind::NotFound => {
            format!("; create the folder {folder} for the user of Hostler (systemd: RuntimeDirectory=)")
        }
        io::ErrorKind::PermissionDenied => format!("; the user of Hostler must be able to write in {folder}"),
        _ => String::new(),
    }
}

/// Sockets that another process has bound.
pub(super) type Inherited = BTreeMap<Purpose, Vec<OwnedFd>>;

/// The sockets of one thread.
pub(super) type ListenerShare = Vec<(ListenerKind, TcpListener)>;

pub(super) struct Listeners {
    /// For each address a socket for each thread; the kernel distributes connections over them.
    data: Vec<(Purpose, ListenerKind, Vec<TcpListener>)>,
    admin: Option<(Purpose, AdminSocket)>,
}

impl Listeners {
    /// Takes over the inherited sockets and binds the missing ones. Inherited sockets without a use are closed. If `may_move_admin` and the
    /// admin port is taken, also by a listener for clients, the system chooses another one.
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
            let purpose = Purpose { key: key.into(), address: address.into() };
            let sockets = match inherited.remove(&purpose) {
                Some(sockets) => Ok(sockets.into_iter().map(TcpListener::from).collect()),
                None => listen::bind(address, server.threads),
            };
            match sockets {
                Ok(sockets) => Ok((purpose, listener_kind, sockets)),
                Err(source) => Err(ListenError { address: address.into(), key, source }),
            }
        });
        let data = data.collect::<Result<_, _>>()?;
        let admin = match &server.admin {
            Some(address) => Some(open_admin(address, config, &mut inherited, may_move_admin)?),
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

    /// The address of the first plain listener. If another process has bound its socket to all addresses, the configured one says at which of
    /// them others reach this machine. None if both are all addresses.
    pub fn reachable_at(&self) -> Option<SocketAddr> {
        let mut all = self.data.iter();
        let (purpose, _, sockets) =
            all.find(|(_, listener_kind, _)| *listener_kind == ListenerKind::Plain)?;
        let real = sockets.first()?.local_addr().ok()?;
        let written = purpose.address.tcp().map_or(real.ip(), |written| written.ip());
        let ip = if real.ip().is_unspecified() { written } else { real.ip() };
        (!ip.is_unspecified()).then(|| SocketAddr::new(ip, real.port()))
    }

    /// All addresses, with the admin listener's.
    pub fn own_addresses(&self) -> io::Result<OwnAddresses> {
        let admin = self.admin.iter().map(|(_, socket)| socket.address()).collect::<io::Result<Vec<_>>>()?;
        let admin = admin.iter().filter_map(ListenAddress::tcp);
        Ok(OwnAddresses::new(self.addresses().map(|(_, address)| address).chain(admin)))
    }

    /// The port of the first TLS listener; 0 if there is none.
    pub fn tls_port(&self) -> u16 {
        self.addresses()
            .find(|(listener_kind, _)| *listener_kind == ListenerKind::Tls)
            .map_or(0, |(_, address)| address.port())
    }

    pub fn admin(&self) -> io::Result<Option<AdminSocket>> {
        self.admin.as_ref().map(|(_, socket)| socket.try_clone()).transpose()
    }

    /// The real address of the admin listener. None without one.
    pub fn admin_address(&self) -> Option<ListenAddress> {
        self.admin.as_ref().and_then(|(_, socket)| socket.address().ok())
    }

    /// The rules of the admin listener, by its real address.
    pub fn access_rules(&self, server: &Server) -> AccessRules {
        let real = self.admin.as_ref().map(|(_, socket)| socket.address());
        let is_local = real.is_none_or(|real| real.is_ok_and(|real| real.is_local()));
        AccessRules { is_local, hosts: server.admin_hosts.clone(), token: server.admin_token.clone() }
    }

    /// The configured address of the admin listener and the real one, if the configured port was taken.
    pub fn moved_admin(&self) -> Option<(SocketAddr, SocketAddr)> {
        let (purpose, socket) = self.admin.as_ref()?;
        let (written, real) = (purpose.address.tcp()?, socket.address().ok()?.tcp()?);
        let is_moved = written.port() != 0 && written.port() != real.port();
        is_moved.then_some((written, real))
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
        let admin = self
            .admin
            .iter()
            .map(|(purpose, socket)| Ok((purpose.clone(), vec![OwnedFd::from(socket.try_clone()?)])));
        let data = self.data.iter().map(|(purpose, _, sockets)| {
            let copies = sockets.iter().map(|socket| socket.try_clone().map(OwnedFd::from));
            Ok((purpose.clone(), copies.collect::<io::Result<_>>()?))
        });
        data.chain(admin).collect()
    }
}

/// The purpose keeps the configured address, so that a successor finds the socket. A socket of another process can have another address
/// than the configured one.
fn open_admin(
    address: &ListenAddress,
    config: &Config,
    inherited: &mut Inherited,
    may_move: bool,
) -> Result<(Purpose, AdminSocket), ListenError> {
    let purpose = Purpose { key: "server.admin".into(), address: address.clone() };
    let socket = match inherited.remove(&purpose).and_then(|mut sockets| sockets.pop()) {
        Some(socket) => Ok(AdminSocket::of(address, socket)),
        None => AdminSocket::bind(&beside_clients(address, config), may_move),
    };
    let ready = socket.and_then(|socket| {
        socket.set_nonblocking()?;
        let real = socket.address()?;
        if !real.is_local() && config.server.admin_token.is_none() {
            let why =
                format!("other machines can reach the socket ({real}), so it needs server.admin_token_file");
            return Err(io::Error::other(why));
        }
        Ok((purpose, socket))
    });
    ready.map_err(|source| ListenError { address: address.clone(), key: "server.admin", source })
}

/// The address, with a port that the system chooses if a listener for clients has this one. The system itself need not refuse it: macOS gives one
/// address of a port to another socket than all of them.
fn beside_clients(address: &ListenAddress, config: &Config) -> ListenAddress {
    let mut clients = config.server.listen.iter().chain(config.tls.iter().flat_map(|tls| &tls.listen));
    match address {
        ListenAddress::Tcp(admin) if clients.any(|client| overlap(*admin, *client)) => {
            SocketAddr::new(admin.ip(), 0).into()
        }
        _ => address.clone(),
    }
}

#[cfg(test)]
mod tests {
    use hostler_config::{Given, Invocation, LoadContext, Setting};

    use super::*;

    fn listeners(sockets: usize) -> Listeners {
        let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let purpose = Purpose { key: "server.listen".into(), address: address.into() };
        let data = vec![(purpose, ListenerKind::Plain, listen::bind(address, sockets).unwrap())];
        Listeners { data, admin: None }
    }

    #[test]
    fn an_address_that_this_machine_does_not_have_is_said_to_be_none_of_its_own() {
        // For documentation only (RFC 5737).
        let address: SocketAddr = "192.0.2.1:8080".parse().unwrap();
        let error = |source| ListenError { address: address.into(), key: "server.listen", source };
        let said = error(listen::bind(address, 1).unwrap_err()).to_string();
        assert!(
            said.ends_with("this machine has no such address: use one of its own, or :8080 for all of them"),
            "{said}"
        );
        let said = error(Errno::AFNOSUPPORT.into()).to_string();
        assert!(
            said.ends_with("this machine has no IPv6: use an address of IPv4, or :8080 for all of them"),
            "{said}"
        );
    }

    #[test]
    fn the_admin_listener_gets_another_port_than_one_for_clients() {
        let setting = |key: &str, text: &str| Setting {
            key: key.into(),
            given: Given::Text(text.into()),
            name: format!("--{key}"),
        };
        let settings = vec![setting("server.listen", ":8081"), setting("pools.app.command", "x")];
        let load_context = LoadContext { environment: Default::default(), ..LoadContext::of_process() };
        let invocation = Invocation { file: None, settings, load_context };
        let config = hostler_config::load(&invocation).unwrap_or_else(|errors| panic!("{errors}"));
        let admin = config.server.admin.clone().unwrap();
        assert_eq!(beside_clients(&admin, &config).to_string(), "127.0.0.1:0");
        for other in ["127.0.0.1:8082", "unix:/run/admin.sock"] {
            assert_eq!(beside_clients(&other.parse().unwrap(), &config).to_string(), other);
        }
    }

    #[test]
    fn a_given_socket_on_all_addresses_is_reached_at_the_configured_one() {
        let reached = |written: &str, bound: &str| {
            let purpose = Purpose { key: "server.listen".into(), address: written.parse().unwrap() };
            let sockets = listen::bind(bound.parse().unwrap(), 1).unwrap();
            let port = sockets[0].local_addr().unwrap().port();
            let listeners = Listeners { data: vec![(purpose, ListenerKind::Plain, sockets)], admin: None };
            let at = listeners.reachable_at()?;
            assert_eq!(at.port(), port);
            Some(at.ip().to_string())
        };
        assert_eq!(reached("10.0.0.5:8080", "0.0.0.0:0").as_deref(), Some("10.0.0.5"));
        assert_eq!(reached("10.0.0.5:8080", "127.0.0.1:0").as_deref(), Some("127.0.0.1"));
        assert_eq!(reached("0.0.0.0:8080", "0.0.0.0:0"), None);
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
