//! What a request wants to know, in which languages and in which form. Knows no data.

use std::borrow::Cow;

use hostler_wire::Fields;
use percent_encoding::percent_decode;

use super::facts::Field;
use super::render::Form;
use crate::native::accept::by_weight;

/// More languages than anybody reads.
const MOST_LANGUAGES: usize = 16;

/// How facts are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub fields: Vec<Field>,
    /// The best first.
    pub languages: Vec<String>,
    pub form: Form,
}

impl Asked {
    /// Out of the query and the fields of a request; `suffix` is the form that its path has named. What it says wrong is told.
    pub fn of(query: &[u8], head: &Fields, suffix: Option<Form>) -> Result<Self, String> {
        let (mut fields, mut languages) = (Vec::new(), None);
        for (name, value) in pairs(query) {
            let value = value.map_err(|_| "the query is not UTF-8, percent-encoded".to_owned())?;
            match &*name {
                b"fields" => fields.extend(named(&value)?),
                b"lang" => languages = Some(split(&value).map(str::to_owned).take(MOST_LANGUAGES).collect()),
                _ => {}
            }
        }
        if fields.is_empty() {
            fields = Field::ALL.to_vec();
        }
        // In their order, whatever the order in which they were asked for: tables stay together.
        let fields = Field::ALL.iter().copied().filter(|field| fields.contains(field)).collect();
        Ok(Self {
            fields,
            languages: languages.unwrap_or_else(|| languages_of(head)),
            form: suffix.unwrap_or_else(|| form_of(head)),
        })
    }

    pub fn languages(&self) -> Vec<&str> {
        self.languages.iter().map(String::as_str).collect()
    }
}

fn named(list: &str) -> Result<Vec<Field>, String> {
    let mut fields = Vec::new();
    for name in split(list) {
        let before = fields.len();
        fields.extend(Field::named(name));
        if fields.len() == before {
            let known: Vec<_> = Field::ALL.iter().map(|field| field.name()).collect();
            let name = super::super::problem::repeated(name.as_bytes());
            return Err(format!("fields: there is no {name}; there are {}", known.join(", ")));
        }
    }
    Ok(fields)
}

fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}

type Pair<'a> = (Cow<'a, [u8]>, Result<String, std::string::FromUtf8Error>);

/// The parameters of a query, as a form writes them.
fn pairs(query: &[u8]) -> impl Iterator<Item = Pair<'_>> {
    query.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty()).map(|pair| {
        let at = memchr::memchr(b'=', pair).unwrap_or(pair.len());
        let value = pair[at..].strip_prefix(b"=").unwrap_or_default();
        let spaces: Vec<u8> = value.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
        (percent_decode(&pair[..at]).into(), String::from_utf8(percent_decode(&spaces).collect()))
    })
}

fn form_of(head: &Fields) -> Form {
    by_weight(head, "accept").find_map(Form::of_type).unwrap_or(Form::Json)
}

fn languages_of(head: &Fields) -> Vec<String> {
    let tags = by_weight(head, "accept-language").filter(|tag| *tag != b"*");
    tags.filter_map(|tag| String::from_utf8(tag.to_vec()).ok()).take(MOST_LANGUAGES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str, lines: &[(&str, &str)]) -> Result<Asked, String> {
        let mut head = Fields::default();
        lines.iter().for_each(|(name, value)| head.add(name.as_bytes(), value.as_bytes()));
        Asked::of(query.as_bytes(), &head, None)
    }

    #[test]
    fn fields_are_asked_for_by_name_and_tables_as_a_whole() {
        let fields = |query| asked(query, &[]).unwrap().fields;
        assert_eq!(fields("fields=country.code,city"), [Field::City, Field::CountryCode]);
        assert_eq!(fields("fields=region%2Ccity"), [Field::City, Field::RegionCode, Field::RegionName]);
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
    fn the_form_is_that_of_the_type_that_is_liked_best() {
        for (accept, form) in [
            ("", Form::Json),
            ("*/*", Form::Json),
            ("text/csv", Form::Csv),
            ("text/html, application/xml;q=0.9, */*;q=0.8", Form::Xml),
            ("text/plain;q=0.1, application/json", Form::Json),
            ("text/csv;q=nonsense", Form::Csv),
            ("image/png", Form::Json),
        ] {
            assert_eq!(asked("", &[("Accept", accept)]).unwrap().form, form, "{accept}");
        }
    }
}
