//! Applies a changed configuration. Only what differs is changed; routes change last, all at the same moment. Knows no commands.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use hostler_config::{self as config, Config, PoolChange};
use tokio::time::timeout;

use super::lookups::LookupServices;
use super::pools::{self, RunningPool};
use super::routes::{RouteTables, RouteTarget, routes, watched};
use super::running::{RunningServer, UnlistedPool, log_to, open_log, reopen_log};
use super::tls::{self, Fresh};
use super::{announce, boot, cache, fixed, pool_drain, runtime, settings};
use crate::admin::{CommandDone, CommandError, LastReload};

/// Applies the current configuration. If it has an error, nothing changes.
pub(super) async fn reload(running: &Arc<RunningServer>) -> Result<CommandDone, CommandError> {
    // A renamed log file must not wait for an earlier reload or an upgrade, which may take minutes, and may move the log meanwhile.
    let file = running.config.load().log.file.clone();
    if running.changes.available_permits() == 0
        && let Some(file) = file
        && let Ok(out) = open_log(Some(file.clone())).await
        && running.config.load().log.file.as_ref() == Some(&file)
    {
        log_to(running.journal.clone(), out, false).await;
    }
    let _turn = running.changes.acquire().await;
    running.takeover.borrow().allows_orders()?;
    if running.connections().is_ending() {
        return Err(CommandError::Refused("this Hostler is stopping".into()));
    }
    // A renamed log file must not wait for a valid configuration.
    let file = running.config.load().log.file.clone();
    let unopened = match file {
        Some(file) => reopen_log(running.journal.clone(), file).await,
        None => None,
    };
    let limit = running.config.load().server.upgrade_timeout;
    let loading = async {
        let files = running.renewals.acquire().await;
        load(running).await.map(|newer| (newer, files))
    };
    let outcome = match in_time(limit, "the configuration was", loading).await {
        Ok((newer, _files)) => apply(running, newer, unopened).await,
        Err(error) => {
            let all: Vec<_> = [error].into_iter().chain(unopened).collect();
            Err(CommandError::Failed(all.join("\n")))
        }
    };
    let text = match &outcome {
        Ok(done) => done.clone(),
        Err(error) => error.to_string().lines().map(Into::into).collect(),
    };
    let last = LastReload { at: jiff::Timestamp::now(), ok: outcome.is_ok(), text };
    running.sources.last_reload.store(Some(Arc::new(last)));
    outcome
}

/// `out`: the file of the log if it is another one.
async fn change_log(
    running: &RunningServer,
    older: &Config,
    newer: &Config,
    out: Option<File>,
    done: &mut CommandDone,
) {
    if older.log == newer.log {
        return;
    }
    running.journal.follow(settings::log_rules(&newer.log));
    done.push("log: changed".into());
    if let Some(out) = out {
        log_to(running.journal.clone(), out, newer.log.file.is_none()).await;
    }
}

/// A disk that hangs may never answer. A reload that waited for it without a limit would hold up each later one, also one that names other files.
async fn in_time<T>(
    limit: Duration,
    what: &str,
    reading: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let late = |_| {
        let why = "a file system or a name server does not answer; nothing has changed";
        Err(format!("{what} not read in {limit:?} (server.upgrade_timeout): {why}"))
    };
    timeout(limit, reading).await.unwrap_or_else(late)
}

/// On a blocking thread: reading files and resolving names may take long.
async fn load(running: &RunningServer) -> Result<Config, String> {
    let (invocation, current) = (running.invocation.clone(), running.config.load_full());
    let loaded = runtime::read(move || config::load_to_reload(&invocation, &current)).await?;
    loaded.map_err(|errors| errors.to_string())
}

/// `unopened`: why the file of the log could not be opened again.
async fn apply(
    running: &Arc<RunningServer>,
    mut newer: Config,
    unopened: Option<String>,
) -> Result<CommandDone, CommandError> {
    let older = running.config.load_full();
    let limit = older.server.upgrade_timeout;
    let mut done = std::mem::take(&mut newer.warnings);
    // A `[tls]` section that was removed stays until the upgrade, with the certificates that were read before: their files may be gone, too.
    let has_tls = newer.tls.is_some();
    fixed::keep(&older, &mut newer, &mut done);
    let written = newer.tls.as_ref().filter(|_| has_tls);
    let fresh = in_time(limit, "the certificates were", certificates(written)).await;
    let fresh = fresh.map_err(CommandError::Failed)?;
    let bodies = running.shared_cache.memory.bodies();
    let memory = (&running.sources.spool, &running.sources.answer_memory, bodies);
    let before = running.listening.load_full();
    let listening = settings::listening(&newer, running.tls.as_deref(), before.tls.as_deref(), memory)
        .map_err(CommandError::Failed)?;
    let log = log(&older, &newer, unopened).await.map_err(CommandError::Failed)?;

    let newer = Arc::new(newer);
    let difference = older.difference(&newer);
    if difference.is_empty() {
        show(running, fresh, &mut done);
        let else_ = if done.is_empty() { "" } else { " else" };
        done.push(format!("nothing{else_} has changed"));
        return Ok(done);
    }
    let lookups = in_time(limit, "the data for lookups was", lookups(running, &older, &newer)).await;
    let lookups = lookups.map_err(CommandError::Failed)?;
    let change = prepare(running, &older, &newer).await;
    let change = change.inspect_err(|_| lookups.free(&running.lookups.load()))?;
    if !difference.server.is_empty() {
        done.push(format!("server: {} changed", difference.server.join(", ")));
    }
    if !difference.tls.is_empty() {
        done.push(format!("tls: {} changed", difference.tls.join(", ")));
    }
    done.extend(difference.pools.iter().map(|pool| describe(pool, &change)));
    // If a key of `[server]` that is a setting of all workers has changed, workers of pools without a change are replaced, too.
    let named = |name: &Arc<str>| difference.pools.iter().any(|pool| *pool.name() == **name);
    let others = change.renewed.iter().filter(|name| !named(name));
    done.extend(others.map(|name| format!("pool {name}: all its workers replaced")));
    if difference.routes {
        done.push(format!("routes: changed, now {}", newer.routes.len()));
    }
    show(running, fresh, &mut done);
    if running.listen_by(listening) {
        done.push("tls: open connections end, because other client certificates are accepted now".into());
    }
    if difference.platform {
        done.push("platform: changed".into());
    }
    done.extend(difference.lookups.iter().map(|section| format!("{section}: changed")));
    if !difference.cache.is_empty() {
        cache::share(&running.shared_cache, newer.cache.tier.as_ref(), &running.journal);
        done.push("cache: memcached changed".into());
    }
    swap(running, &newer, change, lookups);
    if let Some(listeners) = &*running.listeners.load() {
        // The file with the token may be another one now. And the first workers may have come now, and only with workers there is a folder for the note.
        running.note_admin(listeners);
    }
    // Not before the swap: `prepare` has made sure that no paused pool is lost, and during a further wait an operator could pause one.
    change_log(running, &older, &newer, log, &mut done).await;
    Ok(done)
}

/// On a blocking thread: opening data may take long.
async fn lookups(
    running: &RunningServer,
    older: &Arc<Config>,
    newer: &Arc<Config>,
) -> Result<LookupServices, String> {
    let (older, newer, data) = (older.clone(), newer.clone(), running.lookups.load_full());
    let journal = running.journal.clone();
    let opening = move || LookupServices::open(&newer, Some((&older, &data)), &journal);
    runtime::read(opening).await?
}

/// The file of the log if it is another one. Fails if its lines would be lost, or would be where the operator does not look.
async fn log(older: &Config, newer: &Config, unopened: Option<String>) -> Result<Option<File>, String> {
    match (older.log.file == newer.log.file, unopened) {
        (true, Some(why)) => Err(why),
        (true, None) => Ok(None),
        (false, _) => open_log(newer.log.file.clone()).await.map(Some),
    }
}

/// Fails if one of them cannot be used.
async fn certificates(written: Option<&config::Tls>) -> Result<Option<Fresh>, String> {
    match written {
        Some(written) => tls::read_again(written).await?.whole().map(Some),
        None => Ok(None),
    }
}

/// Uses the certificates that were read again: the files may have changed although the configuration has not.
fn show(running: &RunningServer, fresh: Option<Fresh>, done: &mut CommandDone) {
    if let (Some(tls), Some(fresh)) = (&running.tls, fresh)
        && tls.show(fresh)
    {
        done.push("tls: certificates read again".into());
    }
}

/// The changes to pools.
#[derive(Default)]
struct PoolsChange {
    pools: Vec<RunningPool>,
    /// Pools that no route uses any more.
    left: Vec<RunningPool>,
    /// The names of new pools.
    started: Vec<Arc<str>>,
    /// The new pools, until requests can come to them.
    unlisted: Vec<UnlistedPool>,
    /// The names of pools whose workers were all replaced.
    renewed: Vec<Arc<str>>,
}

/// Starts new pools and waits until they can serve. If that fails, they are stopped and nothing has changed.
async fn prepare(
    running: &Arc<RunningServer>,
    older: &Config,
    newer: &Config,
) -> Result<PoolsChange, CommandError> {
    let before = running.pools.load_full();
    let mut change = PoolsChange::default();
    let outcome = match start_new(running, newer, &before, &mut change).await {
        Ok(()) => renew_workers(running, (older, newer), &before, &mut change).await,
        failed => failed,
    };
    if let Err(problem) = outcome {
        let started = change.pools.into_iter().filter(|pool| change.started.contains(&pool.name));
        started.for_each(|pool| pool_drain::drain(running, pool, Vec::new()));
        return Err(CommandError::Failed(problem));
    }
    let is_kept = |old: &&RunningPool| {
        let kept = change.pools.iter().find(|pool| pool.name == old.name);
        kept.is_some_and(|pool| !change.started.contains(&pool.name))
    };
    change.left = before.iter().filter(|old| !is_kept(old)).cloned().collect();
    Ok(change)
}

async fn start_new(
    running: &Arc<RunningServer>,
    newer: &Config,
    before: &[RunningPool],
    change: &mut PoolsChange,
) -> Result<(), String> {
    goes_on(running)?;
    for written in &newer.pools {
        let known = before.iter().find(|pool| *pool.name == *written.name);
        if let Some(pool) = known.and_then(|pool| pool.take(newer, written, &running.pool_context)) {
            change.pools.push(pool);
            continue;
        }
        let pool = RunningPool::start(newer, written, &running.pool_context, known);
        let pool = pool.map_err(|error| format!("pool {}: {error}; nothing has changed", written.name))?;
        change.started.push(pool.name.clone());
        change.unlisted.extend(UnlistedPool::enter(running, &pool));
        change.pools.push(pool);
    }
    let started: Vec<_> = change.pools.iter().filter(|pool| change.started.contains(&pool.name)).collect();
    let time_limit = newer.server.upgrade_timeout;
    let late = |_| Err(format!("new workers were not ready in {time_limit:?} (server.upgrade_timeout)"));
    let outcome = timeout(time_limit, boot::first_ready(&started)).await.unwrap_or_else(late);
    outcome.map_err(|why| format!("{why}; nothing has changed"))?;
    keeps_pauses(before, change).map_err(|why| format!("{why}; nothing has changed"))?;
    goes_on(running)
}

/// Refuses a change that would end a pause. A new pool in the place of a paused one would serve at once, also the requests that the old one
/// holds, and a removed pool finishes its requests.
fn keeps_pauses(before: &[RunningPool], change: &PoolsChange) -> Result<(), String> {
    pools::keep_pauses(before, |pool| match change.pools.iter().any(|new| new.name == pool.name) {
        true => change.started.contains(&pool.name).then_some("would start anew"),
        false => Some("would be removed"),
    })
}

/// Fails if a stop has begun meanwhile: the stop ends the workers of new pools, too.
fn goes_on(running: &RunningServer) -> Result<(), String> {
    if running.connections().is_ending() {
        return Err("this Hostler is stopping; nothing has changed".into());
    }
    Ok(())
}

/// Replaces the workers of existing pools where their new settings need that, and then gives the others theirs. If new workers of a pool do
/// not boot, all pools get their old settings back.
async fn renew_workers(
    running: &RunningServer,
    (older, newer): (&Config, &Config),
    before: &[RunningPool],
    change: &mut PoolsChange,
) -> Result<(), String> {
    for index in 0..change.pools.len() {
        let pool = &change.pools[index];
        let is_new = change.started.contains(&pool.name);
        if is_new || !pool.must_replace_workers(newer, &running.pool_context) {
            continue;
        }
        pool.settle_workers(newer, &running.pool_context);
        let Some(supervisor) = &pool.supervisor else { continue };
        let (name, outcome) = (pool.name.clone(), supervisor.restart().await);
        let has_new_workers = outcome.as_ref().err().is_none_or(|error| error.has_replaced_some());
        if has_new_workers {
            change.renewed.push(name.clone());
        }
        outcome.map_err(|error| take_back(running, older, change, format!("pool {name}: {error}")))?;
    }
    announce::withdraw(running, newer).await;
    // The restarts may have taken minutes. There is no other wait until the new pools get the requests.
    keeps_pauses(before, change).map_err(|why| take_back(running, older, change, why))?;
    // Only now: if a restart had failed before, changes such as a lower number of workers would have been made for nothing.
    let has_new_workers = |name: &Arc<str>| change.started.contains(name) || change.renewed.contains(name);
    let others = change.pools.iter().filter(|pool| !has_new_workers(&pool.name));
    others.for_each(|pool| pool.settle_workers(newer, &running.pool_context));
    Ok(())
}

/// Restores the old settings of workers. Requests go on by the old routes, so no worker may keep settings that only the new ones know. Without
/// the restart some would keep settings that are in no file, and no later reload would notice.
fn take_back(running: &RunningServer, older: &Config, change: &PoolsChange, problem: String) -> String {
    running.withdrawn.store(Arc::default());
    let pools = running.pools.load();
    for pool in pools.iter() {
        pool.settle_workers(older, &running.pool_context);
    }
    if change.renewed.is_empty() {
        return format!("{problem}; nothing else has changed");
    }
    let renewed = pools.iter().filter(|pool| change.renewed.contains(&pool.name));
    for supervisor in renewed.filter_map(|pool| pool.supervisor.as_ref()) {
        // The restart begins with the call.
        drop(supervisor.restart());
    }
    let renewed = change.renewed.join(", ");
    format!(
        "{problem}; nothing else has changed; all workers of these pools are being replaced by ones with the old settings: {renewed}"
    )
}

/// Replaces routes and pools at one moment: a request that arrives later gets the new routes.
fn swap(running: &Arc<RunningServer>, newer: &Arc<Config>, change: PoolsChange, lookups: LookupServices) {
    let before = running.sources.routes.load_full();
    for pool in &change.pools {
        pool.settle(newer);
    }
    let RouteTables { table, listed, weak } = routes(
        newer,
        &RouteTarget { pools: &change.pools, lookups: &lookups, shared_cache: &running.shared_cache },
        &before,
    );
    running.sources.geo.store(lookups.geo.clone());
    running.sources.postal.store(lookups.postal.clone());
    let lookups = Arc::new(lookups);
    running.lookups.swap(lookups.clone()).free(&lookups);
    running.sources.pools.store(Arc::new(change.pools.iter().map(RunningPool::source).collect()));
    running.sources.routes.store(Arc::new(listed));
    let (hosts, token) = (newer.server.admin_hosts.clone(), newer.server.admin_token.clone());
    running.admin_access.update(hosts, token);
    running.sources.encoding.resize(newer.server.compress_memory);
    running.pool_context.settle(&newer.server);
    running.sources.request_memory.resize(newer.server.request_memory);
    running.sources.answer_memory.resize(newer.server.answer_memory);
    let files = settings::open_files(newer);
    running.sources.spool.update(newer.server.spool_size, files, newer.server.temp_dir.clone());
    running.gateway.spool.store(Arc::new(settings::spool(&newer.server)));
    running.gateway.health.watch(watched(newer, &change.pools));
    running.registered.update(newer, &running.gateway);
    running.pools.store(Arc::new(change.pools));
    running.config.store(newer.clone());
    running.tables.configure(table);
    // A request keeps its route over any number of reloads. A later reload that removes the route's pool must find that request.
    let used = running.routes.load_full();
    let used = used.iter().filter(|route| route.strong_count() > 0).cloned();
    let old_routes = running.routes.swap(Arc::new(weak.into_iter().chain(used).collect()));
    for pool in change.left {
        pool_drain::drain(running, pool, old_routes.to_vec());
    }
}

fn describe(pool: &PoolChange<'_>, change: &PoolsChange) -> String {
    let name = pool.name();
    let how = match pool {
        PoolChange::Added(_) => "added",
        PoolChange::Removed(_) => "removed; it finishes what it has",
        PoolChange::Changed(..) if change.started.iter().any(|started| **started == *name) => "started anew",
        PoolChange::Changed(..) if change.renewed.iter().any(|renewed| **renewed == *name) => {
            "changed, all its workers replaced"
        }
        PoolChange::Changed(..) => "changed",
    };
    format!("pool {name}: {how}")
}
