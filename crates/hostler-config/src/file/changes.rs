//! The keys for what a route changes on the way through. Knows not which of them fit together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::RequestPath;

/// What becomes of a request's path before the pool or the folder gets it; the query stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Rewrite {
    /// Taken away from the beginning of the path: `"/api"` makes `/api/users` `/users`. All that `match` takes must begin with it.
    #[schemars(with = "RequestPath", extend("x-default" = "none"))]
    pub strip_prefix: Option<RequestPath>,
    /// Put in front of what is left: with `strip_prefix`, one prefix takes the place of another.
    #[schemars(with = "RequestPath", extend("x-default" = "none"))]
    pub add_prefix: Option<RequestPath>,
}

/// Changes of header fields. A name may stand in one of them only; those that frame the message (`content-length`,
/// `connection`, ...) are refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct HeaderChanges {
    /// Takes the place of all that came with this name.
    pub set: BTreeMap<String, String>,
    /// One more line with this name.
    pub add: BTreeMap<String, String>,
    /// For a head that came without this name.
    pub default: BTreeMap<String, String>,
    /// Names whose lines are left out.
    pub remove: Vec<String>,
}
