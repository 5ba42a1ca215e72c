//! An ordered map for entries that mostly come in the order of their keys. Knows neither requests nor what a key means.

use std::collections::{BTreeMap, VecDeque};

/// An empty row gives its memory back if it had room for more entries than this.
const KEPT: usize = 1024;

/// A map like `BTreeMap`, for entries that are mostly appended and mostly removed at the front. These two operations take constant time on
/// average. All others take as long as in a tree.
pub(super) struct SortedRow<K, V> {
    /// Entries that were appended, in order. `None`: it has left. The first and the last entry are never `None`.
    row: VecDeque<(K, Option<V>)>,
    /// How many entries of `row` are `None`. At most half of them.
    gaps: usize,
    /// All other entries. Each may belong before, between or behind those of `row`.
    others: BTreeMap<K, V>,
}

impl<K, V> Default for SortedRow<K, V> {
    fn default() -> Self {
        Self { row: VecDeque::new(), gaps: 0, others: BTreeMap::new() }
    }
}

impl<K: Ord, V> SortedRow<K, V> {
    pub fn len(&self) -> usize {
        self.row.len() - self.gaps + self.others.len()
    }

    pub fn is_empty(&self) -> bool {
        self.row.is_empty() && self.others.is_empty()
    }

    /// As [`insert`](Self::insert), for keys that mostly come in order. A key that is not higher than all appended ones is inserted.
    pub fn append(&mut self, key: K, value: V) -> Option<V> {
        if self.row.back().is_some_and(|(last, _)| *last >= key) {
            return self.insert(key, value);
        }
        let before = if self.others.is_empty() { None } else { self.others.remove(&key) };
        self.row.push_back((key, Some(value)));
        before
    }

    /// Returns the value that the key had before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let Ok(at) = self.find(&key) else { return self.others.insert(key, value) };
        let before = self.row[at].1.replace(value);
        self.gaps -= usize::from(before.is_none());
        before
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let Ok(at) = self.find(key) else { return self.others.remove(key) };
        let value = self.row[at].1.take()?;
        self.gaps += 1;
        self.close_gaps();
        Some(value)
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.find(key).map_or_else(|_| self.others.get(key), |at| self.row[at].1.as_ref())
    }

    pub fn first(&self) -> Option<(&K, &V)> {
        let row = self.row.front().and_then(present);
        if self.others.is_empty() {
            return row;
        }
        row.into_iter().chain(self.others.first_key_value()).min_by_key(|(key, _)| *key)
    }

    pub fn last(&self) -> Option<(&K, &V)> {
        let row = self.row.back().and_then(present);
        row.into_iter().chain(self.others.last_key_value()).max_by_key(|(key, _)| *key)
    }

    /// All entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let mut row = self.row.iter().filter_map(present).peekable();
        let mut others = self.others.iter().peekable();
        std::iter::from_fn(move || match (row.peek(), others.peek()) {
            (Some((one, _)), Some((other, _))) if other < one => others.next(),
            (None, _) => others.next(),
            _ => row.next(),
        })
    }

    fn find(&self, key: &K) -> Result<usize, usize> {
        match self.row.front() {
            None => Err(0),
            Some((first, _)) if first == key => Ok(0),
            Some(_) => self.row.binary_search_by(|(other, _)| other.cmp(key)),
        }
    }

    /// So that neither end is a gap, and at most half of the entries are.
    fn close_gaps(&mut self) {
        let is_gap = |end: Option<&(K, Option<V>)>| end.is_some_and(|(_, value)| value.is_none());
        while is_gap(self.row.front()) {
            self.row.pop_front();
            self.gaps -= 1;
        }
        while is_gap(self.row.back()) {
            self.row.pop_back();
            self.gaps -= 1;
        }
        if self.gaps > self.row.len() / 2 {
            self.row.retain(|(_, value)| value.is_some());
            self.gaps = 0;
        }
        if self.row.is_empty() && self.row.capacity() > KEPT {
            self.row = VecDeque::new();
        }
    }
}

fn present<K, V>((key, value): &(K, Option<V>)) -> Option<(&K, &V)> {
    value.as_ref().map(|value| (key, value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Append(u64),
        Insert(u64),
        RemoveFirst,
        Remove(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..3u64).prop_map(Step::Append),
            2 => (0..60u64).prop_map(Step::Insert),
            2 => Just(Step::RemoveFirst),
            3 => (0..60u64).prop_map(Step::Remove),
        ]
    }

    proptest! {
        #[test]
        fn it_does_what_a_tree_does(steps in prop::collection::vec(step(), 0..120)) {
            let (mut row, mut tree) = (SortedRow::default(), BTreeMap::new());
            for (value, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Append(skipped) => {
                        let last = row.row.back().map_or(0, |(last, _)| *last);
                        prop_assert_eq!(row.append(last + skipped, value), tree.insert(last + skipped, value));
                    }
                    Step::Insert(key) => prop_assert_eq!(row.insert(key, value), tree.insert(key, value)),
                    Step::RemoveFirst => {
                        let first = tree.first_key_value().map_or(0, |(first, _)| *first);
                        prop_assert_eq!(row.remove(&first), tree.remove(&first));
                    }
                    Step::Remove(key) => prop_assert_eq!(row.remove(&key), tree.remove(&key)),
                }
                prop_assert!(row.iter().eq(tree.iter()));
                prop_assert_eq!((row.len(), row.is_empty()), (tree.len(), tree.is_empty()));
                prop_assert_eq!((row.first(), row.last()), (tree.first_key_value(), tree.last_key_value()));
                prop_assert!((0..60).all(|key| row.get(&key) == tree.get(&key)));
                prop_assert!(row.gaps <= row.row.len() / 2);
            }
        }
    }

    #[test]
    fn a_crowd_that_leaves_from_the_middle_leaves_no_memory_behind() {
        let mut row = SortedRow::default();
        row.append(0, ());
        for key in 1..100_000 {
            row.append(key, ());
            row.append(key + 1, ());
            row.remove(&key);
        }
        assert!(row.row.len() <= 4, "{}", row.row.len());
        row.remove(&0);
        for key in 100_000..110_000 {
            row.append(key, ());
        }
        for key in 100_000..110_000 {
            row.remove(&key);
        }
        assert!(row.is_empty() && row.row.capacity() <= KEPT);
    }
}
