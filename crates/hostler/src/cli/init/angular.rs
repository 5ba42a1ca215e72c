//! Recognises an Angular app: the server of its build, or only pages. Its `start` script is the development server. Runs nothing.

use serde_json::Value;

use super::found::FoundFiles;
use super::package::NodePackage;
use super::recognised::Recognised;
use super::script_line::ScriptLine;

/// The forwarding fields that Hostler sets in each request. Angular 19 to 21 render no page of a request with one that they do not trust, and 22
/// warns at each.
const TRUSTED: (&str, &str) =
    ("NG_TRUST_PROXY_HEADERS", "x-forwarded-for,x-forwarded-host,x-forwarded-proto");

pub(super) fn angular(package: &NodePackage) -> Option<Recognised> {
    if !package.has("@angular/core") {
        return None;
    }
    let build = Build::read(package);
    if !package.has("@angular/ssr") || build.is_static {
        // Any other script starts a server of the app's own.
        let start = package.script("start").map(|_| package.unwrapped("start"));
        let is_for_development = start.is_none_or(|line| {
            let program = line.and_then(|line| line.words.into_iter().next()).unwrap_or_default();
            program.rsplit('/').next() == Some("ng")
        });
        if !is_for_development {
            return None;
        }
        // If / is a prerendered page, the page for all other paths has this name.
        let has_own = package.is_there(&format!("{}/index.csr.html", build.browser));
        let files = FoundFiles {
            why: "A single-page app. Hostler serves the files of the build itself.".into(),
            fallback: Some(if has_own { "index.csr.html" } else { "index.html" }.into()),
            ..FoundFiles::default()
        };
        let found = Recognised::pages("pages of Angular", &build.browser, files);
        return Some(match build.is_static && !package.is_there(&build.browser) {
            true => {
                found.open("If the build makes index.csr.html, write it in fallback, in place of index.html.")
            }
            false => found,
        });
    }
    let script = package.script_beginning_with("serve:ssr").and_then(ScriptLine::read);
    let words = script.map(|line| line.words).unwrap_or_default();
    let is_file = |word: &String| word.ends_with(".mjs") || word.ends_with(".js");
    let server = words.into_iter().find(is_file).unwrap_or(build.server);
    let found = Recognised::app("an Angular app", package.node(&server), &server).with_env(&[TRUSTED]);
    Some(found.open(
        "Angular answers only hosts that it knows, and 400 otherwise. Name yours in security.allowedHosts of angular.json, or in \
         NG_ALLOWED_HOSTS of env; and localhost for warmup, and for a health path that Angular answers.",
    ))
}

/// Where `ng build` writes, as `angular.json` says.
struct Build {
    browser: String,
    server: String,
    /// It makes pages only, also with `@angular/ssr`.
    is_static: bool,
}

impl Build {
    fn read(package: &NodePackage) -> Self {
        let text = std::fs::read_to_string(package.folder.join("angular.json")).unwrap_or_default();
        let workspace: Value = serde_json::from_str(&text).unwrap_or_default();
        let projects = workspace["projects"].as_object();
        let app =
            projects.and_then(|all| all.iter().find(|(_, project)| project["projectType"] != "library"));
        let name = app.map(|(name, _)| name.as_str()).or(package.name()).unwrap_or("app");
        let build = app.map_or(&Value::Null, |(_, project)| {
            let targets = ["architect", "targets"].map(|key| &project[key]["build"]);
            targets.into_iter().find(|build| build.is_object()).unwrap_or(&Value::Null)
        });
        let path = &build["options"]["outputPath"];
        let written = path.as_str().or(path["base"].as_str()).map(|path| path.trim_end_matches('/'));
        let folder = written.map_or_else(|| format!("dist/{name}"), str::to_owned);
        // The builder before Angular 17 makes no folder of its own for the browser.
        let is_old = build["builder"].as_str().is_some_and(|builder| builder.ends_with(":browser"));
        let browser = match path["browser"].as_str() {
            Some("") => folder.clone(),
            Some(named) => format!("{folder}/{named}"),
            None if is_old => folder.clone(),
            None => format!("{folder}/browser"),
        };
        let is_static = build["options"]["outputMode"] == "static";
        Self { browser, server: format!("{folder}/server/server.mjs"), is_static }
    }
}
