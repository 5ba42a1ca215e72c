//! A member's address and its idle connections. Knows nothing about the requests.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hostler_dispatch::MemberId;
use hostler_wire::{Address, MemberConnection};
use hostler_worker::{ExitWatch, Slots};
use tokio::time::Instant;

use super::checked::{self, Checked};
use super::connector::{Connector, MemberProtocol};
use super::http2::Http2Connections;
use super::keeping::ConnectionKeeping;
use super::meter::Meter;
use crate::exchange::Instance;
use crate::journal::{Journal, Level};

/// Called when a worker has held a slot longer than `hang_timeout`.
pub type OnHang = Arc<dyn Fn(MemberId) + Send + Sync>;

/// What a worker of our own has besides its address.
pub struct OwnWorker {
    /// Called when the worker hangs.
    pub on_hang: OnHang,
    /// Tells when the worker ends.
    pub exit_watch: ExitWatch,
}

/// Where events of a pool's members are logged.
#[derive(Clone)]
pub struct MemberNews {
    pub journal: Journal,
    pub pool: Arc<str>,
}

/// A member as the pool holds it: how to connect, and its idle connections.
pub struct Endpoint {
    /// How to connect to it.
    pub connector: Connector,
    /// How long a connection to it is used. None: as long as it lasts.
    max_age: Option<Duration>,
    /// Its name in logs and status: a worker's number, or an address.
    pub label: Arc<str>,
    /// Where its times are recorded.
    pub meter: Arc<Meter>,
    /// The data of its registration. None for a member that was not registered.
    pub instance: Option<Arc<Instance>>,
    /// The identity of the process that keeps the state of its clients. None: `label` is the identity, because Hostler does not see when
    /// such a member restarts.
    pub process: Option<Arc<str>>,
    /// How many restarts of its pool had been ordered when it was started. A worker of another release may run other code. 0 for a member
    /// that is not a worker of ours.
    pub release: u64,
    /// Where its ejections are logged.
    pub news: Option<MemberNews>,
    /// The result of its health checks, if there are any.
    pub(super) checked: OnceLock<Arc<Mutex<Checked>>>,
    /// Set for workers of our own. With the preload, they close no idle connection, unless the app does. Other members may close one at any
    /// time.
    ours: Option<OwnWorker>,
    /// The app has closed a connection that was about to be used again. It may do that after each response, so no connection is kept any
    /// more.
    closes_idle: AtomicBool,
    /// The log has said that it requires HTTP/1.1 for some requests.
    told_http1: AtomicBool,
    /// Whether it keeps its connections open. Has no effect on workers with the preload.
    keeping: ConnectionKeeping,
    /// One list per data-plane thread: a connection stays with the thread that opened it.
    idle: Box<[IdleOfThread]>,
    /// Shared HTTP/2 connections, one list per thread. Empty if the member speaks only HTTP/1.1.
    http2_connections: Box<[Http2Connections]>,
}

/// The idle connections of one thread. Aligned, so that threads do not write to the same cache line: each request takes a connection from
/// its list and returns it.
#[derive(Default)]
#[repr(align(64))]
struct IdleOfThread(Mutex<Vec<Parked>>);

/// An idle connection. It stays in the box that it came in.
struct Parked(Box<MemberConnection>);

impl Endpoint {
    /// The highest age of an idle connection for a request that cannot be repeated, if the member may close idle connections. It is half of
    /// the shortest keep-alive timeout in common use (gunicorn's 2 s; Node has 5 s), so the member does not close the connection while the
    /// request is on its way. A member that closes each connection after its response is another matter: see `keeping`.
    const SAFE_IDLE: Duration = Duration::from_secs(1);
    /// An idle connection above this age is closed: it would often fail.
    const MAX_IDLE: Duration = Duration::from_secs(60);
    /// This many idle connections to a worker of our own are kept without a limit of time. The descriptors that are reserved for workers
    /// are enough for them.
    const KEPT: usize = Slots::USUAL;
    /// Further ones are left from a burst of requests. They are closed when they have been idle for this long, because each takes a
    /// descriptor.
    const SPARE_IDLE: Duration = Duration::from_secs(5);
    /// A connection to a name is used for this long. Then the name is looked up again, because it may lead to another address by now.
    const MAX_AGE: Duration = Duration::from_secs(60);

    /// An endpoint for this many data-plane threads.
    pub fn new(
        connector: Connector,
        label: Arc<str>,
        meter: Arc<Meter>,
        threads: usize,
        ours: Option<OwnWorker>,
    ) -> Self {
        let idle = (0..threads).map(|_| IdleOfThread::default()).collect();
        let sharing = if connector.protocol == MemberProtocol::Http2 { threads } else { 0 };
        let max_age = connector.has_name().then_some(Self::MAX_AGE);
        let http2_connections = (0..sharing).map(|_| Http2Connections::new(max_age)).collect();
        let checked = OnceLock::new();
        let (instance, process, news, release) = (None, None, None, 0);
        Self {
            connector,
            max_age,
            label,
            meter,
            instance,
            process,
            release,
            news,
            checked,
            ours,
            closes_idle: AtomicBool::new(false),
            told_http1: AtomicBool::new(false),
            keeping: ConnectionKeeping::default(),
            idle,
            http2_connections,
        }
    }

    /// What tells it from all other members. A worker that starts again has another identity.
    pub fn identity(&self) -> &Arc<str> {
        self.process.as_ref().unwrap_or(&self.label)
    }

    /// The result of the health checks. None if there are none.
    pub fn checked(&self) -> Option<Checked> {
        let checked = checked::lock(self.checked.get()?).clone();
        Some(Checked { member: self.label.clone(), ..checked })
    }

    /// A worker of our own, which closes no idle connection while it lives.
    pub fn is_ours(&self) -> bool {
        self.ours.is_some()
    }

    /// The idle connection of this thread that was used last, if one is fit. `repeatable`: the request can be sent again on another one.
    pub fn checkout(&self, thread: usize, repeatable: bool, now: Instant) -> Option<Box<MemberConnection>> {
        let is_safe = repeatable || self.keeps_idle();
        if !is_safe && self.keeping.closes_each() {
            return None;
        }
        let most = if is_safe { self.max_idle() } else { Some(Self::SAFE_IDLE) };
        let mut idle = self.idle(thread);
        while let Some(Parked(mut connection)) = idle.pop() {
            // A request that must not be sent twice must not go over a connection that the member has just closed.
            let sure = is_safe || connection.is_quiet_now();
            if sure && self.is_of_use(&mut connection, now, most) {
                return Some(connection);
            }
            // Too old for this request, but not for those that can be repeated. The ones below it have been idle for longer.
            if sure && !is_safe && self.is_of_use(&mut connection, now, self.max_idle()) {
                idle.push(Parked(connection));
                return None;
            }
            if !connection.is_quiet_now() {
                self.note_ended(&connection, now);
            }
        }
        None
    }

    /// A connection has ended: while it was idle, or over the request for which it was taken at `now`, which has no response.
    pub(super) fn note_ended(&self, connection: &MemberConnection, now: Instant) {
        if !self.keeps_idle() && connection.answers() == 1 && connection.idle(now) <= Self::SAFE_IDLE {
            self.keeping.note_closed();
        }
    }

    /// A response has begun to come. `connection`: over which one in HTTP/1.1.
    pub(super) fn note_answered(&self, connection: Option<&MemberConnection>) {
        if connection.is_some_and(|connection| connection.answers() > 1) {
            self.keeping.note_kept();
        }
    }

    /// An idle connection is open. After this long its member would have closed it.
    fn note_open(&self, connection: &MemberConnection, now: Instant) {
        if connection.idle(now) > Self::SAFE_IDLE {
            self.keeping.note_kept();
        }
    }

    /// A worker with the preload, which closes no idle connection itself.
    fn keeps_idle(&self) -> bool {
        self.is_ours() && matches!(self.connector.address, Address::Unix(_))
    }

    /// The app has closed a connection since its last response.
    pub(super) fn note_closed(&self) {
        self.closes_idle.store(true, Ordering::Relaxed);
    }

    /// Drops idle connections that are too old, closed by the member, or not needed any more. Without this, a connection that the member
    /// has closed would stay half open until the next request. Connections that stay give back the memory of a large head.
    pub fn prune(&self, thread: usize) {
        let now = Instant::now();
        let mut idle = self.idle(thread);
        // The connection that was used last is the last one.
        let mut spare = idle.len().saturating_sub(Self::KEPT);
        idle.retain_mut(|Parked(connection)| {
            let most = if spare > 0 { self.max_idle().or(Some(Self::SPARE_IDLE)) } else { self.max_idle() };
            spare = spare.saturating_sub(1);
            connection.head_mut().clear_for_long();
            let is_of_use = self.is_of_use(connection, now, most);
            if is_of_use {
                self.note_open(connection, now);
            }
            is_of_use
        });
        drop(idle);
        if let Some(http2_connections) = self.http2_connections.get(thread) {
            http2_connections.prune(Self::MAX_IDLE);
        }
    }

    /// Closes connections that have been idle for a moment, because a request to some member waits for a descriptor. Those to a worker of our
    /// own stay: descriptors are kept for them.
    pub fn make_room(&self, thread: usize) {
        if self.is_ours() {
            return;
        }
        let (now, most) = (Instant::now(), Some(Self::SAFE_IDLE));
        self.idle(thread).retain_mut(|Parked(connection)| self.is_of_use(connection, now, most));
        if let Some(http2_connections) = self.http2_connections.get(thread) {
            http2_connections.prune(Self::SAFE_IDLE);
        }
    }

    fn is_of_use(&self, connection: &mut MemberConnection, now: Instant, most: Option<Duration>) -> bool {
        self.max_age.is_none_or(|max_age| connection.age(now) <= max_age) && connection.is_fresh(now, most)
    }

    /// Connections to our own workers have no limit, except spare ones.
    fn max_idle(&self) -> Option<Duration> {
        if self.is_ours() { None } else { Some(Self::MAX_IDLE) }
    }

    /// # Panics
    /// If the member does not speak HTTP/2.
    pub(super) fn http2_connections(&self, thread: usize) -> &Http2Connections {
        &self.http2_connections[thread]
    }

    /// Keeps a connection for the next call from this thread.
    pub fn checkin(&self, thread: usize, connection: Box<MemberConnection>) {
        if self.closes_idle.load(Ordering::Relaxed) {
            return;
        }
        let mut idle = self.idle(thread);
        if !self.keeping.closes_each() || self.has_none_open(&mut idle) {
            idle.push(Parked(connection));
        }
    }

    /// Drops connections that the member has closed, up to the first open one. Of a member that closes each connection, a thread keeps one, which
    /// shows whether it still does so. More would be open to no use: requests that cannot be repeated do not take them.
    fn has_none_open(&self, idle: &mut Vec<Parked>) -> bool {
        match idle.iter_mut().position(|Parked(connection)| connection.is_quiet_now()) {
            Some(first_open) => {
                idle.drain(..first_open);
                self.note_open(&idle[0].0, Instant::now());
                false
            }
            None => {
                idle.clear();
                true
            }
        }
    }

    /// Reports that the worker behind this member hangs. Does nothing for a member that is not a worker of ours.
    pub fn report_hang(&self, member: MemberId) {
        if let Some(ours) = &self.ours {
            (ours.on_hang)(member);
        }
    }

    /// Logs an event of the member.
    pub fn tell(&self, what: &str) {
        if let Some(MemberNews { journal, pool }) = &self.news {
            journal.event(Level::Info, &format!("{pool}: member {} {what}", self.label));
        }
    }

    /// Logs, once, that the member requires HTTP/1.1 for a request.
    pub(super) fn tell_http1(&self) {
        if !self.told_http1.swap(true, Ordering::Relaxed) {
            self.tell(
                "requires HTTP/1.1 for a request (HTTP_1_1_REQUIRED), which goes to it in HTTP/1.1; if it does so often, set \
                 `protocol = \"http1\"` for the pool",
            );
        }
    }

    /// Logs that the member is ejected for this long.
    pub(super) fn tell_ejected(&self, long: Duration) {
        if let Some(MemberNews { journal, pool }) = &self.news {
            let (member, seconds) = (&self.label, long.as_secs_f64().ceil());
            let why = "it did not answer requests in time";
            journal.event(Level::Warn, &format!("{pool}: member {member} is ejected for {seconds} s: {why}"));
        }
    }

    /// Tells when the worker behind this member ends. None for a member that is not a worker of ours.
    pub fn exit_watch(&self) -> Option<&ExitWatch> {
        self.ours.as_ref().map(|ours| &ours.exit_watch)
    }

    fn idle(&self, thread: usize) -> MutexGuard<'_, Vec<Parked>> {
        self.idle[thread].0.lock().unwrap_or_else(PoisonError::into_inner)
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
    use std::future::poll_fn;

    use hostler_wire::Limits;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream, UnixListener};

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
            // The runtime notices the close only when it polls the next time.
            tokio::task::yield_now().await;
            endpoint.prune(0);
        }
        assert_eq!(endpoint.idle(0).len(), 1);
        drop(kept);
    }

    #[tokio::test]
    async fn an_idle_connection_gives_the_memory_of_a_large_head_back() {
        let folder = tempfile::tempdir().unwrap();
        let address = Address::Unix(folder.path().join("a.sock"));
        let listener = UnixListener::bind(folder.path().join("a.sock")).unwrap();
        let endpoint = Endpoint::new(address.clone().into(), "a".into(), Arc::new(Meter::new(1)), 1, None);
        let mut connection = Box::new(MemberConnection::connect(&address).await.unwrap());
        let (mut member, _) = listener.accept().await.unwrap();
        let location = "x".repeat(50_000);
        let head = format!("HTTP/1.1 302 Found\r\nLocation: /{location}\r\nContent-Length: 0\r\n\r\n");
        member.write_all(head.as_bytes()).await.unwrap();
        connection.start();
        poll_fn(|cx| connection.poll_head(cx, &Limits::default(), false)).await.unwrap();
        assert!(connection.head().fields.memory() > 50_000);
        endpoint.checkin(0, connection);
        endpoint.prune(0);
        let kept = endpoint.checkout(0, true, Instant::now()).expect("it is kept");
        assert!(kept.head().fields.memory() < 10_000, "{}", kept.head().fields.memory());
    }

    #[tokio::test]
    async fn connections_that_are_too_old_for_a_post_stay_for_requests_that_can_be_repeated() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let address = Address::Tcp("127.0.0.1".into(), port);
        let endpoint = Endpoint::new(address.into(), "a".into(), Arc::new(Meter::new(1)), 1, None);
        let now = Instant::now();
        for _ in 0..3 {
            let opened = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let mut connection = Box::new(MemberConnection::new(opened.into()));
            // A call has just ended on it.
            connection.is_reusable(now);
            endpoint.checkin(0, connection);
        }
        let later = now + 2 * Endpoint::SAFE_IDLE;
        assert!(endpoint.checkout(0, false, later).is_none());
        assert_eq!(endpoint.idle(0).len(), 3);
        assert!(endpoint.checkout(0, true, later).is_some());
        assert!(endpoint.checkout(0, false, now).is_some());
    }

    #[tokio::test]
    async fn a_connection_to_a_name_is_used_for_a_minute_and_one_to_an_address_for_longer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (now, minute) = (Instant::now(), Duration::from_secs(60));
        for (host, is_used) in [("localhost", false), ("127.0.0.1", true)] {
            let address = Address::Tcp(host.into(), port);
            let opened = MemberConnection::new(TcpStream::connect(("127.0.0.1", port)).await.unwrap().into());
            let endpoint = Endpoint::new(address.into(), "a".into(), Arc::new(Meter::new(1)), 1, None);
            let mut connection = Box::new(opened);
            for (later, expected) in [(minute / 2, true), (2 * minute, is_used)] {
                // A call has just ended on it.
                connection.is_reusable(now + later);
                endpoint.checkin(0, connection);
                let Some(again) = endpoint.checkout(0, true, now + later) else {
                    assert!(!expected, "{host} after {later:?}");
                    break;
                };
                assert!(expected, "{host} after {later:?}");
                connection = again;
            }
        }
    }
}
