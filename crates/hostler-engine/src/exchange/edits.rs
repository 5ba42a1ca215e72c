//! Changes to the fields of a head on its way through: of a request to its member, of an answer to its client. Knows neither.

use std::borrow::Cow;
use std::sync::Arc;

use hostler_wire::Fields;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Every line with this name goes.
    Remove(Cow<'static, str>),
    /// The one line with this name.
    Set(Cow<'static, str>, Vec<u8>),
    /// One more line.
    Add(Cow<'static, str>, Vec<u8>),
    /// A line for a head that has none with this name.
    Default(Cow<'static, str>, Vec<u8>),
}

impl Edit {
    fn name(&self) -> &str {
        match self {
            Self::Remove(name) | Self::Set(name, _) | Self::Add(name, _) | Self::Default(name, _) => name,
        }
    }
}

/// Changes in the order in which they are made: those of the route, then those of this exchange alone. Mostly there are none, and
/// then it costs nothing.
#[derive(Debug, Clone, Default)]
pub struct Edits {
    /// The route's.
    pub shared: Option<Arc<[Edit]>>,
    /// This exchange's.
    pub own: Vec<Edit>,
    /// What the head says by itself stands: nothing of it is removed or replaced.
    pub yields: bool,
}

impl Edits {
    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.shared.is_none() && self.own.is_empty()
    }

    /// The exchange's own are forgotten with it, and the route's.
    pub fn clear(&mut self) {
        self.shared = None;
        self.own.clear();
        self.yields = false;
    }

    fn iter(&self) -> impl Iterator<Item = &Edit> {
        self.shared.iter().flat_map(|shared| shared.iter()).chain(&self.own)
    }

    /// Whether a line that has come stays.
    pub fn keeps(&self, name: &[u8]) -> bool {
        self.yields
            || !self.iter().any(|edit| match edit {
                Edit::Remove(removed) | Edit::Set(removed, _) => {
                    removed.as_bytes().eq_ignore_ascii_case(name)
                }
                Edit::Add(..) | Edit::Default(..) => false,
            })
    }

    /// Whether one of them writes a line under this name, and none under the other that a client has sent.
    pub fn writes_other_than(&self, sent: &[u8], name: &[u8]) -> bool {
        let is_about = |edit: &Edit, name: &[u8]| edit.name().as_bytes().eq_ignore_ascii_case(name);
        self.iter().any(|edit| is_about(edit, name)) && !self.iter().any(|edit| is_about(edit, sent))
    }

    /// The lines that are new, for a head that came with `fields`.
    pub fn lines<'a>(&'a self, fields: &'a Fields) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.iter().enumerate().filter_map(move |(at, edit)| {
            let (name, value) = match edit {
                Edit::Remove(_) => return None,
                Edit::Set(name, _) | Edit::Add(name, _) if self.yields && is_there(fields, name) => {
                    return None;
                }
                Edit::Set(name, value) | Edit::Add(name, value) => (name, value),
                Edit::Default(name, _) if self.has(fields, name, at) => return None,
                Edit::Default(name, value) => (name, value),
            };
            (!self.is_undone(name, at)).then_some((&**name, &**value))
        })
    }

    /// Whether there is a line with this name before the change at `end` is made.
    fn has(&self, fields: &Fields, name: &str, end: usize) -> bool {
        let mut has = is_there(fields, name);
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

    /// Whether a later change takes the line away again.
    fn is_undone(&self, name: &str, at: usize) -> bool {
        self.iter().skip(at + 1).any(|edit| match edit {
            Edit::Remove(other) | Edit::Set(other, _) => other.eq_ignore_ascii_case(name),
            Edit::Add(..) | Edit::Default(..) => false,
        })
    }
}

/// Whether a line with this name goes on: one that `Connection` names was meant for us alone.
fn is_there(fields: &Fields, name: &str) -> bool {
    fields.iter().any(|(field, other, _)| !field.listed && other.eq_ignore_ascii_case(name.as_bytes()))
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
    fn changes_that_yield_only_say_what_the_head_does_not() {
        let own = vec![
            Edit::Remove("a".into()),
            Edit::Set("b".into(), b"x".to_vec()),
            Edit::Set("c".into(), b"y".to_vec()),
            Edit::Add("b".into(), b"z".to_vec()),
            Edit::Default("a".into(), b"z".to_vec()),
        ];
        assert_eq!(shown(Edits { own, yields: true, ..Edits::default() }), ["A=1", "B=2", "A=3", "c=y"]);
    }
}
