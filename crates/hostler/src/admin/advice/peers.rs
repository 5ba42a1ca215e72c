//! Advice about clients, and about the services that Hostler uses: memcached and NATS. Knows no pools.

use super::finding::{Finding, percent};
use super::history::View;
use super::table;

/// Failed handshakes that the configuration, the certificate or the load balancer can be the cause of.
const CURABLE: [&str; 9] = [
    "incompatible",
    "no_common_protocol",
    "refused_by_client",
    "unknown_name",
    "no_client_certificate",
    "bad_client_certificate",
    "plain_http",
    "no_proxy_header",
    "proxy_timeout",
];

pub(super) fn find(view: View<'_>, found: &mut Vec<Finding>) {
    clients(view, found);
    handshakes(view, found);
    cache(view, found);
    if view.now.registrar == Some(false) {
        let routes = view.now.registered_routes;
        let text = format!("no connection to NATS: {routes} registered routes stay as they are");
        found.push(Finding::new(table::REGISTRAR_DISCONNECTED, text));
    }
}

fn clients(view: View<'_>, found: &mut Vec<Finding>) {
    let (now, before) = (view.now, view.before);
    let mut add = |row, count: u64, least: u64, what: &str| {
        if count >= least {
            found.push(Finding::new(row, format!("{count} {what}")));
        }
    };
    let refused = now.connections_refused.saturating_sub(before.connections_refused);
    add(
        table::CONNECTIONS_FULL,
        refused,
        10,
        "connections of the last minute were refused (server.max_connections)",
    );
    let of_one =
        |figures: &super::Figures| figures.clients.refused_connections + figures.clients.refused_requests;
    let counted = match now.clients.counted {
        1 => "Only one client address is connected: is it a load balancer?".to_owned(),
        counted => format!("{counted} client addresses are connected"),
    };
    let what = format!(
        "connections or requests of the last minute were refused, because one client had too many. {counted}"
    );
    add(table::CLIENT_LIMITS, of_one(now).saturating_sub(of_one(before)), 10, what.trim_end_matches('.'));
    add(
        table::FLOODS,
        now.flooded.saturating_sub(before.flooded),
        5,
        "HTTP/2 connections of the last minute were closed because of a flood of frames",
    );
    let cut = |figures: &super::Figures| {
        let cut = &figures.cut;
        cut.stalled + cut.too_slow + cut.spool_full + cut.cache_full
    };
    let what = "responses of the last minute were cut off, because the client was too slow";
    add(table::SLOW_CLIENTS, cut(now).saturating_sub(cut(before)), 10, what);
}

fn handshakes(view: View<'_>, found: &mut Vec<Finding>) {
    let (now, before) = (view.now, view.before);
    let failed = |reason: &&&str| {
        let count = |figures: &super::Figures| figures.handshakes_failed.get(**reason).copied().unwrap_or(0);
        count(now).saturating_sub(count(before))
    };
    let Some(reason) = CURABLE.iter().max_by_key(failed) else { return };
    let count = failed(&reason);
    let all = count + now.handshakes.saturating_sub(before.handshakes);
    if count >= 10 && percent(count, all) >= 20 {
        let text =
            format!("{count} connections of the last minute failed before their first request: {reason}");
        found.push(Finding::new(table::HANDSHAKES_FAIL, text));
    }
}

fn cache(view: View<'_>, found: &mut Vec<Finding>) {
    let (Some(now), Some(before)) = (&view.now.cache, &view.before.cache) else { return };
    for server in &now.memcached {
        let name = format!("memcached {}", server.server);
        if let Some(why) = &server.away {
            let text = format!("not in use ({})", super::finding::line(why));
            found.push(Finding::about(table::MEMCACHED_AWAY, &name, &text));
            continue;
        }
        let Some(earlier) = before.memcached.iter().find(|earlier| earlier.server == server.server) else {
            continue;
        };
        let slow = server.slow.saturating_sub(earlier.slow);
        let all = slow + server.answered.saturating_sub(earlier.answered);
        if slow >= 10 && percent(slow, all) >= 5 {
            let text = format!("{} % of the lookups took longer than cache.timeout", percent(slow, all));
            found.push(Finding::about(table::MEMCACHED_SLOW, &name, &text));
        }
    }
    let evicted = now.evicted.saturating_sub(before.evicted);
    let results = |figures: &super::Figures, hits_only: bool| -> u64 {
        let served = ["hit", "stale", "collapsed", "validated"];
        let all = figures.routes.iter().flat_map(|route| &route.cache);
        let counted =
            all.filter(|(word, _)| if hits_only { served.contains(*word) } else { **word != "bypass" });
        counted.map(|(_, count)| count).sum()
    };
    let since = |hits_only| results(view.now, hits_only).saturating_sub(results(view.before, hits_only));
    let share = percent(since(true), since(false));
    if evicted >= 100 && percent(now.bytes, now.limit) >= 90 && share < 50 {
        let text = format!(
            "the full cache removed {evicted} responses in the last minute, and serves {share} % of the requests"
        );
        found.push(Finding::new(table::CACHE_TOO_SMALL, text));
    }
}
