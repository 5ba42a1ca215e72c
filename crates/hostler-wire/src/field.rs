//! Header fields as spans of the bytes they came in, each classified once. Knows names, not what they are used for.

mod name;

use std::collections::HashSet;

use crate::grammar::tokens;
use crate::write::write_field;

use name::NAMES;
pub use name::Name;

/// A part of a head's bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// The position of `part` in `whole`. `part` must be borrowed from `whole`.
    pub(crate) fn of(whole: &[u8], part: &[u8]) -> Self {
        let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
        debug_assert!(part.is_empty() || start + part.len() <= whole.len(), "a span lies in its head");
        // Heads are limited to far less than 4 GiB. An empty part may have any address.
        if part.is_empty() { Self::default() } else { Self { start: start as u32, len: part.len() as u32 } }
    }

    pub(crate) fn at(start: usize, len: usize) -> Self {
        Self { start: start as u32, len: len as u32 }
    }

    pub(crate) fn get<'a>(&self, whole: &'a [u8]) -> &'a [u8] {
        &whole[self.start as usize..(self.start + self.len) as usize]
    }

    pub(crate) fn end(&self) -> usize {
        (self.start + self.len) as usize
    }

    pub(crate) fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by as u32, len: self.len }
    }
}

/// One field line.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub(crate) name: Span,
    pub(crate) value: Span,
    /// The end of the line, CR LF included. 0 if the line may not be in the form that we write (trailers).
    line_end: u32,
    /// The class of the name.
    pub known: Name,
    /// `Connection` names it, so it is for this hop only.
    pub listed: bool,
    /// Hostler has added it; the sender of the head has not.
    pub own: bool,
}

impl Field {
    /// The position of the value in [`Fields::bytes`].
    pub fn value(&self) -> std::ops::Range<usize> {
        let start = self.value.start as usize;
        start..start + self.value.len as usize
    }
}

/// The field lines of one head, in order.
#[derive(Debug, Clone)]
pub struct Fields {
    pub(crate) bytes: Vec<u8>,
    list: Vec<Field>,
    /// For each known name, the number of its first field, from 1. Most lookups are for names that are missing.
    first: [u16; NAMES],
    connection: Connection,
}

/// More options of `Connection` than this are looked up in a set of names. Comparing each with every field would cost far more than the rest
/// of the request.
const FEW_OPTIONS: usize = 16;

/// The room that a head keeps for the next one. Most heads need less.
const USUAL_BYTES: usize = 4 * 1024;
const USUAL_LINES: usize = 64;

/// The options of the `Connection` lines.
#[derive(Debug, Clone, Copy, Default)]
struct Connection {
    close: bool,
    keep_alive: bool,
    upgrade: bool,
}

impl Default for Fields {
    fn default() -> Self {
        Self { bytes: Vec::new(), list: Vec::new(), first: [0; NAMES], connection: Connection::default() }
    }
}

impl Fields {
    /// Frees unused memory. For a head that is stored for long.
    pub fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.list.shrink_to_fit();
    }

    /// Makes room for `lines` more lines of `bytes` bytes together.
    pub fn reserve(&mut self, lines: usize, bytes: usize) {
        self.list.reserve(lines);
        self.bytes.reserve(bytes);
    }

    /// The bytes of memory that the lines take, free room included.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.list.capacity() * size_of::<Field>()
    }

    /// Frees room over what a usual head needs. Keeps what is in use.
    pub(crate) fn free_room(&mut self) {
        self.bytes.shrink_to(USUAL_BYTES);
        self.list.shrink_to(USUAL_LINES);
    }

    pub(crate) fn clear(&mut self) {
        self.keep_bytes(0);
    }

    /// Removes all lines, and all bytes but the first ones.
    pub(crate) fn keep_bytes(&mut self, first: usize) {
        self.bytes.truncate(first);
        self.list.clear();
        self.first = [0; NAMES];
        self.connection = Connection::default();
    }

    /// Adds a field of the bytes that are already stored. `line_end` is the end of its line, CR LF included, or 0.
    pub(crate) fn push(&mut self, name: Span, value: Span, line_end: usize) {
        self.push_known(Name::of(name.get(&self.bytes)), name, value, line_end);
    }

    /// The same, for bytes that are not stored yet: see [`hold`](Self::hold).
    #[inline]
    pub(crate) fn push_known(&mut self, known: Name, name: Span, value: Span, line_end: usize) {
        let line_end = line_end as u32;
        self.list.push(Field { name, value, line_end, known, listed: false, own: false });
        let first = &mut self.first[known as usize];
        if *first == 0 {
            *first = self.list.len() as u16;
        }
    }

    /// Stores the bytes of all fields that were pushed. Call it once for each head, after the last `push_known`.
    pub(crate) fn hold(&mut self, head: &[u8]) {
        self.bytes.extend_from_slice(head);
        self.mark_listed();
    }

    /// Adds a field line that the sender did not send.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        // As a whole line, because consecutive lines are copied together.
        write_field(&mut self.bytes, name, value);
        let value = Span::at(start + name.len() + 2, value.len());
        self.push(Span::at(start, name.len()), value, self.bytes.len());
    }

    /// Adds a field line of Hostler's own (see [`Field::own`]).
    pub fn add_own(&mut self, name: &[u8], value: &[u8]) {
        self.add(name, value);
        if let Some(added) = self.list.last_mut() {
            added.own = true;
        }
    }

    /// Removes the fields for whose names `is_such` returns true.
    pub fn remove(&mut self, is_such: impl Fn(&[u8]) -> bool) {
        let Self { bytes, list, first, .. } = self;
        let before = list.len();
        list.retain(|field| !is_such(field.name.get(bytes)));
        if list.len() == before {
            return;
        }
        *first = [0; NAMES];
        for (at, field) in list.iter().enumerate().rev() {
            first[field.known as usize] = at as u16 + 1;
        }
    }

    /// Marks the fields that `Connection` names. Call it once, after the last `push`.
    pub(crate) fn mark_listed(&mut self) {
        let Self { bytes, list, first, connection } = self;
        let Some(start) = (first[Name::Connection as usize] as usize).checked_sub(1) else { return };
        let (mut compared, mut unmarked, mut lower) = (0, None, Vec::new());
        for at in start..list.len() {
            if list[at].known != Name::Connection {
                continue;
            }
            let value = list[at].value;
            // Node sends this with every response.
            if value.get(bytes).eq_ignore_ascii_case(b"keep-alive") {
                connection.keep_alive = true;
                continue;
            }
            for token in tokens(value.get(bytes)) {
                // The most common options name no field, so nothing needs to be marked.
                if token.eq_ignore_ascii_case(b"keep-alive") {
                    connection.keep_alive = true;
                    continue;
                }
                if token.eq_ignore_ascii_case(b"close") {
                    connection.close = true;
                    continue;
                }
                connection.upgrade |= token.eq_ignore_ascii_case(b"upgrade");
                compared += 1;
                if compared > FEW_OPTIONS {
                    let unmarked = unmarked.get_or_insert_with(|| names(list, bytes));
                    lower.clear();
                    lower.extend(token.iter().map(u8::to_ascii_lowercase));
                    if !unmarked.remove(&lower) {
                        continue;
                    }
                }
                for field in list.iter_mut() {
                    if !field.known.is_essential() && field.name.get(bytes).eq_ignore_ascii_case(token) {
                        field.listed = true;
                    }
                }
            }
        }
    }

    /// The bytes of all field lines, for callers that take many values at once.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of field lines.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no field lines.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Every field line: its class, its name as sent, its value without surrounding white space.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Field, &[u8], &[u8])> {
        self.list.iter().map(|field| (field, field.name.get(&self.bytes), field.value.get(&self.bytes)))
    }

    /// The values of all lines with a known name, in order.
    pub fn all(&self, name: Name) -> impl DoubleEndedIterator<Item = &[u8]> {
        let from = match self.first[name as usize] {
            0 => self.list.len(),
            first => usize::from(first) - 1,
        };
        self.list[from..]
            .iter()
            .filter(move |field| field.known == name)
            .map(|field| field.value.get(&self.bytes))
    }

    /// The values of all lines with any name, in order.
    pub fn values<'a>(&'a self, name: &str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let known = Name::of(name.as_bytes());
        let from = match (known, usize::from(self.first[known as usize])) {
            (Name::Other, _) => 0,
            (_, 0) => self.list.len(),
            (_, first) => first - 1,
        };
        let is_it = move |field: &&Field| match known {
            Name::Other => {
                field.known == known && field.name.get(&self.bytes).eq_ignore_ascii_case(name.as_bytes())
            }
            known => field.known == known,
        };
        self.list[from..].iter().filter(is_it).map(|field| field.value.get(&self.bytes))
    }

    /// The value of the first line with a known name.
    pub fn first(&self, name: Name) -> Option<&[u8]> {
        let at = usize::from(self.first[name as usize]).checked_sub(1)?;
        Some(self.list[at].value.get(&self.bytes))
    }

    /// Appends the lines for which `keep` returns true to `out`, byte for byte as they were sent. Consecutive lines are
    /// copied at once.
    pub fn copy_lines(&self, out: &mut Vec<u8>, mut keep: impl FnMut(&Field, &[u8]) -> bool) {
        let mut run = 0..0;
        for field in &self.list {
            if !keep(field, field.name.get(&self.bytes)) {
                continue;
            }
            let line = field.name.start as usize..field.line_end as usize;
            if line.start == run.end && field.line_end > 0 {
                run.end = line.end;
                continue;
            }
            out.extend_from_slice(&self.bytes[run.clone()]);
            run = line;
            if field.line_end == 0 {
                run = 0..0;
                write_field(out, field.name.get(&self.bytes), field.value.get(&self.bytes));
            }
        }
        out.extend_from_slice(&self.bytes[run]);
    }

    /// The value of the first line with any name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.values(name).next()
    }

    /// Whether `Connection` has the option `close`.
    pub fn says_close(&self) -> bool {
        self.connection.close
    }

    /// Whether `Connection` has the option `keep-alive`.
    pub fn says_keep_alive(&self) -> bool {
        self.connection.keep_alive
    }

    /// Whether `Connection` has the option `upgrade`. Without it, `Upgrade` has no meaning (RFC 9110 section 7.8).
    pub fn says_upgrade(&self) -> bool {
        self.connection.upgrade
    }
}

/// The names of all fields that `Connection` may name, in lower case.
fn names(list: &[Field], bytes: &[u8]) -> HashSet<Vec<u8>> {
    let fields = list.iter().filter(|field| !field.known.is_essential());
    fields.map(|field| field.name.get(bytes).to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, RequestHead};

    #[test]
    fn removed_fields_are_not_found_and_the_others_keep_their_positions() {
        let mut head = RequestHead::default();
        let text = "GET / HTTP/1.1\r\nVia: 1\r\nHost: a\r\nX-Geo-City: lie\r\nVia: 2\r\nReferer: b\r\nx-geo-x: lie\r\nHost: c\r\n\r\n";
        head.parse(text.as_bytes(), &Limits::default()).unwrap();
        let fields = &mut head.fields;
        fields.remove(|name| matches!(name, b"X-Geo-City" | b"x-geo-x" | b"Via"));
        fields.add_own(b"X-Geo-City", b"Paris");
        assert_eq!((fields.first(Name::Via), fields.all(Name::Via).count()), (None, 0));
        assert_eq!(fields.all(Name::Host).collect::<Vec<_>>(), [b"a", b"c"]);
        assert_eq!(
            (fields.first(Name::Referer), fields.get("x-geo-city")),
            (Some(&b"b"[..]), Some(&b"Paris"[..]))
        );
        let own: Vec<bool> = fields.iter().map(|(field, ..)| field.own).collect();
        assert_eq!(own, [false, false, false, true]);
        let mut copy = Vec::new();
        fields.copy_lines(&mut copy, |_, _| true);
        assert_eq!(
            String::from_utf8(copy).unwrap(),
            "Host: a\r\nReferer: b\r\nHost: c\r\nX-Geo-City: Paris\r\n"
        );
    }

    #[test]
    fn a_long_list_of_options_marks_the_same_fields_as_a_short_one() {
        let mut head = RequestHead::default();
        let others: String = (0..1000).map(|at| format!("o{at}, ")).collect();
        let text = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX-Last: 1\r\nX-Kept: 2\r\nConnection: {others}X-LAST, host, upgrade\r\nx-last: 3\r\n\r\n"
        );
        head.parse(text.as_bytes(), &Limits::default()).unwrap();
        let listed = head.fields.iter().filter(|(field, ..)| field.listed).map(|(_, name, _)| name);
        assert_eq!(listed.collect::<Vec<_>>(), [&b"X-Last"[..], b"x-last"]);
        assert!(head.fields.connection.upgrade);
    }

    #[test]
    fn a_field_name_matches_in_any_case_and_only_whole() {
        for known in [Name::Te, Name::Via, Name::ContentMd5, Name::AcceptEncoding, Name::CfConnectingIp] {
            let text = known.as_str();
            for same in [text.to_owned(), text.to_ascii_uppercase()] {
                assert_eq!(Name::of(same.as_bytes()), known);
            }
            for at in 0..text.len() {
                for byte in (0..=u8::MAX).filter(|byte| !byte.eq_ignore_ascii_case(&text.as_bytes()[at])) {
                    let mut other = text.as_bytes().to_vec();
                    other[at] = byte;
                    assert_ne!(Name::of(&other), known, "{}", other.escape_ascii());
                }
            }
            assert_eq!(Name::of(&text.as_bytes()[1..]), Name::Other);
        }
        assert_eq!(Name::of(b""), Name::Other);
    }

    #[test]
    fn added_fields_look_like_received_ones() {
        let mut fields = Fields::default();
        fields.add(b"A", b"1");
        fields.add(b"Via", b"");
        fields.add(b"A", b"2");
        let lines = |keep: fn(&Field, &[u8]) -> bool| {
            let mut out = Vec::new();
            fields.copy_lines(&mut out, keep);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(lines(|_, _| true), "A: 1\r\nVia: \r\nA: 2\r\n");
        assert_eq!(lines(|field, _| field.known != Name::Via), "A: 1\r\nA: 2\r\n");
        assert_eq!((fields.get("a"), fields.first(Name::Via)), (Some(&b"1"[..]), Some(&b""[..])));
    }
}
