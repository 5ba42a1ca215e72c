//! What Hostler answers out of its own data, in the words of the straight line. Knows no data.

use super::{Answer, Route};
use crate::exchange::Exchange;
use crate::native::Native;
use crate::route::with_plain_path;

/// The answer; a body has been read before.
pub(super) fn answer(native: &Native, route: &Route, exchange: &Exchange) -> Answer {
    let whole = with_plain_path(exchange.path(), false, |path| native.answer(exchange, path));
    Answer::of_own(whole, route)
}
