//! Looks after one server as long as the tier lives: reconnects when it answers again, and synchronises its page of the
//! log with ours. Knows no entries.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::item::{self, own_name};
use super::page;
use super::server::{MemcachedServer, Op, Reply, ServerFailure, Set};
use super::shared::TierShared;

/// How often a reachable server is asked whether its page has changed. For this long, an entry may be served here that
/// another Hostler has purged. One question is about 50 bytes.
const LOOKING: Duration = Duration::from_millis(250);

/// Changes by unsafe methods are collected for this long and then written together.
const GATHERING: Duration = Duration::from_millis(20);

/// The pause before a server that has just been lost is asked again.
const AWAY: Duration = Duration::from_secs(1);

/// After losing this many races for a page, a Hostler lets the others finish first.
const MOST_RACES: usize = 8;

/// The longest pause before a lost server is asked again.
const LONGEST_AWAY: Duration = Duration::from_secs(10);

/// After this time without a failure, the pauses start from the shortest again.
const STAYING: Duration = Duration::from_secs(30);

/// The time limit for operations that no request waits for.
pub(super) const UNHURRIED: Duration = Duration::from_secs(1);

/// Looks after the server, for ever.
pub(super) async fn keep<H: Send + Sync + 'static>(shared: Arc<TierShared<H>>, index: usize) {
    let server = &shared.servers[index];
    let mut away = AWAY;
    let mut came = Instant::now();
    loop {
        let was_here = server.is_here();
        server.shrink();
        if synchronise(&shared, index).await.is_ok() {
            if !was_here {
                server.come();
                came = Instant::now();
            }
            if came.elapsed() > STAYING {
                away = AWAY;
            }
        }
        if !server.is_here() {
            // A nudge does not shorten this pause: there may be thousands of them per second.
            sleep(away).await;
            // A server that comes and goes is asked less and less often.
            away = (away * 2).min(LONGEST_AWAY);
        } else if timeout(LOOKING, server.nudged()).await.is_ok() {
            sleep(GATHERING).await;
        }
    }
}

/// Makes the server's page and our log the same, and applies the purges to memory. Each side adds to the page: if a
/// server has lost its page, the next Hostler that looks writes it again.
pub(super) async fn synchronise<H: Send + Sync + 'static>(
    shared: &Arc<TierShared<H>>,
    index: usize,
) -> Result<(), ServerFailure> {
    let server = &shared.servers[index];
    let name = own_name(&shared.settings.namespace, "log");
    let Ok(_turn) = server.synchronising.acquire().await else {
        return Err(ServerFailure::Broken("closed".into()));
    };
    for _ in 0..MOST_RACES {
        let version = look(shared, index, &name).await?;
        let now = Instant::now();
        let read_by_all = shared.log().read_by_all(index, now);
        sweep(shared, server, &read_by_all).await?;
        let Some(draft) = shared.log().draft(index, &read_by_all, now) else { return Ok(()) };
        let bytes = draft.bytes();
        let set = Set { value: &bytes, mark: draft.mark(), seconds: 0 };
        match server.ask(Op::Exchange(&name, version, set), UNHURRIED).await? {
            Reply::Done => {
                shared.log().wrote(index, draft, now);
                return Ok(());
            }
            Reply::Raced => {}
            // Other Hostlers do not learn of our purges, and no other operation would show that.
            _ => return Err(server.give_up("it refuses the purge log")),
        }
    }
    Err(ServerFailure::Broken("other Hostlers write the purge log all the time".into()))
}

/// Reads the page if it has changed. Returns the version that memcached gives it.
async fn look<H: Send + Sync + 'static>(
    shared: &Arc<TierShared<H>>,
    index: usize,
    name: &str,
) -> Result<Option<u64>, ServerFailure> {
    let server = &shared.servers[index];
    let before = Instant::now();
    // This also proves that the server can be used again: it must answer within the time that a request would wait.
    let seen = match server.ask(Op::Look(name), shared.settings.timeout).await? {
        Reply::ItemSeen(seen) => Some(seen),
        _ => None,
    };
    let known = shared.log().version(index);
    let (page_read, version) = match seen {
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
    // First the page, then memory. What comes from the server meanwhile is checked against the new page; what came before
    // is purged now.
    let forget = {
        let mut log = shared.log();
        log.looked(index, before);
        log.read(index, page_read, Instant::now())
    };
    if !forget.is_empty() {
        shared.purge_memory(forget).await;
    }
    Ok(version)
}

/// Deletes items that are void by changes that will soon be removed from the page.
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
