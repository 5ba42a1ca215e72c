//! The keys of a route, as written. Does not know which of them fit together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    CacheSwitch, Compress, EarlyHints, FairBy, HeaderChanges, RateLimit, Redirect, Respond, Rewrite, Static,
    When,
};
use crate::pattern::MatchPattern;
use crate::value::{OneOrMany, Period, Size, Switch, TextOr};

/// A `[[routes]]` section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(extend("required" = ["match"]))]
pub struct Route {
    /// The requests of this route: a host, a path, or both. `"*"` matches every request.
    ///
    /// - `"/ping"`: this path, on every host.
    /// - `"/cart/*"`: this path and all paths below it (`/cart`, `/cart/`, `/cart/1`, not `/cartoon`).
    /// - `"example.com"`: this host, with all paths.
    /// - `"*.example.com/x/*"`: all hosts below `example.com`, but not `example.com` itself. `*.` stands for one
    ///   label or more.
    ///
    /// A host has no port here. Hostler compares paths as an app reads them: percent-decoded, and without `.` and
    /// `..`.
    ///
    /// Hostler warns about a host of one label with a path, such as `"api/*"`, because `"/api/*"` is usually meant. If
    /// the host is meant, write a dot behind it: `"api./*"`.
    ///
    /// It also warns about a path that ends in `/` and leads to a pool or to files, such as `"/api/"`: this is one path, and
    /// `"/api/*"` is usually meant. There is no warning beside a route `"/api/*"`, or if another route leads the paths
    /// below it to the same pool.
    #[serde(rename = "match")]
    #[schemars(with = "MatchPattern", extend("x-default" = "required"))]
    pub pattern: Option<MatchPattern>,
    /// Conditions that a request meets besides `match`: method, header, query, cookie, client.
    ///
    /// Several routes may have the same `match`. The first in the order of the file whose conditions all hold gets the
    /// request, then the one without `when`. If there is none, the next route that matches host and path gets it. Example:
    /// `when = { method = "GET", cookie = { group = "b" } }`. See
    /// [Match on more than host and path](../guide/routes.md).
    #[schemars(with = "When", extend("x-default" = "none"))]
    pub when: Option<When>,
    /// The pool that answers.
    ///
    /// A route has exactly one of `pool`, `static`, `redirect`, `respond`, `geo` and `postal`. Two pairs are
    /// allowed, too: `pool` with `static`, and `geo` with `postal`.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub pool: Option<String>,
    /// A fixed response: its text, or a table with `status`, `headers`, and `body` or `file`. Example: `"PONG\n"`.
    #[schemars(with = "TextOr<Respond>", extend("x-default" = "none"))]
    pub respond: Option<TextOr<Respond>>,
    /// A folder whose files are the responses: its name, or a table with `dir`. Example: `"public"`.
    ///
    /// With `pool`, files come first, and a request for which there is no file goes to the pool.
    #[serde(rename = "static")]
    #[schemars(with = "TextOr<Static>", extend("x-default" = "none"))]
    pub files: Option<TextOr<Static>>,
    /// A redirect to a URL or a path, or a table with `to`. Example: `"https://www.example.com{path}{query}"`.
    #[schemars(with = "TextOr<Redirect>", extend("x-default" = "none"))]
    pub redirect: Option<TextOr<Redirect>>,
    /// Whether Hostler answers location lookups of IP addresses here, from the data of `[geo]`.
    ///
    /// The paths (`/get_city`, `/geo`, `/geo/{ip}` and others) are below `match`. If `match` has the same
    /// beginning, such as `"/geo/*"`, the beginning is not repeated. `docs/guide/lookups.md` lists all paths.
    pub geo: bool,
    /// Whether Hostler answers lookups of postal codes here, from the data of `[postal]`.
    ///
    /// The paths are below `match`, as with `geo`. One route may have both keys.
    pub postal: bool,
    /// Whether members get the client's location in `X-Geo-*` request fields, from the data of `[geo]`.
    ///
    /// The fields are `X-Geo-City`, `X-Geo-Region`, `X-Geo-Region-Code`, `X-Geo-Country`, `X-Geo-Continent`,
    /// `X-Geo-Eu`, `X-Geo-Latitude`, `X-Geo-Longitude`, `X-Geo-Timezone` and `X-Geo-Postal`. An unknown value has
    /// no field. Values are percent-encoded; read them with `decodeURIComponent`. Hostler removes fields with these
    /// names that arrive with the request.
    pub geo_headers: bool,
    /// How Hostler changes the path of the request for the pool or the folder.
    #[schemars(with = "Rewrite", extend("x-default" = "none"))]
    pub rewrite: Option<Rewrite>,
    /// Changes of the header fields that the members of the pool get.
    pub request_headers: HeaderChanges,
    /// Changes of the header fields that clients get.
    ///
    /// Hostler's own response in place of the pool's (a 503, a fallback) keeps its fields, and gets only those that
    /// it does not have. Example: a `Cache-Control` for the pool's pages would be wrong there, and so would
    /// `CDN-Cache-Control`.
    pub response_headers: HeaderChanges,
    /// Whether TRACE requests go to the pool. Otherwise the client gets 405 (`trace`; RFC 9110, section 15.5.6).
    ///
    /// A response to TRACE repeats the request. It may contain fields that a proxy has added and that the client
    /// must not see.
    pub trace: bool,
    /// Whether Hostler reads a request's body completely before the request takes a slot.
    pub buffer: Buffer,
    /// The size of a request body on this route. Over it, Hostler answers 413 (`body_too_large`).
    #[schemars(with = "Size<1, 1_099_511_627_776>", extend("x-default" = "`server.max_body_size`"))]
    pub max_body_size: Option<Size<1, 1_099_511_627_776>>,
    /// The time until the response begins, in place of the pool's `request_timeout`. Over it, Hostler answers 504
    /// (`answer_timeout`).
    #[schemars(with = "Period", extend("x-default" = "that of the pool"))]
    pub request_timeout: Option<Period>,
    /// Whether Hostler compresses the responses of this route: `true`, `false`, or a table.
    ///
    /// `true`: as `server.compress` says, or with the defaults if that is off. A table replaces the server's table
    /// completely.
    #[schemars(with = "Switch<Compress>", extend("x-default" = "`server.compress`"))]
    pub compress: Option<Switch<Compress>>,
    /// Whether Hostler stores the pool's responses and sends them again without a worker: `"standard"`, `false`, or
    /// a table.
    ///
    /// `"standard"`: as the responses themselves say (RFC 9111). A table adds settings to this.
    /// `docs/guide/caching.md` explains which responses Hostler stores.
    #[schemars(with = "CacheSwitch", extend("x-default" = "`false`"))]
    pub cache: Option<CacheSwitch>,
    /// Whether equal GET requests at the same time become one request to the pool, although the response cannot be
    /// stored.
    ///
    /// Hostler does not join requests with cookies or `Authorization`. It does not share a response that is
    /// `private` or sets a cookie. With `cache`, Hostler always joins requests whose response can be stored.
    pub collapse: bool,
    /// Which requests get a slot first if there are not enough slots.
    pub priority: Priority,
    /// Under which keys the requests of this route share the slots of their pool. It replaces the list of `queue.fair`, which the pool
    /// must have.
    ///
    /// A key is the same on all routes of a pool: what a client has used on one of them counts on the others. Example:
    /// `fair = ["header:X-Api-Key", "client"]`. See [Fair queues](../concepts/fair.md#a-list-for-one-route).
    #[schemars(with = "OneOrMany<FairBy>", extend("x-default" = "`queue.fair` of the pool"))]
    pub fair: Option<OneOrMany<FairBy>>,
    /// How many requests, and how much worker time, each client may have on this route in the time `per`. Over it,
    /// Hostler answers 429 (`rate_limited`).
    ///
    /// Example: `{ requests = 100, per = "1m" }`. See [Rate limits](../guide/rate-limits.md).
    pub rate_limit: RateLimit,
    /// Links that Hostler sends to a browser in a 103 (Early Hints, RFC 8297) while its request waits in the queue: `"learn"`, a list of
    /// links, or a table.
    ///
    /// Example: `["</app.css>; rel=preload; as=style"]`.
    ///
    /// `"learn"`: those that the last 8 responses of the route to the same host had in common. Hostler learns only from pages
    /// that any stranger gets: not from a request with `Cookie` or `Authorization`, and not from a response with
    /// `Set-Cookie`, `Vary: Cookie` or `Cache-Control: private`. After a deploy it learns anew. See [Early
    /// Hints](../guide/early-hints.md).
    #[schemars(with = "EarlyHints", extend("x-default" = "none"))]
    pub early_hints: Option<EarlyHints>,
    /// The response if the pool gives none: the name of a file, or `"hypernova"`. It replaces a 502, 503 or 504.
    ///
    /// **A file**, such as the page of an app that renders in the browser. The client gets it with 200 and
    /// `Hostler-Fallback: REASON`. It is for GET and HEAD only, and HTML is for clients whose `Accept` allows it.
    /// Its content type is that of its extension. Hostler reads the file at the start and at `hostler reload`. It
    /// may have up to 1 MiB. A relative path starts at the folder of the configuration file.
    ///
    /// Set `request_timeout` on such a route, such as `"1s"` for a page. Otherwise the client of a slow worker
    /// waits for the pool's 30 s.
    ///
    /// **`"hypernova"`**, for a route on which workers render Hypernova's batches (`POST /batch`). The client gets
    /// 200, and for each job of the batch the markup from which the browser renders, with an error that says why. A
    /// batch may have up to 1,024,000 bytes, with or without gzip. It does not work with `buffer = "none"`. Hostler
    /// does not send a POST again if its worker is lost.
    ///
    /// Set `request_timeout` below the client's own timeout (hypernova-ruby 0.6s, hypernova-client 1s), so that the
    /// client gets this response.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub fallback: Option<String>,
}

/// Which requests get a slot first if there are not enough slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Before the others.
    High,
    /// The priority of most routes.
    #[default]
    Normal,
    /// After the others. These requests still get a share of the slots, however many others arrive.
    Low,
}

/// Whether Hostler reads a request's body completely before the request takes a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Buffer {
    /// It does. A slow upload takes no slot.
    #[default]
    Full,
    /// It does not. The worker gets the body as it arrives. For large uploads.
    None,
}
