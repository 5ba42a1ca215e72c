//! Builds the routes from the configuration. Knows pools by name and starts nothing.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use hostler_config::{self as config, Buffer, Config, HeaderChange, MatchPattern, PoolMembers, RouteNaming};
use hostler_engine::cache::{Caching, SharedCache};
use hostler_engine::exchange::{Edit, RouteAccount};
use hostler_engine::files::Files;
use hostler_engine::gateway::{
    Changes, EarlyHints, LimitScope, PoolTarget, PoolTargetSettings, RateLimiter, Rewrite, Route, Target,
    Watched, When,
};
use hostler_wire::{ResponseHead, Whole};
use hostler_worker::Slots;

use super::lookups::{self, LookupServices};
use super::pools::RunningPool;
use super::settings;
use crate::admin::RouteSource;

/// All routes of a configuration: for requests, and for the Status in the configured order.
pub(super) struct RouteTables {
    pub table: Vec<(MatchPattern, Arc<Route>)>,
    pub listed: Vec<RouteSource>,
    /// They show whether a request still uses one of the routes.
    pub weak: Vec<Weak<Route>>,
}

/// What routes lead to.
pub(super) struct RouteTarget<'b> {
    /// All configured pools.
    pub pools: &'b [RunningPool],
    pub lookups: &'b LookupServices,
    pub shared_cache: &'b Arc<SharedCache>,
}

/// Builds the routes. A route that existed before keeps its counters, its account and the buckets of its rate limit.
pub(super) fn routes(config: &Config, behind: &RouteTarget<'_>, before: &[RouteSource]) -> RouteTables {
    let (mut table, mut listed, mut weak) = (Vec::new(), Vec::new(), Vec::new());
    for (written, (name, known)) in config.routes.iter().zip(named(config, before)) {
        let kept = RouteSource {
            pattern: name.into(),
            matching: (written.pattern.clone(), written.when.clone()),
            target: String::new(),
            pool: None,
            early_hints: None,
            counters: known.map(|source| source.counters.clone()).unwrap_or_default(),
            account: known.and_then(|source| source.account.clone()),
            rate_limit: known.and_then(|source| source.rate_limit.clone()),
        };
        let source = RouteSource { rate_limit: rate_limit(written, &kept), ..kept };
        let route = Arc::new(route(config, written, behind, &source));
        let target = match &route.target {
            Target::Fixed(fixed) => format!("respond {}", fixed.head.status),
            Target::Files(files) => format!("static {}", files.folder().display()),
            Target::Redirect(redirect) => format!("redirect {redirect}"),
            Target::Native(native) => lookups::names(native),
            Target::Pool(target) => match &route.files_first {
                Some(files) => format!("static {}, pool {}", files.folder().display(), target.name),
                None => format!("pool {}", target.name),
            },
        };
        let (pool, account) = match &route.target {
            Target::Pool(target) => (Some(target.name.clone()), Some(target.account.clone())),
            _ => (None, None),
        };
        let early_hints = route.early_hints.clone();
        listed.push(RouteSource { target, pool, account, early_hints, ..source });
        weak.push(Arc::downgrade(&route));
        table.push((written.pattern.clone(), route));
    }
    // Among routes with the same pattern, those with conditions are asked first.
    table.sort_by_key(|(_, route)| route.when.is_none());
    RouteTables { table, listed, weak }
}

/// The name of each route, and the route from before the reload whose counters it continues. This is the route with the same pattern and
/// conditions. Its name stays, too, although the number in a name is the place in the file and may differ now. If the conditions have changed, it
/// is the route with the same name, unless another route continues that one.
fn named<'b>(config: &Config, before: &'b [RouteSource]) -> Vec<(String, Option<&'b RouteSource>)> {
    let by_matching: HashMap<_, _> = before.iter().map(|source| (&source.matching, source)).collect();
    let by_name: HashMap<&str, _> = before.iter().map(|source| (&*source.pattern, source)).collect();
    let matching = |route: &config::Route| (route.pattern.clone(), route.when.clone());
    let equal = config.routes.iter().map(|route| by_matching.get(&matching(route)).copied());
    let equal: Vec<_> = equal.collect();
    let mut naming = RouteNaming::default();
    equal.iter().flatten().for_each(|source| naming.keep(&source.pattern));
    let name = |(route, equal): (&config::Route, Option<&'b RouteSource>)| match equal {
        Some(source) => (source.pattern.to_string(), Some(source)),
        None => {
            let name = naming.name(&route.pattern, route.when.as_ref());
            let known = by_name.get(name.as_str()).copied();
            (name, known)
        }
    };
    config.routes.iter().zip(equal).map(name).collect()
}

fn rate_limit(written: &config::Route, before: &RouteSource) -> Option<Arc<RateLimiter>> {
    let rule = written.rate_limit.as_ref();
    RateLimiter::new(LimitScope::Route, &before.pattern, rule, before.rate_limit.as_ref())
}

fn route(config: &Config, written: &config::Route, behind: &RouteTarget<'_>, source: &RouteSource) -> Route {
    let when = written.when.as_ref().map(|when| When::new(&written.pattern, when));
    let identity = when.as_ref().map_or(0, When::identity);
    let pool = match &written.target {
        config::Target::Pool { name, .. } => behind.pools.iter().find(|pool| *pool.name == **name),
        _ => None,
    };
    let of_pool = pool.and_then(|pool| pool.rate_limit.clone());
    Route {
        pattern: source.pattern.clone(),
        limits: source.rate_limit.iter().cloned().chain(of_pool).collect(),
        when,
        target: match &written.target {
            config::Target::Respond(respond) => Target::Fixed(fixed(respond)),
            config::Target::Static(settings) => Target::Files(files(written, settings)),
            config::Target::Redirect(redirect) => Target::Redirect(redirect.clone()),
            config::Target::Native { geo, postal } => {
                Target::Native(behind.lookups.native(&written.pattern, *geo, *postal))
            }
            config::Target::Pool { name: _, request_timeout } => {
                let pool = pool.expect("invariant: a resolved route names a pool that exists");
                let (ledger, before) = (&pool.meter.ledger, source.account.as_ref());
                let account = RouteAccount::after_reload(before, ledger, &source.pattern, &source.counters);
                let own = written.fair.as_deref().and_then(|by| Some(pool.fair.as_ref()?.of_route(by)));
                Target::Pool(PoolTarget {
                    account,
                    fair: own.or_else(|| pool.fair.clone()),
                    ..pool_target(config, pool, &source.pattern, *request_timeout)
                })
            }
        },
        max_body: match written.target {
            config::Target::Native { .. } => hostler_native::MOST_BODY,
            _ => written.max_body_size,
        },
        streams_body: written.buffer == Buffer::None,
        traces: written.trace,
        priority: settings::priority(written.priority),
        kind: None,
        fallback: written.fallback.clone(),
        files_first: written.files_first.as_ref().map(|settings| files(written, settings)),
        caching: written
            .caching
            .as_ref()
            .map(|caching| Arc::new(self::caching(caching, behind.shared_cache, identity))),
        early_hints: early_hints(written, behind.pools),
        changes: changes(written, behind.lookups),
        counters: source.counters.clone(),
    }
}

/// Learns anew after each reload, because what the route leads to may have changed.
fn early_hints(written: &config::Route, pools: &[RunningPool]) -> Option<Arc<EarlyHints>> {
    let (config::EarlyHints { links, http1 }, config::Target::Pool { name, .. }) =
        (written.early_hints.as_ref()?, &written.target)
    else {
        return None;
    };
    let pool = pools.iter().find(|pool| *pool.name == **name)?;
    Some(Arc::new(EarlyHints::new(links, *http1, &pool.newest_release)))
}

fn files(written: &config::Route, settings: &config::StaticFiles) -> Arc<Files> {
    let takes_below = matches!(written.pattern.path, config::PathPattern::Prefix(_));
    Arc::new(Files::new(Arc::new(settings.clone()), takes_below, written.files_first.is_some()))
}

fn caching(written: &config::Caching, shared_cache: &Arc<SharedCache>, route: u64) -> Caching {
    let config::Caching { rules, query, stores, collapses } = written.clone();
    Caching {
        rules,
        query,
        route,
        stores,
        collapses,
        shared_cache: shared_cache.clone(),
        told: AtomicBool::new(false),
    }
}

fn changes(written: &config::Route, lookups: &LookupServices) -> Changes {
    let config::Changes { request, answer, rewrite, geo_headers } = &written.changes;
    Changes {
        to_member: edits(request),
        to_client: edits(answer),
        rewrite: rewrite.as_ref().map(|config::Rewrite { strip, add }| Rewrite {
            strip: strip.as_str().into(),
            add: add.as_str().into(),
        }),
        places: lookups.geo.clone().filter(|_| *geo_headers),
        compress: written.compress.clone(),
    }
}

fn edits(changes: &[HeaderChange]) -> Option<Arc<[Edit]>> {
    let edit = |change: &HeaderChange| match change.clone() {
        HeaderChange::Set(name, value) => Edit::Set(name.into(), value.into()),
        HeaderChange::Add(name, value) => Edit::Add(name.into(), value.into()),
        HeaderChange::Default(name, value) => Edit::Default(name.into(), value.into()),
        HeaderChange::Remove(name) => Edit::Remove(name.into()),
    };
    (!changes.is_empty()).then(|| changes.iter().map(edit).collect())
}

fn pool_target(config: &Config, pool: &RunningPool, pattern: &str, request_timeout: Duration) -> PoolTarget {
    let settings = PoolTargetSettings {
        queue_timeout: pool.settings.queue.timeout,
        request_timeout,
        connect_timeout: pool.settings.connect_timeout,
        hang_timeout: match &pool.settings.source {
            PoolMembers::Workers(workers) => Some(workers.hang_timeout),
            PoolMembers::Members(_) => None,
        },
        hangs_up_at_once: !matches!(pool.settings.slots(), Slots::Fixed(_)),
        tunnel_idle_timeout: pool.settings.tunnel_idle_timeout,
        response_idle_timeout: pool.settings.response_idle_timeout,
        stream_idle_timeout: pool.settings.stream_idle_timeout,
        limits: settings::limits(&config.server),
        max_interim_answers: config.server.max_interim_answers,
    };
    let (wake_timeout, sticky, fair) = (pool.settings.wake_timeout, pool.sticky.clone(), pool.fair.clone());
    let target = PoolTarget::new(pool.pool.clone(), pool.meter.clone(), pool.poison.clone(), settings);
    let hedge = pool.hedging.as_ref().map(|hedging| hedging.of_route(pattern));
    PoolTarget {
        wake_timeout,
        sticky,
        fair,
        costs: pool.costs.clone(),
        low: pool.low.clone(),
        hedge,
        ..target
    }
}

fn fixed(respond: &config::Respond) -> Whole {
    let mut head = ResponseHead::with_status(respond.status.as_u16());
    for (name, value) in &respond.headers {
        head.fields.add(name.as_str().as_bytes(), value.as_bytes());
    }
    Whole::new(head, respond.body.bytes())
}

/// The pools of configured routes. Pools of registered routes are not included.
pub(super) fn watched(config: &Config, pools: &[RunningPool]) -> Vec<Watched> {
    let leads_to = |route: &config::Route, pool: &str| matches!(&route.target, config::Target::Pool { name, .. } if name == pool);
    let is_used = |pool: &&RunningPool| config.routes.iter().any(|route| leads_to(route, &pool.name));
    let wanted = &config.server.health_pools;
    let watched = pools.iter().filter(is_used).map(|pool| Watched {
        name: pool.name.clone(),
        pool: pool.pool.clone(),
        has_workers: pool.supervisor.is_some(),
        counts: wanted.is_empty() || wanted.iter().any(|name| **name == *pool.name),
    });
    watched.collect()
}
