//! Renders `docs/reference/refusals.md` from the tables of refusals. Knows no reason by name.

use std::fmt::Write;

use hostler_engine::gateway::refusal::{self, RefusalCause, RefusalFacts};
use hostler_gorouter::request::{OBJECTIONS, reference};

const INTRODUCTION: &str = include_str!("refusals.md");

/// The page.
pub(super) fn markdown() -> String {
    let mut text = format!("{INTRODUCTION}\n## All reasons\n\n");
    text.push_str("| reason | status | whose fault | `Retry-After` | fallback | connection |\n|---|---|---|---|---|---|\n");
    for row in all() {
        let connection = if row.closes { "closed" } else { "kept" };
        let (later, fallback) = (yes(row.retry_after.is_some()), yes(row.may_fall_back));
        line(
            &mut text,
            format_args!(
                "| [`{}`](#{}) | {} | {} | {later} | {fallback} | {connection} |",
                row.reason,
                row.anchor(),
                row.status,
                name(row.cause)
            ),
        );
    }
    for cause in [RefusalCause::Client, RefusalCause::App, RefusalCause::Operator, RefusalCause::Overload] {
        line(&mut text, format_args!("\n## Fault: {}", name(cause)));
        all().filter(|row| row.cause == cause).for_each(|row| describe(row, &mut text));
    }
    text.push_str(&reference::markdown());
    text
}

/// The rows that apply to all routes, then those of registered routes.
fn all() -> impl Iterator<Item = &'static RefusalFacts> {
    refusal::ALL.iter().chain(OBJECTIONS)
}

/// GitHub makes [`RefusalFacts::anchor`] of the heading.
fn describe(row: &RefusalFacts, text: &mut String) {
    line(text, format_args!("\n### `{}` ({})", row.reason, row.status));
    line(text, format_args!("\n{}\n\n*What to do:* {}", row.when, row.remedy));
}

fn name(cause: RefusalCause) -> &'static str {
    match cause {
        RefusalCause::Client => "client",
        RefusalCause::App => "app",
        RefusalCause::Operator => "operator",
        RefusalCause::Overload => "overload",
    }
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}
