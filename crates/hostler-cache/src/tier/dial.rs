//! Connects to a server by name or address. Knows no commands.

use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;

use async_memcached::{Client, Error};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UnixListener, lookup_host};

/// A connection to `host:port` or `unix:/path`. Over IPv4 if a name has both kinds of addresses.
pub(super) async fn dial(name: &str) -> Result<Client, Error> {
    if let Some(path) = name.strip_prefix("unix:") {
        return Client::new(format!("unix://{path}")).await;
    }
    let mut addresses: Vec<_> = lookup_host(name).await.map_err(Error::Connect)?.collect();
    // The addresses are tried one after the other within a short time, so the cheaper kind comes first.
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let mut failure = Error::Connect(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    for address in addresses {
        let dialled = match address {
            SocketAddr::V4(_) => Client::new(format!("tcp://{address}")).await,
            SocketAddr::V6(_) => over_ipv6(address).await.map_err(Error::Connect).flatten(),
        };
        match dialled {
            Ok(client) => return Ok(client),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The memcached client opens its sockets itself and cannot use IPv6. So it gets a socket of another kind, and a task
/// copies the bytes.
async fn over_ipv6(address: SocketAddr) -> io::Result<Result<Client, Error>> {
    let mut far = TcpStream::connect(address).await?;
    far.set_nodelay(true)?;
    let private = Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().prefix("hostler-memcached-").permissions(private).tempdir()?;
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path)?;
    let client = match Client::new(format!("unix://{}", path.display())).await {
        Ok(client) => client,
        Err(error) => return Ok(Err(error)),
    };
    let (mut near, _) = listener.accept().await?;
    // The task ends when either side closes.
    tokio::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
    Ok(Ok(client))
}
