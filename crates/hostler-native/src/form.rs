//! The formats of responses, and the choice of one for a request. Knows no data.

use hostler_wire::{Fields, by_weight};

use super::problem::repeated;
use super::query::QueryString;

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerFormat {
    Json,
    /// One JSON object per line.
    Lines,
    Csv,
    GeoJson,
    Xml,
    /// One name and value per line.
    Text,
}

impl AnswerFormat {
    const NAMES: [(&'static str, Self); 6] = [
        ("json", Self::Json),
        ("ndjson", Self::Lines),
        ("csv", Self::Csv),
        ("geojson", Self::GeoJson),
        ("xml", Self::Xml),
        ("txt", Self::Text),
    ];

    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Lines => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
            Self::GeoJson => "application/geo+json",
            Self::Xml => "application/xml; charset=utf-8",
            Self::Text => "text/plain; charset=utf-8",
        }
    }

    /// Splits a path from the ending that names a format.
    pub fn split(path: &[u8]) -> (&[u8], Option<Self>) {
        let found = Self::NAMES.iter().find_map(|(name, form)| {
            let rest = path.strip_suffix(name.as_bytes())?.strip_suffix(b".")?;
            Some((rest, Some(*form)))
        });
        found.unwrap_or((path, None))
    }

    /// The format in the parameter `format`. The error is a sentence for the client.
    pub fn said(query: &QueryString) -> Result<Option<Self>, String> {
        let Some(name) = query.get("format") else { return Ok(None) };
        let found = Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, form)| Some(*form));
        found.ok_or_else(|| {
            let known = Self::NAMES.map(|(name, _)| name).join(", ");
            format!("format: {} is not one of {known}", repeated(name.as_bytes()))
        })
    }

    /// The format that `Accept` prefers, or JSON if it names none of them. A browser's `Accept` prefers XML for
    /// historical reasons, so it does not count there.
    pub fn liked(head: &Fields) -> Self {
        let liked: Vec<&[u8]> = by_weight(head, "accept").collect();
        let takes_page = liked.iter().any(|media| media.eq_ignore_ascii_case(b"text/html"));
        let mut forms = liked.into_iter().filter_map(Self::of_type);
        forms.find(|form| !takes_page || *form != Self::Xml).unwrap_or(Self::Json)
    }

    fn of_type(media: &[u8]) -> Option<Self> {
        match media.to_ascii_lowercase().as_slice() {
            b"application/json" | b"application/*" | b"*/*" => Some(Self::Json),
            b"application/x-ndjson" | b"application/ndjson" | b"application/jsonl" => Some(Self::Lines),
            b"text/csv" => Some(Self::Csv),
            b"application/geo+json" => Some(Self::GeoJson),
            b"application/xml" | b"text/xml" => Some(Self::Xml),
            b"text/plain" | b"text/*" => Some(Self::Text),
            _ => None,
        }
    }
}

/// A cell of CSV (RFC 4180).
pub fn csv_cell(text: &str) -> String {
    match text.contains(['"', ',', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// A text in XML. Characters that XML does not allow are left out.
pub fn xml_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars().filter(|character| !is_unspeakable(*character)) {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
    out
}

fn is_unspeakable(character: char) -> bool {
    character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}')
}

/// A name and its value on one line. Control characters in the value become spaces.
pub fn text_line(name: &str, value: &str) -> String {
    let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{name}: {value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_chosen_by_path_query_or_accept() {
        assert_eq!(AnswerFormat::split(b"97209.csv"), (&b"97209"[..], Some(AnswerFormat::Csv)));
        assert_eq!(AnswerFormat::split(b"/8.8.8.8.txt"), (&b"/8.8.8.8"[..], Some(AnswerFormat::Text)));
        assert_eq!(AnswerFormat::split(b"St. Paul"), (&b"St. Paul"[..], None));
        let said = |query: &str| AnswerFormat::said(&QueryString::of(query.as_bytes()).unwrap());
        assert_eq!((said("/?format=xml"), said("/?x")), (Ok(Some(AnswerFormat::Xml)), Ok(None)));
        assert!(said("/?format=exe").unwrap_err().starts_with("format: \"exe\" is not one of json, "));
    }

    #[test]
    fn the_preferred_type_of_accept_wins_and_browsers_get_json() {
        for (accept, form) in [
            ("", AnswerFormat::Json),
            ("*/*", AnswerFormat::Json),
            ("text/csv", AnswerFormat::Csv),
            ("text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8", AnswerFormat::Json),
            ("text/html, application/geo+json;q=0.5", AnswerFormat::GeoJson),
            ("application/xml", AnswerFormat::Xml),
            ("text/plain;q=0.1, application/json", AnswerFormat::Json),
            ("text/csv;q=nonsense", AnswerFormat::Csv),
            ("text/*", AnswerFormat::Text),
            ("image/png", AnswerFormat::Json),
            ("text/csv;q=0, */*;q=0", AnswerFormat::Json),
        ] {
            let mut fields = Fields::default();
            fields.add(b"Accept", accept.as_bytes());
            assert_eq!(AnswerFormat::liked(&fields), form, "{accept}");
        }
    }

    #[test]
    fn no_text_escapes_its_field() {
        let odd = "a\"b,<c>&\r\n\u{0}\u{ffff}";
        assert_eq!(csv_cell(odd), "\"a\"\"b,<c>&\r\n\u{0}\u{ffff}\"");
        assert_eq!(xml_text(odd), "a\"b,&lt;c&gt;&amp;");
        assert_eq!(text_line("x", odd), "x: a\"b,<c>&   \u{ffff}\n");
    }
}
