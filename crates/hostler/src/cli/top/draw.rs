//! The screen of `hostler top`. Knows no terminal: it writes into a buffer.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use serde_json::Value;

use super::page::{TopPage, cut};
use super::requests;
use super::state::{GRANTED, TopState, TopView, answers, number, refusals};
use crate::admin::table::{array, bytes, line, micros, millis, text};

const KEYS: &str = "q quit  r requests  tab pools/workers  s sort  p pause  ? help";
const HELP: [&str; 17] = [
    "q, Esc, Ctrl-C    quit",
    "up, down          choose a pool or a worker",
    "tab, left, right  change between pools and workers",
    "r                 next view: workers, oldest requests, slowest requests",
    "1, 2, 3           workers, oldest requests, slowest requests",
    "s                 order: number, rate, load (queue of pools, memory of workers)",
    "p, space          pause the screen",
    "?                 this help",
    "",
    "wait, work        queue wait and worker time, percentiles since the start",
    "refused           refused requests in a second; ! before a pool: overloaded",
    "lane              one mark for each slot: # in use, . free",
    "loop              share of time that the event loop works",
    "oldest            requests in a queue or at a worker now, of all pools",
    "slowest           requests that ended in the last minute, while top runs",
    "",
    "The figures are those of `hostler status`.",
];
/// A lane of a worker with more slots shows only so many.
const LANE: usize = 16;

/// Everything, with the keys in the last line.
pub(super) fn screen(state: &TopState, area: Rect, buffer: &mut Buffer) {
    let body = Rect { height: area.height.saturating_sub(1), ..area };
    if state.helps {
        let mut page = TopPage { buffer: &mut *buffer, area: body, row: 0, is_coloured: state.is_coloured };
        page.heading("hostler top");
        HELP.iter().for_each(|text| page.line(text, Style::new()));
    } else {
        content(state, body, buffer, &[state.view]);
    }
    let mut notes = format!("{KEYS}  [{}]", state.sort.name());
    if state.paused {
        notes.insert_str(0, "PAUSED  ");
    }
    let footer = Rect { y: area.y + body.height, height: area.height.min(1), ..area };
    let mut page = TopPage { buffer, area: footer, row: 0, is_coloured: state.is_coloured };
    page.line(&notes, Style::new().add_modifier(Modifier::DIM));
}

/// Everything but the keys, with these views below the pools.
pub(super) fn content(state: &TopState, area: Rect, buffer: &mut Buffer, views: &[TopView]) {
    let mut page = TopPage { buffer, area, row: 0, is_coloured: state.is_coloured };
    header(state, &mut page);
    if state.now.is_none() {
        return;
    }
    let refused = refusals(state.status());
    advice(state, &mut page);
    pools(state, &mut page);
    // The last lines belong to the refusals.
    let kept = if refused.is_empty() { 0 } else { 2 };
    page.area.height = area.height.saturating_sub(kept);
    for view in views {
        match view {
            TopView::Workers => workers(state, &mut page),
            TopView::Oldest => requests::oldest(state.status(), &mut page),
            TopView::Slowest => requests::slowest(state.status(), &mut page),
        }
    }
    page.area.height = area.height;
    if !refused.is_empty() {
        let all: Vec<_> = refused.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        page.heading("refusals since the start");
        page.line(&all.join("  "), Style::new());
    }
}

fn header(state: &TopState, page: &mut TopPage<'_>) {
    let status = state.status();
    if !status.is_null() {
        let cpu = state.total_rate(|status| number(&status["process"]["cpu_ms"])) / 10.0;
        let text = format!(
            "hostler {} pid {} {}, up {}",
            text(&status["version"]),
            status["pid"],
            text(&status["state"]),
            millis(&status["uptime_ms"]),
        );
        page.line(&text, Style::new().add_modifier(Modifier::BOLD));
        let text = format!(
            "{:.0} req/s  {} connections  cpu {cpu:.0} %  {}",
            state.total_rate(answers),
            status["connections"]["open"],
            bytes(&status["memory"]),
        );
        page.line(&text, Style::new());
    }
    match &state.error {
        Some(why) => {
            let style = page.colour(Color::Red);
            page.words(&format!("{why}; trying again"), style);
        }
        None if status.is_null() => page.line(&format!("asking {}", state.address), Style::new()),
        None => {}
    }
}

fn advice(state: &TopState, page: &mut TopPage<'_>) {
    let all = array(&state.status()["advice"]);
    // On a small screen the pools and the workers need the room.
    let most = (page.left() / 8).max(1);
    for one in all.iter().take(most) {
        let severity = text(&one["severity"]);
        let style = match severity {
            "critical" => page.colour(Color::Red),
            "warning" => page.colour(Color::Yellow),
            _ => Style::new(),
        };
        let (what, action) = (line(&one["text"]), line(&one["action"]));
        let stop = if what.ends_with('?') { "" } else { "." };
        page.words(&format!("{severity}: {what}{stop}"), style);
        page.words(&format!("  {action}"), Style::new());
    }
    if all.len() > most {
        page.line(&format!("and {} more: hostler status", all.len() - most), Style::new());
    }
}

fn pools(state: &TopState, page: &mut TopPage<'_>) {
    let pools = state.pools();
    let width = page.column(12, 80, pools.iter().map(|pool| text(&pool["name"])));
    page.heading(&format!(
        "  {:<width$}{:>8}{:>9}{:>7}{:>9}{:>8}{:>9}{:>8}{:>8}",
        "pool", "slots", "queue", "req/s", "wait p50", "p99", "work p50", "p99", "refused"
    ));
    let (chosen, room) = (state.chosen_pool(), (page.left() / 3).max(1));
    let skipped = (chosen + 1).saturating_sub(room);
    for (at, pool) in pools.iter().enumerate().skip(skipped).take(room) {
        let refused = |pool: &Value| {
            [
                "refused_full",
                "refused_overload",
                "refused_tunnels",
                "refused_streams",
                "refused_aim",
                "expired",
            ]
            .iter()
            .map(|key| number(&pool["counters"][*key]))
            .sum()
        };
        let times = |time: &str, key: &str| micros(&pool["times"][time][key]);
        let text = format!(
            "{}{}{:<width$}{:>8}{:>9}{:>7.0}{:>9}{:>8}{:>9}{:>8}{:>8.0}{}",
            if at == chosen { '>' } else { ' ' },
            if pool["overloaded"] == true { '!' } else { ' ' },
            cut(text(&pool["name"]), width - 1),
            format!("{}/{}", pool["in_use"], pool["slots"]),
            format!("{}/{}", pool["queue_length"], pool["queue_limit"]),
            state.pool_rate(pool, GRANTED),
            times("queue_wait", "p50_us"),
            times("queue_wait", "p99_us"),
            times("worker_time", "p50_us"),
            times("worker_time", "p99_us"),
            state.pool_rate(pool, refused),
            flags(pool),
        );
        let mut style = if pool["overloaded"] == true { page.colour(Color::Red) } else { Style::new() };
        if at == chosen && !state.in_workers {
            style = style.add_modifier(Modifier::REVERSED);
        }
        page.line(&text, style);
    }
}

fn flags(pool: &Value) -> String {
    let all = [("overloaded", " OVERLOADED"), ("paused", " PAUSED"), ("asleep", " asleep")];
    all.into_iter().filter(|(key, _)| pool[*key] == true).map(|(_, flag)| flag).collect()
}

fn workers(state: &TopState, page: &mut TopPage<'_>) {
    let (pools, workers) = (state.pools(), state.workers());
    let (Some(pool), Some(chosen)) = (pools.get(state.chosen_pool()), state.chosen_worker()) else { return };
    let width = page.column(16, 90, workers.iter().map(|worker| text(&worker["endpoint"])));
    page.heading(&format!(
        "  {:<width$}{:<13}{:>7}{:>7}{:>6}{:>10}{:>9}  lane",
        "worker", "state", "busy", "req/s", "loop", "memory", "restarts"
    ));
    let about = about(workers[chosen]);
    let room = page.left().saturating_sub(about.len()).max(1);
    let skipped = (chosen + 1).saturating_sub(room);
    for (at, worker) in workers.iter().enumerate().skip(skipped).take(room) {
        let name = worker["index"]
            .as_u64()
            .map_or_else(|| text(&worker["endpoint"]).to_owned(), |index| index.to_string());
        let state_of = match worker["state"].is_string() {
            true => crate::admin::table::state_of_worker(worker),
            false => crate::admin::table::state_of(worker),
        };
        let usage =
            worker["utilisation"].as_f64().map_or("-".into(), |share| format!("{:.0}%", share * 100.0));
        let restarts = worker["restarts"].as_u64().map_or("-".into(), |restarts| restarts.to_string());
        let text = format!(
            "{} {:<width$}{:<13}{:>7}{:>7.0}{usage:>6}{:>10}{restarts:>9}  {}",
            if at == chosen { '>' } else { ' ' },
            cut(&name, width - 1),
            cut(state_of, 12),
            format!("{}/{}", worker["in_use"], worker["slots"]),
            state.worker_rate(pool, worker),
            bytes(&worker["memory"]),
            lane(worker),
        );
        let mut style = match state_of {
            "ready" | "ok" | "standby" => Style::new(),
            "booting" | "warming" | "retiring" | "blocked" => page.colour(Color::Yellow),
            _ => page.colour(Color::Red),
        };
        if at == chosen && state.in_workers {
            style = style.add_modifier(Modifier::REVERSED);
        }
        page.line(&text, style);
    }
    about.iter().for_each(|text| page.line(text, Style::new().add_modifier(Modifier::DIM)));
}

/// One mark for each slot.
fn lane(worker: &Value) -> String {
    let (slots, in_use) = (number(&worker["slots"]) as usize, number(&worker["in_use"]) as usize);
    let marks = (0..slots.max(in_use)).map(|slot| if slot < in_use { '#' } else { '.' });
    let more = if slots.max(in_use) > LANE { "+" } else { "" };
    marks.take(LANE).chain(more.chars()).collect()
}

/// What the row of a worker has no room for.
fn about(worker: &Value) -> Vec<String> {
    let mut all = Vec::new();
    if worker["pid"].is_number() {
        all.push(format!(
            "    pid {}, up {}, {} requests, {} tunnels, {} streams",
            worker["pid"],
            millis(&worker["uptime_ms"]),
            worker["requests"],
            worker["tunnels"],
            worker["streams"],
        ));
    }
    if worker["blocked_ms"].is_number() {
        let blocked = millis(&worker["blocked_ms"]);
        all.push(format!("    blocked for {blocked}: it has requests, and its event loop does not turn"));
    }
    for (key, what) in [
        ("last_exit", "last exit"),
        ("last_error", "last error"),
        ("slots_reason", "slots"),
        ("recycled", "recycled"),
    ] {
        if worker[key].is_string() {
            all.push(format!("    {what}: {}", line(&worker[key])));
        }
    }
    if let [innermost, ..] = array(&worker["stack"]) {
        all.push(format!("    hung {} ago in {}", millis(&worker["hung_ago_ms"]), line(innermost)));
    }
    all
}
