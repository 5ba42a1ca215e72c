//! Which requests an answer is for: `Vary` (RFC 9111 section 4.1), and the scheme. Knows neither's other fields.

use serde::{Deserialize, Serialize};

use super::NotStored;
use crate::Head;

/// The fields that an answer was chosen by, with what the request for it said in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Vary {
    /// The request came over TLS, as far as its member was told.
    pub secure: bool,
    /// Names in lower case, sorted, none twice; and the values, normalised. None: there was no such field.
    pub fields: Box<[(Box<str>, Option<Box<[u8]>>)]>,
}

impl Vary {
    /// Of an answer and the request for it: as the member saw that, with what Hostler added (`X-Geo-*`) or removed.
    pub fn of(answer: &impl Head, request: &impl Head, secure: bool) -> Result<Self, NotStored> {
        let _ = request;
        match answer.lines("vary").next() {
            None => Ok(Self { secure, fields: Box::default() }),
            Some(_) => Err(NotStored::Vary),
        }
    }

    /// Whether the answer is for this request too, likewise as its member would see it.
    pub fn matches(&self, request: &impl Head, secure: bool) -> bool {
        let _ = request;
        self.secure == secure && self.fields.is_empty()
    }

    /// Bytes on the heap, for a store that is bounded.
    pub fn size(&self) -> usize {
        let one = |(name, value): &(Box<str>, Option<Box<[u8]>>)| {
            name.len() + value.as_ref().map_or(0, |v| v.len()) + 40
        };
        self.fields.iter().map(one).sum()
    }
}
