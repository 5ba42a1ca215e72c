//! The addresses of the names of registered members. Each name has them once, in however many routes and at however many ports its members
//! are. Knows no routes.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use hostler_engine::proxy::NameAddresses;

/// By name. A name without members stays until the next sweep.
#[derive(Default)]
pub(super) struct MemberNames(HashMap<Box<str>, Weak<NameAddresses>>);

impl MemberNames {
    /// Those of this name. A member that registers anew has what was found for its former registration.
    pub fn of(&mut self, name: &str) -> Arc<NameAddresses> {
        if let Some(known) = self.0.get(name).and_then(Weak::upgrade) {
            return known;
        }
        let unknown = Arc::<NameAddresses>::default();
        self.0.insert(name.into(), Arc::downgrade(&unknown));
        unknown
    }

    /// Forgets the names that no member has any more.
    pub fn sweep(&mut self) {
        self.0.retain(|_, known| known.strong_count() > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_one_name_share_its_addresses_as_long_as_there_is_one() {
        let mut names = MemberNames::default();
        let (one, another) = (names.of("a.test"), names.of("b.test"));
        assert!(Arc::ptr_eq(&one, &names.of("a.test")) && !Arc::ptr_eq(&one, &another));
        drop(another);
        names.sweep();
        assert_eq!(names.0.keys().map(|name| &**name).collect::<Vec<_>>(), ["a.test"]);
    }
}
