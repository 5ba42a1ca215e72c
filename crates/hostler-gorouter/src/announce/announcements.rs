//! The names of our pools that routers have been told, and the messages that follow from a change. Knows no connection and no time.

use std::collections::BTreeSet;
use std::sync::Arc;

/// A pool's name, and one of the names under which it is announced.
pub(super) type AnnouncedName = (Arc<str>, String);

/// The names that routers have from us.
#[derive(Default)]
pub(super) struct Announcements {
    announced: BTreeSet<AnnouncedName>,
    /// Names that were announced and are not any more. A router that missed the end of one is told again.
    former: BTreeSet<AnnouncedName>,
}

/// How many names one message has at most. Routers refuse a message that is too large as a whole: ours takes 1000 URIs by default.
const MOST_NAMES: usize = 250;

/// Names by pool. Each entry becomes one message; a pool with many names has several.
pub(super) type AnnouncedNames = Vec<(Arc<str>, Vec<String>)>;

/// The messages to send.
#[derive(Debug, Default, PartialEq)]
pub(super) struct AnnouncementsChange {
    pub come: AnnouncedNames,
    pub gone: AnnouncedNames,
}

impl Announcements {
    /// After a predecessor that has announced these names. Nothing is sent for those that are announced again.
    pub fn after(former: impl IntoIterator<Item = AnnouncedName>) -> Self {
        Self { former: former.into_iter().collect(), ..Self::default() }
    }

    /// Takes the names that can be served at this moment, and returns what has changed. Routers know a name and our address, and no pools: a
    /// name that another pool has now is not gone.
    pub fn take(&mut self, servable: impl IntoIterator<Item = AnnouncedName>) -> AnnouncementsChange {
        let now: BTreeSet<AnnouncedName> = servable.into_iter().collect();
        let names: BTreeSet<&str> = now.iter().map(|(_, name)| name.as_str()).collect();
        let is_gone = |(_, name): &AnnouncedName| !names.contains(name.as_str());
        let come = by_pool(now.difference(&self.announced));
        let gone: Vec<_> = self.announced.iter().filter(|entry| is_gone(entry)).cloned().collect();
        let news = AnnouncementsChange { come, gone: by_pool(&gone) };
        self.former.extend(gone);
        self.former.retain(is_gone);
        self.announced = now;
        news
    }

    /// All names, for routers that may have missed a message.
    pub fn all(&self) -> AnnouncementsChange {
        AnnouncementsChange { come: self.announced(), gone: by_pool(&self.former) }
    }

    /// The names that are announced.
    pub fn announced(&self) -> AnnouncedNames {
        by_pool(&self.announced)
    }
}

pub(super) fn by_pool<'a>(entries: impl IntoIterator<Item = &'a AnnouncedName>) -> AnnouncedNames {
    let mut names: AnnouncedNames = Vec::new();
    for (pool, name) in entries {
        match names.last_mut() {
            Some((last, list)) if last == pool && list.len() < MOST_NAMES => list.push(name.clone()),
            _ => names.push((pool.clone(), vec![name.clone()])),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &[&str]) -> Vec<AnnouncedName> {
        let split = |entry: &&str| entry.split_once(' ').map(|(pool, name)| (pool.into(), name.into()));
        text.iter().filter_map(split).collect()
    }

    fn names(list: &[(&str, &[&str])]) -> AnnouncedNames {
        list.iter()
            .map(|(pool, names)| ((*pool).into(), names.iter().map(|&name| name.into()).collect()))
            .collect()
    }

    #[test]
    fn only_changes_are_announced() {
        let mut announcements = Announcements::default();
        let news = announcements.take(entries(&["web a.test", "web b.test", "api c.test"]));
        assert_eq!(news.come, names(&[("api", &["c.test"]), ("web", &["a.test", "b.test"])]));
        assert_eq!(
            announcements.take(entries(&["web b.test", "web a.test", "api c.test"])),
            AnnouncementsChange::default()
        );
        let news = announcements.take(entries(&["web b.test"]));
        assert_eq!(
            news,
            AnnouncementsChange { come: vec![], gone: names(&[("api", &["c.test"]), ("web", &["a.test"])]) }
        );
        assert_eq!(announcements.announced(), names(&[("web", &["b.test"])]));
    }

    #[test]
    fn all_names_include_unregistered_ones_unless_they_are_announced_again() {
        let mut announcements = Announcements::default();
        announcements.take(entries(&["web a.test", "web b.test"]));
        announcements.take(entries(&[]));
        assert_eq!(
            announcements.all(),
            AnnouncementsChange { come: vec![], gone: names(&[("web", &["a.test", "b.test"])]) }
        );
        announcements.take(entries(&["web a.test"]));
        let all = AnnouncementsChange {
            come: names(&[("web", &["a.test"])]),
            gone: names(&[("web", &["b.test"])]),
        };
        assert_eq!(announcements.all(), all);
    }

    #[test]
    fn a_pool_with_many_names_has_several_messages() {
        let mut announcements = Announcements::default();
        let all =
            (0..2 * MOST_NAMES + 1).map(|number| (Arc::<str>::from("web"), format!("{number:04}.test")));
        let come = announcements.take(all.chain(entries(&["x y.test"]))).come;
        let sizes: Vec<_> = come.iter().map(|(pool, names)| (&**pool, names.len())).collect();
        assert_eq!(sizes, [("web", MOST_NAMES), ("web", MOST_NAMES), ("web", 1), ("x", 1)]);
        assert_eq!(come[2].1, ["0500.test"]);
    }

    #[test]
    fn names_of_a_predecessor_are_unregistered_unless_they_are_announced_again() {
        let mut announcements = Announcements::after(entries(&["web a.test", "web b.test"]));
        let come = names(&[("api", &["a.test"])]);
        assert_eq!(announcements.take(entries(&["api a.test"])), AnnouncementsChange { come, gone: vec![] });
        assert_eq!(announcements.all().gone, names(&[("web", &["b.test"])]));
    }

    #[test]
    fn a_name_that_moves_to_another_pool_is_not_unregistered() {
        let mut announcements = Announcements::default();
        announcements.take(entries(&["old a.test", "old b.test"]));
        let news = announcements.take(entries(&["new a.test", "old b.test"]));
        let come = names(&[("new", &["a.test"])]);
        assert_eq!(news, AnnouncementsChange { come, gone: vec![] });
        assert!(announcements.all().gone.is_empty());
        announcements.take(entries(&["old b.test"]));
        assert_eq!(announcements.all().gone, names(&[("new", &["a.test"])]));
        announcements.take(entries(&["old a.test", "old b.test"]));
        assert!(announcements.all().gone.is_empty());
    }
}
