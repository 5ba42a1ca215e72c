//! Asking whether a stored answer is still good, and what the word that it is changes of it (RFC 9111 sections 3.1, 3.2, 4.3).

use super::Rules;
use crate::Head;

/// The lines that a request for validation carries instead of the client's own `If-None-Match`, `If-Modified-Since`, `If-Range` and
/// `Range`. With neither, the request is an ordinary one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Validators<'a> {
    /// The value of `If-None-Match`.
    pub if_none_match: Option<&'a [u8]>,
    /// The value of `If-Modified-Since`.
    pub if_modified_since: Option<&'a [u8]>,
}

/// Which lines of an answer are stored with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    drops: Vec<Box<str>>,
}

impl<'a> Validators<'a> {
    /// Of a stored answer.
    pub fn of(stored: &'a impl Head) -> Self {
        Self {
            if_none_match: stored.lines("etag").next(),
            if_modified_since: stored.lines("last-modified").next(),
        }
    }
}

/// Whether a 304 is about the stored answer (RFC 9111 section 4.3.4). If not, it is about something that is gone: what is stored is
/// forgotten, and the request sent once more without validators.
pub fn confirms(stored: &impl Head, not_modified: &impl Head) -> bool {
    let new = not_modified.lines("etag").next();
    new.is_none() || new == stored.lines("etag").next()
}

impl Kept {
    /// Of an answer that is about to be stored.
    pub fn of(rules: &Rules, answer: &impl Head) -> Self {
        let _ = (rules, answer);
        Self::default()
    }

    /// Whether a line with this name, in any case, is stored. Lines that `Connection` names are the caller's to leave out, as is
    /// what frames the message.
    pub fn keeps(&self, name: &[u8]) -> bool {
        !self.drops.iter().any(|drop| drop.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether a line with this name in a 304 takes the place of all that are stored with it (RFC 9111 section 3.2).
    pub fn replaces(name: &[u8]) -> bool {
        !name.eq_ignore_ascii_case(b"content-length")
    }
}
