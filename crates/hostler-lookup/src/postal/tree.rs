//! Finds the points nearest to a point, in an implicit k-d tree on the unit sphere. Knows numbers, no places.
//!
//! The middle of a run is its root. The points before it are on one side of it, along the axis of its depth. A tree that
//! splits by position instead of by rank would overflow: 149 codes have the same point in Washington.

use std::collections::BinaryHeap;

use super::image::{Image, ImageSection};

/// A point with the number of its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Node {
    /// The point on the unit sphere.
    pub at: [f32; 3],
    /// The place's number.
    pub place: u32,
}

impl Node {
    /// The point as a record.
    pub fn words(self) -> [u32; 4] {
        let [x, y, z] = self.at.map(f32::to_bits);
        [x, y, z, self.place]
    }

    fn read(image: &Image, at: u32) -> Self {
        let [x, y, z, place] = image.record(ImageSection::Points, at);
        Self { at: [x, y, z].map(f32::from_bits), place }
    }

    fn distance(&self, to: [f32; 3]) -> f32 {
        (0..3).map(|axis| (self.at[axis] - to[axis]).powi(2)).sum()
    }
}

/// Sorts points into the order of a tree.
pub fn plant(nodes: &mut [Node]) {
    grow(nodes, 0);
}

fn grow(nodes: &mut [Node], axis: usize) {
    if nodes.len() < 2 {
        return;
    }
    let middle = nodes.len() / 2;
    nodes.select_nth_unstable_by(middle, |a, b| a.at[axis].total_cmp(&b.at[axis]));
    let (left, right) = nodes.split_at_mut(middle);
    grow(left, (axis + 1) % 3);
    grow(&mut right[1..], (axis + 1) % 3);
}

/// A place that was found, with the square of its chord.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// The place's number.
    pub place: u32,
    /// The square of the straight distance through the unit sphere.
    pub chord2: f32,
}

impl Eq for Near {}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.chord2.total_cmp(&other.chord2).then(self.place.cmp(&other.place))
    }
}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Searches the nearest points in one tree after another.
pub struct Search {
    from: [f32; 3],
    most: usize,
    /// Points farther than this are ignored.
    farthest: f32,
    /// The farthest point found is on top.
    found: BinaryHeap<Near>,
}

impl Search {
    /// Searches the `most` points nearest to a point, within this chord.
    pub fn new(from: [f32; 3], most: usize, chord2: f32) -> Self {
        Self { from, most, farthest: chord2, found: BinaryHeap::new() }
    }

    /// Searches a tree, which is a run of the pack's points.
    pub fn through(&mut self, image: &Image, points: std::ops::Range<u32>) {
        if self.most > 0 {
            self.visit(image, points, 0);
        }
    }

    /// The points found, the nearest first.
    pub fn finish(self) -> Vec<Near> {
        self.found.into_sorted_vec()
    }

    fn visit(&mut self, image: &Image, points: std::ops::Range<u32>, axis: usize) {
        if points.is_empty() {
            return;
        }
        let middle = points.start + points.len() as u32 / 2;
        let node = Node::read(image, middle);
        self.take(Near { place: node.place, chord2: node.distance(self.from) });
        let (left, right) = (points.start..middle, middle + 1..points.end);
        let beyond = self.from[axis] - node.at[axis];
        let (own, other) = if beyond < 0.0 { (left, right) } else { (right, left) };
        self.visit(image, own, (axis + 1) % 3);
        // Points that equal the root along the axis may be on both sides, so the comparison includes equality.
        if beyond * beyond <= self.farthest {
            self.visit(image, other, (axis + 1) % 3);
        }
    }

    fn take(&mut self, near: Near) {
        if near.chord2 > self.farthest {
            return;
        }
        if self.found.len() == self.most {
            match self.found.peek() {
                Some(worst) if *worst > near => drop(self.found.pop()),
                _ => return,
            }
        }
        self.found.push(near);
        if self.found.len() == self.most {
            self.farthest = self.found.peek().map_or(self.farthest, |worst| worst.chord2);
        }
    }
}
