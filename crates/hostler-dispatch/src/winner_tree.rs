//! A tournament among numbered places: the place with the smallest key, without a look at all of them. Knows no members.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The smallest key is first. Of places with equal keys, the lowest place is first.
pub(super) type SortKey = (u64, u64);

/// A node without a place that takes part.
const ABSENT: u32 = u32::MAX;

/// Each node holds the first of its two children. So a change of one key takes as many steps as the tree has levels:
/// nine for 512 places.
#[derive(Debug, Default)]
pub(super) struct WinnerTree {
    /// `None`: the place takes no part.
    keys: Vec<Option<SortKey>>,
    /// The root is at 1, the children of `node` are at `2 * node` and `2 * node + 1`, and the leaves are the second half.
    nodes: Vec<u32>,
}

impl FromIterator<Option<SortKey>> for WinnerTree {
    fn from_iter<I: IntoIterator<Item = Option<SortKey>>>(keys: I) -> Self {
        let mut tree = Self { keys: keys.into_iter().collect(), nodes: Vec::new() };
        tree.build();
        tree
    }
}

impl WinnerTree {
    /// Adds a place behind all others.
    pub fn push(&mut self, key: Option<SortKey>) {
        self.keys.push(None);
        if self.keys.len() > self.leaves() {
            self.build();
        }
        self.set(self.keys.len() - 1, key);
    }

    /// Sets the key of a place.
    pub fn set(&mut self, place: usize, key: Option<SortKey>) {
        if std::mem::replace(&mut self.keys[place], key) == key {
            return;
        }
        let this = place as u32;
        let mut node = self.leaves() + place;
        self.nodes[node] = if key.is_some() { this } else { ABSENT };
        while node > 1 {
            node /= 2;
            let first = self.first_child(node);
            // The place was not the first of this node, and is not now: nothing changes above.
            if std::mem::replace(&mut self.nodes[node], first) == first && first != this {
                return;
            }
        }
    }

    /// The first place that fits. Places before it are looked at one after another.
    pub fn first(&self, mut fits: impl FnMut(usize) -> bool) -> Option<usize> {
        let root = *self.nodes.get(1)?;
        if root == ABSENT || fits(root as usize) {
            return (root != ABSENT).then_some(root as usize);
        }
        let mut open = BinaryHeap::new();
        self.open_without(1, root, &mut open);
        while let Some((Reverse((_, place)), node)) = open.pop() {
            if fits(place as usize) {
                return Some(place as usize);
            }
            self.open_without(node, place, &mut open);
        }
        None
    }

    /// The lowest place from `start` on that takes part. All keys must be equal.
    pub fn lowest_from(&self, start: usize) -> Option<usize> {
        if start >= self.keys.len() {
            return None;
        }
        let mut node = self.leaves() + start;
        while self.nodes[node] == ABSENT {
            // Goes up from right children, then to the subtree on the right.
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        Some(self.nodes[node] as usize)
    }

    /// Adds the subtrees of `node` that remain when the leaf of `place`, which is its first, is taken out.
    fn open_without(&self, node: usize, place: u32, open: &mut BinaryHeap<(Reverse<(SortKey, u32)>, usize)>) {
        let mut below = self.leaves() + place as usize;
        while below > node {
            let other = below ^ 1;
            if let Some(key) = self.key_of(self.nodes[other]) {
                open.push((Reverse((key, self.nodes[other])), other));
            }
            below /= 2;
        }
    }

    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    fn key_of(&self, winner: u32) -> Option<SortKey> {
        self.keys.get(winner as usize).copied().flatten()
    }

    fn first_child(&self, node: usize) -> u32 {
        let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
        match (self.key_of(left), self.key_of(right)) {
            (Some(one), Some(other)) if other < one => right,
            (None, _) => right,
            _ => left,
        }
    }

    fn build(&mut self) {
        let leaves = self.keys.len().next_power_of_two();
        self.nodes.clear();
        self.nodes.resize(2 * leaves, ABSENT);
        for (place, _) in self.keys.iter().enumerate().filter(|(_, key)| key.is_some()) {
            self.nodes[leaves + place] = place as u32;
        }
        for node in (1..leaves).rev() {
            self.nodes[node] = self.first_child(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = Option<SortKey>> {
        prop::option::of((0..3u64, 0..4u64))
    }

    proptest! {
        #[test]
        fn the_tree_finds_what_a_scan_finds(
            begin in prop::collection::vec(key(), 0..9),
            changes in prop::collection::vec((0..20usize, key(), prop::bool::ANY), 0..40),
            unfit in prop::collection::vec(prop::bool::ANY, 60),
        ) {
            let mut keys = begin.clone();
            let mut tree: WinnerTree = begin.into_iter().collect();
            for (place, key, grows) in changes {
                if grows || place >= keys.len() {
                    keys.push(key);
                    tree.push(key);
                } else {
                    keys[place] = key;
                    tree.set(place, key);
                }
                let scan = |fits: &dyn Fn(usize) -> bool| {
                    let places = (0..keys.len()).filter(|place| keys[*place].is_some() && fits(*place));
                    places.min_by_key(|place| (keys[*place], *place))
                };
                prop_assert_eq!(tree.first(|_| true), scan(&|_| true));
                prop_assert_eq!(tree.first(|place| !unfit[place]), scan(&|place| !unfit[place]));
                prop_assert_eq!(tree.first(|_| false), None);
            }
        }

        #[test]
        fn with_equal_keys_the_lowest_place_from_any_start_is_found(present in prop::collection::vec(prop::bool::ANY, 0..40)) {
            let tree: WinnerTree = present.iter().map(|present| present.then_some((0, 0))).collect();
            for start in 0..present.len() + 2 {
                let scan = (start..present.len()).find(|place| present[*place]);
                prop_assert_eq!(tree.lowest_from(start), scan);
            }
        }
    }
}
