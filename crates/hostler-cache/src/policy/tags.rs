//! The tags by which responses are purged: `Cache-Tag` and `Surrogate-Key`. Knows no store.

use crate::Head;

/// The tags of a response, sorted and without duplicates: the members of `Cache-Tag` (separated by commas) and of
/// `Surrogate-Key` (separated by spaces).
pub fn tags(answer: &impl Head) -> Box<[Box<str>]> {
    let by_comma = answer.lines("cache-tag").flat_map(|line| line.split(|&byte| byte == b','));
    let by_space = answer.lines("surrogate-key").flat_map(|line| line.split(|&byte| byte == b' '));
    let tags = by_comma.chain(by_space).filter_map(|tag| std::str::from_utf8(tag.trim_ascii()).ok());
    let mut tags: Vec<Box<str>> = tags.filter(|tag| !tag.is_empty()).map(Box::from).collect();
    tags.sort_unstable();
    tags.dedup();
    tags.into_boxed_slice()
}
