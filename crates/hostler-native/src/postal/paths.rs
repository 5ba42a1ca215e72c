//! The paths of the service, other than those of the original one. Knows no files.

use std::sync::Arc;

use bytes::Bytes;
use hostler_wire::Whole;

use super::batch::PostalBatch;
use super::dataset::{KEPT, NOT_KEPT, PostalAnswer, PostalDataset, PostalReply};
use super::form::{self, Number};
use super::rows::Rows;
use crate::LookupRequest;
use crate::form::AnswerFormat;
use crate::problem::{self, problem};
use crate::query::QueryString;

/// The list of paths, for requests to an unknown one.
pub(super) const PATHS: &str = "for example use /postal/{country}/{code}; /openapi.json lists all paths, /postal/countries all countries";
/// A function that answers a request with a body.
type Poster = for<'a> fn(&'a PostalDataset, &PostalBatch, &QueryString) -> Result<Rows<'a>, Whole>;

impl PostalDataset {
    /// The response to a path after `/postal/`.
    pub fn ask(&self, request: &LookupRequest<'_>, path: &str) -> Result<Whole, Whole> {
        let (rest, suffix) = AnswerFormat::split(path.as_bytes());
        let path = &path[..rest.len()];
        let parts: Vec<&str> = path.split('/').collect();
        let posted: Option<Poster> = match *parts {
            ["batch"] => Some(Self::batch),
            ["validate"] => Some(Self::validate),
            ["match-close"] => Some(Self::match_close),
            _ => None,
        };
        let methods: &[&str] = if posted.is_some() { &["POST"] } else { &["GET", "HEAD"] };
        if let Some(refused) = problem::method(request.head.method(), methods) {
            return Err(refused);
        }
        let query = QueryString::of(request.head.target()).map_err(|detail| problem(400, detail))?;
        let named = AnswerFormat::said(&query).map_err(|detail| problem(400, detail))?;
        let chosen = suffix.or(named);
        let form = chosen.unwrap_or_else(|| AnswerFormat::liked(&request.head.fields));
        let told = |kept| PostalReply { kind: form.content_type(), kept, varies: chosen.is_none() };
        if let Some(answer) = posted {
            let batch = PostalBatch::read(request, &query)?;
            let body = written(&answer(self, &batch, &query)?, Number::Many, &query, form)?;
            return Ok(self.tell(request, &told(NOT_KEPT), body));
        }
        let mut link = None;
        let (rows, number) = self.rows(&parts, &query, &mut link)?;
        let kept = if parts.last() == Some(&"random") { NOT_KEPT } else { KEPT };
        let mut whole = self.tell(request, &told(kept), written(&rows, number, &query, form)?);
        if let Some(link) = link {
            Arc::make_mut(&mut whole.head).fields.add(b"Link", link.as_bytes());
        }
        Ok(whole)
    }

    /// The result for a path. Sets `link` if a list has more pages.
    fn rows(&self, parts: &[&str], query: &QueryString, link: &mut Option<String>) -> PostalAnswer<'_> {
        let many = |rows| (rows, Number::Many);
        match *parts {
            ["" | "countries"] => Ok(many(self.countries())),
            ["near"] => self.near_point(query).map(many),
            [country] => Ok(many(self.states(self.country(country)?))),
            [country, "search"] => self.search(self.country(country)?, query).map(many),
            [country, "random"] => Ok((self.random(self.country(country)?), Number::One)),
            [country, codes] if codes.contains(',') => self.several(self.country(country)?, codes).map(many),
            [country, code_or_state] => {
                self.code_or_state(self.country(country)?, code_or_state, query, link)
            }
            [country, code, "nearest"] => self.nearest_to(self.country(country)?, code, query).map(many),
            [_, _, "distance"] => {
                Err(problem(400, "name the other codes: /distance/{code}, or several separated by commas"))
            }
            [country, from, "distance", to] => {
                self.distances(self.country(country)?, from, to, query).map(many)
            }
            [country, state, city] => self.city(self.country(country)?, state, city, None).map(many),
            [country, state, city, county] => {
                self.city(self.country(country)?, state, city, Some(county)).map(many)
            }
            _ => Err(problem(404, PATHS)),
        }
    }
}

fn written(rows: &Rows<'_>, number: Number, query: &QueryString, form: AnswerFormat) -> Result<Bytes, Whole> {
    let wanted = rows.wanted(query.list("fields")).map_err(|detail| problem(400, detail))?;
    Ok(form::write(rows, &wanted, number, form).into())
}
