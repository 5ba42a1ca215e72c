//! Which part of a stored answer a client gets: all of it, a range or a 304, and in which encoding. Knows no members.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use hostler_cache::{
    Condition, Head, Kept, Method, Moment, Ranged, RequestDirectives, conditions, range, write_key,
};
use hostler_coding::{self as coding, EncodingDecision};
use hostler_wire::{BodyLength, Name, ResponseHead, Version, Whole, tokens};

use super::request;
use crate::cache::{
    self, BodyReading, Caching, Entry, HeadLines, IncomingAnswer, IncomingBody, SharedBody, StorageKey,
};
use crate::exchange::{Exchange, RequestId};
use crate::gateway::answer::{Answer, Streamed};
use crate::gateway::refusal::Refusal;

/// The part of the body that the client gets.
enum Share {
    All,
    Part(Range<u64>),
    Parts(Vec<Range<u64>>),
    Nothing,
}

pub(super) fn stored(
    caching: &Caching,
    exchange: &Exchange,
    asks: &RequestDirectives,
    entry: &Entry,
) -> Result<Answer, Refusal> {
    let (head, body) = (&entry.head, &entry.body);
    let share = share(exchange, asks, head, entry.freshness.received, Some(body.len() as u64))?;
    Ok(match part_of(caching, exchange, share, head, body) {
        Some(part) => Answer::Whole(part),
        None => in_form(caching, exchange, entry),
    })
}

/// A stored answer in a form that already exists. This cannot fail and encodes nothing.
pub(super) fn at_hand(
    caching: &Caching,
    exchange: &Exchange,
    asks: &RequestDirectives,
    entry: &Entry,
) -> Result<Whole, Refusal> {
    let (head, body) = (&entry.head, &entry.body);
    let share = share(exchange, asks, head, entry.freshness.received, Some(body.len() as u64))?;
    let whole = part_of(caching, exchange, share, head, body).or_else(|| stored_form(exchange, entry));
    Ok(whole.unwrap_or_else(|| varying(entry)))
}

/// An answer whose body is complete, with the head for this client.
pub(super) fn whole(
    caching: &Caching,
    exchange: &Exchange,
    asks: &RequestDirectives,
    head: &Arc<ResponseHead>,
    received: Moment,
    body: &Bytes,
) -> Result<Answer, Refusal> {
    let share = share(exchange, asks, head, received, Some(body.len() as u64))?;
    Ok(match part_of(caching, exchange, share, head, body) {
        Some(part) => Answer::Whole(part),
        None if exchange.compress.is_none() => Answer::Whole(as_it_is(head, body)),
        None => to_be_encoded(head, body),
    })
}

/// An answer whose body is still arriving. `head` is the head for this client, which may be the client that caused the fetch.
pub(super) fn arriving(
    exchange: &Exchange,
    asks: &RequestDirectives,
    head: &Arc<ResponseHead>,
    arriving: &IncomingAnswer,
    reading: BodyReading,
) -> Result<Answer, Refusal> {
    let received = arriving.freshness.map_or_else(|_| Moment::now(), |freshness| freshness.received);
    let known = match arriving.length {
        BodyLength::Known(length) => Some(length),
        BodyLength::Chunked | BodyLength::UntilClose => None,
    };
    let shared =
        |head, length, reading, place| Answer::Shared(Box::new(SharedBody { head, length, reading, place }));
    Ok(match share(exchange, asks, head, received, known)? {
        // Several ranges need the complete body.
        Share::All | Share::Parts(_) => {
            let is_stored = arriving.freshness.is_ok() && Arc::ptr_eq(head, &arriving.head);
            shared(head.clone(), arriving.length, reading, is_stored.then(|| arriving.place.clone()))
        }
        Share::Part(part) => {
            // What follows adds the `Vary` of a route that encodes.
            let head = cache::part(head, &part, known.unwrap_or(part.end));
            let reading = reading.only(part.start as usize..part.end as usize);
            shared(Arc::new(head), BodyLength::Known(part.end - part.start), reading, None)
        }
        Share::Nothing => Answer::Whole(not_modified(exchange, head, known)),
    })
}

/// The 304 for an answer that is for this client alone, if the client has it already. `head`: as it came from the member.
pub(super) fn if_not_modified(
    exchange: &Exchange,
    asks: &RequestDirectives,
    head: &ResponseHead,
) -> Option<Whole> {
    let (sent, lines, now) = (request::sent(exchange), HeadLines(&head.fields), Moment::now());
    // Without a date of its last change, an answer that is not stored has changed now (RFC 9110 section 13.1.3).
    let has = |head: &HeadLines<'_>, name| head.lines(name).next().is_some();
    let is_comparable = has(&sent, "if-none-match") || has(&lines, "last-modified");
    let is_known = asks.conditional
        && is_comparable
        && conditions(&sent, head.status, &lines, now) == Condition::NotModified;
    is_known.then(|| not_modified(exchange, &cache::stored(head, &Kept::default(), now), None))
}

/// Whether the client asked for a range, while the member sends the whole response and supports ranges.
pub(super) fn is_range_missing(exchange: &Exchange, asks: &RequestDirectives, head: &ResponseHead) -> bool {
    let units = head.fields.all(Name::AcceptRanges).flat_map(tokens);
    let has_ranges = || units.into_iter().any(|unit| unit.eq_ignore_ascii_case(b"bytes"));
    let lines = HeadLines(&head.fields);
    // The length does not matter: only the member decides whether the range exists. If the route removes `Range`, the member never sees it.
    asks.ranged
        && exchange.to_member.keeps(b"range")
        && has_ranges()
        && range(&request::sent(exchange), head.status, &lines, u64::MAX) != Ranged::Whole
}

fn share(
    exchange: &Exchange,
    asks: &RequestDirectives,
    head: &ResponseHead,
    received: Moment,
    length: Option<u64>,
) -> Result<Share, Refusal> {
    let (sent, lines) = (request::sent(exchange), HeadLines(&head.fields));
    if asks.conditional && conditions(&sent, head.status, &lines, received) == Condition::NotModified {
        return Ok(Share::Nothing);
    }
    let Some(length) = length.filter(|_| asks.ranged && asks.method == Method::Get) else {
        return Ok(Share::All);
    };
    if is_of_other_form(exchange, head, length) {
        return Ok(Share::All);
    }
    match range(&sent, head.status, &lines, length) {
        Ranged::Whole => Ok(Share::All),
        Ranged::Part(part) => Ok(Share::Part(part)),
        // `Content-Encoding` would then describe the multipart body instead of the parts.
        Ranged::Parts(_) if head.fields.first(Name::ContentEncoding).is_some() => Ok(Share::All),
        Ranged::Parts(parts) => Ok(Share::Parts(parts)),
        Ranged::Unsatisfiable => Err(Refusal::Range(length)),
    }
}

/// Whether the client's partial copy may be of an encoded form, to which a part of the plain one must not be joined. The forms have
/// different entity tags, but `If-Range` with a date does not tell them apart.
fn is_of_other_form(exchange: &Exchange, head: &ResponseHead, length: u64) -> bool {
    let Some(plan) = &exchange.compress else { return false };
    let fields = &exchange.head.fields;
    fields.first(Name::IfRange).is_some_and(|validator| !validator.starts_with(b"\""))
        && matches!(plan.verdict(fields, head, Some(length)), EncodingDecision::Encode(_))
}

/// None if the client gets all of it.
fn part_of(
    caching: &Caching,
    exchange: &Exchange,
    share: Share,
    head: &Arc<ResponseHead>,
    body: &Bytes,
) -> Option<Whole> {
    let length = body.len() as u64;
    match share {
        Share::All => None,
        Share::Part(part) => {
            let part_head = as_whole_varies(exchange, head, length.into(), cache::part(head, &part, length));
            Some(as_it_is(&Arc::new(part_head), &body.slice(part.start as usize..part.end as usize)))
        }
        Share::Parts(parts) => {
            // The parts are copied together. A slow client may hold that copy for long, so it counts as a body of the cache. Without room
            // for it the client gets the whole response (RFC 9110 section 14.2).
            let bytes: u64 = parts.iter().map(|part| part.end - part.start).sum();
            let room = caching.shared_cache.memory.share(bytes)?;
            // A random boundary, so that it does not occur in the body.
            let boundary = RequestId::made();
            let (parts_head, parts) = cache::parts(head, body, &parts, boundary.as_str());
            let parts_head = Arc::new(as_whole_varies(exchange, head, length.into(), parts_head));
            Some(as_it_is(&parts_head, &room.own(parts)))
        }
        Share::Nothing => Some(not_modified(exchange, head, length.into())),
    }
}

/// The whole stored answer. If the route encodes answers, it uses the stored encoded form or makes it now.
fn in_form(caching: &Caching, exchange: &Exchange, entry: &Entry) -> Answer {
    let (head, body) = (&entry.head, &entry.body);
    if let Some(whole) = stored_form(exchange, entry) {
        return Answer::Whole(whole);
    }
    let reading = IncomingBody::full(body.clone()).reading();
    let is_fit = exchange.head.version == Version::Http11 && !exchange.is_head_request();
    match reading.filter(|_| is_fit) {
        Some(reading) => {
            let (head, length) = (head.clone(), BodyLength::Known(body.len() as u64));
            let place = Some(place(caching, exchange));
            Answer::Shared(Box::new(SharedBody { head, length, reading, place }))
        }
        None => to_be_encoded(head, body),
    }
}

/// The stored form of the answer that this client gets. None if that form does not exist yet.
fn stored_form(exchange: &Exchange, entry: &Entry) -> Option<Whole> {
    let (head, body) = (&entry.head, &entry.body);
    let Some(plan) = &exchange.compress else { return Some(as_it_is(head, body)) };
    match plan.verdict(&exchange.head.fields, head, Some(body.len() as u64)) {
        EncodingDecision::Leave => Some(as_it_is(head, body)),
        EncodingDecision::Vary => Some(varying(entry)),
        EncodingDecision::Encode(coding) => {
            entry.form(coding.name()).map(|form| as_it_is(&form.head, &form.body))
        }
    }
}

fn varying(entry: &Entry) -> Whole {
    as_it_is(&Arc::new(coding::varying(&entry.head)), &entry.body)
}

fn as_it_is(head: &Arc<ResponseHead>, body: &Bytes) -> Whole {
    Whole { head: head.clone(), body: body.clone() }
}

fn to_be_encoded(head: &ResponseHead, body: &Bytes) -> Answer {
    let length = body.len() as u64;
    Answer::Streamed(Box::new(Streamed { head: head.clone(), length, body: Box::new(body.clone()) }))
}

/// `length`: that of the whole body, if known.
fn not_modified(exchange: &Exchange, whole: &ResponseHead, length: Option<u64>) -> Whole {
    let head = cache::not_modified(whole);
    // An encoded answer has a weak `ETag`, so the comparison is weak.
    let revalidated =
        exchange.compress.as_ref().and_then(|_| coding::revalidated(&exchange.head.fields, &head));
    let head = revalidated.unwrap_or_else(|| as_whole_varies(exchange, whole, length, head));
    as_it_is(&Arc::new(head), &Bytes::new())
}

/// The head of a 206 or a 304, with the `Vary` that the whole answer would have (RFC 9110 sections 15.3.7 and 15.4.5).
fn as_whole_varies(
    exchange: &Exchange,
    whole: &ResponseHead,
    length: Option<u64>,
    head: ResponseHead,
) -> ResponseHead {
    match &exchange.compress {
        Some(plan) if plan.verdict(&exchange.head.fields, whole, length) != EncodingDecision::Leave => {
            coding::varying(&head)
        }
        _ => head,
    }
}

/// The storage key of the answer to a request.
fn place(caching: &Caching, exchange: &Exchange) -> StorageKey {
    let mut key = Vec::new();
    let secure = request::is_secure(exchange);
    write_key(&caching.query, secure, exchange.host(), exchange.head.target(), &mut key);
    StorageKey { shared_cache: caching.shared_cache.clone(), key: key.into() }
}
