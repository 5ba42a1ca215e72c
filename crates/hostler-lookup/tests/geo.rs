//! Lookups in databases of places: our own ones in both schemas, MaxMind's test set, and damaged ones of many kinds.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use hostler_lookup::Mapping;
use hostler_lookup::geo::{GeoDatabases, GeoPlace, OpenError, Schema, verify};
use mmdb_writer::{IpVersion, Value, Writer};

/// The parts of a place that the tests compare.
#[derive(Debug, PartialEq)]
struct Seen {
    city: Option<String>,
    district: Option<String>,
    region: Option<String>,
    country: Option<String>,
    coordinates: Option<(f64, f64)>,
}

impl Seen {
    fn of(place: &GeoPlace<'_>) -> Self {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Self {
            city: own(place.city(&["en"])),
            district: own(place.district(&["en"])),
            region: own(place.region.name(&["en"])),
            country: own(place.country_code),
            coordinates: place.coordinates,
        }
    }
}

fn seen(databases: &GeoDatabases, ip: &str) -> Seen {
    let found = databases.find(ip.parse().unwrap()).unwrap().unwrap();
    Seen::of(&found.place().unwrap())
}

fn text(text: &str) -> Value {
    Value::from(text)
}

fn flat(city: &str, state: &str, country: &str, at: (f32, f32)) -> Value {
    Value::map([
        ("city", text(city)),
        ("country_code", text(country)),
        ("latitude", Value::from(at.0)),
        ("longitude", Value::from(at.1)),
        ("postcode", text("")),
        ("state1", text(state)),
        ("state2", text("")),
        ("timezone", text("")),
    ])
}

fn nested(city: &[(&str, &str)], country: &str, at: (f64, f64)) -> Value {
    let names = |names: &[(&str, &str)]| {
        Value::map([("names", Value::map(names.iter().map(|(language, name)| (*language, text(name)))))])
    };
    Value::map([
        ("city", names(city)),
        ("country", Value::map([("iso_code", text(country)), ("is_in_european_union", Value::from(true))])),
        ("location", Value::map([("latitude", Value::from(at.0)), ("longitude", Value::from(at.1))])),
    ])
}

/// Writes a database with these networks into a folder.
fn database(folder: &Path, name: &str, version: IpVersion, networks: &[(&str, Value)]) -> PathBuf {
    let mut writer = Writer::builder(format!("Test {name}")).ip_version(version).build();
    for (network, value) in networks {
        writer.insert_value(network.parse::<mmdb_writer::ipnet::IpNet>().unwrap(), value.clone()).unwrap();
    }
    let path = folder.join(name);
    std::fs::write(&path, writer.to_bytes().unwrap()).unwrap();
    path
}

#[test]
fn two_files_of_the_flat_schema_are_asked_by_family() {
    let folder = tempfile::tempdir().unwrap();
    let v4 = ("81.2.69.0/24", flat("London (Shadwell)", "England", "GB", (51.5143, -0.0912)));
    let v6 = ("2a02:100::/32", flat("Berlin", "Berlin", "DE", (52.52, 13.405)));
    let v4 = database(folder.path(), "v4.mmdb", IpVersion::V4, &[v4]);
    let v6 = database(folder.path(), "v6.mmdb", IpVersion::V6, &[v6]);
    // In any order.
    let databases = GeoDatabases::open(&[v6, v4.clone()], Mapping::InPlace).unwrap();
    let london = seen(&databases, "81.2.69.160");
    assert_eq!((london.city.as_deref(), london.district.as_deref()), (Some("London"), Some("Shadwell")));
    assert_eq!((london.region.as_deref(), london.country.as_deref()), (Some("England"), Some("GB")));
    assert_eq!(seen(&databases, "2a02:100::1").city.as_deref(), Some("Berlin"));
    assert!(databases.about().all(|about| about.schema == Schema::Flat));
    let nothing = databases.find("9.9.9.9".parse().unwrap()).unwrap().unwrap();
    assert_eq!((nothing.record(), nothing.place().unwrap()), (None, GeoPlace::default()));

    let only = GeoDatabases::open(&[v4], Mapping::InPlace).unwrap();
    assert!(only.find("2a02:100::1".parse().unwrap()).unwrap().is_none(), "no database is asked");
}

#[test]
fn one_file_of_the_nested_schema_knows_both_families_and_languages() {
    let folder = tempfile::tempdir().unwrap();
    let names = [("en", "Munich"), ("de", "M\u{fc}nchen")];
    let path = database(
        folder.path(),
        "city.mmdb",
        IpVersion::V6,
        &[
            ("2.125.160.0/24", nested(&names, "DE", (48.1, 11.5))),
            ("2a02:100::/32", nested(&[], "FR", (0.0, 0.0))),
        ],
    );
    let databases = GeoDatabases::open(&[path], Mapping::InPlace).unwrap();
    let found = databases.find("2.125.160.216".parse().unwrap()).unwrap().unwrap();
    let place = found.place().unwrap();
    assert_eq!((place.city(&["de"]), place.city(&["ja"])), (Some("M\u{fc}nchen"), Some("Munich")));
    assert_eq!((place.european_union, place.coordinates), (Some(true), Some((48.1, 11.5))));
    assert_eq!(found.network(), Some(("2.125.160.0".parse().unwrap(), 24)));
    let other = databases.find("2.125.160.9".parse().unwrap()).unwrap().unwrap();
    assert_eq!(found.record(), other.record(), "one record for all of a network");
    assert_eq!(seen(&databases, "2a02:100::1").city, None);
}

#[test]
fn an_unusable_database_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        folder.path().join(name)
    };
    let good = database(
        folder.path(),
        "good.mmdb",
        IpVersion::V4,
        &[("8.8.8.0/24", flat("A", "", "US", (1.0, 1.0)))],
    );
    let bytes = std::fs::read(&good).unwrap();
    let networks = Value::map([("autonomous_system_number", Value::from(5_u32))]);
    let cases = [
        (folder.path().join("none.mmdb"), "cannot be read"),
        (write("empty.mmdb", b""), "invalid database"),
        (write("text.mmdb", b"not a database"), "invalid database"),
        (write("cut.mmdb", &bytes[..bytes.len() / 2]), "invalid database"),
        (write("late.mmdb", &bytes[bytes.len() / 2..]), "invalid database"),
        (folder.path().to_owned(), "cannot be read"),
        (database(folder.path(), "asn.mmdb", IpVersion::V4, &[("8.8.8.0/24", networks)]), "it has no places"),
    ];
    for (path, why) in cases {
        let error = GeoDatabases::open(std::slice::from_ref(&path), Mapping::InPlace).err().unwrap();
        assert_eq!(error.path(), &path);
        assert!(error.to_string().contains(why), "{error}");
        assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    }
    let again = write("again.mmdb", &bytes);
    let twice = GeoDatabases::open(&[good.clone(), again], Mapping::InPlace).err().unwrap();
    assert!(matches!(twice, OpenError::Twice { family: 4, .. }), "{twice}");
    assert!(verify(&[good], Mapping::InPlace).is_ok());
}

#[test]
fn a_full_check_finds_a_damaged_record() {
    let folder = tempfile::tempdir().unwrap();
    let networks: Vec<_> = (0..200).map(|at| format!("8.8.{at}.0/24")).collect();
    let networks: Vec<_> = networks
        .iter()
        .enumerate()
        .map(|(at, net)| (net.as_str(), flat(&format!("Town {at}"), "", "US", (1.0, 1.0))))
        .collect();
    let path = database(folder.path(), "towns.mmdb", IpVersion::V4, &networks);
    assert!(verify(std::slice::from_ref(&path), Mapping::InPlace).is_ok());
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(8).rposition(|part| part == b"Town 199").unwrap();
    bytes[at] = 0xff;
    std::fs::write(&path, bytes).unwrap();
    let error = verify(std::slice::from_ref(&path), Mapping::InPlace).unwrap_err();
    assert!(error.to_string().contains("towns.mmdb: "), "{error}");
    // The open database reports that this record is damaged, and finds the others.
    let databases = GeoDatabases::open(&[path], Mapping::InPlace).unwrap();
    assert!(databases.find("8.8.199.1".parse().unwrap()).unwrap().unwrap().place().is_err());
    assert_eq!(seen(&databases, "8.8.0.1").city.as_deref(), Some("Town 0"));
}

/// MaxMind's test set, which `scripts/tools.mjs` downloads. `None` if it is missing; the test then prints that it is
/// skipped.
fn test_set() -> Option<PathBuf> {
    let named =
        std::env::vars_os().find(|(name, _)| name == "TEST_MMDB").map(|(_, folder)| PathBuf::from(folder));
    let brought = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/mmdb");
    let folder = named.unwrap_or(brought);
    if !folder.is_dir() {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        // Not eprintln!, because the test harness captures its output when a test passes, and a skip must be visible.
        let line =
            format!("!!! SKIPPED: {test}: MaxMind's test databases are missing (node scripts/tools.mjs)\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
        return None;
    }
    Some(folder)
}

fn databases_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => databases_below(&path, found),
            false if path.extension().is_some_and(|extension| extension == "mmdb") => found.push(path),
            false => {}
        }
    }
}

#[test]
fn maxminds_city_database_agrees_with_its_source() {
    let Some(folder) = test_set() else { return };
    let path = folder.join("test-data/GeoLite2-City-Test.mmdb");
    assert_eq!(verify(std::slice::from_ref(&path), Mapping::InPlace).unwrap().warnings, [""; 0]);
    let databases = GeoDatabases::open(&[path], Mapping::InPlace).unwrap();
    for (ip, city) in [
        ("81.2.69.142", Some("London")),
        ("81.2.69.160", Some("London")),
        ("2.125.160.216", Some("Boxford")),
        ("89.160.20.112", Some("Link\u{f6}ping")),
        ("175.16.199.1", Some("Changchun")),
        ("216.160.83.56", Some("Milton")),
        ("2001:480:10::1", Some("San Diego")),
        ("67.43.156.1", None),
        ("202.196.224.1", None),
        ("2a02:d500::1", None),
        ("1.1.1.1", None),
        ("2002:5102:45a0::1", Some("London")),
    ] {
        assert_eq!(seen(&databases, ip).city.as_deref(), city, "{ip}");
    }
    let found = databases.find("2.125.160.216".parse().unwrap()).unwrap().unwrap();
    let place = found.place().unwrap();
    assert_eq!((place.postal, place.region_code, place.country_code), (Some("OX1"), Some("ENG"), Some("GB")));
    assert_eq!((place.accuracy_km, place.timezone), (Some(100), Some("Europe/London")));
    assert_eq!(place.country.name(&["ja"]), Some("\u{30a4}\u{30ae}\u{30ea}\u{30b9}"));
}

#[test]
fn broken_databases_of_maxminds_test_set_are_refused_or_give_no_place() {
    let Some(folder) = test_set() else { return };
    let mut files = Vec::new();
    databases_below(&folder, &mut files);
    assert!(files.len() > 60, "{}", files.len());
    let mut refused = Vec::new();
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Neither may panic or run without end.
        let verified = verify(std::slice::from_ref(&path), Mapping::InPlace);
        match GeoDatabases::open(std::slice::from_ref(&path), Mapping::InPlace) {
            Err(error) => refused.push(format!("{name}: {error}")),
            Ok(databases) => {
                let whole = (0..=255_u8).flat_map(|high| {
                    let v4 = IpAddr::from([high, 1, 1, 1]);
                    [v4, IpAddr::from([u16::from(high) << 8, 0, 0, 0, 0, 0, 0, 1])]
                });
                let broken = whole.filter(|ip| match databases.find(*ip) {
                    Ok(Some(found)) => found.place().is_err(),
                    Ok(None) => false,
                    Err(_) => true,
                });
                // Every error in an open database is also found by verification.
                assert!(broken.count() == 0 || verified.is_err(), "{name}");
            }
        }
    }
    for bad in
        ["metadata-marker-only", "oversized-map", "metadata-is-an-uint128", "invalid-data-record-offset"]
    {
        assert!(refused.iter().any(|line| line.contains(bad)), "{bad}: {refused:#?}");
    }
}
