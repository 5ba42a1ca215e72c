//! Looks whether a worker without the preload still listens on its port. It does not tell that its app has closed it.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use hostler_dispatch::Gauge;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::RunningProcess;
use super::claims::REOPENING;
use crate::news::{NewsSender, WorkerNews};
use crate::settings::WorkerAddress;

const LOOK: Duration = Duration::from_secs(1);

impl RunningProcess {
    /// Begins to look, since the worker has joined. While it boots, its first server may be there only until the app is ready.
    pub fn watch_port<E: Send + Sync + 'static>(&mut self, gauge: Gauge<E>, start_timeout: Duration) {
        let Some(WorkerAddress::Tcp(address)) = self.address else { return };
        let boots_until = self.started + start_timeout;
        self.tasks.spawn(watch(gauge, address, boots_until, self.news_sender.clone()));
    }
}

/// Runs until the member has left and its last lease has ended. Connects only if a request has found nothing there, so that an app that works
/// gets no connections without a request. A closed port is reported again and again.
async fn watch<E>(gauge: Gauge<E>, address: SocketAddr, boots_until: Instant, news_sender: NewsSender) {
    let mut closed_since = None;
    loop {
        sleep(LOOK).await;
        let Some(is_out_of_reach) = gauge.is_out_of_reach() else { return };
        if !(is_out_of_reach && is_closed(address).await) {
            closed_since = None;
            continue;
        }
        let since = *closed_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= REOPENING && Instant::now() >= boots_until {
            news_sender.send(WorkerNews::NotListening).await;
        }
    }
}

/// Whether nothing listens there. An app that is too busy to accept connections refuses none.
async fn is_closed(address: SocketAddr) -> bool {
    TcpStream::connect(address).await.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use hostler_dispatch::{Claim, LeaseEnding, Pool, PoolSettings};
    use hostler_testkit::held_port;

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
        sleep(100 * SECOND).await;
        assert!(news_receiver.try_recv().is_err(), "no request has found it closed");
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
}
