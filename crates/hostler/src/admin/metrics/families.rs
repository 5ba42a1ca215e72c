//! Which figures of the Status become which metrics. Knows no text format.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hostler_engine::gateway::HealthView;
use hostler_engine::proxy::{Spread, Times};
use hostler_worker::{CollectionTimes, LoopDelay, WorkerState};
use prometheus_client::encoding::DescriptorEncoder;
use serde_json::Value;

use super::super::newest::newest;
use super::super::status::{ConnectionStatus, PoolStatus, RouteStatus, Status, WorkerReportView};
use super::rows::{Buckets, MetricWriter, Values};
use super::table::{self as metric, Metric};

/// Takes the value of a metric from a pool.
type PoolFigure = fn(&PoolStatus) -> f64;
/// Takes a histogram from the times of a pool.
type PickTimes = fn(&Times) -> &Spread;
/// Takes the value of a metric from a worker. `None`: it is not known.
type WorkerFigure = fn(&WorkerReportView) -> Option<f64>;

/// The route and the pool of the requests of all registered routes: there can be 100,000. No route and no pool of a configuration has this name.
const REGISTERED: &str = "(registered)";

pub(super) fn write(status: &Status, encoder: DescriptorEncoder<'_>) -> fmt::Result {
    let mut out = MetricWriter(encoder);
    process(&mut out, status)?;
    health(&mut out, &status.health)?;
    routes(&mut out, status)?;
    times(&mut out, status)?;
    pools(&mut out, &status.pools)?;
    hedges(&mut out, &status.pools)?;
    workers(&mut out, &status.pools)?;
    connections(&mut out, &status.connections)?;
    buffers(&mut out, status)?;
    cache(&mut out, status)?;
    certificates(&mut out, status)?;
    registrar(&mut out, status.registrar.as_ref())
}

fn process(out: &mut MetricWriter<'_>, status: &Status) -> fmt::Result {
    out.info(metric::BUILD, [status.version.into()])?;
    let process = &status.process;
    out.one(metric::START_TIME, process.started.as_millisecond() as f64 / 1000.0)?;
    out.one(metric::CPU, process.cpu.as_secs_f64())?;
    out.one(metric::RESIDENT, status.memory.map(|bytes| bytes as f64))?;
    out.one(metric::OPEN_FDS, process.open_files.map(|count| count as f64))?;
    out.one(metric::MAX_FDS, process.max_files.map(|count| count as f64))?;
    out.one(metric::DRAINING, truth(status.state == "draining" || status.health.ending))?;
    out.one(metric::LAST_RELOAD, status.last_reload.as_ref().map(|reload| truth(reload.ok)))?;
    out.one(metric::TRACES_EXPORTED, status.traces.map(|traces| traces.exported as f64))?;
    out.one(metric::TRACES_DROPPED, status.traces.map(|traces| traces.dropped as f64))?;
    out.one(metric::TRACES_REJECTED, status.traces.map(|traces| traces.rejected_spans as f64))?;
    out.one(metric::LOG_DROPPED, status.log.dropped as f64)
}

fn health(out: &mut MetricWriter<'_>, health: &HealthView) -> fmt::Result {
    out.one(metric::READY, truth(health.ready))
}

fn routes(out: &mut MetricWriter<'_>, status: &Status) -> fmt::Result {
    // The label of requests that match no route is empty, as the conventions ask.
    let configured = status.routes.iter().map(|RouteStatus { pattern, counters, .. }| (&**pattern, counters));
    let registered = status.registered.iter().map(|registered| (REGISTERED, &registered.counters));
    let all: Vec<_> = configured.chain([("", &status.unrouted)]).chain(registered).collect();
    let durations = all.iter().flat_map(|(route, counters)| {
        counters.durations.iter().map(|view| {
            let kind = view.kind;
            let values: Values<'_, 4> =
                [kind.method.into(), kind.status_text(), (*route).into(), kind.scheme.as_str().into()];
            (values, (&view.buckets[..], view.sum))
        })
    });
    out.histograms(metric::REQUEST_DURATION, durations)?;
    let reasons = |pick: fn(&hostler_engine::exchange::CountersView) -> &BTreeMap<&'static str, u64>| {
        all.iter().flat_map(move |(route, counters)| {
            pick(counters)
                .iter()
                .map(move |(reason, count)| ([(*route).into(), (*reason).into()], *count as f64))
        })
    };
    out.each(metric::REFUSALS, reasons(|counters| &counters.refusals))?;
    out.each(metric::FALLBACKS, reasons(|counters| &counters.fallbacks))?;
    out.each(metric::RATE_LIMITED, rate_limited(status))?;
    out.each(metric::CACHE_RESULTS, reasons(|counters| &counters.cache))?;
    worker_cpu(out, status)?;
    out.each(
        metric::RETRIES,
        all.iter().map(|(route, counters)| ([(*route).into()], counters.retries as f64)),
    )?;
    let hinted = status
        .routes
        .iter()
        .filter_map(|route| Some(([(*route.pattern).into()], route.early_hints.as_ref()?.sent as f64)));
    out.each(metric::EARLY_HINTS, hinted)?;
    out.each(
        metric::ABORTED,
        all.iter().map(|(route, counters)| ([(*route).into()], counters.aborted as f64)),
    )
}

/// Requests beyond each limit: those that were refused, and those of a dry run.
fn rate_limited(status: &Status) -> impl Iterator<Item = (Values<'_, 3>, f64)> {
    let of_routes =
        status.routes.iter().filter_map(|route| Some(("route", &*route.pattern, route.rate_limit.as_ref()?)));
    let of_pools =
        status.pools.iter().filter_map(|pool| Some(("pool", &*pool.name, pool.rate_limit.as_ref()?)));
    of_routes.chain(of_pools).flat_map(|(scope, name, limit)| {
        [("false", limit.refused), ("true", limit.would_refuse)]
            .map(|(dry_run, count)| ([scope.into(), name.into(), dry_run.into()], count as f64))
    })
}

/// The CPU time of workers by route, and what belongs to no request.
fn worker_cpu(out: &mut MetricWriter<'_>, status: &Status) -> fmt::Result {
    let ledger = |name: &str| status.pools.iter().find(|pool| *pool.name == *name).map(|pool| &pool.ledger);
    let of_route = |route: &'_ RouteStatus| {
        let pool = route.pool.as_deref()?;
        ledger(pool)?.unowned_cpu?;
        Some(route.counters.worker_cpu.as_secs_f64())
    };
    let routes = status.routes.iter().filter_map(|route| {
        let pool = route.pool.as_deref().unwrap_or_default();
        of_route(route).map(|cpu| ([pool.into(), (*route.pattern).into()], cpu))
    });
    out.each(metric::WORKER_CPU, routes)?;
    let unowned = status.pools.iter();
    let unowned =
        unowned.filter_map(|pool| pool.ledger.unowned_cpu.map(|cpu| (pool.label(), cpu.as_secs_f64())));
    out.each(metric::UNOWNED_CPU, unowned)
}

fn times(out: &mut MetricWriter<'_>, status: &Status) -> fmt::Result {
    let kinds: [(&Metric, PickTimes); 3] = [
        (metric::QUEUE_WAIT, |times| &times.queue_wait),
        (metric::SLOT_HOLD, |times| &times.slot_hold),
        (metric::WORKER_TIME, |times| &times.worker_time),
    ];
    for (metric, pick) in kinds {
        let of_pools = status.pools.iter().map(|pool| (&*pool.name, &pool.times));
        let registered = status.registered.iter().map(|registered| (REGISTERED, &registered.times));
        let all =
            of_pools.chain(registered).map(|(pool, times)| ([Cow::Borrowed(pool)], histogram(pick(times))));
        out.histograms(metric, all)?;
    }
    Ok(())
}

fn pools(out: &mut MetricWriter<'_>, pools: &[PoolStatus]) -> fmt::Result {
    out.each(
        metric::QUEUE_LENGTH,
        pools.iter().flat_map(|pool| {
            let waiting = pool.queue.waiting;
            [("high", waiting.high), ("normal", waiting.normal), ("low", waiting.low)]
                .map(|(class, count)| ([(*pool.name).into(), class.into()], count as f64))
        }),
    )?;
    let figures: [(&Metric, PoolFigure); 13] = [
        (metric::QUEUE_LIMIT, |pool| pool.queue.queue_limit as f64),
        (metric::OLDEST_WAIT, |pool| pool.queue.oldest_wait.unwrap_or_default().as_secs_f64()),
        (metric::SLOTS, |pool| pool.queue.slots as f64),
        (metric::SLOTS_IN_USE, |pool| pool.queue.in_use as f64),
        (metric::POOL_TUNNELS, |pool| pool.queue.tunnels as f64),
        (metric::POOL_STREAMS, |pool| pool.queue.streams as f64),
        (metric::OVERLOADED, |pool| truth(pool.queue.overloaded)),
        (metric::PAUSED, |pool| truth(pool.queue.paused)),
        (metric::GRANTED, |pool| pool.queue.counters.granted as f64),
        (metric::QUEUED, |pool| pool.queue.counters.queued as f64),
        (metric::OVERLOADS, |pool| pool.queue.counters.overloads as f64),
        (metric::KEPT_OFF, |pool| pool.kept_off.len() as f64),
        (metric::SUSPECTS_CONVICTED, |pool| pool.suspects.convicted as f64),
    ];
    for (metric, pick) in figures {
        out.each(metric, pools.iter().map(|pool| (pool.label(), pick(pool))))?;
    }
    out.each(
        metric::MEMBER_FAILURES,
        pools.iter().flat_map(|pool| {
            let counters = &pool.queue.counters;
            [
                ("unreachable", counters.member_failures),
                ("timeout", counters.member_timeouts),
                ("ejected", counters.ejections),
                ("unhealthy", counters.unhealthy),
            ]
            .map(|(kind, count)| ([(*pool.name).into(), kind.into()], count as f64))
        }),
    )?;
    out.each(
        metric::MEMBERS,
        pools.iter().flat_map(|pool| {
            let members =
                || pool.queue.members.iter().map(|member| &member.figures).filter(|member| !member.left);
            let kept_out = |member: &hostler_dispatch::MemberFigures| {
                member.unreachable || member.ejected || member.unhealthy
            };
            let out = members().filter(|member| kept_out(member)).count();
            [("up", members().count() - out), ("down", out)]
                .map(|(state, count)| ([(*pool.name).into(), state.into()], count as f64))
        }),
    )
}

fn hedges(out: &mut MetricWriter<'_>, pools: &[PoolStatus]) -> fmt::Result {
    let hedged = || pools.iter().filter_map(|pool| Some((pool.label(), pool.hedge.as_ref()?)));
    out.each(metric::HEDGES, hedged().map(|(pool, hedge)| (pool, hedge.sent as f64)))?;
    out.each(metric::HEDGES_WON, hedged().map(|(pool, hedge)| (pool, hedge.won as f64)))
}

fn workers(out: &mut MetricWriter<'_>, pools: &[PoolStatus]) -> fmt::Result {
    let supervised = pools.iter().filter_map(|pool| pool.workers.as_ref().map(|workers| (pool, workers)));
    out.each(
        metric::WORKERS,
        supervised.flat_map(|(pool, workers)| {
            WorkerState::ALL.map(|state| {
                let all = workers.iter().chain(&pool.spares);
                let count = all.filter(|report| report.worker.state == state).count();
                ([(*pool.name).into(), state.name().into()], count as f64)
            })
        }),
    )?;
    let wanted = pools
        .iter()
        .filter_map(|pool| pool.scaling.as_ref().map(|scaling| (pool.label(), scaling.wanted as f64)));
    out.each(metric::WORKERS_WANTED, wanted)?;
    let deaths = pools.iter().filter_map(|pool| Some((pool.label(), pool.boots?.deaths as f64)));
    out.each(metric::WORKER_DEATHS, deaths)?;
    let figures: [(&Metric, WorkerFigure); 18] = [
        (metric::RESTARTS, |report| Some(report.worker.restarts as f64)),
        (metric::WORKER_CRASHES, |report| Some(f64::from(report.worker.crashes))),
        (metric::WORKER_MEMORY, |report| report.worker.memory.map(|bytes| bytes as f64)),
        (metric::WORKER_REQUESTS, |report| Some(report.requests as f64)),
        (metric::WORKER_SLOTS, |report| Some(report.slots as f64)),
        (metric::WORKER_IN_USE, |report| Some(report.in_use as f64)),
        (metric::WORKER_BLOCKED, |report| Some(report.worker.blocked.unwrap_or_default().as_secs_f64())),
        (metric::EVENT_LOOP, |report| report.worker.utilisation),
        (metric::COLLECTIONS, |report| Some(report.worker.collections as f64)),
        (metric::HEAP_USED, |report| report.worker.node.heap.map(|heap| heap.used as f64)),
        (metric::HEAP_LIMIT, |report| report.worker.node.heap.map(|heap| heap.limit as f64)),
        (metric::LOOP_MIN, |report| delay(report, |delay| delay.min)),
        (metric::LOOP_MEAN, |report| delay(report, |delay| delay.mean)),
        (metric::LOOP_STDDEV, |report| delay(report, |delay| delay.stddev)),
        (metric::LOOP_P50, |report| delay(report, |delay| delay.p50)),
        (metric::LOOP_P90, |report| delay(report, |delay| delay.p90)),
        (metric::LOOP_P99, |report| delay(report, |delay| delay.p99)),
        (metric::LOOP_MAX, |report| delay(report, |delay| delay.max)),
    ];
    for (metric, pick) in figures {
        out.each(
            metric,
            pools.iter().flat_map(|pool| {
                processes(pool).filter_map(move |report| {
                    let values: Values<'_, 2> = [(*pool.name).into(), report.worker.index.to_string().into()];
                    pick(report).map(|value| (values, value))
                })
            }),
        )?;
    }
    collections(out, pools)
}

/// The newest process of each worker that is or was in the pool, and the spares, which have the numbers after those of the workers.
fn processes(pool: &PoolStatus) -> impl Iterator<Item = &WorkerReportView> {
    newest(pool.workers.iter().flatten().chain(&pool.spares), place)
}

/// A successor counts once it has joined the pool. If it never does, counters would begin at 0 with it and go back to those of the process that
/// serves, which Prometheus takes for as many new requests.
fn place(report: &WorkerReportView) -> (usize, (bool, u64)) {
    (report.worker.index, (report.worker.member.is_some(), report.worker.generation))
}

fn delay(report: &WorkerReportView, pick: fn(LoopDelay) -> Duration) -> Option<f64> {
    report.worker.node.event_loop_delay.map(|delay| pick(delay).as_secs_f64())
}

/// Garbage collections by kind.
fn collections(out: &mut MetricWriter<'_>, pools: &[PoolStatus]) -> fmt::Result {
    let workers = pools.iter().flat_map(|pool| processes(pool).map(move |report| (pool, report)));
    let all: Vec<_> = workers
        .filter_map(|(pool, report)| report.worker.node.gc.map(|gc| (pool, report.worker.index, gc)))
        .flat_map(|(pool, index, gc)| {
            let kinds = [
                ("minor", gc.minor),
                ("major", gc.major),
                ("incremental", gc.incremental),
                ("weakcb", gc.weakcb),
            ];
            kinds.map(|(kind, times)| {
                let buckets: Vec<_> = CollectionTimes::BOUNDS.into_iter().zip(times.counts).collect();
                let values: Values<'_, 3> = [(*pool.name).into(), index.to_string().into(), kind.into()];
                (values, buckets, times.micros as f64 / 1e6)
            })
        })
        .collect();
    out.histograms(
        metric::GC_DURATION,
        all.iter().map(|(values, buckets, sum)| (values.clone(), (&buckets[..], *sum))),
    )
}

fn connections(out: &mut MetricWriter<'_>, connections: &ConnectionStatus) -> fmt::Result {
    out.one(metric::CONNECTIONS, connections.open as f64)?;
    out.one(metric::TUNNELS, connections.tunnels as f64)?;
    out.one(metric::STREAMS, connections.streams as f64)?;
    let refused = [
        ("max_connections", connections.refused as f64),
        ("client_connections", connections.clients.refused_connections as f64),
        ("flood", connections.flooded as f64),
    ];
    out.each(metric::CONNECTIONS_REFUSED, refused.map(|(reason, count)| ([reason.into()], count)))?;
    let cut = &connections.cut;
    let cut = [
        ("stalled", cut.stalled),
        ("too_slow", cut.too_slow),
        ("spool_full", cut.spool_full),
        ("cache_full", cut.cache_full),
    ];
    out.each(metric::CONNECTIONS_CUT, cut.map(|(reason, count)| ([reason.into()], count as f64)))?;
    let handshakes = &connections.handshakes;
    let full = handshakes.completed.saturating_sub(handshakes.resumed);
    let completed = [("false", full), ("true", handshakes.resumed)];
    out.each(metric::HANDSHAKES, completed.map(|(resumed, count)| ([resumed.into()], count as f64)))?;
    let failed = handshakes.failed.iter().map(|(reason, count)| ([(*reason).into()], *count as f64));
    out.each(metric::HANDSHAKES_FAILED, failed)
}

fn buffers(out: &mut MetricWriter<'_>, status: &Status) -> fmt::Result {
    let Status { request_memory, answer_memory, spool, .. } = status;
    let all = [
        ("request_memory", request_memory.used, request_memory.limit, request_memory.refused),
        ("answer_memory", answer_memory.used, answer_memory.limit, answer_memory.refused),
        ("spool", spool.used, spool.limit, spool.full),
    ];
    out.each(metric::BUFFER_USED, all.map(|(buffer, used, ..)| ([buffer.into()], used as f64)))?;
    out.each(metric::BUFFER_LIMIT, all.map(|(buffer, _, limit, _)| ([buffer.into()], limit as f64)))?;
    out.each(metric::BUFFER_REFUSALS, all.map(|(buffer, .., refused)| ([buffer.into()], refused as f64)))
}

fn cache(out: &mut MetricWriter<'_>, status: &Status) -> fmt::Result {
    let Some(cache) = &status.cache else { return Ok(()) };
    out.one(metric::CACHE_KEYS, cache.keys as f64)?;
    out.one(metric::CACHE_BYTES, cache.bytes as f64)?;
    out.one(metric::CACHE_LIMIT, cache.limit as f64)?;
    out.one(metric::CACHE_EVICTED, cache.evicted as f64)
}

/// A file may be in the configuration several times. If two samples had the same labels, Prometheus would refuse all metrics.
fn certificates(out: &mut MetricWriter<'_>, status: &Status) -> fmt::Result {
    let valid = status.certificates.iter().filter_map(|certificate| {
        let (from, until) = (certificate.valid_from?.as_second(), certificate.valid_until?.as_second());
        Some((certificate.file.to_string_lossy(), (from as f64, until as f64)))
    });
    let valid: BTreeMap<_, _> = valid.collect();
    let begins = valid.iter().map(|(file, (from, _))| ([file.clone()], *from));
    out.each(metric::CERTIFICATE_BEGIN, begins)?;
    out.each(metric::CERTIFICATE_END, valid.into_iter().map(|(file, (_, until))| ([file], until)))
}

fn registrar(out: &mut MetricWriter<'_>, registrar: Option<&Value>) -> fmt::Result {
    let Some(registrar) = registrar else { return Ok(()) };
    out.one(metric::REGISTRAR_CONNECTED, registrar["connected"].as_bool().map(truth))?;
    out.one(metric::REGISTERED_ROUTES, registrar["routes"].as_f64())?;
    out.one(metric::REGISTERED_MEMBERS, registrar["members"].as_f64())
}

impl PoolStatus {
    fn label(&self) -> Values<'_, 1> {
        [(*self.name).into()]
    }
}

fn histogram(spread: &Spread) -> Buckets<'_> {
    (&spread.buckets, spread.sum)
}

fn truth(is: bool) -> f64 {
    if is { 1.0 } else { 0.0 }
}
