//! Orders over HTTP: who may give them, and how they are answered. Knows nothing of how they are carried out.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::orders::{AdminCommand, Orders, Undone, order};

/// A field of our own makes a browser ask before it sends for a page, and we do not answer that question.
pub const FIELD: &str = "Hostler-Command";
/// How long a pause lasts that says nothing else.
pub const PAUSE: Duration = Duration::from_secs(60);
/// Whoever needs longer has forgotten it.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// What is answered to an order.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answered {
    /// What was done, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
    /// Why it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took.
    pub took_ms: u64,
}

/// Lets no order of a web page in: one that sends a form here has no field of ours. What holds for all is in [`visitors`](super::visitors).
pub async fn only_operators(request: Request, next: Next) -> Response {
    if request.headers().contains_key(FIELD) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "an order needs the field Hostler-Command: 1\n").into_response()
}

/// How long to pause.
#[derive(Debug, Deserialize)]
pub struct Pausing {
    timeout: Option<String>,
}

pub async fn restart_all(State(orders): State<Orders>) -> Response {
    answer(&orders, AdminCommand::Restart(None)).await
}

pub async fn restart(State(orders): State<Orders>, Path(pool): Path<String>) -> Response {
    answer(&orders, AdminCommand::Restart(Some(pool))).await
}

pub async fn pause(
    State(orders): State<Orders>,
    Path(pool): Path<String>,
    Query(pausing): Query<Pausing>,
) -> Response {
    let timeout = pausing.timeout.map_or(Ok(PAUSE), |text| humantime::parse_duration(&text));
    match timeout {
        Ok(timeout) if !timeout.is_zero() && timeout <= LONGEST_PAUSE => {
            answer(&orders, AdminCommand::Pause(pool, timeout)).await
        }
        _ => (StatusCode::BAD_REQUEST, "timeout: a time such as 60s, at most 1h\n").into_response(),
    }
}

pub async fn resume(State(orders): State<Orders>, Path(pool): Path<String>) -> Response {
    answer(&orders, AdminCommand::Resume(pool)).await
}

pub async fn reload(State(orders): State<Orders>) -> Response {
    answer(&orders, AdminCommand::Reload).await
}

pub async fn upgrade(State(orders): State<Orders>) -> Response {
    answer(&orders, AdminCommand::Upgrade).await
}

pub(super) async fn answer(orders: &Orders, command: AdminCommand) -> Response {
    let asked = Instant::now();
    let outcome = order(orders, command).await;
    let took_ms = asked.elapsed().as_millis() as u64;
    let (status, answered) = match outcome {
        Ok(done) => (StatusCode::OK, Answered { done, error: None, took_ms }),
        Err(undone) => {
            let status = match undone {
                Undone::UnknownPool { .. } => StatusCode::NOT_FOUND,
                Undone::Invalid(_) => StatusCode::BAD_REQUEST,
                Undone::Refused(_) => StatusCode::CONFLICT,
                Undone::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, Answered { done: Vec::new(), error: Some(undone.to_string()), took_ms })
        }
    };
    (status, [(header::CACHE_CONTROL, "no-store")], Json(answered)).into_response()
}
