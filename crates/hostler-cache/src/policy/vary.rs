//! Which requests an answer is for: `Vary` (RFC 9111 section 4.1), and the scheme. Knows neither's other fields.

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
        for name in answer.lines("vary").flat_map(members) {
            // What is no name we could not compare: as good as `*`.
            if name == b"*" || !name.iter().all(u8::is_ascii_graphic) {
                return Err(NotStored::Vary);
            }
            if is_for_one_request(name) {
                return Err(NotStored::Vary);
            }
            names.push(String::from_utf8_lossy(name).to_ascii_lowercase().into_boxed_str());
        }
        names.sort_unstable();
        names.dedup();
        let selecting = |name: Box<str>| Selecting { value: said(request, &name), name };
        Ok(Self { secure, fields: names.into_iter().map(selecting).collect() })
    }

    /// Whether the answer is for this request too, likewise as its member would see it.
    pub fn matches(&self, request: &impl Head, secure: bool) -> bool {
        self.secure == secure && self.fields.iter().all(|field| says(request, field))
    }

    /// Bytes on the heap, for a store that is bounded.
    pub fn size(&self) -> usize {
        let heap = |field: &Selecting| field.name.len() + field.value.as_ref().map_or(0, |value| value.len());
        std::mem::size_of_val(&*self.fields) + self.fields.iter().map(heap).sum::<usize>()
    }
}

/// The first field that an answer is chosen by and that differs for each request: what varies by that is never found again, and would
/// only take the room of others.
pub fn varies_by_each_request(answer: &impl Head) -> Option<&str> {
    let named = answer.lines("vary").flat_map(members).find(|name| is_for_one_request(name));
    named.and_then(|name| std::str::from_utf8(name).ok())
}

fn is_for_one_request(name: &[u8]) -> bool {
    FOR_ONE_REQUEST.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(name))
}

/// Names of requests and of the traces that they are part of, and when they came.
const FOR_ONE_REQUEST: [&str; 24] = [
    "x-request-id",
    "request-id",
    "x-correlation-id",
    "correlation-id",
    "x-trace-id",
    "x-span-id",
    "traceparent",
    "tracestate",
    "b3",
    "x-b3-traceid",
    "x-b3-spanid",
    "x-b3-parentspanid",
    "uber-trace-id",
    "sentry-trace",
    "x-datadog-trace-id",
    "x-datadog-parent-id",
    "x-cloud-trace-context",
    "x-amzn-trace-id",
    "x-amz-cf-id",
    "cf-ray",
    "x-vcap-request-id",
    "x-request-start",
    "x-queue-start",
    "idempotency-key",
];

/// Names of codings and of languages have no case.
fn has_case(name: &str) -> bool {
    !matches!(name, "accept-encoding" | "accept-language")
}

/// Codings are a set; languages are one by the book, but some servers heed their order.
fn is_set(name: &str) -> bool {
    name == "accept-encoding"
}

/// What a request says in a field, in one form for all that mean the same (RFC 9111 section 4.1).
fn said(request: &impl Head, name: &str) -> Option<Box<[u8]>> {
    let lines: Vec<_> = request.lines(name).collect();
    if lines.is_empty() {
        return None;
    }
    // White space within quotes is not ours to remove.
    if lines.iter().any(|line| line.contains(&b'"')) {
        return Some(lines.join(&b", "[..]).into());
    }
    let mut parts: Vec<_> = lines.into_iter().flat_map(members).map(<[u8]>::to_vec).collect();
    if !has_case(name) {
        parts.iter_mut().for_each(|part| part.make_ascii_lowercase());
    }
    if is_set(name) {
        parts.sort_unstable();
        parts.dedup();
    }
    Some(parts.join(&b", "[..]).into())
}

/// Whether a request says in a field what is in it here, as [`said`] has put it. Mostly nothing is allocated for it:
/// `Accept-Encoding` is looked at with every hit.
fn says(request: &impl Head, field: &Selecting) -> bool {
    let name = &*field.name;
    let mut lines = request.lines(name);
    let (first, stored) = match (lines.next(), field.value.as_deref()) {
        (None, stored) => return stored.is_none(),
        (Some(_), None) => return false,
        (Some(first), Some(stored)) => (first, stored),
    };
    if first == stored && lines.next().is_none() {
        return true;
    }
    let sent = || request.lines(name).flat_map(members);
    let is_odd = request.lines(name).any(|line| line.contains(&b'"')) || sent().nth(MOST_MEMBERS).is_some();
    if is_odd {
        return said(request, name).as_deref() == Some(stored);
    }
    let is_same = |one: &[u8], other: &[u8]| {
        if has_case(name) { one == other } else { one.eq_ignore_ascii_case(other) }
    };
    if is_set(name) {
        return sent().all(|one| members(stored).any(|other| is_same(one, other)))
            && members(stored).all(|other| sent().any(|one| is_same(one, other)));
    }
    let mut others = members(stored);
    sent().all(|one| others.next().is_some_and(|other| is_same(one, other))) && others.next().is_none()
}

/// More are not compared each with each.
const MOST_MEMBERS: usize = 16;

/// The members of a list.
fn members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}
