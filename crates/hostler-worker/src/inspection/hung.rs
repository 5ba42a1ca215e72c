//! Takes a CPU profile of a worker whose event loop hangs: through Node's inspector, which a signal opens also inside an endless loop. Knows
//! no pool.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tokio::time::{sleep, timeout};

use super::taking::{LEFT, Taking};
use crate::inspector::InspectorSession;
use crate::message::ToWorker;

/// How long Node may need to open its inspector, and to answer.
const ANSWER: Duration = Duration::from_secs(5);

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
    // While the `Runtime` domain is enabled, each exception of the app costs more.
    session.call("Runtime.disable", json!({})).await?;
    let micros = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
    session.call("Profiler.enable", json!({})).await?;
    session.call("Profiler.setSamplingInterval", json!({ "interval": micros })).await?;
    session.call("Profiler.start", json!({})).await?;
    sleep(length).await;
    let mut result = session.call("Profiler.stop", json!({})).await?;
    serde_json::to_vec(&result["profile"].take()).map_err(|error| error.to_string())
}
