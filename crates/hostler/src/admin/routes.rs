//! `/routes`: the routes and the members that serve them. Knows no requests of clients.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hostler_engine::journal::on_one_line;
use serde::Serialize;
use serde_json::{Value, json};

use super::status::{PoolSource, RouteSource, Sources};
use super::table::{array, line, millis, text, write_rows};

const NO_STORE: [(header::HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];

/// All routes, the configured ones first.
pub async fn table(State(sources): State<Arc<Sources>>) -> Response {
    let pools = sources.pools.load();
    let routes = sources.routes.load();
    // Once for each pool, because many routes may lead to one. The rows share them: a thousand routes to a thousand workers would be a million.
    let members: HashMap<&str, Vec<PoolMember>> =
        pools.iter().map(|pool| (&*pool.name, members(pool))).collect();
    let configured = routes.iter().map(|route| TableRow::Configured(row(route, &members)));
    let registered = sources.registrations.iter().flat_map(|registrations| (registrations.table)());
    let routes = configured.chain(registered.map(TableRow::Registered)).collect();
    (NO_STORE, Json(RouteTable { routes })).into_response()
}

#[derive(Serialize)]
struct RouteTable<'a> {
    routes: Vec<TableRow<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum TableRow<'a> {
    Configured(ConfiguredRow<'a>),
    Registered(Value),
}

#[derive(Serialize)]
struct ConfiguredRow<'a> {
    route: &'a str,
    target: &'a str,
    members: &'a [PoolMember],
}

#[derive(Serialize)]
struct PoolMember {
    address: Arc<str>,
}

fn members(pool: &PoolSource) -> Vec<PoolMember> {
    let snapshot = pool.pool.snapshot_with(|endpoint| endpoint.label.clone());
    snapshot.members.into_iter().map(|member| PoolMember { address: member.endpoint }).collect()
}

fn row<'a>(route: &'a RouteSource, members: &'a HashMap<&str, Vec<PoolMember>>) -> ConfiguredRow<'a> {
    let members = route.pool.as_ref().and_then(|name| members.get(&**name));
    let members = members.map_or(&[][..], Vec::as_slice);
    ConfiguredRow { route: &route.pattern, target: &route.target, members }
}

/// The registered routes. Without a registrar the table is empty.
pub async fn registered(State(sources): State<Arc<Sources>>) -> Response {
    let routes = sources.registrations.as_ref().map_or(json!({}), |registrations| (registrations.routes)());
    (NO_STORE, Json(routes)).into_response()
}

/// The answer of [`table`] as text.
pub fn as_text(table: &Value) -> String {
    let mut rows = vec![["route", "to", "member", "age", "ttl", ""].map(String::from).to_vec()];
    for route in array(&table["routes"]) {
        let mut begin = [text(&route["route"]).to_owned(), text(&route["target"]).to_owned()];
        let members = array(&route["members"]);
        if members.is_empty() {
            rows.push(begin.to_vec());
        }
        // Workers have numbers. A line for each would hide the routes.
        if members.len() > 1 && members.iter().all(is_worker) {
            let [name, target] = std::mem::take(&mut begin);
            rows.push(vec![
                name,
                target,
                format!("{} workers", members.len()),
                "-".into(),
                "-".into(),
                "".into(),
            ]);
            continue;
        }
        for member in members {
            let [name, target] = std::mem::take(&mut begin);
            let ttl = match &member["age_ms"] {
                Value::Null => "-".into(),
                _ if member["ttl_ms"].is_null() => "none".into(),
                _ => millis(&member["ttl_ms"]),
            };
            // Any client of NATS can write the host of a member.
            let address = line(&member["address"]);
            rows.push(vec![name, target, address, millis(&member["age_ms"]), ttl, notes(member)]);
        }
    }
    let mut out = String::new();
    write_rows(&mut out, &rows);
    out
}

fn is_worker(member: &Value) -> bool {
    member["address"].as_str().is_some_and(|address| address.bytes().all(|byte| byte.is_ascii_digit()))
}

fn notes(member: &Value) -> String {
    let mut notes = Vec::new();
    if member["tls"] == true {
        notes.push("tls".to_owned());
    }
    if member["protocol"] == "http2" {
        notes.push("http2".to_owned());
    }
    for key in ["zone", "instance"] {
        if let Some(value) = member[key].as_str().filter(|value| !value.is_empty()) {
            notes.push(format!("{key} {value}"));
        }
    }
    on_one_line(&notes.join(", ")).collect()
}

#[cfg(test)]
mod tests {
    use hostler_config::MatchPattern;

    use super::*;

    #[test]
    fn routes_to_one_pool_share_its_members() {
        let members = HashMap::from([("web", vec![PoolMember { address: "1".into() }])]);
        let route = |pattern: &str| RouteSource {
            pattern: pattern.into(),
            matching: (MatchPattern::ALL, None),
            target: "pool web".into(),
            pool: Some("web".into()),
            counters: Arc::default(),
            account: None,
            rate_limit: None,
            early_hints: None,
        };
        let routes = [route("/a"), route("/b")];
        let [one, other] = routes.each_ref().map(|route| row(route, &members));
        assert!(std::ptr::eq(one.members, other.members));
        let shown = serde_json::to_value(TableRow::Configured(one)).unwrap();
        assert_eq!(shown, json!({ "route": "/a", "target": "pool web", "members": [{ "address": "1" }] }));
    }

    #[test]
    fn the_workers_of_a_pool_take_one_line() {
        let members = |addresses: &[&str]| -> Vec<Value> {
            addresses.iter().map(|address| json!({ "address": address })).collect()
        };
        let table = json!({ "routes": [
            { "route": "/a", "target": "pool web", "members": members(&["1", "2", "3"]) },
            { "route": "/b", "target": "pool one", "members": members(&["1"]) },
            { "route": "/c", "target": "pool api", "members": members(&["10.0.0.5:3000", "10.0.0.6:3000"]) },
        ] });
        let shown = as_text(&table);
        let words: Vec<Vec<_>> =
            shown.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0], ["/a", "pool", "web", "3", "workers", "-", "-"]);
        assert_eq!(words[1], ["/b", "pool", "one", "1", "-", "-"]);
        assert_eq!(words[2], ["/c", "pool", "api", "10.0.0.5:3000", "-", "-"]);
        assert_eq!(words[3], ["10.0.0.6:3000", "-", "-"]);
    }

    #[test]
    fn no_member_can_write_control_characters_to_the_terminal() {
        let member = json!({ "address": "a\u{1b}[2Jb\nc:80", "zone": "z\u{7}" });
        let route = json!({ "route": "a.test", "target": "registered", "members": [member] });
        let shown = as_text(&json!({ "routes": [route] }));
        assert!(shown.contains("a [2Jb c:80") && shown.lines().count() == 2, "{shown:?}");
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }
}
