//! Takes a heap snapshot of a worker that has no requests: Node writes it into a named pipe, and Hostler passes it on. Knows no pool.

use std::path::Path;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::taking::{PreloadReply, Taking};
use crate::message::ToWorker;

/// An event loop without requests that has not turned for this long hangs.
const ANSWER: Duration = Duration::from_secs(5);
/// How long to wait for the end of a snapshot that is not wanted any more. Until then the worker cannot serve.
const END: Duration = Duration::from_secs(300);

/// Takes a snapshot and passes it on, as soon as the worker's requests have `ended`. The error is a sentence for the operator.
pub(crate) async fn heap(
    mut taking: Taking,
    wait: Duration,
    ended: oneshot::Receiver<()>,
) -> Result<(), String> {
    taking.progress("out of rotation; waiting for its requests").await?;
    let finished = tokio::select! {
        finished = timeout(wait, ended) => finished,
        () = taking.events.closed() => return Err(super::taking::LEFT.into()),
    };
    match finished {
        Ok(Ok(())) => {}
        Ok(Err(_)) => return Err("the worker is being stopped".into()),
        Err(_) => {
            return Err(format!(
                "its requests have not ended within {} s; a longer time: --wait",
                wait.as_secs_f64()
            ));
        }
    }
    let path = taking.path("heap");
    make_pipe(path.get()).await.map_err(|error| format!("no pipe for the snapshot: {error}"))?;
    let mut pipe = pipe::OpenOptions::new()
        .open_receiver(path.get())
        .map_err(|error| format!("no pipe for the snapshot: {error}"))?;
    if !taking.process.preload.tell(ToWorker::Heap { path: path.get().to_owned() }) {
        return Err(taking.unasked().into());
    }
    match taking.reply(ANSWER).await {
        Some(PreloadReply::Begins) => {}
        Some(PreloadReply::Ended(error)) => return Err(error.unwrap_or_default()),
        None => {
            return Err(format!(
                "its event loop has not turned for {} s; a profile shows what it does",
                ANSWER.as_secs()
            ));
        }
    }
    let passed = pass_all(&mut taking, &mut pipe).await;
    // Node's next write fails, and it gives up.
    drop((pipe, path));
    match passed {
        Ok(Some(PreloadReply::Ended(error))) => error.map_or(Ok(()), |error| Err(format!("Node: {error}"))),
        Ok(_) => match taking.reply(END).await {
            Some(PreloadReply::Ended(None)) => Ok(()),
            Some(PreloadReply::Ended(Some(error))) => Err(format!("Node: {error}")),
            _ => Err("Node has not said that the snapshot is complete".into()),
        },
        Err(why) => {
            taking.reply(END).await;
            Err(why)
        }
    }
}

/// Passes on all of the pipe. Returns the preload's reply, if it came before the end of the pipe.
async fn pass_all(taking: &mut Taking, pipe: &mut pipe::Receiver) -> Result<Option<PreloadReply>, String> {
    taking.progress("taking the snapshot; the worker stands still").await?;
    let mut reply = None;
    loop {
        // Node makes the whole snapshot in memory before it opens the pipe. If it cannot open it, the reply is all that comes.
        tokio::select! {
            biased;
            ready = pipe.readable() => ready.map_err(|error| error.to_string())?,
            Some(said) = taking.process.replies.recv(), if reply.is_none() => {
                let failed = matches!(said, PreloadReply::Ended(Some(_)));
                reply = Some(said);
                if failed {
                    return Ok(reply);
                }
                continue;
            }
            () = taking.events.closed() => return Err(super::taking::LEFT.into()),
        }
        if taking.pass(pipe).await? == 0 {
            return Ok(reply);
        }
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
