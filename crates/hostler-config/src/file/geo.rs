//! The keys of `[geo]`, as written. Knows no database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Count, Delay, FileName, OneOrMany, Origin};

/// The `[geo]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(extend("required" = ["databases"]))]
pub struct Geo {
    /// MMDB files: one for all addresses, or one for IPv4 and one for IPv6. Example: `"data/city.mmdb"`.
    ///
    /// Hostler reads City databases of MaxMind (GeoIP2, GeoLite2) and DB-IP, and those of ip-location-db. A
    /// relative path starts at the folder of the configuration file.
    ///
    /// Hostler maps a copy of each file into memory, and does not read it whole. The copy has no name and lies in
    /// `server.temp_dir`, so that no program can change the data while Hostler uses it.
    ///
    /// To install newer data, rename a new file over the old one, or write into it. Hostler sees the new data, checks
    /// it and uses it.
    #[schemars(extend("x-default" = "required"))]
    pub databases: OneOrMany<FileName>,
    /// Which clients may look up an address other than their own.
    pub lookups: Lookups,
    /// The decimals of latitude and longitude. Two decimals are about a kilometre.
    ///
    /// The data is seldom more exact than a town, so more decimals say nothing more.
    pub decimals: Count<0, 6>,
    /// How long caches and browsers may keep a response about an address in the path (`Cache-Control`).
    ///
    /// No cache may keep a response about the client's own address.
    pub max_age: Delay,
    /// The origins whose pages may read responses in a browser. Examples: `"https://www.example.com"`, or `"*"` for
    /// all.
    ///
    /// Such a page learns where its visitors are.
    pub cors: OneOrMany<Origin>,
    /// The attribution of the data in `/geo/meta`. The licence of the data may require it.
    #[schemars(with = "String", extend("x-default" = "for data of DB-IP and MaxMind, the text that their licences require"))]
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

/// Which clients may look up an address other than their own (`/geo/{ip}`, `/geo/batch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lookups {
    /// All clients. Anyone on the internet can use the service, unless something in front of Hostler limits it.
    Public,
    /// Clients with a private address: the services in your own network.
    PrivateNet,
    /// No client.
    Off,
}
