//! The keys of targets without a pool: text, files, redirects. Does not know which of them fit together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Count, Value};

/// A fixed response, without a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Respond {
    /// The status code.
    pub status: Count<200, 599>,
    /// The text. It must be empty with 204, 205 and 304.
    pub body: String,
    /// A file in place of `body`, such as a page.
    ///
    /// Hostler reads it at the start and at `hostler reload`. It may have up to 1 MiB. A relative path starts at
    /// the folder of the configuration file.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub file: Option<String>,
    /// Header fields of the response.
    ///
    /// The default of `content-type` is the type of `file`'s extension, or `text/plain; charset=utf-8`. Hostler
    /// refuses fields that frame the message (`content-length`, `connection` and others).
    pub headers: BTreeMap<String, String>,
}

impl Value for Respond {}

impl Default for Respond {
    fn default() -> Self {
        Self { status: Count(200), body: String::new(), file: None, headers: BTreeMap::new() }
    }
}

/// A folder whose files are responses to GET and HEAD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(extend("required" = ["dir"]))]
pub struct Static {
    /// The folder with the files. A relative path starts at the folder of the configuration file.
    ///
    /// Hostler looks for the whole path of the request in it, after the route's `rewrite`. It follows symbolic
    /// links as long as their target is in the folder. `dir` itself may be a link that a deploy changes.
    #[schemars(with = "String", extend("x-default" = "required"))]
    pub dir: Option<String>,
    /// The file that Hostler sends for a folder. `""`: none.
    pub index: String,
    /// The file for requests for a page (by `Accept`) if there is no such file: the page of a single-page app, such
    /// as `"index.html"`.
    ///
    /// The file is in `dir`. It is not used for a path with a known file extension (`.js`, `.png`): such a request
    /// gets 404.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub fallback: Option<String>,
    /// The page that Hostler sends with 404 if a client asks for a page that does not exist, such as `"404.html"`
    /// in `dir`.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub not_found: Option<String>,
    /// `Cache-Control` of all files that are not in `immutable`. `""`: none.
    ///
    /// With `no-cache`, a browser keeps a file and asks each time whether it has changed.
    pub cache_control: String,
    /// Paths whose files never change, because a new version has a new name. Example: `["/assets/*"]`. Browsers
    /// keep them for a year without asking.
    ///
    /// The paths are paths in `dir`, in the form of `match`.
    pub immutable: Vec<String>,
    /// Whether Hostler sends `app.js.br`, `app.js.zst` or `app.js.gz` in place of `app.js` to clients that accept
    /// it.
    pub precompressed: bool,
    /// Whether Hostler serves files and folders whose name begins with a dot. It always serves `/.well-known`.
    pub dotfiles: bool,
}

impl Value for Static {}

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

/// A redirect to another URL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(extend("required" = ["to"]))]
pub struct Redirect {
    /// A URL, or a path on the same host. Example: `"https://www.{host}{path}{query}"`.
    ///
    /// - `{host}`: the host of the request, without the port.
    /// - `{path}`: its path.
    /// - `{rest}`: the part of the path that `*` in `match` matches.
    /// - `{query}`: its query with the `?`; empty without a query.
    #[schemars(with = "String", extend("x-default" = "required"))]
    pub to: Option<String>,
    /// 301 and 308 are permanent; 302, 303 and 307 are temporary. With 307 and 308 a POST stays a POST.
    ///
    /// Browsers keep a permanent redirect for a long time.
    pub status: Count<301, 308>,
}

impl Value for Redirect {}

impl Default for Redirect {
    fn default() -> Self {
        Self { to: None, status: Count(307) }
    }
}
