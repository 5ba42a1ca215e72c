//! A client of tests that sends no body. Knows no member.

use std::task::{Context, Poll};

use hostler_wire::{Fields, ResponseHead};

use crate::exchange::{BodyError, Downstream};

/// `SHOWS`: if it leaves, it cannot be one that has only finished sending.
#[derive(Default)]
pub struct TestClient<const SHOWS: bool> {
    pub has_left: bool,
    /// The heads of the interim responses that it got.
    pub interim: Vec<ResponseHead>,
}

impl<const SHOWS: bool> Downstream for TestClient<SHOWS> {
    const SHOWS_LEAVING: bool = SHOWS;

    fn poll_left(&mut self, _: &mut Context<'_>) -> Poll<()> {
        if self.has_left { Poll::Ready(()) } else { Poll::Pending }
    }

    fn allow_body(&mut self, _: u64) {}

    fn poll_body(&mut self, _: &mut Context<'_>, _: &mut Vec<u8>, _: usize) -> Poll<Result<bool, BodyError>> {
        Poll::Ready(Err(BodyError::Left))
    }

    fn trailers(&self) -> Option<&Fields> {
        None
    }

    fn interim(&mut self, _: &mut Context<'_>, head: &ResponseHead) -> bool {
        self.interim.push(head.clone());
        true
    }
}
