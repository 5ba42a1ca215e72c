//! An answer's body on its way to a client, whoever gives it. Knows no client protocol.

use std::task::{Context, Poll};

use hostler_wire::{BodyLength, CallError, Fields, ResponseHead};

use crate::exchange::{BodyError, Downstream, Exchange};
use crate::gateway::{Refusal, Streamed};
use crate::proxy::Call;

/// An answer: its head, and its body as it comes.
#[expect(clippy::large_enum_variant, reason = "mostly it is the large one, and a box is an allocation")]
pub(super) enum Supply {
    /// From a member.
    Member(Call),
    /// Of our own.
    Own(Box<Streamed>),
}

/// Why a body breaks off.
pub(super) enum Trouble {
    Member(CallError),
    Own(std::io::Error),
}

impl Supply {
    /// The answer's head.
    pub fn head(&self) -> &ResponseHead {
        match self {
            Self::Member(call) => call.answer(),
            Self::Own(streamed) => &streamed.head,
        }
    }

    /// The length of the body.
    pub fn length(&self) -> BodyLength {
        match self {
            Self::Member(call) => call.body_length(),
            Self::Own(streamed) => BodyLength::Known(streamed.length),
        }
    }

    /// It ends when the client leaves.
    pub fn is_endless(&self) -> bool {
        matches!(self, Self::Member(call) if call.is_event_stream())
    }

    /// Sends what is left of the request; ready when there is nothing left to send.
    pub fn poll_upload<D: Downstream>(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut D,
    ) -> Poll<Result<(), BodyError>> {
        match self {
            Self::Member(call) => call.poll_upload(cx, client),
            Self::Own(_) => Poll::Ready(Ok(())),
        }
    }

    /// Appends some of the body; `true` when it is complete.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, Trouble>> {
        match self {
            Self::Member(call) => call.poll_body(cx, into, max).map_err(Trouble::Member),
            Self::Own(streamed) => streamed.body.poll_body(cx, into, max).map_err(Trouble::Own),
        }
    }

    /// The trailers of a body that is complete.
    pub fn trailers(&self) -> Option<&Fields> {
        match self {
            Self::Member(call) => call.trailers(),
            Self::Own(_) => None,
        }
    }

    /// All has come: a member's slot is free from here on, whether or not the client has all.
    pub fn finish(self, exchange: &mut Exchange) {
        if let Self::Member(call) = self {
            call.finish(exchange);
        }
    }

    /// The client has gone.
    pub fn abandon(self, exchange: &mut Exchange) {
        if let Self::Member(call) = self {
            call.abandon(exchange);
        }
    }

    /// The body is broken.
    pub fn give_up(self, exchange: &mut Exchange, trouble: Trouble) -> Refusal {
        match (self, trouble) {
            (Self::Member(call), Trouble::Member(error)) => call.give_up(exchange, error).into(),
            (_, trouble) => trouble.into(),
        }
    }
}

impl From<Trouble> for Refusal {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Member(error) => Self::BadAnswer(error.to_string()),
            Trouble::Own(error) => Self::Body(BodyError::Storage(error.kind())),
        }
    }
}
