//! Connects to a server by name or address. Knows no commands.

use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, symlink};

use async_memcached::{Client, Error};
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UnixListener, lookup_host};
use tokio::task::JoinSet;
use tokio::time::Instant;
use url::Url;

/// A connection. It is closed when this is dropped.
pub(super) struct MemcachedConnection {
    pub client: Client,
    /// Since when the client has a large buffer. None: it has a small one.
    pub large_since: Option<Instant>,
    /// The task that copies the bytes, if the client cannot use the socket itself.
    _copying: JoinSet<()>,
}

impl MemcachedConnection {
    fn new(client: Client, copying: JoinSet<()>) -> Self {
        Self { client, large_since: None, _copying: copying }
    }
}

/// A connection to `host:port` or `unix:/path`. Over IPv4 if a name has both kinds of addresses.
pub(super) async fn dial(name: &str) -> Result<MemcachedConnection, Error> {
    if let Some(path) = name.strip_prefix("unix:") {
        return at_path(path).await;
    }
    let mut addresses: Vec<_> = lookup_host(name).await.map_err(Error::Connect)?.collect();
    // The addresses are tried one after the other within a short time, so the cheaper kind comes first.
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let mut failure = Error::Connect(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    for address in addresses {
        let dialled = match address {
            SocketAddr::V4(_) => direct(&format!("tcp://{address}")).await,
            SocketAddr::V6(_) => over_ipv6(address).await.map_err(Error::Connect).flatten(),
        };
        match dialled {
            Ok(connection) => return Ok(connection),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn direct(address: &str) -> Result<MemcachedConnection, Error> {
    Ok(MemcachedConnection::new(Client::new(address).await?, JoinSet::new()))
}

/// The memcached client reads the path as that of a URL, in which a space or a letter with an accent is encoded. So it gets a link to such
/// a socket.
async fn at_path(path: &str) -> Result<MemcachedConnection, Error> {
    let address = format!("unix://{path}");
    if Url::parse(&address).is_ok_and(|url| url.path() == path) {
        return direct(&address).await;
    }
    let folder = private_folder().map_err(Error::Connect)?;
    let link = folder.path().join("socket");
    symlink(path, &link).map_err(Error::Connect)?;
    direct(&format!("unix://{}", link.display())).await
}

/// A folder for a socket or a link to one. It is removed when this is dropped, which does not end a connection.
fn private_folder() -> io::Result<TempDir> {
    let private = Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix("hostler-memcached-").permissions(private).tempdir()
}

/// The memcached client opens its sockets itself and cannot use IPv6. So it gets a socket of another kind, and a task
/// copies the bytes.
async fn over_ipv6(address: SocketAddr) -> io::Result<Result<MemcachedConnection, Error>> {
    let mut far = TcpStream::connect(address).await?;
    far.set_nodelay(true)?;
    let folder = private_folder()?;
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path)?;
    let client = match Client::new(format!("unix://{}", path.display())).await {
        Ok(client) => client,
        Err(error) => return Ok(Err(error)),
    };
    let (mut near, _) = listener.accept().await?;
    let mut copying = JoinSet::new();
    // By itself it ends only when both sides have closed. A server that hangs does not close its side.
    copying.spawn(async move {
        let _ = copy_bidirectional(&mut near, &mut far).await;
    });
    Ok(Ok(MemcachedConnection::new(client, copying)))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;
    use std::time::Duration;

    use hostler_testkit::say_skipped;
    use tokio::net::TcpListener;
    use tokio::runtime::Handle;
    use tokio::task::yield_now;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn nothing_remains_of_a_connection_over_ipv6_to_a_server_that_hangs() {
        let hanging = match TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await {
            Ok(hanging) => hanging,
            // Not each machine has IPv6.
            Err(error) => return say_skipped(&format!("nothing can listen at ::1: {error}")),
        };
        let connection = dial(&hanging.local_addr().unwrap().to_string()).await.unwrap();
        let (_never_closed, _) = hanging.accept().await.unwrap();
        let metrics = Handle::current().metrics();
        assert_eq!(metrics.num_alive_tasks(), 1, "it copies");
        drop(connection);
        let ended = async {
            while metrics.num_alive_tasks() > 0 {
                yield_now().await;
            }
        };
        timeout(Duration::from_secs(10), ended).await.expect("it ends");
    }

    #[tokio::test]
    async fn the_path_of_a_socket_may_have_any_characters() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["plain", "a b", "caf\u{e9}", "5%", "%20", "a?b#c"] {
            let path = folder.path().join(name);
            let listener = UnixListener::bind(&path).unwrap();
            let connection = dial(&format!("unix:{}", path.display())).await;
            assert!(connection.is_ok(), "{name}: {:?}", connection.err());
            listener.accept().await.unwrap();
        }
    }
}
