//! HTTP/2 connections to one member. Calls share each of them, up to the limit that the member sets. Knows no requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{self, SendRequest};
use hostler_wire::{Limits, Stream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use super::member_io::{Heard, MemberIo, SilentEnd};
use crate::proxy::{Connector, Failure, MemberProtocol, TlsFault, descriptors};

/// How much of one answer the member may send before we read it.
const STREAM_WINDOW: u32 = 128 << 10;
/// The same for all answers on a connection.
const CONNECTION_WINDOW: u32 = 16 << 20;
/// The most streams of a connection: so many stream windows fit into the window of the connection. With one more, responses that their
/// clients do not read could fill that window, and the additional stream would wait for room without an end.
const MOST_STREAMS: usize = (CONNECTION_WINDOW / STREAM_WINDOW) as usize;
/// How many bytes of one body the `h2` crate may hold that it has not sent. By default it holds 400 KiB, which no budget counts: a member with
/// wide windows over a slow network would make it do so for each upload.
pub(super) const SEND_BUFFER: usize = 128 << 10;
/// A body up to this size is sent at once, if the member's window of the connection has room for it. That window is at least 64 KiB while
/// nothing in it is unread.
pub(super) const AT_ONCE: usize = 16 << 10;
/// The budget of the `h2` crate for the overhead of DATA frames that wait to be read, in bytes for all responses on a connection. The crate
/// counts up to 256 bytes for a frame, and beyond the budget it ends the connection, with the responses of other clients. Our copy of the
/// crate joins short frames, so at most one frame in about 4 KB counts. Then all that the window holds costs less than this.
const DATA_FRAME_BUDGET: usize = 8 << 20;
/// The limit of the `h2` crate on heads, as a multiple of our own limit. Our limit refuses one response. But a head several times longer
/// than the limit of the crate, or with more frames than one of that length, ends the connection, with the responses of other clients. The
/// room is needed because the crate counts 32 bytes more for each field, and because a client may control the length: many apps put the URL
/// of a request into `Location`.
const HEAD_ROOM: usize = 8;
/// The most reset streams that are remembered, from the last second, so that their late frames are ignored. Many clients may leave at once.
const REMEMBERED_RESETS: usize = 1000;
/// The most tasks that open connections at a time for bodies that need one of their own. With fewer, many uploads at once would wait for
/// each other. With more, each of many short bodies would get a new connection, although a connection becomes free in the meantime.
const OWN_TURNS: usize = 8;
/// How long the other requests wait for the settings of a member, which say how many streams it takes. It would refuse those over its limit.
const SETTINGS_TIME: Duration = Duration::from_secs(1);
/// The time limit for the end of a connection after its last use. The `h2` crate first sends what waits, and a member that reads nothing
/// never takes it.
const CLOSE_TIME: Duration = Duration::from_secs(10);

pub(in crate::proxy) struct Http2Connections {
    open: Mutex<Vec<Http2Connection>>,
    /// Only one task at a time opens a connection: the others then find room on it.
    turn: Semaphore,
    /// For bodies that need a connection of their own: at most [`OWN_TURNS`] tasks at a time open one.
    own_turns: Semaphore,
    /// How long a connection gets new streams. None: as long as it lasts.
    max_age: Option<Duration>,
}

struct Http2Connection {
    requests: SendRequest<Bytes>,
    load: Arc<Mutex<ConnectionLoad>>,
    silent_end: SilentEnd,
    heard: Heard,
    opened: Instant,
}

/// What the body of a request needs of its connection, whose window all bodies share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum BodyNeed {
    /// There is no body, or the member has it.
    Nothing,
    /// The body has this many bytes, and is sent at once.
    AtOnce(usize),
    /// The body is sent as the member reads it. A member that does not read lets it fill the whole window.
    AsRead,
}

/// The load of one connection.
struct ConnectionLoad {
    streams: usize,
    /// The bytes of bodies that are sent at once and are not sent yet.
    at_once: usize,
    /// How many bodies are being sent as the member reads them: one at most, if more connections are possible.
    as_read: usize,
    idle_since: Instant,
    /// Dropped with the last use of the connection.
    _in_use: oneshot::Sender<()>,
}

/// Room for one stream on a connection.
pub(in crate::proxy) struct StreamPermit {
    pub(super) requests: SendRequest<Bytes>,
    load: Arc<Mutex<ConnectionLoad>>,
    need: BodyNeed,
    /// Why TLS has ended before the member has said anything.
    pub(super) silent_end: SilentEnd,
    /// What has come over the connection, for all its calls.
    pub(super) heard: Heard,
}

impl Http2Connections {
    pub fn new(max_age: Option<Duration>) -> Self {
        let (turn, own_turns) = (Semaphore::new(1), Semaphore::new(OWN_TURNS));
        Self { open: Mutex::default(), turn, own_turns, max_age }
    }

    /// Room for a stream and its body. Opens a new connection if the open ones are full.
    pub async fn permit(
        &self,
        connector: &Connector,
        limits: &Limits,
        time_limit: Duration,
        need: BodyNeed,
    ) -> Result<StreamPermit, Failure> {
        if let Some(permit) = self.find(need) {
            return Ok(permit);
        }
        let until = Instant::now() + time_limit;
        let turns = if need == BodyNeed::AsRead { &self.own_turns } else { &self.turn };
        let Ok(_turn) = timeout_at(until, turns.acquire()).await else {
            // The request that opens a connection now may wait for a name server, which says nothing about the member.
            let late = || Failure::Unreachable(Failure::undecided(std::io::ErrorKind::TimedOut.into()));
            return self.share(need).ok_or_else(late);
        };
        self.wait_for_settings(until).await;
        if let Some(permit) = self.find(need) {
            return Ok(permit);
        }
        // A request that opened a connection before has learnt that the member does not offer HTTP/2.
        if connector.spoken() != MemberProtocol::Http2 {
            return Err(TlsFault::NoHttp2.with("ALPN"));
        }
        // Clients and workers need the last descriptors.
        if !descriptors::has_room()
            && let Some(permit) = self.share(need)
        {
            return Ok(permit);
        }
        let left = until.saturating_duration_since(Instant::now());
        let (silent_end, heard) = (SilentEnd::default(), Heard::default());
        let opened = match connector.connect(MemberProtocol::Http2, left).await {
            Ok(stream) => handshake(stream, (&silent_end, &heard), limits).await.map_err(|error| {
                let of_tls = silent_end.error().and_then(|error| TlsFault::of_silence(&error));
                of_tls.unwrap_or(Failure::Unreachable(error))
            }),
            Err(failure) => Err(failure),
        };
        let (requests, in_use) = match opened {
            Ok(opened) => opened,
            Err(failure) => return self.share(need).ok_or(failure),
        };
        let idle_since = Instant::now();
        let load = ConnectionLoad { streams: 0, at_once: 0, as_read: 0, idle_since, _in_use: in_use };
        let load = Arc::new(Mutex::new(load));
        let opened = Instant::now();
        let http2_connection = Http2Connection { requests, load, silent_end, heard, opened };
        let permit = http2_connection.take(need);
        self.open().push(http2_connection);
        Ok(permit)
    }

    /// Waits for the settings of a connection that was opened just now.
    async fn wait_for_settings(&self, until: Instant) {
        let unknown = self.open().iter().find(|open| !open.is_known()).map(|open| open.heard.clone());
        if let Some(heard) = unknown {
            // Without them the connection is used as if the member had no limit.
            let _ = timeout_at(until.min(Instant::now() + SETTINGS_TIME), heard.begins()).await;
        }
    }

    /// Room on an open connection.
    fn find(&self, need: BodyNeed) -> Option<StreamPermit> {
        self.take_if(need, |http2_connection| http2_connection.has_room(self.max_age, need))
    }

    /// Room on an open connection where the body may have to wait for others: better than none.
    fn share(&self, need: BodyNeed) -> Option<StreamPermit> {
        self.take_if(need, |http2_connection| http2_connection.has_room(self.max_age, BodyNeed::Nothing))
    }

    /// Takes room on the first connection that fits. Drops connections that have failed.
    fn take_if(&self, need: BodyNeed, fits: impl Fn(&Http2Connection) -> bool) -> Option<StreamPermit> {
        let mut open = self.open();
        open.retain_mut(|http2_connection| http2_connection.is_of_use(self.max_age));
        open.iter().find(|http2_connection| fits(http2_connection)).map(|found| found.take(need))
    }

    /// A call on this connection has shown that it may be dead. New calls no longer use it; calls that are already on it may still finish.
    pub fn avoid(&self, permit: &StreamPermit) {
        self.open().retain(|http2_connection| !Arc::ptr_eq(&http2_connection.load, &permit.load));
    }

    /// Drops connections that have had no stream for this long.
    pub fn prune(&self, max_idle: Duration) {
        let is_idle = |load: &ConnectionLoad| load.streams == 0 && load.idle_since.elapsed() > max_idle;
        self.open().retain_mut(|http2_connection| {
            http2_connection.is_of_use(self.max_age) && !is_idle(&lock(&http2_connection.load))
        });
    }

    fn open(&self) -> MutexGuard<'_, Vec<Http2Connection>> {
        lock(&self.open)
    }
}

impl Http2Connection {
    /// False if it has failed, or if it has no streams and gets no new ones: after a GOAWAY, because the member allows none, or because it is
    /// too old.
    fn is_of_use(&mut self, max_age: Option<Duration>) -> bool {
        let ready = self.requests.poll_ready(&mut Context::from_waker(Waker::noop()));
        let is_open = !matches!(ready, Poll::Ready(Err(_))) && !self.heard.takes_no_more();
        is_open && (self.most_streams(max_age) > 0 || lock(&self.load).streams > 0)
    }

    /// Whether the settings of the member have come, or are not waited for any more.
    fn is_known(&self) -> bool {
        self.heard.count() > 0 || self.opened.elapsed() >= SETTINGS_TIME
    }

    fn has_room(&self, max_age: Option<Duration>, need: BodyNeed) -> bool {
        if !self.is_known() {
            return false;
        }
        // It takes a lock of the connection, which most requests do not need.
        let window = if need == BodyNeed::Nothing { 0 } else { self.requests.current_unassigned_capacity() };
        let load = lock(&self.load);
        load.streams < self.most_streams(max_age) && load.has_room_for(need, window)
    }

    /// How many streams it may have.
    fn most_streams(&self, max_age: Option<Duration>) -> usize {
        let is_old = max_age.is_some_and(|max_age| self.opened.elapsed() > max_age);
        if is_old { 0 } else { self.requests.current_max_send_streams().min(MOST_STREAMS) }
    }

    fn take(&self, need: BodyNeed) -> StreamPermit {
        let mut load = lock(&self.load);
        load.streams += 1;
        match need {
            BodyNeed::Nothing => {}
            BodyNeed::AtOnce(bytes) => load.at_once += bytes,
            BodyNeed::AsRead => load.as_read += 1,
        }
        drop(load);
        let (load, silent_end, heard) = (self.load.clone(), self.silent_end.clone(), self.heard.clone());
        StreamPermit { requests: self.requests.clone(), load, need, silent_end, heard }
    }
}

impl ConnectionLoad {
    /// Whether such a body can be sent even if the member does not read other bodies. `window`: the part of the connection's window that no
    /// stream has reserved.
    fn has_room_for(&self, need: BodyNeed, window: usize) -> bool {
        let bytes = match need {
            BodyNeed::Nothing => return true,
            BodyNeed::AtOnce(bytes) => bytes,
            BodyNeed::AsRead => AT_ONCE,
        };
        self.as_read == 0 && window >= self.at_once + bytes
    }
}

impl StreamPermit {
    /// The member has got the body, or gets no more of it.
    pub fn body_ends(&mut self) {
        match std::mem::replace(&mut self.need, BodyNeed::Nothing) {
            BodyNeed::Nothing => {}
            BodyNeed::AtOnce(bytes) => lock(&self.load).at_once -= bytes,
            BodyNeed::AsRead => lock(&self.load).as_read -= 1,
        }
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.body_ends();
        let mut load = lock(&self.load);
        load.streams -= 1;
        load.idle_since = Instant::now();
    }
}

/// Returns what opens streams, and what has to be kept as long as the connection is in use.
async fn handshake(
    stream: Stream,
    (silent_end, heard): (&SilentEnd, &Heard),
    limits: &Limits,
) -> std::io::Result<(SendRequest<Bytes>, oneshot::Sender<()>)> {
    // TCP keep-alive: many calls may wait on this connection, so a dead peer must be noticed.
    stream.keep_alive();
    let most_head = u32::try_from(HEAD_ROOM * limits.max_size).unwrap_or(u32::MAX);
    let shaking = client::Builder::new()
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_header_list_size(most_head)
        .data_frame_budget(DATA_FRAME_BUDGET)
        .max_concurrent_reset_streams(REMEMBERED_RESETS)
        // Malformed answers, and frames of forgotten streams: those of one client would end the answers of the others.
        .max_local_error_reset_streams(None)
        .enable_push(false)
        .handshake(MemberIo::new(stream, silent_end.clone(), heard.clone()))
        .await;
    let (requests, connection) =
        shaking.map_err(|error| error.into_io().unwrap_or(std::io::ErrorKind::Other.into()))?;
    let (in_use, used) = oneshot::channel();
    let is_late = async {
        let _ = used.await;
        sleep(CLOSE_TIME).await;
    };
    // The streams learn by themselves how the connection ends. It ends when no stream is left and none can be opened.
    tokio::spawn(async move {
        tokio::select! {
            _ = connection => {}
            () = is_late => {}
        }
    });
    Ok((requests, in_use))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicBool, Ordering};

    use hostler_wire::Address;
    use http::Request;
    use tokio::net::TcpListener;
    use tokio::runtime::Handle;
    use tokio::time::{pause, timeout};

    use super::*;
    use crate::proxy::tests::{
        Dialled, MemberSide, SimulatedMember, WireSettings, listen, simulated_address, wire,
    };

    #[tokio::test]
    async fn a_connection_that_is_used_no_more_ends_although_its_member_reads_nothing() {
        let unread = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::Tcp("127.0.0.1".into(), unread.local_addr().unwrap().port());
        let connector = Connector { protocol: MemberProtocol::Http2, ..address.into() };
        let all = Http2Connections::new(None);
        let permit = permit_of(&all, &connector, BodyNeed::Nothing).await;
        pause();
        // More than all buffers of the kernel hold.
        let large = "x".repeat(1 << 20);
        let send = |_| {
            let request = Request::get("http://a.test/").header("large", &large).body(()).unwrap();
            permit.requests.clone().send_request(request, true).unwrap()
        };
        let streams: Vec<_> = (0..32).map(send).collect();
        // The clock moves when all tasks wait.
        let pass = async |time| drop(timeout(time, pending::<()>()).await);
        pass(Duration::from_secs(1)).await;
        let metrics = Handle::current().metrics();
        assert_eq!(metrics.num_alive_tasks(), 1);
        all.avoid(&permit);
        drop((streams, permit));
        pass(CLOSE_TIME * 2).await;
        assert_eq!(metrics.num_alive_tasks(), 0);
    }

    /// A member that answers every request, and sets no limit of streams.
    async fn member() -> Connector {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut serving = h2::server::handshake(stream).await.unwrap();
                    while let Some(Ok((_, mut respond))) = serving.accept().await {
                        respond.send_response(http::Response::new(()), true).unwrap();
                    }
                });
            }
        });
        let address = Address::Tcp("127.0.0.1".into(), port);
        Connector { protocol: MemberProtocol::Http2, ..address.into() }
    }

    async fn permit_of(all: &Http2Connections, connector: &Connector, need: BodyNeed) -> StreamPermit {
        all.permit(connector, &Limits::default(), Duration::from_secs(30), need).await.unwrap()
    }

    #[tokio::test]
    async fn a_body_shares_its_connection_with_no_other_that_may_take_the_window() {
        let (connector, all) = (member().await, Http2Connections::new(None));
        let mut permits = Vec::new();
        for (need, connections) in [
            (BodyNeed::AsRead, 1),
            (BodyNeed::Nothing, 1),
            (BodyNeed::AtOnce(100), 2),
            (BodyNeed::AtOnce(100), 2),
            (BodyNeed::AsRead, 2),
            (BodyNeed::AsRead, 3),
        ] {
            permits.push(permit_of(&all, &connector, need).await);
            assert_eq!(all.open().len(), connections, "{need:?}");
        }
        drop(all.share(BodyNeed::AsRead).expect("room without a connection of its own"));
        permits[0].body_ends();
        permits.push(permit_of(&all, &connector, BodyNeed::AsRead).await);
        assert_eq!(all.open().len(), 3, "there is room again");
        permits.clear();
        for open in all.open().iter() {
            let load = lock(&open.load);
            assert_eq!((load.streams, load.at_once, load.as_read), (0, 0, 0));
        }
    }

    /// A connection to it takes a second, and stays open unless the member is full.
    #[derive(Default)]
    struct SlowToConnect {
        members: Mutex<Vec<MemberSide>>,
        is_full: AtomicBool,
    }

    impl SimulatedMember for SlowToConnect {
        fn dial(self: Arc<Self>) -> Dialled {
            let (stream, member) =
                wire(WireSettings { capacity: 10_000, seed: 1, discarded: Arc::new(|_| {}) });
            if self.is_full.load(Ordering::Relaxed) {
                member.reset();
            }
            lock(&self.members).push(member);
            Dialled::Accepted(stream, Duration::from_secs(1))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_does_not_wait_for_the_connection_of_another_and_shares_one_in_the_end() {
        let member = Arc::new(SlowToConnect::default());
        listen(vec![member.clone() as Arc<dyn SimulatedMember>]);
        let connector = Connector { protocol: MemberProtocol::Http2, ..simulated_address(0).into() };
        let all = Http2Connections::new(None);
        let own = async || permit_of(&all, &connector, BodyNeed::AsRead).await;
        let (two, began) = (Duration::from_secs(2), Instant::now());
        let _permits = tokio::join!(own(), own(), own());
        assert!(began.elapsed() < two, "{:?}", began.elapsed());
        assert_eq!(all.open().len(), 3);
        // Others open connections, and come to no end.
        let turns = (all.turn.acquire().await.unwrap(), all.own_turns.acquire_many(8).await.unwrap());
        for need in [BodyNeed::AtOnce(1), BodyNeed::AsRead] {
            let began = Instant::now();
            let _permit = permit_of(&all, &connector, need).await;
            assert!(began.elapsed() > two, "it has waited for its turn");
        }
        drop(turns);
        member.is_full.store(true, Ordering::Relaxed);
        let _permit = own().await;
        assert_eq!((all.open().len(), lock(&member.members).len()), (3, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_waits_in_vain_for_the_connection_of_another_is_no_silence_of_the_member() {
        let (connector, all) = (Connector::from(simulated_address(0)), Http2Connections::new(None));
        let _turn = all.turn.acquire().await.unwrap();
        let time_limit = Duration::from_secs(5);
        let waited = all.permit(&connector, &Limits::default(), time_limit, BodyNeed::Nothing).await;
        let Err(failure) = waited else { panic!("no connection is made") };
        assert!(failure.leaves_open() && !failure.was_silence(), "{failure}");
    }

    #[tokio::test]
    async fn a_connection_has_no_more_streams_than_its_window_has_room_for() {
        let (connector, all) = (member().await, Http2Connections::new(None));
        let permit = async || permit_of(&all, &connector, BodyNeed::Nothing).await;
        let first = permit().await;
        // The limit of the member is known once it has answered.
        let request = Request::get("http://a.test/").body(()).unwrap();
        first.requests.clone().send_request(request, true).unwrap().0.await.unwrap();
        let mut permits = vec![first];
        while permits.len() < MOST_STREAMS {
            permits.push(permit().await);
        }
        assert_eq!(all.open().len(), 1);
        permits.push(permit().await);
        assert_eq!(all.open().len(), 2);
        permits.truncate(1);
        permits.push(permit().await);
        assert_eq!(lock(&all.open()[0].load).streams, 2, "there is room again");
    }

    #[tokio::test]
    async fn a_connection_whose_member_takes_no_more_gets_no_new_streams() {
        let (connector, all) = (member().await, Http2Connections::new(None));
        let first = permit_of(&all, &connector, BodyNeed::Nothing).await;
        first.heard.note_failed_write();
        let second = permit_of(&all, &connector, BodyNeed::Nothing).await;
        assert!(!Arc::ptr_eq(&first.load, &second.load));
        assert_eq!(all.open().len(), 1);
    }

    #[tokio::test]
    async fn an_old_connection_gets_no_new_streams_and_stays_until_its_last_one_has_ended() {
        let connector = member().await;
        for (max_age, connections) in [(None, 1), (Some(Duration::ZERO), 2)] {
            let all = Http2Connections::new(max_age);
            let permit = async || permit_of(&all, &connector, BodyNeed::Nothing).await;
            let [first, second] = [permit().await, permit().await];
            assert_eq!(all.open().len(), connections, "{max_age:?}");
            drop((first, second));
            all.prune(Duration::from_secs(60));
            assert_eq!(all.open().len(), if max_age.is_some() { 0 } else { 1 }, "{max_age:?}");
        }
    }
}
