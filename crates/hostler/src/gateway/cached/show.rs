//! What of an answer in memory one client gets: all, a part, or the word that it has it already. Knows no members.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use hostler_cache::{Asks, Condition, Method, Moment, Ranged, conditions, range};
use hostler_wire::{BodyLength, ResponseHead};

use super::request;
use crate::cache::{self, Coming, Entry, Lines, Reading};
use crate::exchange::{Exchange, Whole};
use crate::gateway::{Answer, Refusal, Shared, Streamed};

/// What it gets.
enum Share {
    All,
    Part(Range<u64>),
    Nothing,
}

/// A stored answer.
pub(super) fn stored(exchange: &Exchange, asks: &Asks, entry: &Entry) -> Result<Answer, Refusal> {
    whole(exchange, asks, &entry.head, entry.terms.received, &entry.body)
}

/// One of which all is there.
pub(super) fn whole(
    exchange: &Exchange,
    asks: &Asks,
    head: &Arc<ResponseHead>,
    received: Moment,
    body: &Bytes,
) -> Result<Answer, Refusal> {
    let length = body.len() as u64;
    Ok(match share(exchange, asks, head, received, Some(length))? {
        Share::All => own(exchange, head.clone(), body.clone()),
        Share::Part(part) => {
            let head = cache::part(head, &part, length);
            own(exchange, Arc::new(head), body.slice(part.start as usize..part.end as usize))
        }
        Share::Nothing => own(exchange, Arc::new(cache::not_modified(head)), Bytes::new()),
    })
}

/// One whose body is still coming. `head`: as this client gets it, who may be the one who has fetched it.
pub(super) fn coming(
    exchange: &Exchange,
    asks: &Asks,
    head: &Arc<ResponseHead>,
    coming: &Coming,
    reading: Reading,
) -> Result<Answer, Refusal> {
    let received = coming.terms.map_or_else(|_| Moment::now(), |terms| terms.received);
    let known = match coming.length {
        BodyLength::Known(length) => Some(length),
        BodyLength::Chunked | BodyLength::UntilClose => None,
    };
    let shared = |head, length, reading| Answer::Shared(Box::new(Shared { head, length, reading }));
    Ok(match share(exchange, asks, head, received, known)? {
        Share::All => shared(head.clone(), coming.length, reading),
        Share::Part(part) => {
            let head = cache::part(head, &part, known.unwrap_or(part.end));
            let reading = reading.only(part.start as usize..part.end as usize);
            shared(Arc::new(head), BodyLength::Known(part.end - part.start), reading)
        }
        Share::Nothing => own(exchange, Arc::new(cache::not_modified(head)), Bytes::new()),
    })
}

fn share(
    exchange: &Exchange,
    asks: &Asks,
    head: &ResponseHead,
    received: Moment,
    length: Option<u64>,
) -> Result<Share, Refusal> {
    let (sent, lines) = (request::sent(exchange), Lines(&head.fields));
    if asks.conditional && conditions(&sent, head.status, &lines, received) == Condition::NotModified {
        return Ok(Share::Nothing);
    }
    let Some(length) = length.filter(|_| asks.ranged && asks.method == Method::Get) else {
        return Ok(Share::All);
    };
    match range(&sent, head.status, &lines, length) {
        Ranged::Whole => Ok(Share::All),
        Ranged::Part(part) => Ok(Share::Part(part)),
        Ranged::Unsatisfiable => Err(Refusal::Range(length)),
    }
}

fn own(exchange: &Exchange, head: Arc<ResponseHead>, body: Bytes) -> Answer {
    if exchange.compress.is_none() {
        return Answer::Whole(Whole { head, body });
    }
    let (head, length) = (Arc::unwrap_or_clone(head), body.len() as u64);
    Answer::Streamed(Box::new(Streamed { head, length, body: Box::new(body) }))
}
