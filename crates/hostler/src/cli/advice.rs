//! Renders `docs/reference/advice.md` from the table of advice. Knows no advice by name.

use std::fmt::Write;

use crate::admin::ADVICE;

const INTRODUCTION: &str = "\
<!-- Generated from crates/hostler/src/admin/advice/table.rs; refresh with: UPDATE=1 cargo test --workspace --test reference -->

# Advice

This page lists all advice: sentences in the status and in the log that say what is wrong and what to do. [Advice](../guide/advice.md) explains how they are raised.
POOL and WORKER stand for names.

* *critical*: clients get errors. *warning*: clients wait, or will get errors. *info*: something could be better.
* *for*: how long the figures must show it before the advice is raised.
* *alert*: the rule for the same trouble in [hostler.rules.yml](../monitoring/hostler.rules.yml).

| advice | severity | for | alert |
|---|---|---|---|
";

/// The page.
pub(super) fn markdown() -> String {
    let mut text = String::from(INTRODUCTION);
    for row in ADVICE {
        let alert = if row.alert.is_empty() { String::new() } else { format!("`{}`", row.alert) };
        let severity = row.severity.name();
        let _ = writeln!(text, "| [`{0}`](#{0}) | {severity} | {1} s | {alert} |", row.id, row.holds);
    }
    for row in ADVICE {
        let _ = write!(
            text,
            "\n## `{}`\n\n{}\n\n*What to do:* {}\n\n*More:* [{}](../{})\n",
            row.id,
            row.when,
            row.action,
            row.page.split('#').next().unwrap_or_default(),
            row.page
        );
    }
    text
}
