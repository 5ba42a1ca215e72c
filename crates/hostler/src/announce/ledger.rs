//! Which names others have been told of, and what is to be said next. Knows no connection and no time.

use std::collections::BTreeSet;
use std::sync::Arc;

/// A pool's name, and one of the names it is announced under.
type Entry = (Arc<str>, String);

/// What others believe of us.
#[derive(Default)]
pub(super) struct Ledger {
    announced: BTreeSet<Entry>,
    /// Those that were, and are no more: whoever did not hear of that has to be told again.
    former: BTreeSet<Entry>,
}

/// Names by pool: one message each.
pub(super) type Names = Vec<(Arc<str>, Vec<String>)>;

/// What is to be said.
#[derive(Debug, Default, PartialEq)]
pub(super) struct News {
    pub come: Names,
    pub gone: Names,
}

impl Ledger {
    /// Takes what can be served at this moment; what has changed is to be said.
    pub fn take(&mut self, servable: impl IntoIterator<Item = Entry>) -> News {
        let now: BTreeSet<Entry> = servable.into_iter().collect();
        let come = by_pool(now.difference(&self.announced));
        let gone: Vec<_> = self.announced.difference(&now).cloned().collect();
        let news = News { come, gone: by_pool(&gone) };
        self.former.extend(gone);
        self.former.retain(|entry| !now.contains(entry));
        self.announced = now;
        news
    }

    /// All that others ought to believe, for those who may have missed some of it.
    pub fn all(&self) -> News {
        News { come: self.announced(), gone: by_pool(&self.former) }
    }

    /// What is announced.
    pub fn announced(&self) -> Names {
        by_pool(&self.announced)
    }
}

fn by_pool<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Names {
    let mut names: Names = Vec::new();
    for (pool, name) in entries {
        match names.last_mut() {
            Some((last, list)) if last == pool => list.push(name.clone()),
            _ => names.push((pool.clone(), vec![name.clone()])),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &[&str]) -> Vec<Entry> {
        let split = |entry: &&str| entry.split_once(' ').map(|(pool, name)| (pool.into(), name.into()));
        text.iter().filter_map(split).collect()
    }

    fn names(list: &[(&str, &[&str])]) -> Names {
        list.iter()
            .map(|(pool, names)| ((*pool).into(), names.iter().map(|&name| name.into()).collect()))
            .collect()
    }

    #[test]
    fn only_what_has_changed_is_said() {
        let mut ledger = Ledger::default();
        let news = ledger.take(entries(&["web a.test", "web b.test", "api c.test"]));
        assert_eq!(news.come, names(&[("api", &["c.test"]), ("web", &["a.test", "b.test"])]));
        assert_eq!(ledger.take(entries(&["web b.test", "web a.test", "api c.test"])), News::default());
        let news = ledger.take(entries(&["web b.test"]));
        assert_eq!(news, News { come: vec![], gone: names(&[("api", &["c.test"]), ("web", &["a.test"])]) });
        assert_eq!(ledger.announced(), names(&[("web", &["b.test"])]));
    }

    #[test]
    fn who_has_missed_something_hears_of_the_end_too_unless_it_was_taken_back() {
        let mut ledger = Ledger::default();
        ledger.take(entries(&["web a.test", "web b.test"]));
        ledger.take(entries(&[]));
        assert_eq!(ledger.all(), News { come: vec![], gone: names(&[("web", &["a.test", "b.test"])]) });
        ledger.take(entries(&["web a.test"]));
        let all = News { come: names(&[("web", &["a.test"])]), gone: names(&[("web", &["b.test"])]) };
        assert_eq!(ledger.all(), all);
    }
}
