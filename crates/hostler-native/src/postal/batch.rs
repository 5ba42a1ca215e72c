//! Requests with many codes in their body. Knows no paths.

use std::borrow::Cow;

use hostler_lookup::postal::Point;
use hostler_wire::Whole;
use serde_json::Value;
use serde_json::value::RawValue;

use super::dataset::PostalDataset;
use super::near::FARTHEST_KM;
use super::rows::{Cell, Rows, Unit};
use crate::LookupRequest;
use crate::json_item;
use crate::problem::problem;
use crate::query::QueryString;

/// The most items in one request.
const MOST: usize = 1000;
/// The most items for comparisons of each with each.
const MOST_COMPARED: usize = 200;
/// The distance for "close" if the request names none, in kilometres.
const CLOSE_KM: f64 = 10.0;
/// The most bytes of an item that are repeated in the response.
const LONGEST: usize = 64;

/// One item.
pub(super) struct Item {
    /// The text of the item, to be repeated in the response.
    query: String,
    country: String,
    /// `None`: the text is not a code.
    code: Option<String>,
}

/// The items of a request.
pub(super) struct PostalBatch(Vec<Item>);

impl PostalBatch {
    /// Reads a JSON array of codes and of `{"country": .., "code": ..}`, or one code per line. The parameter `country` is
    /// the country of items that name none. Without it, they are codes of the US.
    pub fn read(request: &LookupRequest<'_>, query: &QueryString) -> Result<Self, Whole> {
        let text = std::str::from_utf8(request.body).map_err(|_| problem(400, "the body is not UTF-8"))?;
        let country = query.get("country").unwrap_or("us");
        let items: Vec<Item> = if text.trim_start().starts_with(['[', '{', '"']) {
            if !text.trim_start().starts_with('[') {
                return Err(problem(400, "the body is not a JSON array"));
            }
            let items: Vec<&RawValue> = serde_json::from_str(text)
                .map_err(|error| problem(400, format_args!("the body is not JSON: {error}")))?;
            too_many(items.len())?;
            items.iter().map(|item| Item::read(item, country)).collect()
        } else {
            let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
            too_many(lines().count())?;
            if lines().next().is_none() {
                return Err(problem(400, "the body has no codes; send a JSON list, or one code per line"));
            }
            lines().map(|line| Item::named(country, line)).collect()
        };
        Ok(Self(items))
    }
}

fn too_many(count: usize) -> Result<(), Whole> {
    match count > MOST {
        true => {
            Err(problem(413, format_args!("{count} codes are too many; send at most {MOST} in one request")))
        }
        false => Ok(()),
    }
}

impl Item {
    fn read(item: &RawValue, country: &str) -> Self {
        match json_item::value(item) {
            Some(value) => Self::of(&value, country),
            None => Self { query: short(item.get()).into_owned(), country: cut(country), code: None },
        }
    }

    fn of(item: &Value, country: &str) -> Self {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        match (item, text("code")) {
            (Value::String(code), _) => Self::named(country, code),
            (_, Some(code)) => Self::named(text("country").unwrap_or(country), code),
            _ => Self { query: short(&item.to_string()).into_owned(), country: cut(country), code: None },
        }
    }

    fn named(country: &str, code: &str) -> Self {
        Self { query: short(code).into_owned(), country: cut(country), code: Some(code.to_owned()) }
    }
}

/// The country of an item. Each item has a copy, and the query's may be as long as a head. A long one is no country, and neither is its beginning.
fn cut(country: &str) -> String {
    short(country).into_owned()
}

/// The text of an item, shortened to the longest useful length.
fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

impl PostalDataset {
    /// The places of many codes.
    pub(super) fn batch(&self, batch: &PostalBatch, _: &QueryString) -> Result<Rows<'_>, Whole> {
        let mut rows = Self::asked_rows();
        rows.rows.extend(batch.0.iter().map(|item| match &item.code {
            Some(code) => self.asked(&item.query, self.data().country(&item.country), code),
            None => {
                let wrong = "not a code and not an object with a code; a code must be a text";
                let mut row = vec![Cell::Owned(item.query.clone()), Cell::Count(400), Cell::Text(wrong)];
                row.resize(rows.columns.len(), Cell::Unknown);
                row
            }
        }));
        Ok(rows)
    }

    /// The pairs of codes within a distance of each other. Unknown codes are left out.
    pub(super) fn match_close(&self, batch: &PostalBatch, query: &QueryString) -> Result<Rows<'_>, Whole> {
        let wrong = |detail| problem(400, detail);
        let within = query.number("within_km", 0.0..=FARTHEST_KM).map_err(wrong)?.unwrap_or(CLOSE_KM);
        let unit = Unit::of(query.get("unit")).map_err(wrong)?;
        // Each code is compared with each other.
        if batch.0.len() > MOST_COMPARED {
            return Err(problem(
                413,
                format_args!("too many codes; send at most {MOST_COMPARED} to compare"),
            ));
        }
        let place = |item: &Item| {
            let (table, country) = self.data().country(&item.country)?;
            let place = self.data().code(table, country, item.code.as_deref()?).into_iter().next()?;
            Some((place.code, place.point?))
        };
        let mut places: Vec<(&str, Point)> = Vec::new();
        for found in batch.0.iter().filter_map(place) {
            // A code that was sent several times is not its own neighbour.
            if !places.contains(&found) {
                places.push(found);
            }
        }
        let mut rows = Rows::new(["code", "other", unit.column()]);
        for (at, (code, from)) in places.iter().enumerate() {
            let others = places[at + 1..].iter().map(|(other, to)| (other, from.distance_km(*to)));
            rows.rows.extend(others.filter(|(_, km)| *km <= within).map(|(other, km)| {
                vec![Cell::Text(code), Cell::Text(other), Cell::Distance(unit.of_km(km))]
            }));
        }
        Ok(rows)
    }

    /// For each of many codes: whether it has the form of a code, and whether it exists.
    pub(super) fn validate(&self, batch: &PostalBatch, _: &QueryString) -> Result<Rows<'_>, Whole> {
        let mut rows = Rows::new(["query", "country", "valid", "known", "code"]);
        rows.rows.extend(batch.0.iter().map(|item| {
            let found = item.code.as_deref().zip(self.data().country(&item.country));
            let (mut valid, mut known) = (false, None);
            if let Some((code, (table, country))) = found {
                known = self.data().code(table, country, code).into_iter().next();
                valid = known.is_some() || table.fits(country, code);
            }
            vec![
                Cell::Owned(item.query.clone()),
                found.map_or(Cell::Unknown, |(_, (_, country))| Cell::Country(country.code)),
                Cell::Truth(valid),
                Cell::Truth(known.is_some()),
                known.map_or(Cell::Unknown, |place| Cell::Text(place.code)),
            ]
        }));
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_item_has_a_copy_of_a_long_country() {
        let long = "x".repeat(60_000);
        for item in [Item::named(&long, "97209"), Item::of(&Value::Null, &long), Item::of(&"1".into(), &long)]
        {
            assert!(item.country.len() < 100, "{} bytes", item.country.len());
        }
        assert_eq!(Item::named("de", "10115").country, "de");
    }
}
