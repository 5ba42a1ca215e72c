//! The live page: the page, its events, and the history of fifteen minutes. Reads the Status and counters; knows no commands.
//!
//! One task takes all pictures, however many pages are open. It sends each to all pages at once. A page that reads too slowly misses
//! pictures. Without a page the task only takes a sample for the history every five seconds.

mod assets;
mod frame;
mod history;
mod quantile;
mod requests;
mod sampler;
mod shared;

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream::unfold;
use hostler_engine::gateway::refusal::{self, RefusalCause};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;

pub(super) use assets::page;

use super::status::Sources;
use requests::SingleRequests;
pub(super) use shared::Live;
use shared::event;

/// The most pages that are open at the same time.
const MOST_PAGES: usize = 32;

/// Begins the history. The task that takes pictures ends with [`Live::end`].
pub(super) fn begin(sources: Arc<Sources>) -> Arc<Live> {
    let live = Arc::new(Live::new(sources));
    tokio::spawn(sampler::run(live.clone()));
    live
}

pub(super) fn router(live: Arc<Live>) -> Router {
    Router::new()
        .route("/live/events", get(events))
        .route("/live/refusals", get(refusals))
        .route("/live/requests", get(requests))
        .route("/live/{hash}/{file}", get(assets::file))
        .with_state(live)
}

/// The history at once, then pictures until the page leaves or Hostler stops.
async fn events(State(live): State<Arc<Live>>) -> Response {
    let Some(sender) = live.events() else { return StatusCode::SERVICE_UNAVAILABLE.into_response() };
    if sender.receiver_count() >= MOST_PAGES {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many live pages are open\n").into_response();
    }
    let receiver = sender.subscribe();
    // A sender of its own would keep the channel open after the end.
    drop(sender);
    live.opened.notify_one();
    let begun = live.with_history(|history| {
        event("history", &json!({ "samples": history.samples(), "marks": history.marks() }))
    });
    let status = sampler::status_event(&live, &[]);
    let stream = unfold((receiver, vec![status, begun]), |(mut receiver, mut first)| async move {
        if let Some(event) = first.pop() {
            return Some((Ok::<_, Infallible>(event), (receiver, first)));
        }
        loop {
            match receiver.recv().await {
                Ok(event) => return Some((Ok(event), (receiver, first))),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    });
    let fields = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (fields, Body::from_stream(stream)).into_response()
}

/// The oldest requests now and the slowest of the last minute.
async fn requests(State(live): State<Arc<Live>>) -> Response {
    live.ask();
    let found = SingleRequests::take(&live.sources, &live.slowest.of_last_minute());
    ([(header::CACHE_CONTROL, "no-store")], axum::Json(found)).into_response()
}

/// What each refusal means, from the same table as the reference.
async fn refusals() -> Response {
    let explained = refusal::ALL.iter().map(|facts| {
        let cause = match facts.cause {
            RefusalCause::Client => "the client",
            RefusalCause::App => "the app",
            RefusalCause::Operator => "the configuration or the machine",
            RefusalCause::Overload => "too many requests",
        };
        let page = format!("reference/refusals.md#{}", facts.anchor());
        let text = json!({
            "status": facts.status, "cause": cause, "when": facts.when, "remedy": facts.remedy, "page": page,
        });
        (facts.reason, text)
    });
    let explained: serde_json::Map<_, _> =
        explained.map(|(reason, text)| (reason.to_owned(), text)).collect();
    ([(header::CACHE_CONTROL, "no-store")], axum::Json(explained)).into_response()
}
