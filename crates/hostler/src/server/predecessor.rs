//! The Hostler that this one is to succeed, as the successor sees it. Knows nothing of how it was started.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};

use hostler_config::Surroundings;
use rustix::process::{Pid, getppid};

use super::channel::{self, Channel, SuccessorMessage};
use super::listeners::Inherited;

/// Names the process that waits for its successor at the other end of standard input.
pub(super) const VARIABLE: &str = "HOSTLER_PREDECESSOR";

/// Says how many files the first of all predecessors could open before it raised that limit.
pub(super) const OPEN_FILES: &str = "HOSTLER_PREDECESSOR_OPEN_FILES";

/// A Hostler that runs and waits for this one to take its place.
pub struct Predecessor(OwnedFd);

impl Predecessor {
    /// Finds it, if there is one. Its variables are taken out of the environment: they are for nobody else.
    pub fn find(around: &mut Surroundings) -> io::Result<Option<Self>> {
        let open_files = around.environment.remove(OPEN_FILES);
        let Some(named) = around.environment.remove(VARIABLE) else { return Ok(None) };
        // A variable that came here in a roundabout way says nothing about our own standard input.
        if getppid().map(Pid::as_raw_pid) != named.parse().ok() {
            return Ok(None);
        }
        around.soft_open_files = open_files.and_then(|limit| limit.parse().ok()).or(around.soft_open_files);
        let end = io::stdin().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok(Some(Self(end)))
    }

    /// Says that it must go on, and why. Should it be gone, nobody is left to tell.
    pub fn refuse(&self, reason: &str) {
        let _ = channel::say_now(self.0.as_fd(), &SuccessorMessage::failed(reason));
    }

    /// Begins to talk; needs a runtime.
    pub(super) fn talk(&self) -> io::Result<Talk> {
        Ok(Talk(Channel::new(self.0.try_clone()?)?))
    }
}

/// A talk with the predecessor.
pub(super) struct Talk(Channel);

impl Talk {
    /// All its sockets, and what has registered with it.
    pub async fn estate(&self) -> io::Result<(Inherited, Option<File>)> {
        let (mut sockets, mut registrations) = (BTreeMap::new(), None);
        loop {
            match self.0.hear().await? {
                Some((SuccessorMessage::Sockets(purpose), received)) => {
                    let known: &mut Vec<TcpListener> = sockets.entry(purpose).or_default();
                    known.extend(received.into_iter().map(TcpListener::from));
                }
                Some((SuccessorMessage::Registrations, received)) => {
                    registrations = received.into_iter().next().map(File::from);
                }
                Some((SuccessorMessage::NoMore, _)) => return Ok((sockets, registrations)),
                other => return Err(surprise(other.map(|(word, _)| word))),
            }
        }
    }

    /// Returns should the predecessor end before it has heard that all is ready: then nobody waits for us.
    pub async fn ends(&self) -> io::Error {
        match self.0.hear().await {
            Ok(word) => surprise(word.map(|(word, _)| word)),
            Err(error) => error,
        }
    }

    /// Says that all is ready, and waits for the word to begin.
    pub async fn ready(&self) -> io::Result<()> {
        self.0.say(&SuccessorMessage::Ready).await?;
        match self.0.hear().await? {
            Some((SuccessorMessage::Begin, _)) => Ok(()),
            other => Err(surprise(other.map(|(word, _)| word))),
        }
    }

    /// Says that connections are accepted from now on.
    pub async fn begun(&self) -> io::Result<()> {
        self.0.say(&SuccessorMessage::Begun).await
    }
}

fn surprise(word: Option<SuccessorMessage>) -> io::Error {
    io::Error::other(match word {
        Some(word) => format!("the predecessor said {word:?}, which makes no sense here"),
        None => "the predecessor is gone".to_owned(),
    })
}
