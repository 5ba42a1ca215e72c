//! Admin commands over HTTP: the parameters and the answer. Does not know how a command is carried out.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hostler_config::parse_duration;
use hostler_worker::Rotation;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::commands::{AdminCommand, CommandError, CommandSender, send};

/// A form on a web page cannot send this field. [`access`](super::access) checks it.
pub const FIELD: &str = "Hostler-Command";
/// The default length of a pause.
pub const PAUSE: Duration = Duration::from_secs(60);
/// An operator who pauses for longer has most likely forgotten the pause.
const MAX_PAUSE: Duration = Duration::from_secs(3600);
const MAX_DRAIN: Duration = Duration::from_secs(7 * 24 * 3600);

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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pausing {
    timeout: Option<String>,
}

pub async fn restart_all(State(commands): State<CommandSender>) -> Response {
    answer(&commands, AdminCommand::Restart(None)).await
}

pub async fn restart(State(commands): State<CommandSender>, Path(pool): Path<String>) -> Response {
    answer(&commands, AdminCommand::Restart(Some(pool))).await
}

pub async fn pause(
    State(commands): State<CommandSender>,
    Path(pool): Path<String>,
    Query(pausing): Query<Pausing>,
) -> Response {
    let timeout = pausing.timeout.map_or(Ok(PAUSE), |text| parse_duration(&text));
    match timeout {
        Ok(timeout) if !timeout.is_zero() && timeout <= MAX_PAUSE => {
            answer(&commands, AdminCommand::Pause(pool, timeout)).await
        }
        _ => (StatusCode::BAD_REQUEST, "timeout: a time such as 60s, at most 1h\n").into_response(),
    }
}

pub async fn resume(State(commands): State<CommandSender>, Path(pool): Path<String>) -> Response {
    answer(&commands, AdminCommand::Resume(pool)).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draining {
    #[serde(rename = "for")]
    length: Option<String>,
    #[serde(default)]
    force: bool,
}

pub async fn drain(
    State(commands): State<CommandSender>,
    Path((pool, worker)): Path<(String, usize)>,
    Query(Draining { length, force }): Query<Draining>,
) -> Response {
    let length = length.map(|text| parse_duration(&text)).transpose();
    match length {
        Ok(length) if length.is_none_or(|length| !length.is_zero() && length <= MAX_DRAIN) => {
            let rotation = Rotation::Out { length, force };
            answer(&commands, AdminCommand::Rotate(pool, worker, rotation)).await
        }
        _ => (StatusCode::BAD_REQUEST, "for: a time such as 10m, at most 7d\n").into_response(),
    }
}

pub async fn undrain(
    State(commands): State<CommandSender>,
    Path((pool, worker)): Path<(String, usize)>,
) -> Response {
    answer(&commands, AdminCommand::Rotate(pool, worker, Rotation::In)).await
}

pub async fn reload(State(commands): State<CommandSender>) -> Response {
    answer(&commands, AdminCommand::Reload).await
}

pub async fn upgrade(State(commands): State<CommandSender>) -> Response {
    answer(&commands, AdminCommand::Upgrade).await
}

pub(super) async fn answer(commands: &CommandSender, command: AdminCommand) -> Response {
    let asked = Instant::now();
    let outcome = send(commands, command).await;
    let took_ms = asked.elapsed().as_millis() as u64;
    let (status, answered) = match outcome {
        Ok(done) => (StatusCode::OK, Answered { done, error: None, took_ms }),
        Err(error) => {
            let status = match error {
                CommandError::UnknownPool { .. } => StatusCode::NOT_FOUND,
                CommandError::Invalid(_) => StatusCode::BAD_REQUEST,
                CommandError::Refused(_) | CommandError::TakenOver { .. } => StatusCode::CONFLICT,
                CommandError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, Answered { done: Vec::new(), error: Some(error.to_string()), took_ms })
        }
    };
    (status, [(header::CACHE_CONTROL, "no-store")], Json(answered)).into_response()
}
