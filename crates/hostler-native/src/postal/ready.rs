//! Stored responses, by five-digit code. Does not know what they contain.

use std::sync::OnceLock;

use hostler_wire::Whole;

const PAGES: usize = 1000;
const PAGE: usize = 100;

type ReadyPage = Box<[OnceLock<Whole>; PAGE]>;

/// A place for the response to each code. Most of them are never used, so memory is allocated at the first use.
pub(super) struct Ready(Box<[OnceLock<ReadyPage>]>);

impl Ready {
    pub fn new() -> Self {
        Self((0..PAGES).map(|_| OnceLock::new()).collect())
    }

    /// The place of a code. The code must be below 100,000.
    pub fn at(&self, code: u32) -> &OnceLock<Whole> {
        let code = code as usize % (PAGES * PAGE);
        let page = self.0[code / PAGE].get_or_init(|| Box::new([const { OnceLock::new() }; PAGE]));
        &page[code % PAGE]
    }
}
