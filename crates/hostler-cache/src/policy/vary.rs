//! Which requests a stored response matches: `Vary` (RFC 9111 section 4.1), the scheme, and the route. Knows no other fields.

use hostler_wire::is_token;
use serde::{Deserialize, Serialize};

use super::NotStored;
use super::told::ToldFields;
use crate::Head;

/// The fields by which a response was selected, with their values in its request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Vary {
    /// The request came over TLS, as its member was told.
    pub secure: bool,
    /// Which route selected it, if several routes have the same URL. 0: the one that has no conditions.
    pub route: u64,
    /// Sorted by name, without duplicates.
    pub fields: Box<[Selecting]>,
}

/// A field by which a response was selected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selecting {
    /// Its name in lower case.
    pub name: Box<str>,
    /// Its value in the request, in a form in which equal values have equal bytes. `None`: the request does not have the
    /// field.
    pub value: Option<Box<[u8]>>,
}

/// What selects a response besides the fields of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestSide {
    /// As in [`Vary`].
    pub secure: bool,
    /// As in [`Vary`].
    pub route: u64,
    /// The fields that tell the member of another URL. They count as named in `Vary`.
    pub told: ToldFields,
}

impl Vary {
    /// The `Vary` of a response and its request. The request is the one that the member saw, with the fields that Hostler
    /// added (`X-Geo-*`) or removed.
    ///
    /// Errors: [`NotStored::Vary`], for `Vary: *` and for an invalid name.
    pub fn of(answer: &impl Head, request: &impl Head, side: RequestSide) -> Result<Self, NotStored> {
        let mut names = Vec::new();
        for name in answer.lines("vary").flat_map(members) {
            // An invalid name cannot be compared, so it counts as `*`.
            if name == b"*" || !is_token(name) {
                return Err(NotStored::Vary);
            }
            if is_for_one_request(name) {
                return Err(NotStored::Vary);
            }
            names.push(String::from_utf8_lossy(name).to_ascii_lowercase().into_boxed_str());
        }
        names.extend(side.told.names().map(Box::<str>::from));
        names.sort_unstable();
        names.dedup();
        let selecting = |name: Box<str>| Selecting { value: said(request, &name), name };
        let RequestSide { secure, route, .. } = side;
        Ok(Self { secure, route, fields: names.into_iter().map(selecting).collect() })
    }

    /// Whether the response also matches this request, again as its member would see it.
    pub fn matches(&self, request: &impl Head, side: RequestSide) -> bool {
        (self.secure, self.route) == (side.secure, side.route)
            && side.told.names().all(|name| self.fields.iter().any(|field| &*field.name == name))
            && self.fields.iter().all(|field| says(request, field))
    }

    /// Its bytes on the heap, for a store with a limit.
    pub fn size(&self) -> usize {
        let heap = |field: &Selecting| field.name.len() + field.value.as_ref().map_or(0, |value| value.len());
        std::mem::size_of_val(&*self.fields) + self.fields.iter().map(heap).sum::<usize>()
    }
}

/// Whether the `Vary` of a 304 names a field that the stored one does not name.
pub fn varies_more(not_modified: &impl Head, stored: &impl Head) -> bool {
    let is_known =
        |name: &[u8]| stored.lines("vary").flat_map(members).any(|known| known.eq_ignore_ascii_case(name));
    not_modified.lines("vary").flat_map(members).any(|name| !is_known(name))
}

/// The first selecting field that is different in each request. A response that varies by such a field is never found
/// again, and would only use memory.
pub fn varies_by_each_request(answer: &impl Head) -> Option<&str> {
    let named = answer.lines("vary").flat_map(members).find(|name| is_for_one_request(name));
    named.and_then(|name| std::str::from_utf8(name).ok())
}

fn is_for_one_request(name: &[u8]) -> bool {
    FOR_ONE_REQUEST.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(name))
}

/// Ids and trace contexts of requests, and times.
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

/// The fields with a single value, in which a comma has no meaning. Node joins the lines of all other fields with a comma. So in those, white
/// space around commas has no meaning, and one line `a, b` is equal to two lines `a` and `b`.
const SINGLE: &[&str] = &[
    "authorization",
    "content-type",
    "cookie",
    "date",
    "from",
    "host",
    "if-modified-since",
    "if-unmodified-since",
    "max-forwards",
    "origin",
    "proxy-authorization",
    "range",
    "referer",
    "user-agent",
];

fn is_list(name: &str) -> bool {
    !SINGLE.contains(&name)
}

/// Whether the values of this field are case-sensitive. Names of codings and of languages are not.
fn has_case(name: &str) -> bool {
    !matches!(name, "accept-encoding" | "accept-language")
}

/// Whether the order of the members does not matter. Codings are a set; languages are one by the RFC, but some servers
/// use their order.
fn is_set(name: &str) -> bool {
    name == "accept-encoding"
}

/// The value of a field in a request, in one form for all equivalent values (RFC 9111 section 4.1).
fn said(request: &impl Head, name: &str) -> Option<Box<[u8]>> {
    let lines: Vec<_> = request.lines(name).map(<[u8]>::trim_ascii).collect();
    if lines.is_empty() {
        return None;
    }
    if !is_list(name) {
        return Some(lines.join(LINE_BREAK).into());
    }
    // White space in quotes must stay. A list of thousands of members stays as it is as well: to sort it takes long.
    let is_long = lines.iter().copied().flat_map(parts).nth(MOST_SORTED).is_some();
    if is_long || lines.iter().any(|line| line.contains(&b'"')) {
        return Some(lines.join(&b", "[..]).into());
    }
    let mut parts: Vec<_> = lines.into_iter().flat_map(parts).map(<[u8]>::to_vec).collect();
    if !has_case(name) {
        parts.iter_mut().for_each(|part| part.make_ascii_lowercase());
    }
    if is_set(name) {
        parts.sort_unstable();
        parts.dedup();
    }
    Some(parts.join(&b", "[..]).into())
}

/// Whether the field of a request has this value, in the form that [`said`] makes. It mostly allocates nothing: each
/// cache hit compares `Accept-Encoding`.
fn says(request: &impl Head, field: &Selecting) -> bool {
    let name = &*field.name;
    let mut lines = request.lines(name);
    let (first, stored) = match (lines.next(), field.value.as_deref()) {
        (None, stored) => return stored.is_none(),
        (Some(_), None) => return false,
        (Some(first), Some(stored)) => (first, stored),
    };
    let has_one_line = lines.next().is_none();
    if first == stored && has_one_line {
        return true;
    }
    if !is_list(name) {
        let lines = || request.lines(name).map(<[u8]>::trim_ascii);
        return if has_one_line {
            first.trim_ascii() == stored
        } else {
            lines().eq(stored.split(is_line_break))
        };
    }
    let sent = || request.lines(name).flat_map(parts);
    let is_odd = request.lines(name).any(|line| line.contains(&b'"')) || sent().nth(MOST_MEMBERS).is_some();
    let size = || sent().map(|one| one.len() + 2).sum::<usize>();
    if is_odd || is_set(name) && size() > LONGEST_SET {
        return said(request, name).as_deref() == Some(stored);
    }
    // The stored form has two bytes between its members, and of a set each member once. A stored value whose length cannot fit is not compared:
    // another client may have made it 64 KB long.
    let (size, stored_size) = (size(), stored.len() + 2);
    if stored_size > size || !is_set(name) && stored_size < size {
        return false;
    }
    let is_same = |one: &[u8], other: &[u8]| {
        if has_case(name) { one == other } else { one.eq_ignore_ascii_case(other) }
    };
    if is_set(name) {
        return sent().all(|one| parts(stored).any(|other| is_same(one, other)))
            && parts(stored).all(|other| sent().any(|one| is_same(one, other)));
    }
    let mut others = parts(stored);
    sent().all(|one| others.next().is_some_and(|other| is_same(one, other))) && others.next().is_none()
}

/// The most members of a list that is compared as it was sent. A longer list is brought into the stored form first.
const MOST_MEMBERS: usize = 16;
/// The most bytes of a set that is compared as it was sent: each member is compared with all others.
const LONGEST_SET: usize = 1024;
/// The most members of a list that is brought into one form. The lines of a longer list are only joined.
const MOST_SORTED: usize = 64;

/// Separates the lines of a field with one value. No value contains it. With a comma, two lines would be equal to one
/// line that has the comma in its value, and a worker does not read these alike: Node uses the first of two `User-Agent`.
const LINE_BREAK: &[u8] = b"\n";

fn is_line_break(byte: &u8) -> bool {
    LINE_BREAK.contains(byte)
}

/// The members of a list, also those that are empty. By RFC 9110 section 5.6.1 these mean nothing. But a worker that uses
/// the first member as it is reads `,en` and `en` differently.
fn parts(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

/// The members of a list that are not empty.
fn members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}
