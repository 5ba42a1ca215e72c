//! The health check endpoints of the admin listener. Knows no pools.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hostler_engine::gateway::HealthProbe;

use super::status::Sources;

/// Answers without a reason.
pub async fn without_reason(State(sources): State<Arc<Sources>>) -> Response {
    let fields = [(header::CACHE_CONTROL, "private, max-age=0"), (header::EXPIRES, "0")];
    match sources.health.ask(&HealthProbe::Ready) {
        Some(Ok(())) => (fields, "ok\n").into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, fields).into_response(),
    }
}

pub async fn live(State(sources): State<Arc<Sources>>) -> Response {
    answer(&sources, &HealthProbe::Live)
}

pub async fn startup(State(sources): State<Arc<Sources>>) -> Response {
    answer(&sources, &HealthProbe::Startup)
}

pub async fn ready(State(sources): State<Arc<Sources>>) -> Response {
    answer(&sources, &HealthProbe::Ready)
}

pub async fn pool(State(sources): State<Arc<Sources>>, Path(pool): Path<String>) -> Response {
    answer(&sources, &HealthProbe::Pool(pool))
}

/// The same answer as on the data plane.
fn answer(sources: &Sources, probe: &HealthProbe) -> Response {
    let whole = sources.health.answer(probe);
    let status = StatusCode::from_u16(whole.head.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let fields = [(header::CACHE_CONTROL, "no-store"), (header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    (status, fields, whole.body).into_response()
}
