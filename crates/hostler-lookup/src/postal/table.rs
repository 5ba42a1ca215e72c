//! The content of a pack: countries, states, cities and places, and how to find them. Knows no files and no formats.

use std::ops::Range;

use super::clean::{is_county, known_part};
use super::degrees::{Degrees, Point};
use super::fold;
use super::image::{Image, ImageSection};
use super::shape::Shapes;

/// The places of a pack.
pub struct PostalTable {
    pub(super) image: Image,
    /// The pack has the section of five-digit US codes, the most used one. Stored here because every lookup needs it.
    has_direct: bool,
}

/// A country in a pack.
#[derive(Debug, Clone)]
pub struct Country {
    /// The ISO 3166 code, two capital letters.
    pub code: [u8; 2],
    /// How many postal codes it has.
    pub codes: u32,
    pub(super) places: Range<u32>,
    pub(super) regions: Range<u32>,
    pub(super) words: Range<u32>,
    pub(super) points: Range<u32>,
    shapes: u32,
}

/// A state, or the first division of another country.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region<'a> {
    /// Its number.
    pub(super) id: u32,
    /// Its code. Empty if it has none.
    pub code: &'a str,
    /// Its name. Empty for places without a state.
    pub name: &'a str,
    cities: (u32, u32),
    list: (u32, u32),
}

/// A city: a name within a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct City<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its folded name.
    pub(super) key: &'a str,
    pub(super) region: u32,
    list: (u32, u32),
}

/// One postal code at one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PostalPlace<'a> {
    /// The ISO 3166 code of the country, two capital letters.
    pub country: [u8; 2],
    /// The postal code.
    pub code: &'a str,
    /// The city. Empty if the data has none.
    pub city: &'a str,
    /// The state's code. Empty if there is none.
    pub state: &'a str,
    /// The state's name. Empty if there is none.
    pub state_name: &'a str,
    /// The county. Empty if there is none.
    pub county: &'a str,
    /// The county's code. Empty if there is none.
    pub county_code: &'a str,
    /// The coordinates, if they are known.
    pub point: Option<Point>,
    /// The accuracy of the coordinates: 1 (estimated) to 6 (centroid), 0 if the data has none.
    pub accuracy: u8,
}

impl Country {
    /// How many places it has. Some codes have several.
    pub fn places_count(&self) -> u32 {
        self.places.len() as u32
    }

    /// The code as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.code).unwrap_or_default()
    }
}

impl PostalPlace<'_> {
    /// The country's code as text.
    pub fn country(&self) -> &str {
        std::str::from_utf8(&self.country).unwrap_or_default()
    }
}

/// A set of places, by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Places {
    /// A range of places.
    Run(Range<u32>),
    /// A range of the lists of a section.
    Listed(Range<u32>, Listing),
    /// Single places.
    Picked(Vec<u32>),
}

/// The section with the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// The places of each state.
    Regions,
    /// The places of each city.
    Cities,
}

impl Places {
    /// The number of places.
    pub fn len(&self) -> usize {
        match self {
            Self::Run(run) | Self::Listed(run, _) => run.len(),
            Self::Picked(picked) => picked.len(),
        }
    }

    /// Whether there is no place.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl PostalTable {
    /// The table in a pack.
    pub fn new(image: Image) -> Self {
        let has_direct = image.count::<1>(ImageSection::Direct) > 0;
        Self { image, has_direct }
    }

    /// The pack.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// The number of places.
    pub fn len(&self) -> u32 {
        self.image.count::<7>(ImageSection::Places)
    }

    /// Whether there is no place.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All countries, by code.
    pub fn countries(&self) -> impl Iterator<Item = Country> + '_ {
        let image = &self.image;
        let (regions_end, words_end) =
            (image.count::<7>(ImageSection::Regions), image.count::<2>(ImageSection::Words));
        let points_end = image.count::<4>(ImageSection::Points);
        (0..image.count::<11>(ImageSection::Countries)).map(move |at| {
            let [code, place, places, region, regions, word, words, point, points, codes, shapes] =
                self.image.record(ImageSection::Countries, at);
            Country {
                code: (code as u16).to_be_bytes(),
                codes,
                places: run(place, places, self.len()),
                regions: run(region, regions, regions_end),
                words: run(word, words, words_end),
                points: run(point, points, points_end),
                shapes,
            }
        })
    }

    /// The shapes of a country's codes.
    pub fn shapes(&self, country: &Country) -> Shapes {
        Shapes::read(self.image.text(country.shapes))
    }

    /// Whether a text has the form of a code, or of a whole code of which the data has only the first part.
    pub fn fits(&self, country: &Country, code: &str) -> bool {
        let shapes = self.shapes(country);
        shapes.fit(code) || known_part(country.code, code).is_some_and(|part| shapes.fit(&part))
    }

    /// The place with this number.
    pub fn place(&self, at: u32) -> PostalPlace<'_> {
        let [packed, code, city, region, county, lat, lng] = self.image.record(ImageSection::Places, at);
        let [_, state, state_name, ..]: [u32; 7] = self.image.record(ImageSection::Regions, region);
        let [county, _, county_code] = self.image.record(ImageSection::Counties, county);
        PostalPlace {
            country: (packed as u16).to_be_bytes(),
            code: self.image.text(code),
            city: self.image.text(city),
            state: self.image.text(state),
            state_name: self.image.text(state_name),
            county: self.image.text(county),
            county_code: self.image.text(county_code),
            point: point(lat, lng),
            accuracy: (packed >> 16) as u8,
        }
    }

    /// The number of a place's state.
    pub(super) fn region_number(&self, at: u32) -> u32 {
        let [_, _, _, region, ..]: [u32; 7] = self.image.record(ImageSection::Places, at);
        region
    }

    /// A place of a country. `number` selects it.
    pub fn random(&self, country: &Country, number: u32) -> Option<PostalPlace<'_>> {
        let places = country.places.len() as u32;
        (places > 0).then(|| self.place(country.places.start + number % places))
    }

    /// The places of a set, in their order.
    pub fn each<'a, 'p>(&'a self, places: &'p Places) -> impl Iterator<Item = PostalPlace<'a>> + use<'a, 'p> {
        self.numbers(places).map(|at| self.place(at))
    }

    /// The numbers of a set.
    pub fn numbers<'a, 'p>(&'a self, places: &'p Places) -> impl Iterator<Item = u32> + use<'a, 'p> {
        (0..places.len()).map(|at| match places {
            Places::Run(run) => run.start + at as u32,
            Places::Listed(run, listing) => self.listed(*listing, run.start + at as u32),
            Places::Picked(picked) => picked[at],
        })
    }

    fn listed(&self, listing: Listing, at: u32) -> u32 {
        let section = match listing {
            Listing::Regions => ImageSection::OfRegions,
            Listing::Cities => ImageSection::OfCities,
        };
        let [place] = self.image.record(section, at);
        place
    }

    /// The first place of a five-digit US code. Needs two reads.
    pub fn zip(&self, code: u32) -> Option<u32> {
        let [place] = self.image.record(ImageSection::Direct, code);
        place.checked_sub(1)
    }

    /// The places of a code. Most codes have one.
    pub fn code(&self, country: &Country, code: &str) -> Places {
        let key = fold::code(code);
        if key.is_empty() {
            return Places::Picked(Vec::new());
        }
        let first = match zip_code(&key) {
            Some(zip) if self.has_direct && country.code == *b"US" => match self.zip(zip) {
                Some(place) => place,
                None => return Places::Picked(Vec::new()),
            },
            _ => self.first(country.places.clone(), |at| self.key(at).lt(key.chars())),
        };
        let rest = first..country.places.end;
        Places::Run(first..first + rest.take_while(|at| self.key(*at).eq(key.chars())).count() as u32)
    }

    /// The places whose codes begin with this text, by code.
    pub fn prefix(&self, country: &Country, prefix: &str) -> Places {
        let key = fold::code(prefix);
        let first = self.first(country.places.clone(), |at| self.key(at).lt(key.chars()));
        let letters = key.chars().count();
        let begins = |at| self.key(at).take(letters).eq(key.chars());
        Places::Run(first..self.first(first..country.places.end, begins))
    }

    /// The folded code of a place.
    fn key(&self, at: u32) -> impl Iterator<Item = char> {
        let [_, code, ..]: [u32; 7] = self.image.record(ImageSection::Places, at);
        fold::code_letters(self.image.text(code))
    }

    /// The states of a country, by code.
    pub fn regions<'a>(&'a self, country: &Country) -> impl Iterator<Item = Region<'a>> + use<'a> {
        country.regions.clone().map(|at| self.region_at(at))
    }

    fn region_at(&self, at: u32) -> Region<'_> {
        let [_, code, name, city, cities, first, count] = self.image.record(ImageSection::Regions, at);
        let (code, name) = (self.image.text(code), self.image.text(name));
        Region { id: at, code, name, cities: (city, cities), list: (first, count) }
    }

    /// A state by its code or its name, in any case.
    pub fn region(&self, country: &Country, text: &str) -> Option<Region<'_>> {
        let by_code =
            self.regions(country).find(|region| !text.is_empty() && region.code.eq_ignore_ascii_case(text));
        by_code.or_else(|| {
            let named = |folded: &str| self.regions(country).find(|region| fold::name(region.name) == folded);
            let texts = [fold::name(text), fold::name(&text.replace(fold::OKINAS, ""))];
            texts.iter().map(String::as_str).filter(|folded| !folded.is_empty()).find_map(named)
        })
    }

    /// The places of a state, by code.
    pub fn in_region(&self, region: &Region<'_>) -> Places {
        Places::Listed(run(region.list.0, region.list.1, self.len()), Listing::Regions)
    }

    /// The number of cities in a state.
    pub fn cities_in(&self, region: &Region<'_>) -> u32 {
        region.cities.1
    }

    /// A city of a state, by name.
    pub fn city(&self, region: &Region<'_>, name: &str) -> Option<City<'_>> {
        let folded = fold::name(name);
        self.city_of_key(region, &folded).or_else(|| {
            let others = fold::without_apostrophes(name).into_iter().flatten().map(|name| fold::name(&name));
            std::iter::once(folded).chain(others).find_map(|name| {
                // With a space at its end, so that an abbreviation may be its last word.
                let forms = fold::respelled(&format!("{name} "));
                std::iter::once(&name)
                    .chain(&forms)
                    .find_map(|form| self.city_of_key(region, form.trim_end()))
            })
        })
    }

    fn city_of_key(&self, region: &Region<'_>, key: &str) -> Option<City<'_>> {
        let cities = run(region.cities.0, region.cities.1, self.image.count::<5>(ImageSection::Cities));
        let at = self.first(cities.clone(), |at| self.city_at(at).key < key);
        Some(at).filter(|at| cities.contains(at)).map(|at| self.city_at(at)).filter(|city| city.key == key)
    }

    pub(super) fn city_at(&self, at: u32) -> City<'_> {
        let [region, name, key, first, count] = self.image.record(ImageSection::Cities, at);
        City { name: self.image.text(name), key: self.image.text(key), region, list: (first, count) }
    }

    /// The state of a city.
    pub fn region_of(&self, city: &City<'_>) -> Region<'_> {
        self.region_at(city.region)
    }

    /// The places of a city, by code.
    pub fn in_city(&self, city: &City<'_>) -> Places {
        Places::Listed(run(city.list.0, city.list.1, self.len()), Listing::Cities)
    }

    /// The places of a set that are in a county: the county with exactly this name if there is one, or else those with
    /// this name and any kind (`Fairfax County`, `Fairfax city`).
    pub fn in_county(&self, places: &Places, county: &str) -> Places {
        let exactly = |at: &u32| self.place(*at).county.eq_ignore_ascii_case(county);
        let picked: Vec<u32> = self.numbers(places).filter(exactly).collect();
        if !picked.is_empty() {
            return Places::Picked(picked);
        }
        let asked = fold::county(&county.replace(fold::OKINAS, ""));
        let alike = |at: &u32| {
            let place = self.place(*at);
            !place.county.is_empty() && is_county(&asked, self.county_key(*at), place.state)
        };
        Places::Picked(self.numbers(places).filter(alike).collect())
    }

    fn county_key(&self, at: u32) -> &str {
        let [_, _, _, _, county, ..]: [u32; 7] = self.image.record(ImageSection::Places, at);
        let [_, key, _] = self.image.record(ImageSection::Counties, county);
        self.image.text(key)
    }

    /// The first number of a range for which `holds` is false. It must be true for all numbers before.
    pub(super) fn first(&self, run: Range<u32>, holds: impl Fn(u32) -> bool) -> u32 {
        let (mut low, mut high) = (run.start, run.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// Five digits as a number.
pub fn zip_code(code: &str) -> Option<u32> {
    let is_zip = code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_digit());
    code.parse().ok().filter(|_| is_zip)
}

pub(super) fn point(lat: u32, lng: u32) -> Option<Point> {
    // The value for missing coordinates is not an angle.
    Some(Point { lat: Degrees::from_steps(lat as i32)?, lng: Degrees::from_steps(lng as i32)? })
}

/// A range from its first number and its length, cut at `end`: a pack with a correct checksum may still contain wrong
/// numbers.
fn run(first: u32, count: u32, end: u32) -> Range<u32> {
    first.min(end)..first.saturating_add(count).min(end)
}
