//! The keys of `[postal]`, as written. Knows no postal code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::value::{FileName, OneOrMany};

/// The `[postal]` section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(extend("required" = ["data"]))]
pub struct Postal {
    /// Files of postal codes; relative to the file's folder.
    #[schemars(extend("x-default" = "required"))]
    pub data: OneOrMany<FileName>,
}
