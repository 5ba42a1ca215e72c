//! The keys of `[log]`, as written: which lines the log has, what they must not show, and where they go. Knows no formats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Count, Delay};

/// The `[log]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Log {
    /// The lowest level of Hostler's own events in the log. The lines of requests and of workers do not depend on it.
    ///
    /// Set `"warn"` if the log must have only what needs attention.
    pub level: LogLevel,
    /// With the value N, the log has one of N ordinary requests. `1`: all.
    ///
    /// An ordinary request has a status below 400, was not refused or cut off, and took less than `slow`. All other requests
    /// are in the log. A line that stands for others has `"sample":N`. Raise it if the log of a busy site is too large.
    pub sample: Count<1, 1_000_000>,
    /// The log has each request that takes at least this time, for any value of `sample`.
    ///
    /// Raise it if ordinary requests of your app take longer, such as downloads.
    pub slow: Delay,
    /// More names of query parameters whose values the log must not show. Example: `["invite", "reset_code"]`.
    ///
    /// The log shows `[redacted]` in place of the value. Well-known names are always redacted, such as `token`,
    /// `password`, `access_token`, `api_key` and `signature`. Hostler ignores upper case, `-` and `_` in these names.
    /// Add the names that your app uses for secrets.
    pub redact: Vec<String>,
    /// The file for the log, in place of standard output. A relative path starts at the folder of the configuration file.
    ///
    /// `hostler reload` and SIGHUP open it again, so logrotate can rename it before. Set it if no supervisor (systemd, a
    /// container) keeps standard output.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub file: Option<String>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: LogLevel::Info,
            sample: Count(1),
            slow: Delay::seconds(1),
            redact: Vec::new(),
            file: None,
        }
    }
}

/// How important an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// What Hostler does: starts, reloads, workers that come and go.
    Info,
    /// Something unexpected, but no request is lost.
    Warn,
    /// Requests, workers or data are lost.
    Error,
}
