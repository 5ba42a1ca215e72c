//! The keys of `[geo]`, as written. Knows no database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Count, Delay, FileName, OneOrMany, Origin};

/// The `[geo]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(extend("required" = ["databases"]))]
pub struct Geo {
    /// MMDB files: one for all addresses, or one for IPv4 and one for IPv6. City databases in MaxMind's form (GeoIP2, GeoLite2, DB-IP) or
    /// in that of ip-location-db; relative to the file's folder. They are mapped into memory, never read whole. A newer one takes the
    /// place of an older one by a rename: Hostler sees it, checks it and goes over to it. Never write into a file that is in use.
    #[schemars(extend("x-default" = "required"))]
    pub databases: OneOrMany<FileName>,
    /// Who may ask about addresses other than the own one.
    pub lookups: Lookups,
    /// Decimals of latitude and longitude: 2 is about a kilometre. More than the data has says nothing more.
    pub decimals: Count<0, 6>,
    /// How long others may keep an answer about an address that was named. What is about the caller is never kept by anybody.
    pub max_age: Delay,
    /// Whose pages may ask from a browser: origins such as `"https://www.example.com"`, or `"*"` for anybody's. Whoever is let in reads
    /// where his visitors are.
    pub cors: OneOrMany<Origin>,
    /// Whom to thank for the data, in `/geo/meta`; its licence may ask for it.
    #[schemars(with = "String", extend("x-default" = "for data of DB-IP and MaxMind, what their licences ask for"))]
    pub attribution: Option<String>,
}

impl Default for Geo {
    fn default() -> Self {
        Self {
            databases: OneOrMany::default(),
            lookups: Lookups::PrivateNet,
            decimals: Count(4),
            max_age: Delay::seconds(3600),
            cors: OneOrMany::default(),
            attribution: None,
        }
    }
}

/// Who may ask about addresses other than the own one (`/geo/{ip}`, `/geo/batch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lookups {
    /// Everybody: a free service for the whole world, unless something in front of it limits them.
    Public,
    /// Clients whose own address is a private one: the services of the own network.
    PrivateNet,
    /// Nobody.
    Off,
}
