//! HTTP/2 connections to one member, each shared by as many calls as the member allows. Knows no requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{self, SendRequest};
use hostler_wire::{Limits, Stream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::proxy::{Connector, Failure, MemberProtocol};

/// How much of one answer may come before it is asked for.
const STREAM_WINDOW: u32 = 128 << 10;
/// The same for all answers on a connection: far more than one, so that a slow client holds nobody up but itself.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// All connections of one data-plane thread to one member.
pub(in crate::proxy) struct Http2Connections {
    open: Mutex<Vec<Http2Connection>>,
    /// Only one at a time connects: the others will find room on what it has connected.
    turn: Semaphore,
}

struct Http2Connection {
    requests: SendRequest<Bytes>,
    load: Arc<Mutex<ConnectionLoad>>,
}

/// What a connection carries.
struct ConnectionLoad {
    streams: usize,
    idle_since: Instant,
}

/// Room for one stream on a connection.
pub(in crate::proxy) struct StreamPermit {
    pub(super) requests: SendRequest<Bytes>,
    load: Arc<Mutex<ConnectionLoad>>,
}

impl Http2Connections {
    pub fn new() -> Self {
        Self { open: Mutex::default(), turn: Semaphore::new(1) }
    }

    /// Room for a stream, on a new connection if there is none on those that are open.
    pub async fn permit(
        &self,
        connector: &Connector,
        limits: &Limits,
        time_limit: Duration,
    ) -> Result<StreamPermit, Failure> {
        if let Some(permit) = self.find() {
            return Ok(permit);
        }
        let until = Instant::now() + time_limit;
        let late = |_| Failure::Unreachable(std::io::ErrorKind::TimedOut.into());
        let _turn = timeout_at(until, self.turn.acquire()).await.map_err(late)?;
        if let Some(permit) = self.find() {
            return Ok(permit);
        }
        let left = until.saturating_duration_since(Instant::now());
        let stream = connector.connect(MemberProtocol::Http2, left).await?;
        let requests = shake_hands(stream, limits).await.map_err(Failure::Unreachable)?;
        let load = Arc::new(Mutex::new(ConnectionLoad { streams: 0, idle_since: Instant::now() }));
        let http2_connection = Http2Connection { requests, load };
        let permit = http2_connection.take();
        self.open().push(http2_connection);
        Ok(permit)
    }

    /// Room on a connection that is open; those that are so no more are forgotten.
    fn find(&self) -> Option<StreamPermit> {
        let mut open = self.open();
        open.retain_mut(|http2_connection| http2_connection.is_of_use());
        open.iter().find(|http2_connection| http2_connection.has_room()).map(Http2Connection::take)
    }

    /// A call on it has had no answer in time: nobody else is to wait for this connection, which may be dead. Those that are on it
    /// already may yet be served.
    pub fn avoid(&self, permit: &StreamPermit) {
        self.open().retain(|http2_connection| !Arc::ptr_eq(&http2_connection.load, &permit.load));
    }

    /// Lets go of connections that nobody has needed for this long.
    pub fn prune(&self, most_idle: Duration) {
        let is_idle = |load: &ConnectionLoad| load.streams == 0 && load.idle_since.elapsed() > most_idle;
        self.open().retain_mut(|http2_connection| {
            http2_connection.is_of_use() && !is_idle(&lock(&http2_connection.load))
        });
    }

    fn open(&self) -> MutexGuard<'_, Vec<Http2Connection>> {
        lock(&self.open)
    }
}

impl Http2Connection {
    /// False once it has failed, or the member takes no new streams on it: for good (GOAWAY), or at all.
    fn is_of_use(&mut self) -> bool {
        let ready = self.requests.poll_ready(&mut Context::from_waker(Waker::noop()));
        let is_open = !matches!(ready, Poll::Ready(Err(_)));
        is_open && (self.requests.current_max_send_streams() > 0 || lock(&self.load).streams > 0)
    }

    fn has_room(&self) -> bool {
        lock(&self.load).streams < self.requests.current_max_send_streams()
    }

    fn take(&self) -> StreamPermit {
        lock(&self.load).streams += 1;
        StreamPermit { requests: self.requests.clone(), load: self.load.clone() }
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut load = lock(&self.load);
        load.streams -= 1;
        load.idle_since = Instant::now();
    }
}

async fn shake_hands(stream: Stream, limits: &Limits) -> std::io::Result<SendRequest<Bytes>> {
    // A connection that many wait on must not depend on the member's word for it that it is alive.
    stream.keep_alive();
    let most_head = u32::try_from(limits.max_size).unwrap_or(u32::MAX);
    let shaking = client::Builder::new()
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(most_head)
        .enable_push(false)
        .handshake(stream)
        .await;
    let (requests, connection) =
        shaking.map_err(|error| error.into_io().unwrap_or(std::io::ErrorKind::Other.into()))?;
    // How it ends, its streams learn by themselves; and without any, and with nobody who could open one, it ends.
    tokio::spawn(async move { drop(connection.await) });
    Ok(requests)
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
