//! Profiles and heap snapshots over HTTP: the parameters, and the answer piece by piece. Does not know how they are taken.
//!
//! The answer is a sequence of frames. A frame is one line of JSON; after a line with `data`, that many bytes follow:
//!
//! ```text
//! {"began":{"worker":2,"pid":4711}}
//! {"progress":"profiling for 5 s"}
//! {"data":65536}
//! ...bytes...
//! {"done":true}
//! ```
//!
//! An answer without `done` or `error` at its end is incomplete. If the client closes the connection, the profile or snapshot ends.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use bytes::Bytes;
use futures_util::stream;
use hostler_config::{nearest, parse_duration};
use hostler_worker::{InspectionEvent, InspectionKind, Supervisor};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::commands::CommandError;
use super::http::Answered;
use super::status::Sources;

const MAX_SECONDS: f64 = 60.0;
const MIN_SECONDS: f64 = 0.01;
/// Microseconds.
const MIN_INTERVAL: u64 = 100;
const MAX_INTERVAL: u64 = 1_000_000;
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// One line of the answer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InspectionFrame {
    /// This worker is inspected.
    Began {
        /// Its number.
        worker: usize,
        /// Its process.
        pid: u32,
    },
    /// What happens now.
    Progress(String),
    /// So many bytes of the file follow.
    Data(usize),
    /// The file is complete.
    Done(bool),
    /// It is not, for this reason.
    Error(String),
}

pub(super) fn routes(sources: Arc<Sources>) -> Router {
    Router::new()
        .route("/pools/{pool}/profile", post(profile_busiest))
        .route("/pools/{pool}/workers/{worker}/profile", post(profile))
        .route("/pools/{pool}/workers/{worker}/heap", post(heap))
        .with_state(sources)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileQuery {
    seconds: Option<f64>,
    /// Microseconds.
    interval: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeapQuery {
    wait: Option<String>,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    replace: bool,
}

async fn profile_busiest(
    State(sources): State<Arc<Sources>>,
    Path(pool): Path<String>,
    Query(profiling): Query<ProfileQuery>,
) -> Response {
    take_profile(&sources, &pool, None, &profiling).await
}

async fn profile(
    State(sources): State<Arc<Sources>>,
    Path((pool, worker)): Path<(String, usize)>,
    Query(profiling): Query<ProfileQuery>,
) -> Response {
    take_profile(&sources, &pool, Some(worker), &profiling).await
}

async fn take_profile(
    sources: &Sources,
    pool: &str,
    worker: Option<usize>,
    profiling: &ProfileQuery,
) -> Response {
    let seconds = profiling.seconds.unwrap_or(5.0);
    let interval = profiling.interval.unwrap_or(1000);
    if !(MIN_SECONDS..=MAX_SECONDS).contains(&seconds) {
        return bad_request("seconds: a number from 0.01 to 60\n");
    }
    if !(MIN_INTERVAL..=MAX_INTERVAL).contains(&interval) {
        return bad_request("interval: microseconds, from 100 to 1000000\n");
    }
    let kind = InspectionKind::Profile {
        length: Duration::from_secs_f64(seconds),
        interval: Duration::from_micros(interval),
    };
    inspect(sources, pool, worker, kind, false).await
}

async fn heap(
    State(sources): State<Arc<Sources>>,
    Path((pool, worker)): Path<(String, usize)>,
    Query(snapping): Query<HeapQuery>,
) -> Response {
    let wait = snapping.wait.map_or(Ok(Duration::from_secs(30)), |text| parse_duration(&text));
    match wait {
        Ok(wait) if wait <= MAX_WAIT => {
            let kind = InspectionKind::Heap { wait, force: snapping.force };
            inspect(&sources, &pool, Some(worker), kind, snapping.replace).await
        }
        _ => bad_request("wait: a time such as 30s, at most 1h\n"),
    }
}

fn bad_request(text: &'static str) -> Response {
    (StatusCode::BAD_REQUEST, text).into_response()
}

fn refused(error: &CommandError) -> Response {
    let status = match error {
        CommandError::UnknownPool { .. } => StatusCode::NOT_FOUND,
        _ => StatusCode::CONFLICT,
    };
    let answered = Answered { done: Vec::new(), error: Some(error.to_string()), took_ms: 0 };
    (status, [(header::CACHE_CONTROL, "no-store")], Json(answered)).into_response()
}

async fn inspect(
    sources: &Sources,
    pool: &str,
    worker: Option<usize>,
    kind: InspectionKind,
    replace: bool,
) -> Response {
    let supervisor = match supervisor(sources, pool) {
        Ok(supervisor) => supervisor,
        Err(error) => return refused(&error),
    };
    let mut events = supervisor.inspect(worker, kind);
    let stopping = || InspectionEvent::Refused("the workers are being stopped".into());
    match events.recv().await.unwrap_or_else(stopping) {
        InspectionEvent::Began { worker, pid } => {
            let replaced = replace.then_some((supervisor, worker));
            let reading =
                InspectionAnswer { events, next: Some(InspectionEvent::Began { worker, pid }), replaced };
            let body = Body::from_stream(stream::unfold(reading, InspectionAnswer::frame));
            let kind = (header::CONTENT_TYPE, "application/octet-stream");
            ([kind, (header::CACHE_CONTROL, "no-store")], body).into_response()
        }
        InspectionEvent::Refused(why) | InspectionEvent::Failed(why) => refused(&CommandError::Refused(why)),
        _ => refused(&CommandError::Failed("unexpected beginning".into())),
    }
}

fn supervisor(sources: &Sources, name: &str) -> Result<Arc<Supervisor>, CommandError> {
    let pools = sources.pools.load();
    let pool = pools.iter().find(|pool| *pool.name == *name).ok_or_else(|| CommandError::UnknownPool {
        name: name.to_owned(),
        meant: nearest(name, pools.iter().map(|pool| &*pool.name)).map(Into::into),
    })?;
    pool.supervisor.clone().ok_or_else(|| {
        CommandError::Refused(format!(
            "pool {name}: Hostler does not run its members, so it cannot look into them"
        ))
    })
}

/// An answer that is being sent. Dropping it ends the inspection.
struct InspectionAnswer {
    events: mpsc::Receiver<InspectionEvent>,
    next: Option<InspectionEvent>,
    /// The worker to replace when the file is complete.
    replaced: Option<(Arc<Supervisor>, usize)>,
}

impl InspectionAnswer {
    async fn frame(mut self) -> Option<(Result<Bytes, std::convert::Infallible>, Self)> {
        let event = match self.next.take() {
            Some(event) => event,
            None => self.events.recv().await?,
        };
        let mut bytes = Vec::new();
        let frame = match event {
            InspectionEvent::Began { worker, pid } => InspectionFrame::Began { worker, pid },
            InspectionEvent::Progress(text) => InspectionFrame::Progress(text),
            InspectionEvent::Data(data) => {
                bytes = data;
                InspectionFrame::Data(bytes.len())
            }
            InspectionEvent::Done => {
                if let Some((supervisor, worker)) = self.replaced.take() {
                    supervisor.replace(worker);
                }
                InspectionFrame::Done(true)
            }
            InspectionEvent::Failed(why) | InspectionEvent::Refused(why) => InspectionFrame::Error(why),
        };
        let mut line = serde_json::to_vec(&frame).unwrap_or_default();
        line.push(b'\n');
        line.extend_from_slice(&bytes);
        Some((Ok(Bytes::from(line)), self))
    }
}
