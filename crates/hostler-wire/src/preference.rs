//! Parses lists of preferences such as `Accept` and `Accept-Language` (RFC 9110 section 12). Knows no formats.

use crate::field::Fields;
use crate::grammar::tokens;

/// The items of a list of preferences, the best first, without the refused ones.
pub fn by_weight<'a>(head: &'a Fields, name: &str) -> impl Iterator<Item = &'a [u8]> {
    let lines = head.iter().filter(|(_, field, _)| field.eq_ignore_ascii_case(name.as_bytes()));
    let mut items: Vec<_> = lines.flat_map(|(_, _, value)| tokens(value)).map(weighted).collect();
    items.retain(|(_, weight)| *weight > 0);
    items.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    items.into_iter().map(|(item, _)| item)
}

/// An item without its parameters, and its weight in thousandths.
fn weighted(item: &[u8]) -> (&[u8], u16) {
    let mut parts = item.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let name = parts.next().unwrap_or_default();
    // An invalid weight counts as no weight.
    (name, parts.find_map(weight).unwrap_or(1000))
}

/// The weight of a parameter in thousandths, for example 500 for `q=0.5` (RFC 9110 section 12.4.2). 0 means that the item is refused.
/// `None`: the parameter is no weight, or an invalid one.
pub fn weight(parameter: &[u8]) -> Option<u16> {
    let [b'q' | b'Q', b'=', value @ ..] = parameter else { return None };
    let (whole, fraction) = match value {
        [whole] | [whole, b'.'] => (whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u16::from(byte - b'0'));
    let mut thousandths = digit(*whole)? * 1000;
    for (at, byte) in fraction.iter().enumerate() {
        thousandths += digit(*byte)? * [100, 10, 1][at];
    }
    (thousandths <= 1000).then_some(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_has_at_most_three_digits_after_the_point() {
        let valid: [(&[u8], u16); 8] = [
            (b"q=1", 1000),
            (b"q=1.000", 1000),
            (b"Q=0.5", 500),
            (b"q=0.05", 50),
            (b"q=0.001", 1),
            (b"q=0.", 0),
            (b"q=0", 0),
            (b"q=0.000", 0),
        ];
        for (parameter, expected) in valid {
            assert_eq!(weight(parameter), Some(expected), "{}", parameter.escape_ascii());
        }
        for invalid in [
            "", "q", "q=", "q=2", "q=1.001", "q=0.1234", "q=.5", "q=....", "q=nan", "q=1e-3", "q=+1",
            "level=1",
        ] {
            assert_eq!(weight(invalid.as_bytes()), None, "{invalid}");
        }
    }

    #[test]
    fn an_invalid_weight_counts_as_no_weight() {
        let mut head = Fields::default();
        head.add(b"Accept", b"a/low;q=0.5, a/nan;q=nan, a/small;level=1;q=1e-3, a/never;q=0.0");
        assert_eq!(by_weight(&head, "accept").collect::<Vec<_>>(), [&b"a/nan"[..], b"a/small", b"a/low"]);
    }
}
