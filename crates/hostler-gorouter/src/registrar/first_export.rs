//! What a successor knows from its predecessor alone until it takes over. Knows no pools and no connections.
//!
//! The predecessor writes its registrations down before the successor subscribes, and again when the successor has done so and the predecessor
//! has read all messages from before. Messages in between reach only the predecessor. The second writing corrects the first one; what the
//! successor has heard itself is newer than both.

use std::collections::HashSet;

use super::key::RouteKey;

/// A member of a route, by its address.
pub(super) type MemberPlace = (RouteKey, Box<str>);

#[derive(Debug, Default)]
pub(super) struct FirstExport {
    /// Members of the first writing that have said nothing since.
    silent: HashSet<MemberPlace>,
    /// Members that have unregistered since we subscribed.
    left: HashSet<MemberPlace>,
}

impl FirstExport {
    pub fn new(members: impl Iterator<Item = MemberPlace>) -> Self {
        Self { silent: members.collect(), left: HashSet::new() }
    }

    /// A member has registered.
    pub fn registered(&mut self, place: &MemberPlace) {
        self.silent.remove(place);
        self.left.remove(place);
    }

    /// A member has unregistered.
    pub fn unregistered(&mut self, place: MemberPlace) {
        self.silent.remove(&place);
        self.left.insert(place);
    }

    /// Whether a member of the second writing is to be taken. `is_known`: we have this member.
    pub fn takes(&mut self, place: &MemberPlace, is_known: bool) -> bool {
        // The registration may have changed in between, unless we have heard it ourselves.
        let is_silent = self.silent.remove(place);
        is_silent || !is_known && !self.left.contains(place)
    }

    /// Once the whole second writing has been taken: the members that are only in the first one.
    pub fn gone(self) -> impl Iterator<Item = MemberPlace> {
        self.silent.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(uri: &str) -> MemberPlace {
        (RouteKey::parse(uri, false).unwrap(), "10.0.0.1:80".into())
    }

    #[test]
    fn what_was_heard_is_newer_than_what_was_written() {
        let [kept, heard, left, back, new, gone] =
            ["kept.test", "heard.test", "left.test", "back.test", "new.test", "gone.test"].map(place);
        let mut first = FirstExport::new([&kept, &heard, &left, &back, &gone].map(Clone::clone).into_iter());
        first.registered(&heard);
        first.unregistered(left.clone());
        first.unregistered(back.clone());
        first.registered(&back);
        assert!(first.takes(&kept, true), "its registration may have changed");
        assert!(!first.takes(&heard, true));
        assert!(!first.takes(&left, false));
        assert!(!first.takes(&back, true));
        assert!(first.takes(&new, false));
        assert_eq!(first.gone().collect::<Vec<_>>(), [gone]);
    }
}
