//! A response with a single fact, as text. Knows no requests.

use super::facts::{Field, GeoFacts};

/// The fields of such a response.
pub(super) struct Shown(Vec<Field>);

impl Shown {
    pub const NAMES: &'static str =
        "ip, network, city, district, region, country, continent, coordinates, timezone, postal, type";

    /// By the names that similar services have used for long. A country and a region are given by their code.
    pub fn named(name: &[u8]) -> Option<Self> {
        Some(Self(match name {
            b"country" => vec![Field::CountryCode],
            b"region" => vec![Field::RegionCode, Field::RegionName],
            b"coordinates" => vec![Field::Latitude, Field::Longitude],
            _ => {
                let name = std::str::from_utf8(name).ok()?;
                vec![*Field::ALL.iter().find(|field| field.name() == name)?]
            }
        }))
    }

    pub fn text(&self, facts: &GeoFacts<'_>, languages: &[&str]) -> Option<String> {
        let texts = self.0.iter().map(|field| facts.get(*field, languages).to_string());
        let mut texts = texts.filter(|text| !text.is_empty());
        match self.0.as_slice() {
            [Field::Latitude, Field::Longitude] => Some(format!("{},{}", texts.next()?, texts.next()?)),
            _ => texts.next(),
        }
    }
}
