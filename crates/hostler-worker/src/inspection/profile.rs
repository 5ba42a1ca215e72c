//! Takes a CPU profile of a worker: through an inspector session inside its process or, if its event loop hangs, through the inspector that a signal
//! opens. Knows no pool.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
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
    let listener =
        UnixListener::bind(path.get()).map_err(|error| format!("no socket for the profile: {error}"))?;
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
    let mut all = 0;
    loop {
        // Without the time in which the reader takes it: a slow reader is no worker that hangs.
        match timeout(RESULT, piece(&mut reading)).await {
            Ok(Ok(bytes)) if bytes.is_empty() && all == 0 => {
                return Err("the worker has ended without its profile".into());
            }
            Ok(Ok(bytes)) if bytes.is_empty() => return Ok(()),
            Ok(Ok(bytes)) => {
                all += bytes.len();
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
