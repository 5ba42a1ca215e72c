//! Looks after one server for as long as the tier lives: brings it back when it answers again, and makes its page of the log and ours
//! agree. Knows no entries.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::item::{self, own_name};
use super::server::{MemcachedServer, Op, Reply, ServerFailure, Set};
use super::{TierShared, page};

/// How often a server that is here is asked whether its page has changed: so long may be served here what another Hostler was told
/// to forget. That is one question of some 50 bytes.
const LOOKING: Duration = Duration::from_millis(250);

/// Changes by unsafe methods are gathered for so long, and written at once.
const GATHERING: Duration = Duration::from_millis(20);

/// The pause before one that has just gone is asked again.
const AWAY: Duration = Duration::from_secs(1);

/// Whoever has lost so many races for a page lets the others finish first.
const MOST_RACES: usize = 8;

/// The longest pause before one that is away is asked again.
const LONGEST_AWAY: Duration = Duration::from_secs(10);

/// Who stays for so long has come to stay.
const STAYING: Duration = Duration::from_secs(30);

/// For what no request waits for.
pub(super) const UNHURRIED: Duration = Duration::from_secs(1);

/// Looks after the server, for ever.
pub(super) async fn keep<H: Send + Sync + 'static>(shared: Arc<TierShared<H>>, index: usize) {
    let server = &shared.servers[index];
    let mut away = AWAY;
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
                    away = AWAY;
                }
            }
            // One that comes and goes is asked less and less often.
            Err(_) if !server.is_here() => away = (away * 2).min(LONGEST_AWAY),
            Err(_) => {}
        }
        if !server.is_here() {
            // A nudge does not hurry one that is away: there may be thousands in a second.
            sleep(away).await;
        } else if timeout(LOOKING, server.nudged()).await.is_ok() {
            sleep(GATHERING).await;
        }
    }
}

/// Makes the server's page and ours the same, and memory what it says. A page that both sides add to: what a server has lost is
/// there again the next time that somebody looks who knows it.
pub(super) async fn agree<H: Send + Sync + 'static>(
    shared: &Arc<TierShared<H>>,
    index: usize,
) -> Result<(), ServerFailure> {
    let server = &shared.servers[index];
    let name = own_name(&shared.settings.namespace, "log");
    let Ok(_turn) = server.agreeing.acquire().await else {
        return Err(ServerFailure::Broken("closed".into()));
    };
    for _ in 0..MOST_RACES {
        let version = look(shared, index, &name).await?;
        let now = Instant::now();
        let ripe = shared.log().ripe(index, now);
        sweep(shared, server, &ripe).await?;
        let Some(draft) = shared.log().draft(index, &ripe, now) else { return Ok(()) };
        let bytes = draft.bytes();
        let set = Set { value: &bytes, mark: draft.mark(), seconds: 0 };
        match server.ask(Op::Exchange(&name, version, set), UNHURRIED).await? {
            Reply::Done => {
                shared.log().wrote(index, draft, now);
                return Ok(());
            }
            Reply::Raced => {}
            _ => return Err(ServerFailure::Broken("it refuses the log".into())),
        }
    }
    Err(ServerFailure::Broken("others write all the time".into()))
}

/// Reads the page if it is another than ours by now; gives what memcached calls it.
async fn look<H: Send + Sync + 'static>(
    shared: &Arc<TierShared<H>>,
    index: usize,
    name: &str,
) -> Result<Option<u64>, ServerFailure> {
    let server = &shared.servers[index];
    let before = Instant::now();
    // Also what proves that it is worth asking: no slower than a request would wait for it.
    let seen = match server.ask(Op::Look(name), server.timeout()).await? {
        Reply::ItemSeen(seen) => Some(seen),
        _ => None,
    };
    let known = shared.log().version(index);
    let (lies, version) = match seen {
        Some(seen) if known == Some((seen.version, seen.mark)) => {
            shared.log().looked(index, before);
            return Ok(Some(seen.version));
        }
        Some(_) => match server.ask(Op::Read(name), UNHURRIED).await? {
            Reply::ItemSeen(seen) => {
                let written = serde_json::from_slice(&seen.value).ok();
                (written.map(|written| (written, (seen.version, seen.mark))), Some(seen.version))
            }
            _ => (None, None),
        },
        None => (None, None),
    };
    // First the page, then memory: what comes from the server meanwhile is judged by what is known now, and what came before is
    // forgotten.
    let forget = {
        let mut log = shared.log();
        log.looked(index, before);
        log.read(index, lies, Instant::now())
    };
    if !forget.is_empty() {
        shared.purge_memory(forget).await;
    }
    Ok(version)
}

/// Takes away what is void by changes that are about to go from the page.
async fn sweep<H: Send + Sync + 'static>(
    shared: &TierShared<H>,
    server: &MemcachedServer,
    changes: &[(u64, Box<str>)],
) -> Result<(), ServerFailure> {
    for (number, key) in changes {
        let name = item::name(&shared.settings.namespace, key.as_bytes());
        if let Reply::ItemSeen(seen) = server.ask(Op::Look(&name), UNHURRIED).await?
            && page::is_before(seen.mark, *number)
        {
            server.ask(Op::Delete(&name), UNHURRIED).await?;
        }
    }
    Ok(())
}
