//! Streams: which requests expect one, and what follows when an answer is one. It returns its slot, or is refused if its member has too many.
//! Knows no client protocol.

use hostler_dispatch::LongLived;
use hostler_wire::Name;

use super::answer::Answer;
use super::refusal::Refusal;
use super::target::PoolTarget;
use crate::exchange::{Body, Exchange};

/// What the request may become that outlives its slot, as its head shows.
pub(super) fn expected(exchange: &Exchange) -> Option<LongLived> {
    match &exchange.offer {
        Some(_) => Some(LongLived::Tunnel),
        None => expects_events(exchange).then_some(LongLived::Stream),
    }
}

/// An `EventSource` sends GET and accepts nothing else. A request that also accepts other types may get another answer.
fn expects_events(exchange: &Exchange) -> bool {
    let accepted = exchange.head.fields.first(Name::Accept).unwrap_or_default();
    exchange.head.method() == b"GET" && accepted.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
}

/// The answer, which returns its slot if it is a stream.
pub(super) fn begin(answer: Answer, target: &PoolTarget, exchange: &mut Exchange) -> Result<Answer, Refusal> {
    let mut call = match answer {
        Answer::Member(call) if call.is_endless() => call,
        answer => return Ok(answer),
    };
    if call.begin_stream(exchange) {
        target.poison.settle_stream(exchange);
        // A stream may last for hours, and its request is not sent again.
        exchange.body = Body::None;
        return Ok(Answer::Member(call));
    }
    if let Some(registered) = &exchange.registered {
        registered.take_back_answer(&mut exchange.to_client);
    }
    call.abandon(exchange);
    Err(Refusal::TooManyStreams)
}
