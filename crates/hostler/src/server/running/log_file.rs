//! The file of the log: opened within a time limit, and made the one that the journal writes to. Knows no configuration.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::LazyLock;

use hostler_engine::exchange::DiskThreads;
use hostler_engine::journal::{Journal, Level};
use tokio::task::spawn_blocking;

/// The threads that may open files for the log. One whose disk hangs stays, and there are 512 for all blocking work of the control thread.
static LOG_OPENERS: LazyLock<DiskThreads> = LazyLock::new(|| DiskThreads::new(128));

/// Opens the log file again. After an error, which is logged and returned as a sentence, the log goes on where it was.
pub async fn reopen_log(journal: Journal, file: PathBuf) -> Option<String> {
    match open_log(Some(file)).await {
        Ok(out) => {
            log_to(journal, out, false).await;
            None
        }
        Err(text) => {
            journal.event(Level::Error, &text);
            Some(text)
        }
    }
}

/// Opens this file for the log, or standard output. The error is a sentence.
pub async fn open_log(file: Option<PathBuf>) -> Result<File, String> {
    let path = file.clone();
    open_by(move || Journal::opened(path.as_deref()), file).await
}

/// With a time limit: a disk that hangs would hold up this reload and each later one, also one that names a file on another disk.
async fn open_by(
    open: impl FnOnce() -> io::Result<File> + Send + 'static,
    file: Option<PathBuf>,
) -> Result<File, String> {
    LOG_OPENERS.clone().run(open).await.map_err(|error| {
        let file = file.map_or("standard output".into(), |file| file.display().to_string());
        format!("log.file: {file} cannot be opened: {error}")
    })
}

/// Further lines go to `out`. To close the file before may block.
pub async fn log_to(journal: Journal, out: File, is_stdout: bool) {
    // An error means that the runtime ends.
    let _ = spawn_blocking(move || journal.go_on_in(out, is_stdout)).await;
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::sync::oneshot;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_log_file_on_a_disk_that_hangs_holds_up_no_reload_for_ever() {
        let (begin, begun) = oneshot::channel();
        let (end, ended) = mpsc::channel::<()>();
        let open = move || {
            let _ = begin.send(());
            let _ = ended.recv();
            File::create("/dev/null")
        };
        let opening = tokio::spawn(open_by(open, Some("/mnt/log".into())));
        begun.await.unwrap();
        advance(Duration::from_secs(3600)).await;
        let why = "log.file: /mnt/log cannot be opened: the file system does not answer";
        assert_eq!(opening.await.unwrap().unwrap_err(), why);
        drop(end);
    }
}
