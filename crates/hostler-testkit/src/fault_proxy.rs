//! A proxy between a client and a server that delays, blocks or garbles what the server sends. Knows no protocol.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// What happens to the server's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkFault {
    /// They arrive unchanged.
    None,
    /// They arrive later by this time.
    Late(Duration),
    /// They never arrive, and the connection stays open.
    Mute,
    /// Other bytes arrive, as many as there were, with line ends at the same positions.
    Garbled,
}

/// A proxy on its own port. Dropping it ends it and all its connections.
pub struct FaultProxy {
    address: SocketAddr,
    how: watch::Sender<LinkFault>,
    accepting: AbortHandle,
}

/// Starts a proxy in front of this server.
///
/// # Panics
/// If there is no free port.
pub async fn fault_proxy(server: SocketAddr) -> FaultProxy {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (how, told) = watch::channel(LinkFault::None);
    let accepting = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((client, _)) = listener.accept().await {
            connections.spawn(relay_with_fault(client, server, told.clone()));
        }
    });
    FaultProxy { address, how, accepting: accepting.abort_handle() }
}

impl FaultProxy {
    /// The address of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what happens from now on, on all connections.
    pub fn set(&self, how: LinkFault) {
        self.how.send_replace(how);
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn relay_with_fault(client: TcpStream, server: SocketAddr, told: watch::Receiver<LinkFault>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let questions = async { tokio::io::copy(&mut from_client, &mut to_server).await };
    let answers = async {
        let mut piece = vec![0; 65_536];
        loop {
            let count = from_server.read(&mut piece).await?;
            let how = *told.borrow();
            match how {
                LinkFault::None => {}
                // Answers to later requests wait too, as they do at a slow server.
                LinkFault::Late(pause) => drop(timeout(pause, std::future::pending::<()>()).await),
                LinkFault::Mute => continue,
                LinkFault::Garbled => piece[..count].iter_mut().for_each(garble),
            }
            if count == 0 {
                return Ok::<_, std::io::Error>(());
            }
            to_client.write_all(&piece[..count]).await?;
        }
    };
    // If one side ends, both end.
    tokio::select! {
        _ = questions => {}
        _ = answers => {}
    }
}

fn garble(byte: &mut u8) {
    if !matches!(byte, b'\r' | b'\n') {
        *byte ^= 0x15;
    }
}
