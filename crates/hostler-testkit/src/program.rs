//! Programs that are not on every machine: where one is, or one loud line that says what is skipped for want of it. Knows no test.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Where `npm test` puts what it builds (`scripts/tools.mjs`).
const BUILT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools");

const TOOLS: &str = "node scripts/tools.mjs builds it";

/// A real nats-server.
pub(crate) fn nats_server() -> Option<PathBuf> {
    find("nats-server", "TEST_NATS_SERVER", TOOLS)
}

/// The conformance suite for HTTP/2, h2spec; `None` has been said aloud, and the test has nothing more to do.
pub fn h2spec() -> Option<PathBuf> {
    find("h2spec", "TEST_H2SPEC", TOOLS)
}

/// A real memcached.
pub(crate) fn memcached() -> Option<PathBuf> {
    find("memcached", "TEST_MEMCACHED", "apt-get install memcached")
}

/// Named by the variable, or built by `npm test`, or installed on this machine.
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

/// What the test that is running would have needed.
pub(crate) fn say_skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Not eprintln!, which the test harness keeps for itself when a test passes: a skip must be seen.
    let line = format!("!!! SKIPPED: {test}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
