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
mod media_type;
mod pattern;
pub mod reference;
mod resolve;
mod resolved;
mod route_naming;
mod schema;
mod shape;
mod source;
pub mod tls;
mod value;

use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};

use serde::Deserialize;

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
pub use invocation::{Invocation, LoadContext};
pub use media_type::{media_type_of, names_a_file};
pub use pattern::{HostPattern, MatchPattern, PathPattern};
use resolve::Resolver;
pub use resolve::overlap;
pub use resolved::{
    Advertise, Body, Caching, Changes, CollectorAddress, Conditions, Config, EarlyHints, Ejection, Endpoint,
    Fallback, Geo, HeaderChange, HealthCheck, LoadedFile, Log, Members, Nats, NatsLogin, NatsTls, Piece,
    Poison, Pool, PoolMembers, Postal, Queue, RateLimit, Redirect, Registrar, RequestRate, Respond, Rewrite,
    Route, Server, StaticFiles, Sticky, Target, Tls, Traces,
};
pub use route_naming::RouteNaming;
pub use source::{Given, Setting};
pub use value::{
    AutoOrOff, ClientLimit, Count, Delay, ListenAddress, Origin, Period, SHELL_OPERATORS, Secret, ShowSize,
    TextPattern, Wanted, parse_duration,
};

/// So many values with an error are shown. For each of them the whole file is parsed again, which takes minutes if each of ten thousand routes has
/// the same error.
const MOST_ERRORS: usize = 100;

/// Loads and checks the configuration. Does not look whether its programs exist: see [`load_to_run`].
pub fn load(invocation: &Invocation) -> Result<Config, ConfigErrors> {
    load_and(invocation, true, None, |_, _| {})
}

/// As [`load`], for a process that serves nothing yet, and refuses pools whose program or script is not there or may not be used.
pub fn load_to_run(invocation: &Invocation) -> Result<Config, ConfigErrors> {
    load_and(invocation, false, None, |resolver, config| resolver.check_programs(config))
}

/// As [`load_to_run`], for a process that serves requests with `current` meanwhile. It only warns if the program or the folder of a pool that stays as it
/// is has gone: the workers go on, and the change may be needed because of that.
pub fn load_to_reload(invocation: &Invocation, current: &Config) -> Result<Config, ConfigErrors> {
    load_and(invocation, true, Some(current), |resolver, config| resolver.check_programs(config))
}

/// As [`load_to_run`], and refuses places where a start could not make its files. A start tries that itself.
pub fn load_to_check(invocation: &Invocation) -> Result<Config, ConfigErrors> {
    load_and(invocation, false, None, |resolver, config| {
        resolver.check_programs(config);
        resolver.check_places(config);
    })
}

fn load_and(
    invocation: &Invocation,
    serves: bool,
    current: Option<&Config>,
    check: impl FnOnce(&mut Resolver<'_>, &Config),
) -> Result<Config, ConfigErrors> {
    let mut report = Report::default();
    let config = read(invocation, &mut report).map(|(document, file)| {
        let folder = folder_of(invocation);
        let load_context = &invocation.load_context;
        let mut resolver = Resolver {
            document: &document,
            load_context,
            folder: &folder,
            serves,
            current,
            may_move_admin: invocation.may_move_admin(),
            report: &mut report,
        };
        let config = resolver.config(file, invocation.file.clone());
        check(&mut resolver, &config);
        config
    });
    report.finish(config).map(|(config, warnings)| Config { warnings, ..config })
}

/// How a command reaches a running Hostler.
#[derive(Debug)]
pub struct AdminSettings {
    /// The address. `None`: the admin listener is off.
    pub admin: Option<ListenAddress>,
    /// The file with the token.
    pub token_file: Option<PathBuf>,
    /// Why the file did not tell. The address is that of a variable then, or the default.
    pub unusable: Option<ConfigErrors>,
}

/// The address of the admin listener and its token file, for commands that only talk to a running Hostler. Errors elsewhere in the file do
/// not matter: the running Hostler does not use this file as it is, and a command is often given because of such an error.
pub fn load_admin(invocation: &Invocation) -> Result<AdminSettings, ConfigErrors> {
    let Some((name, text)) = text_of_file(invocation)? else {
        return admin_settings(invocation, Document::empty("command line"));
    };
    let mut report = Report::default();
    let document = Document::parse(&name, &text, &mut report);
    let read = report.finish(document).and_then(|(mut document, _)| {
        document.keep("server", &["admin", "admin_token_file"]);
        admin_settings(invocation, document)
    });
    read.or_else(|errors| {
        // If a flag or a variable is wrong, this fails again.
        let settings = admin_settings(invocation, Document::empty(&name))?;
        Ok(AdminSettings { unusable: Some(errors), ..settings })
    })
}

fn admin_settings(invocation: &Invocation, mut document: Document) -> Result<AdminSettings, ConfigErrors> {
    let mut report = Report::default();
    let mut load_context = invocation.load_context.clone();
    load_context.environment.retain(|name, _| name.starts_with("HOSTLER_SERVER_ADMIN"));
    let schema = schema::of_file();
    source::overlay(schema, &mut document, &load_context.environment, &invocation.settings, &mut report);
    shape::check(schema, &mut document, &mut report);
    let server = parse(&mut document, &mut report).unwrap_or_default().server;
    let folder = folder_of(invocation);
    let mut resolver = Resolver {
        document: &document,
        load_context: &invocation.load_context,
        folder: &folder,
        serves: false,
        current: None,
        may_move_admin: false,
        report: &mut report,
    };
    let admin = resolver.admin_address(&KeyPath::of("server.admin"), &server.admin, &[]);
    let token_file = server.admin_token_file.map(|file| folder.join(file));
    let settings = AdminSettings { admin, token_file, unusable: None };
    report.finish(Some(settings)).map(|(settings, _)| settings)
}

/// The configuration as written, without its meaning, and the warnings.
pub fn written(invocation: &Invocation) -> Result<(file::File, Vec<String>), ConfigErrors> {
    let mut report = Report::default();
    let file = read(invocation, &mut report).map(|(_, file)| file);
    report.finish(file)
}

fn folder_of(invocation: &Invocation) -> PathBuf {
    let here = &invocation.load_context.folder;
    match invocation.file.as_deref().and_then(Path::parent) {
        Some(parent) if parent != Path::new("") => here.join(parent),
        _ => here.clone(),
    }
}

fn read(invocation: &Invocation, report: &mut Report) -> Option<(Document, file::File)> {
    let mut document = match text_of_file(invocation) {
        Ok(None) => Document::empty("command line"),
        Ok(Some((name, text))) => Document::parse(&name, &text, report)?,
        Err(errors) => {
            report.add(errors);
            return None;
        }
    };
    let schema = schema::of_file();
    let environment = &invocation.load_context.environment;
    source::overlay(schema, &mut document, environment, &invocation.settings, report);
    shape::check(schema, &mut document, report);
    let file = parse(&mut document, report)?;
    Some((document, file))
}

/// The name and the text of the file, if there is one.
fn text_of_file(invocation: &Invocation) -> Result<Option<(String, String)>, ConfigErrors> {
    let Some(path) = &invocation.file else { return Ok(None) };
    let name = path.display().to_string();
    let mut report = Report::default();
    match std::fs::read(invocation.load_context.folder.join(path)).map(String::from_utf8) {
        Ok(Ok(text)) => Ok(Some((name, text))),
        Ok(Err(error)) => {
            let valid = error.utf8_error().valid_up_to();
            Document::refuse_encoding(&name, error.as_bytes(), valid, &mut report);
            report.finish(None).map(|(none, _)| none)
        }
        Err(error) => {
            let help = match error.kind() {
                NotFound => {
                    "; `hostler init` writes one, -c names another file, and `hostler run -- node server.js` needs none"
                }
                _ => "",
            };
            report.error(SourcePlace::File(name), format!("{}{help}", access::unreadable(&error)));
            report.finish(None).map(|(none, _)| none)
        }
    }
}

/// Parses the document. It reports and drops a value with an error, until the rest can be parsed. `None`: there are too many errors.
fn parse(document: &mut Document, report: &mut Report) -> Option<file::File> {
    for _ in 0..MOST_ERRORS {
        let values = toml::Value::Table(document.values().clone());
        let mut track = serde_path_to_error::Track::new();
        let parsed = file::File::deserialize(serde_path_to_error::Deserializer::new(values, &mut track));
        let error = match parsed {
            Ok(file) => return Some(file),
            Err(error) => error,
        };
        let path = key_path(&track.path());
        let written = document.original(&path);
        let why = error.message().replace("a sequence", "a list").replace("a map", "a table");
        let why = if path.may_be_secret() { without_value(&why) } else { why };
        let help = written_otherwise(document.values(), &path);
        report.error(document.place_of_value(&path), format!("{written}: {why}{help}"));
        if !document.drop_value(&path) {
            return Some(file::File::default());
        }
    }
    let place = document.place_of_key(&KeyPath::default());
    report.error(place, format!("there may be more than these {MOST_ERRORS} errors"));
    None
}

/// The message without the text that was written.
fn without_value(why: &str) -> String {
    // A text is in quotes, a number in backticks.
    let end = why.rfind("\", expected").max(why.rfind("`, expected"));
    let quoted = why.find(['"', '`']).zip(end);
    quoted.map_or(why.to_owned(), |(from, to)| format!("{}{}", why[..from].trim_end(), &why[to + 1..]))
}

/// How to write a section that was written with the brackets of another kind of section.
fn written_otherwise(values: &toml::Table, path: &KeyPath) -> &'static str {
    match (&*path.to_string(), values.get("pools"), values.get("routes")) {
        ("routes", _, Some(toml::Value::Table(_))) => "; write [[routes]] for each route, with two brackets",
        ("pools", Some(toml::Value::Array(_)), _) => {
            "; write [pools.NAME] for each pool, for example [pools.web]"
        }
        (key, Some(toml::Value::Table(pools)), _)
            if key
                .strip_prefix("pools.")
                .is_some_and(|name| pools.get(name).is_some_and(|it| !it.is_table())) =>
        {
            "; a pool has a name: write [pools.NAME] above its keys, for example [pools.web]"
        }
        _ => "",
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
