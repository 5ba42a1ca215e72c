//! Looks whether the file systems that a start needs answer, and reads what it needs of them. One whose server is away does not answer, and
//! a start waits for it on the thread that starts all workers. Knows no states of workers.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Access, access};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::settings::WorkerSettings;
use super::{compile_cache, node_channel};

/// A start whose files do not answer for this long gives its turn to the next one: they may never answer.
const LOOK_TIMEOUT: Duration = Duration::from_secs(1);
/// The system reads so much of a program to find out how to start it.
const HEAD: u64 = 256;

/// What a look at the files has found.
#[derive(Debug)]
pub(super) struct StartLook {
    /// The settings of the start, when it asked for its turn.
    settings: Arc<WorkerSettings>,
    keeps_channel: bool,
}

impl StartLook {
    /// Whether the app gets the channel that the variables of Node name. `None`: other settings are to be started.
    pub fn keeps_channel(&self, settings: &WorkerSettings) -> Option<bool> {
        self.settings.boots_like(settings).then_some(self.keeps_channel)
    }
}

/// Waits until it has a turn and the files have just answered: `look` has returned. While they do not answer, it gives the turn back. It calls
/// `waits` before it waits for them. Each time that it has waited for `patience`, it asks whether it `gives_up`. `None`: it does. Beside the turn
/// it returns what the look has found. `None`: there was no thread for it.
pub(super) async fn turn_when_they_answer<T, F: Future<Output = T>, A: Send + 'static>(
    turn: impl Fn() -> F,
    look: impl Fn() -> A + Clone + Send + 'static,
    waits: impl Fn(),
    (patience, gives_up): (Duration, impl Fn() -> bool),
) -> Option<(T, Option<A>)> {
    let patience = patience.max(LOOK_TIMEOUT);
    loop {
        let turn = turn().await;
        let look = look.clone();
        // In a task of its own: if the system refuses a thread, only that task panics, and the start goes on.
        let mut looking = tokio::spawn(async move { spawn_blocking(look).await });
        if let Ok(looked) = timeout(LOOK_TIMEOUT, &mut looking).await {
            return Some((turn, looked.ok().and_then(Result::ok)));
        }
        drop(turn);
        waits();
        while timeout(patience, &mut looking).await.is_err() {
            if gives_up() {
                return None;
            }
        }
    }
}

/// For the operator: the start of a worker waits for its files.
pub(super) fn waits_for(settings: &WorkerSettings) -> String {
    format!("the start waits, because {}", silent(settings))
}

/// The start of a worker has waited for its files and was given up.
pub(super) fn no_answer(settings: &WorkerSettings) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, silent(settings))
}

fn silent(settings: &WorkerSettings) -> String {
    let folder = settings.cwd.display();
    format!(
        "a file system does not answer: that of the folder (cwd) {folder}, of the folder in PWD, of the program or another file in the command, \
         of the compile cache, or of the workers' sockets"
    )
}

/// Does with files what a start does. The start itself names what is missing. `sockets`: the folder of the workers' sockets.
///
/// What a network file system has told before is known without it for up to a minute. So files are opened or changed, which asks it.
pub(super) fn look(settings: &Arc<WorkerSettings>, sockets: &Path) -> StartLook {
    let _ = File::open(sockets);
    let _ = access(&settings.cwd, Access::EXEC_OK);
    if let Some(folder) = settings.env.get("PWD") {
        let _ = Path::new(folder).canonicalize();
    }
    compile_cache::touch(settings);
    let _ = programs(settings).iter().any(|program| is_readable(program));
    StartLook { settings: Arc::clone(settings), keeps_channel: node_channel::is_kept(settings) }
}

/// Where the system looks for the program, in this order.
fn programs(settings: &WorkerSettings) -> Vec<PathBuf> {
    let Some(program) = settings.command.first() else { return vec![] };
    if program.contains('/') {
        return vec![settings.cwd.join(program)];
    }
    let folders = settings.env.get("PATH").map_or("", String::as_str);
    std::env::split_paths(folders).map(|folder| settings.cwd.join(folder).join(program)).collect()
}

fn is_readable(program: &Path) -> bool {
    // To open a named pipe would wait for its other end.
    program.is_file()
        && File::open(program).is_ok_and(|file| file.take(HEAD).read_to_end(&mut Vec::new()).is_ok())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::SystemTime;

    use tokio::sync::{Notify, Semaphore};

    use super::*;
    use crate::settings::CompileCache;

    #[tokio::test]
    async fn a_start_whose_files_do_not_answer_holds_up_no_other() {
        let gate = Arc::new(Semaphore::new(1));
        let (answer, answers) = std::sync::mpsc::channel::<()>();
        let (answers, waits) = (Arc::new(Mutex::new(answers)), Arc::new(Notify::new()));
        let (turns, told) = (Arc::clone(&gate), Arc::clone(&waits));
        let start = tokio::spawn(turn_when_they_answer(
            move || Arc::clone(&turns).acquire_owned(),
            move || {
                // It ends when the sender is gone.
                let _ = answers.lock().unwrap().recv();
            },
            move || told.notify_one(),
            (LOOK_TIMEOUT, || false),
        ));
        waits.notified().await;
        let other = Arc::clone(&gate).try_acquire_owned().expect("another worker may start");
        drop((other, answer));
        let (turn, looked) = start.await.unwrap().unwrap();
        assert!(turn.is_ok() && looked.is_some() && gate.try_acquire().is_err(), "it has its turn");
        drop(turn);
    }

    #[test]
    fn the_compile_cache_is_marked_as_used_before_the_start_does_so() {
        let home = tempfile::tempdir().unwrap();
        let settings = WorkerSettings {
            cwd: home.path().to_owned(),
            compile_cache: CompileCache::Auto,
            env: [("HOME".to_owned(), home.path().to_str().unwrap().to_owned())].into(),
            ..WorkerSettings::default()
        };
        let folder = compile_cache::choose(&settings, Path::new("/nowhere")).folder.unwrap();
        let handle = File::open(&folder).unwrap();
        handle.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        look(&Arc::new(settings), home.path());
        assert!(handle.metadata().unwrap().modified().unwrap() > SystemTime::UNIX_EPOCH);
    }

    #[test]
    fn a_look_reads_the_scripts_of_the_command_for_a_start_with_these_settings() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("start.sh"), "#!/bin/sh\nexec bun run start\n").unwrap();
        std::fs::write(folder.path().join("app.js"), "").unwrap();
        let with = |command: &[&str]| {
            let command = command.iter().map(|word| (*word).to_owned()).collect();
            Arc::new(WorkerSettings { command, cwd: folder.path().to_owned(), ..WorkerSettings::default() })
        };
        let (script, file) = (with(&["sh", "start.sh"]), with(&["bun", "run", "app.js"]));
        let looked = [&script, &file].map(|settings| look(settings, folder.path()));
        assert_eq!(looked.each_ref().map(|looked| looked.keeps_channel(&script)), [Some(false), None]);
        assert_eq!(looked.each_ref().map(|looked| looked.keeps_channel(&file)), [None, Some(true)]);
    }

    #[test]
    fn the_program_is_looked_for_where_the_system_looks() {
        let of = |program: &str| {
            let settings = WorkerSettings {
                command: vec![program.to_owned()],
                cwd: "/srv/app".into(),
                env: [("PATH".to_owned(), "/usr/bin:bin".to_owned())].into(),
                ..WorkerSettings::default()
            };
            programs(&settings)
        };
        assert_eq!(of("node"), ["/usr/bin/node", "/srv/app/bin/node"].map(PathBuf::from));
        assert_eq!(of("./start.sh"), [PathBuf::from("/srv/app/start.sh")]);
        assert_eq!(of("/opt/node"), [PathBuf::from("/opt/node")]);
    }
}
