//! The successor as its predecessor sees it: a process that is started, gets the sockets, and is allowed to begin or is ended. Knows no
//! requests.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use hostler_cache::Purge;
use hostler_engine::gateway::StickyKey;
use hostler_worker::OwnChild;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use super::channel::{self, Channel, SuccessorMessage};
use super::environment::WORKERS_BEFORE;
use super::listeners::Purpose;
use super::predecessor::{OPEN_FILES, VARIABLE};
use super::program::Program;

/// Why there is no successor. This process goes on.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpgradeError {
    #[error("{program} cannot be started: {source}")]
    Start { program: String, source: io::Error },
    #[error("the new process cannot take over: {0}")]
    Refused(String),
    #[error("the new process ended ({0}); its standard error or the log says why")]
    Ended(ExitStatus),
    #[error("the new process was not ready in {0:?} (server.upgrade_timeout)")]
    TimedOut(Duration),
    #[error("the connection to the new process failed: {0}")]
    Channel(#[from] io::Error),
}

/// What a successor gets besides the sockets.
pub(super) struct Legacy {
    /// A file with the registered routes.
    pub registrations: Option<OwnedFd>,
    /// Signs the cookies of pools without a key of their own.
    pub sticky_key: StickyKey,
    /// How many workers each pool has.
    pub workers: String,
    /// Pools of which no worker works.
    pub broken: Vec<String>,
}

pub(super) struct Successor {
    pid: u32,
    /// None: its end is waited for elsewhere.
    process: Option<(Child, OwnChild)>,
    channel: Channel,
    /// It was allowed to begin and may have accepted connections, so it is not killed any more.
    is_free: bool,
}

impl Successor {
    /// Starts the program with these sockets, and waits until it is ready.
    pub async fn start(
        program: &Program,
        soft_open_files: Option<u64>,
        sockets: Vec<(Purpose, Vec<OwnedFd>)>,
        legacy: Legacy,
        time_limit: Duration,
    ) -> Result<Self, UpgradeError> {
        let until = Instant::now() + time_limit;
        let has_folder = look(program, until).await.map_err(|source| start_error(program, source))?;
        let (channel, theirs) = channel::pair()?;
        let mut command = Command::new(&program.path);
        if let Some((name, arguments)) = program.arguments.split_first() {
            command.arg0(name).args(arguments);
        }
        command
            .env(VARIABLE, std::process::id().to_string())
            .env(WORKERS_BEFORE, &legacy.workers)
            .stdin(theirs);
        if let Some(limit) = soft_open_files {
            command.env(OPEN_FILES, limit.to_string());
        }
        // If the folder is gone, the new process gets the working directory of this one: the release that a link led to when Hostler was started.
        if has_folder {
            command.current_dir(&program.folder);
        }
        let (child, own) = OwnChild::start(|| command.spawn(), |child| Some(child.id()))
            .map_err(|source| start_error(program, source))?;
        // The command holds a copy of the other end. Without it, the end of the process closes the channel.
        drop(command);
        let mut new = Self { pid: child.id(), process: Some((child, own)), channel, is_free: false };
        match timeout_at(until, new.prepare(sockets, legacy)).await {
            Ok(outcome) => outcome.map(|()| new),
            Err(_) => Err(UpgradeError::TimedOut(time_limit)),
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    async fn prepare(
        &mut self,
        sockets: Vec<(Purpose, Vec<OwnedFd>)>,
        legacy: Legacy,
    ) -> Result<(), UpgradeError> {
        match self.send_sockets(sockets, legacy).await {
            // It has ended before it has read everything. Its last message is read below.
            Err(error) if is_gone(&error) => {}
            outcome => outcome?,
        }
        match self.channel.receive().await? {
            Some((SuccessorMessage::Ready, _)) => Ok(()),
            other => Err(self.explain(other.map(|(word, _)| word)).await),
        }
    }

    async fn send_sockets(&self, sockets: Vec<(Purpose, Vec<OwnedFd>)>, legacy: Legacy) -> io::Result<()> {
        for (purpose, sockets) in sockets {
            self.channel.hand_over(&purpose, &sockets).await?;
        }
        if let Some(file) = legacy.registrations {
            self.channel.hand_over_registrations(&file).await?;
        }
        self.channel
            .send(&SuccessorMessage::NoMore { sticky_key: Some(legacy.sticky_key), broken: legacy.broken })
            .await
    }

    /// Allows the successor to begin, and returns when it has. From then on it is not killed any more. `registrations`: a file with the registered
    /// routes of now. The first such file may lack registrations from before the successor had subscribed.
    pub async fn begin(
        &mut self,
        registrations: Option<&OwnedFd>,
        purges: Vec<Purge>,
        time_limit: Duration,
    ) -> Result<(), UpgradeError> {
        // If the message does not arrive, it never begins.
        self.channel.begin(registrations, purges).await?;
        self.is_free = true;
        match timeout_at(Instant::now() + time_limit, self.channel.receive()).await {
            Ok(Ok(Some((SuccessorMessage::Begun, _)))) => Ok(()),
            Ok(other) => Err(self.explain(other?.map(|(word, _)| word)).await),
            Err(_) => {
                self.is_free = false;
                Err(UpgradeError::TimedOut(time_limit))
            }
        }
    }

    /// Passes on what unsafe methods have made void. False if it has ended. Waits as long as it reads nothing.
    pub async fn tell(&self, purges: Vec<Purge>) -> bool {
        self.channel.send(&SuccessorMessage::purged(purges)).await.is_ok()
    }

    /// The next message. None if it has ended.
    pub async fn says(&self) -> Option<SuccessorMessage> {
        self.channel.receive().await.ok()?.map(|(word, _)| word)
    }

    async fn explain(&mut self, word: Option<SuccessorMessage>) -> UpgradeError {
        match word {
            Some(SuccessorMessage::Failed { reason }) => {
                // It is about to end. Without a wait for that, its entry in the table of processes would stay.
                self.is_free = false;
                UpgradeError::Refused(reason)
            }
            Some(other) => UpgradeError::Refused(format!("unexpected message {other:?}")),
            // It has closed its end: it has ended, or is about to.
            None => {
                let Some(process) = self.process.take() else {
                    return UpgradeError::Refused("it has closed the connection".to_owned());
                };
                let ended = spawn_blocking(move || end(process)).await;
                ended
                    .map_err(io::Error::from)
                    .flatten()
                    .map_or_else(UpgradeError::Channel, UpgradeError::Ended)
            }
        }
    }
}

/// May wait for long: the kernel ends a process that waits for a disk only when the disk answers.
fn end((mut child, _own): (Child, OwnChild)) -> io::Result<ExitStatus> {
    let _ = child.kill();
    child.wait()
}

/// Whether the folder of the program is there. Another thread looks: this one watches all workers, and a file system that does not answer would
/// stop it, here or in the start of the process.
async fn look(program: &Program, until: Instant) -> io::Result<bool> {
    let Program { path, folder, .. } = program.clone();
    let looking = spawn_blocking(move || {
        // The start itself says what is wrong with the program.
        let _ = File::open(path);
        folder.is_dir()
    });
    match timeout_at(until, looking).await {
        Ok(found) => Ok(found?),
        Err(_) => {
            let text = format!("its file system, or that of {}, does not answer", program.folder.display());
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        }
    }
}

fn start_error(program: &Program, source: io::Error) -> UpgradeError {
    UpgradeError::Start { program: program.path.display().to_string(), source }
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionRefused | ConnectionReset)
}

impl Drop for Successor {
    fn drop(&mut self) {
        let Some(mut process) = self.process.take().filter(|_| !self.is_free) else { return };
        // Here, because the system may refuse the thread. The thread that drops this watches all workers, so it does not wait.
        let _ = process.0.kill();
        let _ = thread::Builder::new().name("successor".to_owned()).spawn(move || end(process));
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use hostler_testkit::eventually;

    use super::*;

    /// To open a named pipe waits for its other end, as for a file system that does not answer.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_program_whose_file_system_does_not_answer_ends_the_upgrade() {
        use rustix::fs::{CWD, Mode, mkfifoat};

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hostler");
        mkfifoat(CWD, &path, Mode::RWXU).unwrap();
        let program = Program { path: path.clone(), arguments: vec![], folder: folder.path().to_owned() };
        let legacy = Legacy {
            registrations: None,
            sticky_key: StickyKey::random(),
            workers: String::new(),
            broken: vec![],
        };
        let started = Successor::start(&program, None, vec![], legacy, Duration::from_millis(50)).await;
        let why = started.err().unwrap().to_string();
        assert!(why.contains("does not answer"), "{why}");
        // Ends the look.
        drop(File::options().write(true).open(&path).unwrap());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_successor_that_cannot_be_told_to_begin_leaves_no_process() {
        let (channel, theirs) = channel::pair().unwrap();
        let start = || Command::new("sleep").arg("1000").spawn();
        let (child, own) = OwnChild::start(start, |child| Some(child.id())).unwrap();
        let mut new = Successor { pid: child.id(), process: Some((child, own)), channel, is_free: false };
        let process = PathBuf::from(format!("/proc/{}", new.pid()));
        drop(theirs);
        assert!(new.begin(None, Vec::new(), Duration::from_secs(10)).await.is_err());
        drop(new);
        eventually("it to be neither alive nor a zombie", async || (!process.exists()).then_some(())).await;
    }
}
