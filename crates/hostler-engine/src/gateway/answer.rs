//! What answers a request, and what a client gets where nothing does. Knows no routes and no client protocol.

use std::sync::Arc;

use hostler_wire::ResponseHead;

use super::fallback::StandIn;
use super::refusal::Refusal;
use crate::cache::SharedBody;
use crate::exchange::{BodySource, Whole};
use crate::proxy::Call;

/// What answers a request.
pub enum Answer {
    /// A member, whose answer's head has come.
    Member(Box<Call>),
    /// A member, which has switched protocols with 101.
    Tunnel(Box<Call>),
    /// We ourselves, with what lies in memory.
    Whole(Whole),
    /// We ourselves, with more than lies in memory.
    Streamed(Box<Streamed>),
    /// A member, who gives it to others as well.
    Shared(Box<SharedBody>),
}

impl From<Box<Call>> for Answer {
    fn from(call: Box<Call>) -> Self {
        if call.has_switched() { Self::Tunnel(call) } else { Self::Member(call) }
    }
}

impl Answer {
    /// What lies in memory; bit by bit where its route has it encoded.
    pub(super) fn of_own(whole: Whole, is_encoded: bool) -> Self {
        if !is_encoded {
            return Self::Whole(whole);
        }
        let Whole { head, body } = whole;
        let (head, length) = (Arc::unwrap_or_clone(head), body.len() as u64);
        Self::Streamed(Box::new(Streamed { head, length, body: Box::new(body) }))
    }
}

/// An answer of our own whose body comes bit by bit.
pub struct Streamed {
    /// Its head, without fields that frame the message.
    pub head: ResponseHead,
    /// How long the body is; with an answer to HEAD, how long it would be.
    pub length: u64,
    /// Where it comes from.
    pub body: Box<dyn BodySource>,
}

/// What a client gets instead of an answer.
pub struct Failed {
    /// Why there is none.
    pub refusal: Refusal,
    /// What the route has for the case.
    pub fallback: Option<StandIn>,
}

impl<E: Into<Refusal>> From<E> for Failed {
    fn from(refusal: E) -> Self {
        Self { refusal: refusal.into(), fallback: None }
    }
}
