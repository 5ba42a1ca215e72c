//! Whether the kernel shows that the main thread of a worker waits for events. Pure: knows no process.

/// A thread is hidden if this many looks found it asleep and none has shown that it waits for events. One look proves nothing on a busy machine.
const UNSEEN: u32 = 10;

/// What the looks at one thread have shown so far.
#[derive(Debug, Default)]
pub(super) struct ThreadVisibility {
    /// A look has shown that the thread waits for events. This stays so.
    seen: bool,
    /// How many looks found the thread asleep and did not show that it waits for events.
    unseen: u32,
}

impl ThreadVisibility {
    /// Takes in one look. `None`: the thread was running.
    pub fn look(&mut self, shows_wait: Option<bool>) {
        match shows_wait {
            Some(true) => self.seen = true,
            Some(false) => self.unseen = self.unseen.saturating_add(1),
            None => {}
        }
    }

    /// No more looks are needed.
    pub fn is_seen(&self) -> bool {
        self.seen
    }

    /// The thread cannot be observed, as far as is known now.
    pub fn is_hidden(&self) -> bool {
        !self.seen && self.unseen >= UNSEEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(looks: impl IntoIterator<Item = Option<bool>>) -> ThreadVisibility {
        let mut visibility = ThreadVisibility::default();
        looks.into_iter().for_each(|look| visibility.look(look));
        visibility
    }

    #[test]
    fn a_thread_is_hidden_only_after_many_looks_that_do_not_show_that_it_waits() {
        let unseen = UNSEEN as usize;
        assert!(!after([Some(false)].repeat(unseen - 1)).is_hidden(), "a busy machine");
        assert!(!after([None].repeat(99)).is_hidden(), "a thread that computes");
        assert!(after([None, Some(false), None].repeat(unseen)).is_hidden());
    }

    #[test]
    fn a_hidden_thread_that_is_seen_once_can_be_observed_from_then_on() {
        let mut visibility = after([Some(false)].repeat(99));
        assert!(visibility.is_hidden());
        visibility.look(Some(true));
        assert!(visibility.is_seen() && !visibility.is_hidden());
        (0..99).for_each(|_| visibility.look(Some(false)));
        assert!(visibility.is_seen() && !visibility.is_hidden());
    }
}
