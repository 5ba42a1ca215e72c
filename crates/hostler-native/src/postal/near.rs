//! Codes near a place, and distances. Knows no geometry.

use hostler_lookup::postal::{Country, Point, PostalTable};
use hostler_wire::Whole;

use super::dataset::PostalDataset;
use super::rows::{Cell, Rows, Unit};
use crate::problem::problem;
use crate::query::QueryString;

const NEAREST: usize = 10;
const MOST: usize = 1000;
/// Half the circumference of the earth in kilometres. No distance is larger.
pub(super) const FARTHEST_KM: f64 = 20_038.0;
const MOST_DISTANCES: usize = 100;

/// How many near codes are wanted, and within which distance.
struct Wanted {
    most: usize,
    radius_km: Option<f64>,
    unit: Unit,
}

impl Wanted {
    fn of(query: &QueryString) -> Result<Self, Whole> {
        let wrong = |detail| problem(400, detail);
        Ok(Self {
            most: query.number("limit", 1..=MOST).map_err(wrong)?.unwrap_or(NEAREST),
            radius_km: query.number("radius_km", 0.0..=FARTHEST_KM).map_err(wrong)?,
            unit: Unit::of(query.get("unit")).map_err(wrong)?,
        })
    }
}

impl PostalDataset {
    /// The codes nearest to a point, of all countries or of one.
    pub(super) fn near_point(&self, query: &QueryString) -> Result<Rows<'_>, Whole> {
        let wrong = |detail| problem(400, detail);
        let lat = query.number("lat", -90.0..=90.0).map_err(wrong)?;
        let lng = query.number("lng", -180.0..=180.0).map_err(wrong)?;
        let point = lat.zip(lng).and_then(|(lat, lng)| Point::new(lat, lng));
        let point = point.ok_or_else(|| problem(400, "use lat= and lng= in degrees"))?;
        let wanted = Wanted::of(query)?;
        let near = match query.get("country") {
            None => self.data().near(point, wanted.most, wanted.radius_km),
            Some(name) => {
                let (table, country) = self.country(name)?;
                table.near(point, Some(country), wanted.most, wanted.radius_km)
            }
        };
        Ok(Rows::near(near, wanted.unit))
    }

    /// The codes nearest to a code in its country, without that code.
    pub(super) fn nearest_to<'a>(
        &'a self,
        (table, country): (&'a PostalTable, &'a Country),
        code: &str,
        query: &QueryString,
    ) -> Result<Rows<'a>, Whole> {
        let from = self.first_place((table, country), code)?;
        let point = from.point.ok_or_else(|| nowhere(from.code))?;
        let wanted = Wanted::of(query)?;
        let near = table.near(point, Some(country), wanted.most + 1, wanted.radius_km);
        let others = near.into_iter().filter(|near| near.place.code != from.code);
        Ok(Rows::near(others.take(wanted.most), wanted.unit))
    }

    /// The distances of codes from one code.
    pub(super) fn distances<'a>(
        &'a self,
        (table, country): (&'a PostalTable, &'a Country),
        from: &str,
        to: &str,
        query: &QueryString,
    ) -> Result<Rows<'a>, Whole> {
        let unit = Unit::of(query.get("unit")).map_err(|detail| problem(400, detail))?;
        let from = self.first_place((table, country), from)?;
        let point = from.point.ok_or_else(|| nowhere(from.code))?;
        let codes: Vec<&str> = to.split(',').map(str::trim).filter(|code| !code.is_empty()).collect();
        if codes.len() > MOST_DISTANCES {
            return Err(problem(400, format_args!("at most {MOST_DISTANCES} codes in one request")));
        }
        let columns = Self::asked_rows().columns;
        let mut rows = Rows::new(columns.into_iter().chain([unit.column()]));
        rows.rows.extend(codes.into_iter().map(|code| {
            let mut row = self.asked(code, Some((table, country)), code);
            let to = self.data().code(table, country, code).first().and_then(|place| place.point);
            row.push(to.map_or(Cell::Unknown, |to| Cell::Distance(unit.of_km(point.distance_km(to)))));
            row
        }));
        Ok(rows)
    }
}

fn nowhere(code: &str) -> Whole {
    problem(404, format_args!("the location of {code} is not known"))
}
