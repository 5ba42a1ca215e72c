//! The rows inside the modules that have many files: which of these files may use which.

use std::collections::BTreeSet;

use crate::paths::Code;
use crate::sources::{Broken, sources};

type Rows = &'static [&'static [&'static str]];

/// A crate, a module of it, and the rows inside. The module's `mod.rs` is above them. All its files may use the types that `mod.rs` itself
/// defines. Without a module: the rows of the whole crate.
pub const INSIDE: &[(&str, &str, Rows)] = &[
    ("hostler", "server", SERVER),
    ("hostler-gorouter", "", GOROUTER),
    ("hostler-engine", "gateway", GATEWAY),
];

const SERVER: Rows = &[
    &["commands"],
    &["reload"],
    &["admin_task", "announce", "pool_drain", "stop", "upgrade", "watch", "tls_watch", "development"],
    &["running"],
    &["boot", "routes"],
    &["pools", "registrar", "successor"],
    &["settings", "predecessor"],
    &["pool_context", "tls", "lookups", "threads", "channel", "notify"],
    &["start_error"],
    &["socket_activation"],
    &[
        "cache",
        "fixed",
        "tables",
        "listeners",
        "descriptors",
        "environment",
        "probe",
        "program",
        "signals",
        "file_stamp",
        "run_options",
        "runtime",
    ],
];

const GOROUTER: Rows = &[&["registrar", "announce", "access_log"], &["request", "nats"]];

const GATEWAY: Rows = &[
    &["cached"],
    &["call"],
    &["kind"],
    &["retry"],
    &["hedge"],
    &["early", "files", "native", "redirect", "wait"],
    &["stream", "low", "account"],
    &["answer", "target"],
    &["prepare", "fallback", "fair", "rate_limit", "expected"],
    &["request_key", "when"],
    &["rewrite", "poison", "hypernova", "sticky"],
    &["refusal"],
    &["suspects"],
    &[
        "identity",
        "death_count",
        "poison_settings",
        "worker_hold",
        "spool",
        "health",
        "line",
        "development",
        "crawler",
        "field_lines",
        "prefetch",
        "hints",
        "hedging",
    ],
];

/// Parts of a module that use a part of their own row or of a higher row, with the reason.
const UPWARDS: &[(&str, &str, &str, &str)] =
    &[("gateway", "target", "kind", "the Route of a registered route holds the rules of its kind")];

#[test]
fn a_part_of_the_server_or_the_gateway_uses_the_rows_below_its_own() {
    let code = Code::read(&sources("crates"));
    let mut broken = Broken::default();
    let mut upwards = BTreeSet::new();
    for (library, module, rows) in INSIDE {
        let part = |path| part(path, library, module);
        let files = code.files().filter_map(|(path, file)| Some((path, file, part(path)?)));
        for (path, file, own) in files {
            let Some(own_row) = row(rows, own) else {
                broken.in_file(path, 1, format_args!("{own} has no row in tests/tidy/inside.rs"));
                continue;
            };
            let used = code.used_by(file).into_iter();
            for (used, named) in used.filter_map(|(path, named)| Some((part(path)?, named))) {
                let is_below = used == own || row(rows, used).is_some_and(|row| row > own_row);
                match UPWARDS
                    .iter()
                    .find(|(within, from, to, _)| (*within, *from, *to) == (*module, own, used))
                {
                    _ if is_below => {}
                    Some((.., why)) => drop(upwards.insert(*why)),
                    None => broken.in_file(path, named.line, format_args!("{own} must not use {used}")),
                }
            }
        }
    }
    broken.check();
    let needless: Vec<_> = UPWARDS.iter().filter(|(.., why)| !upwards.contains(why)).collect();
    assert!(needless.is_empty(), "these are not needed any more: {needless:#?}");
}

/// The part of a module that a file belongs to: `wait` for `gateway/wait.rs`, `cached` for all below `gateway/cached/`.
fn part<'a>(path: &'a str, library: &str, module: &str) -> Option<&'a str> {
    let inside = path.strip_prefix(&format!("crates/{library}/src/"))?;
    let inside = if module.is_empty() { inside } else { inside.strip_prefix(module)?.strip_prefix('/')? };
    let name = inside.split('/').next()?;
    Some(name.strip_suffix(".rs").unwrap_or(name)).filter(|part| !matches!(*part, "mod" | "lib"))
}

fn row(rows: Rows, name: &str) -> Option<usize> {
    rows.iter().position(|row| row.contains(&name))
}
