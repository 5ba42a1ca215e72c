//! The files of the live page, as they are in the program. Knows no figures.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use hostler_wire::hex;
use sha1::{Digest, Sha1};

/// No inline script, no other host, no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const PAGE: &str = include_str!("page/page.html");
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// Name, content type and content of each file. The page names them by relative paths, so that all have the same hash in their paths.
const FILES: &[(&str, &str, &str)] = &[
    ("page.css", STYLE, include_str!("page/page.css")),
    ("uPlot.css", STYLE, include_str!("page/vendor/uPlot.min.css")),
    ("uPlot.js", SCRIPT, include_str!("page/vendor/uPlot.iife.min.js")),
    ("main.js", SCRIPT, include_str!("page/main.js")),
    ("stream.js", SCRIPT, include_str!("page/stream.js")),
    ("elements.js", SCRIPT, include_str!("page/elements.js")),
    ("format.js", SCRIPT, include_str!("page/format.js")),
    ("lanes.js", SCRIPT, include_str!("page/lanes.js")),
    ("blocks.js", SCRIPT, include_str!("page/blocks.js")),
    ("pools.js", SCRIPT, include_str!("page/pools.js")),
    ("plots.js", SCRIPT, include_str!("page/plots.js")),
    ("tables.js", SCRIPT, include_str!("page/tables.js")),
    ("explain.js", SCRIPT, include_str!("page/explain.js")),
    ("actions.js", SCRIPT, include_str!("page/actions.js")),
];

/// Part of the path of all files. A browser keeps them until another build has other files.
static HASH: LazyLock<String> = LazyLock::new(|| {
    let all = FILES
        .iter()
        .fold(Sha1::new(), |hash, (name, _, content)| hash.chain_update(name).chain_update(content));
    hex(&all.finalize()[..6])
});

/// The page itself.
pub fn page() -> Response {
    let page = PAGE
        .replace("{{files}}", &format!("/live/{}", *HASH))
        .replace("{{version}}", env!("CARGO_PKG_VERSION"));
    let fields = [(header::CACHE_CONTROL, "no-store"), (header::CONTENT_SECURITY_POLICY, POLICY)];
    (fields, Html(page)).into_response()
}

/// A file of the page.
pub async fn file(Path((hash, name)): Path<(String, String)>) -> Response {
    let found = FILES.iter().find(|(known, ..)| *known == name).filter(|_| hash == *HASH);
    let Some((_, kind, content)) = found else { return StatusCode::NOT_FOUND.into_response() };
    let fields = [
        (header::CONTENT_TYPE, *kind),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (fields, *content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::docs::objection;

    #[test]
    fn the_page_with_all_its_files_is_below_150_kilobytes() {
        let bytes = PAGE.len() + FILES.iter().map(|(.., content)| content.len()).sum::<usize>();
        assert!(bytes < 150_000, "{bytes} bytes");
    }

    #[test]
    fn no_file_names_another_host() {
        for (name, _, content) in FILES.iter().filter(|(name, ..)| !name.starts_with("uPlot")) {
            assert!(!content.contains("://"), "{name}");
        }
        assert!(!PAGE.contains("://"));
    }

    #[test]
    fn every_page_that_the_live_page_links_to_is_there() {
        let is_of_link = |c: char| c.is_ascii_alphanumeric() || "/.#_-".contains(c);
        let mut links = Vec::new();
        for (_, _, text) in FILES.iter().chain([&("page.html", "", PAGE)]) {
            let words = text.split(|c| !is_of_link(c));
            links.extend(
                words.filter(|word| word.contains(".md")).map(|word| word.trim_start_matches("/docs/")),
            );
        }
        assert!(links.len() > 10, "{links:?}");
        for link in links {
            assert_eq!(objection(link), None);
        }
    }
}
