//! Status codes as written: one code, or a range. Knows no responses.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::one_string;

/// `"200"`, or `"200-399"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusRange(pub RangeInclusive<u16>);

impl FromStr for StatusRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let code = |text: &str| text.trim().parse().ok().filter(|code| (200..=599).contains(code));
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (code(first), code(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self(first..=last)),
            _ => Err(format!("{text:?} is not a status from 200 to 599, such as \"200\" or \"200-399\"")),
        }
    }
}

impl fmt::Display for StatusRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.start(), self.0.end()) {
            (first, last) if first == last => write!(f, "{first}"),
            (first, last) => write!(f, "{first}-{last}"),
        }
    }
}

one_string!(
    StatusRange,
    kind: "status codes, such as `\"200\"` or `\"200-399\"`",
    expects: "status codes such as \"200\" or \"200-399\""
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_range_is_one_code_or_a_range() {
        for (written, first, last) in [("200", 200, 200), ("200-399", 200, 399), (" 204 - 204 ", 204, 204)] {
            assert_eq!(written.parse::<StatusRange>().unwrap().0, first..=last, "{written}");
        }
        for wrong in ["", "2xx", "100", "600", "300-200", "200-", "-200", "200-300-400"] {
            assert!(wrong.parse::<StatusRange>().is_err(), "{wrong}");
        }
        assert_eq!("200-399".parse::<StatusRange>().unwrap().to_string(), "200-399");
    }
}
