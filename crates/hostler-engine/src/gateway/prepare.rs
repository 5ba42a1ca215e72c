//! Prepares a request by its route: the changes to its head and its answer, and how far it may go (loops, and RFC 9110 section 7.6.2). Knows
//! no targets and no members.

use std::borrow::Cow;
use std::sync::Arc;

use hostler_coding::EncodingPlan;
use hostler_native::geo::Geo;
use hostler_wire::{ResponseHead, Whole, parse_digits};

use super::refusal::Refusal;
use super::rewrite::Rewrite;
use crate::exchange::{Edit, Exchange, via};

/// How many hops a request may still make.
const MAX_FORWARDS: &str = "Max-Forwards";

/// What a route changes. Mostly nothing.
#[derive(Default)]
pub struct Changes {
    /// Edits of the head for the member.
    pub to_member: Option<Arc<[Edit]>>,
    /// Edits of the head for the client.
    pub to_client: Option<Arc<[Edit]>>,
    /// Rewrites the request target for the member or the folder of files.
    pub rewrite: Option<Rewrite>,
    /// Tells members in header fields where the client is (`geo_headers`).
    pub places: Option<Arc<Geo>>,
    /// How answers are encoded. None: not at all.
    pub compress: Option<Arc<EncodingPlan>>,
}

impl Changes {
    /// Notes these changes in the exchange.
    pub(super) fn begin(&self, exchange: &mut Exchange) -> Result<(), Refusal> {
        exchange.to_member.shared.clone_from(&self.to_member);
        exchange.to_client.shared.clone_from(&self.to_client);
        exchange.compress.clone_from(&self.compress);
        if let Some(rewrite) = &self.rewrite {
            let rewritten = rewrite.apply(exchange.head.target());
            let why = match exchange.head.target() {
                b"*" => "it has no path, and this route rewrites the path",
                _ => "it does not begin with the prefix that this route removes",
            };
            exchange.rewritten = Some(rewritten.ok_or(Refusal::Target(why))?);
        }
        Ok(())
    }
}

/// Refuses a request that has already passed through this Hostler. Without this it would circle until its head is too large for one of the
/// proxies.
pub(super) fn check_loop(exchange: &Exchange) -> Result<(), Refusal> {
    if via::has_been_here(&exchange.head.fields) { Err(Refusal::Loop) } else { Ok(()) }
}

/// A client that has the beginning of an encoded answer would put a part of the plain one behind it. So the member is asked for all of it,
/// which `Range` allows (RFC 9110 section 14.2).
pub(super) fn leave_range_out(exchange: &mut Exchange) {
    let fields = &exchange.head.fields;
    if exchange.compress.as_ref().is_some_and(|plan| plan.may_have_sent_part(fields)) {
        exchange.to_member.own.extend(["Range", "If-Range"].map(|name| Edit::Remove(name.into())));
    }
}

/// Decrements `Max-Forwards` of OPTIONS and TRACE. Returns the answer if this was the last hop. A TRACE is passed on only if the route allows it.
pub(super) fn count_hop(exchange: &mut Exchange, traces: bool) -> Result<Option<Whole>, Refusal> {
    let is_options = match exchange.head.method() {
        b"OPTIONS" => true,
        // The answer to TRACE may show fields that a proxy in front has added and the client must not see.
        b"TRACE" if !traces => return Err(Refusal::Trace),
        b"TRACE" => false,
        _ => return Ok(None),
    };
    match exchange.head.fields.get(MAX_FORWARDS).and_then(parse_digits) {
        // A value that is not a number is ignored and passed on.
        None => Ok(None),
        Some(0) if is_options => Ok(Some(Whole::new(ResponseHead::with_status(204), Vec::new()))),
        // Not echoed: the head may hold fields that a proxy in front has added.
        Some(0) => Err(Refusal::Trace),
        Some(hops) => {
            let value = (hops - 1).to_string().into_bytes();
            exchange.to_member.own.push(Edit::Set(Cow::Borrowed(MAX_FORWARDS), value));
            Ok(None)
        }
    }
}
