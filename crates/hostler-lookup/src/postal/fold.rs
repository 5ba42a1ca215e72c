//! The forms in which names and codes are compared: without case, accents and variants of spelling. Knows no data.

use icu_normalizer::DecomposingNormalizerBorrowed;

const APOSTROPHES: [char; 3] = ['\'', '\u{2019}', '\u{2bc}'];

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

/// A name with spaces in place of its apostrophes: the US postal service writes `O Fallon`. `None` if it has no apostrophe.
pub fn parted(text: &str) -> Option<String> {
    text.contains(APOSTROPHES).then(|| text.replace(APOSTROPHES, " "))
}

/// A folded name with `mc` joined to the next word, and with `mc` as a word of its own: the US postal service writes `Mcallen` and `Mc Lean`.
pub fn scottish(folded: &str) -> [String; 2] {
    let joined = format!(" {folded}").replace(" mc ", " mc");
    let split = joined.replace(" mc", " mc ");
    [joined, split].map(|form| form[1..].to_owned())
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
    fn a_scottish_or_irish_name_has_other_forms() {
        assert_eq!(scottish("mclean"), ["mclean", "mc lean"]);
        assert_eq!(scottish("fort mc coy"), ["fort mccoy", "fort mc coy"]);
        assert_eq!(scottish("tomcat"), ["tomcat", "tomcat"]);
        assert_eq!(parted("O\u{2019}Fallon").as_deref(), Some("O Fallon"));
        assert_eq!(parted("Portland"), None);
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
