//! Changes to the fields of a head: of a request to a member, or of an answer to a client. Knows neither.

use std::borrow::Cow;
use std::sync::Arc;

use hostler_wire::{Field, Fields, name_ends_with};

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Removes every line with this name.
    Remove(Cow<'static, str>),
    /// Replaces all lines with this name by one.
    Set(Cow<'static, str>, Vec<u8>),
    /// Adds a line.
    Add(Cow<'static, str>, Vec<u8>),
    /// Adds a line if there is none with this name.
    Default(Cow<'static, str>, Vec<u8>),
}

impl Edit {
    fn name(&self) -> &str {
        match self {
            Self::Remove(name) | Self::Set(name, _) | Self::Add(name, _) | Self::Default(name, _) => name,
        }
    }
}

/// Changes in order: those of the route, then those of this exchange. Without changes it costs nothing.
#[derive(Debug, Clone, Default)]
pub struct Edits {
    pub shared: Option<Arc<[Edit]>>,
    pub own: Vec<Edit>,
    /// Changes never remove or replace lines that the head has. They only add lines with names that the head lacks, and none by which a cache
    /// stores what the head's `Cache-Control` forbids.
    pub yields: bool,
    /// The head is that of a file with compressed forms, so its `Vary: Accept-Encoding` is Hostler's own.
    pub has_forms: bool,
}

impl Edits {
    pub fn is_empty(&self) -> bool {
        self.shared.is_none() && self.own.is_empty()
    }

    /// Forgets all changes.
    pub fn clear(&mut self) {
        self.shared = None;
        self.own.clear();
        self.yields = false;
        self.has_forms = false;
    }

    fn iter(&self) -> impl Iterator<Item = &Edit> {
        self.shared.iter().flat_map(|shared| shared.iter()).chain(&self.own)
    }

    /// Whether a line of the head stays.
    pub fn keeps(&self, name: &[u8]) -> bool {
        self.yields || !self.replaces(name)
    }

    /// Whether a change removes or replaces lines with this name.
    pub fn replaces(&self, name: &[u8]) -> bool {
        self.iter().any(|edit| match edit {
            Edit::Remove(removed) | Edit::Set(removed, _) => removed.as_bytes().eq_ignore_ascii_case(name),
            Edit::Add(..) | Edit::Default(..) => false,
        })
    }

    /// Whether the route changes `name`, but not `sent`, another spelling of that name which the client has used.
    pub fn writes_other_than(&self, sent: &[u8], name: &[u8]) -> bool {
        let is_about = |edit: &Edit, name: &[u8]| edit.name().as_bytes().eq_ignore_ascii_case(name);
        self.iter().any(|edit| is_about(edit, name)) && !self.iter().any(|edit| is_about(edit, sent))
    }

    /// The new lines, for a head with these `fields`.
    pub fn lines<'a>(&'a self, fields: &'a Fields) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.lines_beside(fields, |field, _| !field.listed)
    }

    /// The same, for a head of which only the lines are passed on for which `goes_on` returns true. The others count as missing.
    pub fn lines_beside<'a>(
        &'a self,
        fields: &'a Fields,
        goes_on: impl Fn(&Field, &[u8]) -> bool + 'a,
    ) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.iter().enumerate().filter_map(move |(at, edit)| {
            let (name, value) = match edit {
                Edit::Remove(_) => return None,
                Edit::Set(name, _) | Edit::Add(name, _)
                    if self.yields && is_there(fields, name, &goes_on) =>
                {
                    return None;
                }
                Edit::Set(name, _) | Edit::Add(name, _) | Edit::Default(name, _)
                    if self.yields && outranks_cache_control(name) =>
                {
                    return None;
                }
                Edit::Set(name, value) | Edit::Add(name, value) => (name, value),
                Edit::Default(name, _) if self.has(is_there(fields, name, &goes_on), name, at) => {
                    return None;
                }
                Edit::Default(name, value) => (name, value),
            };
            (!self.is_undone(name, at)).then_some((&**name, &**value))
        })
    }

    /// The value of the line that is added if there is none with this name.
    pub fn default_of(&self, name: &str) -> Option<&[u8]> {
        self.iter().enumerate().find_map(|(at, edit)| match edit {
            Edit::Default(other, value) if other.eq_ignore_ascii_case(name) => {
                (!self.is_undone(name, at)).then_some(&**value)
            }
            _ => None,
        })
    }

    /// Whether there is a line with this name before the change at `end`. `has`: whether the head has one.
    fn has(&self, mut has: bool, name: &str, end: usize) -> bool {
        for edit in self.iter().take(end) {
            match edit {
                Edit::Remove(other) if other.eq_ignore_ascii_case(name) => has = has && self.yields,
                Edit::Set(other, _) | Edit::Add(other, _) | Edit::Default(other, _)
                    if other.eq_ignore_ascii_case(name) =>
                {
                    has = true;
                }
                _ => {}
            }
        }
        has
    }

    /// Whether a later change removes the line again.
    fn is_undone(&self, name: &str, at: usize) -> bool {
        self.iter().skip(at + 1).any(|edit| match edit {
            Edit::Remove(other) | Edit::Set(other, _) => other.eq_ignore_ascii_case(name),
            Edit::Add(..) | Edit::Default(..) => false,
        })
    }
}

/// Whether some caches go by this field in place of `Cache-Control`: by `CDN-Cache-Control` and the like (RFC 9213), and by two older ones.
fn outranks_cache_control(name: &str) -> bool {
    name_ends_with(name.as_bytes(), b"-cache-control")
        || ["Surrogate-Control", "X-Accel-Expires"].iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Whether the head has a line with this name that is passed on. A line that `Connection` names is not.
fn is_there(fields: &Fields, name: &str, goes_on: impl Fn(&Field, &[u8]) -> bool) -> bool {
    fields
        .iter()
        .any(|(field, other, _)| other.eq_ignore_ascii_case(name.as_bytes()) && goes_on(field, other))
}

#[cfg(test)]
mod tests {
    use hostler_wire::{Limits, ResponseHead};

    use super::*;

    fn edited(edits: Vec<Edit>) -> Vec<String> {
        shown(Edits { own: edits, ..Edits::default() })
    }

    fn shown(edits: Edits) -> Vec<String> {
        let mut head = ResponseHead::default();
        head.parse(b"HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nA: 3\r\n\r\n", &Limits::default()).unwrap();
        let kept = head.fields.iter().filter(|(_, name, _)| edits.keeps(name));
        let line = |name: &[u8], value: &[u8]| {
            format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
        };
        let kept = kept.map(|(_, name, value)| line(name, value));
        kept.chain(edits.lines(&head.fields).map(|(name, value)| line(name.as_bytes(), value))).collect()
    }

    #[test]
    fn changes_are_made_in_their_order() {
        let set = |name: &'static str, value: &str| Edit::Set(name.into(), value.into());
        let add = |name: &'static str, value: &str| Edit::Add(name.into(), value.into());
        let default = |name: &'static str, value: &str| Edit::Default(name.into(), value.into());
        let remove = |name: &'static str| Edit::Remove(name.into());
        let cases: Vec<(Vec<Edit>, &[&str])> = vec![
            (vec![], &["A=1", "B=2", "A=3"]),
            (vec![remove("a")], &["B=2"]),
            (vec![set("a", "x"), add("A", "y")], &["B=2", "a=x", "A=y"]),
            (vec![add("c", "x"), remove("C")], &["A=1", "B=2", "A=3"]),
            (vec![default("b", "x"), default("c", "y"), default("C", "z")], &["A=1", "B=2", "A=3", "c=y"]),
            (vec![remove("b"), default("b", "x")], &["A=1", "A=3", "b=x"]),
        ];
        for (edits, expected) in cases {
            assert_eq!(edited(edits.clone()), expected, "{edits:?}");
        }
    }

    #[test]
    fn yielding_changes_only_add_fields_that_the_head_does_not_have() {
        let own = vec![
            Edit::Remove("a".into()),
            Edit::Set("b".into(), b"x".to_vec()),
            Edit::Set("c".into(), b"y".to_vec()),
            Edit::Add("b".into(), b"z".to_vec()),
            Edit::Default("a".into(), b"z".to_vec()),
        ];
        assert_eq!(shown(Edits { own, yields: true, ..Edits::default() }), ["A=1", "B=2", "A=3", "c=y"]);
    }

    #[test]
    fn yielding_changes_let_no_cache_store_what_the_head_forbids() {
        let own = vec![
            Edit::Set("CDN-Cache-Control".into(), b"x".to_vec()),
            Edit::Add("surrogate-control".into(), b"x".to_vec()),
            Edit::Default("X-Accel-Expires".into(), b"x".to_vec()),
            Edit::Set("Cache-Controls".into(), b"y".to_vec()),
        ];
        let kept = Edits { own, yields: true, ..Edits::default() };
        assert_eq!(shown(kept.clone()), ["A=1", "B=2", "A=3", "Cache-Controls=y"]);
        assert_eq!(shown(Edits { yields: false, ..kept }).len(), 7);
    }
}
