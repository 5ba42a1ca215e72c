//! `/openapi.json`: the description of the services for programs (OpenAPI 3.1). Knows no data.

use hostler_wire::ResponseHead;
use serde_json::{Map, Value, json};

use hostler_wire::Whole;

/// Written by hand. The tests compare it with the responses.
const GEO: &str = include_str!("openapi/geo.json");
const POSTAL: &str = include_str!("openapi/postal.json");

/// The description of the services that are on. `server` is the prefix of their paths.
pub(super) fn describe(geo: bool, postal: bool, server: &str) -> Whole {
    let parts = [(geo, GEO), (postal, POSTAL)].into_iter().filter(|(there, _)| *there);
    let (mut paths, mut parameters, mut schemas) = (Map::new(), Map::new(), Map::new());
    for (_, part) in parts {
        let part: Value = serde_json::from_str(part).expect("invariant: a file of ours is JSON");
        let take = |from: &str, into: &mut Map<String, Value>| {
            let entries = part.pointer(from).and_then(Value::as_object);
            into.extend(entries.into_iter().flatten().map(|(name, entry)| (name.clone(), entry.clone())));
        };
        take("/paths", &mut paths);
        take("/components/parameters", &mut parameters);
        take("/components/schemas", &mut schemas);
    }
    let server = if server.is_empty() { "/" } else { server };
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Hostler lookups", "version": env!("CARGO_PKG_VERSION"), "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" } },
        "servers": [{ "url": server }],
        "paths": paths,
        "components": { "parameters": parameters, "schemas": schemas },
    });
    let mut head = ResponseHead::with_status(200);
    head.fields.add(b"Content-Type", b"application/json");
    head.fields.add(b"Cache-Control", b"public, max-age=3600");
    Whole::new(head, format!("{document}\n"))
}
