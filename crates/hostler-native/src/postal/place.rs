//! Questions about one code, or about a few in a path. Knows no batches.

use hostler_lookup::postal::{Country, PostalPlace, PostalTable, Region};
use hostler_wire::Whole;

use super::dataset::{PostalAnswer, PostalDataset, no_state};
use super::form::Number;
use super::rows::{Cell, PLACE, Rows, place};
use crate::problem::{problem, repeated};
use crate::query::QueryString;

/// The most codes in a path.
const MOST_CODES: usize = 100;

impl PostalDataset {
    /// A code with its places, or else a state with its codes.
    pub(super) fn code_or_state<'a>(
        &'a self,
        (table, country): (&'a PostalTable, &'a Country),
        text: &str,
        query: &QueryString,
        link: &mut Option<String>,
    ) -> PostalAnswer<'a> {
        let places = self.data().code(table, country, text);
        if !places.is_empty() {
            return Ok((Rows::places(places), Number::One));
        }
        match table.region(country, text) {
            Some(region) => Ok((self.state((table, country), &region, query, link)?, Number::Many)),
            None => Err(unknown(country, text)),
        }
    }

    /// The first place of a code.
    pub(super) fn first_place<'a>(
        &'a self,
        (table, country): (&'a PostalTable, &'a Country),
        code: &str,
    ) -> Result<PostalPlace<'a>, Whole> {
        self.data().code(table, country, code).into_iter().next().ok_or_else(|| unknown(country, code))
    }

    /// Several codes, and for each whether it exists.
    pub(super) fn several<'a>(
        &'a self,
        found: (&'a PostalTable, &'a Country),
        codes: &str,
    ) -> Result<Rows<'a>, Whole> {
        let codes: Vec<&str> = codes.split(',').map(str::trim).filter(|code| !code.is_empty()).collect();
        if codes.len() > MOST_CODES {
            return Err(problem(
                400,
                format_args!("at most {MOST_CODES} codes in one path; POST /postal/batch takes more"),
            ));
        }
        let mut rows = Self::asked_rows();
        rows.rows.extend(codes.into_iter().map(|code| self.asked(code, Some(found), code)));
        Ok(rows)
    }

    /// The columns of responses to several questions.
    pub(super) fn asked_rows<'a>() -> Rows<'a> {
        Rows::new(["query", "status", "error"].into_iter().chain(PLACE))
    }

    /// The result of one of several questions.
    pub(super) fn asked<'a>(
        &'a self,
        query: &str,
        country: Option<(&'a PostalTable, &'a Country)>,
        code: &str,
    ) -> Vec<Cell<'a>> {
        let found = country.map(|(table, country)| self.data().code(table, country, code));
        let (status, error) = match &found {
            None => (404, Some("the data has no codes of this country")),
            Some(found) if found.is_empty() => (404, Some("there is no such code")),
            Some(_) => (200, None),
        };
        let mut row =
            vec![Cell::Owned(query.to_owned()), Cell::Count(status), error.map_or(Cell::Unknown, Cell::Text)];
        match found.into_iter().flatten().next() {
            Some(at) => row.extend(place(&at)),
            None => row.extend(PLACE.map(|_| Cell::Unknown)),
        }
        row
    }

    /// Any code of a country.
    pub(super) fn random<'a>(&'a self, (table, country): (&'a PostalTable, &'a Country)) -> Rows<'a> {
        Rows::places(table.random(country, fastrand::u32(..)))
    }

    /// The codes of a city, or of its part in a county.
    pub(super) fn city<'a>(
        &'a self,
        (table, country): (&'a PostalTable, &'a Country),
        state: &str,
        city: &str,
        county: Option<&str>,
    ) -> Result<Rows<'a>, Whole> {
        let region: Region<'_> = table.region(country, state).ok_or_else(|| no_state(country, state))?;
        let found = table.city(&region, city).ok_or_else(|| {
            problem(404, format_args!("there is no city {} in {}", repeated(city.as_bytes()), region.name))
        })?;
        let mut places = table.in_city(&found);
        if let Some(county) = county {
            places = table.in_county(&places, county);
            if places.is_empty() {
                let county = repeated(county.as_bytes());
                return Err(problem(404, format_args!("there is no {} in a county {county}", found.name)));
            }
        }
        Ok(Rows::places(table.each(&places)))
    }
}

fn unknown(country: &Country, code: &str) -> Whole {
    let code = repeated(code.as_bytes());
    problem(404, format_args!("there is neither a code nor a state {code} in {}", country.as_str()))
}
