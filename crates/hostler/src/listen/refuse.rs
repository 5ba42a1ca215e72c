//! Refusals and fallbacks: their heads and bodies, and how they are delivered. Knows no client protocol.

use std::sync::Arc;

use bytes::Bytes;
use hostler_wire::{ResponseHead, Whole};

use hostler_engine::exchange::{Exchange, Protocol, is_grpc};
use hostler_engine::gateway::{FallbackAnswer, Refusal, RefusalFacts};

use super::deliver::{Delivered, deliver_whole};
use super::grpc;
use super::refusal_body;
use super::transfer::AnswerSink;

/// Delivers the route's fallback in place of the pool's answer.
pub(super) async fn deliver_fallback<S: AnswerSink>(
    sink: &mut S,
    exchange: &mut Exchange,
    fallback: FallbackAnswer,
    refusal: &Refusal,
) -> Delivered {
    let (head, facts) = fallback_head(exchange, &fallback, refusal);
    deliver_whole(sink, exchange, &head, fallback.into_body(), facts.closes).await
}

/// Delivers a refusal.
pub(super) async fn refuse<S: AnswerSink>(
    sink: &mut S,
    exchange: &mut Exchange,
    refusal: &Refusal,
) -> Delivered {
    let (answer, facts) = refusal_answer(exchange, refusal);
    match answer {
        Some((head, body)) => {
            let delivered = deliver_whole(sink, exchange, &head, body, facts.closes).await;
            // A refused gRPC call gets the HTTP status 200. The log and the counters get the status that it stands for.
            if head.status == 200 && exchange.log_facts.status == 200 {
                exchange.log_facts.status = facts.status;
            }
            delivered
        }
        // The client has left.
        None => Delivered::Aborted,
    }
}

/// Notes a refusal for the log, and sends nothing.
pub(super) fn refuse_silently(exchange: &mut Exchange, refusal: &Refusal) -> Delivered {
    let _ = refusal_answer(exchange, refusal);
    exchange.log_facts.status = 0;
    Delivered::Whole
}

/// The head of a route's fallback.
fn fallback_head(
    exchange: &mut Exchange,
    fallback: &FallbackAnswer,
    refusal: &Refusal,
) -> (ResponseHead, RefusalFacts) {
    let facts = note(exchange, refusal);
    exchange.log_facts.fallback = true;
    let mut head = ResponseHead::with_status(200);
    head.fields.add(b"Content-Type", fallback.content_type().as_bytes());
    // It replaces the real page only for a while.
    head.fields.add(b"Cache-Control", b"no-store");
    head.fields.add(b"Hostler-Fallback", facts.reason.as_bytes());
    head.fields.add(b"X-Request-Id", exchange.id.as_bytes());
    (head, facts)
}

/// The answer for a refusal. None if the client has left.
pub(super) fn refusal_answer(
    exchange: &mut Exchange,
    refusal: &Refusal,
) -> (Option<(ResponseHead, Bytes)>, RefusalFacts) {
    let facts = note(exchange, refusal);
    exchange.log_facts.status = facts.status;
    if facts.status == 499 {
        exchange.log_facts.aborted = Some("client");
        return (None, facts);
    }
    if let Some(Whole { head, body }) = exchange.registered_answer(refusal) {
        exchange.log_facts.status = head.status;
        return (Some((Arc::unwrap_or_clone(head), body)), facts);
    }
    let (mut head, body) = match exchange.words.take() {
        Some(words) => (Arc::unwrap_or_clone(words.head), words.body),
        None if exchange.protocol == Protocol::Http2 && is_grpc(&exchange.head.fields) => {
            (grpc::refused(refusal, &facts), Bytes::new())
        }
        None => {
            let (head, body) = refusal_body::of(refusal, &facts, &exchange.head.fields, exchange.id.as_str());
            (head, body.into())
        }
    };
    head.fields.add(b"Hostler-Refusal", facts.reason.as_bytes());
    if !exchange.id.as_str().is_empty() {
        head.fields.add(b"X-Request-Id", exchange.id.as_str().as_bytes());
    }
    if let Some((name, value)) = refusal.advice() {
        head.fields.add(name.as_bytes(), value.as_bytes());
    }
    if let Some(seconds) = facts.retry_after {
        let seconds = seconds.max(exchange.log_facts.retry_after);
        head.fields.add(b"Retry-After", itoa::Buffer::new().format(seconds).as_bytes());
    }
    (Some((head, body)), facts)
}

/// Notes for the log why the client gets a refusal.
fn note(exchange: &mut Exchange, refusal: &Refusal) -> RefusalFacts {
    let facts = refusal.facts();
    // A `Cache-Control: max-age=...` that the route sets is not for a refusal.
    exchange.to_client.yields = true;
    exchange.log_facts.refusal = Some(facts.reason);
    exchange.log_facts.detail = refusal.detail();
    facts
}
