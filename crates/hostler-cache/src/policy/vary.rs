//! Which requests an answer is for: `Vary` (RFC 9111 section 4.1), and the scheme. Knows neither's other fields.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::NotStored;
use crate::Head;

/// The fields that an answer was chosen by, with what the request for it said in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Vary {
    /// The request came over TLS, as far as its member was told.
    pub secure: bool,
    /// Sorted by name, none twice.
    pub fields: Box<[Selecting]>,
}

/// A field that an answer was chosen by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selecting {
    /// In lower case.
    pub name: Box<str>,
    /// What the request had in it, in the form in which equal ones are equal. None: it had none.
    pub value: Option<Box<[u8]>>,
}

impl Vary {
    /// Of an answer and the request for it: as the member saw that, with what Hostler added (`X-Geo-*`) or removed.
    pub fn of(answer: &impl Head, request: &impl Head, secure: bool) -> Result<Self, NotStored> {
        let mut names = Vec::new();
        for name in answer.lines("vary").flat_map(|line| line.split(|&byte| byte == b',')) {
            match name.trim_ascii() {
                b"" => {}
                // What is no name we could not compare: as good as `*`.
                name if name == b"*" || !name.iter().all(u8::is_ascii_graphic) => {
                    return Err(NotStored::Vary);
                }
                name => names.push(String::from_utf8_lossy(name).to_ascii_lowercase().into_boxed_str()),
            }
        }
        names.sort_unstable();
        names.dedup();
        let selecting =
            |name: Box<str>| Selecting { value: said(request, &name).map(|said| said.into()), name };
        Ok(Self { secure, fields: names.into_iter().map(selecting).collect() })
    }

    /// Whether the answer is for this request too, likewise as its member would see it.
    pub fn matches(&self, request: &impl Head, secure: bool) -> bool {
        let is_same = |field: &Selecting| said(request, &field.name).as_deref() == field.value.as_deref();
        self.secure == secure && self.fields.iter().all(is_same)
    }

    /// Bytes on the heap, for a store that is bounded.
    pub fn size(&self) -> usize {
        let heap = |field: &Selecting| field.name.len() + field.value.as_ref().map_or(0, |value| value.len());
        std::mem::size_of_val(&*self.fields) + self.fields.iter().map(heap).sum::<usize>()
    }
}

/// What a request says in a field, in one form for all that mean the same (RFC 9111 section 4.1).
fn said<'a>(request: &'a impl Head, name: &'a str) -> Option<Cow<'a, [u8]>> {
    let mut lines = request.named(name);
    let first = lines.next()?;
    let has_more = lines.next().is_some();
    // Codings are a set, and their names have no case. Languages have none either, but some servers heed their order.
    let is_set = name == "accept-encoding";
    let has_no_case = is_set || name == "accept-language";
    // White space within quotes is not ours to remove; within a cookie it is rarer than cookies are long.
    let is_plain =
        |line: &[u8]| !line.contains(&b',') && (!has_no_case || !line.iter().any(u8::is_ascii_uppercase));
    if !has_more && (is_plain(first) || first.contains(&b'"')) {
        return Some(Cow::Borrowed(first));
    }
    let members =
        request.named(name).flat_map(|line| line.split(|&byte| byte == b',')).map(<[u8]>::trim_ascii);
    let mut members: Vec<_> = members.filter(|member| !member.is_empty()).collect();
    if is_set {
        members.sort_unstable();
    }
    let mut all = members.join(&b", "[..]);
    if has_no_case {
        all.make_ascii_lowercase();
    }
    Some(Cow::Owned(all))
}
