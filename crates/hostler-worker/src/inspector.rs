//! Asks a Node process through its inspector where it is stuck. Knows nothing of requests and pools.
//!
//! ```text
//! SIGUSR1 -> Node opens its inspector, also inside an endless loop, and prints the address -> WebSocket: throw -> call frames
//! ```
//!
//! It does not use `Debugger.pause`. At a pause V8 also reads the variables of each call, and in some functions (with a `switch` or a
//! `for...of`) this ends the process: "Check failed: needs_context" (nodejs/node#58632). An expression that throws has the same call
//! frames, and the process goes on.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use memchr::memmem::Finder;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// The limit for the whole procedure. Node needs about 60 ms, most of it to open its inspector, and longer if all CPUs are busy.
pub(super) const LIMIT: Duration = Duration::from_millis(1500);
/// An inspector that the operator has opened before prints nothing new at the signal.
const OPENING: Duration = Duration::from_millis(400);
/// How long the process may need for the result of one call: V8 makes a profile from its samples.
const RESULT: Duration = Duration::from_secs(60);
const FRAMES: usize = 8;
/// The most characters of a function's name, and of a file's name.
const NAME_LIMIT: usize = 200;
/// The console's old messages come first and may be large, and a profile has all its samples.
const MESSAGE_LIMIT: usize = 128 * 1024 * 1024;
/// A line longer than this belongs to a bundle, so its number is of no use and is left out.
const LONG_LINE: u32 = 400;

/// The result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Diagnosis {
    /// The process runs JavaScript. The innermost call is first, each as "function (file:line)".
    Running(Vec<String>),
    /// The event loop turns, or would turn if it had work.
    Waiting,
    /// Node did not react to the signal in time: it is blocked in native code or in a system call.
    Blocked,
    /// The process could not be asked.
    Unasked,
}

impl Diagnosis {
    pub fn frames(&self) -> Option<&[String]> {
        if let Self::Running(frames) = self { Some(frames) } else { None }
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running(frames) => write!(f, "in {}", frames.join(", ")),
            Self::Waiting => f.write_str("waiting, not running JavaScript"),
            Self::Blocked => f.write_str("blocked outside JavaScript (its inspector does not answer)"),
            Self::Unasked => f.write_str("stuck at an unknown place"),
        }
    }
}

/// Made once: each line of each worker is searched.
static LISTENING_NOTICE: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new("Debugger listening on ws://"));

/// The messages of Node about its inspector, found in the app's output.
#[derive(Clone, Default)]
pub(super) struct Notices(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The address comes from the process itself and may be wrong, so only loopback addresses are used.
    address: watch::Sender<Option<String>>,
    /// After our signal, messages about the inspector are not part of the app's output.
    hides_notices: AtomicBool,
    /// The last connection has ended. Node prints one more line about it.
    is_closing: AtomicBool,
    /// Hostler was the first to open it.
    opened_by_us: AtomicBool,
}

impl Notices {
    /// Reads a line that the worker printed. Returns the part that belongs to the app's output.
    pub fn keep_app_output(&self, mut line: String) -> Option<String> {
        // The app may have printed the beginning of the line.
        if let Some(at) = LISTENING_NOTICE.find(line.as_bytes()) {
            let address = line[at..].trim_start_matches("Debugger listening on ").trim_end().to_owned();
            self.0.address.send_replace(Some(address));
            if self.hides_notices() {
                line.truncate(at);
                return (!line.is_empty()).then_some(line);
            }
        }
        let is_notice = line == "Debugger attached."
            || line.starts_with("For help, see: https://nodejs.org/")
            // Node may print this after we disconnect and before the SIGKILL.
            || line.starts_with("Debugger ending on ws://");
        let is_hidden = is_notice && self.hides_notices();
        if line.starts_with("Debugger ending on ws://") {
            self.0.is_closing.store(true, Ordering::Relaxed);
        } else if line.starts_with("For help, see: ") && self.0.is_closing.swap(false, Ordering::Relaxed) {
            // If it opens again, the operator may have opened it.
            self.0.hides_notices.store(false, Ordering::Relaxed);
        }
        (!is_hidden).then_some(line)
    }

    /// Whether the inspector was opened by another program, before Hostler asked for it.
    pub fn is_operators(&self) -> bool {
        self.0.address.borrow().is_some() && !self.0.opened_by_us.load(Ordering::Relaxed)
    }

    /// Opens the inspector of this process by a signal, if it is not open. The process must be Node, as the signal ends other programs.
    pub async fn open(&self, pid: u32) -> Option<String> {
        let pid = Pid::from_raw(pid.cast_signed())?;
        if self.0.address.borrow().is_none() {
            self.0.opened_by_us.store(true, Ordering::Relaxed);
        }
        // A process that is gone does not answer either.
        self.address(|| _ = kill_process(pid, Signal::USR1)).await
    }

    fn hides_notices(&self) -> bool {
        self.0.hides_notices.load(Ordering::Relaxed)
    }

    /// The address of the inspector: one printed from now on, or else one printed before.
    async fn address(&self, opening: impl FnOnce()) -> Option<String> {
        let mut watched = self.0.address.subscribe();
        let before = watched.borrow_and_update().clone();
        self.0.hides_notices.store(true, Ordering::Relaxed);
        opening();
        let limit = Instant::now() + if before.is_some() { OPENING } else { LIMIT };
        match timeout_at(limit, watched.changed()).await {
            Ok(Ok(())) => watched.borrow().clone(),
            _ => before,
        }
    }
}

/// Finds out where a process is stuck. The process must be Node, as the signal ends other programs. Takes at most
/// [`LIMIT`].
pub(super) async fn diagnose(pid: u32, notices: Notices) -> Diagnosis {
    let limit = Instant::now() + LIMIT;
    let asking = async {
        let address = notices.open(pid).await?;
        InspectorSession::open(&address).await?.stack().await
    };
    timeout_at(limit, asking).await.ok().flatten().unwrap_or(Diagnosis::Blocked)
}

/// A connection to an inspector.
type InspectorSocket = WebSocketStream<TcpStream>;

/// Connects to the inspector. `None` if the address is not an inspector on loopback.
async fn connect(address: &str) -> Option<InspectorSocket> {
    let authority = address.strip_prefix("ws://")?.split('/').next()?;
    let authority: SocketAddr = authority.parse().ok().filter(|at: &SocketAddr| at.ip().is_loopback())?;
    let stream = TcpStream::connect(authority).await.ok()?;
    let config =
        WebSocketConfig::default().max_message_size(Some(MESSAGE_LIMIT)).max_frame_size(Some(MESSAGE_LIMIT));
    let (socket, _) = client_async_with_config(address, stream, Some(config)).await.ok()?;
    Some(socket)
}

pub(super) struct InspectorSession {
    socket: InspectorSocket,
    /// The number of calls so far, and of the last one.
    calls: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallFrame {
    function_name: String,
    url: String,
    line_number: u32,
    #[serde(default)]
    column_number: u32,
}

impl InspectorSession {
    pub async fn open(address: &str) -> Option<Self> {
        Some(Self { socket: connect(address).await?, calls: 0 })
    }

    /// Asks for the calls that the process is in now. The process goes on.
    pub async fn stack(&mut self) -> Option<Diagnosis> {
        // Without this V8 keeps no call frames of an exception.
        self.call("Runtime.enable", json!({})).await.ok()?;
        // A number has no `stack`, so no code of the app (`Error.prepareStackTrace`) runs.
        let throwing = json!({ "expression": "throw 0", "silent": true });
        let mut result = self.call("Runtime.evaluate", throwing).await.ok()?;
        let frames = result["exceptionDetails"]["stackTrace"]["callFrames"].take();
        let frames: Vec<CallFrame> = serde_json::from_value(frames).unwrap_or_default();
        // The first is the expression itself.
        Some(judge(frames.get(1..).unwrap_or_default()))
    }

    /// Calls a method of the inspector, and waits for its result. The error is a sentence for the operator.
    pub async fn call(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.calls += 1;
        let id = self.calls;
        let message = json!({ "id": id, "method": method, "params": params }).to_string();
        self.socket.send(Message::text(message)).await.map_err(|error| format!("{method}: {error}"))?;
        let answering = async {
            while let Some(Ok(message)) = self.socket.next().await {
                let Message::Text(text) = message else { continue };
                let mut said: Value = serde_json::from_str(&text).unwrap_or_default();
                if said["id"] == id {
                    return match said["error"]["message"].as_str() {
                        Some(error) => Err(format!("{method}: {error}")),
                        None => Ok(said["result"].take()),
                    };
                }
            }
            Err(format!("{method}: the inspector has closed the connection"))
        };
        timeout(RESULT, answering)
            .await
            .unwrap_or_else(|_| Err(format!("{method}: no answer within {} s", RESULT.as_secs())))
    }
}

/// Frames of Node itself come last and are the same in every app. If there are no others, the process waits, or Node
/// itself works. Those of the preload script are left out: it only does what it was asked for.
fn judge(frames: &[CallFrame]) -> Diagnosis {
    let (nodes, apps): (Vec<&CallFrame>, Vec<&CallFrame>) = frames
        .iter()
        .filter(|frame| !is_preload(&frame.url))
        .partition(|frame| frame.url.starts_with("node:"));
    if apps.is_empty() {
        return Diagnosis::Waiting;
    }
    Diagnosis::Running(apps.into_iter().chain(nodes).take(FRAMES).map(CallFrame::describe).collect())
}

/// Whether this is the preload script, which lies in a folder `hostler-` and six letters.
fn is_preload(file: &str) -> bool {
    let folder = file.strip_suffix("/preload.cjs").and_then(|path| path.rsplit('/').next());
    folder.is_some_and(|folder| folder.starts_with("hostler-"))
}

impl CallFrame {
    fn describe(&self) -> String {
        let url = &*self.url;
        let name = if self.function_name.is_empty() { "(anonymous)" } else { &self.function_name };
        let file = match url.strip_prefix("file://") {
            Some(path) => path.replace("%20", " "),
            None if url.is_empty() => "(eval)".to_owned(),
            None => url.to_owned(),
        };
        let (name, file) = (in_one_line(name), in_one_line(&file));
        let line = self.line_number.saturating_add(1);
        match self.column_number {
            LONG_LINE.. => format!("{name} ({file}:{line}:{})", self.column_number.saturating_add(1)),
            _ => format!("{name} ({file}:{line})"),
        }
    }
}

/// The app chooses these names: a function may have any name, and the URL of a module may be its whole source.
fn in_one_line(name: &str) -> String {
    name.chars().take(NAME_LIMIT).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    const LISTENING: &str = "Debugger listening on ws://127.0.0.1:38969/a8815c9f";
    const HELP: &str = "For help, see: https://nodejs.org/en/docs/inspector";

    #[test]
    fn output_about_the_inspector_that_hostler_opened_is_not_logged_as_the_apps() {
        let notices = Notices::default();
        notices.0.hides_notices.store(true, Ordering::Relaxed);
        let cases = [
            (LISTENING, None),
            (HELP, None),
            ("Debugger attached.", None),
            ("Debugger ending on ws://127.0.0.1:38969/a8815c9f", None),
            ("50 %... Debugger listening on ws://127.0.0.1:1/a", Some("50 %... ")),
            ("the app's own", Some("the app's own")),
            ("", Some("")),
        ];
        for (line, kept) in cases {
            assert_eq!(notices.keep_app_output(line.to_owned()).as_deref(), kept, "{line}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_operators_own_inspector_is_found_and_what_it_prints_is_passed_on() {
        let notices = Notices::default();
        for line in [LISTENING, HELP, "Debugger attached."] {
            assert_eq!(notices.keep_app_output(line.to_owned()).as_deref(), Some(line));
        }
        assert_eq!(notices.address(|| ()).await.as_deref(), Some("ws://127.0.0.1:38969/a8815c9f"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_inspector_that_opens_now_counts_more_than_one_that_was_open_before() {
        let notices = Notices::default();
        notices.keep_app_output(LISTENING.to_owned());
        let opens = || _ = notices.keep_app_output("Debugger listening on ws://127.0.0.1:2/b".to_owned());
        assert_eq!(notices.address(opens).await.as_deref(), Some("ws://127.0.0.1:2/b"));
    }

    #[tokio::test(start_paused = true)]
    async fn only_loopback_addresses_are_asked() {
        // It answers nothing, so a client that asks it waits.
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = async |address: &str| timeout(LIMIT, InspectorSession::open(address)).await;
        for address in [
            &*format!("ws://0.0.0.0:{port}/a"),
            &format!("ws://localhost:{port}/a"),
            &format!("http://127.0.0.1:{port}/a"),
            "ws://10.0.0.1:80/a",
            "ws://",
        ] {
            assert!(matches!(asked(address).await, Ok(None)), "{address}");
        }
        assert!(asked(&format!("ws://127.0.0.1:{port}/a")).await.is_err(), "it waits for the answer");
    }

    #[test]
    fn stack_frames_of_the_app_come_first_and_their_number_is_limited() {
        let app = "file:///a%20b/app.js";
        let mut frames =
            vec![frame("readSync", "node:events", 4, 1), frame("spin", app, 11, 3), frame("", "", 0, 0)];
        frames.extend((0..9).map(|line| frame("packed", app, line, LONG_LINE)));
        let Diagnosis::Running(told) = judge(&frames) else { panic!("it runs") };
        assert_eq!(
            told[..3],
            ["spin (/a b/app.js:12)", "(anonymous) ((eval):1)", "packed (/a b/app.js:1:401)"]
        );
        assert_eq!(told.len(), FRAMES);

        let told = judge(&[frame("emit", "node:events", 1, 1), frame("f", app, 1, 1)]).to_string();
        assert_eq!(told, "in f (/a b/app.js:2), emit (node:events:2)");
    }

    #[test]
    fn the_preload_script_is_not_in_the_stack() {
        let (own, preload) = ("file:///a/preload.cjs", "file:///run/hostler-x3Fa9b/preload.cjs");
        let told = judge(&[frame("obey", preload, 1, 1), frame("f", own, 1, 1)]).to_string();
        assert_eq!(told, "in f (/a/preload.cjs:2)");
    }

    #[test]
    fn a_function_name_of_the_app_cannot_break_the_line_or_its_length() {
        let source = format!("data:text/javascript,{}", "x".repeat(100_000));
        let told = judge(&[frame("a\nb\u{1b}[2J", &source, u32::MAX, u32::MAX)]).to_string();
        assert!(told.starts_with("in a b [2J (data:") && told.len() < 300, "{told}");
    }

    #[test]
    fn a_stack_with_only_frames_of_node_means_waiting() {
        assert_eq!(judge(&[frame("listOnTimeout", "node:internal/timers", 1, 1)]), Diagnosis::Waiting);
        assert_eq!(judge(&[]), Diagnosis::Waiting);
    }

    fn frame(function: &str, url: &str, line: u32, column: u32) -> CallFrame {
        CallFrame {
            function_name: function.into(),
            url: url.into(),
            line_number: line,
            column_number: column,
        }
    }
}
