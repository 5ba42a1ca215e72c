//! Admin commands over HTTP: the check of who sends them, the parameters and the answer. Does not know how a command is carried out.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::orders::{AdminCommand, Orders, Undone, order};

/// A custom field makes a browser send a CORS preflight request before it posts for another site's page. Hostler does not answer the
/// preflight.
pub const FIELD: &str = "Hostler-Command";
/// The default length of a pause.
pub const PAUSE: Duration = Duration::from_secs(60);
/// An operator who pauses for longer has most likely forgotten the pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// The body of the answer to a command.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answered {
    /// What was done, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
    /// Why the command was not carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub took_ms: u64,
}

/// Refuses commands without the field [`FIELD`]: a form on a web page cannot send it. [`visitors`](super::visitors) checks all requests.
pub async fn only_operators(request: Request, next: Next) -> Response {
    if request.headers().contains_key(FIELD) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "a command needs the field Hostler-Command: 1\n").into_response()
}

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
