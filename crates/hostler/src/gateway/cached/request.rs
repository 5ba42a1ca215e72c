//! A request as its member will see it, which is what answers are chosen by. Knows no answers.

use hostler_cache::Head;
use hostler_wire::{Field, Fields};

use crate::cache::Lines;
use crate::exchange::{Exchange, Scheme};
use crate::proxy;

/// What a client may not ask a member for where the whole answer is wanted.
pub(super) const CONDITIONS: [&str; 6] =
    ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range"];

/// The lines that the client has sent.
pub(super) fn sent(exchange: &Exchange) -> Lines<'_> {
    Lines(&exchange.head.fields)
}

/// The lines that its member sees: the client's, less those that are removed, plus what we add.
#[derive(Clone, Copy)]
pub(super) struct Seen<'e>(pub &'e Exchange);

impl Head for Seen<'_> {
    fn lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]>
    where
        Self: 'a,
    {
        let Self(exchange) = self;
        let fields: &Fields = &exchange.head.fields;
        let is_it = move |other: &[u8]| other.eq_ignore_ascii_case(name.as_bytes());
        let passes = move |(field, other, _): &(&Field, &[u8], &[u8])| {
            is_it(other) && proxy::goes_on(exchange, field, other)
        };
        let own = exchange.to_member.lines(fields).filter(move |(other, _)| is_it(other.as_bytes()));
        let own: Vec<&[u8]> = own.map(|(_, value)| value).collect();
        fields.iter().filter(passes).map(|(_, _, value)| value).chain(own)
    }
}

/// Whether its member is told that it came over TLS.
pub(super) fn is_secure(exchange: &Exchange) -> bool {
    let ours = exchange.forwarded_proto.unwrap_or(exchange.scheme) == Scheme::Https;
    if !exchange.client.peer_trusted || exchange.forwarded_proto.is_some() {
        return ours;
    }
    match Seen(exchange).lines("x-forwarded-proto").next() {
        Some(said) => said.eq_ignore_ascii_case(b"https"),
        None => ours,
    }
}
