//! Replaces many changed keys by fewer and wider purges: of a folder, a host, or everything. Knows no log.

use std::collections::HashMap;

use crate::Purge;

/// With this many changed keys, a folder gets a purge of its own.
const WORTH: usize = 16;

/// The fewest and narrowest purges that leave at most `room` of these keys unmatched.
pub(super) fn fold(keys: &[Box<str>], room: usize) -> Vec<Purge> {
    let mut rest: Vec<&str> = keys.iter().map(|key| &**key).collect();
    let mut purges = Vec::new();
    while rest.len() > room {
        let Some(prefix) = fullest(&rest, folder).or_else(|| fullest(&rest, host)) else {
            return vec![Purge::All];
        };
        rest.retain(|key| !key.starts_with(prefix));
        purges.push(Purge::Prefix(prefix.to_owned()));
    }
    purges
}

fn fullest<'k>(keys: &[&'k str], place: fn(&str) -> &str) -> Option<&'k str> {
    let mut counts = HashMap::<&str, usize>::new();
    keys.iter().for_each(|key| *counts.entry(place(key)).or_default() += 1);
    let (prefix, count) = counts.into_iter().max_by_key(|(prefix, count)| (*count, *prefix))?;
    (count >= WORTH || count == keys.len()).then_some(prefix)
}

/// The key up to the last `/` of the path.
fn folder(key: &str) -> &str {
    let path = key.split_once('?').map_or(key, |(path, _)| path);
    path.rfind('/').map_or(path, |at| &path[..=at])
}

fn host(key: &str) -> &str {
    key.find('/').map_or(key, |at| &key[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: usize, name: impl Fn(usize) -> String) -> Vec<Box<str>> {
        (0..count).map(|at| name(at).into()).collect()
    }

    fn prefix(of: &str) -> Purge {
        Purge::Prefix(of.into())
    }

    #[test]
    fn keys_within_the_limit_are_listed_separately() {
        assert_eq!(fold(&keys(10, |at| format!("a.org/{at}")), 10), []);
    }

    #[test]
    fn many_keys_of_one_folder_become_the_folder() {
        let mut all = keys(100, |at| format!("a.org/cart/{at}?next=/x/{at}"));
        all.extend(keys(10, |at| format!("a.org/news/{at}")));
        assert_eq!(fold(&all, 20), [prefix("a.org/cart/")]);
    }

    #[test]
    fn many_folders_of_one_host_become_the_host() {
        let mut all = keys(100, |at| format!("a.org/{at}/edit"));
        all.extend(keys(3, |at| format!("b.org/{at}")));
        assert_eq!(fold(&all, 20), [prefix("a.org/")]);
    }

    #[test]
    fn many_hosts_become_everything() {
        assert_eq!(fold(&keys(100, |at| format!("{at}.org/")), 20), [Purge::All]);
    }
}
