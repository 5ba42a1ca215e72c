//! Tests of the policy, by the sections of its RFCs: short notations of messages, and the expected decisions.

mod against;
mod asking;
mod keys;
mod lasting;
mod properties;
mod reusing;
mod selecting;
mod storing;
mod validating;

use super::*;
use crate::{Forward, Head, Moment};

/// 2026-11-22 00:00:00 GMT: the arrival of every response here, unless a test says otherwise.
const NOW: Moment = Moment(1_795_305_600_000);
const NOW_AS_DATE: &str = "Sun, 22 Nov 2026 00:00:00 GMT";

/// A head in a short notation: `name: value | name: value`.
#[derive(Debug, Clone, Default)]
struct Lines(Vec<(String, Vec<u8>)>);

impl Lines {
    fn of(text: &str) -> Self {
        let lines = text.split('|').filter(|line| !line.trim().is_empty());
        let line = |line: &str| {
            let (name, value) = line.split_once(':').expect("a line is a name and a value");
            (name.trim().to_ascii_lowercase(), value.trim().replace("NOW", NOW_AS_DATE).into_bytes())
        };
        Self(lines.map(line).collect())
    }
}

impl Head for Lines {
    fn lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]>
    where
        Self: 'a,
    {
        let lines = self.0.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| &**value)
    }
}

fn later(seconds: i64) -> Moment {
    Moment(NOW.0.saturating_add_signed(seconds * 1000))
}

fn heeding() -> CachingRules {
    CachingRules { obeys_requests: true, ..CachingRules::default() }
}

fn request_directives(request: &str) -> RequestDirectives {
    RequestDirectives::of(&heeding(), b"GET", &Lines::of(request))
}

/// The freshness of a response to a plain GET that came at once.
fn freshness(rules: &CachingRules, status: u16, answer: &str) -> Result<Freshness, NotStored> {
    Freshness::of(rules, &request_directives(""), status, &Lines::of(answer), NOW, NOW)
}

fn stored(answer: &str) -> Freshness {
    freshness(&CachingRules::default(), 200, answer)
        .unwrap_or_else(|why| panic!("{answer}: not stored: {why:?}"))
}
