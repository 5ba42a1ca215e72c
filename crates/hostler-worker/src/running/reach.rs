//! Looks whether a worker still listens. One without the preload does not tell that its app has closed its port.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use hostler_dispatch::Gauge;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, sleep};

use super::RunningProcess;
use crate::news::{NewsSender, WorkerNews};
use crate::settings::WorkerAddress;

/// How long an app has to listen again after it has closed its server.
pub(super) const REOPENING: Duration = Duration::from_secs(2);

const LOOK: Duration = Duration::from_secs(1);

impl RunningProcess {
    /// Begins to check the port when the worker has joined. A closed port counts only after `start_timeout`: until then, a first server may listen
    /// only until the app is ready.
    pub fn watch_port<E: Send + Sync + 'static>(&mut self, gauge: Gauge<E>, start_timeout: Duration) {
        let Some(WorkerAddress::Tcp(address)) = self.address else { return };
        let boots_until = self.started + start_timeout;
        self.tasks.spawn(watch(gauge, address, boots_until, self.news_sender.clone()));
    }
}

/// Runs until the member has left: its worker may serve at another address then. Connects only after a request could not connect, so that a
/// working app gets no connections without a request. Reports a closed port at each look.
async fn watch<E>(gauge: Gauge<E>, address: SocketAddr, boots_until: Instant, news_sender: NewsSender) {
    let (address, mut closed_since) = (WorkerAddress::Tcp(address), None);
    loop {
        sleep(LOOK).await;
        let Some(is_out_of_reach) = gauge.is_out_of_reach() else { return };
        if !(is_out_of_reach && is_closed(&address).await) {
            closed_since = None;
            continue;
        }
        let since = *closed_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= REOPENING && Instant::now() >= boots_until {
            news_sender.send(WorkerNews::NotListening).await;
        }
    }
}

/// Whether nothing listens at the address: the connection is refused, or there is no such socket. Other errors do not count: the app may be too
/// busy to accept connections, or Hostler may have no file descriptor left.
pub(super) async fn is_closed(address: &WorkerAddress) -> bool {
    let failure = match address {
        WorkerAddress::Unix(path) => UnixStream::connect(path).await.err(),
        WorkerAddress::Tcp(address) => TcpStream::connect(address).await.err(),
    };
    let kind = failure.map(|error| error.kind());
    matches!(kind, Some(ErrorKind::ConnectionRefused | ErrorKind::NotFound))
}

#[cfg(test)]
mod tests {
    use hostler_dispatch::{Claim, LeaseEnding, Pool, PoolSettings};
    use hostler_testkit::held_port;
    use tokio::time::timeout;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_closed_port_is_reported_after_a_connection_has_failed_and_not_during_the_boot() {
        let closed = held_port();
        let address = closed.address();
        let pool = Pool::new("test", PoolSettings::default());
        let membership = pool.join((), 1);
        let (news_sender, mut news_receiver) = NewsSender::pair(1);
        let boots_until = Instant::now() + 60 * SECOND;
        let watching = tokio::spawn(watch(membership.gauge(), address, boots_until, news_sender));
        let news = timeout(100 * SECOND, news_receiver.recv()).await;
        assert!(news.is_err(), "no request has found it closed");
        watching.abort();

        let (news_sender, mut news_receiver) = NewsSender::pair(1);
        let boots_until = Instant::now() + 60 * SECOND;
        let watching = tokio::spawn(watch(membership.gauge(), address, boots_until, news_sender));
        pool.acquire(Claim::default()).await.unwrap().end(LeaseEnding::Unreachable);
        let news = news_receiver.recv().await;
        assert!(matches!(news, Some((1, WorkerNews::NotListening))), "{news:?}");
        assert!(Instant::now() >= boots_until);
        drop((membership, news_receiver));
        watching.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_port_of_a_member_that_has_left_is_not_looked_at_while_its_last_request_runs() {
        let closed = held_port();
        let pool = Pool::new("test", PoolSettings::default());
        let membership = pool.join((), 2);
        let (news_sender, mut news_receiver) = NewsSender::pair(1);
        let watching = tokio::spawn(watch(membership.gauge(), closed.address(), Instant::now(), news_sender));
        let running = pool.acquire(Claim::default()).await.unwrap();
        pool.acquire(Claim::default()).await.unwrap().end(LeaseEnding::Unreachable);
        // The worker listens elsewhere now.
        drop(membership);
        timeout(60 * SECOND, watching).await.expect("it ends").unwrap();
        assert!(news_receiver.try_recv().is_err());
        drop(running);
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn a_server_that_is_too_busy_to_accept_is_not_closed() {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("busy");
        let address = WorkerAddress::Unix(path.clone());
        assert!(is_closed(&address).await, "no socket");
        let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddrUnix::new(path.as_path()).unwrap()).unwrap();
        listen(&socket, 0).unwrap();
        let _waits = UnixStream::connect(&path).await.unwrap();
        let another = UnixStream::connect(&path).await;
        assert_eq!(another.unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(!is_closed(&address).await);
        drop(socket);
        assert!(is_closed(&address).await, "no process listens");
    }
}
