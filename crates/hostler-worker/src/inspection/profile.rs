//! Takes a CPU profile of a worker: through an inspector session inside its process or, if its event loop hangs, through the inspector that a signal
//! opens. Knows no pool.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

use super::hung;
use super::taking::{LEFT, PreloadReply, Taking, piece};

/// An event loop that has not turned for this long counts as hung.
const ANSWER: Duration = Duration::from_secs(2);
/// How long a process whose event loop turns may need to connect and to begin.
const START: Duration = Duration::from_secs(10);
/// How long a process may need to end the profile. It cannot while its event loop does not turn.
const RESULT: Duration = Duration::from_secs(15);

/// Takes a profile and passes it on. The error is a sentence for the operator.
pub(crate) async fn profile(mut taking: Taking, length: Duration, interval: Duration) -> Result<(), String> {
    let path = taking.path("cpu");
    let listener = UnixListener::bind(path.get())
        .map_err(|error| format!("cannot create a socket for the profile: {error}"))?;
    let micros = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
    if !hung::ask(&taking, micros, path.get()) {
        return Err(taking.unasked().into());
    }
    match taking.reply(ANSWER).await {
        Some(PreloadReply::Begins) => {}
        Some(PreloadReply::Ended(error)) => return Err(error.unwrap_or_default()),
        None => {
            drop((listener, path));
            return hung::profile(taking, length, interval).await;
        }
    }
    let stream = begun(&mut taking, &listener).await?;
    drop(path);
    let (reading, mut writing) = stream.into_split();
    let mut reading = BufReader::new(reading);
    let mut first = String::new();
    let said = timeout(START, reading.read_line(&mut first)).await;
    match (said, first.trim_end()) {
        (Ok(Ok(_)), "began") => {}
        (Err(_), _) => return Err(format!("the profile has not begun within {} s", START.as_secs())),
        (_, text) => {
            return Err(format!("Node cannot take a profile: {}", text.trim_start_matches("failed: ")));
        }
    }
    taking.progress(format!("profiling for {} s", length.as_secs_f64())).await?;
    tokio::select! {
        () = sleep(length) => {}
        () = taking.events.closed() => return Err(LEFT.into()),
    }
    // The end of our half ends the profile.
    writing.shutdown().await.map_err(|error| error.to_string())?;
    pass_on(&taking, &mut reading).await
}

/// Passes on the profile. It is JSON in one line, so a line feed is its end. Without one, the process has died while it wrote.
async fn pass_on(taking: &Taking, reading: &mut (impl AsyncRead + Unpin)) -> Result<(), String> {
    let mut last = None;
    loop {
        // Without the time in which the reader takes it: a slow reader is no worker that hangs.
        match timeout(RESULT, piece(reading)).await {
            Ok(Ok(bytes)) if bytes.is_empty() => {
                return match last {
                    Some(b'\n') => Ok(()),
                    Some(_) => Err("the worker has ended in the middle of its profile".into()),
                    None => Err("the worker has ended without its profile".into()),
                };
            }
            Ok(Ok(bytes)) => {
                last = bytes.last().copied();
                taking.data(bytes).await?;
            }
            Ok(Err(why)) => return Err(why),
            Err(_) => {
                return Err(format!(
                    "its event loop has not turned for {} s since the end of the profile: it hangs now. Take a profile again; that one shows \
                     where it hangs",
                    RESULT.as_secs()
                ));
            }
        }
    }
}

/// Waits for the connection of the process.
async fn begun(taking: &mut Taking, listener: &UnixListener) -> Result<UnixStream, String> {
    tokio::select! {
        accepted = listener.accept() => accepted.map(|(stream, _)| stream).map_err(|error| error.to_string()),
        Some(PreloadReply::Ended(error)) = taking.process.replies.recv() => {
            Err(format!("Node cannot take a profile: {}", error.unwrap_or_default()))
        }
        () = taking.events.closed() => Err(LEFT.into()),
        () = sleep(START) => Err(format!("the profile has not begun within {} s", START.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::sync::mpsc;

    use super::super::{Inspectable, InspectionEvent};
    use super::*;
    use crate::inspector::Notices;
    use crate::message::ToWorker;
    use crate::message_sender::MessageSender;

    /// The result, if the process writes this after the profile and closes the connection.
    async fn profile_of(text: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let (preload, mut told) = mpsc::channel(1);
        let (replies, received) = mpsc::channel(1);
        let (events, mut shown) = mpsc::channel(4);
        let process = Inspectable {
            pid: std::process::id(),
            preload: MessageSender(preload),
            replies: received,
            node: None,
            notices: Notices::default(),
            place: folder.path().join("app"),
        };
        replies.send(PreloadReply::Begins).await.unwrap();
        let taking = Taking { process, events };
        let taken = tokio::spawn(profile(taking, Duration::ZERO, Duration::from_millis(1)));
        let Some(ToWorker::Profile { path, .. }) = told.recv().await else {
            panic!("it is asked for a profile")
        };
        let mut stream = UnixStream::connect(path).await.unwrap();
        stream.write_all(b"began\n").await.unwrap();
        stream.read_to_end(&mut vec![]).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        drop(stream);
        let taken = taken.await.unwrap();
        assert!(matches!(shown.recv().await, Some(InspectionEvent::Progress(_))));
        taken
    }

    #[tokio::test]
    async fn a_process_that_dies_while_it_writes_has_no_profile() {
        assert_eq!(profile_of("{\"nodes\":[{},{}]}\n").await, Ok(()));
        let half = profile_of("{\"nodes\":[{}").await;
        assert_eq!(half, Err("the worker has ended in the middle of its profile".into()));
        assert_eq!(profile_of("").await, Err("the worker has ended without its profile".into()));
    }
}
