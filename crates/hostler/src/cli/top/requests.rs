//! Single requests on the screen of `hostler top`: the oldest now and the slowest of the last minute. Knows no terminal.

use ratatui::style::{Color, Style};
use serde_json::Value;

use super::page::{TopPage, cut};
use crate::admin::table::{array, micros, text};

/// The text of a list of Hostler's that has no single requests.
const UNKNOWN: &str = "  this Hostler does not show single requests; it may be an older version";
/// From this age on, in microseconds, a request is marked.
const OLD: u64 = 1_000_000;
const VERY_OLD: u64 = 10_000_000;

/// Requests that wait or are at a worker, the oldest first.
pub(super) fn oldest(status: &Value, page: &mut TopPage<'_>) {
    page.heading(&format!("  {:>9}  {:<20} route (oldest requests now)", "age", "where"));
    let Some(all) = list(status, "oldest", "  no request is under way", page) else { return };
    for request in all.iter().take(page.left()) {
        let pool = text(&request["pool"]);
        let place = match request["lane"].as_str() {
            Some(lane) => format!("{pool}/{lane}"),
            None => format!("{pool}: in the queue"),
        };
        let line = format!(
            "  {:>9}  {:<20} {}",
            micros(&request["age_us"]),
            cut(&place, 20),
            cut(text(&request["route"]), 200)
        );
        let style = mark(&request["age_us"], page);
        page.line(&line, style);
    }
}

/// Requests that have ended, the slowest first.
pub(super) fn slowest(status: &Value, page: &mut TopPage<'_>) {
    page.heading(&format!(
        "  {:>9}{:>9}{:>10}  {:<7}{:<16} route (slowest of the last minute)",
        "total", "waited", "at worker", "status", "worker"
    ));
    let none = "  no request has ended in the last minute while top ran";
    let Some(all) = list(status, "slowest", none, page) else { return };
    for request in all.iter().take(page.left()) {
        let lane = request["lane"].as_str();
        let place = lane.map_or("-".into(), |lane| format!("{}/{lane}", text(&request["pool"])));
        let refusal = request["refusal"].as_str().map_or(String::new(), |reason| format!(" ({reason})"));
        let line = format!(
            "  {:>9}{:>9}{:>10}  {:<7}{:<16} {}{refusal}",
            micros(&request["total_us"]),
            micros(&request["wait_us"]),
            micros(&request["hold_us"]),
            request["status"]
                .as_u64()
                .filter(|status| *status > 0)
                .map_or("left".into(), |status| status.to_string()),
            cut(&place, 16),
            cut(text(&request["route"]), 200),
        );
        let style = mark(&request["total_us"], page);
        page.line(&line, style);
    }
}

/// The requests of this list. Writes a line if there are none.
fn list<'a>(status: &'a Value, key: &str, none: &str, page: &mut TopPage<'_>) -> Option<&'a [Value]> {
    let all = &status["requests_now"][key];
    let why = match array(all) {
        [] if all.is_array() => none,
        [] => UNKNOWN,
        all => return Some(all),
    };
    page.line(why, Style::new());
    None
}

fn mark(time: &Value, page: &TopPage<'_>) -> Style {
    match time.as_u64() {
        Some(time) if time >= VERY_OLD => page.colour(Color::Red),
        Some(time) if time >= OLD => page.colour(Color::Yellow),
        _ => Style::new(),
    }
}
