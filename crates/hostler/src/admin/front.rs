//! The front of the admin listener: its requests as text, and for browsers the live page. Knows no commands.

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

use super::live;

const REQUESTS: &str = "\
GET  /status               everything that Hostler knows about itself, as JSON
GET  /metrics              the figures of the status as metrics, for Prometheus
GET  /table                all routes with their members, as JSON
GET  /routes               the registered routes, in the format of gorouter
GET  /health               200 while Hostler accepts clients and each pool of server.health_pools has a ready member, otherwise 503; as gorouter answers
GET  /health/ready         the same, with the reason; /health/ready/NAME for one pool
GET  /health/startup       200 after all of these pools have been ready at the same time, before that 503
GET  /health/live          200 as long as this process works
GET  /docs/                the documentation of this version: docs/guide/admin.md is /docs/guide/admin.md

Commands, with the header field Hostler-Command: 1, or with Authorization: Bearer TOKEN if there is an admin token
POST /restart              new workers for all pools
POST /pools/NAME/restart   new workers for one pool
POST /pools/NAME/pause     hold the requests of the pool in its queue; ?timeout=60s
POST /pools/NAME/resume    let the waiting requests continue
POST /pools/NAME/workers/N/drain    give it no new requests; ?for=10m
POST /pools/NAME/workers/N/undrain  give it requests again
POST /pools/NAME/profile            a CPU profile of a worker: use hostler profile
POST /pools/NAME/workers/N/heap     a heap snapshot: use hostler heap
POST /purge                remove stored responses; ?url= ?prefix= ?tag= (each can be repeated), ?all=true
POST /reload               read the configuration file again, and apply it
POST /upgrade              start the program file anew, and hand over to the new process
";

pub(super) async fn front(fields: HeaderMap) -> Response {
    let accept = fields.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    // Only browsers that load a page name `text/html`.
    if accept.is_some_and(|accept| accept.contains("text/html")) {
        return live::page();
    }
    format!("Hostler's admin listener.\n\n{REQUESTS}").into_response()
}
