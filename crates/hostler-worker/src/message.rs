//! The messages between Hostler and a worker (protocol/README.md), as one line of text each. Knows no channel.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;

use super::node_figures::{GarbageCollections, HeapUse};

/// A message from a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FromWorker {
    /// The app reports that it is ready, in the way of PM2.
    Ready,
    /// The app's server listens.
    Listening(ListenClaim),
    /// The app's server does not listen any more.
    Closed { pid: u32 },
    /// The app listens for messages, so a stop can begin with `"shutdown"`.
    Hears,
    /// The process reads no more messages of this connection. Another process, such as a shell, may keep the connection open.
    Disconnects,
    /// A warning for the operator.
    Warning { text: String, unused: bool },
    /// Information for the operator.
    Note {
        text: String,
        /// It is about a server that Hostler does not use, so it may be why the worker does not get ready.
        unused: bool,
    },
    /// The event loop turns, and this is what the process has done so far. `None`: the primary of a cluster, which serves no requests.
    Report(Option<Box<Report>>),
    /// The compile cache was written.
    Flushed,
    /// Garbage was collected.
    Collected { kind: Garbage, micros: u64 },
    /// A profile or a heap snapshot begins.
    Inspecting,
    /// The heap snapshot is written. With `error`, a profile or a snapshot has failed.
    Inspected { error: Option<String> },
}

/// What a Node process has done since it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub time: LoopTime,
    pub heap: Option<HeapUse>,
    pub gc: Option<GarbageCollections>,
}

/// What an event loop has done since it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoopTime {
    /// Milliseconds at work.
    pub active: u64,
    /// Milliseconds of waiting.
    pub idle: u64,
}

/// What is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Garbage {
    /// The young generation.
    Minor,
    /// All of the heap.
    Major,
}

/// A process or thread of a worker says that its server is the app's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct ListenClaim {
    pub via: Via,
    /// The number of the claim in this worker. The last one counts.
    #[serde(default = "first")]
    pub nth: u32,
    pub pid: u32,
    /// The port that the server asked for.
    pub port: u16,
    /// In a thread of its own. Then the event loop of the requests is not that of the process.
    #[serde(default)]
    pub thread: bool,
    /// The kernel's number of that thread, if it is known.
    #[serde(default)]
    pub tid: Option<u32>,
    /// A process that may be the app itself has started this one, and nothing else says that this one is the app.
    #[serde(default)]
    pub helper: bool,
}

fn first() -> u32 {
    1
}

/// Where the app listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Via {
    /// On the descriptor that it inherited.
    Fd,
    /// On the path that the environment names, with the number of the claim at its end if it is not the first.
    Path,
}

/// The key of our own messages. Node does not pass messages whose `cmd` begins with `NODE_` to the app's listeners.
const CMD: &str = "NODE_HOSTLER";

#[derive(Deserialize)]
struct Envelope {
    cmd: String,
    #[serde(flatten)]
    act: Act,
}

#[derive(Deserialize)]
#[serde(tag = "act", rename_all = "lowercase")]
enum Act {
    Listening(ListenClaim),
    Closed {
        pid: u32,
    },
    Hears,
    Disconnects,
    Warning {
        text: String,
        #[serde(default)]
        unused: bool,
    },
    Note {
        text: String,
        #[serde(default)]
        unused: bool,
    },
    Report {
        active: Option<u64>,
        idle: Option<u64>,
        heap: Option<HeapUse>,
        gc: Option<Box<GarbageCollections>>,
    },
    Flushed,
    Collected {
        kind: Garbage,
        micros: u64,
    },
    Inspecting,
    Inspected {
        error: Option<String>,
    },
}

impl FromWorker {
    /// `None` for every other line: the app's own messages, and text that is no message.
    pub fn parse(line: &[u8]) -> Option<Self> {
        if line == b"\"ready\"" {
            return Some(Self::Ready);
        }
        let envelope: Envelope = serde_json::from_slice(line).ok()?;
        (envelope.cmd == CMD).then_some(match envelope.act {
            Act::Listening(claim) => Self::Listening(claim),
            Act::Closed { pid } => Self::Closed { pid },
            Act::Hears => Self::Hears,
            Act::Disconnects => Self::Disconnects,
            Act::Warning { text, unused } => Self::Warning { text, unused },
            Act::Note { text, unused } => Self::Note { text, unused },
            Act::Report { active, idle, heap, gc } => {
                let time = active.zip(idle).map(|(active, idle)| LoopTime { active, idle });
                Self::Report(time.map(|time| Box::new(Report { time, heap, gc: gc.map(|gc| *gc) })))
            }
            Act::Flushed => Self::Flushed,
            Act::Collected { kind, micros } => Self::Collected { kind, micros },
            Act::Inspecting => Self::Inspecting,
            Act::Inspected { error } => Self::Inspected { error },
        })
    }
}

/// A message to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToWorker {
    /// Stop, in the way of PM2.
    Shutdown,
    /// Report how the event loop is doing.
    Report,
    /// Write the compile cache now.
    Flush,
    /// Collect garbage now.
    Collect(Garbage),
    /// Another process or thread is the app: the server gets its own TCP port.
    Yield(ListenClaim),
    /// Open Node's inspector.
    Inspect,
    /// Close Node's inspector.
    Uninspect,
    /// Take a CPU profile, and write it to the socket at this path.
    Profile { path: PathBuf, micros: u64 },
    /// Write a heap snapshot to the named pipe at this path.
    Heap { path: PathBuf },
}

impl ToWorker {
    /// The line to write, with its end.
    pub fn line(&self) -> Cow<'static, [u8]> {
        let line: &'static [u8] = match self {
            Self::Shutdown => b"\"shutdown\"\n",
            Self::Report => b"{\"cmd\":\"NODE_HOSTLER\",\"act\":\"report\"}\n",
            Self::Flush => b"{\"cmd\":\"NODE_HOSTLER\",\"act\":\"flush\"}\n",
            Self::Inspect => b"{\"cmd\":\"NODE_HOSTLER\",\"act\":\"inspect\"}\n",
            Self::Collect(Garbage::Minor) => {
                b"{\"cmd\":\"NODE_HOSTLER\",\"act\":\"collect\",\"kind\":\"minor\"}\n"
            }
            Self::Collect(Garbage::Major) => {
                b"{\"cmd\":\"NODE_HOSTLER\",\"act\":\"collect\",\"kind\":\"major\"}\n"
            }
            Self::Uninspect => b"{\"cmd\":\"NODE_HOSTLER\",\"act\":\"uninspect\"}\n",
            Self::Yield(ListenClaim { nth, pid, port, .. }) => {
                let line = json!({ "cmd": CMD, "act": "yield", "nth": nth, "pid": pid, "port": port });
                return Cow::Owned(format!("{line}\n").into_bytes());
            }
            Self::Profile { path, micros } => {
                let line = json!({ "cmd": CMD, "act": "profile", "path": path, "micros": micros });
                return Cow::Owned(format!("{line}\n").into_bytes());
            }
            Self::Heap { path } => {
                let line = json!({ "cmd": CMD, "act": "heap", "path": path });
                return Cow::Owned(format!("{line}\n").into_bytes());
            }
        };
        Cow::Borrowed(line)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::node_figures::CollectionTimes;

    const CLAIM: ListenClaim =
        ListenClaim { via: Via::Fd, nth: 1, pid: 4711, port: 3000, thread: false, tid: None, helper: false };

    fn examples(side: &str) -> serde_json::Map<String, Value> {
        let text = include_str!("../../../protocol/messages.json");
        let mut all: Value = serde_json::from_str(text).unwrap();
        match all[side].take() {
            Value::Object(examples) => examples,
            other => panic!("{side} is {other}"),
        }
    }

    #[test]
    fn every_example_of_the_protocol_is_parsed() {
        let examples = examples("to_hostler");
        for (name, message) in &examples {
            let expected = match name.as_str() {
                "ready" => Some(FromWorker::Ready),
                "listening_fd" => Some(FromWorker::Listening(CLAIM)),
                "listening_path" => Some(FromWorker::Listening(ListenClaim {
                    via: Via::Path,
                    pid: 4712,
                    helper: true,
                    ..CLAIM
                })),
                "listening_later" => Some(FromWorker::Listening(ListenClaim {
                    via: Via::Path,
                    nth: 2,
                    pid: 4713,
                    thread: true,
                    tid: Some(4720),
                    ..CLAIM
                })),
                "closed" => Some(FromWorker::Closed { pid: 4711 }),
                "hears" => Some(FromWorker::Hears),
                "disconnects" => Some(FromWorker::Disconnects),
                "warning" => Some(FromWorker::Warning {
                    text: message["text"].as_str().expect("a warning has a text").to_owned(),
                    unused: true,
                }),
                "note" => Some(FromWorker::Note {
                    text: "the app listens on 127.0.0.1:9100".to_owned(),
                    unused: false,
                }),
                "report" => Some(FromWorker::Report(Some(Box::new(Report {
                    time: LoopTime { active: 5120, idle: 94_880 },
                    heap: Some(HeapUse { used: 10_485_760, limit: 2_197_815_296 }),
                    gc: Some(GarbageCollections {
                        minor: CollectionTimes { counts: [40, 1, 0, 0, 0], micros: 61_000 },
                        ..GarbageCollections::default()
                    }),
                })))),
                "report_of_a_cluster" => Some(FromWorker::Report(None)),
                "flushed" => Some(FromWorker::Flushed),
                "collected" => Some(FromWorker::Collected { kind: Garbage::Minor, micros: 1850 }),
                "inspecting" => Some(FromWorker::Inspecting),
                "inspected" => Some(FromWorker::Inspected { error: None }),
                "inspected_badly" => {
                    Some(FromWorker::Inspected { error: Some("EPIPE: broken pipe".to_owned()) })
                }
                "the_apps_own" => None,
                other => panic!("the contract has an example that is new here: {other}"),
            };
            assert_eq!(FromWorker::parse(message.to_string().as_bytes()), expected, "{name}");
        }
        assert_eq!(examples.len(), 17);
    }

    #[test]
    fn every_message_that_hostler_sends_is_in_the_protocol() {
        let examples = examples("to_worker");
        let all = [
            ("shutdown", ToWorker::Shutdown),
            ("report", ToWorker::Report),
            ("flush", ToWorker::Flush),
            ("collect_minor", ToWorker::Collect(Garbage::Minor)),
            ("collect_major", ToWorker::Collect(Garbage::Major)),
            ("yield", ToWorker::Yield(ListenClaim { nth: 2, ..CLAIM })),
            ("inspect", ToWorker::Inspect),
            ("uninspect", ToWorker::Uninspect),
            ("profile", ToWorker::Profile { path: "/run/hostler/web-1-9.cpu".into(), micros: 1000 }),
            ("heap", ToWorker::Heap { path: "/run/hostler/web-1-9.heap".into() }),
        ];
        for (name, message) in &all {
            assert!(message.line().ends_with(b"\n"));
            let said: Value = serde_json::from_slice(&message.line()).unwrap();
            assert_eq!(examples[*name], said);
        }
        assert_eq!(examples.len(), all.len());
    }

    #[test]
    fn the_apps_own_messages_and_garbage_are_ignored() {
        let others: [&[u8]; 9] = [
            b"",
            b"{",
            b"\xff\xfe",
            b"null",
            b"\"shutdown\"",
            b"{\"cmd\":\"NODE_HANDLE\"}",
            b"{\"cmd\":\"NODE_HOSTLER\",\"act\":\"dance\"}",
            b"{\"cmd\":\"other\",\"act\":\"hears\"}",
            b"{\"cmd\":\"NODE_HOSTLER\",\"act\":\"listening\",\"via\":\"pigeon\",\"pid\":1}",
        ];
        for line in others {
            assert_eq!(FromWorker::parse(line), None, "{}", String::from_utf8_lossy(line));
        }
    }
}
