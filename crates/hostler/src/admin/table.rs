//! The Status as a text table. Reads the JSON and not the types, so that it can also show the Status of another version.

use std::fmt::Write;
use std::time::Duration;

use hostler_engine::journal::on_one_line;
use serde_json::Value;

pub fn table(status: &Value) -> String {
    let mut out = String::new();
    let uptime = millis(&status["uptime_ms"]);
    let _ = writeln!(
        out,
        "hostler {} (pid {}) {}, up {uptime}, {} connections{}{}, {}",
        text(&status["version"]),
        status["pid"],
        text(&status["state"]),
        status["connections"]["open"],
        if_any(&status["connections"]["tunnels"], " of them tunnels"),
        if_any(&status["connections"]["streams"], " streams"),
        bytes(&status["memory"]),
    );
    write_advice(&mut out, array(&status["advice"]));
    let log = &status["log"];
    if log["dropped"].as_u64() > Some(0) || log["stuck_ms"].is_number() {
        let stuck = match log["stuck_ms"].as_u64() {
            Some(_) => format!(", the reader of the log has read nothing for {}", millis(&log["stuck_ms"])),
            None => log["last_error"].as_str().map_or(String::new(), |error| format!(": {error}")),
        };
        let _ = writeln!(out, "log: {} lines dropped{stuck}", log["dropped"]);
    }
    let compression = &status["compression"];
    if compression["encoded"].as_u64() > Some(0) {
        let spared = if_any(&compression["spared"], " others sent uncompressed to save memory or CPU");
        let (before, after) = (bytes(&compression["bytes_before"]), bytes(&compression["bytes_after"]));
        let _ = writeln!(out, "compressed {} responses, {before} to {after}{spared}", compression["encoded"]);
    }
    let geo = &status["geo"];
    if geo.is_object() {
        let databases: Vec<_> = array(&geo["databases"]).iter().map(line).collect();
        let (unknown, broken) =
            (if_any(&geo["unknown"], " unknown"), if_any(&geo["broken"], " in damaged records"));
        let _ = writeln!(
            out,
            "geo: {} addresses looked up{unknown}{broken}, in {}",
            geo["lookups"],
            databases.join(", ")
        );
    }
    super::cache::write(&mut out, &status["cache"], bytes);
    let postal = &status["postal"];
    if postal.is_object() {
        let (places, countries) = (&postal["places"], &postal["countries"]);
        let memory = bytes(&postal["bytes"]);
        let _ = writeln!(out, "postal: {places} places in {countries} countries, {memory}");
    }
    let reload = &status["last_reload"];
    if reload["ok"] == false {
        let why: Vec<_> = array(&reload["text"]).iter().map(line).collect();
        let _ = writeln!(out, "last reload, {}: not applied: {}", text(&reload["at"]), why.join("; "));
    }
    for pool in array(&status["pools"]) {
        write_pool(&mut out, pool);
    }
    write_routes(&mut out, status);
    out
}

/// What is wrong, and what to do.
fn write_advice(out: &mut String, all: &[Value]) {
    for advice in all {
        let (what, action) = (line(&advice["text"]), line(&advice["action"]));
        let stop = if what.ends_with('?') { "" } else { "." };
        let (severity, page) = (text(&advice["severity"]), text(&advice["page"]));
        let _ = writeln!(out, "{severity}: {what}{stop} {action} (docs/{page})");
    }
}

fn write_pool(out: &mut String, pool: &Value) {
    let mut notes = if_any(&pool["tunnels"], " tunnels") + &if_any(&pool["streams"], " streams");
    for (key, note) in [("asleep", ", asleep"), ("paused", ", PAUSED"), ("overloaded", ", OVERLOADED")] {
        notes.push_str(if pool[key] == true { note } else { "" });
    }
    let _ = writeln!(
        out,
        "\npool {}: {} of {} slots in use, {} waiting (limit {}, oldest {}){notes}",
        text(&pool["name"]),
        pool["in_use"],
        pool["slots"],
        pool["queue_length"],
        pool["queue_limit"],
        millis(&pool["oldest_wait_ms"]),
    );
    let mut rows = vec![["", "count", "p50", "p90", "p99", "max"].map(String::from).to_vec()];
    for (name, key) in
        [("queue wait", "queue_wait"), ("slot hold", "slot_hold"), ("worker time", "worker_time")]
    {
        let times = &pool["times"][key];
        let mut row = vec![name.to_owned(), times["count"].to_string()];
        row.extend(["p50_us", "p90_us", "p99_us", "max_us"].map(|key| micros(&times[key])));
        rows.push(row);
    }
    write_rows(out, &rows);
    write_rollout(out, &pool["rollout"]);
    write_scaling(out, &pool["scaling"]);
    match pool.get("workers") {
        Some(workers) => write_workers(out, array(workers), array(&pool["spares"])),
        None => write_members(out, array(&pool["members"])),
    }
    write_rate_limit(out, "", &pool["rate_limit"]);
    write_ledger(out, &pool["ledger"]);
    for kept_off in array(&pool["kept_off"]) {
        let left = millis(&kept_off["for_ms"]);
        let _ = writeln!(
            out,
            "  refused for another {left}, because it made workers die: {}",
            line(&kept_off["request"])
        );
    }
}

/// A limit, also one that only counts.
fn write_rate_limit(out: &mut String, of: &str, limit: &Value) {
    if limit.is_object() {
        let would = if_any(&limit["would_refuse"], " would have been refused");
        let refused = if_any(&limit["refused"], " refused");
        let _ = writeln!(out, "  rate limit{of}: {}{refused}{would}", line(&limit["limit"]));
    }
}

/// The routes and the keys that have cost the most in the last minute.
fn write_ledger(out: &mut String, ledger: &Value) {
    const MOST_ROWS: usize = 5;
    let has_cpu = ledger["unowned_cpu_ms"].is_object();
    let what = if has_cpu { "worker CPU" } else { "time in slots" };
    let share = |row: &Value| row["share_percent"].as_f64().filter(|share| *share > 0.0);
    let route = |row: &Value| Some(format!("{} {} %", line(&row["name"]), share(row)?));
    // Of a key the cost itself, too: it says what a client takes, however many others there are.
    let time = |row: &Value| millis(&row[if has_cpu { "cpu_ms" } else { "slot_hold_ms" }]["1m"]);
    let key = |row: &Value| Some(format!("{} ({})", route(row)?, time(row)));
    let mut write = |(who, first): (&str, &str), rows: &Value, words: &dyn Fn(&Value) -> Option<String>| {
        let shown = array(rows).iter().take(MOST_ROWS);
        let mut texts: Vec<_> = shown.clone().filter_map(words).collect();
        let others = 100.0 - shown.filter_map(share).sum::<f64>();
        // Each share is rounded, so a little is missing even if all are shown.
        if !texts.is_empty() && others >= 0.5 {
            texts.push(format!("others {} %", (others * 10.0).round() / 10.0));
        }
        if !texts.is_empty() {
            let _ = writeln!(out, "  {what} of the last minute{who}: {first}{}", texts.join(", "));
        }
    };
    write(("", "route "), &ledger["routes"], &route);
    write((" by key", ""), &ledger["keys"], &key);
}

/// A restart that is under way or has failed. One that has succeeded shows in the workers' rows.
fn write_rollout(out: &mut String, rollout: &Value) {
    if rollout["running_ms"].is_number() {
        let (done, total) = (&rollout["done"], &rollout["total"]);
        let since = millis(&rollout["running_ms"]);
        let _ = writeln!(out, "  restarting for {since}: {done} of {total} workers are new");
    } else if rollout["last"]["succeeded"] == false {
        let ago = millis(&rollout["last"]["ago_ms"]);
        let _ = writeln!(out, "  restart failed {ago} ago: {}", line(&rollout["last"]["result"]));
    }
}

/// How many workers there should be, if the number is not fixed.
fn write_scaling(out: &mut String, scaling: &Value) {
    if scaling.is_object() {
        let (wanted, min, max) = (&scaling["wanted"], &scaling["min"], &scaling["max"]);
        let why = scaling["reason"].as_str().map_or(String::new(), |why| format!("; {why}"));
        let _ = writeln!(out, "  workers wanted: {wanted} (min {min}, max {max}){why}");
    }
}

fn write_workers(out: &mut String, workers: &[Value], spares: &[Value]) {
    let head = [
        "worker",
        "state",
        "pid",
        "uptime",
        "busy",
        "tunnels",
        "streams",
        "requests",
        "restarts",
        "memory",
        "last exit",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    let all = workers.iter().map(|worker| (worker, "")).chain(spares.iter().map(|spare| (spare, " (spare)")));
    for (worker, role) in all {
        let mut state = state_of_worker(worker).to_owned() + role;
        if worker["blocked_ms"].is_number() {
            let _ = write!(state, " for {}", millis(&worker["blocked_ms"]));
        }
        if worker["drain_ends_in_ms"].is_number() {
            let _ = write!(state, " for another {}", millis(&worker["drain_ends_in_ms"]));
        }
        if worker["restarts_in_ms"].is_number() {
            let _ = write!(state, ", starts in {}", millis(&worker["restarts_in_ms"]));
        }
        rows.push(vec![
            worker["index"].to_string(),
            state,
            plain(&worker["pid"]),
            millis(&worker["uptime_ms"]),
            format!("{}/{}", worker["in_use"], worker["slots"]),
            plain(&worker["tunnels"]),
            plain(&worker["streams"]),
            worker["requests"].to_string(),
            worker["restarts"].to_string(),
            bytes(&worker["memory"]),
            plain(&worker["last_exit"]),
        ]);
    }
    write_rows(out, &rows);
    write_cpus(out, workers);
    // All workers of a pool have the same reason, within one slot.
    if let Some(reason) = workers.iter().find_map(|worker| worker["slots_reason"].as_str()) {
        let _ = writeln!(out, "  slots: {reason}");
    }
    for worker in workers.iter().chain(spares) {
        let index = &worker["index"];
        let is_at_work = worker["state"] == "ready" || worker["state"] == "standby";
        if !is_at_work && worker["last_error"].is_string() {
            let _ = writeln!(out, "  worker {index}: {}", line(&worker["last_error"]));
        }
        if let [innermost, ..] = array(&worker["stack"]) {
            let ago = millis(&worker["hung_ago_ms"]);
            let _ = writeln!(out, "  worker {index} hung {ago} ago in {}", line(innermost));
        }
    }
}

/// The CPUs of the workers, and why they have them. Nothing if no worker has CPUs of its own and no reason is known.
fn write_cpus(out: &mut String, workers: &[Value]) {
    let reason = workers.iter().find_map(|worker| worker["cpus_reason"].as_str());
    let own = workers
        .iter()
        .filter_map(|worker| Some(format!("worker {} on {}", worker["index"], worker["cpus"].as_str()?)));
    let own = own.collect::<Vec<_>>().join(", ");
    let own = if own.is_empty() { "all for each worker" } else { &own };
    match reason {
        Some(reason) => drop(writeln!(out, "  CPUs: {own} ({reason})")),
        None if own.starts_with("worker") => drop(writeln!(out, "  CPUs: {own}")),
        None => {}
    }
}

fn write_members(out: &mut String, members: &[Value]) {
    let mut rows =
        vec![["member", "busy", "tunnels", "streams", "requests", "age", "state"].map(String::from).to_vec()];
    for member in members {
        rows.push(vec![
            text(&member["endpoint"]).to_owned(),
            format!("{}/{}", member["in_use"], member["slots"]),
            plain(&member["tunnels"]),
            plain(&member["streams"]),
            member["granted"].to_string(),
            millis(&member["joined_ms"]),
            state_of(member).into(),
        ]);
    }
    write_rows(out, &rows);
}

/// A drained worker is called so: "out of rotation" is a worker of which a heap snapshot is taken, too. One that is blocked is in the pool, but
/// its requests wait.
pub(crate) fn state_of_worker(worker: &Value) -> &str {
    let own = [("drained_ms", "drained"), ("blocked_ms", "blocked")];
    let state = own.into_iter().find(|(since, _)| worker[*since].is_number());
    state.map_or_else(|| text(&worker["state"]), |(_, state)| state)
}

pub(crate) fn state_of(member: &Value) -> &'static str {
    let states = [("unhealthy", "unhealthy"), ("ejected", "ejected"), ("unreachable", "unreachable")];
    let state = states.into_iter().find(|(flag, _)| member[*flag] == true);
    state.map_or("ok", |(_, state)| state)
}

fn write_routes(out: &mut String, status: &Value) {
    let mut rows = vec![
        ["route", "to", "2xx", "3xx", "4xx", "5xx", "retries", "refusals", "fallbacks"]
            .map(String::from)
            .to_vec(),
    ];
    let row = |name: &str, to: &str, counts: &Value| {
        let mut row = vec![name.to_owned(), to.to_owned()];
        row.extend(["2xx", "3xx", "4xx", "5xx"].map(|class| plain(&counts["answers"][class])));
        row.push(plain(&counts["retries"]));
        row.extend(["refusals", "fallbacks"].map(|kind| by_reason(&counts[kind])));
        row
    };
    for route in array(&status["routes"]) {
        rows.push(row(text(&route["pattern"]), text(&route["target"]), route));
    }
    rows.push(row("(none)", "", &status["unrouted"]));
    if status["registered"].is_object() {
        rows.push(row("(registered)", "", &status["registered"]));
    }
    out.push('\n');
    write_rows(out, &rows);
    for route in array(&status["routes"]) {
        write_rate_limit(out, &format!(" of {}", text(&route["pattern"])), &route["rate_limit"]);
    }
}

fn by_reason(counts: &Value) -> String {
    let counts = counts.as_object().into_iter().flatten();
    counts.map(|(reason, n)| format!("{reason} {n}")).collect::<Vec<_>>().join(", ")
}

/// Each column is as wide as its widest cell. The last column has no padding.
pub(super) fn write_rows(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        let mut line = String::from("  ");
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// Zero and null give an empty text, so that the line names only what there is.
fn if_any(count: &Value, what: &str) -> String {
    count.as_u64().filter(|count| *count > 0).map_or(String::new(), |count| format!(", {count}{what}"))
}

pub(crate) fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

/// Text from a worker or a file, on one line.
pub(crate) fn line(value: &Value) -> String {
    on_one_line(text(value)).collect()
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(crate) fn millis(value: &Value) -> String {
    value.as_u64().map_or("-".into(), |ms| match ms {
        0..1000 => format!("{ms}ms"),
        _ => humantime::format_duration(Duration::from_secs(ms / 1000)).to_string(),
    })
}

pub(crate) fn micros(value: &Value) -> String {
    value.as_u64().map_or("-".into(), |us| match us {
        0..1000 => format!("{us}us"),
        1000..1_000_000 => format!("{:.1}ms", us as f64 / 1e3),
        _ => format!("{:.2}s", us as f64 / 1e6),
    })
}

pub(crate) fn bytes(value: &Value) -> String {
    value.as_u64().map_or("-".into(), |bytes| format!("{:.1} MiB", bytes as f64 / 1048576.0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_spare_that_does_not_start_says_why() {
        let process = |index: usize, state: &str| json!({ "index": index, "state": state, "last_error": "exit code 1" });
        let mut out = String::new();
        write_workers(&mut out, &[process(1, "ready")], &[process(2, "standby"), process(3, "backing off")]);
        let errors: Vec<_> = out.lines().filter(|line| line.contains("exit code 1")).collect();
        assert_eq!(errors, ["  worker 3: exit code 1"]);
    }

    #[test]
    fn a_blocked_worker_is_called_so() {
        let worker = [json!({ "index": 1, "state": "ready", "blocked_ms": 12_345 })];
        let mut out = String::new();
        write_workers(&mut out, &worker, &worker);
        assert!(out.contains("  blocked for 12s  ") && out.contains("  blocked (spare) for 12s  "), "{out}");
    }

    #[test]
    fn the_routes_that_are_not_named_have_a_share_together() {
        let shown = |shares: &[f64]| {
            let row = |(at, share)| json!({ "name": format!("/{at}"), "share_percent": share });
            let rows: Vec<_> = shares.iter().enumerate().map(row).collect();
            let mut out = String::new();
            write_ledger(&mut out, &json!({ "routes": rows }));
            out
        };
        assert_eq!(
            shown(&[50.0, 20.0, 9.5, 5.0, 4.0, 3.0]),
            "  time in slots of the last minute: route /0 50 %, /1 20 %, /2 9.5 %, /3 5 %, /4 4 %, others 11.5 %\n"
        );
        assert_eq!(shown(&[66.7, 33.3]), "  time in slots of the last minute: route /0 66.7 %, /1 33.3 %\n");
        assert_eq!(shown(&[]), "");
    }
}
