//! The answer to a request, and what the client gets if there is none. Knows no routes and no client protocol.

use std::sync::Arc;

use hostler_wire::{ResponseHead, Whole};

use super::fallback::FallbackAnswer;
use super::refusal::Refusal;
use crate::cache::SharedBody;
use crate::exchange::BodySource;
use crate::proxy::CallBox;

/// Where the answer to a request comes from.
pub enum Answer {
    /// A member. The head of its answer has arrived.
    Member(CallBox),
    /// A member that has switched protocols with a 101.
    Tunnel(CallBox),
    /// Hostler itself, with a body in memory.
    Whole(Whole),
    /// Hostler itself, with a body that is read in pieces, such as a large file.
    Streamed(Box<Streamed>),
    /// A member. Other clients read the same answer from memory.
    Shared(Box<SharedBody>),
}

impl Answer {
    /// An answer from memory. It is streamed if its route encodes answers.
    pub(super) fn of_own(whole: Whole, is_encoded: bool) -> Self {
        if !is_encoded {
            return Self::Whole(whole);
        }
        let Whole { head, body } = whole;
        let (head, length) = (Arc::unwrap_or_clone(head), body.len() as u64);
        Self::Streamed(Box::new(Streamed { head, length, body: Box::new(body) }))
    }
}

/// An answer of Hostler's own whose body is read in pieces.
pub struct Streamed {
    /// Has no fields that frame the message (`Content-Length`, `Transfer-Encoding`).
    pub head: ResponseHead,
    /// The length of the body. For HEAD, the length that a GET would have.
    pub length: u64,
    pub body: Box<dyn BodySource>,
}

/// What a client gets if there is no answer.
pub struct Failed {
    pub refusal: Refusal,
    /// The route's fallback for this request.
    pub fallback: Option<FallbackAnswer>,
}

impl<E: Into<Refusal>> From<E> for Failed {
    fn from(refusal: E) -> Self {
        Self { refusal: refusal.into(), fallback: None }
    }
}
