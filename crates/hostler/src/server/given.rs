//! Descriptors that Hostler is started with: listening sockets that are given on purpose (systemd's socket activation,
//! sd_listen_fds(3)), and others, which stay with this process. Knows no connections.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};

use close_fds::set_fds_cloexec;
use hostler_config::Config;
use listenfd::ListenFd;

use super::environment::Environment;
use super::listeners::{Inherited, Purpose};

/// Where descriptors begin that are neither input, output nor errors.
const FIRST: i32 = 3;
/// How systemd says which sockets it gives, and to which process.
const VARIABLES: [&str; 4] = ["LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// What is wrong with the sockets that were given.
#[derive(Debug, thiserror::Error)]
pub enum GivenError {
    /// It is something else.
    #[error("LISTEN_FDS: descriptor {number} ({name:?}) is no listening TCP socket")]
    Kind {
        /// Its number.
        number: i32,
        /// Its name.
        name: String,
    },
    /// No key has its address.
    #[error(
        "LISTEN_FDS: socket {number} ({name:?}) listens on {address}, which is no address of server.listen, tls.listen or \
         server.admin; write it there, or name the key: FileDescriptorName=server.listen"
    )]
    Unknown {
        /// Its number.
        number: i32,
        /// Its name.
        name: String,
        /// Its address.
        address: SocketAddr,
    },
    /// Its key has no address without a socket.
    #[error("LISTEN_FDS: socket {number} ({address}) is one more than {key} has addresses")]
    TooMany {
        /// Its number.
        number: i32,
        /// Its address.
        address: SocketAddr,
        /// Its name, which is a key.
        key: String,
    },
}

/// Listening sockets that whoever has started Hostler has opened for it.
#[derive(Default)]
pub struct GivenListeners {
    sockets: Vec<Socket>,
    /// What the operator should know of them.
    pub warning: Option<String>,
}

struct Socket {
    number: i32,
    name: String,
    address: SocketAddr,
    listener: TcpListener,
}

impl GivenListeners {
    /// Takes them, and keeps all other descriptors from processes that are started from here on: a lock or a log is that of
    /// whoever has started us. The variables are taken out of the environment: they are for nobody else.
    pub fn take(environment: &mut Environment) -> Result<Self, GivenError> {
        set_fds_cloexec(FIRST, &[]);
        let said: Vec<_> = VARIABLES.iter().map(|name| environment.remove(*name)).collect();
        let [Some(process), _, Some(count), names] = said.as_slice() else { return Ok(Self::default()) };
        let ours = std::process::id();
        if process.parse() != Ok(ours) {
            let warning = Some(format!(
                "LISTEN_FDS: {count} sockets are for process {process}, and this is process {ours}: a program that stands between \
                 whoever gives sockets and Hostler has to become Hostler by exec"
            ));
            return Ok(Self { warning, ..Self::default() });
        }
        let mut passed = ListenFd::from_env();
        let mut names = names.as_deref().unwrap_or_default().split(':');
        let sockets = (0..passed.len()).map(|index| {
            let number = FIRST + i32::try_from(index).unwrap_or(i32::MAX);
            let name = names.next().unwrap_or_default().to_owned();
            let listener = passed.take_tcp_listener(index).ok().flatten();
            let listening = listener.filter(is_listening);
            match listening.and_then(|listener| Some((listener.local_addr().ok()?, listener))) {
                Some((address, listener)) => Ok(Socket { number, name, address, listener }),
                None => Err(GivenError::Kind { number, name }),
            }
        });
        Ok(Self { sockets: sockets.collect::<Result<_, _>>()?, warning: None })
    }

    pub(super) fn describe(&self) -> impl Iterator<Item = String> {
        self.sockets.iter().map(|socket| {
            let Socket { number, name, address, .. } = socket;
            format!("socket {number} ({name:?}) was given by whoever started this process: {address}")
        })
    }

    /// What each of them is for: the key that it is named after, or else the one that has its address.
    pub(super) fn assign(self, config: &Config) -> Result<Inherited, GivenError> {
        let plain = config.server.listen.iter().map(|&address| ("server.listen", address));
        let tls = config.tls.iter().flat_map(|tls| &tls.listen).map(|&address| ("tls.listen", address));
        let admin = config.server.admin.iter().map(|&address| ("server.admin", address));
        let purposes = plain.chain(tls).chain(admin);
        let purposes: Vec<_> = purposes.map(|(key, address)| Purpose { key: key.into(), address }).collect();
        let mut assigned = BTreeMap::new();
        for Socket { number, name, address, listener } in self.sockets {
            let purpose = purpose_of(&purposes, &name, address, |purpose| assigned.contains_key(purpose));
            let Some(purpose) = purpose else {
                return Err(match is_key(&name) {
                    true => GivenError::TooMany { number, address, key: name },
                    false => GivenError::Unknown { number, name, address },
                });
            };
            assigned.entry(purpose.clone()).or_insert_with(Vec::new).push(listener);
        }
        Ok(assigned)
    }
}

fn is_listening(socket: &TcpListener) -> bool {
    let is_ready = rustix::net::sockopt::socket_acceptconn(socket) == Ok(true);
    is_ready && socket.set_nonblocking(true).is_ok()
}

fn is_key(name: &str) -> bool {
    ["server.listen", "tls.listen", "server.admin"].contains(&name)
}

/// By its address, of the key that it is named after if it is named after one; one that is named may also stand for an address
/// of its key that has no socket yet.
fn purpose_of<'a>(
    purposes: &'a [Purpose],
    name: &str,
    address: SocketAddr,
    is_taken: impl Fn(&Purpose) -> bool,
) -> Option<&'a Purpose> {
    let is_same =
        |purpose: &&Purpose| (purpose.address.ip(), purpose.address.port()) == (address.ip(), address.port());
    if !is_key(name) {
        return purposes.iter().find(is_same);
    }
    let of_key = || purposes.iter().filter(|purpose| purpose.key == name);
    of_key().find(is_same).or_else(|| of_key().find(|purpose| !is_taken(purpose)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purposes() -> Vec<Purpose> {
        let all = [
            ("server.listen", "127.0.0.1:80"),
            ("server.listen", "[::]:80"),
            ("tls.listen", "127.0.0.1:443"),
            ("server.admin", "127.0.0.1:0"),
        ];
        all.map(|(key, address)| Purpose { key: key.into(), address: address.parse().unwrap() }).into()
    }

    #[test]
    fn a_given_socket_is_for_the_key_that_names_it_or_has_its_address() {
        let purposes = purposes();
        let found = |name: &str, address: &str, taken: usize| {
            let is_taken = |purpose: &Purpose| purposes[..taken].contains(purpose);
            let found = purpose_of(&purposes, name, address.parse().unwrap(), is_taken)?;
            purposes.iter().position(|purpose| purpose == found)
        };
        assert_eq!(found("hostler.socket", "127.0.0.1:443", 0), Some(2));
        assert_eq!(found("", "[::]:80", 0), Some(1));
        assert_eq!(found("unknown", "0.0.0.0:80", 0), None);
        // Its own address before any other of its key.
        assert_eq!(found("server.listen", "[::]:80", 0), Some(1));
        assert_eq!(found("server.listen", "10.0.0.1:8080", 0), Some(0));
        assert_eq!(found("server.listen", "10.0.0.1:8080", 1), Some(1));
        assert_eq!(found("server.listen", "10.0.0.1:8080", 2), None);
        assert_eq!(found("server.admin", "127.0.0.1:8081", 0), Some(3));
        // A name wins over an address that another key has.
        assert_eq!(found("tls.listen", "127.0.0.1:80", 0), Some(2));
    }
}
