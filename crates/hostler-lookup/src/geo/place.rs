//! The place of an address, the same for both schemas. Knows no file.

use super::record::{City, Names, Record};

/// The countries of the European Union, for files without this information.
const EUROPEAN_UNION: &[&str] = &[
    "AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU", "IE", "IT", "LT",
    "LU", "LV", "MT", "NL", "PL", "PT", "RO", "SE", "SI", "SK",
];

/// A name in one or several languages.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Named<'a> {
    only: Option<&'a str>,
    by_language: Names<'a>,
}

impl<'a> Named<'a> {
    /// The name in the first of these languages that exists, or else in English, or else in any language.
    pub fn name(&self, languages: &[&str]) -> Option<&'a str> {
        if self.only.is_some() {
            return self.only;
        }
        let preferred = languages.iter().find_map(|wanted| self.in_language(wanted));
        let name = preferred.or_else(|| self.in_language("en"));
        name.or_else(|| self.by_language.values().next().copied())
    }

    /// The exact language first, then one that differs only by its region (`pt-BR` for `pt`, `de` for `de-AT`).
    fn in_language(&self, wanted: &str) -> Option<&'a str> {
        let same = self.by_language.iter().find(|(tag, _)| tag.eq_ignore_ascii_case(wanted));
        let near = || self.by_language.iter().find(|(tag, _)| is_one_language(tag, wanted.bytes()));
        same.or_else(near).map(|(_, name)| *name)
    }
}

/// Whether two tags are of one language, perhaps with different regions. Reads no more of the wanted one than it must: a client can send a long
/// one for a thousand addresses.
fn is_one_language(tag: &str, mut wanted: impl Iterator<Item = u8>) -> bool {
    let primary = tag.split('-').next().unwrap_or_default();
    primary.bytes().all(|byte| wanted.next().is_some_and(|other| other.eq_ignore_ascii_case(&byte)))
        && wanted.next().is_none_or(|other| other == b'-')
}

/// What a database knows about the place of an address. No text is empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GeoPlace<'a> {
    city: Named<'a>,
    /// The ISO 3166-2 code, without the country.
    pub region_code: Option<&'a str>,
    /// The name of the state, province or similar division.
    pub region: Named<'a>,
    /// The ISO 3166-1 code.
    pub country_code: Option<&'a str>,
    /// The name of the country.
    pub country: Named<'a>,
    /// Whether the country is in the European Union.
    pub european_union: Option<bool>,
    /// The two-letter code of the continent.
    pub continent: Option<&'a str>,
    /// Latitude and longitude in degrees.
    pub coordinates: Option<(f64, f64)>,
    /// The radius in kilometres within which the coordinates are correct.
    pub accuracy_km: Option<u16>,
    /// The IANA name of the time zone.
    pub timezone: Option<&'a str>,
    /// The postal code.
    pub postal: Option<&'a str>,
}

impl<'a> GeoPlace<'a> {
    /// The city, without the district that DB-IP appends in brackets.
    pub fn city(&self, languages: &[&str]) -> Option<&'a str> {
        self.city.name(languages).map(|city| split(city).0)
    }

    /// The district of the city.
    pub fn district(&self, languages: &[&str]) -> Option<&'a str> {
        self.city.name(languages).and_then(|city| split(city).1)
    }
}

/// Splits `London (Shadwell)` into the city London and the district Shadwell.
fn split(city: &str) -> (&str, Option<&str>) {
    let inside = city.strip_suffix(')').and_then(|city| city.split_once(" ("));
    match inside {
        Some((city, district)) if !city.is_empty() && !district.is_empty() => (city, Some(district)),
        _ => (city, None),
    }
}

impl<'a> From<Record<'a>> for GeoPlace<'a> {
    fn from(record: Record<'a>) -> Self {
        // The flat schema has an empty text for a missing value, and so have nested files that were made from tables.
        let some = |text: Option<&'a str>| text.filter(|text| !text.is_empty());
        let only = |text| Named { only: some(text), by_language: Names::new() };
        let names = |mut by_language: Names<'a>| {
            by_language.retain(|_, name| !name.is_empty());
            Named { only: None, by_language }
        };
        let (latitude, longitude) =
            (record.location.latitude.or(record.latitude), record.location.longitude.or(record.longitude));
        let in_range =
            |(latitude, longitude): &(f64, f64)| latitude.abs() <= 90.0 && longitude.abs() <= 180.0;
        let region = record.subdivisions.into_iter().next();
        let region_code = region.as_ref().and_then(|region| some(region.iso_code));
        let country_code = some(record.country.iso_code).or(some(record.country_code));
        Self {
            city: match record.city {
                City::Flat(city) => only(Some(city)),
                City::Nested(city) => names(city),
            },
            region_code,
            region: region.map_or_else(|| only(record.state1), |region| names(region.names)),
            country_code,
            country: names(record.country.names),
            // The nested schema omits the field if it is false.
            european_union: country_code.map(|code| {
                record.country.is_in_european_union.unwrap_or_else(|| EUROPEAN_UNION.contains(&code))
            }),
            continent: some(record.continent.code),
            coordinates: latitude
                .zip(longitude)
                .map(|(latitude, longitude)| (latitude.0, longitude.0))
                .filter(in_range),
            accuracy_km: record.location.accuracy_radius,
            timezone: some(record.location.time_zone).or(some(record.timezone)),
            postal: some(record.postal.code).or(some(record.postcode)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::record::Degrees;

    #[test]
    fn a_district_in_brackets_is_split_off() {
        for (name, city, district) in [
            ("London (Shadwell)", "London", Some("Shadwell")),
            ("Minneapolis", "Minneapolis", None),
            ("(Shadwell)", "(Shadwell)", None),
            ("London ()", "London ()", None),
            ("A (B) (C)", "A", Some("B) (C")),
            ("", "", None),
        ] {
            assert_eq!(split(name), (city, district), "{name}");
        }
    }

    #[test]
    fn a_name_is_taken_in_the_nearest_language() {
        let names = [("de", "London"), ("en", "London (en)"), ("fr", "Londres"), ("pt-BR", "Londres (pt)")];
        let named = Named { only: None, by_language: names.into_iter().collect() };
        for (languages, name) in [
            (&["fr"][..], "Londres"),
            (&["pt"], "Londres (pt)"),
            (&["DE-at"], "London"),
            (&["xx", "fr"], "Londres"),
            (&["xx"], "London (en)"),
            (&[], "London (en)"),
        ] {
            assert_eq!(named.name(languages), Some(name), "{languages:?}");
        }
        let odd = Named { only: None, by_language: [("ja", "ロンドン")].into_iter().collect() };
        assert_eq!(odd.name(&["fr"]), Some("ロンドン"));
        assert_eq!(Named::default().name(&["fr"]), None);
    }

    #[test]
    fn of_a_long_tag_no_more_is_read_than_the_language() {
        for (tag, begins, is_one) in
            [("de", "DE-x", true), ("pt-BR", "pt-x", true), ("de", "den", false), ("de", "fr", false)]
        {
            let mut read = 0;
            let endless = begins.bytes().chain(std::iter::repeat(b'x')).inspect(|_| read += 1);
            assert_eq!(is_one_language(tag, endless), is_one, "{tag} {begins}");
            assert!(read <= 3, "{tag} {begins}: {read} bytes");
        }
        assert!(is_one_language("de", "de".bytes()) && !is_one_language("de", "d".bytes()));
    }

    #[test]
    fn a_coordinate_may_be_a_whole_number() {
        use serde::Deserialize;
        use serde::de::value::{Error, I32Deserializer, U16Deserializer};

        let south = Degrees::deserialize(I32Deserializer::<Error>::new(-33));
        assert_eq!(south, Ok(Degrees(-33.0)));
        let east = Degrees::deserialize(U16Deserializer::<Error>::new(151));
        assert_eq!(east, Ok(Degrees(151.0)));
    }

    #[test]
    fn empty_names_and_null_points_are_unknown() {
        let record = Record {
            city: City::Flat(""),
            country_code: Some(""),
            latitude: Some(Degrees(91.0)),
            longitude: Some(Degrees(0.0)),
            ..Record::default()
        };
        assert_eq!(GeoPlace::from(record), GeoPlace::default());
        let city = |names: &[(&'static str, &'static str)]| Record {
            city: City::Nested(names.iter().copied().collect()),
            ..Record::default()
        };
        assert!(!city(&[("en", "")]).has_city());
        assert_eq!(GeoPlace::from(city(&[("en", "")])), GeoPlace::default());
        let other = city(&[("de", "Wien"), ("en", "")]);
        assert!(other.has_city());
        assert_eq!(GeoPlace::from(other).city(&["en"]), Some("Wien"));
    }
}
