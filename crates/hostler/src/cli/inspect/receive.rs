//! Reads a profile or a heap snapshot from a running Hostler, frame by frame. Does not know what the bytes mean.

use std::future::{pending, poll_fn};
use std::io;
use std::task::Poll;

use hostler_engine::proxy::{ArrivingAnswer, WholeAnswer};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::admin::{Answered, InspectionFrame};
use crate::cli::admin::{Admin, BAD_REQUEST};
use crate::cli::complain;

/// A line of the answer is short, apart from errors.
const LINE_LIMIT: usize = 64 * 1024;

/// The worker that was inspected.
pub(super) struct InspectedWorker {
    pub worker: usize,
    pub pid: u32,
}

/// Why there is no file.
pub(super) enum InspectionFailure {
    /// The arguments are wrong.
    Misused(String),
    Failed(String),
}

impl From<String> for InspectionFailure {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// Posts to `path` and passes the bytes of the file to `take`. Prints to standard error what happens. Signals end it.
pub(super) fn receive(
    admin: &Admin,
    path: &str,
    pool: &str,
    take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<InspectedWorker, InspectionFailure> {
    let read = admin.post_and_read(path, told_to_end(), async |answer| read(admin, answer, pool, take).await);
    read?.map_err(InspectionFailure::Misused)
}

/// Ctrl-C, SIGTERM, or the end of the terminal. They must not end the process at once: its file, which has no name yet, would stay.
async fn told_to_end() {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let heard = kinds.into_iter().filter(|kind| *kind != SignalKind::hangup() || !ignores_hangup());
    let signals: io::Result<Vec<Signal>> = heard.map(signal).collect();
    // Then the signals end the process.
    let Ok(mut signals) = signals else { return pending().await };
    poll_fn(|cx| {
        let has_come = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
        if has_come { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// `nohup` lets the process go on when its terminal ends.
fn ignores_hangup() -> bool {
    let about = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = about.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    // The lowest bit is signal 1, SIGHUP.
    ignored & 1 == 1
}

/// The inner error: the arguments are wrong.
async fn read(
    admin: &Admin,
    mut answer: ArrivingAnswer,
    pool: &str,
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<Result<InspectedWorker, String>, String> {
    let mut inbox = Vec::new();
    if answer.status != 200 {
        while !answer.piece(&mut inbox).await? {}
        let why = serde_json::from_slice::<Answered>(&inbox).ok().and_then(|answered| answered.error);
        let status = answer.status;
        let why = why.unwrap_or_else(|| admin.complaint(&WholeAnswer { status, body: inbox }));
        return if status == BAD_REQUEST { Ok(Err(why)) } else { Err(why) };
    }
    let mut frames = FrameReader::default();
    let mut worker = None;
    loop {
        let is_last = answer.piece(&mut inbox).await?;
        while let Some(piece) = frames.next(&mut inbox)? {
            match piece {
                Piece::Bytes(bytes) => take(&bytes)?,
                Piece::Frame(InspectionFrame::Began { worker: number, pid }) => {
                    worker = Some(InspectedWorker { worker: number, pid });
                }
                Piece::Frame(InspectionFrame::Progress(text)) => {
                    let number = worker.as_ref().map_or(0, |worker| worker.worker);
                    complain(format_args!("{pool}/{number}: {text}"));
                }
                Piece::Frame(InspectionFrame::Error(why)) => return Err(why),
                Piece::Frame(InspectionFrame::Done(_)) => {
                    return worker.map(Ok).ok_or_else(|| "the response does not name the worker".to_owned());
                }
                Piece::Frame(InspectionFrame::Data(_)) => {}
            }
        }
        if is_last {
            return Err("the response ended early, so the file is incomplete; has Hostler stopped?".into());
        }
    }
}

/// A part of the answer.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Frame(InspectionFrame),
    /// A part of the file.
    Bytes(Vec<u8>),
}

/// Finds the frames in the bytes as they arrive.
#[derive(Default)]
struct FrameReader {
    /// How many bytes of the file still follow.
    owed: usize,
}

impl FrameReader {
    /// Takes the next piece off the front of `inbox`. `None`: more must arrive first.
    fn next(&mut self, inbox: &mut Vec<u8>) -> Result<Option<Piece>, String> {
        if self.owed > 0 {
            let length = self.owed.min(inbox.len());
            self.owed -= length;
            return Ok((length > 0).then(|| Piece::Bytes(inbox.drain(..length).collect())));
        }
        let Some(end) = memchr::memchr(b'\n', inbox) else {
            return if inbox.len() > LINE_LIMIT { Err(STRANGE.into()) } else { Ok(None) };
        };
        let line: Vec<u8> = inbox.drain(..=end).collect();
        let frame = serde_json::from_slice(&line).map_err(|_| STRANGE)?;
        if let InspectionFrame::Data(length) = frame {
            self.owed = length;
        }
        Ok(Some(Piece::Frame(frame)))
    }
}

const STRANGE: &str = "unexpected response; is it another version of Hostler?";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_however_the_bytes_are_cut() {
        let all = b"{\"began\":{\"worker\":2,\"pid\":7}}\n{\"data\":5}\nab\ncd{\"done\":true}\n";
        for size in 1..all.len() {
            let (mut frames, mut inbox) = (FrameReader::default(), Vec::new());
            let (mut file, mut seen) = (Vec::new(), Vec::new());
            for piece in all.chunks(size) {
                inbox.extend_from_slice(piece);
                while let Some(piece) = frames.next(&mut inbox).unwrap() {
                    match piece {
                        Piece::Bytes(bytes) => file.extend(bytes),
                        Piece::Frame(frame) => seen.push(frame),
                    }
                }
            }
            assert_eq!(file, b"ab\ncd");
            let began = InspectionFrame::Began { worker: 2, pid: 7 };
            assert_eq!(seen, [began, InspectionFrame::Data(5), InspectionFrame::Done(true)]);
        }
        let mut other = b"<html>\n".to_vec();
        assert!(FrameReader::default().next(&mut other).is_err());
    }
}
