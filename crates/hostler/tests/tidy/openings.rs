//! Checks the openings of files. Example: a file that "knows no pools" must not name `Pool`. Checks only words that a path can show.

use crate::paths::Code;
use crate::sources::{Broken, sources};

/// Words in openings, and the names that a file with such an opening must not use: modules from the root of their crate, types, or
/// functions of types. The files of a module may use its names.
const WORDS: &[(&[&str], &[&str])] = &[
    (&["http"], &["http", "h2", "httparse", "axum", "hostler_wire"]),
    (&["http/2"], &["h2"]),
    (&["client protocol"], &["hostler::listen", "hostler::listen::client", "hostler::listen::h2"]),
    (
        &["socket", "sockets"],
        &["tokio::net", "std::os::unix::net", "socket2", "TcpListener", "TcpStream", "UnixStream"],
    ),
    (&["connection", "connections"], &["MemberConnection", "TcpStream", "UnixStream"]),
    (&["configuration", "configuration file"], &["hostler_config", "toml"]),
    (&["toml"], &["toml"]),
    (&["pool", "pools"], &["Pool", "Membership"]),
    (&["queue"], &["Acquire"]),
    (&["member", "members"], &["Membership", "Endpoint"]),
    (&["lease", "leases"], &["Lease"]),
    (&["worker", "workers"], &["Supervisor", "WorkerTask"]),
    (&["process", "processes"], &["std::process", "tokio::process"]),
    (&["route", "routes"], &["hostler_engine::route", "Route"]),
    (&["registry"], &["Registry"]),
    (&["registration", "registrations"], &["Registration"]),
    (&["request", "requests"], &["Exchange", "RequestHead"]),
    (&["call", "calls"], &["Call"]),
    (&["refusal", "refusals"], &["Refusal"]),
    (&["suspect", "suspects"], &["Suspects"]),
    (&["file", "files", "file system"], &["std::fs", "tokio::fs"]),
    (&["clock", "time"], &["Instant::now", "SystemTime::now"]),
    (&["deadline", "deadlines"], &["Deadline", "tokio::time::timeout"]),
    (&["encoder"], &["hostler_coding::encoder", "compression_codecs"]),
    (&["store"], &["hostler_cache::store", "Store", "SharedCache"]),
    (&["proxy"], &["hostler_engine::proxy"]),
    (&["cache"], &["hostler_engine::cache", "hostler_cache"]),
    (&["gateway"], &["hostler_engine::gateway"]),
    (&["hostler"], &["hostler"]),
];

#[test]
fn a_file_names_nothing_that_its_opening_denies() {
    let sources = sources("crates");
    let code = Code::read(&sources);
    let mut broken = Broken::default();
    for (path, module) in code.files() {
        let text = sources.iter().find(|source| source.path == path).map(|source| source.text.as_str());
        let denied = denied(&opening(text.unwrap_or_default()));
        for (words, names) in WORDS {
            let Some(word) = words.iter().find(|word| denied.iter().any(|denied| denied == *word)) else {
                continue;
            };
            let names: Vec<_> = names.iter().filter(|name| !is_of(module, name)).collect();
            for (named, line) in
                code.named_by(module).filter(|(named, _)| names.iter().any(|name| is_of(named, name)))
            {
                let named = named.join("::");
                broken.in_file(
                    path,
                    line,
                    format_args!("the opening says that it does not know: {word}. It names {named}"),
                );
            }
        }
    }
    broken.check();
}

/// The first paragraph of a file's opening, in one line.
fn opening(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//! "));
    lines.collect::<Vec<_>>().join(" ")
}

/// The words that an opening denies. Example: "Knows no pools, routes or queues." gives pools, routes and queues.
fn denied(opening: &str) -> Vec<String> {
    let lower = opening.to_lowercase();
    let mut found = Vec::new();
    for begin in ["knows no ", "knows neither ", "knows nothing of ", "does not know ", "uses no "] {
        for (at, _) in lower.match_indices(begin) {
            let rest = &lower[at + begin.len()..];
            let end = rest.find(['.', ':', ';', '(']).unwrap_or(rest.len());
            let list = rest[..end]
                .replace(" and no ", ",")
                .replace(" or ", ",")
                .replace(" nor ", ",")
                .replace(" and ", ",");
            let words = list
                .split(',')
                .map(|word| word.trim().trim_start_matches("no "))
                .filter(|word| !word.is_empty());
            found.extend(words.map(String::from));
        }
    }
    found
}

/// Whether a path names this module or a part of it. A type counts at any position, except as the variant of an enum.
fn is_of(path: &[String], name: &str) -> bool {
    let name: Vec<_> = name.split("::").collect();
    let is_type = |word: &str| word.starts_with(char::is_uppercase);
    let found = path.windows(name.len()).position(|window| window == name);
    found.is_some_and(|at| at == 0 || (is_type(name[0]) && !is_type(&path[at - 1])))
}

#[test]
fn openings_are_understood() {
    assert_eq!(
        denied("It. Knows no pools, routes or queues, and sets no deadlines."),
        ["pools", "routes", "queues", "sets no deadlines"]
    );
    assert_eq!(denied("It; knows neither HTTP/2 nor the pool"), ["http/2", "the pool"]);
    assert_eq!(opening("//! One\n//! two.\n//!\n//! Three."), "One two.");
    let path = ["tokio", "net", "UdpSocket"].map(String::from);
    assert!(is_of(&path, "tokio::net") && is_of(&path, "UdpSocket") && !is_of(&path, "net"));
}
