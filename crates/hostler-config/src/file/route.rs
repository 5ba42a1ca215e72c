//! The keys of a route, as written. Knows not which of them fit together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CacheSwitch, Compress, HeaderChanges, Redirect, Respond, Rewrite, Static};
use crate::pattern::MatchPattern;
use crate::value::{Period, Size, Switch, TextOr};

/// A `[[routes]]` section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(extend("required" = ["match"]))]
pub struct Route {
    /// A host, a path, or both: `"example.com"`, `"*.example.com/x/*"`, `"/ping"`,
    /// `"shop.example.com/cart/*"`; `"*"` is everything. A path is matched whole, unless it ends in `/*`: then
    /// it and all below it (`/cart/*`: `/cart`, `/cart/`, `/cart/1`, not `/cartoon`). Paths are compared as an
    /// app reads them, percent-decoded and without `.` and `..`. A host has no port; `*.` in front stands for
    /// one label or more.
    #[serde(rename = "match")]
    #[schemars(with = "MatchPattern", extend("x-default" = "required"))]
    pub pattern: Option<MatchPattern>,
    /// The pool that answers. Exactly one of `pool`, `static`, `redirect`, `respond`, `geo` and `postal`, or `pool` and
    /// `static`, or `geo` and `postal`.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub pool: Option<String>,
    /// An answer that needs no worker: its text, or a table with `status`, `headers` and `body` or `file`.
    #[schemars(with = "TextOr<Respond>", extend("x-default" = "none"))]
    pub respond: Option<TextOr<Respond>>,
    /// A folder whose files answer: its name, or a table with `dir`. Beside `pool`, the files come first, and what is none of them
    /// goes to the pool.
    #[serde(rename = "static")]
    #[schemars(with = "TextOr<Static>", extend("x-default" = "none"))]
    pub files: Option<TextOr<Static>>,
    /// Where requests are sent: a URL or a path, such as `"https://www.example.com{path}{query}"`, or a table with `to`.
    #[schemars(with = "TextOr<Redirect>", extend("x-default" = "none"))]
    pub redirect: Option<TextOr<Redirect>>,
    /// Answers where addresses are, out of the data of `[geo]`. The paths (`/get_city`, `/geo`, `/geo/{ip}`, ...) lie below `match`;
    /// where `match` has the same beginning (`"/geo/*"`), it need not be said twice. `docs/guide/lookups.md` has them all.
    pub geo: bool,
    /// Answers where postal codes are, out of the data of `[postal]`; the paths lie below `match` as those of `geo` do. Both may stand
    /// on one route.
    pub postal: bool,
    /// Whether the pool's members read in `X-Geo-*` fields where the client is, out of the data of `[geo]`: `X-Geo-City`,
    /// `X-Geo-Region`, `X-Geo-Region-Code`, `X-Geo-Country`, `X-Geo-Continent`, `X-Geo-Eu`, `X-Geo-Latitude`, `X-Geo-Longitude`, `X-Geo-Timezone`
    /// and `X-Geo-Postal`, those that are known, percent-encoded (`decodeURIComponent`). What came under these names is removed,
    /// whoever sent it.
    pub geo_headers: bool,
    /// What becomes of the path before the pool or the folder gets it.
    #[schemars(with = "Rewrite", extend("x-default" = "none"))]
    pub rewrite: Option<Rewrite>,
    /// Changes of the header fields that the pool's members get.
    pub request_headers: HeaderChanges,
    /// Changes of the header fields that clients get. An answer in place of the pool's (a 503, a fallback) keeps the fields it has:
    /// a `Cache-Control` that is set here is not meant for it.
    pub response_headers: HeaderChanges,
    /// Whether TRACE requests go to the pool. If not, they are answered with 405 (RFC 9110, section 15.5.6): what a TRACE
    /// brings back may hold fields that a proxy has added, and which the client must not see.
    pub trace: bool,
    /// Whether a request's body is read whole before the request takes a slot.
    pub buffer: Buffer,
    /// Bytes of a request's body, in place of `server.max_body_size`.
    #[schemars(with = "Size<1, 1_099_511_627_776>", extend("x-default" = "server.max_body_size"))]
    pub max_body_size: Option<Size<1, 1_099_511_627_776>>,
    /// The time a client waits for its answer to begin, in place of the pool's `request_timeout`.
    #[schemars(with = "Period", extend("x-default" = "the pool's"))]
    pub request_timeout: Option<Period>,
    /// Whether its answers are compressed, in place of `server.compress`; `true` as the server says, or with the defaults. Its
    /// table replaces the server's whole.
    #[schemars(with = "Switch<Compress>", extend("x-default" = "server.compress"))]
    pub compress: Option<Switch<Compress>>,
    /// Whether the pool's answers are kept in memory and sent again to those who ask for the same: `"standard"` as they say
    /// themselves (RFC 9111), or a table that says more. `docs/guide/caching.md` says what becomes of an answer.
    #[schemars(with = "CacheSwitch", extend("x-default" = "`false`"))]
    pub cache: Option<CacheSwitch>,
    /// Whether equal requests (GET) at the same time are sent to the pool once, and all get that answer, although it cannot be kept.
    /// Not where it is anybody's own: with cookies, `Authorization`, or an answer that is `private` or sets a cookie. Answers that
    /// can be kept are always shared.
    pub collapse: bool,
    /// Which requests get a slot first when there are not enough.
    pub priority: Priority,
    /// A file that stands in where the pool gives no answer, such as the page from which an app renders in the browser:
    /// 200, with `Hostler-Fallback: REASON`, in place of a 502, 503 or 504. Only for GET and HEAD, and HTML only for
    /// a client whose `Accept` takes it. Its content type is that of its extension. It is read when the
    /// configuration is loaded (`hostler reload` reads it anew), and may have up to 1 MiB; relative to the file's
    /// folder. Give such a route a `request_timeout`, such as `"1s"` for a page: without one, the fallback of a slow
    /// worker comes after the pool's 30 s.
    ///
    /// Or `"hypernova"`, for a route on which workers render Hypernova's batches (`POST /batch`): 200 with the markup
    /// from which the browser renders, for every job of the batch, each with an error that says why. For batches of up
    /// to 1,024,000 bytes, gzip or not; not beside `buffer = "none"`. A POST is not sent again when its worker is lost.
    /// Set `request_timeout` below the time after which the clients give up by themselves (hypernova-ruby 0.6s,
    /// hypernova-client 1s), so that they see this answer.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub fallback: Option<String>,
}

/// Which requests get a slot first when there are not enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Before the others.
    High,
    /// As most are.
    #[default]
    Normal,
    /// After the others; it still gets its share, however many of the others come.
    Low,
}

/// Whether a request's body is read whole before the request takes a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Buffer {
    /// A slow upload holds no slot.
    #[default]
    Full,
    /// The body is streamed to the worker, which sees it as it comes; for large uploads.
    None,
}
