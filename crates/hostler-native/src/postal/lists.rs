//! Lists: countries, states, the pages of a state's codes, and suggestions for a typed text. Knows no single code.

use hostler_lookup::postal::{Country, Places, PostalTable, Region, Suggestion};
use hostler_wire::Whole;

use super::dataset::{PostalDataset, no_state};
use super::rows::{Cell, PLACE, Rows, place};
use crate::problem::{problem, repeated};
use crate::query::QueryString;

/// How many codes a page has.
const PER_PAGE: usize = 100;
const MOST_PER_PAGE: usize = 1000;
const MOST_PAGES: usize = 1_000_000;
/// How many suggestions a response has at most.
const SUGGESTED: usize = 20;
const MOST_SUGGESTED: usize = 100;

impl PostalDataset {
    /// All countries.
    pub(super) fn countries(&self) -> Rows<'_> {
        let mut rows = Rows::new(["country", "codes", "places", "states"]);
        rows.rows.extend(self.data().countries().map(|(table, country)| {
            vec![
                Cell::Country(country.code),
                Cell::Count(country.codes.into()),
                Cell::Count(country.places_count().into()),
                Cell::Count(named(table, country).count() as u64),
            ]
        }));
        rows
    }

    /// The states of a country.
    pub(super) fn states<'a>(&'a self, (table, country): (&'a PostalTable, &'a Country)) -> Rows<'a> {
        let mut rows = Rows::new(["country", "state", "state_name", "cities", "places"]);
        rows.rows.extend(named(table, country).map(|region| {
            vec![
                Cell::Country(country.code),
                Cell::text(region.code),
                Cell::text(region.name),
                Cell::Count(table.cities_in(&region).into()),
                Cell::Count(table.in_region(&region).len() as u64),
            ]
        }));
        rows
    }

    /// A page of the codes of a state, or of one of its counties.
    pub(super) fn state<'a>(
        &'a self,
        (table, _): (&'a PostalTable, &'a Country),
        region: &Region<'_>,
        query: &QueryString,
        link: &mut Option<String>,
    ) -> Result<Rows<'a>, Whole> {
        let wrong = |detail| problem(400, detail);
        let per_page = query.number("per_page", 1..=MOST_PER_PAGE).map_err(wrong)?.unwrap_or(PER_PAGE);
        let page = query.number("page", 1..=MOST_PAGES).map_err(wrong)?.unwrap_or(1);
        let mut places = table.in_region(region);
        if let Some(county) = query.get("county").filter(|county| !county.trim().is_empty()) {
            places = table.in_county(&places, county);
            if places.is_empty() {
                let county = repeated(county.as_bytes());
                return Err(problem(404, format_args!("there is no county {county} in {}", region.name)));
            }
        }
        let last = places.len().div_ceil(per_page).max(1);
        if page > last {
            return Err(problem(404, format_args!("there are {last} pages")));
        }
        // A query only, because every path that leads here leads to the other pages too.
        let to = |page: usize, rel: &str| {
            let number = page.to_string();
            format!("<?{}>; rel=\"{rel}\"", query.with("page", &number))
        };
        let links = [
            (page > 1).then(|| to(page - 1, "prev")),
            (page < last).then(|| to(page + 1, "next")),
            Some(to(last, "last")),
        ];
        *link = Some(links.into_iter().flatten().collect::<Vec<_>>().join(", "));
        let numbers = table.numbers(&places).skip((page - 1) * per_page).take(per_page).collect();
        Ok(Rows::places(table.each(&Places::Picked(numbers))))
    }

    /// Suggestions for a typed text.
    pub(super) fn search<'a>(
        &'a self,
        (table, country): (&'a PostalTable, &'a Country),
        query: &QueryString,
    ) -> Result<Rows<'a>, Whole> {
        let wrong = |detail| problem(400, detail);
        let most = query.number("limit", 1..=MOST_SUGGESTED).map_err(wrong)?.unwrap_or(SUGGESTED);
        let state = match query.get("state").filter(|state| !state.is_empty()) {
            Some(state) => Some(table.region(country, state).ok_or_else(|| no_state(country, state))?),
            None => None,
        };
        let found = match (query.get("prefix"), query.get("q")) {
            (Some(prefix), None) => {
                let places = table.codes_like(country, prefix, state.as_ref(), most);
                places.into_iter().map(Suggestion::Code).collect()
            }
            (None, Some(text)) => table.suggest(country, text, state.as_ref(), most),
            _ => {
                let detail = "use prefix= with the beginning of a code, or q= with the beginning of a code or of a city's name";
                return Err(problem(400, detail.to_owned()));
            }
        };
        let mut rows = Rows::new(["type", "codes"].into_iter().chain(PLACE));
        rows.rows.extend(found.into_iter().map(|suggestion| {
            let (kind, codes, at) = match suggestion {
                Suggestion::Code(place) => ("code", 1, place),
                Suggestion::City { place, places, .. } => ("city", places, place),
            };
            let mut row = vec![Cell::Text(kind), Cell::Count(codes as u64)];
            row.extend(place(&at));
            row
        }));
        Ok(rows)
    }
}

/// The states of a country. Places without a state are in one without a name.
fn named<'a>(table: &'a PostalTable, country: &Country) -> impl Iterator<Item = Region<'a>> {
    table.regions(country).filter(|region| !(region.code.is_empty() && region.name.is_empty()))
}
