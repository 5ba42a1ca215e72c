//! The parameters of a request's query, in the encoding of forms. Knows no service.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};

use super::problem::repeated;

/// All characters except the unreserved ones (RFC 3986 section 2.3).
const CODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The most parameters of a query.
const MOST: usize = 64;

/// The query of a target, decoded.
#[derive(Debug, Default)]
pub struct QueryString(Vec<(String, String)>);

impl QueryString {
    /// Parses the query of a target. The error is a sentence for the client.
    pub fn of(target: &[u8]) -> Result<Self, String> {
        let Some(mark) = memchr::memchr(b'?', target) else { return Ok(Self::default()) };
        let pairs = target[mark + 1..].split(|&byte| byte == b'&').filter(|pair| !pair.is_empty());
        let mut query = Vec::new();
        for pair in pairs {
            if query.len() == MOST {
                return Err(format!("the query has more than {MOST} parameters"));
            }
            let at = memchr::memchr(b'=', pair).unwrap_or(pair.len());
            let (name, value) = (&pair[..at], pair[at..].strip_prefix(b"=").unwrap_or_default());
            query.push((text(name)?, text(value)?));
        }
        Ok(Self(query))
    }

    /// The value of the first parameter with this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The items of all parameters with this name, which are separated by commas.
    pub fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let values = self.0.iter().filter(move |(known, _)| known == name);
        let items = values.flat_map(|(_, value)| value.split(','));
        items.map(str::trim).filter(|item| !item.is_empty())
    }

    /// The encoded query with another value of one parameter, without the `?`.
    pub fn with(&self, name: &str, value: &str) -> String {
        let others = self.0.iter().filter(|(known, _)| known != name);
        let all = others.map(|(name, value)| (name.as_str(), value.as_str())).chain([(name, value)]);
        let coded = |text| utf8_percent_encode(text, CODED);
        all.map(|(name, value)| format!("{}={}", coded(name), coded(value))).collect::<Vec<_>>().join("&")
    }

    /// The number in a parameter, if there is one. It must be within bounds.
    pub fn number<T: FromStr + PartialOrd + Display>(
        &self,
        name: &str,
        bounds: RangeInclusive<T>,
    ) -> Result<Option<T>, String> {
        let Some(written) = self.get(name) else { return Ok(None) };
        let number = written.trim().parse().ok().filter(|number| bounds.contains(number));
        number.map(Some).ok_or_else(|| {
            let (from, to) = (bounds.start(), bounds.end());
            format!("{name}: {} is not a number from {from} to {to}", repeated(written.as_bytes()))
        })
    }
}

fn text(written: &[u8]) -> Result<String, String> {
    let spaces: Vec<u8> = written.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
    let decoded: Vec<u8> = percent_decode(&spaces).collect();
    String::from_utf8(decoded).map_err(|_| "the query is not percent-encoded UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_as_a_form_writes_them() {
        let query = QueryString::of(b"/x?q=new+york%2C&&limit=5&limit=9&flag&=x").unwrap();
        assert_eq!(query.get("q"), Some("new york,"));
        assert_eq!(query.number("limit", 1..=10), Ok(Some(5)));
        assert_eq!((query.get("flag"), query.get("other")), (Some(""), None));
        let list = QueryString::of(b"/?f=a,%20b,,&x=z&f=c&f=").unwrap();
        assert_eq!(list.list("f").collect::<Vec<_>>(), ["a", "b", "c"]);
        let page = QueryString::of(b"/?page=1&fields=a,b").unwrap();
        assert_eq!(page.with("page", "2"), "fields=a%2Cb&page=2");
    }

    #[test]
    fn an_invalid_number_is_reported() {
        let query = QueryString::of(b"/?a=NaN&b=11&c=%00").unwrap();
        assert_eq!(query.number("a", -90.0..=90.0).unwrap_err(), "a: \"NaN\" is not a number from -90 to 90");
        assert!(query.number("b", 1..=10).is_err() && query.number("c", 1..=10).is_err());
        assert!(QueryString::of(b"/?a=%ff").is_err());
        assert!(QueryString::of(format!("/?{}", "a&".repeat(65)).as_bytes()).is_err());
    }
}
