//! A tunnel: two directions between a client and a member that no longer speak HTTP, and their common end. Knows no queue and no requests.

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hostler_dispatch::TunnelGuard;
use hostler_wire::{Frames, Stream, going_away};
use hostler_worker::UnfinishedRequest;
use tokio::time::{sleep, timeout};

use super::Endpoint;
use super::lane::{Ahead, Lane, LaneError};
use crate::exchange::{Deadline, MemoryAccount};

/// How long the current frame of an end may take to complete, before the direction is cut.
const FRAME_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for the answer to our Close frame, and for both ends of a WebSocket to close their connections after their Close
/// frames. Other protocols get the same time to end by themselves.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long both ends may take to close after that.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a tunnel to a worker still counts after its end. An app reacts to a closed connection only after the close, and a worker gets
/// its signal when its last tunnel has gone. Few apps delay their exit for that work.
pub(super) const EXIT_DELAY: Duration = Duration::from_millis(500);

/// The client's side of a future tunnel.
pub struct ClientEnd {
    pub stream: Stream,
    /// The head of the 101, which the client has not got yet.
    pub head: Vec<u8>,
    /// Bytes that the client has sent behind its request.
    pub early: Vec<u8>,
    /// Deadlines of the connection that HTTP no longer needs.
    pub deadlines: [Deadline; 3],
    /// How long either end may take nothing.
    pub send_timeout: Duration,
    /// The connection's share of the memory for answers. What waits for either end counts there.
    pub memory: Arc<MemoryAccount>,
}

/// The member's side.
pub struct MemberEnd {
    pub(super) stream: Stream,
    pub(super) early: Vec<u8>,
    pub(super) is_websocket: bool,
    pub(super) idle_timeout: Duration,
    pub(super) tunnel_guard: TunnelGuard<Endpoint>,
}

/// How a tunnel ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Both ends have closed in order.
    Whole,
    /// The member has left its pool, or Hostler is stopping.
    Dismissed,
    /// Nothing has moved for too long.
    Idle,
    /// The client has closed without the end of its protocol.
    Client,
    /// The same, and the member has closed after it, in order.
    ClientFirst,
    /// The client has taken nothing for too long.
    ClientStalled,
    /// The member has closed without the end of its protocol.
    Worker,
    /// The member has taken nothing for too long.
    WorkerStalled,
}

/// A tunnel. It holds its member without a slot.
pub struct Tunnel {
    client: Stream,
    member: Stream,
    /// From the client to the member.
    up: Lane,
    /// From the member to the client.
    down: Lane,
    /// Which direction was polled first the last time.
    down_first: bool,
    is_websocket: bool,
    /// The WebSocket is over: its Close frames have passed. From then on `idle` is the time limit for both ends to close their connections.
    is_over: bool,
    idle: Deadline,
    idle_timeout: Duration,
    tunnel_guard: TunnelGuard<Endpoint>,
    _noted: Option<UnfinishedRequest>,
}

impl Tunnel {
    pub fn new(client: ClientEnd, member: MemberEnd) -> Self {
        client.stream.keep_alive_within(client.send_timeout);
        member.stream.keep_alive_within(client.send_timeout);
        client.deadlines.iter().for_each(Deadline::forget);
        let [idle, of_client, of_member] = client.deadlines;
        let frames = || member.is_websocket.then(Frames::default);
        let memory = || client.memory.reservation();
        let up = Ahead { head: Vec::new(), early: client.early };
        let down = Ahead { head: client.head, early: member.early };
        Self {
            up: Lane::new(up, frames(), of_member, client.send_timeout, memory()),
            down: Lane::new(down, frames(), of_client, client.send_timeout, memory()).withholds_end(),
            down_first: true,
            client: client.stream,
            member: member.stream,
            is_websocket: member.is_websocket,
            is_over: false,
            idle,
            idle_timeout: member.idle_timeout,
            tunnel_guard: member.tunnel_guard,
            _noted: None,
        }
    }

    /// Names the tunnel, which the log shows if its worker is killed because it hangs. A member that is not a worker of ours needs no name.
    pub fn name(&mut self, name: impl FnOnce() -> Arc<str>) {
        self._noted = self.tunnel_guard.exit_watch().map(|exit_watch| exit_watch.note_tunnel(name()));
    }

    /// The bytes from the client and to the client.
    pub fn bytes(&self) -> (u64, u64) {
        (self.up.bytes, self.down.bytes)
    }

    /// Runs the tunnel until it ends. When it must end, it stays for `delay` longer, so that clients that are disconnected together do not
    /// come back together.
    pub async fn carry(&mut self, is_ending: bool, delay: impl FnOnce() -> Duration) -> Ended {
        self.idle.set_after(self.idle_timeout);
        let mut ended = if is_ending {
            Ended::Dismissed
        } else {
            let dismissed = self.tunnel_guard.dismissed();
            self.carry_until(dismissed).await
        };
        if ended == Ended::Dismissed
            && let Ok(before) = timeout(delay(), self.carry_until(pending())).await
        {
            ended = before;
        }
        match ended {
            Ended::Whole | Ended::ClientFirst => {}
            Ended::Dismissed | Ended::Idle => self.close().await,
            Ended::Worker | Ended::WorkerStalled if self.is_websocket => self.close().await,
            _ => self.abort(),
        }
        if ended == Ended::Dismissed && self.tunnel_guard.is_ours() {
            sleep(EXIT_DELAY).await;
        }
        ended
    }

    async fn carry_until(&mut self, dismissed: impl Future<Output = ()>) -> Ended {
        let mut dismissed = pin!(dismissed);
        poll_fn(|cx| self.poll(cx, dismissed.as_mut())).await
    }

    fn poll(&mut self, cx: &mut Context<'_>, dismissed: Pin<&mut impl Future<Output = ()>>) -> Poll<Ended> {
        for (lane, sink) in [(&mut self.up, &self.member), (&mut self.down, &self.client)] {
            if let Some(accepted) = sink.taken_below() {
                lane.note_below(accepted);
            }
        }
        // One direction alone may use up the turn of the task.
        self.down_first = !self.down_first;
        let (mut up, mut down) = if self.down_first {
            let down = self.down.poll(cx, &mut self.member, &mut self.client);
            (self.up.poll(cx, &mut self.client, &mut self.member), down)
        } else {
            let up = self.up.poll(cx, &mut self.client, &mut self.member);
            (up, self.down.poll(cx, &mut self.member, &mut self.client))
        };
        if self.down.has_closed() {
            self.let_member_go(cx, &mut up, &mut down);
        }
        match (up, down) {
            (Poll::Ready(Err(broken)), _) => {
                return Poll::Ready(self.judge(broken, Ended::Client, Ended::Worker));
            }
            (_, Poll::Ready(Err(broken))) => {
                return Poll::Ready(self.judge(broken, Ended::Worker, Ended::Client));
            }
            // A member that closes first is found below. This one has closed after its client.
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) if self.lacks_close() => {
                return Poll::Ready(Ended::ClientFirst);
            }
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => return Poll::Ready(Ended::Whole),
            // The member closed without a Close frame. Nothing more comes from it.
            (_, Poll::Ready(Ok(()))) if self.is_websocket && !self.down.has_closed() => {
                return Poll::Ready(Ended::Worker);
            }
            _ => {}
        }
        let has_moved = self.up.has_moved() | self.down.has_moved();
        if !self.is_over && self.has_said_all() {
            self.is_over = true;
            self.idle.set_after(CLOSE_TIMEOUT);
        } else if has_moved && !self.is_over {
            self.idle.set_after(self.idle_timeout);
        }
        if self.idle.poll_due(cx).is_ready() {
            if !self.is_over {
                return Poll::Ready(Ended::Idle);
            }
            self.end_both(cx);
            return Poll::Ready(Ended::Whole);
        }
        dismissed.poll(cx).map(|()| Ended::Dismissed)
    }

    /// A member that has sent its Close frame may close its connection in any way: what the client still sends is dropped, and the client gets
    /// all that the member has sent. A kernel resets a connection that is closed before everything was read.
    fn let_member_go(
        &mut self,
        cx: &mut Context<'_>,
        up: &mut Poll<Result<(), LaneError>>,
        down: &mut Poll<Result<(), LaneError>>,
    ) {
        if *up == Poll::Ready(Err(LaneError::Sink)) {
            self.up.tolerate(LaneError::Sink);
            *up = self.up.poll(cx, &mut self.client, &mut self.member);
        }
        if *down == Poll::Ready(Err(LaneError::Source)) {
            self.down.tolerate(LaneError::Source);
            *down = self.down.poll(cx, &mut self.member, &mut self.client);
        }
    }

    /// Ends both directions of a WebSocket that is over, although an end has not closed yet. An HTTP/2 stream that is dropped without its end is
    /// reset, and then its client does not get what HTTP/2 has not sent yet.
    fn end_both(&mut self, cx: &mut Context<'_>) {
        self.up.cut();
        self.down.cut();
        // Both sinks have taken everything, so this needs no wait.
        let _ = self.up.poll(cx, &mut self.client, &mut self.member);
        let _ = self.down.poll(cx, &mut self.member, &mut self.client);
    }

    /// Whether a WebSocket is over: both sides have sent Close frames, or the member has closed its connection after its own, and both ends
    /// have taken everything. An end that has not taken everything yet is limited only by its send timeout.
    fn has_said_all(&self) -> bool {
        let is_said = self.down.has_closed() && (self.up.has_closed() || self.down.has_ended());
        self.is_websocket && is_said && self.up.is_taken() && self.down.is_taken()
    }

    /// Whether neither side of a WebSocket has sent its Close frame.
    fn lacks_close(&self) -> bool {
        self.is_websocket && !self.up.has_closed() && !self.down.has_closed()
    }

    fn judge(&self, broken: LaneError, source: Ended, sink: Ended) -> Ended {
        let both_closed = self.is_websocket && self.up.has_closed() && self.down.has_closed();
        match broken {
            _ if both_closed => Ended::Whole,
            LaneError::Source => source,
            LaneError::Sink => sink,
            LaneError::Stalled if sink == Ended::Client => Ended::ClientStalled,
            LaneError::Stalled => Ended::WorkerStalled,
        }
    }

    /// Ends the tunnel in order and in bounded time. A WebSocket gets a Close frame to each end and waits for the answers; another protocol
    /// gets time to end by itself.
    async fn close(&mut self) {
        if self.is_websocket {
            self.down.close(going_away(None));
            self.up.close(going_away(Some(fastrand::u32(..).to_be_bytes())));
            self.go_on(FRAME_TIMEOUT, |tunnel| {
                !tunnel.up.is_inside_frame() && !tunnel.down.is_inside_frame()
            })
            .await;
            // A Close frame cannot be sent inside another frame.
            for lane in [&mut self.up, &mut self.down].into_iter().filter(|lane| lane.is_inside_frame()) {
                lane.cut();
            }
        }
        self.go_on(CLOSE_TIMEOUT, |tunnel| tunnel.up.is_settled() && tunnel.down.is_settled()).await;
        self.up.cut();
        self.down.cut();
        self.go_on(LINGER_TIMEOUT, |tunnel| tunnel.up.has_ended() && tunnel.down.has_ended()).await;
    }

    /// Moves bytes until `is_enough`, whatever fails meanwhile, for at most `time_limit`.
    async fn go_on(&mut self, time_limit: Duration, is_enough: impl Fn(&Self) -> bool) {
        let moving = poll_fn(|cx| {
            while let Poll::Ready(Err(broken)) = self.up.poll(cx, &mut self.client, &mut self.member) {
                self.up.tolerate(broken);
            }
            while let Poll::Ready(Err(broken)) = self.down.poll(cx, &mut self.member, &mut self.client) {
                self.down.tolerate(broken);
            }
            if is_enough(self) { Poll::Ready(()) } else { Poll::Pending }
        });
        let _ = timeout(time_limit, moving).await;
    }

    /// Aborts the connections that are left, so that neither end mistakes what it has for the whole.
    fn abort(&mut self) {
        self.client.abort();
        self.member.abort();
    }
}
