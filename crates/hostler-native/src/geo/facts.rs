//! The facts about an address. Knows no formats.

use std::borrow::Cow;
use std::net::IpAddr;

use hostler_address::AddressKind;
use hostler_lookup::geo::GeoPlace;

/// The value of a fact.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fact<'a> {
    Text(Cow<'a, str>),
    Degrees(f64),
    Count(u16),
    Truth(bool),
    Unknown,
}

macro_rules! fields {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// The fields of a response, in their order. A dot separates a table from its field.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Field { $($variant),* }

        impl Field {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

fields! {
    Ip = "ip",
    Network = "network",
    City = "city",
    District = "district",
    RegionCode = "region.code",
    RegionName = "region.name",
    CountryCode = "country.code",
    CountryName = "country.name",
    CountryEu = "country.eu",
    Continent = "continent",
    Latitude = "lat",
    Longitude = "lng",
    Accuracy = "accuracy_km",
    Timezone = "timezone",
    Postal = "postal",
    AddressKind = "type",
    Source = "source",
}

impl Field {
    /// The fields with this name: one field, or all fields of a table.
    pub fn named(name: &str) -> impl Iterator<Item = Self> {
        let is_in = move |field: &Self| {
            let rest = field.name().strip_prefix(name);
            !name.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        Self::ALL.iter().copied().filter(is_in)
    }

    /// The table of the field, if any, and its name in the table.
    pub fn in_table(self) -> (Option<&'static str>, &'static str) {
        self.name().split_once('.').map_or((None, self.name()), |(table, name)| (Some(table), name))
    }
}

/// All facts about an address.
pub(super) struct GeoFacts<'a> {
    pub ip: IpAddr,
    pub kind: AddressKind,
    pub place: GeoPlace<'a>,
    pub network: Option<(IpAddr, u8)>,
    /// The source of the client's own address. `None` if the request named the address.
    pub source: Option<&'static str>,
    pub decimals: u8,
}

impl GeoFacts<'_> {
    /// Only the address is known.
    pub fn unknown(ip: IpAddr, source: Option<&'static str>, decimals: u8) -> Self {
        Self { ip, kind: AddressKind::of(ip), place: GeoPlace::default(), network: None, source, decimals }
    }

    pub fn get(&self, field: Field, languages: &[&str]) -> Fact<'_> {
        let place = &self.place;
        let text = text_of;
        let fact = match field {
            Field::Ip => Some(Fact::Text(self.ip.to_string().into())),
            Field::Network => self.network.map(|(ip, length)| Fact::Text(format!("{ip}/{length}").into())),
            Field::City => text(place.city(languages)),
            Field::District => text(place.district(languages)),
            Field::RegionCode => text(place.region_code),
            Field::RegionName => text(place.region.name(languages)),
            Field::CountryCode => text(place.country_code),
            Field::CountryName => text(place.country.name(languages)),
            Field::CountryEu => place.european_union.map(Fact::Truth),
            Field::Continent => text(place.continent),
            Field::Latitude => place.coordinates.map(|(latitude, _)| self.degrees(latitude)),
            Field::Longitude => place.coordinates.map(|(_, longitude)| self.degrees(longitude)),
            Field::Accuracy => place.accuracy_km.map(Fact::Count),
            Field::Timezone => text(place.timezone),
            Field::Postal => text(place.postal),
            Field::AddressKind => text(Some(self.kind.as_str())),
            Field::Source => text(self.source),
        };
        fact.unwrap_or(Fact::Unknown)
    }

    /// Latitude and longitude, rounded to the configured number of decimals.
    pub fn at(&self) -> Option<(f64, f64)> {
        self.place.coordinates.map(|(latitude, longitude)| (self.rounded(latitude), self.rounded(longitude)))
    }

    fn degrees(&self, degrees: f64) -> Fact<'static> {
        Fact::Degrees(self.rounded(degrees))
    }

    fn rounded(&self, degrees: f64) -> f64 {
        let scale = 10_f64.powi(i32::from(self.decimals));
        // Adding zero turns a negative zero into a positive one.
        (degrees * scale).round() / scale + 0.0
    }
}

/// The value as text. Empty if it is not known.
impl std::fmt::Display for Fact<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => text.fmt(f),
            Self::Degrees(degrees) => degrees.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Truth(truth) => truth.fmt(f),
            Self::Unknown => Ok(()),
        }
    }
}

fn text_of(text: Option<&str>) -> Option<Fact<'_>> {
    text.map(|text| Fact::Text(text.into()))
}
