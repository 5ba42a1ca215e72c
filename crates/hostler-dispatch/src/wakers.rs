//! The wakers of the waits that end in one critical section. They are woken after unlocking. Knows no requests.

use std::task::Waker;

/// Mostly there is one, so it needs no allocation.
#[derive(Default)]
pub(super) struct Wakers {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Wakers {
    /// Wakes all, in the order in which they were added. Says whether there was any.
    pub fn wake(self) -> bool {
        let has_any = self.first.is_some();
        self.first.into_iter().chain(self.others).for_each(Waker::wake);
        has_any
    }
}

impl Extend<Waker> for Wakers {
    fn extend<I: IntoIterator<Item = Waker>>(&mut self, wakers: I) {
        for waker in wakers {
            match &self.first {
                None => self.first = Some(waker),
                Some(_) => self.others.push(waker),
            }
        }
    }
}
