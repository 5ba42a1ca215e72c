//! What a Hostler and its successor say to each other, and how sockets cross with it. Knows neither one's plans.
//!
//! ```text
//! predecessor  Sockets.. NoMore                Begin          (from here on the successor is not killed any more)
//! successor                       Ready / Failed       Begun
//! ```

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::listeners::Purpose;

/// The kernel takes 253 descriptors at once.
const MOST_DESCRIPTORS: usize = 64;
const LONGEST: usize = 64 * 1024;
/// An explanation that is longer is of no more use, and each message must fit.
const LONGEST_REASON: usize = 16 * 1024;

/// One message.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "snake_case")]
pub(super) enum SuccessorMessage {
    /// Sockets that come with this message.
    Sockets(Purpose),
    /// A file that comes with this message: routes that have registered.
    Registrations,
    /// Those were all.
    NoMore,
    /// All workers are ready; the successor could begin.
    Ready,
    /// It will not, and why.
    Failed { reason: String },
    /// It shall accept connections.
    Begin,
    /// It does.
    Begun,
}

impl SuccessorMessage {
    pub fn failed(reason: &str) -> Self {
        Self::Failed { reason: reason.chars().take(LONGEST_REASON / 4).collect() }
    }
}

/// One end. Messages arrive whole, or the other end is gone.
pub(super) struct Channel(UnixStream);

/// Both ends; the other one is for another process.
pub(super) fn pair() -> io::Result<(Channel, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    Ok((Channel::new(ours)?, theirs))
}

impl Channel {
    pub fn new(end: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&end, true)?;
        Ok(Self(UnixStream::from_std(end.into())?))
    }

    pub async fn say(&self, word: &SuccessorMessage) -> io::Result<()> {
        self.send(word, &[]).await
    }

    pub async fn hand_over(&self, purpose: &Purpose, sockets: &[OwnedFd]) -> io::Result<()> {
        for some in sockets.chunks(MOST_DESCRIPTORS) {
            let borrowed: Vec<_> = some.iter().map(AsFd::as_fd).collect();
            self.send(&SuccessorMessage::Sockets(purpose.clone()), &borrowed).await?;
        }
        Ok(())
    }

    pub async fn hand_over_registrations(&self, file: &OwnedFd) -> io::Result<()> {
        self.send(&SuccessorMessage::Registrations, &[file.as_fd()]).await
    }

    /// The next message with the descriptors that came with it; none if the other end is gone.
    pub async fn hear(&self) -> io::Result<Option<(SuccessorMessage, Vec<OwnedFd>)>> {
        let receive = || receive(self.0.as_fd()).map_err(io::Error::from);
        let (text, descriptors) = match self.0.async_io(Interest::READABLE, receive).await {
            // The other end has gone without having heard all; what it had said before is still to be had.
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

    async fn send(&self, word: &SuccessorMessage, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let text = serde_json::to_vec(word)?;
        self.0
            .async_io(Interest::WRITABLE, || send(self.0.as_fd(), &text, descriptors).map_err(Into::into))
            .await
    }
}

/// One message without a runtime, for an end that is not a [`Channel`] yet.
pub(super) fn say_now(end: BorrowedFd<'_>, word: &SuccessorMessage) -> io::Result<()> {
    Ok(send(end, &serde_json::to_vec(word)?, &[])?)
}

fn send(end: BorrowedFd<'_>, text: &[u8], descriptors: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    sendmsg(end, &[IoSlice::new(text)], &mut control, SendFlags::NOSIGNAL).map(drop)
}

fn receive(end: BorrowedFd<'_>) -> rustix::io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut text = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut text)];
    let received = recvmsg(end, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes;
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
    use super::*;
    use std::net::TcpListener;

    #[tokio::test]
    async fn sockets_cross_with_their_purpose_and_the_end_is_seen() {
        let (ours, theirs) = pair().unwrap();
        let theirs = Channel::new(theirs).unwrap();
        let sockets: Vec<_> = (0..100).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
        let purpose = Purpose { key: "server.listen".into(), address: addresses[0] };
        let copies: Vec<OwnedFd> = sockets.into_iter().map(Into::into).collect();
        ours.hand_over(&purpose, &copies).await.unwrap();
        ours.say(&SuccessorMessage::failed(&"x".repeat(100_000))).await.unwrap();
        drop((ours, copies));

        let mut arrived = Vec::new();
        while arrived.len() < 100 {
            let (word, sockets) = theirs.hear().await.unwrap().unwrap();
            assert_eq!(word, SuccessorMessage::Sockets(purpose.clone()));
            arrived.extend(sockets.into_iter().map(TcpListener::from));
        }
        let arrived: Vec<_> = arrived.iter().map(|socket| socket.local_addr().unwrap()).collect();
        assert_eq!(arrived, addresses);
        assert!(matches!(theirs.hear().await.unwrap(), Some((SuccessorMessage::Failed { .. }, _))));
        assert!(theirs.hear().await.unwrap().is_none());
    }
}
