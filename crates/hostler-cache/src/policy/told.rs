//! The fields in which a proxy tells of a URL, and which of them tell a member of another URL than that of the key. Knows no responses.

/// What `Forwarded` (RFC 7239) says besides the addresses of clients and proxies, as if it were a field. No field has such a name.
pub const FORWARDED_URL: &str = "forwarded;url";

/// The names, as [`Vary`](super::Vary) has them.
const NAMES: [&str; 10] = [
    FORWARDED_URL,
    "x-forwarded-host",
    "x-forwarded-path",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-scheme",
    "x-original-host",
    "x-original-url",
    "x-rewrite-url",
];

/// The fields of a request in which a trusted proxy tells the member of another URL than that of the key. A response may
/// repeat what they say, so they count as named in `Vary`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToldFields(u16);

impl ToldFields {
    /// Whether this is the name of such a field, in any case.
    pub fn has_name(name: &[u8]) -> bool {
        position(name).is_some()
    }

    /// Notes the field with this name.
    pub fn note(&mut self, name: &[u8]) {
        if let Some(at) = position(name) {
            self.0 |= 1 << at;
        }
    }

    /// Their names in lower case, in alphabetical order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().enumerate().filter(move |&(at, _)| self.0 & (1 << at) != 0).map(|(_, name)| *name)
    }
}

fn position(name: &[u8]) -> Option<usize> {
    NAMES.iter().position(|one| one.as_bytes().eq_ignore_ascii_case(name))
}
