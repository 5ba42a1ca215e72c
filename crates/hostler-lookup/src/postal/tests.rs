//! The whole table: rows in, results out, from memory and from a mapped file.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::Mapping;

const ROWS: &str = "\
US\t97209\tPortland\tOregon\tOR\tMultnomah\t051\t\t\t45.527\t-122.6854\t4
US\t97201\tPortland\tOregon\tOR\tMultnomah\t051\t\t\t45.4989\t-122.6914\t4
US\t97229\tPortland\tOregon\tOR\tWashington\t067\t\t\t45.5483\t-122.8276\t4
US\t04101\tPortland\tMaine\tME\tCumberland\t005\t\t\t43.6606\t-70.2589\t4
US\t55101\tSaint Paul\tMinnesota\tMN\tRamsey\t123\t\t\t44.9513\t-93.0902\t4
US\t06901\tStamford\tConnecticut\tCT\tWestern Connecticut\t190\t\t\t41.0534\t-73.5387\t4
US\t70112\tNew Orleans\tLouisiana\tLA\tOrleans Parish\t071\t\t\t29.9605\t-90.0753\t4
US\t21201\tBaltimore\tMaryland\tMD\tBaltimore (city)\t510\t\t\t39.2946\t-76.6252\t4
US\t21204\tBaltimore\tMaryland\tMD\tBaltimore\t005\t\t\t39.4072\t-76.6036\t4
US\t96860\tFPO AA\t\t\t\t\t\t\t21.3448\t-157.9774\t4
US\t96860\tJbphh\tHawaii\tHI\tHonolulu\t003\t\t\t21.316\t-157.8677\t1
US\t09001\tAPO AA\t\t\t\t\t\t\t38.1105\t15.6613\t
US\t09012\tAPO AE\t\t\t\t\t\t\t0\t0\t
PR\t00601\tAdjuntas\tAdjuntas\t001\t\t\t\t\t18.1788\t-66.7516\t1
DE\t10115\tBerlin\tLand Berlin\tBE\t\t00\tBerlin\t11000\t52.5323\t13.3846\t4
DE\t10115\tMitte\tLand Berlin\tBE\t\t00\tBerlin\t11000\t52.53\t13.38\t4
GB\tSW1A\tLondon\tEngland\tENG\tGreater London\t\t\t\t51.5014\t-0.1419\t4
";

/// The same rows from memory and from a pack.
fn both() -> [PostalFile; 2] {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("rows.txt");
    std::fs::write(&text, ROWS).unwrap();
    let packed = folder.path().join("rows.pack");
    pack(std::slice::from_ref(&text)).unwrap().write(&packed).unwrap();
    [
        PostalFile::open(&[text], Mapping::InPlace).unwrap(),
        PostalFile::open(&[packed], Mapping::InPlace).unwrap(),
    ]
}

fn codes(table: &PostalTable, places: &Places) -> Vec<String> {
    table.each(places).map(|place| place.code.to_owned()).collect()
}

#[test]
fn a_code_is_found_with_all_columns_of_the_file() {
    for postal in both() {
        let (table, us) = postal.country("us").unwrap();
        let [place] = postal.code(table, us, "97209")[..] else { panic!("one place") };
        assert_eq!((place.country(), place.code, place.city), ("US", "97209", "Portland"));
        assert_eq!((place.state, place.state_name), ("OR", "Oregon"));
        assert_eq!((place.county, place.county_code, place.accuracy), ("Multnomah", "051", 4));
        assert_eq!(place.point, Point::new(45.527, -122.6854));
        assert_eq!(postal.code(table, us, "97209-1234").len(), 1, "ZIP+4");
        for unknown in ["97208", "", "\0", "9720", "972099", "ABCDE", "９７２０９"] {
            assert!(postal.code(table, us, unknown).is_empty(), "{unknown:?}");
        }
    }
}

#[test]
fn a_code_abroad_may_have_many_places_or_only_its_first_part() {
    for postal in both() {
        let (table, de) = postal.country("DE").unwrap();
        let cities: Vec<_> = postal.code(table, de, "10115").iter().map(|place| place.city).collect();
        assert_eq!(cities, ["Berlin", "Mitte"], "in the order of the file");
        let (table, gb) = postal.country("gb").unwrap();
        assert_eq!(postal.code(table, gb, "sw1a 1aa")[0].code, "SW1A");
        assert!(table.fits(gb, "SW1A") && table.fits(gb, "ec2v 7hh"), "a whole code has the form of a code");
        for odd in ["SW1A 1A", "SW1A 11A", "SW1A 1AAA", "SW1A nowhere"] {
            assert!(postal.code(table, gb, odd).is_empty() && !table.fits(gb, odd), "{odd}");
        }
        assert!(postal.country("FR").is_none() && postal.country("D").is_none());
    }
}

#[test]
fn a_military_post_yields_to_a_place_with_its_code_and_no_place_is_at_zero_zero() {
    for postal in both() {
        let (table, us) = postal.country("US").unwrap();
        let cities = |code| postal.code(table, us, code).iter().map(|place| place.city).collect::<Vec<_>>();
        assert_eq!(cities("96860"), ["Jbphh"]);
        let [post] = postal.code(table, us, "09012")[..] else { panic!("one place") };
        assert_eq!((post.city, post.state, post.county, post.point), ("APO", "AE", "", None));
    }
}

#[test]
fn a_territory_is_a_state_of_the_us_under_either_name() {
    for postal in both() {
        let (table, country) = postal.country("PR").unwrap();
        assert_eq!(country.as_str(), "US");
        assert_eq!(postal.code(table, country, "00601")[0].state, "PR");
        let (_, us) = postal.country("us").unwrap();
        assert!(table.region(us, "puerto rico").is_some());
    }
}

#[test]
fn a_state_is_found_by_code_and_name_and_lists_its_codes_in_order() {
    for postal in both() {
        let (table, us) = postal.country("us").unwrap();
        for name in ["or", "OR", "Oregon", "oREGON"] {
            let region = table.region(us, name).unwrap();
            assert_eq!(codes(table, &table.in_region(&region)), ["97201", "97209", "97229"]);
        }
        assert_eq!(table.region(us, ""), None);
        assert_eq!(table.region(us, "Atlantis"), None);
        assert_eq!(table.regions(us).filter(|region| region.code == "OR").count(), 1);
    }
}

#[test]
fn a_city_is_found_in_its_state_with_each_of_its_counties() {
    for postal in both() {
        let (table, us) = postal.country("us").unwrap();
        let in_city = |state, city| {
            let region = table.region(us, state).unwrap();
            table.city(&region, city).map(|city| table.in_city(&city))
        };
        let portland = in_city("or", "PORTLAND").unwrap();
        assert_eq!(codes(table, &portland), ["97201", "97209", "97229"]);
        assert_eq!(codes(table, &table.in_county(&portland, "multnomah county")), ["97201", "97209"]);
        assert_eq!(codes(table, &table.in_county(&portland, "Cumberland")), [""; 0]);
        assert_eq!(codes(table, &in_city("mn", "St. Paul").unwrap()), ["55101"]);
        assert_eq!(in_city("or", "Saint Paul"), None);
        let stamford = in_city("ct", "stamford").unwrap();
        assert_eq!(codes(table, &table.in_county(&stamford, "Fairfield County")), ["06901"]);
        let baltimore = in_city("md", "baltimore").unwrap();
        assert_eq!(codes(table, &table.in_county(&baltimore, "Baltimore (city)")), ["21201"]);
        assert_eq!(codes(table, &table.in_county(&baltimore, "Baltimore City")), ["21201", "21204"]);
    }
}

#[test]
fn completion_lists_the_largest_cities_first() {
    for postal in both() {
        let (table, us) = postal.country("us").unwrap();
        let suggest = |text: &str, state: Option<&str>| -> Vec<String> {
            let region = state.and_then(|state| table.region(us, state));
            let found = table.suggest(us, text, region.as_ref(), 10);
            found
                .into_iter()
                .map(|suggestion| match suggestion {
                    Suggestion::Code(place) => place.code.to_owned(),
                    Suggestion::City { city, region, places, .. } => {
                        format!("{} {} {places}", city.name, region.code)
                    }
                })
                .collect()
        };
        assert_eq!(suggest("portl", None), ["Portland OR 3", "Portland ME 1"]);
        assert_eq!(suggest("portl", Some("me")), ["Portland ME 1"]);
        assert_eq!(suggest("portland me", None), ["Portland ME 1"]);
        assert_eq!(suggest("Portland, Ore", None), ["Portland OR 3"]);
        assert_eq!(suggest("orleans", None), ["New Orleans LA 1"], "a later word");
        assert_eq!(suggest("st", None), ["Stamford CT 1", "Saint Paul MN 1"]);
        assert_eq!(suggest("st. p", None), ["Saint Paul MN 1"]);
        assert_eq!(suggest("972", None), ["97201", "97209", "97229"]);
        assert_eq!(suggest("972", Some("me")), [""; 0]);
        for nothing in ["", " ", ",", "...", "zzz", "\0"] {
            assert_eq!(suggest(nothing, None), [""; 0], "{nothing:?}");
        }
    }
}

#[test]
fn a_text_that_is_longer_than_all_names_gets_no_suggestions() {
    for postal in both() {
        let (table, us) = postal.country("us").unwrap();
        let count = |spaces| {
            let text = format!("Portland,{}Ore", " ".repeat(spaces));
            table.suggest(us, &text, None, 10).len()
        };
        assert_eq!([count(1), count(600)], [1, 0]);
    }
}

#[test]
fn a_text_whose_characters_stand_for_too_many_words_gets_no_suggestions() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("rows.txt");
    // This character stands for four words.
    let [short, long] = [1, 60].map(|count| "\u{fdfa}".repeat(count));
    let row =
        |city: &str| format!("FR\t75001\t{city}\tIle-de-France\t11\tParis\t75\t\t\t48.8592\t2.3417\t5\n");
    std::fs::write(&text, row(&short) + &row(&long)).unwrap();
    let postal = PostalFile::open(&[text], Mapping::InPlace).unwrap();
    let (table, france) = postal.country("fr").unwrap();
    let is_found = |typed: &str| !table.suggest(france, typed, None, 10).is_empty();
    assert_eq!([is_found(&short), is_found(&long)], [true, false]);
}

#[test]
fn codes_of_a_state_are_suggested_without_those_of_others() {
    for postal in both() {
        let (table, us) = postal.country("us").unwrap();
        let region = table.region(us, "md").unwrap();
        let found: Vec<_> = table.codes_like(us, "", Some(&region), 10).iter().map(|at| at.code).collect();
        assert_eq!(found, ["21201", "21204"]);
    }
}

#[test]
fn a_city_with_a_number_in_its_name_is_suggested() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("rows.txt");
    let row = "FR\t75001\tParis 01\tIle-de-France\t11\tParis\t75\t\t\t48.8592\t2.3417\t5\n";
    std::fs::write(&text, row).unwrap();
    let postal = PostalFile::open(&[text], Mapping::InPlace).unwrap();
    let (table, france) = postal.country("fr").unwrap();
    for typed in ["paris", "Paris 0", "paris 01"] {
        let found = table.suggest(france, typed, None, 10);
        assert!(matches!(found[..], [Suggestion::City { .. }]), "{typed}: {found:?}");
    }
    let found = table.suggest(france, "7500", None, 10);
    assert!(matches!(found[..], [Suggestion::Code(_)]), "{found:?}");
}

#[test]
fn a_whole_code_is_suggested_by_the_part_that_the_data_has() {
    for postal in both() {
        for (country, typed, code) in
            [("gb", "SW1A 1AA", "SW1A"), ("gb", "sw1a1", "SW1A"), ("us", "97209-00", "97209")]
        {
            let (table, country) = postal.country(country).unwrap();
            let found = table.suggest(country, typed, None, 10);
            assert!(
                matches!(found[..], [Suggestion::Code(place)] if place.code == code),
                "{typed}: {found:?}"
            );
        }
        let (table, gb) = postal.country("gb").unwrap();
        assert!(table.suggest(gb, "SW1A 11", None, 10).is_empty());
    }
}

#[test]
fn a_city_is_found_in_each_spelling() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("rows.txt");
    let places = "22101 Mc Lean/78501 Mcallen/63366 O Fallon/83814 Coeur d'Alene/15801 Du Bois/75115 Desoto/\
        32134 Fort Mc Coy/98273 Mount Vernon/62549 Mt Zion/27801 Rocky Mount/96744 Kaneohe";
    let row = |place: &str| {
        let (code, city) = place.split_once(' ').unwrap();
        format!("US\t{code}\t{city}\tHawaii\tHI\t\t\t\t\t40\t-90\t4\n")
    };
    std::fs::write(&text, places.split('/').map(row).collect::<String>()).unwrap();
    let postal = PostalFile::open(&[text], Mapping::InPlace).unwrap();
    let (table, us) = postal.country("us").unwrap();
    let state = table.region(us, "Hawai\u{2bb}i").unwrap();
    for (name, code) in [
        ("McLean", "22101"),
        ("mc lean", "22101"),
        ("Mc Allen", "78501"),
        ("MCALLEN", "78501"),
        ("O'Fallon", "63366"),
        ("o fallon", "63366"),
        ("O\u{2019}FALLON", "63366"),
        ("Coeur d'Alene", "83814"),
        ("DuBois", "15801"),
        ("De Soto", "75115"),
        ("Ft. McCoy", "32134"),
        ("Mt Vernon", "98273"),
        ("Mount Zion", "62549"),
        ("K\u{101}ne\u{2bb}ohe", "96744"),
    ] {
        let city = table.city(&state, name).unwrap_or_else(|| panic!("{name} is not found"));
        assert_eq!(codes(table, &table.in_city(&city)), [code], "{name}");
        for typed in
            [name.to_owned(), format!("{name} hi"), format!("{name}, HI"), name[..name.len() - 1].to_owned()]
        {
            let found = table.suggest(us, &typed, None, 10);
            assert!(
                matches!(found[..], [Suggestion::City { place, .. }] if place.code == code),
                "{typed}: {found:?}"
            );
        }
    }
    assert_eq!(table.suggest(us, "mc", None, 10).len(), 3);
    assert_eq!(table.city(&state, "Rocky Mt").map(|city| city.name), Some("Rocky Mount"));
    assert_eq!(table.city(&state, "Lean"), None);
}

#[test]
fn near_codes_are_sorted_by_distance() {
    for postal in both() {
        let (table, us) = postal.country("us").unwrap();
        let from = postal.code(table, us, "97209")[0].point.unwrap();
        let near: Vec<_> = table.near(from, Some(us), 3, None).iter().map(|near| near.place.code).collect();
        assert_eq!(near, ["97209", "97201", "97229"]);
        assert_eq!(table.near(from, Some(us), 99, Some(5.0)).len(), 2);
        assert_eq!(postal.near(from, 99, None).len(), 14, "all with a point, each code once");
        assert!(postal.near(from, 0, None).is_empty());
        let berlin = postal.near(Point::new(52.53, 13.38).unwrap(), 2, None);
        assert_eq!(
            (berlin[0].place.city, berlin[1].place.code),
            ("Mitte", "SW1A"),
            "a code once, at its nearest"
        );
    }
}

#[test]
fn copies_of_a_file_have_one_fingerprint_whenever_they_were_made() {
    let folder = tempfile::tempdir().unwrap();
    let opened = |rows: &str, seconds: u64| {
        let path = folder.path().join(format!("{seconds}.txt"));
        std::fs::write(&path, rows).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        PostalFile::open(&[path], Mapping::InPlace).unwrap()
    };
    let (one, copy) = (opened(ROWS, 1_700_000_000), opened(ROWS, 1_750_000_000));
    assert_eq!((one.made(), copy.made()), (Some(1_700_000_000), Some(1_750_000_000)));
    assert_eq!(one.fingerprint(), copy.fingerprint());
    let other = opened(&ROWS.replace("Stamford", "Springdale"), 1_700_000_001);
    assert_ne!(one.fingerprint(), other.fingerprint());
}

#[test]
fn a_bad_file_is_refused_with_its_name_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::File::create(&path).unwrap().write_all(bytes).unwrap();
        PostalFile::open(&[path], Mapping::InPlace).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let good = ROWS.lines().next().unwrap();
    assert!(
        open("short.txt", format!("{good}\nUS\t97201\n").as_bytes())
            .contains("short.txt:2: the line has 2 columns")
    );
    assert!(open("empty.txt", b"").ends_with("empty.txt: has no postal codes"));
    assert!(open("blank.txt", b"\n\n\n").ends_with("blank.txt: has no postal codes"));
    assert!(open("us.zip", b"PK\x03\x04....").ends_with("is a ZIP archive; unpack it first"));
    assert!(open("cut.pack", b"HOSTLERP\x01\0\0\0").ends_with("is not a pack"));
    // `hostler pack` says the same.
    for (name, why) in [("us.zip", "is a ZIP archive; unpack it first"), ("cut.pack", "is a pack already")] {
        let error = pack(&[folder.path().join(name)]).err().unwrap().to_string();
        assert!(error.ends_with(&format!("{name}: {why}")), "{error}");
    }
    assert!(
        open("latin1.txt", b"US\t1\tM\xfcnchen\t\t\t\t\t\t\t1\t1\t\n")
            .contains("latin1.txt:1: the line is not UTF-8")
    );
    assert!(open("binary.txt", &[0xff; 4096]).contains("binary.txt:1: "));
    let missing =
        PostalFile::open(&[PathBuf::from("/no/such/US.txt")], Mapping::InPlace).err().unwrap().to_string();
    assert!(missing.starts_with("/no/such/US.txt: "), "{missing}");
}

#[test]
fn a_country_that_two_files_have_is_refused_unless_both_are_texts_which_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("a.txt");
    std::fs::write(&text, ROWS).unwrap();
    let packed = folder.path().join("b.pack");
    pack(std::slice::from_ref(&text)).unwrap().write(&packed).unwrap();
    let both = PostalFile::open(&[packed, text.clone()], Mapping::InPlace).err().unwrap().to_string();
    assert!(both.contains("has the country DE, which another file has already"), "{both}");
    let twice = PostalFile::open(&[text.clone(), text.clone()], Mapping::InPlace).unwrap();
    assert_eq!(PostalFile::open(&[text], Mapping::InPlace).unwrap().len(), twice.len());
}

#[test]
fn nearest_codes_are_those_of_a_full_scan() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut rows = String::new();
    for code in 0..2000 {
        // Many places at few points, some at the poles and on both sides of the date line.
        let (lat, lng) = match code % 4 {
            0 => (f64::from(random.i32(-3..=3)) * 30.0, f64::from(random.i32(-3..=3)) * 60.0),
            1 => (random.f64() * 180.0 - 90.0, 180.0 - random.f64()),
            _ => (random.f64() * 180.0 - 90.0, random.f64() * 360.0 - 180.0),
        };
        rows.push_str(&format!("DE\t{code:05}\tX\t\t\t\t\t\t\t{lat:.4}\t{lng:.4}\t\n"));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("DE.txt");
    std::fs::write(&path, rows).unwrap();
    let postal = PostalFile::open(&[path], Mapping::InPlace).unwrap();
    let (table, de) = postal.country("de").unwrap();
    let all: Vec<PostalPlace<'_>> = table.each(&table.prefix(de, "")).collect();
    for _ in 0..200 {
        let from = Point::new(random.f64() * 180.0 - 90.0, random.f64() * 360.0 - 180.0).unwrap();
        let mut expected: Vec<f64> =
            all.iter().filter_map(|place| Some(place.point?.distance_km(from))).collect();
        expected.sort_by(f64::total_cmp);
        let found = table.near(from, Some(de), 12, None);
        assert_eq!(found.len(), 12);
        for (near, expected) in found.iter().zip(&expected) {
            assert!((near.km - expected).abs() < 0.01, "{} is not {expected}", near.km);
        }
        let within = expected.iter().filter(|km| **km <= 1500.0).count();
        assert_eq!(table.near(from, Some(de), 5000, Some(1500.0)).len(), within);
    }
}
