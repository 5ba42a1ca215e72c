//! Builds a pack from rows: names are stored once, and all records are sorted for lookups. Knows no files.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::clean::{Cleaned, clean};
use super::fold;
use super::image::{Image, ImageError, ImageSection, records};
use super::row::Row;
use super::shape::Shapes;
use super::tree::{self, Node};

type CodeMap<K, V> = HashMap<K, V, FixedState>;

/// The value for missing coordinates.
pub const NOWHERE: u32 = i32::MIN as u32;
const ZIP_CODES: u32 = 100_000;

/// Texts, each stored once. The number of a text is its offset.
#[derive(Default)]
struct Strings {
    bytes: Vec<u8>,
    known: CodeMap<Box<str>, u32>,
}

impl Strings {
    fn keep(&mut self, text: &str) -> u32 {
        if let Some(at) = self.known.get(text) {
            return *at;
        }
        // A pack of more than 4 GiB is refused later, so a wrong number does no harm here.
        let at = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
        self.known.insert(text.into(), at);
        at
    }

    fn text(&self, at: u32) -> &str {
        std::str::from_utf8(self.bytes_of(at)).unwrap_or_default()
    }

    /// The bytes of a text. They have the order of the texts, and a sort need not check each time that they are UTF-8.
    fn bytes_of(&self, at: u32) -> &[u8] {
        let at = at as usize;
        let length = usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]));
        &self.bytes[at + 2..at + 2 + length]
    }
}

/// A row during the build. Its texts are numbers.
#[derive(Clone, Copy)]
struct Draft {
    country: u32,
    code: u32,
    key: u32,
    city: u32,
    city_key: u32,
    region: u32,
    county: u32,
    lat: u32,
    lng: u32,
    accuracy: u32,
    is_military: bool,
}

#[derive(Clone, Copy)]
struct RegionDraft {
    country: u32,
    code: u32,
    name: u32,
}

/// Collects rows.
#[derive(Default)]
pub struct Builder {
    strings: Strings,
    /// Folding a name costs more than looking it up in this map.
    folded: CodeMap<u32, u32>,
    rows: Vec<Draft>,
    regions: Vec<RegionDraft>,
    region_of: CodeMap<(u32, u32), u32>,
    counties: Vec<[u32; 3]>,
    county_of: CodeMap<(u32, u32, u32), u32>,
}

impl Builder {
    /// Adds a row that was cleaned.
    pub fn add(&mut self, row: Row<'_>) {
        let Cleaned { row, city, state_code, state, county, is_military } = clean(row);
        let country = u32::from(u16::from_be_bytes(row.country));
        let region = self.region(country, state_code, state);
        let county = self.county(region, county, row.county_code);
        let city = self.strings.keep(&city);
        let city_key = *self.folded.entry(city).or_insert_with(|| {
            let folded = fold::name(self.strings.text(city));
            self.strings.keep(&folded)
        });
        let (lat, lng) = row
            .point
            .map_or((NOWHERE, NOWHERE), |point| (point.lat.steps() as u32, point.lng.steps() as u32));
        let code = self.strings.keep(row.code);
        let key = self.strings.keep(&fold::code(row.code));
        let accuracy = u32::from(row.accuracy);
        self.rows.push(Draft {
            country,
            code,
            key,
            city,
            city_key,
            region,
            county,
            lat,
            lng,
            accuracy,
            is_military,
        });
    }

    fn region(&mut self, country: u32, code: &str, name: &str) -> u32 {
        let (code_at, name_at) = (self.strings.keep(code), self.strings.keep(name));
        // The divisions of some countries have no codes.
        let key = if code.is_empty() { name_at } else { code_at };
        *self.region_of.entry((country, key)).or_insert_with(|| {
            self.regions.push(RegionDraft { country, code: code_at, name: name_at });
            self.regions.len() as u32 - 1
        })
    }

    fn county(&mut self, region: u32, name: &str, code: &str) -> u32 {
        let (name_at, code) = (self.strings.keep(name), self.strings.keep(code));
        *self.county_of.entry((region, name_at, code)).or_insert_with(|| {
            self.counties.push([name_at, self.strings.keep(&fold::county(name)), code]);
            self.counties.len() as u32 - 1
        })
    }

    /// Makes the pack. `made` is the date of the data, in seconds since 1970.
    pub fn finish(mut self, made: u64) -> Result<Image, ImageError> {
        self.order_rows();
        self.order_regions();
        let (cities, of_cities) = self.cities();
        let (regions, of_regions) = self.region_records(&cities);
        let words = self.words(&cities, &regions);
        let points = self.points();
        let countries = self.countries(&regions, &words, &points);
        let places = records(self.rows.iter().map(|row| {
            [row.country | row.accuracy << 16, row.code, row.city, row.region, row.county, row.lat, row.lng]
        }));
        let mut sections: [Vec<u8>; 11] = Default::default();
        let mut put = |section: ImageSection, bytes| sections[section as usize] = bytes;
        put(ImageSection::Countries, records(countries));
        put(ImageSection::Regions, records(regions));
        put(ImageSection::Counties, records(std::mem::take(&mut self.counties)));
        put(ImageSection::Cities, records(cities));
        put(ImageSection::Places, places);
        put(ImageSection::OfRegions, records(of_regions));
        put(ImageSection::OfCities, records(of_cities));
        put(ImageSection::Words, records(words.into_iter().map(|(_, word)| word)));
        put(ImageSection::Points, records(points.into_iter().map(|(_, node)| node.words())));
        put(ImageSection::Direct, self.direct());
        put(ImageSection::Strings, self.strings.bytes);
        Image::make(made, sections)
    }

    /// Sorts the regions that have places, by country and code.
    fn order_regions(&mut self) {
        let strings = &self.strings;
        let mut is_used = vec![false; self.regions.len()];
        self.rows.iter().for_each(|row| is_used[row.region as usize] = true);
        let all = 0..self.regions.len() as u32;
        let mut order: Vec<u32> = all.filter(|region| is_used[*region as usize]).collect();
        order.sort_by_key(|at| {
            let region = &self.regions[*at as usize];
            (region.country, strings.text(region.code), strings.text(region.name))
        });
        let mut place_of = vec![0; self.regions.len()];
        order.iter().enumerate().for_each(|(place, was)| place_of[*was as usize] = place as u32);
        self.rows.iter_mut().for_each(|row| row.region = place_of[row.region as usize]);
        self.regions = order.iter().map(|was| self.regions[*was as usize]).collect();
    }

    /// Sorts the rows by country and code. The places of a code keep their order, but a military post comes after the
    /// place with the same code.
    fn order_rows(&mut self) {
        let strings = &self.strings;
        self.rows.sort_by(|a, b| {
            let by_code = || strings.bytes_of(a.key).cmp(strings.bytes_of(b.key));
            a.country.cmp(&b.country).then_with(by_code).then(a.is_military.cmp(&b.is_military))
        });
        // A military post is removed if a place has its code. A duplicate is removed too.
        let (mut code, mut seen) = (None, Vec::new());
        self.rows.retain(|row| {
            if code != Some((row.country, row.key)) {
                code = Some((row.country, row.key));
                seen.clear();
            }
            let place = (row.city, row.region, row.county, row.is_military);
            let yields =
                seen.iter().any(|kept: &(_, _, _, bool)| *kept == place || (row.is_military && !kept.3));
            seen.push(place);
            !yields
        });
    }

    /// The cities by state and folded name, and the places of each.
    fn cities(&self) -> (Vec<[u32; 5]>, Vec<[u32; 1]>) {
        let mut order: Vec<u32> = (0..self.rows.len() as u32).collect();
        let row = |at: u32| &self.rows[at as usize];
        order.sort_by(|a, b| {
            let (a, b) = (row(*a), row(*b));
            let by_name = || self.strings.bytes_of(a.city_key).cmp(self.strings.bytes_of(b.city_key));
            a.region.cmp(&b.region).then_with(by_name)
        });
        let mut cities: Vec<[u32; 5]> = Vec::new();
        for (at, place) in order.iter().enumerate() {
            let row = row(*place);
            match cities.last_mut() {
                Some([region, _, key, _, count]) if (*region, *key) == (row.region, row.city_key) => {
                    *count += 1
                }
                _ => cities.push([row.region, row.city, row.city_key, at as u32, 1]),
            }
        }
        (cities, order.into_iter().map(|place| [place]).collect())
    }

    /// The regions with their cities and places, and the places of each.
    fn region_records(&self, cities: &[[u32; 5]]) -> (Vec<[u32; 7]>, Vec<[u32; 1]>) {
        let mut order: Vec<u32> = (0..self.rows.len() as u32).collect();
        order.sort_by_key(|at| self.rows[*at as usize].region);
        let drafts = self.regions.iter().map(|draft| [draft.country, draft.code, draft.name, 0, 0, 0, 0]);
        let mut regions: Vec<[u32; 7]> = drafts.collect();
        for (at, city) in cities.iter().enumerate() {
            extend(&mut regions[city[0] as usize][3..5], at as u32);
        }
        for (at, place) in order.iter().enumerate() {
            extend(&mut regions[self.rows[*place as usize].region as usize][5..7], at as u32);
        }
        (regions, order.into_iter().map(|place| [place]).collect())
    }

    /// Every word of every city's name, by country and by the rest of the name from that word on.
    fn words(&self, cities: &[[u32; 5]], regions: &[[u32; 7]]) -> Vec<(u32, [u32; 2])> {
        let mut words = Vec::with_capacity(cities.len() * 3 / 2);
        for (at, [region, _, key, _, _]) in cities.iter().enumerate() {
            let (country, name) = (regions[*region as usize][0], self.strings.text(*key));
            let starts = std::iter::once(0).chain(name.match_indices(' ').map(|(space, _)| space + 1));
            words.extend(starts.map(|start| (country, [at as u32, start as u32])));
        }
        let rest =
            |[city, start]: [u32; 2]| &self.strings.bytes_of(cities[city as usize][2])[start as usize..];
        words.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| rest(a.1).cmp(rest(b.1))));
        words
    }

    /// The points of each country. Each run is a tree.
    fn points(&self) -> Vec<(u32, Node)> {
        let mut points: Vec<(u32, Node)> = Vec::with_capacity(self.rows.len());
        for (country, first, count) in runs(self.rows.iter().map(|row| row.country)) {
            let rows = self.rows.iter().enumerate().skip(first).take(count);
            let node = |(at, row): (usize, &Draft)| {
                let point = super::table::point(row.lat, row.lng)?;
                Some(Node { at: point.vector(), place: at as u32 })
            };
            let mut nodes: Vec<Node> = rows.filter_map(node).collect();
            tree::plant(&mut nodes);
            points.extend(nodes.into_iter().map(|node| (country, node)));
        }
        points
    }

    fn countries(
        &mut self,
        regions: &[[u32; 7]],
        words: &[(u32, [u32; 2])],
        points: &[(u32, Node)],
    ) -> Vec<[u32; 11]> {
        let mut countries: CodeMap<u32, [u32; 11]> = CodeMap::default();
        let mut order = Vec::new();
        for (country, first, count) in runs(self.rows.iter().map(|row| row.country)) {
            let rows = &self.rows[first..first + count];
            let codes = rows.chunk_by(|a, b| a.key == b.key);
            let shapes = Shapes::of(codes.clone().map(|rows| self.strings.text(rows[0].code)));
            let shapes = self.strings.keep(&shapes.to_string());
            let codes = self.rows[first..first + count].chunk_by(|a, b| a.key == b.key).count() as u32;
            countries.insert(country, [country, first as u32, count as u32, 0, 0, 0, 0, 0, 0, codes, shapes]);
            order.push(country);
        }
        let mut note = |country: u32, column: usize, first: usize, count: usize| {
            if let Some(record) = countries.get_mut(&country) {
                (record[column], record[column + 1]) = (first as u32, count as u32);
            }
        };
        runs(regions.iter().map(|region| region[0]))
            .for_each(|(country, at, count)| note(country, 3, at, count));
        runs(words.iter().map(|word| word.0)).for_each(|(country, at, count)| note(country, 5, at, count));
        runs(points.iter().map(|point| point.0)).for_each(|(country, at, count)| note(country, 7, at, count));
        order.into_iter().filter_map(|country| countries.remove(&country)).collect()
    }

    /// The US codes, by number.
    fn direct(&self) -> Vec<u8> {
        let us = u32::from(u16::from_be_bytes(*b"US"));
        if !self.rows.iter().any(|row| row.country == us) {
            return Vec::new();
        }
        let mut direct = vec![[0_u32]; ZIP_CODES as usize];
        // In reverse order, so that the first place of each code remains.
        for (at, row) in self.rows.iter().enumerate().rev().filter(|(_, row)| row.country == us) {
            if let Some(code) = super::table::zip_code(self.strings.text(row.key)) {
                direct[code as usize] = [at as u32 + 1];
            }
        }
        records(direct)
    }
}

/// Adds the next record to a run `[first, count]`.
fn extend(run: &mut [u32], at: u32) {
    if run[1] == 0 {
        run[0] = at;
    }
    run[1] += 1;
}

/// Runs of equal values, each with its start and its length.
fn runs(values: impl Iterator<Item = u32>) -> impl Iterator<Item = (u32, usize, usize)> {
    let mut values = values.enumerate().peekable();
    std::iter::from_fn(move || {
        let (first, value) = values.next()?;
        let mut count = 1;
        while values.next_if(|(_, next)| *next == value).is_some() {
            count += 1;
        }
        Some((value, first, count))
    })
}
