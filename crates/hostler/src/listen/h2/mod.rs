//! HTTP/2 towards clients: a connection, its streams as they come, its end. Knows the gateway, and nothing behind it.

mod flood;
mod head;
mod joiner;
mod metered_io;
mod sink;
mod stream;
mod stream_tasks;
mod way;
mod websocket;

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use atomic_waker::AtomicWaker;
use h2::Reason;
use h2::server::Connection;
use hostler_engine::exchange::{
    Deadline, Exchange, MemoryAccount, OpenConnection, Protocol, Reservation, Slow, SpoolAccount,
};
use hostler_engine::journal::Level;
use hostler_wire::Stream;
use metered_io::{EndReason, MeteredIo};

use super::{ConnectionOrigin, Settings, Shard};
pub use stream_tasks::StreamTasks;
use way::{SendPiece, Way};

/// What a stream may have waiting inside the protocol's machinery; all of a connection, less (see `Way`).
const SEND_BUFFER: usize = 128 * 1024;
/// The receive window that each connection begins with (RFC 9113 section 6.9.2); there is no way to a smaller one.
const LEAST_WINDOW: u32 = 65_535;

/// What all streams of a connection share.
struct Http2Shared {
    shard: Arc<Shard>,
    settings: Arc<Settings>,
    origin: ConnectionOrigin,
    /// The client's address as text: made once a connection, not once a request.
    peer_ip: Arc<str>,
    /// What it holds of the spool, once it has held anything.
    spool: OnceLock<SpoolAccount>,
    /// Streams whose exchange has not ended.
    running: AtomicUsize,
    /// What its requests hold of the memory for bodies.
    memory: Arc<MemoryAccount>,
    /// What its answers share on their way out.
    way: Arc<Way>,
    /// Why it is to end.
    verdict: Arc<EndReason>,
    /// Bytes of bodies that have been taken, over all streams.
    received: AtomicU64,
    /// A body has come that is longer than the window which every connection has.
    wants_window: AtomicBool,
    /// The connection's own task, to be told when the last of them has ended.
    waker: AtomicWaker,
    /// Counted as open until the last exchange has ended, too.
    _open: OpenConnection,
}

/// What an exchange needs and the next one can use again.
struct StreamState {
    exchange: Exchange,
    /// When the client has been silent for too long.
    silence: Deadline,
    /// When it has taken nothing for too long.
    refusal_to_read: Deadline,
}

/// A connection as its own task sees it.
struct Session {
    connection: Connection<MeteredIo, SendPiece>,
    /// The memory for a wide receive window, while it has one.
    window: Reservation,
    common: Arc<Http2Shared>,
    /// For what there is to be waited for, depending on the mood.
    send_limits: Deadline,
    mood: Mood,
    /// It has been told to go away.
    leaving: bool,
    /// For a flood.
    condemned: bool,
}

/// What a connection is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// Its exchanges, which have deadlines of their own.
    Busy,
    /// That the client takes the rest of what it was answered.
    Sending,
    /// The next request.
    Idle,
    /// That the client closes.
    Leaving,
}

impl Shard {
    /// An HTTP/2 connection to its end; `read` is what has come of it already, from the preface on.
    pub(super) async fn serve_http2(
        self: Arc<Self>,
        stream: Stream,
        read: Vec<u8>,
        origin: ConnectionOrigin,
        open: OpenConnection,
    ) {
        let settings = self.settings.load_full();
        let verdict = Arc::new(EndReason::default());
        let metered_io = MeteredIo::new(stream, read, &settings, &self.sweep, verdict.clone());
        let Ok(connection) = handshake(&settings, metered_io).await else { return };
        let send_limits = self.sweep.deadline();
        let memory = self.gateway.request_memory.account();
        let window = memory.reservation();
        let peer_ip = origin.peer.ip().to_canonical().to_string().into();
        let common = Arc::new(Http2Shared {
            way: Way::new(settings.answer_memory.account()),
            verdict,
            shard: self,
            settings,
            origin,
            spool: OnceLock::new(),
            running: AtomicUsize::new(0),
            memory,
            received: AtomicU64::new(0),
            wants_window: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            peer_ip,
            _open: open,
        });
        let mut session = Session {
            connection,
            window,
            common,
            send_limits,
            mood: Mood::Busy,
            leaving: false,
            condemned: false,
        };
        poll_fn(|cx| session.poll(cx)).await;
    }
}

impl Shard {
    fn note_flood(&self, origin: &ConnectionOrigin, excess: &impl std::fmt::Display) {
        self.connections.count_flood();
        let text = format!("HTTP/2 connection from {} ended: {excess}", origin.peer);
        self.journal.event(Level::Warn, &text);
    }
}

async fn handshake(
    settings: &Settings,
    metered_io: MeteredIo,
) -> Result<Connection<MeteredIo, SendPiece>, h2::Error> {
    let limits = &settings.limits;
    // HTTP/2 counts 32 bytes for each field. Our own limits are to be the first that are met: they give an answer.
    let header_list = limits.max_size + 32 * limits.max_fields + 1024;
    h2::server::Builder::new()
        .max_header_list_size(u32::try_from(header_list).unwrap_or(u32::MAX))
        .max_concurrent_streams(settings.http2.max_streams)
        .initial_window_size(settings.http2.stream_window)
        .max_send_buffer_size(SEND_BUFFER)
        .enable_connect_protocol()
        .handshake(metered_io)
        .await
}

impl Session {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.common.waker.register(cx.waker());
        loop {
            match self.connection.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    self.common.shard.stream_tasks.assign(&self.common, request, respond);
                    continue;
                }
                Poll::Ready(Some(Err(error))) => {
                    // The machinery has limits of its own.
                    if error.is_library()
                        && error.reason() == Some(Reason::ENHANCE_YOUR_CALM)
                        && !self.condemned
                    {
                        let text =
                            format_args!("too many of something that HTTP/2's machinery counts ({error})");
                        self.common.shard.note_flood(&self.common.origin, &text);
                    }
                    return Poll::Ready(());
                }
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => {}
            }
            if let Some(excess) = self.common.verdict.passed()
                && !self.condemned
            {
                self.condemned = true;
                self.leaving = true;
                self.common.shard.note_flood(&self.common.origin, &excess);
                self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                continue;
            }
            if self.common.verdict.slow().is_some() && !self.condemned {
                self.condemned = true;
                self.leaving = true;
                self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                continue;
            }
            if !self.leaving && self.common.shard.connections.is_ending() {
                self.leave();
                continue;
            }
            self.fit_window();
            self.change_mood();
            if self.send_limits.poll_due(cx).is_pending() {
                return Poll::Pending;
            }
            if self.mood != Mood::Idle {
                return Poll::Ready(());
            }
            self.leave();
        }
    }

    /// Says that no more streams are taken: first with a number that no stream reaches, then, when whatever was under way has
    /// come, with that of the last one (RFC 9113 section 6.8).
    fn leave(&mut self) {
        self.leaving = true;
        self.connection.graceful_shutdown();
    }

    /// A connection begins with the window that the protocol gives it. A longer body gets the wide one, as long as there is memory for what
    /// may then lie here untaken: at most half of what there is for bodies goes into windows. It is given back when nothing is under way.
    fn fit_window(&mut self) {
        let wide = self.common.settings.http2.connection_window;
        if self.common.wants_window.swap(false, Ordering::Relaxed)
            && self.window.bytes() == 0
            && wide > LEAST_WINDOW
        {
            let budget = self.common.shard.gateway.request_memory.view();
            if budget.used <= budget.limit / 2 && self.window.resize(wide.into()) {
                self.connection.set_target_window_size(wide);
            }
        } else if self.window.bytes() > 0 && self.common.running.load(Ordering::Acquire) == 0 {
            self.connection.set_target_window_size(LEAST_WINDOW);
            // Shrinking never fails.
            let _ = self.window.resize(0);
        }
    }

    fn change_mood(&mut self) {
        let settings = &self.common.settings;
        let mood = match self.common.running.load(Ordering::Acquire) {
            0 if self.connection.has_streams() => Mood::Sending,
            0 if self.leaving => Mood::Leaving,
            0 => Mood::Idle,
            _ => Mood::Busy,
        };
        // Each look at a connection that sends has seen the client move.
        if mood != self.mood || mood == Mood::Sending {
            match mood {
                Mood::Busy => self.send_limits.clear(),
                Mood::Sending => self.send_limits.set_after(settings.send_limits.send_timeout),
                Mood::Idle => self.send_limits.set_after(settings.idle_timeout),
                Mood::Leaving => self.send_limits.set_after(settings.linger_timeout),
            }
            self.mood = mood;
        }
    }
}

impl Http2Shared {
    /// Has the connection ended: its client does not take its answers.
    fn end_slow(&self, slow: Slow) {
        self.verdict.find_slow(slow);
        self.waker.wake();
    }
}

impl StreamState {
    fn new(common: &Http2Shared) -> Box<Self> {
        let sweep = &common.shard.sweep;
        let mut exchange = common.origin.exchange(sweep);
        exchange.protocol = Protocol::Http2;
        Box::new(Self { exchange, silence: sweep.deadline(), refusal_to_read: sweep.deadline() })
    }

    /// Takes its place on another connection than that for which it was made.
    fn move_to(&mut self, common: &Http2Shared) {
        // Without `..`: what an origin says beyond these must not stay that of another client.
        let ConnectionOrigin { peer, told, local, scheme, certificate, place } = &common.origin;
        let exchange = &mut self.exchange;
        (exchange.peer, exchange.local, exchange.scheme) = (*peer, *local, *scheme);
        exchange.peer_was_told = *told;
        exchange.certificate.clone_from(certificate);
        exchange.peer_ip.clone_from(&common.peer_ip);
        exchange.place.clone_from(place);
        exchange.memory = Some(common.memory.clone());
    }

    /// What it holds of a request must not live until the next one comes.
    fn clear(&mut self) {
        self.exchange.let_go();
        self.silence.clear();
        self.refusal_to_read.clear();
    }
}

/// One exchange or tunnel of a connection, counted for as long as this lives.
struct RunningStream(Arc<Http2Shared>);

impl RunningStream {
    fn new(common: Arc<Http2Shared>) -> Self {
        common.running.fetch_add(1, Ordering::Relaxed);
        Self(common)
    }
}

impl Drop for RunningStream {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::Release) == 1 {
            self.0.waker.wake();
        }
    }
}
