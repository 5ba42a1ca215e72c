//! What Hostler answers out of its own data, in the words of the straight line. Knows no data.

use super::{Answer, Route};
use crate::exchange::Exchange;
use crate::native::Native;
use crate::route::with_plain_path;

/// Where the route's members are told so: says in the head where the client is. Whatever reads the head from here on reads ours.
pub(super) fn introduce(route: &Route, exchange: &mut Exchange) {
    if let Some(geo) = &route.changes.places {
        geo.introduce(exchange);
    }
}

/// The answer; a body has been read before.
pub(super) fn answer(native: &Native, route: &Route, exchange: &Exchange) -> Answer {
    let whole = with_plain_path(exchange.path(), false, |path| native.answer(exchange, path));
    Answer::of_own(whole, route)
}
