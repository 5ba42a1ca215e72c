//! The codes nearest to a point, with the earth as a sphere. Knows no files.

use std::collections::HashSet;

use super::degrees::{EARTH_KM, Point};
use super::table::{Country, PostalPlace, PostalTable};
use super::tree::Search;

/// A place near a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour<'a> {
    /// The place.
    pub place: PostalPlace<'a>,
    /// The distance along the surface in kilometres.
    pub km: f64,
}

impl PostalTable {
    /// The codes nearest to a point, of one country or of all. Each code has its nearest place, and the nearest code
    /// comes first.
    pub fn near(
        &self,
        from: Point,
        country: Option<&Country>,
        most: usize,
        radius_km: Option<f64>,
    ) -> Vec<Neighbour<'_>> {
        let chord2 = radius_km.map_or(f32::INFINITY, chord2);
        let mut wanted = most;
        loop {
            let mut search = Search::new(from.vector(), wanted, chord2);
            match country {
                Some(country) => search.through(&self.image, country.points.clone()),
                None => self.countries().for_each(|country| search.through(&self.image, country.points)),
            }
            let found = search.finish();
            let is_all = found.len() < wanted;
            let mut seen = HashSet::new();
            let places = found.into_iter().map(|near| self.place(near.place));
            let mut neighbours: Vec<_> = places
                .filter(|place| seen.insert((place.country, place.code)))
                .filter_map(|place| Some(Neighbour { place, km: place.point?.distance_km(from) }))
                .filter(|neighbour| radius_km.is_none_or(|radius| neighbour.km <= radius))
                .collect();
            // A code may have hundreds of places that are all nearer than the next code.
            if neighbours.len() >= most || is_all {
                neighbours.sort_by(|a, b| a.km.total_cmp(&b.km));
                neighbours.truncate(most);
                return neighbours;
            }
            wanted = wanted.saturating_mul(2);
        }
    }
}

/// The square of the chord for a distance along the surface, and a little more, so that rounding does not exclude a point
/// at exactly this distance.
fn chord2(km: f64) -> f32 {
    let half = (km / EARTH_KM / 2.0).clamp(0.0, std::f64::consts::FRAC_PI_2);
    ((2.0 * half.sin()).powi(2) * 1.000_01 + 1e-11) as f32
}
