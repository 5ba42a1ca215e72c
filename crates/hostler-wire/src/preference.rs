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
    let weight = parts.find_map(|part| part.strip_prefix(b"q=").or_else(|| part.strip_prefix(b"Q=")));
    let weight = weight.and_then(|weight| std::str::from_utf8(weight).ok()?.parse::<f32>().ok());
    // An invalid weight counts as no weight.
    (name, (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u16)
}
