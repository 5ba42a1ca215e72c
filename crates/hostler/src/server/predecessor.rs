//! The predecessor as its successor sees it: a process that hands its sockets over. Does not know how this process was started.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use hostler_cache::Purge;
use hostler_config::LoadContext;
use hostler_engine::gateway::StickyKey;
use rustix::process::{Pid, getppid};
use tokio::time::timeout;

use super::channel::{self, Channel, SuccessorMessage};
use super::environment::take_workers_before;
use super::listeners::Inherited;

/// The process id of the predecessor. Its end of the channel is this process's standard input.
pub(super) const VARIABLE: &str = "HOSTLER_PREDECESSOR";

/// The soft limit on open files of the first process in a row of upgrades, before it raised the limit. Workers get this limit.
pub(super) const OPEN_FILES: &str = "HOSTLER_PREDECESSOR_OPEN_FILES";

/// How long a message to the predecessor may wait until there is room for it.
const REPORT_LIMIT: Duration = Duration::from_secs(1);

/// A running Hostler that waits for this process to take over.
pub struct Predecessor(OwnedFd);

impl Predecessor {
    /// Finds the predecessor, if there is one, and removes its variables from the environment, because they are only for this process.
    pub fn find(around: &mut LoadContext) -> io::Result<Option<Self>> {
        let open_files = around.environment.remove(OPEN_FILES);
        let workers_before = take_workers_before(&mut around.environment);
        let Some(named) = around.environment.remove(VARIABLE) else { return Ok(None) };
        // A variable that was inherited from another process says nothing about our standard input.
        if getppid().map(Pid::as_raw_pid) != named.parse().ok() {
            return Ok(None);
        }
        around.workers_before = workers_before;
        around.soft_open_files = open_files.and_then(|limit| limit.parse().ok()).or(around.soft_open_files);
        let end = io::stdin().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok(Some(Self(end)))
    }

    /// Tells the predecessor that this process cannot take over, and why. An error is ignored: the predecessor has ended then.
    pub fn refuse(&self, reason: &str) {
        let _ = channel::send_now(self.0.as_fd(), &SuccessorMessage::failed(reason));
    }

    /// Opens the channel. Needs a runtime.
    pub(super) fn handover(&self) -> io::Result<Arc<Handover>> {
        Ok(Arc::new(Handover(Channel::new(self.0.try_clone()?)?)))
    }
}

/// What a predecessor gives besides its sockets.
#[derive(Default)]
pub(super) struct Inheritance {
    /// The registered routes.
    pub registrations: Option<File>,
    /// Signs the cookies of pools without a key of their own.
    pub sticky_key: Option<StickyKey>,
    /// Pools of which no worker works.
    pub broken: Vec<String>,
    /// The channel to it. None if there is no predecessor.
    pub channel: Option<Arc<Handover>>,
}

/// The channel to the predecessor.
pub(super) struct Handover(Channel);

impl Handover {
    /// Receives the sockets, the registered routes and the key of sticky cookies.
    pub async fn receive_sockets(self: &Arc<Self>) -> io::Result<(Inherited, Inheritance)> {
        let (mut sockets, mut registrations) = (BTreeMap::new(), None);
        loop {
            match self.0.receive().await? {
                Some((SuccessorMessage::Sockets(purpose), received)) => {
                    let known: &mut Vec<OwnedFd> = sockets.entry(purpose).or_default();
                    known.extend(received);
                }
                Some((SuccessorMessage::Registrations, received)) => {
                    registrations = received.into_iter().next().map(File::from);
                }
                Some((SuccessorMessage::NoMore { sticky_key, broken }, _)) => {
                    let channel = Some(self.clone());
                    return Ok((sockets, Inheritance { registrations, sticky_key, broken, channel }));
                }
                other => return Err(unexpected(other.map(|(word, _)| word))),
            }
        }
    }

    /// Returns if the predecessor ends, or gives up, before it knows that all is ready.
    pub async fn ends(&self) -> io::Error {
        match self.0.receive().await {
            Ok(word) => unexpected(word.map(|(word, _)| word)),
            Err(error) => error,
        }
    }

    /// Reports that all is ready, and waits until the predecessor allows the start. Returns its registered routes of that time, and the
    /// purges that memcached has not got from it.
    pub async fn ready(&self) -> io::Result<(Option<File>, Vec<Purge>)> {
        self.0.send(&SuccessorMessage::Ready).await?;
        match self.0.receive().await? {
            Some((SuccessorMessage::Begin { purges }, received)) => {
                Ok((received.into_iter().next().map(File::from), purges))
            }
            other => Err(unexpected(other.map(|(word, _)| word))),
        }
    }

    /// Reports that connections are accepted, if there is a predecessor.
    pub async fn begun(of: Option<&Self>) {
        Self::report(of, &SuccessorMessage::Begun).await;
    }

    /// Reports that this process was told to stop, if there was a predecessor.
    pub async fn stopping(of: Option<&Self>) {
        Self::report(of, &SuccessorMessage::Stopping).await;
    }

    /// Passes on what unsafe methods have made void. False if the predecessor has ended. Waits as long as it reads nothing.
    pub async fn tell(&self, purges: Vec<Purge>) -> bool {
        self.0.send(&SuccessorMessage::purged(purges)).await.is_ok()
    }

    /// What unsafe methods have made void in the predecessor. None if it has ended.
    pub async fn hear(&self) -> Option<Vec<Purge>> {
        loop {
            if let (SuccessorMessage::Purged { purges }, _) = self.0.receive().await.ok()?? {
                return Some(purges);
            }
        }
    }

    /// Passes purges on, if there was a predecessor: it answers from its memory until its last client has left.
    pub async fn purged(of: Option<&Self>, purges: Vec<Purge>) {
        Self::report(of, &SuccessorMessage::purged(purges)).await;
    }

    async fn report(of: Option<&Self>, word: &SuccessorMessage) {
        if let Some(handover) = of {
            // One that is stopped (SIGSTOP) reads nothing. An error means that it has ended. This process goes on in all cases.
            let _ = timeout(REPORT_LIMIT, handover.0.send(word)).await;
        }
    }

    /// Waits for the end of the predecessor. What it says is not needed any more.
    pub async fn ended(&self) {
        while let Ok(Some(_)) = self.0.receive().await {}
    }
}

fn unexpected(word: Option<SuccessorMessage>) -> io::Error {
    io::Error::other(match word {
        Some(word) => format!("unexpected message from the old process: {word:?}"),
        None => "the old process has ended".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_predecessor_has_said_before_its_end_is_heard() {
        let (ours, theirs) = channel::pair().unwrap();
        let (handover, theirs) = (Handover(ours), Channel::new(theirs).unwrap());
        let purges = vec![Purge::Url("a.test/page".into())];
        theirs.send(&SuccessorMessage::purged(purges.clone())).await.unwrap();
        assert!(handover.tell(purges.clone()).await, "it is not read");
        drop(theirs);
        assert!(!handover.tell(purges.clone()).await);
        assert_eq!(handover.hear().await, Some(purges));
        assert_eq!(handover.hear().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_predecessor_that_reads_nothing_does_not_hold_up_a_stop() {
        let (ours, _theirs) = channel::pair().unwrap();
        let handover = Handover(ours);
        while timeout(REPORT_LIMIT, handover.0.send(&SuccessorMessage::Stopping)).await.is_ok() {}
        let stopping = Handover::stopping(Some(&handover));
        timeout(10 * REPORT_LIMIT, stopping).await.expect("the stop goes on");
    }
}
