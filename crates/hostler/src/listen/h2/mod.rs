//! HTTP/2 connections of clients: accepts their streams, and ends them. Knows the gateway, and neither routes nor members.

mod flood;
mod head;
mod metered_io;
mod send_buffer;
mod sink;
mod stream;
mod stream_tasks;
mod websocket;
mod window;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use atomic_waker::AtomicWaker;
use h2::Reason;
use h2::server::Connection;
use hostler_coding::ClientEncoders;
use hostler_engine::exchange::{
    Deadline, Exchange, MemoryAccount, OpenConnection, Protocol, Slow, SpoolAccount,
};
use metered_io::{ConnectionSignals, MeteredIo};

use super::Settings;
use super::handshake::ReadyConnection;
use super::shard::{ConnectionOrigin, Shard};
use super::silence::ShortSilence;
use send_buffer::{SendPiece, SharedSendBuffer};
pub use stream_tasks::StreamTasks;
use window::{ReceiveWindow, WindowDemand};

/// How many bytes a stream may have in the `h2` crate. All streams of a connection together have another limit (see `SharedSendBuffer`).
const SEND_BUFFER: usize = 128 * 1024;
/// How many bytes of overhead the frames of request bodies may cost while they wait to be read. The `h2` crate counts up to 256 bytes for a
/// frame, and joins the short ones of one stream: so this is about 1,000 streams with a short frame. Over it, the connection ends.
const DATA_FRAME_BUDGET: usize = 256 * 1024;
/// The most reset streams that are remembered, from the last second, so that their late frames are ignored. A stream is reset when its response
/// ends before the request, such as a refusal of an upload. A late frame of a forgotten one counts as an error, and many errors end the connection.
const REMEMBERED_RESETS: usize = 1000;

/// The data that all streams of a connection share.
struct Http2Shared {
    shard: Arc<Shard>,
    settings: Arc<Settings>,
    origin: ConnectionOrigin,
    /// The client's address as text, made once per connection.
    peer_ip: Arc<str>,
    /// Its share of the spool; none before its first use.
    spool: OnceLock<SpoolAccount>,
    /// What its encoders hold; none before the first one.
    encoders: OnceLock<ClientEncoders>,
    /// The number of streams whose exchange has not ended.
    running: AtomicUsize,
    /// Its share of the memory for heads and bodies of requests.
    memory: Arc<MemoryAccount>,
    /// Limits the bytes of all its answers in the `h2` crate.
    send_buffer: Arc<SharedSendBuffer>,
    /// What it and its byte stream tell each other, such as why it must end.
    signals: Arc<ConnectionSignals>,
    /// Bytes of request bodies that were received, over all streams.
    received: AtomicU64,
    /// What the streams want of the receive window.
    window_demand: WindowDemand,
    /// Wakes the connection's task when the last stream has ended.
    waker: AtomicWaker,
    /// Counts the connection as open until its last exchange has ended.
    _open: OpenConnection,
}

/// The state of a stream's task that the next stream uses again.
struct StreamState {
    exchange: Exchange,
    /// The deadline for the next bytes of the client.
    silence: Deadline,
    /// The deadline for the client to take some of its answer.
    refusal_to_read: Deadline,
}

/// The state of a connection's own task.
struct Session {
    connection: Connection<MeteredIo, SendPiece>,
    window: ReceiveWindow,
    common: Arc<Http2Shared>,
    /// The deadline for what the connection waits for, depending on the phase.
    phase_deadline: Deadline,
    phase: ConnectionPhase,
    /// The silence in the phase `Idle`.
    silence: ShortSilence,
    /// Whether the memory that only frames need is freed. Then `h2` is not polled before bytes come, because it would allocate its read buffer.
    at_rest: bool,
    /// Whether the client was told that no more streams are accepted (GOAWAY).
    leaving: bool,
    /// Whether the connection was ended because of a flood or a slow client.
    is_aborted: bool,
}

/// What a connection is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionPhase {
    /// For its exchanges, which have their own deadlines.
    Busy,
    /// For the client to take what the `h2` crate has of its answers.
    Sending,
    /// For the next request.
    Idle,
    /// For the client to close the connection.
    Leaving,
}

impl Shard {
    /// Serves an HTTP/2 connection until it ends. `read`: the bytes that were read already, from the preface on. Returns the future of its task,
    /// which is small: most connections are idle. An `async fn` would have room for the arguments as long as the connection is open.
    pub(super) fn serve_http2(
        self: Arc<Self>,
        ready: ReadyConnection,
        read: Vec<u8>,
        open: OpenConnection,
    ) -> impl Future<Output = ()> {
        // Boxed, so that the task of the connection does not need this memory later.
        let mut state = Err(Box::pin(self.begin_http2(ready, read, open)));
        poll_fn(move |cx| {
            if let Err(begun) = &mut state {
                let Some(session) = ready!(begun.as_mut().poll(cx)) else { return Poll::Ready(()) };
                state = Ok(session);
            }
            state.as_mut().map_or(Poll::Ready(()), |session| session.poll(cx))
        })
    }

    async fn begin_http2(
        self: Arc<Self>,
        ready: ReadyConnection,
        read: Vec<u8>,
        open: OpenConnection,
    ) -> Option<Session> {
        let ReadyConnection { stream, settings, origin, .. } = ready;
        // Streams and tunnels may be silent for hours, so a dead peer must be noticed.
        stream.keep_alive_within(settings.send_limits.send_timeout);
        let signals = Arc::new(ConnectionSignals::default());
        let metered_io = MeteredIo::new(stream, read, settings.clone(), &self.sweep, signals.clone());
        let connection = handshake(&settings, metered_io, &signals).await?;
        let phase_deadline = self.sweep.deadline();
        let own = self.gateway.request_memory.account();
        let windows = origin.shared_windows(&self.gateway.request_memory);
        let room = windows.as_ref().unwrap_or(&own).reservation();
        let window = ReceiveWindow::new(room, settings.http2.connection_window);
        let peer_ip = origin.peer.ip().to_canonical().to_string().into();
        let memory = origin.shared_memory(&self.gateway.request_memory).unwrap_or(own);
        let spool = origin.shared_spool(&settings.spool).map_or_else(OnceLock::new, OnceLock::from);
        let common = Arc::new(Http2Shared {
            send_buffer: SharedSendBuffer::new(settings.answer_memory.account()),
            signals,
            shard: self,
            settings,
            origin,
            spool,
            encoders: OnceLock::new(),
            running: AtomicUsize::new(0),
            memory,
            received: AtomicU64::new(0),
            window_demand: WindowDemand::default(),
            waker: AtomicWaker::new(),
            peer_ip,
            _open: open,
        });
        Some(Session {
            connection,
            window,
            common,
            phase_deadline,
            phase: ConnectionPhase::Busy,
            silence: ShortSilence::default(),
            at_rest: false,
            leaving: false,
            is_aborted: false,
        })
    }
}

/// None if the client does not begin as HTTP/2 does, or sends no whole preface in time.
async fn handshake(
    settings: &Settings,
    metered_io: MeteredIo,
    signals: &ConnectionSignals,
) -> Option<Connection<MeteredIo, SendPiece>> {
    let limits = &settings.limits;
    // HTTP/2 counts 32 bytes more for each field. Our own limits must be reached first, because they give an answer.
    let header_list = limits.max_size + 32 * limits.max_fields + 1024;
    let handshake = h2::server::Builder::new()
        .max_header_list_size(u32::try_from(header_list).unwrap_or(u32::MAX))
        .max_concurrent_streams(settings.http2.max_streams)
        .initial_window_size(settings.http2.stream_window)
        .max_send_buffer_size(SEND_BUFFER)
        .data_frame_budget(DATA_FRAME_BUDGET)
        .max_concurrent_reset_streams(REMEMBERED_RESETS)
        // Requests and their resets may come together, after a pause of the network. `FloodMeter` counts the resets.
        .max_pending_accept_reset_streams(settings.http2.max_streams as usize)
        // `FloodMeter` limits them: the default is five of them, however short they are.
        .max_continuation_frames(usize::MAX)
        .enable_connect_protocol()
        .handshake(metered_io);
    let mut handshake = pin!(handshake);
    poll_fn(|cx| match handshake.as_mut().poll(cx) {
        Poll::Ready(outcome) => Poll::Ready(outcome.ok()),
        // `MeteredIo` reads no more, so nothing else would end it.
        Poll::Pending if signals.flood().is_some() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

impl Session {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.common.waker.register(cx.waker());
        if self.at_rest && !self.ends_rest(cx) {
            return Poll::Pending;
        }
        loop {
            match self.connection.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    self.common.shard.stream_tasks.assign(&self.common, request, respond);
                    continue;
                }
                Poll::Ready(Some(Err(error))) => {
                    // The `h2` crate has limits of its own.
                    if error.is_library()
                        && error.reason() == Some(Reason::ENHANCE_YOUR_CALM)
                        && !self.is_aborted
                    {
                        let text = format_args!("it went over a limit of the HTTP/2 library ({error})");
                        self.common.shard.note_flood(&self.common.origin, &text);
                    }
                    return Poll::Ready(());
                }
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => {}
            }
            if self.ends_abruptly() {
                continue;
            }
            if !self.leaving && self.common.shard.ends(&self.common.settings, self.common.origin.is_tls()) {
                self.leave();
                continue;
            }
            let common = &self.common;
            let is_idle = common.running.load(Ordering::Acquire) == 0;
            let budget = &common.shard.gateway.request_memory;
            self.window.fit(&mut self.connection, &common.window_demand, budget, is_idle);
            self.update_phase();
            if self.phase_deadline.poll_due(cx).is_pending() {
                return Poll::Pending;
            }
            match self.phase {
                ConnectionPhase::Idle => {}
                ConnectionPhase::Sending if !self.is_aborted => {
                    self.common.signals.set_slow(Slow::Stalled);
                    continue;
                }
                _ => return Poll::Ready(()),
            }
            if self.silence.end(&self.phase_deadline, self.common.settings.idle_timeout)
                && self.phase_deadline.poll_due(cx).is_pending()
            {
                // `poll_accept` has registered this task for the next bytes.
                self.at_rest = self.connection.release_memory();
                return Poll::Pending;
            }
            self.leave();
        }
    }

    /// Ends the connection if its client floods it or does not take its answers. False if it goes on, or is ended already.
    fn ends_abruptly(&mut self) -> bool {
        let (flood, slow) = (self.common.signals.flood(), self.common.signals.slow());
        if self.is_aborted || flood.is_none() && slow.is_none() {
            return false;
        }
        if let Some(flood) = flood {
            self.common.shard.note_flood(&self.common.origin, &flood);
        }
        (self.is_aborted, self.leaving) = (true, true);
        self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        true
    }

    /// Whether a connection at rest has something to do: bytes have come, or it must end.
    fn ends_rest(&mut self, cx: &mut Context<'_>) -> bool {
        let has_bytes = self.connection.io_mut().poll_first_bytes(cx).is_ready();
        if has_bytes {
            self.silence.begin_again(&self.phase_deadline);
        }
        let ends = has_bytes
            || self.common.signals.flood().is_some()
            || self.common.shard.ends(&self.common.settings, self.common.origin.is_tls())
            || self.phase_deadline.poll_due(cx).is_ready();
        self.at_rest = !ends;
        ends
    }

    /// Tells the client that no more streams are accepted: first with the highest stream number, then with that of the last stream (RFC 9113
    /// section 6.8).
    fn leave(&mut self) {
        self.leaving = true;
        self.connection.graceful_shutdown();
    }

    fn update_phase(&mut self) {
        let settings = &self.common.settings;
        let phase = match self.common.running.load(Ordering::Acquire) {
            0 if self.connection.has_streams() => ConnectionPhase::Sending,
            0 if self.leaving => ConnectionPhase::Leaving,
            0 => ConnectionPhase::Idle,
            // Bytes in the `h2` crate may keep the answers of other streams out of it.
            _ if self.common.send_buffer.has_bytes() => ConnectionPhase::Sending,
            _ => ConnectionPhase::Busy,
        };
        // Only sent bytes are progress, not a frame of the client. If bytes wait in the socket, `MeteredIo` checks whether the client takes them.
        let least = settings.send_limits.min_send_rate.max(1);
        let goes_on = phase == ConnectionPhase::Sending
            && (self.common.send_buffer.goes_on(least) || self.connection.io_mut().is_blocked());
        if phase != self.phase || goes_on {
            match phase {
                ConnectionPhase::Busy => self.phase_deadline.clear(),
                ConnectionPhase::Sending => self.phase_deadline.set_after(settings.send_limits.send_timeout),
                ConnectionPhase::Idle => {
                    self.silence = ShortSilence::begin(&self.phase_deadline, settings.idle_timeout);
                }
                ConnectionPhase::Leaving => self.phase_deadline.set_after(settings.linger_timeout),
            }
            self.phase = phase;
        }
    }
}

impl StreamState {
    fn new(common: &Http2Shared) -> Box<Self> {
        let sweep = &common.shard.sweep;
        let mut exchange = common.origin.exchange(sweep);
        exchange.protocol = Protocol::Http2;
        Box::new(Self { exchange, silence: sweep.deadline(), refusal_to_read: sweep.deadline() })
    }

    /// Moves the state to another connection.
    fn move_to(&mut self, common: &Http2Shared) {
        // Without `..`, so that a new field of the origin cannot stay that of another client.
        let ConnectionOrigin { peer, told, local, scheme, certificate, place } = &common.origin;
        let exchange = &mut self.exchange;
        (exchange.peer, exchange.local, exchange.scheme) = (*peer, *local, *scheme);
        exchange.peer_was_told = *told;
        exchange.certificate.clone_from(certificate);
        exchange.peer_ip.clone_from(&common.peer_ip);
        exchange.place.clone_from(place);
        exchange.memory = Some(common.memory.clone());
    }

    /// Drops what belongs to the request, because the next one may come much later.
    fn clear(&mut self) {
        self.exchange.let_go();
        self.silence.clear();
        self.refusal_to_read.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_result<A, B, C, D, Task>(_: fn(A, B, C, D) -> Task) -> usize {
        size_of::<Task>()
    }

    #[test]
    fn the_task_of_an_idle_connection_is_small() {
        // Above, the allocator takes a quarter of a KiB more for each open connection. `tokio` adds 104 bytes.
        let bytes = size_of_result(Shard::serve_http2);
        assert!(bytes <= 1280 - 104, "{bytes} bytes for each open connection");
    }
}
