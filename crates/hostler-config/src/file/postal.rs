//! The keys of `[postal]`, as written. Knows no postal code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{FileName, OneOrMany, Origin};

/// The `[postal]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(extend("required" = ["data"]))]
pub struct Postal {
    /// Files of postal codes: files of GeoNames (`US.txt`, `DE.txt`), or a pack that `hostler pack` has made.
    ///
    /// A relative path starts at the folder of the configuration file. Hostler maps a copy of a pack into memory, and
    /// does not read it whole. The copy has no name and lies in `server.temp_dir`.
    ///
    /// To install newer data, rename a new file over the old one, or write into it. Hostler sees it and uses it.
    #[schemars(extend("x-default" = "required"))]
    pub data: OneOrMany<FileName>,
    /// Whether `/api/zipinfo/...` answers exactly as zipasaur.us did in 2012.
    ///
    /// Names are in capitals, coordinates are text (`"+45.527000"`), and an unknown code gets `null` with status
    /// 200.
    pub compat_strings: bool,
    /// Whether `/api/zipinfo/...` accepts `?callback=NAME` and answers with a script that calls this function.
    pub jsonp: bool,
    /// The origins whose pages may read responses in a browser. Examples: `"https://www.example.com"`, `"*"` for
    /// all, `[]` for none.
    pub cors: OneOrMany<Origin>,
}

impl Default for Postal {
    fn default() -> Self {
        Self {
            data: OneOrMany::default(),
            compat_strings: false,
            jsonp: false,
            cors: OneOrMany(vec![Origin("*".into())]),
        }
    }
}
