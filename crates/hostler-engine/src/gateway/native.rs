//! What Hostler answers out of its own data, in the words of the straight line. Knows no data.

use hostler_native::{LookupRequest, Native};

use super::answer::Answer;
use super::refusal::Refusal;
use super::target::Route;
use crate::exchange::{Body, BodyError, Exchange};
use crate::route::with_plain_path;

/// Where the route's members are told so: says in the head where the client is. Whatever reads the head from here on reads ours.
pub(super) fn introduce(route: &Route, exchange: &mut Exchange) {
    if let Some(geo) = &route.changes.places {
        let client = exchange.client;
        geo.introduce(&mut exchange.head, client);
    }
}

/// Why a body did not come whole: told as these services tell whatever is wrong.
pub(super) fn refuse(native: &Native, exchange: &mut Exchange, error: BodyError) -> Refusal {
    let refusal = Refusal::from(error);
    let status = refusal.facts().status;
    let words =
        with_plain_path(exchange.path(), false, |path| native.refuse(&asked(exchange), path, status, error));
    exchange.words = Some(Box::new(words));
    refusal
}

/// The answer; a body has been read before.
pub(super) fn answer(native: &Native, route: &Route, exchange: &Exchange) -> Answer {
    let whole = with_plain_path(exchange.path(), false, |path| native.answer(&asked(exchange), path));
    Answer::of_own(whole, route.has_encoded())
}

fn asked(exchange: &Exchange) -> LookupRequest<'_> {
    let body: &[u8] = match &exchange.body {
        Body::Memory(body) => body,
        _ => b"",
    };
    LookupRequest { head: &exchange.head, client: exchange.client, body }
}
