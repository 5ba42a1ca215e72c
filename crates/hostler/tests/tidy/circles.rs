//! Circles: two files that use each other. A reader of one must read the other, so each circle has its reason here.
//!
//! A file uses another if it names a path that ends there, or if an `impl` block in it calls a method on `self` that the other file
//! defines. A call on another value does not count, because its type is not written beside it.

use std::collections::{BTreeMap, BTreeSet};

use crate::paths::Code;
use crate::sources::{Broken, sources};

/// A folder below `crates/`, a file in it, the files with which it forms circles, and the reason. "To be parted" means that the circle
/// should go: the files are two things, and one should not know the other.
const CIRCLES: &[(&str, &str, &[&str], &str)] = &[];

#[test]
fn two_files_use_each_other_only_with_a_reason() {
    let code = Code::read(&sources("crates"));
    let used: BTreeMap<_, _> = code.files().map(|(path, module)| (path, code.used_by(module))).collect();
    let excused = excused();
    let mut broken = Broken::default();
    let mut circles = BTreeSet::new();
    for (one, others) in &used {
        for (other, named) in others.iter().filter(|(other, _)| one < *other) {
            let Some(back) = used[other].get(one) else { continue };
            let (there, back) = (named.segments.join("::"), back.segments.join("::"));
            if !excused.contains(&pair(one, other)) {
                broken.in_file(
                    one,
                    named.line,
                    format_args!("uses {there}, and {other} uses {back}: a circle"),
                );
            }
            circles.insert(pair(one, other));
        }
    }
    broken.check();
    let needless: Vec<_> = excused.difference(&circles).collect();
    assert!(needless.is_empty(), "these are no circles: take them out of the list: {needless:#?}");
}

fn excused() -> BTreeSet<(String, String)> {
    let pairs = |(folder, file, others, _): &(&str, &str, &[&str], &str)| {
        let path = |file: &str| format!("crates/{folder}/{file}");
        others.iter().map(|other| pair(&path(file), &path(other))).collect::<Vec<_>>()
    };
    CIRCLES.iter().flat_map(pairs).collect()
}

/// The two paths in alphabetical order.
fn pair(one: &str, other: &str) -> (String, String) {
    let (one, other) = if one < other { (one, other) } else { (other, one) };
    (one.to_owned(), other.to_owned())
}
