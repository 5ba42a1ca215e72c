//! `GET /metrics`: the Status as metrics for Prometheus. Knows no counters, only the Status.

mod families;
mod rows;
mod table;
mod text;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::status::Sources;
pub use table::{Kind, METRICS};
use text::Format;

pub(super) async fn metrics(State(sources): State<Arc<Sources>>, fields: HeaderMap) -> Response {
    let accept = fields.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let format = Format::wanted(accept);
    match text::encode(sources.status(), format) {
        Ok(text) => {
            let fields = [(header::CONTENT_TYPE, format.content_type()), (header::CACHE_CONTROL, "no-store")];
            (fields, text).into_response()
        }
        // Formatting into a string does not fail.
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
