//! The keys of targets that need no pool: text, files, redirects. Knows not which of them fit together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::Count;

/// An answer that needs no worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Respond {
    /// The status code.
    pub status: Count<200, 599>,
    /// The text; must be empty with 204 and 304.
    pub body: String,
    /// A file in place of `body`, such as a page. It is read when the configuration is loaded (`hostler reload` reads it
    /// anew), and may have up to 1 MiB; relative to the file's folder.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub file: Option<String>,
    /// Header fields. Unless given, `content-type` is that of the extension of `file`, and otherwise
    /// `text/plain; charset=utf-8`; those that frame the message (`content-length`, `connection`, ...) are refused.
    pub headers: BTreeMap<String, String>,
}

impl Default for Respond {
    fn default() -> Self {
        Self { status: Count(200), body: String::new(), file: None, headers: BTreeMap::new() }
    }
}

/// A folder whose files are answers to GET and HEAD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(extend("required" = ["dir"]))]
pub struct Static {
    /// The folder, relative to the file's folder. A request's whole path is looked for in it, after the route's `rewrite`.
    /// Symbolic links are followed as long as they stay in it; `dir` itself may be one, which a deploy points elsewhere
    /// at any time.
    #[schemars(with = "String", extend("x-default" = "required"))]
    pub dir: Option<String>,
    /// The file that stands for its folder; `""` for none.
    pub index: String,
    /// The file for those who ask for a page (by `Accept`) where there is no file: the page of an app that finds its way in
    /// the browser. A path with the extension of a known kind (`.js`, `.png`) asks for no page and gets a 404. In `dir`,
    /// such as `"index.html"`.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub fallback: Option<String>,
    /// The file that is sent with 404 to those who ask for a page where there is none; in `dir`, such as `"404.html"`.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub not_found: Option<String>,
    /// `Cache-Control` of all files but the immutable ones. `no-cache` lets browsers keep a file, and ask each time whether it is
    /// still the same; `""` sends none.
    pub cache_control: String,
    /// Paths below which a file never changes, since its name would (`"/assets/*"`): browsers keep it for a year without
    /// asking. Paths in `dir`, written as in `match`.
    pub immutable: Vec<String>,
    /// Whether `app.js.br`, `app.js.zst` or `app.js.gz` beside `app.js` is sent in its place to clients that take it.
    pub precompressed: bool,
    /// Whether names that begin with a dot may be seen; `/.well-known` always may.
    pub dotfiles: bool,
}

impl Default for Static {
    fn default() -> Self {
        Self {
            dir: None,
            index: "index.html".into(),
            fallback: None,
            not_found: None,
            cache_control: "no-cache".into(),
            immutable: Vec::new(),
            precompressed: false,
            dotfiles: false,
        }
    }
}

/// Where requests are sent elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(extend("required" = ["to"]))]
pub struct Redirect {
    /// A URL, or a path on the same host. In it, `{host}` stands for the request's host without port, `{path}` for its path,
    /// `{rest}` for what `*` stands for in `match`, `{query}` for its query with the `?`, if it has one.
    #[schemars(with = "String", extend("x-default" = "required"))]
    pub to: Option<String>,
    /// 301 or 308 for good, 302, 303 or 307 for now; 307 and 308 keep a POST a POST.
    pub status: Count<301, 308>,
}

impl Default for Redirect {
    fn default() -> Self {
        Self { to: None, status: Count(307) }
    }
}
