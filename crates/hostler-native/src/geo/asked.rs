//! What a request asks for: fields, languages and format. Knows no data.

use hostler_wire::{Fields, by_weight};

use super::facts::Field;
use crate::form::AnswerFormat;
use crate::problem::repeated;
use crate::query::QueryString;

/// The most languages that are used.
const MOST_LANGUAGES: usize = 16;

/// How a request wants the facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FactRequest {
    pub fields: Vec<Field>,
    /// The preferred language first.
    pub languages: Vec<String>,
    pub form: AnswerFormat,
}

impl FactRequest {
    /// Reads the request from its target and fields. `suffix` is the format that its path names. The error is a sentence
    /// for the client.
    pub fn of(target: &[u8], head: &Fields, suffix: Option<AnswerFormat>) -> Result<Self, String> {
        let query = QueryString::of(target)?;
        let mut fields = Vec::new();
        for name in query.list("fields") {
            fields.extend(named(name)?);
        }
        if fields.is_empty() {
            fields = Field::ALL.to_vec();
        }
        // In the service's order, not the request's, so that the fields of a table stay together.
        let fields = Field::ALL.iter().copied().filter(|field| fields.contains(field)).collect();
        let chosen = suffix.or(AnswerFormat::said(&query)?);
        let said = query.get("lang").map(|_| query.list("lang").map(str::to_owned).take(MOST_LANGUAGES));
        Ok(Self {
            fields,
            languages: said.map_or_else(|| languages_of(head), Iterator::collect),
            form: chosen.unwrap_or_else(|| AnswerFormat::liked(head)),
        })
    }

    pub fn languages(&self) -> Vec<&str> {
        self.languages.iter().map(String::as_str).collect()
    }
}

fn named(name: &str) -> Result<Vec<Field>, String> {
    let fields: Vec<Field> = Field::named(name).collect();
    if !fields.is_empty() {
        return Ok(fields);
    }
    let known: Vec<_> = Field::ALL.iter().map(|field| field.name()).collect();
    Err(format!("fields: there is no {}; there are {}", repeated(name.as_bytes()), known.join(", ")))
}

fn languages_of(head: &Fields) -> Vec<String> {
    let tags = by_weight(head, "accept-language").filter(|tag| *tag != b"*");
    tags.filter_map(|tag| String::from_utf8(tag.to_vec()).ok()).take(MOST_LANGUAGES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str, lines: &[(&str, &str)]) -> Result<FactRequest, String> {
        let mut head = Fields::default();
        lines.iter().for_each(|(name, value)| head.add(name.as_bytes(), value.as_bytes()));
        FactRequest::of(format!("/?{query}").as_bytes(), &head, None)
    }

    #[test]
    fn fields_are_asked_for_by_name_and_tables_as_a_whole() {
        let fields = |query| asked(query, &[]).unwrap().fields;
        assert_eq!(fields("fields=country.code,city"), [Field::City, Field::CountryCode]);
        assert_eq!(fields("fields=region%2Ccity"), [Field::City, Field::RegionCode, Field::RegionName]);
        assert_eq!(fields("fields=city&fields=ip,,"), [Field::Ip, Field::City]);
        assert_eq!(fields("fields="), Field::ALL);
        assert_eq!(fields("x=y&&lang"), Field::ALL);
        assert!(
            asked("fields=cit", &[]).unwrap_err().starts_with("fields: there is no \"cit\"; there are ip, ")
        );
        assert!(asked("fields=%00", &[]).unwrap_err().contains("\\0"));
        assert!(asked("fields=%ff", &[]).unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn languages_come_from_the_query_or_else_from_the_browser() {
        let accept = [("Accept-Language", "fr;q=0.5, de-AT, *;q=0.1, en;q=0.8, xx;q=0")];
        assert_eq!(asked("", &accept).unwrap().languages, ["de-AT", "en", "fr"]);
        assert_eq!(asked("lang=ja,en", &accept).unwrap().languages, ["ja", "en"]);
        assert_eq!(asked("", &[("Accept-Language", &"a,".repeat(5000))]).unwrap().languages.len(), 16);
    }

    #[test]
    fn the_format_is_named_or_negotiated() {
        let accept = [("Accept", "text/csv")];
        assert_eq!(asked("", &accept).unwrap().form, AnswerFormat::Csv);
        assert_eq!(asked("format=xml", &accept).unwrap().form, AnswerFormat::Xml);
        let suffix = FactRequest::of(b"/?format=xml", &Fields::default(), Some(AnswerFormat::Text));
        assert_eq!(suffix.unwrap().form, AnswerFormat::Text);
        assert!(asked("format=exe", &accept).unwrap_err().starts_with("format: \"exe\" is not one of"));
    }
}
