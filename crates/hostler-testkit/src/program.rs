//! Finds programs that not every machine has, or prints one line about the skipped test. Knows no tests.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Where `scripts/tools.mjs` puts what it builds.
const BUILT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools");

const TOOLS: &str = "node scripts/tools.mjs builds it";

/// A real nats-server.
pub(crate) fn nats_server() -> Option<PathBuf> {
    find("nats-server", "TEST_NATS_SERVER", TOOLS)
}

/// h2spec, the conformance suite for HTTP/2. `None` if it is missing: a line about the skipped test has been printed.
pub fn h2spec() -> Option<PathBuf> {
    find("h2spec", "TEST_H2SPEC", TOOLS)
}

/// A real OpenTelemetry Collector.
pub(crate) fn otel_collector() -> Option<PathBuf> {
    find("otel-collector", "TEST_OTEL_COLLECTOR", TOOLS)
}

/// Node 22. `None` if it is missing: a line about the skipped test has been printed.
pub fn node_22() -> Option<PathBuf> {
    find("node22/bin/node", "TEST_NODE_22", TOOLS)
}

/// A real memcached.
pub(crate) fn memcached() -> Option<PathBuf> {
    find("memcached", "TEST_MEMCACHED", "apt-get install memcached")
}

/// The path in the variable, or the program that `scripts/tools.mjs` has built, or the one that is installed.
#[expect(clippy::disallowed_methods, reason = "where a test's programs are is no configuration of Hostler's")]
fn find(program: &str, variable: &str, how: &str) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(variable) {
        let named = PathBuf::from(named);
        assert!(named.is_file(), "{variable}: there is no file {}", named.display());
        return Some(named);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(PathBuf::from(BUILT)).chain(std::env::split_paths(&path));
    let found = folders.map(|folder| folder.join(program)).find(|file| Path::is_file(file));
    if found.is_none() {
        say_skipped(&format!("{program} is missing ({how})"));
    }
    found
}

/// Prints that the current test is skipped, and why: for a test that needs something that not every system has.
pub fn say_skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Not eprintln!, because the test harness captures its output when a test passes, and a skip must be visible.
    let line = format!("!!! SKIPPED: {test}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
