//! What a route changes in a request and in its answer. Knows no targets and no members.

use std::sync::Arc;

use hostler_coding::EncodingPlan;
use hostler_native::geo::Geo;

use super::refusal::Refusal;
use super::rewrite::Rewrite;
use crate::exchange::{Edit, Exchange};

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
            let why = "it does not begin with the prefix that this route removes";
            exchange.rewritten = Some(rewritten.ok_or(Refusal::Target(why))?);
        }
        Ok(())
    }
}
