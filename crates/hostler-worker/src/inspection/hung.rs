//! Takes a CPU profile of a worker whose event loop hangs: through Node's inspector, which a signal opens also inside an endless loop. Knows
//! no pool.

use std::path::Path;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use super::taking::{LEFT, Taking};
use crate::inspector::{InspectorSession, InspectorSocket};
use crate::message::ToWorker;

/// How long Node may need to open its inspector, and to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long V8 may need to make the profile from its samples.
const RESULT: Duration = Duration::from_secs(60);

const BLOCKED: &str = "its event loop has not turned for 2 s, and its inspector does not answer either: it is blocked in native code or in a \
                       system call, or it is stopped";

/// Asks the preload for a profile. Returns whether the message is on its way.
pub(super) fn ask(taking: &Taking, micros: u64, path: &Path) -> bool {
    taking.process.preload.tell(ToWorker::Profile { path: path.to_owned(), micros })
}

/// Takes a profile and passes it on. The error is a sentence for the operator.
pub(super) async fn profile(taking: Taking, length: Duration, interval: Duration) -> Result<(), String> {
    let Some(pid) = taking.process.node else { return Err(BLOCKED.into()) };
    taking
        .progress("its event loop hangs, so the profile is taken through the inspector that SIGUSR1 opens")
        .await?;
    let is_operators = taking.process.notices.is_operators();
    let opened =
        timeout(ANSWER, async { InspectorSession::open(&taking.process.notices.open(pid).await?).await });
    let taken = match opened.await.ok().flatten() {
        Some(session) => tokio::select! {
            taken = take(&taking, session, length, interval) => taken,
            () = taking.events.closed() => Err(LEFT.to_owned()),
        },
        None => Err(BLOCKED.to_owned()),
    };
    // Node closes its inspector when the event loop turns again. Until then only Hostler knows the inspector's URL.
    if !is_operators {
        taking.process.preload.tell(ToWorker::Uninspect);
    }
    taking.data(taken?).await
}

async fn take(
    taking: &Taking,
    mut session: InspectorSession,
    length: Duration,
    interval: Duration,
) -> Result<Vec<u8>, String> {
    // V8 attributes the time of a function that was optimised before the profile began to its caller. The call stack is exact, so it is reported too.
    if let Ok(Some(diagnosis)) = timeout(ANSWER, session.stack()).await {
        taking.progress(format!("it is {diagnosis}")).await?;
    }
    let mut socket = session.socket;
    // While the `Runtime` domain is enabled, each exception of the app costs more.
    call(&mut socket, 11, "Runtime.disable", json!({})).await?;
    let micros = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
    call(&mut socket, 21, "Profiler.enable", json!({})).await?;
    call(&mut socket, 22, "Profiler.setSamplingInterval", json!({ "interval": micros })).await?;
    call(&mut socket, 23, "Profiler.start", json!({})).await?;
    sleep(length).await;
    let mut result = call(&mut socket, 24, "Profiler.stop", json!({})).await?;
    // The process may not answer a Close.
    drop(socket);
    serde_json::to_vec(&result["profile"].take()).map_err(|error| error.to_string())
}

/// Calls a method of the inspector, and waits for its result.
async fn call(socket: &mut InspectorSocket, id: u32, method: &str, params: Value) -> Result<Value, String> {
    let message = json!({ "id": id, "method": method, "params": params }).to_string();
    socket.send(Message::text(message)).await.map_err(|error| format!("{method}: {error}"))?;
    let answering = async {
        while let Some(Ok(message)) = socket.next().await {
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
