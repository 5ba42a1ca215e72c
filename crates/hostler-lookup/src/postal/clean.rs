//! Corrects known errors in GeoNames' rows before they are stored. Knows one row at a time.

use std::borrow::Cow;

use super::fold;
use super::row::Row;

/// A corrected row.
#[derive(Debug, Clone, PartialEq)]
pub struct Cleaned<'a> {
    /// The row as it is in the file, except for the country.
    pub row: Row<'a>,
    /// The name of the place.
    pub city: Cow<'a, str>,
    /// The code of the state.
    pub state_code: &'a str,
    /// The name of the state.
    pub state: &'a str,
    /// The name of the county.
    pub county: &'a str,
    /// The row is a military post. A place may have the same code.
    pub is_military: bool,
}

/// The armed forces use these codes in place of states.
const FORCES: [(&str, &str); 3] =
    [("AA", "Armed Forces Americas"), ("AE", "Armed Forces Europe"), ("AP", "Armed Forces Pacific")];

/// GeoNames treats these as countries, the US postal service as states.
const TERRITORIES: [(&str, &str); 8] = [
    ("AS", "American Samoa"),
    ("FM", "Micronesia"),
    ("GU", "Guam"),
    ("MH", "Marshall Islands"),
    ("MP", "Northern Mariana Islands"),
    ("PR", "Puerto Rico"),
    ("PW", "Palau"),
    ("VI", "Virgin Islands"),
];

/// Connecticut's counties, and the planning regions that share towns with them and have replaced them since 2022.
const CONNECTICUT: [(&str, &[&str]); 10] = [
    ("fairfield", &["connecticutmetropolitan", "westernconnecticut", "naugatuckvalley"]),
    ("hartford", &["capitol", "naugatuckvalley", "northwesthills"]),
    ("litchfield", &["northwesthills", "westernconnecticut", "naugatuckvalley"]),
    ("middlesex", &["lowerconnecticutrivervalley"]),
    ("newhaven", &["southcentral", "naugatuckvalley"]),
    ("newlondon", &["southeasternconnecticut", "lowerconnecticutrivervalley", "northeasternconnecticut"]),
    ("tolland", &["capitol", "northeasternconnecticut"]),
    ("windham", &["northeasternconnecticut", "southeasternconnecticut"]),
    // The Census Bureau has other names for two regions.
    ("greaterbridgeport", &["connecticutmetropolitan"]),
    ("southcentralconnecticut", &["southcentral"]),
];

/// Corrects a row.
pub fn clean(row: Row<'_>) -> Cleaned<'_> {
    let mut cleaned = Cleaned {
        city: Cow::Borrowed(row.place),
        state_code: row.state_code,
        state: row.state,
        county: row.county,
        is_military: false,
        row,
    };
    if let Some((code, name)) = territory(cleaned.row.country) {
        cleaned.join_states(code, name);
    }
    if cleaned.row.country == *b"US" {
        cleaned.part_military();
        if let Cow::Owned(city) = scottish(&cleaned.city) {
            cleaned.city = Cow::Owned(city);
        }
    }
    cleaned
}

impl Cleaned<'_> {
    fn join_states(&mut self, code: &'static str, name: &'static str) {
        self.row.country = *b"US";
        // If the territory itself is not a division, its first division has the place of a county.
        if self.county.is_empty() && self.state != name {
            self.county = self.state;
        }
        (self.state_code, self.state) = (code, name);
    }

    /// `APO AE` becomes the city `APO` in the state `AE`, as the postal service has it.
    fn part_military(&mut self) {
        let Some((city @ ("APO" | "FPO" | "DPO"), force)) = self.row.place.split_once(' ') else { return };
        self.is_military = self.state_code.is_empty();
        if let Some((code, name)) = FORCES.iter().find(|(code, _)| self.is_military && *code == force) {
            (self.city, self.state_code, self.state) = (Cow::Borrowed(city), code, name);
        }
    }
}

/// The territory's code and name as a state, if the country is a territory of the US.
pub fn territory(country: [u8; 2]) -> Option<(&'static str, &'static str)> {
    TERRITORIES.iter().copied().find(|(code, _)| code.as_bytes() == country)
}

/// `Mckinleyville` becomes McKinleyville.
fn scottish(city: &str) -> Cow<'_, str> {
    let is_scottish = |word: &str| word.len() > 4 && word.starts_with("Mc") && word != "Mcbh";
    if !city.split(' ').any(is_scottish) {
        return Cow::Borrowed(city);
    }
    let words = city.split(' ').map(|word| match is_scottish(word) {
        true => word.char_indices().map(|(at, c)| if at == 2 { c.to_ascii_uppercase() } else { c }).collect(),
        false => word.to_owned(),
    });
    Cow::Owned(words.collect::<Vec<String>>().join(" "))
}

/// Whether two counties of a state are the same, or share towns since Connecticut has no counties any more. Both names
/// must be folded.
pub fn is_county(asked: &str, is: &str, state: &str) -> bool {
    let shares = |old: &str, new: &str| {
        CONNECTICUT.iter().any(|(county, regions)| *county == old && regions.contains(&new))
    };
    asked == is || (state == "CT" && (shares(asked, is) || shares(is, asked)))
}

/// The part of a whole code that GeoNames has, for countries of which it has only this part, because the rest is not licensed. `None` if the
/// text has not the form of a whole code.
pub fn known_part(country: [u8; 2], code: &str) -> Option<String> {
    let code = fold::code(code);
    let form = forms(country).iter().find(|form| form.len() == code.len() && begins(&code, form))?;
    Some(part(&code, form))
}

/// The same for a code of which more than this part is typed, but perhaps not all.
pub fn begun_part(country: [u8; 2], typed: &str) -> Option<String> {
    let code = fold::code(typed);
    let has_part = |form: &str| form.rfind('.').is_some_and(|last| last + 1 < code.len());
    let form = forms(country).iter().find(|form| has_part(form) && begins(&code, form))?;
    Some(part(&code, form))
}

/// The forms of whole codes. A dot is a character of the known part, `0` a digit, `A` a letter, `*` one of both.
fn forms(country: [u8; 2]) -> &'static [&'static str] {
    match &country {
        b"AR" => &["A....AAA"],
        b"CA" => &["...0A0"],
        b"GB" | b"GG" | b"IM" | b"JE" => &["..0AA", "...0AA", "....0AA"],
        b"IE" => &["...****"],
        b"MT" => &["...0000"],
        b"NL" => &["....AA"],
        b"US" => &[".....0000"],
        _ => &[],
    }
}

fn begins(code: &str, form: &str) -> bool {
    let fits = |(byte, form): (u8, u8)| match form {
        b'0' => byte.is_ascii_digit(),
        b'A' => byte.is_ascii_alphabetic(),
        _ => byte.is_ascii_alphanumeric(),
    };
    code.len() <= form.len() && code.bytes().zip(form.bytes()).all(fits)
}

fn part(code: &str, form: &str) -> String {
    let known = code.chars().zip(form.chars()).filter(|(_, form)| *form == '.');
    known.map(|(letter, _)| letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(
        country: &[u8; 2],
        place: &'static str,
        state: &'static str,
        state_code: &'static str,
    ) -> Row<'static> {
        Row {
            country: *country,
            code: "1",
            place,
            state,
            state_code,
            county: "",
            county_code: "",
            point: None,
            accuracy: 0,
        }
    }

    #[test]
    fn a_military_post_takes_its_state_from_its_name() {
        let cleaned = clean(row(b"US", "APO AE", "", ""));
        assert_eq!((&*cleaned.city, cleaned.state_code, cleaned.state), ("APO", "AE", "Armed Forces Europe"));
        assert!(cleaned.is_military && cleaned.county.is_empty());
        let odd = clean(row(b"US", "APO STA", "", ""));
        assert_eq!((&*odd.city, odd.state_code), ("APO STA", ""));
    }

    #[test]
    fn a_scottish_name_gets_its_second_capital_back() {
        for (raw, right) in [
            ("Mcnary", "McNary"),
            ("Mckinleyville", "McKinleyville"),
            ("West Mclean", "West McLean"),
            ("Mccutcheon Field", "McCutcheon Field"),
            ("Mcbh Kaneohe Bay", "Mcbh Kaneohe Bay"),
            ("Jbphh", "Jbphh"),
            ("Mack", "Mack"),
        ] {
            assert_eq!(clean(row(b"US", raw, "", "OR")).city, right);
        }
        assert_eq!(clean(row(b"DE", "Mchausen", "", "")).city, "Mchausen");
    }

    #[test]
    fn a_territory_is_a_state() {
        let cleaned = clean(row(b"PR", "Adjuntas", "Adjuntas", "001"));
        assert_eq!(cleaned.row.country, *b"US");
        assert_eq!((cleaned.state_code, cleaned.state, cleaned.county), ("PR", "Puerto Rico", "Adjuntas"));
    }

    #[test]
    fn a_county_of_connecticut_matches_its_planning_region() {
        let same = |asked: &str, is: &str, state| is_county(&fold::county(asked), &fold::county(is), state);
        assert!(same("Hartford County", "Capitol Region", "CT"));
        assert!(same("Capitol Planning Region", "Capitol Region", "CT"));
        assert!(same("Western Connecticut", "Fairfield", "CT"));
        assert!(same("South Central Connecticut Planning Region", "South Central Regional", "CT"));
        assert!(!same("Hartford", "Western Connecticut", "CT"));
        assert!(!same("Hartford", "Capitol", "NY"));
    }

    #[test]
    fn a_full_code_is_cut_to_the_known_prefix() {
        assert_eq!(known_part(*b"GB", "SW1A 1AA").as_deref(), Some("SW1A"));
        assert_eq!(known_part(*b"CA", "k1a 0b1").as_deref(), Some("K1A"));
        assert_eq!(known_part(*b"NL", "1012 ab").as_deref(), Some("1012"));
        assert_eq!(known_part(*b"NL", "1012"), None);
        assert_eq!(known_part(*b"US", "97209-1234").as_deref(), Some("97209"));
        assert_eq!(known_part(*b"US", "97209"), None);
        assert_eq!(known_part(*b"IE", "d6w af30").as_deref(), Some("D6W"));
        assert_eq!(known_part(*b"MT", "VLT 1117").as_deref(), Some("VLT"));
        assert_eq!(known_part(*b"AR", "c1425cla").as_deref(), Some("1425"));
        assert_eq!(known_part(*b"JE", "JE2 3AB").as_deref(), Some("JE2"));
        for (typed, part) in
            [("SW1A 1A", Some("SW1A")), ("w1a1", Some("W1A")), ("E1 6", Some("E1")), ("SW", None)]
        {
            assert_eq!(begun_part(*b"GB", typed).as_deref(), part, "{typed}");
        }
        for (country, odd) in [
            (b"AR", "14250CLA"),
            (b"CA", "K1A 0B1 9"),
            (b"CA", "K1A nowhere"),
            (b"CA", "K1A 0"),
            (b"GB", "SW1A AA1"),
            (b"GB", "SW1AX 1AA"),
            (b"GB", "1AA"),
            (b"IE", "D02 AF3"),
            (b"MT", "VLT X117"),
            (b"NL", "1012 99"),
            (b"US", "97209-ABCD"),
            (b"US", "\u{e9}\u{e9}\u{e9}\u{e9}1"),
        ] {
            assert_eq!(known_part(*country, odd), None, "{odd}");
        }
    }
}
