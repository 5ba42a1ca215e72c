//! The keys for changes that a route makes. Does not know which of them fit together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::RequestPath;

/// How Hostler changes the path of a request for the pool or the folder. The query stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Rewrite {
    /// The prefix that Hostler removes from the path. Example: with `"/api"`, `/api/users` becomes `/users`.
    ///
    /// Every path that `match` takes must begin with it.
    #[schemars(with = "RequestPath", extend("x-default" = "none"))]
    pub strip_prefix: Option<RequestPath>,
    /// The prefix that Hostler adds to the path, after `strip_prefix`. Both together replace one prefix by another.
    #[schemars(with = "RequestPath", extend("x-default" = "none"))]
    pub add_prefix: Option<RequestPath>,
}

/// Changes of header fields. A name may occur in one of the four keys only.
///
/// Hostler refuses fields that frame the message (`content-length`, `connection` and others).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct HeaderChanges {
    /// Replaces all lines with this name. Example: `{ X-Frame-Options = "DENY" }`.
    pub set: BTreeMap<String, String>,
    /// Adds one line with this name.
    pub add: BTreeMap<String, String>,
    /// Adds a line if there is none with this name.
    pub default: BTreeMap<String, String>,
    /// Removes all lines with these names. Example: `["X-Powered-By"]`.
    pub remove: Vec<String>,
}
