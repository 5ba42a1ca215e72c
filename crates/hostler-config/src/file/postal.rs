//! The keys of `[postal]`, as written. Knows no postal code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{FileName, OneOrMany, Origin};

/// The `[postal]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(extend("required" = ["data"]))]
pub struct Postal {
    /// Files of postal codes, relative to the file's folder: those that GeoNames offers (`US.txt`, `DE.txt`), or what `hostler pack`
    /// has made of them, which is mapped into memory instead of read. A newer one takes the place of an older one by a rename: Hostler
    /// sees it and goes over to it. Never write into a pack that is in use.
    #[schemars(extend("x-default" = "required"))]
    pub data: OneOrMany<FileName>,
    /// Whether `/api/zipinfo/...` answers in the very words of the service of 2012: names in capitals, coordinates as text
    /// (`"+45.527000"`), `null` with status 200 for a code that there is not.
    pub compat_strings: bool,
    /// Whether `/api/zipinfo/...` takes `?callback=NAME` and answers with a script that calls it.
    pub jsonp: bool,
    /// Whose pages may ask from a browser: origins such as `"https://www.example.com"`, or `"*"` for anybody's; an empty list for nobody's.
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
