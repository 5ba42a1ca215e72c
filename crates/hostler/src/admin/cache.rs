//! The cache in the Status, and `POST /purge`, which removes entries from it. Knows no requests.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hostler_cache::ServerStatus;
use hostler_engine::cache::SharedCache;
use serde::Serialize;
use serde_json::Value;

use super::commands::{AdminCommand, CommandSender, Purging};
use super::http::answer;

#[derive(Debug, Serialize)]
pub struct CacheReport {
    pub keys: u64,
    pub bytes: u64,
    pub limit: u64,
    pub evicted: u64,
    pub purged: u64,
    pub fetching: usize,
    pub memcached: Vec<ServerStatus>,
}

/// None until a response was stored, unless there is memcached.
pub(super) fn status(shared_cache: &Arc<SharedCache>) -> Option<CacheReport> {
    let counts = shared_cache.memory.counts();
    let memcached = shared_cache.tier.load().as_ref().map(|tier| tier.status()).unwrap_or_default();
    let is_used = counts.has_stored || !memcached.is_empty();
    is_used.then(|| CacheReport {
        keys: counts.keys,
        bytes: counts.bytes,
        limit: shared_cache.memory.capacity(),
        evicted: counts.evicted,
        purged: counts.purged,
        fetching: shared_cache.flights.count(),
        memcached,
    })
}

/// The cache's lines in the text table.
pub(super) fn write(out: &mut String, cache: &Value, bytes: fn(&Value) -> String) {
    if cache.is_null() {
        return;
    }
    let (held, limit) = (bytes(&cache["bytes"]), bytes(&cache["limit"]));
    let _ = write!(out, "cache: {} keys, {held} of {limit}", cache["keys"]);
    for (key, what) in [("evicted", "evicted"), ("purged", "purged"), ("fetching", "being fetched")] {
        if cache[key].as_u64() > Some(0) {
            let _ = write!(out, ", {} {what}", cache[key]);
        }
    }
    out.push('\n');
    for server in cache["memcached"].as_array().into_iter().flatten() {
        let name = server["server"].as_str().unwrap_or_default();
        let _ = write!(out, "  memcached {name}: ");
        match server["why"].as_str() {
            Some(why) => drop(write!(out, "NOT IN USE ({why})")),
            None => out.push_str("in use"),
        }
        let _ = writeln!(
            out,
            ", {} hits, {} misses, {} slow, {} failed, {} garbled, {} stored, {} dropped",
            server["hits"],
            server["misses"],
            server["slow"],
            server["failed"],
            server["garbled"],
            server["stored"],
            server["dropped"],
        );
    }
}

/// `POST /purge?url=..&prefix=..&tag=..&all=true`. Each parameter may be repeated.
pub(super) async fn purge(State(commands): State<CommandSender>, RawQuery(query): RawQuery) -> Response {
    match purging(query.as_deref().unwrap_or_default()) {
        Ok(purging) => answer(&commands, AdminCommand::Purge(purging)).await,
        Err(why) => (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response(),
    }
}

fn purging(query: &str) -> Result<Purging, String> {
    let mut purging = Purging::default();
    for (name, value) in query.split('&').filter(|part| !part.is_empty()).map(split) {
        // A `+` stays a plus sign, as in a URL that an operator pastes.
        let value = percent_encoding::percent_decode_str(value).decode_utf8();
        let value = value.map_err(|_| format!("{name}: not UTF-8"))?.into_owned();
        match (name, value.as_str()) {
            ("url" | "prefix" | "tag", "") => return Err(format!("{name}: the value is empty")),
            ("url", _) => purging.urls.push(value),
            ("prefix", _) => purging.prefixes.push(value),
            ("tag", _) => purging.tags.push(value),
            ("all", "" | "true" | "1") => purging.all = true,
            ("all", _) => return Err("all: the only value is true".into()),
            _ => return Err(format!("unknown parameter {name:?}; known are url, prefix, tag, all")),
        }
    }
    Ok(purging)
}

fn split(part: &str) -> (&str, &str) {
    part.split_once('=').unwrap_or((part, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purge_parameters_may_repeat_in_any_order() {
        let named =
            purging("tag=a%20b&url=https%3A%2F%2Fx.org%2F%3Fa%3D1%26b&tag=c+d&prefix=x.org/shop/&all")
                .unwrap();
        assert_eq!(named.urls, ["https://x.org/?a=1&b"]);
        assert_eq!(named.tags, ["a b", "c+d"]);
        assert_eq!(named.prefixes, ["x.org/shop/"]);
        assert!(named.all);
    }

    #[test]
    fn an_unknown_purge_parameter_is_refused_by_name() {
        for (query, part) in [
            ("tags=a", "unknown parameter \"tags\""),
            ("url=", "url: the value is empty"),
            ("all=false", "all: the only value"),
            ("tag=%ff", "not UTF-8"),
        ] {
            let why = purging(query).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
