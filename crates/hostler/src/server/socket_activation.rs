//! Descriptors that Hostler inherits at its start: listening sockets from systemd's socket activation (sd_listen_fds(3)), and others,
//! which workers must not get. Knows no connections.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use close_fds::set_fds_cloexec;
use hostler_config::{Config, ListenAddress};
use listenfd::ListenFd;

use super::environment::Environment;
use super::listeners::{Inherited, Purpose};

/// The first descriptor after standard input, output and error.
const FIRST: i32 = 3;
/// The environment variables in which systemd names the sockets and the process that they are for.
const VARIABLES: [&str; 4] = ["LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES"];

#[derive(Debug, thiserror::Error)]
pub enum GivenError {
    #[error("LISTEN_FDS: descriptor {number} ({name:?}) is no listening TCP or Unix socket")]
    Kind { number: i32, name: String },
    #[error(
        "LISTEN_FDS: socket {number} ({name:?}) listens on {address}, which is no address of server.listen, tls.listen or \
         server.admin; write it there, or name the key: FileDescriptorName=server.listen"
    )]
    Unknown { number: i32, name: String, address: ListenAddress },
    #[error(
        "LISTEN_FDS: socket {number} ({address}) is too many: {key} has fewer addresses than there are sockets with this \
         name"
    )]
    TooMany {
        number: i32,
        address: ListenAddress,
        /// The socket's name, which is a key of the configuration.
        key: String,
    },
}

/// Listening sockets that the parent process has opened for Hostler.
#[derive(Default)]
pub struct GivenListeners {
    sockets: Vec<Socket>,
    /// A warning for the log.
    pub warning: Option<String>,
}

struct Socket {
    number: i32,
    name: String,
    address: ListenAddress,
    listener: OwnedFd,
}

impl GivenListeners {
    /// Takes the sockets, and marks all other descriptors close-on-exec: a lock or a log file of the parent must not reach workers.
    /// Removes the variables from the environment, because they are only for this process.
    pub fn take(environment: &mut Environment) -> Result<Self, GivenError> {
        set_fds_cloexec(FIRST, &[]);
        let said: Vec<_> = VARIABLES.iter().map(|name| environment.remove(*name)).collect();
        let [Some(process), _, Some(count), names] = said.as_slice() else { return Ok(Self::default()) };
        let ours = std::process::id();
        if process.parse() != Ok(ours) {
            let warning = Some(format!(
                "LISTEN_FDS: {count} sockets are for process {process}, and this is process {ours}: a program that \
                 starts Hostler with such sockets must replace itself by Hostler (exec)"
            ));
            return Ok(Self { warning, ..Self::default() });
        }
        let mut passed = ListenFd::from_env();
        let mut names = names.as_deref().unwrap_or_default().split(':');
        let sockets = (0..passed.len()).map(|index| {
            let number = FIRST + i32::try_from(index).unwrap_or(i32::MAX);
            let name = names.next().unwrap_or_default().to_owned();
            match take(&mut passed, index) {
                Some((address, listener)) => Ok(Socket { number, name, address, listener }),
                None => Err(GivenError::Kind { number, name }),
            }
        });
        Ok(Self { sockets: sockets.collect::<Result<_, _>>()?, warning: None })
    }

    pub(super) fn describe(&self) -> impl Iterator<Item = String> {
        self.sockets.iter().map(|socket| {
            let Socket { number, name, address, .. } = socket;
            format!("socket {number} ({name:?}) was passed by the parent process: {address}")
        })
    }

    /// Assigns each socket to the key that its name names, or else to the key with its address.
    pub(super) fn assign(self, config: &Config) -> Result<Inherited, GivenError> {
        let plain = config.server.listen.iter().map(|&address| ("server.listen", address.into()));
        let tls =
            config.tls.iter().flat_map(|tls| &tls.listen).map(|&address| ("tls.listen", address.into()));
        let admin = config.server.admin.iter().map(|address| ("server.admin", address.clone()));
        let purposes = plain.chain(tls).chain(admin);
        let purposes: Vec<_> = purposes.map(|(key, address)| Purpose { key: key.into(), address }).collect();
        let mut assigned = BTreeMap::new();
        for Socket { number, name, address, listener } in self.sockets {
            let purpose = purpose_of(&purposes, &name, &address, |purpose| assigned.contains_key(purpose));
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

/// A listening socket and its address. None for any other descriptor.
fn take(passed: &mut ListenFd, index: usize) -> Option<(ListenAddress, OwnedFd)> {
    if let Ok(Some(socket)) = passed.take_tcp_listener(index) {
        return is_listening(&socket).then_some((socket.local_addr().ok()?.into(), socket.into()));
    }
    let socket = passed.take_unix_listener(index).ok().flatten()?;
    let path = socket.local_addr().ok()?.as_pathname()?.to_owned();
    is_listening(&socket).then_some((ListenAddress::Unix(path), socket.into()))
}

fn is_listening(socket: &impl AsFd) -> bool {
    // macOS cannot tell. systemd is on Linux only.
    #[cfg(target_os = "linux")]
    let is_ready = rustix::net::sockopt::socket_acceptconn(socket) == Ok(true);
    #[cfg(not(target_os = "linux"))]
    let is_ready = true;
    is_ready && rustix::io::ioctl_fionbio(socket, true).is_ok()
}

fn is_key(name: &str) -> bool {
    ["server.listen", "tls.listen", "server.admin"].contains(&name)
}

/// A socket whose name is a key belongs to that key: to its own address there, or to one of the same kind that has no socket yet. Any other
/// socket is assigned by its address.
fn purpose_of<'a>(
    purposes: &'a [Purpose],
    name: &str,
    address: &ListenAddress,
    is_taken: impl Fn(&Purpose) -> bool,
) -> Option<&'a Purpose> {
    let is_same = |purpose: &&Purpose| match (&purpose.address, address) {
        (ListenAddress::Tcp(own), ListenAddress::Tcp(given)) => {
            (own.ip(), own.port()) == (given.ip(), given.port())
        }
        (own, given) => own == given,
    };
    if !is_key(name) {
        return purposes.iter().find(is_same);
    }
    let of_key = || purposes.iter().filter(|purpose| purpose.key == name);
    let is_alike = |purpose: &&Purpose| purpose.address.tcp().is_some() == address.tcp().is_some();
    of_key().find(is_same).or_else(|| of_key().filter(is_alike).find(|purpose| !is_taken(purpose)))
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
            ("server.admin", "unix:/run/hostler/admin.sock"),
        ];
        all.map(|(key, address)| Purpose { key: key.into(), address: address.parse().unwrap() }).into()
    }

    #[test]
    fn a_given_socket_is_for_the_key_that_names_it_or_has_its_address() {
        let purposes = purposes();
        let found = |name: &str, address: &str, taken: usize| {
            let is_taken = |purpose: &Purpose| purposes[..taken].contains(purpose);
            let found = purpose_of(&purposes, name, &address.parse().unwrap(), is_taken)?;
            purposes.iter().position(|purpose| purpose == found)
        };
        assert_eq!(found("hostler.socket", "127.0.0.1:443", 0), Some(2));
        assert_eq!(found("", "[::]:80", 0), Some(1));
        assert_eq!(found("unknown", "0.0.0.0:80", 0), None);
        // Its own address is preferred to other addresses of its key.
        assert_eq!(found("server.listen", "[::]:80", 0), Some(1));
        assert_eq!(found("server.listen", "10.0.0.1:8080", 0), Some(0));
        assert_eq!(found("server.listen", "10.0.0.1:8080", 1), Some(1));
        assert_eq!(found("server.listen", "10.0.0.1:8080", 2), None);
        assert_eq!(found("server.admin", "127.0.0.1:8081", 0), Some(3));
        assert_eq!(found("hostler.socket", "unix:/run/hostler/admin.sock", 0), Some(4));
        assert_eq!(found("server.admin", "unix:/run/other.sock", 0), Some(4));
        assert_eq!(found("server.listen", "unix:/run/other.sock", 0), None);
        // The name is preferred to the address of another key.
        assert_eq!(found("tls.listen", "127.0.0.1:80", 0), Some(2));
    }
}
