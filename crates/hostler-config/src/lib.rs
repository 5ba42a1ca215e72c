//! The configuration as written (`file`) and its meaning (`resolved`). Knows no sockets, pools or requests.
//!
//! [`load`] leads from one to the other: read the file, add variables and flags, compare with the schema, parse, resolve. It reports all
//! errors at once, each with its place.

mod access;
mod admin_token;
mod client_tls;
mod difference;
mod document;
mod error;
pub mod file;
mod invocation;
mod pattern;
pub mod reference;
mod resolve;
mod resolved;
mod schema;
mod shape;
mod source;
pub mod tls;
mod value;

use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};

pub use admin_token::{AdminToken, VARIABLE as ADMIN_TOKEN_VARIABLE};
pub use client_tls::ClientTls;
pub use difference::{Difference, PoolChange};
use document::{Document, KeyPath, PathStep};
use error::Report;
pub use error::{ConfigError, ConfigErrors, SourcePlace, nearest};
pub use file::{
    AccessLog, Buffer, Choice, ClientIpHeader, Compat, EarlyHintLinks, FairBy, ForwardedClientCert,
    ForwardedProto, Hedge, HedgeAfter, LogLevel, Lookups, LowIf, MemberProtocol, Platform, Policy, Priority,
    SameSite, Saying, Sharding, Share, StickyBy, ZonePreference, is_hinted,
};
pub use invocation::{Invocation, Surroundings};
pub use pattern::{HostPattern, MatchPattern, PathPattern};
use resolve::Resolver;
pub use resolved::{
    Advertise, Body, Caching, Changes, CollectorAddress, Conditions, Config, EarlyHints, Ejection, Endpoint,
    Fallback, Geo, HeaderChange, HealthCheck, LoadedFile, Log, Members, Nats, NatsLogin, NatsTls, Piece,
    Poison, Pool, PoolMembers, Postal, Queue, RateLimit, Redirect, Registrar, RequestRate, Respond, Rewrite,
    Route, Server, StaticFiles, Sticky, Target, Tls, Traces,
};
pub use source::{Given, Setting};
pub use value::{
    AutoOrOff, ClientLimit, ListenAddress, Origin, Period, Secret, ShowSize, TextPattern, Wanted,
};

/// Loads and checks the configuration. Does not look whether its programs exist: see [`load_to_run`].
pub fn load(invocation: &Invocation) -> Result<Config, ConfigErrors> {
    load_and(invocation, |_, _| {})
}

/// As [`load`], and refuses pools whose program or script is not there or may not be used.
pub fn load_to_run(invocation: &Invocation) -> Result<Config, ConfigErrors> {
    load_and(invocation, |resolver, config| resolver.check_programs(config))
}

fn load_and(
    invocation: &Invocation,
    check: impl FnOnce(&mut Resolver<'_>, &Config),
) -> Result<Config, ConfigErrors> {
    let mut report = Report::default();
    let config = read(invocation, &mut report).map(|(document, file)| {
        let folder = folder_of(invocation);
        let surroundings = &invocation.surroundings;
        let mut resolver =
            Resolver { document: &document, surroundings, folder: &folder, report: &mut report };
        let config = resolver.config(file, invocation.file.clone());
        check(&mut resolver, &config);
        config
    });
    report.finish(config).map(|(config, warnings)| Config { warnings, ..config })
}

/// The `[server]` section alone, for commands that only talk to a running Hostler.
pub fn load_server(invocation: &Invocation) -> Result<Server, ConfigErrors> {
    let mut report = Report::default();
    let server = read(invocation, &mut report).map(|(document, file)| {
        let folder = folder_of(invocation);
        let surroundings = &invocation.surroundings;
        Resolver { document: &document, surroundings, folder: &folder, report: &mut report }
            .server(&file.server)
    });
    report.finish(server).map(|(server, _)| server)
}

/// The configuration as written, without its meaning, and the warnings.
pub fn written(invocation: &Invocation) -> Result<(file::File, Vec<String>), ConfigErrors> {
    let mut report = Report::default();
    let file = read(invocation, &mut report).map(|(_, file)| file);
    report.finish(file)
}

fn folder_of(invocation: &Invocation) -> PathBuf {
    let here = &invocation.surroundings.folder;
    match invocation.file.as_deref().and_then(Path::parent) {
        Some(parent) if parent != Path::new("") => here.join(parent),
        _ => here.clone(),
    }
}

fn read(invocation: &Invocation, report: &mut Report) -> Option<(Document, file::File)> {
    let mut document = match &invocation.file {
        None => Document::empty("command line"),
        Some(path) => {
            let name = path.display().to_string();
            match std::fs::read_to_string(invocation.surroundings.folder.join(path)) {
                Ok(text) => Document::parse(&name, &text, report)?,
                Err(error) => {
                    let help = match error.kind() {
                        NotFound => {
                            "; `hostler init` writes one, -c names another file, and `hostler run -- node server.js` needs none"
                        }
                        _ => "",
                    };
                    report.error(SourcePlace::File(name), format!("{}{help}", access::unreadable(&error)));
                    return None;
                }
            }
        }
    };
    let schema = schema::of_file();
    let environment = &invocation.surroundings.environment;
    source::overlay(schema, &mut document, environment, &invocation.settings, report);
    shape::check(schema, &mut document, report);
    let file = parse(&mut document, report);
    Some((document, file))
}

/// Parses the document. It reports and drops a value with an error, until the rest can be parsed.
fn parse(document: &mut Document, report: &mut Report) -> file::File {
    loop {
        let values = toml::Value::Table(document.values().clone());
        let mut track = serde_path_to_error::Track::new();
        let tracked = serde_path_to_error::Deserializer::new(values, &mut track);
        // Erased: the compiler would write out the code that tracks the path once for each type of the file.
        let parsed = erased_serde::deserialize(&mut <dyn erased_serde::Deserializer>::erase(tracked));
        let error: erased_serde::Error = match parsed {
            Ok(file) => return file,
            Err(error) => error,
        };
        let path = key_path(&track.path());
        let written = document.original(&path);
        let why = error.to_string().replace("a sequence", "a list").replace("a map", "a table");
        report.error(document.place_of_value(&path), format!("{written}: {why}"));
        if !document.drop_value(&path) {
            return file::File::default();
        }
    }
}

fn key_path(path: &serde_path_to_error::Path) -> KeyPath {
    use serde_path_to_error::Segment;
    let steps = path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(PathStep::Index(*index)),
        Segment::Map { key } => Some(PathStep::Key(key.clone())),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    KeyPath(steps.collect())
}

#[cfg(test)]
mod tests;
