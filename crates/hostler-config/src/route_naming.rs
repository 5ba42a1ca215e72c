//! The names of routes, which tell them apart in the log, the status and the metrics. Knows no targets.

use std::collections::{HashMap, HashSet};

use crate::pattern::MatchPattern;
use crate::resolved::Conditions;

/// Gives routes their names. No two routes get the same one.
#[derive(Debug, Default)]
pub struct RouteNaming {
    taken: HashSet<String>,
    /// The last number for each name without one. Lower numbers are not looked at again.
    last: HashMap<String, usize>,
}

impl RouteNaming {
    /// A route has this name already.
    pub fn keep(&mut self, name: &str) {
        self.taken.insert(name.to_owned());
    }

    /// The name of a further route. Routes with one pattern whose conditions are about the same differ in a number.
    pub fn name(&mut self, pattern: &MatchPattern, when: Option<&Conditions>) -> String {
        let plain = when.map_or_else(|| pattern.to_string(), |when| format!("{pattern} when {when}"));
        let last = self.last.entry(plain.clone()).or_default();
        loop {
            *last += 1;
            let name = if *last == 1 { plain.clone() } else { format!("{plain} ({last})") };
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Saying;

    #[test]
    fn a_number_that_is_taken_is_passed_over() {
        let when = Conditions { sayings: vec![Saying::Prefetch], ..Conditions::default() };
        let mut naming = RouteNaming::default();
        naming.keep("* when is prefetch (2)");
        let names = [Some(&when), Some(&when), None].map(|when| naming.name(&MatchPattern::ALL, when));
        assert_eq!(names, ["* when is prefetch", "* when is prefetch (3)", "*"]);
    }
}
