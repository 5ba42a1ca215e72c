//! Facts about the data itself: `/geo/meta`. Knows no addresses.

use std::path::Path;

use hostler_lookup::geo::About;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::dataset::GeoDataset;

/// The attribution that the licences of well-known data ask for, by a part of the type's or the file's name.
const THANKS: [(&str, &str); 3] = [
    ("dbip", "IP Geolocation by DB-IP (https://db-ip.com), CC BY 4.0"),
    (
        "geolite2",
        "This product includes GeoLite Data created by MaxMind, available from https://www.maxmind.com",
    ),
    (
        "geoip2",
        "This product includes GeoIP2 Data created by MaxMind, available from https://www.maxmind.com",
    ),
];

/// The body of the response.
pub(super) fn body(dataset: &GeoDataset, attribution: Option<&str>, reloads: u64) -> Value {
    let databases: Vec<_> = dataset.databases.about().map(database).collect();
    let attribution = attribution.map(str::to_owned).or_else(|| thanks(dataset));
    json!({
        "databases": databases,
        "attribution": attribution,
        "loaded": dataset.since.to_string(),
        "reloads": reloads,
    })
}

/// A short description of each database.
pub(super) fn describe(dataset: &GeoDataset) -> Vec<String> {
    let describe = |about: &About| {
        let built =
            built(about).map_or(String::new(), |built| format!(", built {}", built.strftime("%Y-%m-%d")));
        format!("{} ({}{built})", file_name(&about.path), about.database_type)
    };
    dataset.databases.about().map(describe).collect()
}

fn built(about: &About) -> Option<Timestamp> {
    i64::try_from(about.build_epoch).ok().and_then(|epoch| Timestamp::from_second(epoch).ok())
}

fn database(about: &About) -> Value {
    json!({
        "file": file_name(&about.path),
        "type": about.database_type,
        "description": about.description.get("en"),
        "built": built(about).map(|built| built.to_string()),
        "ip_version": about.ip_version,
        "schema": about.schema.as_str(),
        "languages": about.languages,
        "bytes": about.size,
        "nodes": about.nodes,
    })
}

/// The name without the folder, which clients must not learn.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn thanks(dataset: &GeoDataset) -> Option<String> {
    let is_of = |about: &About, whose: &str| {
        let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '_'], "");
        plain(&about.database_type).contains(whose) || plain(&file_name(&about.path)).contains(whose)
    };
    let mut found: Vec<&str> = Vec::new();
    for about in dataset.databases.about() {
        found.extend(THANKS.iter().find(|(whose, _)| is_of(about, whose)).map(|(_, thanks)| thanks));
    }
    found.dedup();
    (!found.is_empty()).then(|| found.join("; "))
}
