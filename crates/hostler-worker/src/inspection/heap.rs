//! Takes a heap snapshot of a worker that has no requests: Node writes it into a named pipe, and Hostler passes it on. Knows no pool.

use std::path::Path;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::taking::{LEFT, NotTaken, PreloadReply, Taking, piece, stands_still};
use crate::message::ToWorker;

/// An event loop without requests that has not turned for this long hangs.
const ANSWER: Duration = Duration::from_secs(5);
/// How long to wait for the end of a snapshot that is not wanted any more. Until then the worker cannot serve.
const END: Duration = Duration::from_secs(300);

const STANDS_STILL: &str = "its process neither writes nor computes any more: it is stopped, or stuck in the kernel. Hostler replaces it";

/// Takes a snapshot and passes it on, as soon as the worker's requests have `ended`.
pub(crate) async fn heap(
    mut taking: Taking,
    wait: Duration,
    ended: oneshot::Receiver<()>,
) -> Result<(), NotTaken> {
    taking.progress("out of rotation; waiting for its requests").await?;
    let finished = tokio::select! {
        finished = timeout(wait, ended) => finished,
        () = taking.events.closed() => return Err(LEFT.into()),
    };
    match finished {
        Ok(Ok(())) => {}
        Ok(Err(_)) => return Err("the worker is being stopped".into()),
        Err(_) => {
            return Err(format!(
                "its requests have not ended within {} s; a longer time: --wait",
                wait.as_secs_f64()
            )
            .into());
        }
    }
    let path = taking.path("heap");
    make_pipe(path.get()).await.map_err(|error| format!("cannot create a pipe for the snapshot: {error}"))?;
    let mut pipe = pipe::OpenOptions::new()
        .open_receiver(path.get())
        .map_err(|error| format!("cannot create a pipe for the snapshot: {error}"))?;
    if !taking.process.preload.tell(ToWorker::Heap { path: path.get().to_owned() }) {
        return Err(taking.unasked().into());
    }
    match taking.reply(ANSWER).await {
        Some(PreloadReply::Begins) => {}
        Some(PreloadReply::Ended(error)) => return Err(error.unwrap_or_default().into()),
        None => {
            return Err(format!(
                "its event loop has not turned for {} s; a profile shows what it does",
                ANSWER.as_secs()
            )
            .into());
        }
    }
    let passed = pass_all(&mut taking, &mut pipe).await;
    // Node's next write fails, and it gives up.
    drop((pipe, path));
    match passed {
        Ok(Some(PreloadReply::Ended(error))) => {
            error.map_or(Ok(()), |error| Err(format!("Node: {error}").into()))
        }
        Ok(_) => match taking.reply(END).await {
            Some(PreloadReply::Ended(None)) => Ok(()),
            Some(PreloadReply::Ended(Some(error))) => Err(format!("Node: {error}").into()),
            _ => Err("Node has not said that the snapshot is complete".into()),
        },
        Err(failure) if failure.stands_still => Err(failure),
        Err(NotTaken { why, .. }) => Err(NotTaken { why, stands_still: !gives_up(&mut taking).await }),
    }
}

/// Waits until the process has given up a snapshot that is not wanted any more. False: it never will.
async fn gives_up(taking: &mut Taking) -> bool {
    let pid = taking.process.pid;
    tokio::select! {
        _ = taking.reply(END) => true,
        // A process that has closed its channel cannot report it. If it computes no more, it has given up and waits for requests.
        () = stands_still(pid) => !taking.process.preload.is_open(),
    }
}

/// Passes on all of the pipe. Returns the preload's reply, if it came before the end of the pipe.
async fn pass_all(taking: &mut Taking, pipe: &mut pipe::Receiver) -> Result<Option<PreloadReply>, NotTaken> {
    taking.progress("taking the snapshot; the worker serves nothing until it is complete").await?;
    let mut reply = None;
    loop {
        // Node makes the whole snapshot in memory before it opens the pipe, which may take minutes. If it cannot open it, the reply is all that
        // comes.
        let bytes = tokio::select! {
            biased;
            bytes = piece(pipe) => bytes?,
            Some(said) = taking.process.replies.recv(), if reply.is_none() => {
                let failed = matches!(said, PreloadReply::Ended(Some(_)));
                reply = Some(said);
                if failed {
                    return Ok(reply);
                }
                continue;
            }
            () = taking.events.closed() => return Err(LEFT.into()),
            () = stands_still(taking.process.pid) => {
                return Err(NotTaken { why: STANDS_STILL.into(), stands_still: true });
            }
        };
        if bytes.is_empty() {
            return Ok(reply);
        }
        taking.data(bytes).await?;
    }
}

/// A named pipe that only this user can open.
#[cfg(any(target_os = "linux", target_os = "android"))]
async fn make_pipe(path: &Path) -> std::io::Result<()> {
    use rustix::fs::{CWD, Mode, mkfifoat};
    Ok(mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR)?)
}

/// The same by the program `mkfifo`: rustix has no such call for macOS.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
async fn make_pipe(path: &Path) -> std::io::Result<()> {
    let done = tokio::process::Command::new("mkfifo").args(["-m", "600"]).arg(path).status().await?;
    if done.success() { Ok(()) } else { Err(std::io::Error::other(format!("mkfifo: {done}"))) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::Command;

    use tokio::sync::mpsc;

    use super::super::{Inspectable, InspectionEvent};
    use super::*;
    use crate::inspector::Notices;
    use crate::message_sender::MessageSender;

    #[tokio::test(start_paused = true)]
    async fn a_snapshot_whose_process_stops_in_the_middle_ends() {
        // It does not compute, as one that was stopped.
        let mut process = Command::new("sleep").arg("1000").spawn().unwrap();
        let place = std::env::temp_dir().join(format!("hostler-heap-{}", process.id()));
        let (preload, mut told) = mpsc::channel(1);
        let (replies, received) = mpsc::channel(4);
        let (events, mut shown) = mpsc::channel(4);
        let taking = Taking {
            process: Inspectable {
                pid: process.id(),
                preload: MessageSender(preload),
                replies: received,
                node: None,
                notices: Notices::default(),
                place,
            },
            events,
        };
        let (finished, ended) = oneshot::channel();
        finished.send(()).unwrap();
        replies.send(PreloadReply::Begins).await.unwrap();
        let snapshot = tokio::spawn(heap(taking, Duration::from_secs(30), ended));
        let Some(ToWorker::Heap { path }) = told.recv().await else { panic!("it is asked for a snapshot") };
        let mut pipe = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        pipe.write_all(b"{\"snapshot\":").unwrap();
        let failure = snapshot.await.unwrap().unwrap_err();
        assert!(failure.stands_still && failure.why == STANDS_STILL, "{failure:?}");
        assert!(matches!(shown.recv().await, Some(InspectionEvent::Progress(_))));
        process.kill().unwrap();
        process.wait().unwrap();
    }
}
