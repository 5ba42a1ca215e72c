//! PM2's own server of files (`script: "serve"`) as a folder that Hostler serves. Runs nothing.

use std::collections::BTreeMap;

use super::config_text::joined;
use super::found::FoundFiles;

/// The script by which an ecosystem file asks for it.
pub(super) const SERVE: &str = "serve";

/// The folder in `cwd`, by the variables of the app or else its first argument.
pub(super) fn files(env: &BTreeMap<String, String>, arguments: &[String], cwd: &str) -> FoundFiles {
    let of = |name: &str| env.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let dir = of("PM2_SERVE_PATH").or(arguments.first().map(String::as_str)).unwrap_or(".");
    let page = of("PM2_SERVE_HOMEPAGE").unwrap_or("index.html");
    let is_single_page = of("PM2_SERVE_SPA") == Some("true");
    FoundFiles {
        why: "PM2 serves the files of this folder (script: \"serve\").".into(),
        paths: "*".into(),
        dir: joined(cwd, dir),
        fallback: is_single_page.then(|| page.trim_start_matches(['.', '/']).to_owned()),
        ..FoundFiles::default()
    }
}

/// What Hostler does not do in its place.
pub(super) fn missing(env: &BTreeMap<String, String>) -> Option<String> {
    let is_set = |name: &str| env.get(name).is_some_and(|value| value == "true");
    is_set("PM2_SERVE_BASIC_AUTH").then(|| {
        "PM2_SERVE_BASIC_AUTH: Hostler asks for no password, so every client can read these files.".into()
    })
}
