//! The messages between a process and its successor, and the sockets that are passed with them. Does not know what either side does next.
//!
//! ```text
//! predecessor  Sockets.. NoMore                Begin          Purged..   (from `Begin` on the successor is not killed any more)
//! successor                       Ready / Failed       Begun  Purged..  Stopping
//! ```

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hostler_cache::Purge;
use hostler_engine::gateway::StickyKey;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::listeners::Purpose;

/// The kernel passes at most 253 descriptors with one message.
const MAX_DESCRIPTORS: usize = 64;
const LONGEST: usize = 64 * 1024;
/// The most bytes of an error text: each message must fit into one datagram.
const MAX_REASON: usize = 16 * 1024;
/// The most bytes of purges, as JSON.
const MAX_PURGES: usize = 48 * 1024;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "snake_case")]
pub(super) enum SuccessorMessage {
    /// Listening sockets; their descriptors are attached.
    Sockets(Purpose),
    /// Registered routes; the descriptor of a file with them is attached.
    Registrations,
    /// All sockets have been sent. The successor signs cookies with the same key. An older version neither sends nor reads it.
    NoMore {
        #[serde(default)]
        sticky_key: Option<StickyKey>,
        /// Pools of which no worker works. The successor does not wait for them.
        #[serde(default)]
        broken: Vec<String>,
    },
    /// All workers of the successor are ready, and it can begin.
    Ready,
    /// The successor cannot take over.
    Failed { reason: String },
    /// The predecessor tells the successor to accept connections. If it has registered routes, the descriptor of a file with those of now
    /// is attached. An older version attaches none.
    Begin {
        /// The purges that memcached has not got yet. An older version sends none.
        #[serde(default)]
        purges: Vec<Purge>,
    },
    /// The successor accepts connections.
    Begun,
    /// The sender was told to remove stored answers, or an unsafe method has made them void there. The receiver answers from a memory of its own.
    /// An older predecessor has closed its end. An older successor reads nothing.
    Purged { purges: Vec<Purge> },
    /// The successor was told to stop. An older predecessor has closed its end.
    Stopping,
}

impl SuccessorMessage {
    pub fn failed(reason: &str) -> Self {
        Self::Failed { reason: reason.chars().take(MAX_REASON / 4).collect() }
    }

    fn begin(purges: Vec<Purge>) -> Self {
        Self::Begin { purges: fitting(purges) }
    }

    pub fn purged(purges: Vec<Purge>) -> Self {
        Self::Purged { purges: fitting(purges) }
    }
}

/// If there are too many purges for one message, everything is purged.
fn fitting(purges: Vec<Purge>) -> Vec<Purge> {
    let fits = serde_json::to_vec(&purges).is_ok_and(|text| text.len() <= MAX_PURGES);
    if fits { purges } else { vec![Purge::All] }
}

/// One end of the channel. A message arrives as a whole, or the other end is closed.
pub(super) struct Channel(UnixStream);

/// Both ends. The second one is for the other process.
pub(super) fn pair() -> io::Result<(Channel, OwnedFd)> {
    let (ours, theirs) = sockets()?;
    Ok((Channel::new(ours)?, theirs))
}

#[cfg(target_os = "linux")]
fn sockets() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Messages of a Unix socket that keep their bounds and tell the end of the other process (`SOCK_SEQPACKET`) exist on Linux only.
#[cfg(not(target_os = "linux"))]
fn sockets() -> io::Result<(OwnedFd, OwnedFd)> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux can pass the sockets to a successor"))
}

/// Writing to a closed channel is an error and no signal. Rust ignores the signal anyway.
#[cfg(target_os = "linux")]
const SENDING: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const SENDING: SendFlags = SendFlags::empty();

/// Programs that are started meanwhile do not inherit the descriptors.
#[cfg(target_os = "linux")]
const RECEIVING: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const RECEIVING: RecvFlags = RecvFlags::empty();

impl Channel {
    pub fn new(end: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&end, true)?;
        Ok(Self(UnixStream::from_std(end.into())?))
    }

    pub async fn send(&self, word: &SuccessorMessage) -> io::Result<()> {
        self.send_with(word, &[]).await
    }

    pub async fn hand_over(&self, purpose: &Purpose, sockets: &[OwnedFd]) -> io::Result<()> {
        for some in sockets.chunks(MAX_DESCRIPTORS) {
            let borrowed: Vec<_> = some.iter().map(AsFd::as_fd).collect();
            self.send_with(&SuccessorMessage::Sockets(purpose.clone()), &borrowed).await?;
        }
        Ok(())
    }

    pub async fn hand_over_registrations(&self, file: &OwnedFd) -> io::Result<()> {
        self.send_with(&SuccessorMessage::Registrations, &[file.as_fd()]).await
    }

    /// Allows the start, with the registered routes of now, and with the purges that memcached has not got yet.
    pub async fn begin(&self, registrations: Option<&OwnedFd>, purges: Vec<Purge>) -> io::Result<()> {
        let attached: Vec<_> = registrations.iter().map(|file| file.as_fd()).collect();
        self.send_with(&SuccessorMessage::begin(purges), &attached).await
    }

    /// The next message and the descriptors that are attached. None if the other end is closed.
    pub async fn receive(&self) -> io::Result<Option<(SuccessorMessage, Vec<OwnedFd>)>> {
        let receive = || receive(self.0.as_fd()).map_err(io::Error::from);
        let (text, descriptors) = match self.0.async_io(Interest::READABLE, receive).await {
            // The other process has ended without reading everything. What it sent before can still be read.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                self.0.async_io(Interest::READABLE, receive).await?
            }
            outcome => outcome?,
        };
        if text.is_empty() {
            return Ok(None);
        }
        Ok(Some((serde_json::from_slice(&text)?, descriptors)))
    }

    async fn send_with(&self, word: &SuccessorMessage, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let text = serde_json::to_vec(word)?;
        self.0
            .async_io(Interest::WRITABLE, || send(self.0.as_fd(), &text, descriptors).map_err(Into::into))
            .await
    }
}

/// Sends one message without a runtime.
pub(super) fn send_now(end: BorrowedFd<'_>, word: &SuccessorMessage) -> io::Result<()> {
    Ok(send(end, &serde_json::to_vec(word)?, &[])?)
}

fn send(end: BorrowedFd<'_>, text: &[u8], descriptors: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    sendmsg(end, &[IoSlice::new(text)], &mut control, SENDING).map(drop)
}

fn receive(end: BorrowedFd<'_>) -> rustix::io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut text = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut text)];
    let received = recvmsg(end, &mut into, &mut control, RECEIVING)?.bytes;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    text.truncate(received);
    Ok((text, descriptors))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn purges_that_do_not_fit_into_a_message_become_one_of_everything() {
        let purges = |count| vec![Purge::Url(format!("a.example/{}", "x".repeat(1000))); count];
        assert_eq!(SuccessorMessage::begin(purges(40)), SuccessorMessage::Begin { purges: purges(40) });
        assert_eq!(SuccessorMessage::begin(purges(60)), SuccessorMessage::Begin { purges: vec![Purge::All] });
    }

    #[test]
    fn versions_without_purges_understand_each_other() {
        let old: SuccessorMessage = serde_json::from_str(r#"{"word":"begin"}"#).unwrap();
        assert_eq!(old, SuccessorMessage::Begin { purges: Vec::new() });
    }

    #[tokio::test]
    async fn sockets_are_passed_with_their_purpose_and_the_closing_is_seen() {
        let (ours, theirs) = pair().unwrap();
        let theirs = Channel::new(theirs).unwrap();
        let sockets: Vec<_> = (0..100).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
        let purpose = Purpose { key: "server.listen".into(), address: addresses[0].into() };
        let copies: Vec<OwnedFd> = sockets.into_iter().map(Into::into).collect();
        ours.hand_over(&purpose, &copies).await.unwrap();
        ours.send(&SuccessorMessage::failed(&"x".repeat(100_000))).await.unwrap();
        drop((ours, copies));

        let mut arrived = Vec::new();
        while arrived.len() < 100 {
            let (word, sockets) = theirs.receive().await.unwrap().unwrap();
            assert_eq!(word, SuccessorMessage::Sockets(purpose.clone()));
            arrived.extend(sockets.into_iter().map(TcpListener::from));
        }
        let arrived: Vec<_> = arrived.iter().map(|socket| socket.local_addr().unwrap()).collect();
        assert_eq!(arrived, addresses);
        assert!(matches!(theirs.receive().await.unwrap(), Some((SuccessorMessage::Failed { .. }, _))));
        assert!(theirs.receive().await.unwrap().is_none());
    }
}
