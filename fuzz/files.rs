//! Checks for any bytes in a data file: Hostler refuses the file, or answers every lookup in it. Knows no HTTP.
#![allow(dead_code, reason = "each fuzz target uses its own check")]

use std::net::IpAddr;
use std::path::PathBuf;

use hostler_lookup::Mapping;
use hostler_lookup::geo::{GeoDatabases, verify};
use hostler_lookup::postal::{Country, Point, PostalFile, PostalTable};

/// Both families, both ends, and what the databases of the corpus know.
const ADDRESSES: [&str; 9] = [
    "0.0.0.0",
    "1.1.1.1",
    "2.125.160.216",
    "81.2.69.160",
    "255.255.255.255",
    "::",
    "2001:218::1",
    "2a02:100::1",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
];
/// Where the checksum of a pack lies, and where what it is about begins.
const CHECKSUM: std::ops::Range<usize> = 12..16;

/// A database of places.
pub fn mmdb(bytes: &[u8]) {
    let file = File::with(bytes, "mmdb");
    let paths = [file.0.clone()];
    let is_sound = verify(&paths, Mapping::InPlace).is_ok();
    let Ok(databases) = GeoDatabases::open(&paths, Mapping::InPlace) else { return };
    for ip in ADDRESSES {
        let ip: IpAddr = ip.parse().expect("it is written above");
        let Ok(found) = databases.find(ip) else {
            assert!(!is_sound, "what was verified answers: {ip}");
            continue;
        };
        let Some(found) = found else { continue };
        if let Some((network, length)) = found.network() {
            assert!(length <= if network.is_ipv4() { 32 } else { 128 }, "{network}/{length}");
        }
        let place = found.place();
        assert!(place.is_ok() || !is_sound, "what was verified has no broken record: {ip}");
        let Ok(place) = place else { continue };
        assert!(found.record().is_some() || place == Default::default(), "nothing is known of nowhere");
        if let Some((latitude, longitude)) = place.coordinates {
            assert!(latitude.abs() <= 90.0 && longitude.abs() <= 180.0, "{latitude},{longitude}");
        }
        for languages in [&[][..], &["de", "pt-BR"]] {
            let names = [place.city(languages), place.district(languages)];
            let names =
                names.into_iter().chain([place.region.name(languages), place.country.name(languages)]);
            assert!(names.flatten().all(|name| name.len() <= bytes.len()), "names come out of the file");
        }
    }
}

/// Postal codes: GeoNames' text, or a pack; a pack also as if its checksum were right, which no fuzzer finds by itself.
pub fn postal_pack(bytes: &[u8]) {
    postal(bytes);
    if bytes.starts_with(b"HOSTLERP") && bytes.len() > CHECKSUM.end {
        let mut sealed = bytes.to_vec();
        let checksum = crc32fast::hash(&sealed[CHECKSUM.end..]);
        sealed[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        postal(&sealed);
    }
}

fn postal(bytes: &[u8]) {
    let file = File::with(bytes, "postal");
    let Ok(postal) = PostalFile::open(std::slice::from_ref(&file.0), Mapping::InPlace) else { return };
    for (table, country) in postal.countries() {
        ask_everything(&postal, table, country, bytes.len());
    }
    let _ = (postal.fingerprint(), postal.made(), postal.len(), postal.country("us"));
    if let Some(point) = Point::new(45.0, -122.0) {
        assert!(postal.near(point, 5, Some(100.0)).len() <= 5);
    }
}

/// No list is longer than the file that it is in.
fn ask_everything(postal: &PostalFile, table: &PostalTable, country: &Country, most: usize) {
    let places = table.prefix(country, "");
    assert!(places.len() <= most);
    for place in table.each(&places).take(100) {
        postal.code(table, country, place.code);
    }
    for region in table.regions(country).take(100) {
        assert!(table.each(&table.in_region(&region)).count() <= most);
        table.region(country, region.name);
        for name in ["Portland", ""] {
            let places = table.city(&region, name).map(|city| table.in_city(&city));
            assert!(places.is_none_or(|places| table.in_county(&places, "Multnomah").len() <= most));
        }
    }
    for text in ["", "p", "972", "sankt gallen", "\u{e9}"] {
        assert!(table.suggest(country, text, None, 20).len() <= 20);
        assert!(table.codes_like(country, text, None, 20).len() <= 20);
        table.shapes(country).fit(text);
    }
    table.random(country, 7);
    if let Some(point) = Point::new(-90.0, 180.0) {
        assert!(table.near(point, Some(country), 5, None).len() <= 5);
    }
}

/// A file for as long as it is looked at: data are mapped, so they have to lie somewhere.
struct File(PathBuf);

impl File {
    fn with(bytes: &[u8], what: &str) -> Self {
        let thread = std::thread::current().id();
        let name = format!("hostler-{what}-{}-{thread:?}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).expect("there is room for a file of test data");
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
