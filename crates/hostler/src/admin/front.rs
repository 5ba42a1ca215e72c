//! The front page of the admin listener: its requests as text, and for browsers the status as a page. Knows no commands.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse, Response};

use super::status::Sources;
use super::table::table;
use crate::html::escaped;

const REQUESTS: &str = "\
GET  /status               everything that Hostler knows about itself, as JSON
GET  /metrics              the figures of the status as metrics, for Prometheus
GET  /table                all routes with their members, as JSON
GET  /routes               those that were registered, as gorouter answers
GET  /health               200 while clients are welcome and the pools that count can serve, else 503; as gorouter answers
GET  /health/ready         the same, with the reason; /health/ready/NAME for one pool
GET  /health/startup       200 once all of these pools could serve
GET  /health/live          200 as long as this process works

Commands, with the field Hostler-Command: 1
POST /restart              new workers for all pools
POST /pools/NAME/restart   new workers for one
POST /pools/NAME/pause     hold its requests; ?timeout=60s
POST /pools/NAME/resume    let them go
POST /purge                forget stored answers; ?url= ?prefix= ?tag= (as many as you like), ?all=true
POST /reload               apply the configuration as it is now
POST /upgrade              hand over to the program as it is now
";
const PAGE: &str = include_str!("front.html");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) async fn front(State(sources): State<Arc<Sources>>, fields: HeaderMap) -> Response {
    let accept = fields.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    // Only browsers that load a page name `text/html`.
    if !accept.is_some_and(|accept| accept.contains("text/html")) {
        return format!("Hostler's admin listener.\n\n{REQUESTS}").into_response();
    }
    let status = serde_json::to_value(sources.status()).unwrap_or_default();
    // The table has names from clients, such as paths of requests that are kept off.
    let page = PAGE.replace("{{requests}}", REQUESTS).replace("{{table}}", &escaped(&table(&status)));
    let safe = [(header::CACHE_CONTROL, "no-store"), (header::CONTENT_SECURITY_POLICY, POLICY)];
    (safe, Html(page)).into_response()
}
