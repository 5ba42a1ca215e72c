//! The documentation of this version as pages, so that a link in an advice leads somewhere also without a network. Knows no figures.

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use hostler_coding::{Coding, choose};

/// Styles and pictures of its own, and nothing from another host.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

pub(super) fn router() -> Router {
    Router::new()
        // The links of a page are relative, so the list of pages needs the slash.
        .route("/docs", get(async || Redirect::permanent("/docs/")))
        .route("/docs/", get(async |fields: HeaderMap| page("", &fields)))
        .route("/docs/{*path}", get(async |Path(path): Path<String>, fields: HeaderMap| page(&path, &fields)))
}

/// The paths are those of the repository: `docs/guide/live.md` in the log is `/docs/guide/live.md` here.
fn page(path: &str, fields: &HeaderMap) -> Response {
    let Some(file) = hostler_docs::file(path) else {
        return (StatusCode::NOT_FOUND, "there is no such page; /docs/ lists all pages\n").into_response();
    };
    let accepted = fields.get_all(header::ACCEPT_ENCODING).iter().map(|value| value.as_bytes());
    let fields: [(HeaderName, &str); 4] = [
        (header::CONTENT_TYPE, file.media_type()),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        // An upgrade of Hostler brings other pages.
        (header::CACHE_CONTROL, "no-cache"),
        (header::VARY, "accept-encoding"),
    ];
    match choose(accepted, &[Coding::Gzip]) {
        Some(_) => (fields, [(header::CONTENT_ENCODING, "gzip")], file.gzip()).into_response(),
        None => (fields, file.content()).into_response(),
    }
}

/// Why a link to a page and perhaps a heading leads nowhere.
#[cfg(test)]
pub(super) fn objection(link: &str) -> Option<String> {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let Some(file) = hostler_docs::file(path) else { return Some(format!("{link}: no such page")) };
    let text = String::from_utf8(file.content()).unwrap();
    let is_there = heading.is_empty() || text.contains(&format!(" id=\"{heading}\""));
    (!is_there).then(|| format!("{link}: no such heading"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_page_or_a_heading_that_is_not_there_is_found() {
        assert_eq!(objection("guide/live.md#lanes"), None);
        assert!(objection("guide/live.md#nothing").is_some() && objection("guide/nothing.md").is_some());
    }
}
