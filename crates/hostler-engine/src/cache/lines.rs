//! The adapter through which `hostler-cache` reads heads. Knows no rules.

use hostler_cache::Head;
use hostler_wire::Fields;

/// The lines of a head, in order.
#[derive(Debug, Clone, Copy)]
pub struct HeadLines<'f>(pub &'f Fields);

impl Head for HeadLines<'_> {
    fn lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]>
    where
        Self: 'a,
    {
        self.0.values(name)
    }
}
