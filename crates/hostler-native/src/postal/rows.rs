//! Results as rows under columns. Knows neither their source nor their format.

use hostler_lookup::postal::{Degrees, Neighbour, PostalPlace};

use crate::problem::repeated;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell<'a> {
    /// Two letters.
    Country([u8; 2]),
    Text(&'a str),
    Owned(String),
    Count(u64),
    Degrees(Degrees),
    /// A distance, written with three decimals.
    Distance(f64),
    Truth(bool),
    Unknown,
}

impl<'a> Cell<'a> {
    /// A text. An empty one stands for an unknown value.
    pub fn text(text: &'a str) -> Self {
        if text.is_empty() { Self::Unknown } else { Self::Text(text) }
    }
}

/// A unit of distance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Unit {
    #[default]
    Kilometres,
    Miles,
}

impl Unit {
    pub fn of(text: Option<&str>) -> Result<Self, String> {
        match text {
            None | Some("km") => Ok(Self::Kilometres),
            Some("mi") => Ok(Self::Miles),
            Some(other) => Err(format!("unit: {} is neither km nor mi", repeated(other.as_bytes()))),
        }
    }

    pub fn column(self) -> &'static str {
        match self {
            Self::Kilometres => "distance_km",
            Self::Miles => "distance_mi",
        }
    }

    pub fn of_km(self, km: f64) -> f64 {
        match self {
            Self::Kilometres => km,
            Self::Miles => km / 1.609_344,
        }
    }
}

/// The columns of a place, in their order.
pub(super) const PLACE: [&str; 10] =
    ["country", "code", "city", "state", "state_name", "county", "county_code", "lat", "lng", "accuracy"];

/// The values of a place under these columns.
pub(super) fn place<'a>(place: &PostalPlace<'a>) -> Vec<Cell<'a>> {
    let [lat, lng] = match place.point {
        Some(point) => [point.lat, point.lng].map(Cell::Degrees),
        None => [Cell::Unknown, Cell::Unknown],
    };
    let accuracy = if place.accuracy == 0 { Cell::Unknown } else { Cell::Count(place.accuracy.into()) };
    vec![
        Cell::Country(place.country),
        Cell::Text(place.code),
        Cell::text(place.city),
        Cell::text(place.state),
        Cell::text(place.state_name),
        Cell::text(place.county),
        Cell::text(place.county_code),
        lat,
        lng,
        accuracy,
    ]
}

/// Rows under columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rows<'a> {
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<Cell<'a>>>,
}

impl<'a> Rows<'a> {
    pub fn new(columns: impl IntoIterator<Item = &'static str>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Rows of places.
    pub fn places(places: impl IntoIterator<Item = PostalPlace<'a>>) -> Self {
        let mut rows = Self::new(PLACE);
        rows.rows.extend(places.into_iter().map(|at| place(&at)));
        rows
    }

    /// Rows of places with their distances.
    pub fn near(found: impl IntoIterator<Item = Neighbour<'a>>, unit: Unit) -> Self {
        let mut rows = Self::new(PLACE.into_iter().chain([unit.column()]));
        rows.rows.extend(found.into_iter().map(|near| {
            let mut row = place(&near.place);
            row.push(Cell::Distance(unit.of_km(near.km)));
            row
        }));
        rows
    }

    /// The columns that were asked for, in the order of the service. All of them if the request names none.
    pub fn wanted<'q>(&self, fields: impl Iterator<Item = &'q str>) -> Result<Vec<usize>, String> {
        let names: Vec<&str> = fields.collect();
        if names.is_empty() {
            return Ok((0..self.columns.len()).collect());
        }
        if let Some(odd) = names.iter().find(|name| !self.columns.contains(name)) {
            let known = self.columns.join(", ");
            return Err(format!("fields: there is no {}; there are {known}", repeated(odd.as_bytes())));
        }
        Ok((0..self.columns.len()).filter(|at| names.contains(&self.columns[*at])).collect())
    }

    /// The index of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| *column == name)
    }
}
