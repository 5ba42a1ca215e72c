//! A record as it is stored in a file, in either schema. Does not know how it is used.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

/// No record has more parts of a country than this. A longer list is damaged.
const MOST_REGIONS: usize = 16;

/// Names by language.
pub(super) type Names<'a> = BTreeMap<&'a str, &'a str>;

/// The used fields of both schemas. A missing field stays empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Record<'a> {
    #[serde(borrow)]
    pub city: City<'a>,
    pub continent: Continent<'a>,
    pub country: Country<'a>,
    #[serde(deserialize_with = "few_regions")]
    pub subdivisions: Vec<Region<'a>>,
    pub location: Location<'a>,
    pub postal: Postal<'a>,
    pub country_code: Option<&'a str>,
    pub state1: Option<&'a str>,
    pub postcode: Option<&'a str>,
    pub latitude: Option<Degrees>,
    pub longitude: Option<Degrees>,
    pub timezone: Option<&'a str>,
}

/// One schema has single precision, the other double. Some tools write a coordinate without a fraction as a whole number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Degrees(pub f64);

impl<'de> Deserialize<'de> for Degrees {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl Visitor<'_> for Visit {
            type Value = Degrees;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("degrees")
            }
            fn visit_f32<E: Error>(self, degrees: f32) -> Result<Degrees, E> {
                Ok(Degrees(degrees.into()))
            }
            fn visit_f64<E: Error>(self, degrees: f64) -> Result<Degrees, E> {
                Ok(Degrees(degrees))
            }
            fn visit_i64<E: Error>(self, degrees: i64) -> Result<Degrees, E> {
                let degrees = i32::try_from(degrees).map_err(|_| E::custom("too many degrees"))?;
                Ok(Degrees(degrees.into()))
            }
            fn visit_u64<E: Error>(self, degrees: u64) -> Result<Degrees, E> {
                let degrees = u32::try_from(degrees).map_err(|_| E::custom("too many degrees"))?;
                Ok(Degrees(degrees.into()))
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

impl Record<'_> {
    pub fn is_flat(&self) -> bool {
        self.country_code.is_some() || matches!(self.city, City::Flat(_))
    }

    /// Whether the record has a city.
    pub fn has_city(&self) -> bool {
        match &self.city {
            City::Flat(name) => !name.is_empty(),
            City::Nested(names) => names.values().any(|name| !name.is_empty()),
        }
    }

    /// Whether the record has any information about a place.
    pub fn is_place(&self) -> bool {
        self.is_flat()
            || !matches!(&self.city, City::Nested(names) if names.is_empty())
            || self.country.iso_code.is_some()
            || self.continent.code.is_some()
            || self.location.latitude.is_some()
    }
}

/// A text in one schema, a table of names in the other.
#[derive(Debug)]
pub(super) enum City<'a> {
    Flat(&'a str),
    Nested(Names<'a>),
}

impl Default for City<'_> {
    fn default() -> Self {
        Self::Nested(Names::new())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for City<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Table<'a> {
            #[serde(borrow, default)]
            names: Names<'a>,
        }
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = City<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a city")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<City<'de>, E> {
                Ok(City::Flat(text))
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<City<'de>, A::Error> {
                Table::deserialize(MapAccessDeserializer::new(table)).map(|table| City::Nested(table.names))
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Continent<'a> {
    pub code: Option<&'a str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Country<'a> {
    pub iso_code: Option<&'a str>,
    pub is_in_european_union: Option<bool>,
    #[serde(borrow)]
    pub names: Names<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Region<'a> {
    pub iso_code: Option<&'a str>,
    #[serde(borrow)]
    pub names: Names<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Location<'a> {
    pub latitude: Option<Degrees>,
    pub longitude: Option<Degrees>,
    pub accuracy_radius: Option<u16>,
    pub time_zone: Option<&'a str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Postal<'a> {
    pub code: Option<&'a str>,
}

fn few_regions<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Region<'a>>, D::Error> {
    struct Visit;
    impl<'de> Visitor<'de> for Visit {
        type Value = Vec<Region<'de>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a few regions")
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut regions = Vec::new();
            while let Some(region) = list.next_element()? {
                if regions.len() == MOST_REGIONS {
                    return Err(A::Error::custom("more regions than a country can have"));
                }
                regions.push(region);
            }
            Ok(regions)
        }
    }
    deserializer.deserialize_seq(Visit)
}
