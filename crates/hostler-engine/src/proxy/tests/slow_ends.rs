//! Tunnels whose ends take their bytes slowly.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hostler_dispatch::{Claim, Pool, PoolSettings};
use hostler_wire::{Duplex, Stream, going_away};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};

use super::{WireSettings, simulated_address, wire};
use crate::exchange::{MemoryBudget, Sweep};
use crate::proxy::{ClientEnd, Ended, Endpoint, MemberEnd, Meter, Tunnel};

/// The last bytes of a server: a binary frame, and its Close frame.
fn last_words() -> Vec<u8> {
    [&[0x82_u8, 100][..], &[7; 100], &going_away(None)].concat()
}

/// A stream that takes all bytes, and holds them until the one below has room, as TLS does.
#[derive(Debug)]
struct HoldsBack {
    below: Stream,
    held: Vec<u8>,
    /// It counts as flushed with bytes that it holds, as a stream of HTTP/2. They are lost if it is dropped without its end.
    until_end: bool,
}

impl HoldsBack {
    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let taken = ready!(Pin::new(&mut self.below).poll_write(cx, &self.held))?;
            self.held.drain(..taken);
        }
        Poll::Ready(Ok(()))
    }
}

impl Duplex for HoldsBack {
    fn abort(&mut self) {}
}

impl AsyncRead for HoldsBack {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().below).poll_read(cx, buf)
    }
}

impl AsyncWrite for HoldsBack {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().held.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.until_end { Poll::Ready(Ok(())) } else { this.poll_held(cx) }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_held(cx))?;
        Pin::new(&mut this.below).poll_shutdown(cx)
    }
}

fn as_it_is(stream: Stream) -> Stream {
    stream
}

fn holding_back(below: Stream) -> Stream {
    Stream::InHttp2(Box::new(HoldsBack { below, held: Vec::new(), until_end: false }))
}

fn holding_back_until_its_end(below: Stream) -> Stream {
    Stream::InHttp2(Box::new(HoldsBack { below, held: Vec::new(), until_end: true }))
}

/// The client has sent its Close frame, and takes the last words within 20 s. Its stream has room for so many bytes.
async fn slow_client(seed: u64, capacity: usize, made: fn(Stream) -> Stream) -> (Ended, Vec<u8>) {
    let sweep = Sweep::new();
    tokio::spawn(sweep.clone().run());
    let pool = Pool::new("app", PoolSettings::default());
    let meter = Arc::new(Meter::new(1));
    let endpoint = Endpoint::new(simulated_address(0).into(), "a".into(), meter, 1, None);
    let _membership = pool.join(endpoint, 1);
    let lease = pool.acquire(Claim::default()).await.unwrap();
    let (stream, client) = wire(WireSettings { capacity, seed, discarded: Arc::new(|_| {}) });
    let (of_member, member) = wire(WireSettings { capacity: 10_000, seed, discarded: Arc::new(|_| {}) });
    client.write_at_once(&going_away(Some([1, 2, 3, 4])));
    member.write_at_once(&last_words());
    let deadlines = [sweep.deadline(), sweep.deadline(), sweep.deadline()];
    let hour = Duration::from_secs(3600);
    let client_end = ClientEnd {
        stream: made(stream),
        head: Vec::new(),
        early: Vec::new(),
        deadlines,
        send_timeout: hour,
        memory: MemoryBudget::new(1 << 20).account(),
    };
    let member_end = MemberEnd {
        stream: of_member,
        early: Vec::new(),
        is_websocket: true,
        idle_timeout: hour,
        tunnel_guard: lease.tunnel_guard(),
    };
    let carrying = tokio::spawn(async move {
        let mut tunnel = Tunnel::new(client_end, member_end);
        tunnel.carry(false, || Duration::ZERO).await
    });
    let mut received = Vec::new();
    loop {
        let before = received.len();
        while received.len() < before + 16 {
            if poll_fn(|cx| client.poll_read(cx, &mut received)).await == 0 {
                return (carrying.await.unwrap(), received);
            }
        }
        sleep_until(Instant::now() + Duration::from_secs(3)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_the_last_frames_slowly_gets_all_of_them() {
    // The bytes arrive in other pieces with each seed.
    for seed in 0..20 {
        assert_eq!(slow_client(seed, 16, as_it_is).await, (Ended::Whole, last_words()), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_gets_the_last_frames_also_if_its_stream_holds_them_back_as_tls_does() {
    for seed in 0..20 {
        assert_eq!(slow_client(seed, 16, holding_back).await, (Ended::Whole, last_words()), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_slow_client_gets_its_end_also_if_the_member_never_closes() {
    for seed in 0..20 {
        let (ended, received) = slow_client(seed, 10_000, holding_back_until_its_end).await;
        assert_eq!((ended, received), (Ended::Whole, last_words()), "seed {seed}");
    }
}
