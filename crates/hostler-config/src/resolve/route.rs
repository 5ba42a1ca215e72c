//! The meaning of routes: one target each, no pattern twice, and the default route if there are none. Knows no requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hostler_coding::EncodingPlan;

use super::Resolver;
use crate::document::KeyPath;
use crate::error::nearest;
use crate::file::{self, Buffer, EarlyHintLinks, File, Priority};
use crate::pattern::{MatchPattern, PathPattern};
use crate::resolved::{Changes, Conditions, EarlyHints, HeaderChange, Route, StaticFiles, Target};
use crate::route_naming::RouteNaming;

/// The keys of targets.
const TARGETS: [&str; 6] = ["pool", "static", "redirect", "respond", "geo", "postal"];

/// Targets that a route may have together: files first and then the pool; and the two lookups.
const PAIRS: [(&str, &str); 2] = [("pool", "static"), ("geo", "postal")];

fn one_of(keys: &[&str]) -> String {
    let (last, others) = keys.split_last().unwrap_or((&"", &[]));
    format!("{} or {last}", others.join(", "))
}

/// The path of a route that matches this path alone, although it looks like all paths of a folder. A fixed response or a redirect is often
/// for one path.
fn folder_of(route: &Route) -> Option<&str> {
    match (&route.pattern.path, &route.target) {
        (PathPattern::Exact(path), Target::Pool { .. } | Target::Static(_)) if path.ends_with('/') => {
            Some(path)
        }
        _ => None,
    }
}

/// Whether another route has the paths below the folder, so that this one is an exception from it.
fn has_what_is_below(other: &Route, route: &Route, folder: &str) -> bool {
    let PathPattern::Prefix(prefix) = &other.pattern.path else { return false };
    let is_of_host = other.pattern.host.is_none() || other.pattern.host == route.pattern.host;
    let is_of_folder = folder.strip_suffix('/') == Some(prefix.as_str());
    let is_same_pool = match (&other.target, &route.target) {
        (Target::Pool { name: one, .. }, Target::Pool { name: another, .. }) => one == another,
        _ => false,
    };
    is_of_host && (is_of_folder || is_same_pool && other.pattern.path.matches(folder.as_bytes()))
}

impl Resolver<'_> {
    /// The meaning of `[[routes]]`, or the default route.
    pub(super) fn routes(&mut self, file: &File, compress: Option<&Arc<EncodingPlan>>) -> Vec<Route> {
        let list = KeyPath::of("routes");
        if file.routes.is_empty() && !self.document.is_written(&list) {
            return self.catch_all(file, compress);
        }
        let mut seen: HashMap<(MatchPattern, Option<Conditions>), KeyPath> = HashMap::new();
        let mut naming = RouteNaming::default();
        let mut routes = Vec::new();
        for (index, written) in file.routes.iter().enumerate() {
            let path = list.index(index);
            let Some(pattern) = self.pattern(&path, index, written) else { continue };
            let when = self.when(&path, written);
            let asked = (pattern.clone(), when.clone());
            if let Some(first) = seen.get(&asked) {
                let (place, first) =
                    (self.document.place_of_value(&first.key("match")), self.document.original(first));
                let same = if when.is_some() { " with the same when" } else { "" };
                let why = format!("{first} already matches \"{pattern}\"{same} ({place})");
                self.refuse(&path.key("match"), why);
            }
            seen.insert(asked, path.clone());
            let changes = self.changes(&path, written, &pattern);
            if let Some(target) = self.target(&path, written, file, (&pattern, &changes)) {
                let files_first = self.files_first(&path, written, (&pattern, &changes));
                let fallback = written.fallback.as_deref().filter(|_| written.pool.is_some());
                let fallback =
                    fallback.and_then(|what| self.fallback(&path.key("fallback"), what, written.buffer));
                if let (Some(_), Target::Pool { name, request_timeout }) = (&fallback, &target) {
                    self.warn_of_a_late_fallback(&path, name, *request_timeout);
                }
                routes.push(Route {
                    name: naming.name(&pattern, when.as_ref()),
                    pattern,
                    when,
                    rate_limit: self.rate_limit(
                        &path.key("rate_limit"),
                        &written.rate_limit,
                        written.pool.is_some(),
                    ),
                    target,
                    buffer: written.buffer,
                    trace: written.trace,
                    max_body_size: written.max_body_size.unwrap_or(file.server.max_body_size).0,
                    compress: self.route_compress(&path, written.compress.as_ref(), compress),
                    priority: written.priority,
                    fair: self.route_fair(&path, written, file),
                    fallback,
                    files_first,
                    caching: self.caching(&path, written).filter(|_| written.pool.is_some()),
                    early_hints: self.early_hints(
                        &path.key("early_hints"),
                        written.early_hints.as_ref(),
                        &changes,
                    ),
                    changes,
                });
            }
        }
        routes
    }

    fn early_hints(
        &mut self,
        path: &KeyPath,
        written: Option<&file::EarlyHints>,
        changes: &Changes,
    ) -> Option<EarlyHints> {
        let (links, http1) = match written? {
            file::EarlyHints::Short(links) => (Some(links), false),
            file::EarlyHints::Table(table) => (table.links.as_ref(), table.http1),
        };
        // What could not be read has an error already.
        let why = match links {
            Some(EarlyHintLinks::List(links)) if links.is_empty() => "the list has no link",
            Some(links) => {
                let is_replaced = |change: &HeaderChange| match change {
                    HeaderChange::Set(name, _) | HeaderChange::Remove(name) => {
                        name.eq_ignore_ascii_case("link")
                    }
                    HeaderChange::Add(..) | HeaderChange::Default(..) => false,
                };
                if *links == EarlyHintLinks::Learn && changes.answer.iter().any(is_replaced) {
                    let why = "learns nothing, because response_headers sets or removes Link; write a list of links";
                    self.report.warn(self.document.place_of_value(path), format!("{path}: {why}"));
                }
                return Some(EarlyHints { links: links.clone(), http1 });
            }
            None => "links is missing; write links = \"learn\" or a list of links",
        };
        if !self.report.has_errors() {
            self.refuse(path, why);
        }
        None
    }

    fn catch_all(&mut self, file: &File, compress: Option<&Arc<EncodingPlan>>) -> Vec<Route> {
        let mut pools = file.pools.iter();
        match (pools.next(), pools.next()) {
            (Some((name, pool)), None) => {
                let target = Target::Pool { name: name.clone(), request_timeout: pool.request_timeout.0 };
                return vec![Route {
                    name: MatchPattern::ALL.to_string(),
                    pattern: MatchPattern::ALL,
                    when: None,
                    rate_limit: None,
                    target,
                    buffer: Buffer::Full,
                    trace: false,
                    max_body_size: file.server.max_body_size.0,
                    compress: compress.cloned(),
                    priority: Priority::Normal,
                    fair: None,
                    fallback: None,
                    files_first: None,
                    caching: None,
                    early_hints: None,
                    changes: Changes::default(),
                }];
            }
            // The misspelt section has an error already.
            (Some(_), Some(_)) if self.document.has_misspelt("routes") => {}
            (Some(_), Some(_)) => {
                let names: Vec<_> = file.pools.keys().map(String::as_str).collect();
                let why = "there are several pools and no [[routes]]; add routes that say which requests go to which pool";
                let place = self.document.place_of_key(&KeyPath::default());
                self.report.error(place, format!("{why} (pools: {})", names.join(", ")));
            }
            (None, _) => {
                let all_register = self.document.is_written(&KeyPath::of("registrar"));
                let is_misspelt = ["pools", "routes"].iter().any(|name| self.document.has_misspelt(name));
                if !all_register && !is_misspelt && !self.document.is_written(&KeyPath::of("pools")) {
                    let place = self.document.place_of_key(&KeyPath::default());
                    self.report.error(
                        place,
                        "there is nothing to serve; add [pools.NAME], [[routes]] or [registrar]",
                    );
                }
            }
        }
        Vec::new()
    }

    fn pattern(&mut self, path: &KeyPath, index: usize, written: &file::Route) -> Option<MatchPattern> {
        if written.pattern.is_none() && !self.document.is_written(&path.key("match")) {
            self.refuse(path, "match is missing; for all requests write match = \"*\"");
        }
        self.warn_of_a_missing_slash(&path.key("match"), index);
        if let Some(pattern) = &written.pattern {
            self.warn_of_a_placeholder(&path.key("match"), pattern);
        }
        written.pattern.clone()
    }

    /// `api/*` is the host `api`, and looks like the path `/api/*`. The parsed pattern has no difference between `api` and `api/*`.
    fn warn_of_a_missing_slash(&mut self, path: &KeyPath, index: usize) {
        let routes = self.document.values().get("routes");
        let text = routes.and_then(|routes| routes.get(index)?.get("match")?.as_str()).unwrap_or_default();
        let Some((host, rest)) = text.split_once('/') else { return };
        if host.is_empty() || host.contains(['.', '[']) || host.eq_ignore_ascii_case("localhost") {
            return;
        }
        let written = self.document.original(path);
        let why = format!(
            "matches the host {host:?} only; for this path on every host write \"/{text}\", for the host write \"{host}./{rest}\""
        );
        self.report.warn(self.document.place_of_value(path), format!("{written}: {why}"));
    }

    /// `/users/:id` is one path. For Express, and as `/users/{id}` for OpenAPI, it stands for the paths of all users.
    fn warn_of_a_placeholder(&mut self, path: &KeyPath, pattern: &MatchPattern) {
        let (PathPattern::Exact(text) | PathPattern::Prefix(text)) = &pattern.path;
        let is_name =
            |name: &str| name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        let is_placeholder = |segment: &&str| {
            let braced = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            segment.strip_prefix(':').or(braced).is_some_and(is_name)
        };
        let Some(placeholder) = text.split('/').find(is_placeholder) else { return };
        let before = text.split(placeholder).next().unwrap_or_default();
        let host = pattern.host.as_ref().map(ToString::to_string).unwrap_or_default();
        let written = self.document.original(path);
        let why = format!(
            "{placeholder:?} matches this text alone, because match has no placeholders; for all paths below {before:?} write \"{host}{before}*\""
        );
        self.report.warn(self.document.place_of_value(path), format!("{written}: {why}"));
    }

    /// `/api/` is one path. For nginx, `location /api/` stands for all paths below it, too.
    pub(super) fn warn_of_lone_folders(&mut self, routes: &[Route]) {
        for (index, route) in routes.iter().enumerate() {
            let Some(folder) = folder_of(route) else { continue };
            if routes.iter().any(|other| has_what_is_below(other, route, folder)) {
                continue;
            }
            let here = KeyPath::of("routes").index(index).key("match");
            let Route { pattern, .. } = route;
            let why = format!(
                "matches the path \"{}\" alone; for the paths below it, too, write \"{pattern}*\"",
                pattern.path
            );
            self.report.warn(self.document.place_of_value(&here), format!("{here}: {why}"));
        }
    }

    fn target(
        &mut self,
        path: &KeyPath,
        written: &file::Route,
        file: &File,
        (pattern, changes): (&MatchPattern, &Changes),
    ) -> Option<Target> {
        let there = [
            written.pool.is_some(),
            written.files.is_some(),
            written.redirect.is_some(),
            written.respond.is_some(),
            written.geo,
            written.postal,
        ];
        let mut targets = TARGETS.iter().zip(there).filter(|(_, there)| *there).map(|(key, _)| *key);
        let (first, second, third) = (targets.next(), targets.next(), targets.next());
        let second = second.filter(|second| !first.is_some_and(|first| PAIRS.contains(&(first, second))));
        if let Some(one_too_many) = second.or(third) {
            let why = format!(
                "a route has exactly one target: {} (or pool and static, or geo and postal)",
                one_of(&TARGETS)
            );
            self.refuse(&path.key(one_too_many), why);
            return None;
        }
        let Some(target) = first else {
            // An unreadable value has an error already. A key with `false` is no target.
            let is_off = |key: &str| PAIRS[1].0 == key || PAIRS[1].1 == key;
            let was_told = |key: &&str| {
                self.document.is_written(&path.key(key)) && (!is_off(key) || self.report.has_errors())
            };
            if !TARGETS.iter().any(was_told) {
                self.refuse(path, format!("the route has no target; add {}", one_of(&TARGETS)));
            }
            return None;
        };
        self.refuse_what_has_no_meaning(path, target);
        let here = path.key(target);
        if written.geo_headers {
            self.needs_data(path, "geo_headers", ("geo", "databases"), file.geo.is_some());
        }
        if let Some(name) = &written.pool {
            return self.pool_target(path, name, written, file);
        }
        if let Some(files) = &written.files {
            let rewrite = changes.rewrite.as_ref();
            return self.static_files(&here, files, pattern, rewrite).map(Target::Static);
        }
        if let Some(redirect) = &written.redirect {
            return self.redirect(&here, redirect, pattern).map(Target::Redirect);
        }
        if let Some(respond) = &written.respond {
            return self.respond(&here, respond).map(Target::Respond);
        }
        self.native(path, written, file)
    }

    /// The files that come before the pool.
    fn files_first(
        &mut self,
        path: &KeyPath,
        written: &file::Route,
        (pattern, changes): (&MatchPattern, &Changes),
    ) -> Option<StaticFiles> {
        let files = written.files.as_ref().filter(|_| written.pool.is_some())?;
        let here = path.key("static");
        for key in ["fallback", "not_found"] {
            if self.document.is_written(&here.key(key)) {
                self.refuse(
                    &here.key(key),
                    "cannot be set together with pool: requests for which there is no file go to the pool",
                );
            }
        }
        self.static_files(&here, files, pattern, changes.rewrite.as_ref())
    }

    fn refuse_what_has_no_meaning(&mut self, path: &KeyPath, target: &str) {
        let about_pools = [
            "buffer",
            "max_body_size",
            "request_timeout",
            "priority",
            "fair",
            "fallback",
            "early_hints",
            "request_headers",
            "cache",
            "collapse",
            "geo_headers",
            "trace",
        ];
        let meaningless = match target {
            "pool" => return,
            "static" => &about_pools[..],
            _ => &[&about_pools[..], &["rewrite"]].concat(),
        };
        for key in meaningless {
            if self.document.is_written(&path.key(key)) {
                let help = match (target, *key) {
                    ("static", "fallback") => "; write static = { dir = ..., fallback = ... }",
                    _ => "",
                };
                self.refuse(&path.key(key), format!("cannot be set together with {target}{help}"));
            }
        }
    }

    fn pool_target(
        &mut self,
        path: &KeyPath,
        name: &str,
        written: &file::Route,
        file: &File,
    ) -> Option<Target> {
        let Some(pool) = file.pools.get(name) else {
            let known: Vec<_> = file.pools.keys().map(String::as_str).collect();
            if !self.document.is_written(&KeyPath::of("pools").key(name)) {
                let help = match nearest(name, known.iter().copied()) {
                    Some(near) => format!("; did you mean \"{near}\"?"),
                    None if known.is_empty() => "; the configuration has no [pools.NAME]".into(),
                    None => format!("; the pools are {}", known.join(", ")),
                };
                self.refuse(&path.key("pool"), format!("there is no pool \"{name}\"{help}"));
            }
            return None;
        };
        let request_timeout: Duration = written.request_timeout.unwrap_or(pool.request_timeout).0;
        Some(Target::Pool { name: name.into(), request_timeout })
    }
}
