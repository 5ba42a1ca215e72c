//! Where questions come in: the admin listener. Knows the Status, and nothing of requests.

mod status;
mod table;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

pub use status::{PoolSource, Sources, Status};
pub use table::table;

/// Answers until the program ends. Questions are few, so this lives on the control thread and takes nothing from requests.
pub async fn serve(listener: TcpListener, sources: Arc<Sources>) {
    let routes = Router::new().route("/", get(front)).route("/status", get(status)).with_state(sources);
    // An accept that fails is retried by axum; there is no other way out.
    let _ = axum::serve(listener, routes).await;
}

async fn front() -> &'static str {
    "Hostler's admin listener.\n\nGET /status   everything that Hostler knows about itself, as JSON\n"
}

async fn status(State(sources): State<Arc<Sources>>) -> impl IntoResponse {
    let json = serde_json::to_vec_pretty(&sources.status()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")], json)
}
