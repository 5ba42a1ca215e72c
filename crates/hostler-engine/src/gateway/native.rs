//! The built-in services (`geo`, `postal`) as targets of a route. Knows no data.

use std::fmt::Display;

use hostler_native::{LookupRequest, Native};

use super::answer::Answer;
use super::refusal::Refusal;
use super::target::Route;
use crate::exchange::{Body, BodyError, Exchange};
use crate::route::MarkedPath;

/// Sets the header fields that tell the members where the client is, if the route has `geo_headers`. Values from the client are replaced.
pub(super) fn introduce(route: &Route, exchange: &mut Exchange) {
    if let Some(geo) = &route.changes.places {
        let client = exchange.client;
        geo.introduce(&mut exchange.head, client);
    }
}

/// The refusal of a body that did not arrive whole.
pub(super) fn refuse(native: &Native, exchange: &mut Exchange, error: BodyError) -> Refusal {
    let refusal = Refusal::from(error);
    explain(native, exchange, &refusal, error);
    refusal
}

/// Gives a refusal the format of the service's other errors, which pages of other sites may read, too.
pub(super) fn explain(native: &Native, exchange: &mut Exchange, refusal: &Refusal, why: impl Display) {
    let status = refusal.facts().status;
    let words =
        path_of(exchange).with_plain(false, |path| native.refuse(&asked(exchange), path, status, why));
    exchange.words = Some(Box::new(words));
}

/// The answer. The body has been read before.
pub(super) fn answer(native: &Native, route: &Route, exchange: &mut Exchange) -> Answer {
    let whole = path_of(exchange).with_plain(false, |path| native.answer(&asked(exchange), path));
    // A `Cache-Control: max-age=...` that the route sets is not for an error.
    exchange.to_client.yields = whole.head.status >= 400;
    Answer::of_own(whole, route.has_encoded())
}

fn path_of(exchange: &Exchange) -> MarkedPath<'_> {
    MarkedPath::of(exchange.path())
}

fn asked(exchange: &Exchange) -> LookupRequest<'_> {
    let body: &[u8] = match &exchange.body {
        Body::Memory(body) => body,
        _ => b"",
    };
    LookupRequest { head: &exchange.head, client: exchange.client, body }
}
