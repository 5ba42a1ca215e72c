//! Suggests names and codes for a text that is typed. Ranks them, but does not format them.

use std::collections::BinaryHeap;

use super::clean::begun_part;
use super::fold;
use super::image::ImageSection;
use super::table::{City, Country, PostalPlace, PostalTable, Region};

/// A longer text in bytes gets no suggestions: no city with its state has such a name, and each city that begins like the text would cost
/// as much as the text is long.
const LONGEST_TYPED: usize = 512;

/// One suggestion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Suggestion<'a> {
    /// A code, with its first place.
    Code(PostalPlace<'a>),
    /// A city, with its first place and the number of its places.
    City {
        /// The city.
        city: City<'a>,
        /// Its state.
        region: Region<'a>,
        /// The first of its places.
        place: PostalPlace<'a>,
        /// How many places it has.
        places: usize,
    },
}

/// The rank of a city. The larger value is better.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SearchRank {
    /// The text is the whole name.
    is_name: bool,
    /// The text is the beginning of the name, not of a later word.
    is_beginning: bool,
    /// A city with many codes is searched more often.
    places: u32,
    /// Then the shorter name, then the order of the alphabet.
    shorter: std::cmp::Reverse<usize>,
    name: std::cmp::Reverse<String>,
    city: std::cmp::Reverse<u32>,
}

impl PostalTable {
    /// Codes that begin with this text, each with its first place. If the data has only a part of the codes: the code with this part of the text.
    pub fn codes_like(
        &self,
        country: &Country,
        prefix: &str,
        state: Option<&Region<'_>>,
        most: usize,
    ) -> Vec<PostalPlace<'_>> {
        let mut places = self.prefix(country, prefix);
        if places.is_empty()
            && let Some(part) = begun_part(country.code, prefix)
        {
            places = self.code(country, &part);
        }
        // Compares numbers: there may be a million codes of other states before the first one of this state.
        let in_state = |at: &u32| state.is_none_or(|state| self.region_number(*at) == state.id);
        let mut found: Vec<PostalPlace<'_>> = Vec::new();
        for place in self.numbers(&places).filter(in_state).map(|at| self.place(at)) {
            if found.last().is_some_and(|last| last.code == place.code) {
                continue;
            }
            if found.len() == most {
                break;
            }
            found.push(place);
        }
        found
    }

    /// Suggestions for a text with a digit: codes that begin with it, or else cities. For a text without one: cities, or else codes, because
    /// those of Malta are letters. A state may follow the city (`portland or`, `Portland, Oregon`).
    pub fn suggest(
        &self,
        country: &Country,
        text: &str,
        state: Option<&Region<'_>>,
        most: usize,
    ) -> Vec<Suggestion<'_>> {
        let others = fold::without_apostrophes(text);
        let texts = std::iter::once(text).chain(others.iter().flatten().map(String::as_str));
        let mut found = texts.map(|text| self.suggest_for(country, text, state, most));
        found.find(|found| !found.is_empty()).unwrap_or_else(|| {
            // Every code begins with a text without letters.
            let has_letters = text.len() <= LONGEST_TYPED && fold::code_letters(text).next().is_some();
            let places = has_letters.then(|| self.codes_like(country, text, state, most));
            places.into_iter().flatten().map(Suggestion::Code).collect()
        })
    }

    fn suggest_for(
        &self,
        country: &Country,
        text: &str,
        state: Option<&Region<'_>>,
        most: usize,
    ) -> Vec<Suggestion<'_>> {
        if text.len() > LONGEST_TYPED {
            return Vec::new();
        }
        if text.bytes().any(|byte| byte.is_ascii_digit()) {
            let places = self.codes_like(country, text, state, most);
            // Some cities have a number in their name: `Paris 01`.
            if !places.is_empty() {
                return places.into_iter().map(Suggestion::Code).collect();
            }
        }
        let in_state = |at| state.is_none_or(|state| state.id == at);
        if let Some((city, region)) = text.split_once(',') {
            let asked = fold::name(region);
            let wanted = |at| in_state(at) && self.is_called(at, &asked);
            return self.cities_like(country, &fold::name(city), wanted, most);
        }
        let folded = fold::name(text);
        // A character may stand for a whole sentence, such as U+FDFA, and each of its words may begin a state.
        if folded.len() > LONGEST_TYPED {
            return Vec::new();
        }
        let found = self.cities_like(country, &typed(text, folded.clone()), in_state, most);
        if !found.is_empty() || state.is_some() {
            return found;
        }
        // The last words may be a state.
        for (space, _) in folded.rmatch_indices(' ') {
            let asked = fold::name(&folded[space..]);
            let found = self.cities_like(country, &folded[..space], |at| self.is_called(at, &asked), most);
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// Whether this folded text is the state's code, or the beginning of its name.
    fn is_called(&self, region: u32, asked: &str) -> bool {
        let [_, code, name, ..]: [u32; 7] = self.image.record(ImageSection::Regions, region);
        self.image.text(code).eq_ignore_ascii_case(asked)
            || fold::name(self.image.text(name)).starts_with(asked)
    }

    fn cities_like(
        &self,
        country: &Country,
        typed: &str,
        wanted: impl Fn(u32) -> bool,
        most: usize,
    ) -> Vec<Suggestion<'_>> {
        if typed.trim().is_empty() || most == 0 {
            return Vec::new();
        }
        let mut best = BinaryHeap::new();
        // `st` may be the beginning of Stamford or an abbreviation of Saint (Paul).
        let written_out =
            (typed == "st" || typed.ends_with(" st")).then(|| format!("{}saint", &typed[..typed.len() - 2]));
        let respelled = fold::respelled(typed);
        // What begins with a longer form is collected with the shorter one.
        let others = respelled.iter().map(String::as_str).filter(|other| !other.starts_with(typed));
        for typed in std::iter::once(typed).chain(written_out.as_deref()).chain(others) {
            self.collect(country, typed, &wanted, most, &mut best);
        }
        let mut seen = Vec::new();
        let ranked = best
            .into_sorted_vec()
            .into_iter()
            .map(|std::cmp::Reverse(rank): std::cmp::Reverse<SearchRank>| rank.city.0);
        for city in ranked {
            if !seen.contains(&city) {
                seen.push(city);
            }
        }
        seen.into_iter().take(most).map(|city| self.suggestion(city)).collect()
    }

    fn collect(
        &self,
        country: &Country,
        typed: &str,
        wanted: &impl Fn(u32) -> bool,
        most: usize,
        best: &mut BinaryHeap<std::cmp::Reverse<SearchRank>>,
    ) {
        let first = self.first(country.words.clone(), |at| self.word(at).2 < typed);
        for at in first..country.words.end {
            let (city_at, start, rest) = self.word(at);
            if !rest.starts_with(typed) {
                break;
            }
            let city = self.city_at(city_at);
            if !wanted(city.region) {
                continue;
            }
            let rank = SearchRank {
                is_name: start == 0 && rest == typed,
                is_beginning: start == 0,
                places: self.in_city(&city).len() as u32,
                shorter: std::cmp::Reverse(city.key.len()),
                name: std::cmp::Reverse(city.key.to_owned()),
                city: std::cmp::Reverse(city_at),
            };
            best.push(std::cmp::Reverse(rank));
            // A city may be in the list once for each of its words.
            if best.len() > most * 4 {
                best.pop();
            }
        }
    }

    /// The number of a city, the offset of the word in its name, and the name from there on.
    fn word(&self, at: u32) -> (u32, u32, &str) {
        let [city, start] = self.image.record(ImageSection::Words, at);
        (city, start, self.city_at(city).key.get(start as usize..).unwrap_or_default())
    }

    fn suggestion(&self, city: u32) -> Suggestion<'_> {
        let city = self.city_at(city);
        let places = self.in_city(&city);
        let place = self.place(self.numbers(&places).next().unwrap_or_default());
        Suggestion::City { city, region: self.region_of(&city), place, places: places.len() }
    }
}

/// The folded text, with a space at its end if the last typed word is complete.
fn typed(text: &str, mut folded: String) -> String {
    let ends = text.ends_with(|c: char| c.is_whitespace());
    // An abbreviation stands for the long word only when it is complete.
    for (short, long) in [("st", "saint"), ("ste", "sainte")] {
        let is_short = text.to_lowercase().split([' ', '-']).next_back() == Some(short);
        if is_short && folded.ends_with(long) {
            folded.truncate(folded.len() - long.len());
            folded.push_str(short);
        }
    }
    if ends && !folded.is_empty() {
        folded.push(' ');
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::super::open::PostalFile;
    use super::*;
    use crate::map::Mapping;

    #[test]
    fn a_code_of_letters_is_suggested_if_no_city_begins_like_it() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("MT.txt");
        let row = |code: &str, city: &str| format!("MT\t{code}\t{city}\t\t\t\t\t\t\t35.9\t14.5\t1\n");
        std::fs::write(&text, row("VLT", "Valletta") + &row("VCT", "Victoria")).unwrap();
        let postal = PostalFile::open(&[text], Mapping::InPlace).unwrap();
        let (table, malta) = postal.country("mt").unwrap();
        for (typed, code, is_city) in
            [("VLT", "VLT", false), ("vl", "VLT", false), ("VCT 1", "VCT", false), ("va", "VLT", true)]
        {
            let found = table.suggest(malta, typed, None, 10);
            let [Suggestion::Code(place) | Suggestion::City { place, .. }] = found[..] else {
                panic!("{typed}: {found:?}")
            };
            assert_eq!(place.code, code, "{typed}");
            assert_eq!(matches!(found[0], Suggestion::City { .. }), is_city, "{typed}");
        }
        for nothing in ["", " ", "...", "\0", "zzz"] {
            assert!(table.suggest(malta, nothing, None, 10).is_empty(), "{nothing:?}");
        }
    }
}
