//! A member's address and its idle connections. Knows nothing of what is sent over them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hostler_dispatch::MemberId;
use hostler_wire::MemberConnection;
use hostler_worker::ExitWatch;
use tokio::time::Instant;

use super::checked::{self, Checked};
use super::connector::{Connector, MemberProtocol};
use super::http2::Http2Connections;
use super::meter::Meter;
use crate::exchange::Instance;
use crate::journal::{Journal, Level};

/// Called when a worker has held a slot longer than `hang_timeout`.
pub type OnHang = Arc<dyn Fn(MemberId) + Send + Sync>;

/// What there is to a worker of our own besides its address.
pub struct Ours {
    /// To be told that it hangs.
    pub on_hang: OnHang,
    /// What becomes of it.
    pub exit_watch: ExitWatch,
}

/// Where a pool's members are talked about.
#[derive(Clone)]
pub struct MemberNews {
    /// The log.
    pub journal: Journal,
    /// The pool's name.
    pub pool: Arc<str>,
}

/// A member, as the pool holds it: where to connect, and what is connected already.
pub struct Endpoint {
    /// How it is reached.
    pub connector: Connector,
    /// Its name in logs and status: a worker's number, or the address.
    pub label: Arc<str>,
    /// Where its times are recorded.
    pub meter: Arc<Meter>,
    /// What its registration says; none for a member that was not registered.
    pub instance: Option<Arc<Instance>>,
    /// Whom to tell of its ejections, and in which pool it is.
    pub news: Option<MemberNews>,
    /// What checks of it have found, if there are any.
    pub(super) checked: OnceLock<Arc<Mutex<Checked>>>,
    /// Our own workers never close an idle connection (the preload sees to that); other members may at any moment.
    ours: Option<Ours>,
    /// One list a data-plane thread: a connection stays with the thread that made it.
    idle: Box<[Mutex<Vec<Parked>>]>,
    /// Connections that calls share, as many lists; none for a member that speaks HTTP/1.1 only.
    http2_connections: Box<[Http2Connections]>,
}

/// An idle connection in the box that it came in.
struct Parked(Box<MemberConnection>);

impl Endpoint {
    /// For how long an idle connection to a member that may close it is good for a request that must not be sent twice:
    /// well under the shortest keep-alive in the field (Node's 5 s), so that the race is not even run.
    const SAFE_IDLE: Duration = Duration::from_secs(1);
    /// Idle connections beyond this age are not worth the risk of a useless round trip.
    const MOST_IDLE: Duration = Duration::from_secs(60);

    /// An endpoint that serves so many data-plane threads.
    pub fn new(
        connector: Connector,
        label: Arc<str>,
        meter: Arc<Meter>,
        threads: usize,
        ours: Option<Ours>,
    ) -> Self {
        let idle = (0..threads).map(|_| Mutex::default()).collect();
        let sharing = if connector.protocol == MemberProtocol::Http2 { threads } else { 0 };
        let http2_connections = (0..sharing).map(|_| Http2Connections::new()).collect();
        let checked = OnceLock::new();
        Self { connector, label, meter, instance: None, news: None, checked, ours, idle, http2_connections }
    }

    /// What checks of it have found; none if it has not been checked.
    pub fn checked(&self) -> Option<Checked> {
        let checked = checked::lock(self.checked.get()?).clone();
        Some(Checked { member: self.label.clone(), ..checked })
    }

    /// A worker of our own, which closes no connection while it lives.
    pub fn is_ours(&self) -> bool {
        self.ours.is_some()
    }

    /// The idle connection of this thread that was used last, if any is fit.
    pub fn checkout(&self, thread: usize, idempotent: bool, now: Instant) -> Option<Box<MemberConnection>> {
        let most = if idempotent { self.most_idle() } else { self.most_idle().map(|_| Self::SAFE_IDLE) };
        let mut idle = self.idle(thread);
        while let Some(Parked(mut connection)) = idle.pop() {
            // What must not be sent twice must not be sent to a member that has closed, not even if that is news.
            let sure = idempotent || self.is_ours() || connection.is_quiet_now();
            if sure && connection.is_fresh(now, most) {
                return Some(connection);
            }
        }
        None
    }

    /// Lets go of what is of no more use: a member that has closed its side would otherwise leave us half a connection until
    /// somebody wants it.
    pub fn prune(&self, thread: usize) {
        let (now, most) = (Instant::now(), self.most_idle());
        self.idle(thread).retain_mut(|Parked(connection)| connection.is_fresh(now, most));
        if let Some(http2_connections) = self.http2_connections.get(thread) {
            http2_connections.prune(Self::MOST_IDLE);
        }
    }

    /// Our own workers wait for ever.
    fn most_idle(&self) -> Option<Duration> {
        if self.is_ours() { None } else { Some(Self::MOST_IDLE) }
    }

    /// The connections of this thread that calls share.
    ///
    /// # Panics
    /// Where HTTP/2 is not spoken.
    pub(super) fn http2_connections(&self, thread: usize) -> &Http2Connections {
        &self.http2_connections[thread]
    }

    /// Keeps a connection for the next call from this thread.
    pub fn checkin(&self, thread: usize, connection: Box<MemberConnection>) {
        self.idle(thread).push(Parked(connection));
    }

    /// Says that the worker behind this member hangs; nothing to do for a member that somebody else runs.
    pub fn report_hang(&self, member: MemberId) {
        if let Some(ours) = &self.ours {
            (ours.on_hang)(member);
        }
    }

    /// Says what has become of the member.
    pub fn tell(&self, what: &str) {
        if let Some(MemberNews { journal, pool }) = &self.news {
            journal.event(Level::Info, &format!("{pool}: member {} {what}", self.label));
        }
    }

    /// Says that the member is ejected for so long.
    pub(super) fn tell_ejected(&self, long: Duration) {
        if let Some(MemberNews { journal, pool }) = &self.news {
            let (member, seconds) = (&self.label, long.as_secs_f64().ceil());
            let why = "requests have waited in vain for its answer";
            journal.event(Level::Warn, &format!("{pool}: member {member} is ejected for {seconds} s: {why}"));
        }
    }

    /// What becomes of the worker behind this member; nobody knows of one that somebody else runs.
    pub fn exit_watch(&self) -> Option<&ExitWatch> {
        self.ours.as_ref().map(|ours| &ours.exit_watch)
    }

    fn idle(&self, thread: usize) -> MutexGuard<'_, Vec<Parked>> {
        self.idle[thread].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &self.connector.address)
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use hostler_wire::Address;
    use tokio::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn a_connection_that_its_member_has_closed_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let address = Address::Unix(folder.path().join("a.sock"));
        let listener = UnixListener::bind(folder.path().join("a.sock")).unwrap();
        let endpoint = Endpoint::new(address.clone().into(), "a".into(), Arc::new(Meter::new(1)), 1, None);
        for _ in 0..2 {
            endpoint.checkin(0, Box::new(MemberConnection::connect(&address).await.unwrap()));
        }
        let (closed, kept) = (listener.accept().await.unwrap(), listener.accept().await.unwrap());
        endpoint.prune(0);
        assert_eq!(endpoint.idle(0).len(), 2);
        drop(closed);
        while endpoint.idle(0).len() == 2 {
            // The runtime hears of the close when it next looks.
            tokio::task::yield_now().await;
            endpoint.prune(0);
        }
        assert_eq!(endpoint.idle(0).len(), 1);
        drop(kept);
    }
}
