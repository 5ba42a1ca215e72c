//! What a route changes about a request and its answer on their way through. Knows no targets and no members.

use std::sync::Arc;

use hostler_coding::EncodingPlan;
use hostler_native::geo::Geo;

use super::refusal::Refusal;
use super::rewrite::Rewrite;
use crate::exchange::{Edit, Exchange};

/// What a route changes on the way through; mostly nothing.
#[derive(Default)]
pub struct Changes {
    /// Of the head that its member gets.
    pub to_member: Option<Arc<[Edit]>>,
    /// Of the head that its client gets.
    pub to_client: Option<Arc<[Edit]>>,
    /// Of the target that its member, or a folder of files, is asked for.
    pub rewrite: Option<Rewrite>,
    /// Where its members are told that the client is.
    pub places: Option<Arc<Geo>>,
    /// How answers are encoded; none for as they are.
    pub compress: Option<Arc<EncodingPlan>>,
}

impl Changes {
    /// Lets the exchange know what is changed about it.
    pub(super) fn begin(&self, exchange: &mut Exchange) -> Result<(), Refusal> {
        exchange.to_member.shared.clone_from(&self.to_member);
        exchange.to_client.shared.clone_from(&self.to_client);
        exchange.compress.clone_from(&self.compress);
        if let Some(rewrite) = &self.rewrite {
            let rewritten = rewrite.apply(exchange.head.target());
            let why = "it is not one that this route's prefix can be taken away from";
            exchange.rewritten = Some(rewritten.ok_or(Refusal::Target(why))?);
        }
        Ok(())
    }
}
