//! Advice about queues: waiting requests, and what they wait for. Knows no single worker.

use std::time::Duration;

use super::figures::{Figures, MemberOut, PoolFigures};
use super::finding::{Finding, line, percent, sentences, time};
use super::history::View;
use super::table;

/// The CPUs count as used up from this share on.
const BUSY: f64 = 0.9;
const NOTICEABLE: Duration = Duration::from_millis(100);

pub(super) fn find(view: View<'_>, found: &mut Vec<Finding>) {
    for pool in &view.now.pools {
        let Some(before) = view.before.pool(&pool.name) else { continue };
        refused(pool, before, found);
        long_wait(view, pool, before, found);
        dear_key(pool, before, found);
        one_client(view, pool, found);
        standing(pool, found);
        members(pool, found);
    }
}

fn refused(pool: &PoolFigures, before: &PoolFigures, found: &mut Vec<Finding>) {
    let (now, before) = (&pool.counters, &before.counters);
    let mut add = |row, count: u64, least: u64, what: &str| {
        if count >= least {
            found.push(Finding::of_pool(
                row,
                &pool.name,
                &format!("{count} requests of the last minute {what}"),
            ));
        }
    };
    let overload = now.refused_overload.saturating_sub(before.refused_overload);
    add(table::OVERLOADED, overload, 10, "were refused, because more work comes than the pool can do");
    let full = now.refused_full.saturating_sub(before.refused_full);
    let what = format!("were refused, because the queue was full (queue.limit {})", pool.queue_limit);
    add(table::QUEUE_FULL, full, 10, &what);
    // Where no worker is ready, or no member gets requests, another advice says so.
    let expired = if has_server(pool) { now.expired.saturating_sub(before.expired) } else { 0 };
    add(
        table::QUEUE_TIMEOUT,
        expired,
        10,
        "were refused, because no slot became free in time (queue.timeout, request_timeout)",
    );
    let long_lived = (now.refused_tunnels + now.refused_streams)
        .saturating_sub(before.refused_tunnels + before.refused_streams);
    add(
        table::TOO_MANY_TUNNELS,
        long_lived,
        5,
        "were refused, because each worker has max_tunnels tunnels or max_streams streams",
    );
}

/// An overload that refuses requests has an advice of its own, and so has a number in `concurrency` that is the cause.
fn long_wait(view: View<'_>, pool: &PoolFigures, before: &PoolFigures, found: &mut Vec<Finding>) {
    let refused = pool.counters.refused_overload.saturating_sub(before.counters.refused_overload);
    let queued = pool.counters.queued.saturating_sub(before.counters.queued);
    if pool.deploying || pool.paused || pool.asleep || pool.misfit().is_some() || refused >= 10 || queued < 20
    {
        return;
    }
    let waited = |since: &PoolFigures| pool.queue_wait.since(&since.queue_wait).quantile(0.99);
    // Requests that waited for the end of a pause, for a boot or for a pool that slept wait no longer.
    if view.recent.pool(&pool.name).is_none_or(|recent| waited(recent) < NOTICEABLE) {
        return;
    }
    let wait = waited(before);
    let answered = pool.worker_time.since(&before.worker_time);
    let work = answered.mean().max(Duration::from_micros(100));
    let factor = wait.as_secs_f64() / work.as_secs_f64();
    // If nothing was answered, the members cannot be reached or hang, and the wait says nothing about their number.
    if wait < NOTICEABLE || factor < 3.0 || answered.count == 0 {
        return;
    }
    let figures =
        format!("queue wait p99 is {factor:.0} x the worker time ({} and {})", time(wait), time(work));
    match cpu_busy(view.before, view.now) {
        Some(busy) if busy >= BUSY => {
            let text = format!("{figures}, and the CPUs are {:.0} % busy", busy * 100.0);
            found.push(Finding::of_pool(table::CPU_EXHAUSTED, &pool.name, &text));
        }
        _ => {
            let most = pool.at_most.map_or(String::new(), |most| format!(", with workers.max = {most}"));
            let text = format!("{figures}{most}");
            found.push(Finding::of_pool(table::TOO_FEW_WORKERS, &pool.name, &text));
        }
    }
}

/// A key that takes what no other key wants is no trouble, so others must have waited.
fn dear_key(pool: &PoolFigures, before: &PoolFigures, found: &mut Vec<Finding>) {
    let waited = pool.counters.queued.saturating_sub(before.counters.queued);
    let Some(key) = pool.dearest.as_ref().filter(|key| key.share >= 60.0 && waited >= 20) else { return };
    let text = format!(
        "{} took {:.0} % of the worker time of the last minute, and {waited} requests had to wait",
        line(&key.key),
        key.share.floor(),
    );
    found.push(Finding::of_pool(table::DEAR_KEY, &pool.name, &text));
}

/// In order of arrival, requests of other clients wait behind those of one client.
fn one_client(view: View<'_>, pool: &PoolFigures, found: &mut Vec<Finding>) {
    const MANY: usize = 20;
    let clients = &view.now.clients;
    let Some(busiest) = clients.busiest.filter(|busiest| busiest.requests >= MANY) else { return };
    let has_most = percent(busiest.requests as u64, clients.requests as u64) >= 60;
    if pool.is_fair || pool.paused || pool.queue_length < MANY || !has_most || clients.counted < 2 {
        return;
    }
    let text = format!(
        "client {} has {} of {} requests under way, and {} requests wait",
        busiest.client, busiest.requests, clients.requests, pool.queue_length,
    );
    found.push(Finding::of_pool(table::ONE_CLIENT, &pool.name, &text));
}

/// The share of the usable CPUs that was busy.
fn cpu_busy(before: &Figures, now: &Figures) -> Option<f64> {
    let span = now.uptime.saturating_sub(before.uptime).as_millis() as f64;
    let cpus = now.machine.cpus.filter(|_| span > 0.0)?;
    let share = |now: Option<u64>, before: Option<u64>| {
        now.zip(before).map(|(now, before)| now.saturating_sub(before) as f64 / span / cpus)
    };
    let group = share(now.machine.group_cpu_ms, before.machine.group_cpu_ms);
    // Without a limit of the control group, `cpus` are those of the machine.
    group.or(share(now.machine.busy_ms, before.machine.busy_ms))
}

fn standing(pool: &PoolFigures, found: &mut Vec<Finding>) {
    if pool.paused && pool.queue_length > 0 {
        let (waiting, oldest) = (pool.queue_length, time(pool.oldest_wait));
        let text = format!("the pool is paused, and {waiting} requests wait, the oldest for {oldest}");
        found.push(Finding::of_pool(table::POOL_PAUSED, &pool.name, &text));
    }
    let workers = pool.workers.as_deref().unwrap_or_default();
    if !pool.asleep && !workers.is_empty() && !has_server(pool) {
        let why = workers.iter().find_map(|worker| worker.last_error.as_ref().or(worker.last_exit.as_ref()));
        let why = why.map_or(String::new(), |why| format!(": {}", sentences(why)));
        found.push(Finding::of_pool(table::NO_READY_WORKER, &pool.name, &format!("no worker is ready{why}")));
    }
}

/// Whether a worker or a spare is ready, or a member gets requests.
fn has_server(pool: &PoolFigures) -> bool {
    pool.has_ready_worker() || pool.members.iter().any(|member| member.out.is_none())
}

fn members(pool: &PoolFigures, found: &mut Vec<Finding>) {
    let out: Vec<&MemberOut> = pool.members.iter().filter(|member| member.out.is_some()).collect();
    let Some(first) = out.first() else { return };
    let why = first.out.as_deref().unwrap_or_default();
    let text = format!(
        "{} of {} members are down: {} ({}){}",
        out.len(),
        pool.members.len(),
        first.name,
        line(why),
        if out.len() > 1 { " and others" } else { "" },
    );
    found.push(Finding::of_pool(table::MEMBERS_OUT, &pool.name, &text));
}
