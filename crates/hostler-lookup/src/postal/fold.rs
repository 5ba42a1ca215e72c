//! The forms in which names and codes are compared: without case, accents and variants of spelling. Knows no data.

use icu_normalizer::DecomposingNormalizerBorrowed;

const APOSTROPHES: [char; 5] = ['\'', '\u{2018}', '\u{2019}', '\u{2bb}', '\u{2bc}'];
/// The okina of Hawaiian names, and the quotation mark that people write for it. [`name`] does not remove them, so that the keys of packs stay.
pub const OKINAS: [char; 2] = ['\u{2018}', '\u{2bb}'];

/// Words that are also joined to the next word.
const PREFIXES: [&str; 5] = ["de", "du", "la", "le", "mc"];
/// A text of such words only must not cost a search for each of them.
const MOST_JOINED: usize = 4;
/// `mt` may also be Montana, so it stands for a word only if another word follows it.
const ABBREVIATIONS: [(&str, &str); 2] = [(" ft ", " fort "), (" mt ", " mount ")];

/// The folded form of a name: lower case, no accents, one space between words, `St.` written out.
pub fn name(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in words(text).split(' ').filter(|word| !word.is_empty()) {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(match word {
            "st" => "saint",
            "ste" => "sainte",
            word => word,
        });
    }
    folded
}

/// A name without its okinas, and with spaces in place of its apostrophes: the US postal service writes `Kaneohe` and `O Fallon`. `None` if
/// it has none.
pub fn without_apostrophes(text: &str) -> [Option<String>; 2] {
    let plain = text.contains(OKINAS).then(|| text.replace(OKINAS, ""));
    let parted = text.contains(APOSTROPHES).then(|| text.replace(APOSTROPHES, " "));
    [plain, parted]
}

/// Other spellings of a folded name: the US postal service writes `Mc Lean`, `Mcallen`, `Du Bois`, `Desoto`, `Fort Worth` and `Mt Zion`.
pub fn respelled(folded: &str) -> Vec<String> {
    let mut long = format!(" {folded}");
    let mut short = long.clone();
    for (abbreviation, word) in ABBREVIATIONS {
        long = long.replace(abbreviation, word);
        short = short.replace(word, abbreviation);
    }
    let joined = long.match_indices(' ').filter_map(|(space, _)| {
        let (before, rest) = long.split_at(space + 1);
        let prefix = PREFIXES.iter().find(|prefix| rest.starts_with(**prefix))?;
        let (prefix, rest) = rest.split_at(prefix.len());
        Some(match rest.strip_prefix(' ') {
            Some(next) => format!("{before}{prefix}{next}"),
            None => format!("{before}{prefix} {rest}"),
        })
    });
    let forms = [long.clone(), short].into_iter().chain(joined.take(MOST_JOINED));
    forms.map(|form| form[1..].to_owned()).filter(|form| form != folded).collect()
}

/// The folded form of a county, without words and suffixes that differ between sources: `Multnomah County`, `Fairfax
/// (city)`, `Aleutians West (CA)`.
pub fn county(text: &str) -> String {
    const KINDS: [&str; 14] = [
        "county",
        "parish",
        "borough",
        "census",
        "area",
        "municipality",
        "municipio",
        "city",
        "ca",
        "and",
        "of",
        "planning",
        "region",
        "regional",
    ];
    let folded = name(text);
    let kept: String = folded.split(' ').filter(|word| !KINDS.contains(word)).collect();
    // The name of a county may consist of such a word only.
    if kept.is_empty() { folded } else { kept }
}

/// A postal code without the spaces and hyphens that people leave out.
pub fn code(text: &str) -> String {
    code_letters(text).collect()
}

/// The letters of [`code`], without an allocation, for comparisons.
pub fn code_letters(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_uppercase)
}

/// Lower case without accents. Apostrophes and dots are removed; everything else between words becomes a space.
fn words(text: &str) -> String {
    if text.is_ascii() {
        let kept = text.bytes().filter(|byte| !matches!(byte, b'\'' | b'.'));
        return kept
            .map(|byte| if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b' ' } as char)
            .collect();
    }
    let mut folded = String::with_capacity(text.len());
    for c in DecomposingNormalizerBorrowed::new_nfkd().normalize(text).chars().flat_map(char::to_lowercase) {
        match c {
            '\'' | '.' | '\u{2019}' | '\u{2bc}' => {}
            // The accents, separated from their letters.
            '\u{300}'..='\u{36f}' => {}
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'þ' => folded.push_str("th"),
            'ø' => folded.push('o'),
            'đ' | 'ð' => folded.push('d'),
            'ł' => folded.push('l'),
            'ı' => folded.push('i'),
            c if c.is_alphanumeric() => folded.push(c),
            _ => folded.push(' '),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_any_case_and_accents() {
        for text in ["Saint Paul", "ST. PAUL", "st  paul", "Saint-Paul"] {
            assert_eq!(name(text), "saint paul");
        }
        assert_eq!(name("Doña Ana"), "dona ana");
        assert_eq!(name("Straße"), "strasse");
        assert_eq!(name("Łódź"), "lodz");
        assert_eq!(name("Coeur d'Alene"), name("COEUR D’ALENE"));
        assert_eq!(name(" 東京 "), "東京");
        assert_eq!(name("..."), "");
    }

    #[test]
    fn a_name_has_other_spellings() {
        assert_eq!(respelled("mclean"), ["mc lean"]);
        assert_eq!(respelled("ft mc coy"), ["fort mc coy", "fort mccoy"]);
        assert_eq!(respelled("mount zion"), ["mt zion"]);
        assert_eq!(respelled("billings mt"), [""; 0]);
        assert_eq!(respelled("tomcat"), [""; 0]);
        assert_eq!(respelled(&"de ".repeat(100)).len(), MOST_JOINED);
        assert_eq!(without_apostrophes("O\u{2019}Fallon"), [None, Some("O Fallon".to_owned())]);
        assert_eq!(without_apostrophes("K\u{101}ne\u{2bb}ohe")[0].as_deref(), Some("K\u{101}neohe"));
        assert_eq!(without_apostrophes("Portland"), [None, None]);
    }

    #[test]
    fn a_county_is_found_with_or_without_its_suffix() {
        assert_eq!(county("Multnomah"), county("MULTNOMAH COUNTY"));
        assert_eq!(county("Fairfax (city)"), county("Fairfax City"));
        assert_eq!(county("Aleutians West (CA)"), county("Aleutians West Census Area"));
        assert_eq!(county("St. Louis (city)"), county("Saint Louis"));
        assert_eq!(county("City and County of San Francisco"), county("San Francisco County"));
        assert_eq!(county("Colonial Heights (city"), county("Colonial Heights"));
        assert_eq!(county("Parish"), "parish");
    }

    #[test]
    fn a_code_is_found_with_and_without_its_space() {
        assert_eq!(code("sw1a 1aa"), "SW1A1AA");
        assert_eq!(code("00-950"), "00950");
        assert_eq!(code("\0%"), "");
    }
}
