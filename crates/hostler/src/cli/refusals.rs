//! Renders `docs/reference/refusals.md` from the table of refusals and from gorouter's words. Knows no reason by name.

use std::fmt::Write;

use hostler_wire::ResponseHead;

use hostler_engine::gateway::platform::{self, Words};
use hostler_engine::gateway::refusal::{self, Refusal, RefusalCause, RefusalFacts};

const INTRODUCTION: &str = include_str!("refusals.md");

const REGISTERED: &str = "
## Answers of registered routes

A request that goes by a registered route (`[registrar]`), or by none while there is a registrar, is answered in the format of Cloud Foundry's gorouter. The reason in
the log and in the status is the same as above; the answer has `X-Cf-Routererror` in place of `Hostler-Refusal`. `WHY` is the reason of the last
attempt, for example `endpoint_failure (EOF)`. All other refusals look as above. See [Cloud Foundry's router protocol](../protocols/cloud-foundry-router.md).

";

/// The host of the examples.
const HOST: &str = "shop.example.com";

/// The page.
pub(super) fn markdown() -> String {
    let mut text = format!("{INTRODUCTION}\n## All reasons\n\n");
    text.push_str("| reason | status | whose fault | `Retry-After` | fallback | connection |\n|---|---|---|---|---|---|\n");
    for row in refusal::ALL {
        let connection = if row.closes { "closed" } else { "kept" };
        let (later, fallback) = (yes(row.retry_after.is_some()), yes(row.may_fall_back));
        line(
            &mut text,
            format_args!(
                "| [`{}`](#{}) | {} | {} | {later} | {fallback} | {connection} |",
                row.reason,
                anchor(row),
                row.status,
                name(row.cause)
            ),
        );
    }
    for cause in [RefusalCause::Client, RefusalCause::App, RefusalCause::Operator, RefusalCause::Overload] {
        line(&mut text, format_args!("\n## Fault: {}", name(cause)));
        refusal::ALL.iter().filter(|row| row.cause == cause).for_each(|row| describe(row, &mut text));
    }
    text.push_str(REGISTERED);
    registered(&mut text);
    text
}

fn describe(row: &RefusalFacts, text: &mut String) {
    line(text, format_args!("\n### `{}` ({})", row.reason, row.status));
    line(text, format_args!("\n{}\n\n*What to do:* {}", row.when, row.remedy));
}

/// The answers in gorouter's format; what `compat` changes has a row of its own.
fn registered(text: &mut String) {
    text.push_str(
        "| reason | status | `X-Cf-Routererror` | `Cache-Control` | body |\n|---|---|---|---|---|\n",
    );
    let mut rows = Vec::new();
    for refusal in refusal::examples() {
        let Some(usual) = row(&refusal, false) else { continue };
        let compat = row(&refusal, true).filter(|compat| *compat != usual);
        let reason = refusal.facts().reason;
        rows.push(format!("| `{reason}` {usual}"));
        rows.extend(compat.map(|compat| format!("| `{reason}` with `compat = \"gorouter\"` {compat}")));
    }
    rows.dedup();
    rows.iter().for_each(|row| line(text, format_args!("{row}")));
    line(
        text,
        format_args!(
            "\nA 503 has `Retry-After` as above; with `compat = \"gorouter\"` it has none. The 431 answers look like this only with \
             `compat = \"gorouter\"`, because\nHostler reads no route from such a head."
        ),
    );
}

fn row(refusal: &Refusal, compat: bool) -> Option<String> {
    let Words { head, body } = platform::shown(refusal, HOST, compat)?;
    let body = if body.is_empty() { "none".into() } else { format!("`{}`", body.trim_end()) };
    let cells = [field(&head, "X-Cf-Routererror"), field(&head, "Cache-Control"), body];
    Some(format!("| {} | {} |", head.status, cells.join(" | ")))
}

fn field(head: &ResponseHead, name: &str) -> String {
    head.fields.get(name).map_or("none".into(), |value| format!("`{}`", String::from_utf8_lossy(value)))
}

/// Where GitHub puts the heading of [`describe`].
fn anchor(row: &RefusalFacts) -> String {
    format!("{}-{}", row.reason, row.status)
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
