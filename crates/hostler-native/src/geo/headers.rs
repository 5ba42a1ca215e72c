//! The fields `X-Geo-*` of a request, which tell its member where the client is. Knows no members.

use std::net::IpAddr;
use std::sync::Arc;

use hostler_address::{AddressKind, plain};
use hostler_lookup::geo::{ByRecord, DatabaseError, GeoDatabases, GeoPlace};
use hostler_wire::Fields;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Every byte that is not allowed in a field's value, or that separates words, is encoded. The slash of a time zone is
/// not.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Names and values.
pub(super) type GeoLines = Arc<[(&'static str, Box<str>)]>;

/// The cached fields for the records of one set of databases.
pub(super) struct Headers {
    made: ByRecord<GeoLines>,
    decimals: u8,
}

impl Headers {
    /// A cache for the fields of `room` records. Coordinates have this many decimals.
    pub fn new(room: usize, decimals: u8) -> Self {
        Self { made: ByRecord::new(room), decimals }
    }

    /// The fields for an address. `None` for an address without a place.
    pub fn of(&self, databases: &GeoDatabases, ip: IpAddr) -> Result<Option<GeoLines>, DatabaseError> {
        let ip = plain(ip);
        if !AddressKind::of(ip).has_place() {
            return Ok(None);
        }
        let Some(found) = databases.find(ip)? else { return Ok(None) };
        let Some(record) = found.record() else { return Ok(None) };
        self.made.get(record, || found.place().map(|place| lines(&place, self.decimals))).map(Some)
    }
}

/// Removes all fields with these names, from any sender, and adds these.
pub(super) fn replace(fields: &mut Fields, lines: Option<&GeoLines>) {
    fields.remove(is_geo);
    for (name, value) in lines.into_iter().flat_map(|lines| lines.iter()) {
        fields.add_own(name.as_bytes(), value.as_bytes());
    }
}

/// CGI and its successors treat `X_Geo_City` like `X-Geo-City`.
fn is_geo(name: &[u8]) -> bool {
    let prefix = b"x-geo-";
    name.len() > prefix.len()
        && name.iter().zip(prefix).all(|(byte, expected)| {
            byte.eq_ignore_ascii_case(expected) || (*byte == b'_' && *expected == b'-')
        })
}

fn lines(place: &GeoPlace<'_>, decimals: u8) -> GeoLines {
    let text = |text: Option<&str>| text.map(|text| utf8_percent_encode(text, ENCODED).to_string().into());
    let scale = 10_f64.powi(i32::from(decimals));
    // Adding zero turns a negative zero into a positive one.
    let rounded = |degrees: f64| (degrees * scale).round() / scale + 0.0;
    let degrees = |degrees: f64| format!("{:.1$}", rounded(degrees), usize::from(decimals)).into();
    let known: [(&'static str, Option<Box<str>>); 10] = [
        ("X-Geo-City", text(place.city(&[]))),
        ("X-Geo-Region", text(place.region.name(&[]))),
        ("X-Geo-Region-Code", text(place.region_code)),
        ("X-Geo-Country", text(place.country_code)),
        ("X-Geo-Continent", text(place.continent)),
        ("X-Geo-Eu", place.european_union.map(|is_in| is_in.to_string().into())),
        ("X-Geo-Latitude", place.coordinates.map(|(latitude, _)| degrees(latitude))),
        ("X-Geo-Longitude", place.coordinates.map(|(_, longitude)| degrees(longitude))),
        ("X-Geo-Timezone", text(place.timezone)),
        ("X-Geo-Postal", text(place.postal)),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_headers_are_ascii() {
        let mut place = GeoPlace::default();
        assert!(lines(&place, 2).is_empty());
        place.region_code = Some("E");
        place.country_code = Some("SE");
        place.european_union = Some(true);
        place.coordinates = Some((58.416_67, -0.001));
        place.timezone = Some("Europe/Stockholm");
        place.postal = Some("582 22, \"x\"\r\n%");
        let expected = [
            ("X-Geo-Region-Code", "E"),
            ("X-Geo-Country", "SE"),
            ("X-Geo-Eu", "true"),
            ("X-Geo-Latitude", "58.42"),
            ("X-Geo-Longitude", "0.00"),
            ("X-Geo-Timezone", "Europe/Stockholm"),
            ("X-Geo-Postal", "582%2022%2C%20%22x%22%0D%0A%25"),
        ];
        let shown = lines(&place, 2);
        assert_eq!(shown.iter().map(|(name, value)| (*name, &**value)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_spelling_of_a_geo_header_is_recognised() {
        for name in ["X-Geo-City", "x-geo-anything", "X_GEO_CITY", "x-geo_x"] {
            assert!(is_geo(name.as_bytes()), "{name}");
        }
        for name in ["X-Geo-", "X-Geography", "Geo-City", "", "X-Ge"] {
            assert!(!is_geo(name.as_bytes()), "{name}");
        }
    }
}
