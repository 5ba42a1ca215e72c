//! Answers that were given once and are given again, by five-digit code. Knows not what they say.

use std::sync::OnceLock;

use hostler_wire::Whole;

const PAGES: usize = 1000;
const PAGE: usize = 100;

type ReadyPage = Box<[OnceLock<Whole>; PAGE]>;

/// Room for an answer to each code, made as codes are asked for: most never are.
pub(super) struct Ready(Box<[OnceLock<ReadyPage>]>);

impl Ready {
    pub fn new() -> Self {
        Self((0..PAGES).map(|_| OnceLock::new()).collect())
    }

    /// The place of a code, which is below 100,000.
    pub fn at(&self, code: u32) -> &OnceLock<Whole> {
        let code = code as usize % (PAGES * PAGE);
        let page = self.0[code / PAGE].get_or_init(|| Box::new([const { OnceLock::new() }; PAGE]));
        &page[code % PAGE]
    }
}
