//! The socket of the admin listener: TCP, or a Unix socket that only its user can connect to. Knows no requests.

use std::fs::{self, File, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use hostler_config::ListenAddress;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};

/// Only root and the user of this process may connect.
const MODE: u32 = 0o600;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// A start or an end waits for another one with a socket in the same folder: for a second, in so many looks.
const LOCK_LOOKS: u32 = 200;
const LOCK_LOOK: Duration = Duration::from_millis(5);

/// A bound socket.
pub enum AdminSocket {
    Tcp(TcpListener),
    /// With its path: a socket that another process has bound need not tell it.
    Unix(UnixListener, PathBuf),
}

impl AdminSocket {
    /// Binds it. `may_move`: if the port is taken, the system chooses another one.
    pub fn bind(address: &ListenAddress, may_move: bool) -> io::Result<Self> {
        match address {
            ListenAddress::Tcp(address) => TcpListener::bind(address)
                .or_else(|error| match error.kind() {
                    io::ErrorKind::AddrInUse if may_move => {
                        TcpListener::bind(SocketAddr::new(address.ip(), 0))
                    }
                    _ => Err(error),
                })
                .map(Self::Tcp),
            ListenAddress::Unix(path) => Ok(Self::Unix(bind_unix(path)?, path.clone())),
        }
    }

    /// A socket that another process has bound for this address.
    pub fn of(address: &ListenAddress, socket: OwnedFd) -> Self {
        match address {
            ListenAddress::Tcp(_) => Self::Tcp(socket.into()),
            ListenAddress::Unix(path) => Self::Unix(socket.into(), path.clone()),
        }
    }

    /// The address to which clients connect, with the real port.
    pub fn address(&self) -> io::Result<ListenAddress> {
        match self {
            Self::Tcp(socket) => socket.local_addr().map(ListenAddress::Tcp),
            Self::Unix(_, path) => Ok(ListenAddress::Unix(path.clone())),
        }
    }

    pub fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.set_nonblocking(true),
            Self::Unix(socket, _) => socket.set_nonblocking(true),
        }
    }

    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(socket) => socket.try_clone().map(Self::Tcp),
            Self::Unix(socket, path) => Ok(Self::Unix(socket.try_clone()?, path.clone())),
        }
    }
}

impl From<AdminSocket> for OwnedFd {
    fn from(socket: AdminSocket) -> Self {
        match socket {
            AdminSocket::Tcp(socket) => socket.into(),
            AdminSocket::Unix(socket, _) => socket.into(),
        }
    }
}

/// Removes the file of a Unix socket on which no process listens any more. For the end of the program: a successor may go on with it.
pub fn remove_if_dead(address: Option<&ListenAddress>) {
    if let Some(ListenAddress::Unix(path)) = address
        && let Ok(_turn) = lock_folder(path)
        && is_socket(path).unwrap_or(false)
        && is_dead(path).unwrap_or(false)
    {
        let _ = fs::remove_file(path);
    }
}

/// Before `listen`, the kernel refuses connections. So no other user can connect before the file has its mode.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let _turn = lock_folder(path)?;
    if is_socket(path)? {
        if !is_dead(path)? {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        fs::remove_file(path)?;
    }
    let socket = unix_socket()?;
    socket.bind(&SockAddr::unix(path)?)?;
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Locks the folder until the returned file is dropped. Otherwise two Hostlers that start at the same time could both find a stale file, and the
/// later one would remove the socket of the earlier one. A Hostler with another path in this folder holds the lock only for a moment, so it is
/// waited for. None: the folder may not be read, so it cannot be locked.
#[expect(clippy::disallowed_methods, reason = "it runs before the first worker and after the last one")]
fn lock_folder(path: &Path) -> io::Result<Option<File>> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let folder = match File::open(folder) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        Err(error) => return Err(error),
    };
    for _ in 0..LOCK_LOOKS {
        // Some file systems have no locks.
        if flock(&folder, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK) {
            return Ok(Some(folder));
        }
        sleep(LOCK_LOOK);
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// False if nothing is there. A file of another type is an error: it is not ours to remove.
fn is_socket(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.file_type().is_socket() => Ok(true),
        Ok(_) => {
            Err(io::Error::other("the path has a file that is not a socket; remove it, or use another path"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether no process listens on the socket. A process whose queue is full listens.
fn is_dead(path: &Path) -> io::Result<bool> {
    if is_listed(path) {
        return Ok(false);
    }
    match unix_socket()?.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(true),
        Ok(()) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the kernel knows a process that listens on the socket. Then no connection is tried: it may be a socket of a systemd `.socket` unit, and
/// a waiting client there would make systemd start the service again, which has just ended. Only sockets of this network namespace are listed.
fn is_listed(path: &Path) -> bool {
    // `0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/hostler/admin.sock`, with the flags as the fourth.
    const LISTENS: &[u8] = b"00010000";
    let ending = [b" ", path.as_os_str().as_bytes()].concat();
    let all = fs::read("/proc/net/unix").unwrap_or_default();
    let mut sockets = all.split(|byte| *byte == b'\n').filter(|line| line.ends_with(&ending));
    sockets.any(|line| line.split(|byte| *byte == b' ').nth(3) == Some(LISTENS))
}

/// It does not block, and programs that are started do not inherit it.
fn unix_socket() -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Barrier;

    use super::*;

    fn place() -> (tempfile::TempDir, ListenAddress, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        (folder, ListenAddress::Unix(path.clone()), path)
    }

    #[test]
    fn a_unix_socket_has_mode_0600_from_its_first_connection() {
        let (_folder, address, path) = place();
        let _socket = AdminSocket::bind(&address, false).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, MODE);
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_an_error() {
        let (_folder, address, path) = place();
        drop(AdminSocket::bind(&address, false).unwrap());
        assert!(path.exists(), "the file stays when its process ends");
        let live = AdminSocket::bind(&address, false).unwrap();
        let refused = AdminSocket::bind(&address, false).err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        remove_if_dead(Some(&address));
        UnixStream::connect(&path).unwrap();
        drop(live);
        remove_if_dead(Some(&address));
        assert!(!path.exists());
    }

    /// systemd would take the connection for that of a client.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_socket_on_which_another_process_listens_gets_no_connection() {
        let (_folder, address, path) = place();
        let of_systemd = UnixListener::bind(&path).unwrap();
        of_systemd.set_nonblocking(true).unwrap();
        remove_if_dead(Some(&address));
        assert_eq!(of_systemd.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        UnixStream::connect(&path).unwrap();
        of_systemd.accept().unwrap();
    }

    #[test]
    fn a_file_that_is_no_socket_is_never_removed() {
        let (_folder, address, path) = place();
        fs::write(&path, "precious").unwrap();
        assert!(AdminSocket::bind(&address, false).err().unwrap().to_string().contains("not a socket"));
        remove_if_dead(Some(&address));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn many_starts_at_the_same_moment_with_sockets_in_one_folder_all_succeed() {
        let folder = tempfile::tempdir().unwrap();
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (folder, start) = (folder.path(), &start);
                scope.spawn(move || {
                    start.wait();
                    for round in 0..50 {
                        let path = folder.join(format!("{number}-{round}.sock"));
                        AdminSocket::bind(&ListenAddress::Unix(path), false).unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn a_second_start_at_the_same_moment_is_refused() {
        let (folder, address, path) = place();
        let other = File::open(folder.path()).unwrap();
        flock(&other, FlockOperation::LockExclusive).unwrap();
        let refused = AdminSocket::bind(&address, false).err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        assert!(!path.exists());
        drop(other);
        AdminSocket::bind(&address, false).unwrap();
    }
}
