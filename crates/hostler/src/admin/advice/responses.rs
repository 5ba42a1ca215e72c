//! Advice about the responses of routes: errors, refusals, fallbacks. Knows no pools.

use std::collections::BTreeMap;

use hostler_engine::gateway::refusal::{self, RefusalCause};

use super::figures::RouteFigures;
use super::finding::{Finding, percent};
use super::history::View;
use super::table;

pub(super) fn find(view: View<'_>, found: &mut Vec<Finding>) {
    for route in &view.now.routes {
        if let Some(before) = view.before.route(&route.pattern) {
            of_route(route, before, found);
        }
    }
}

fn of_route(route: &RouteFigures, before: &RouteFigures, found: &mut Vec<Finding>) {
    let answers = route.answers.saturating_sub(before.answers);
    let is_much = |count: u64| count >= 10 && percent(count, answers) >= 5;
    let share = |count: u64| format!("{} % of the responses of the last minute", percent(count, answers));
    let refused = since(&route.refusals, &before.refusals);
    let server_errors: u64 =
        refused.iter().filter(|(reason, _)| status(reason) >= 500).map(|(_, count)| count).sum();
    let of_app = route.failed.saturating_sub(before.failed).saturating_sub(server_errors);
    if route.has_app && is_much(of_app) {
        let text = format!("{} were errors (5xx) of the app", share(of_app));
        found.push(Finding::about(table::APP_ERRORS, &route.pattern, &text));
    }
    // What comes from too much work has advice of its own, and nothing is to be done about faults of clients.
    let ours = refused.iter().filter(|(reason, _)| {
        matches!(cause(reason), Some(RefusalCause::App | RefusalCause::Operator)) && **reason != "stopping"
    });
    if let Some((reason, count)) = ours.max_by_key(|(_, count)| **count).filter(|(_, count)| is_much(**count))
    {
        let remedy = facts(reason).map_or("", |facts| facts.remedy).trim_end_matches('.');
        let text = format!("{} were refused: {reason}. {remedy}", share(*count));
        found.push(Finding::about(table::REFUSALS, &route.pattern, &text));
    }
    let fallbacks = since(&route.fallbacks, &before.fallbacks);
    let sent: u64 = fallbacks.values().sum();
    if let Some((reason, _)) = fallbacks.iter().max_by_key(|(_, count)| **count).filter(|_| is_much(sent)) {
        let text = format!("{} were the fallback, mostly because of {reason}", share(sent));
        found.push(Finding::about(table::FALLBACKS, &route.pattern, &text));
    }
}

/// The counts that have grown, by how much.
fn since(
    now: &BTreeMap<&'static str, u64>,
    before: &BTreeMap<&'static str, u64>,
) -> BTreeMap<&'static str, u64> {
    let grown = |(reason, count): (&&'static str, &u64)| {
        (*reason, count.saturating_sub(before.get(reason).copied().unwrap_or(0)))
    };
    now.iter().map(grown).filter(|(_, count)| *count > 0).collect()
}

fn facts(reason: &str) -> Option<&'static refusal::RefusalFacts> {
    refusal::ALL.iter().find(|facts| facts.reason == reason)
}

fn cause(reason: &str) -> Option<RefusalCause> {
    facts(reason).map(|facts| facts.cause)
}

fn status(reason: &str) -> u16 {
    facts(reason).map_or(0, |facts| facts.status)
}
