//! Looks whether the file systems that a start needs answer. One whose server is away does not, and a start waits for it on the thread that
//! starts all workers. Knows no states of workers.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, access};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::compile_cache;
use super::settings::WorkerSettings;

/// A start whose files do not answer for this long gives its turn to the next one: they may never answer.
const LOOK_TIMEOUT: Duration = Duration::from_secs(1);
/// The system reads so much of a program to find out how to start it.
const HEAD: u64 = 256;

/// Waits until it has a turn and the files have just answered: `look` has returned. While they do not answer, it gives the turn back. It calls
/// `waits` before it waits for them. Each time that it has waited for `patience`, it asks whether it `gives_up`. `None`: it does.
pub(super) async fn turn_when_they_answer<T, F: Future<Output = T>>(
    turn: impl Fn() -> F,
    look: impl Fn() + Clone + Send + 'static,
    waits: impl Fn(),
    (patience, gives_up): (Duration, impl Fn() -> bool),
) -> Option<T> {
    let patience = patience.max(LOOK_TIMEOUT);
    loop {
        let turn = turn().await;
        let look = look.clone();
        // In a task of its own: if the system refuses a thread, only that task panics, and the start goes on.
        let mut looking = tokio::spawn(async move { spawn_blocking(look).await });
        if timeout(LOOK_TIMEOUT, &mut looking).await.is_ok() {
            return Some(turn);
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
        "a file system does not answer: that of the folder (cwd) {folder}, of the folder in PWD, of the program, of the compile cache, or of the \
         workers' sockets"
    )
}

/// Does with files what a start does. The start itself names what is missing. `sockets`: the folder of the workers' sockets.
///
/// What a network file system has told before is known without it for up to a minute. So files are opened or changed, which asks it.
pub(super) fn look(settings: &WorkerSettings, sockets: &Path) {
    let _ = File::open(sockets);
    let _ = access(&settings.cwd, Access::EXEC_OK);
    if let Some(folder) = settings.env.get("PWD") {
        let _ = Path::new(folder).canonicalize();
    }
    compile_cache::touch(settings);
    for program in programs(settings) {
        if is_readable(&program) {
            return;
        }
    }
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
    use std::sync::{Arc, Mutex};
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
        let turn = start.await.unwrap().unwrap().unwrap();
        assert!(gate.try_acquire().is_err(), "it has its turn");
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
        look(&settings, home.path());
        assert!(handle.metadata().unwrap().modified().unwrap() > SystemTime::UNIX_EPOCH);
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
