//! Looks after one server for as long as the tier lives: brings it back when it answers again, and makes its log of purges and ours
//! agree. Knows no entries.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Shared;
use super::item::own_name;
use super::log::Written;
use super::server::{Failure, Op, Reply, Server};
use crate::Moment;

/// How often a server that is here is asked for purges: so long may a page that another Hostler was told to forget be served here.
const LOOKING: Duration = Duration::from_secs(1);

/// The longest pause before one that is away is asked again.
const LONGEST_AWAY: Duration = Duration::from_secs(10);

/// Who stays for so long has come to stay.
const STAYING: Duration = Duration::from_secs(30);

/// For what no request waits for.
pub(super) const UNHURRIED: Duration = Duration::from_secs(1);

/// Looks after the server, for ever.
pub(super) async fn keep<H: Send + Sync + 'static>(shared: Arc<Shared<H>>, index: usize) {
    let server = &shared.servers[index];
    let mut away = LOOKING;
    let mut came = Instant::now();
    loop {
        let was_here = server.is_here();
        match agree(&shared, index).await {
            Ok(()) => {
                if !was_here {
                    server.come();
                    came = Instant::now();
                }
                if came.elapsed() > STAYING {
                    away = LOOKING;
                }
            }
            // One that comes and goes is asked less and less often.
            Err(_) if !server.is_here() => away = (away * 2).min(LONGEST_AWAY),
            Err(_) => {}
        }
        let pause = if server.is_here() { LOOKING } else { away };
        // Elapsed or nudged: look again.
        let _ = timeout(pause, server.nudged()).await;
    }
}

/// Makes the server's log and ours the same, and memory what they say. A set that both sides add to: whatever two Hostlers
/// write at once, or a server loses, is there again the next time that somebody looks who knows it.
pub(super) async fn agree<H: Send + Sync + 'static>(
    shared: &Arc<Shared<H>>,
    index: usize,
) -> Result<(), Failure> {
    let server = &shared.servers[index];
    let namespace = &shared.settings.namespace;
    let (log_name, sum_name) = (own_name(namespace, "purges"), own_name(namespace, "purges:sum"));
    // Also what proves that it is worth asking: no slower than a request would wait for it.
    let told = get(server, &sum_name, server.patience()).await?;
    let ours = shared.log().written(server.since());
    if server.since() > Moment(0) && told.as_deref() == Some(&sum(&ours)) {
        return Ok(());
    }
    let theirs = get(server, &log_name, UNHURRIED).await?;
    let now = Moment::now();
    match theirs.as_deref().and_then(|theirs| serde_json::from_slice::<Written>(theirs).ok()) {
        Some(written) => {
            server.set_since(written.since);
            let new = shared.log().merge(&written, now);
            if !new.is_empty() {
                shared.purge_memory(new).await;
            }
        }
        // New, or emptied; or full, and the log was the one to go. Then nobody knows what it should not have any more.
        None => drop(server.set_since(now)),
    }
    let ours = shared.log().written(server.since());
    if theirs.as_deref() != Some(&ours) {
        set(server, &log_name, &ours).await?;
    }
    let sum = sum(&ours);
    if told.as_deref() != Some(&sum) {
        set(server, &sum_name, &sum).await?;
    }
    Ok(())
}

fn sum(log: &[u8]) -> Vec<u8> {
    format!("{:08x}-{}", crc32fast::hash(log), log.len()).into_bytes()
}

async fn get(server: &Server, name: &str, patience: Duration) -> Result<Option<Vec<u8>>, Failure> {
    match server.ask(Op::Get(name), patience).await? {
        Reply::Found(value) => Ok(Some(value)),
        Reply::Missing => Ok(None),
        Reply::Done | Reply::Refused => Err(Failure::Broken("it has refused a get".into())),
    }
}

async fn set(server: &Server, name: &str, value: &[u8]) -> Result<(), Failure> {
    match server.ask(Op::Set(name, value, 0), UNHURRIED).await? {
        Reply::Done => Ok(()),
        _ => Err(Failure::Broken("it has refused a set".into())),
    }
}
