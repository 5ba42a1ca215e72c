//! The keys under which requests share the slots of a fair pool, and what each key has cost lately. The pool decides whose
//! request is next: it knows only the hash of a key, and this module knows no queue.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::quality::RandomState;
use hostler_config::FairBy;
use hostler_dispatch::FairKey;
use serde::Serialize;

use super::request_key::{ClientNetwork, RequestKeys};
use crate::exchange::{Exchange, FairCharge, FairKeyView, KeyCosts, clock};

/// Which addresses are one client.
const CLIENT: ClientNetwork = ClientNetwork::SITE;

/// What gives the requests of one pool their keys, and what the keys have cost.
#[derive(Debug)]
pub struct FairKeys {
    from: RequestKeys,
    /// A random one, so that clients cannot choose keys that collide.
    hasher: RandomState,
    costs: Arc<KeyCosts>,
}

/// A fair pool in the status.
#[derive(Debug, Clone, Serialize)]
pub struct FairView {
    /// What gives requests their keys, as in the configuration.
    pub by: Vec<String>,
    /// The keys that have cost the most in the last minute.
    pub keys: Vec<FairKeyView>,
}

impl FairKeys {
    /// `None` if the list is empty: the pool is not fair. `before`: those of the same pool before a reload.
    pub fn new(by: &[FairBy], before: Option<&Arc<Self>>) -> Option<Arc<Self>> {
        if let Some(same) = before.filter(|before| before.from.by() == by) {
            return Some(same.clone());
        }
        let new = || Self {
            from: RequestKeys::new(by, CLIENT),
            hasher: RandomState::default(),
            costs: Arc::new(KeyCosts::new(clock::now())),
        };
        (!by.is_empty()).then(|| Arc::new(new()))
    }

    /// The keys for a route that has a list of its own. A key that both lists give is the same key: it has one share in the pool and one
    /// row in the status.
    pub fn of_route(&self, by: &[FairBy]) -> Arc<Self> {
        let Self { from, hasher, costs } = self;
        Arc::new(Self { from: from.with(by), hasher: hasher.clone(), costs: costs.clone() })
    }

    /// The key of a request, which the pool gets. The exchange charges it at its end.
    pub(super) fn of(&self, exchange: &mut Exchange) -> FairKey {
        if let Some(charge) = &exchange.log_facts.fair {
            return FairKey::of(charge.key);
        }
        let part = self.from.of(exchange);
        let (key, name) = (self.hasher.hash_one(&part), self.from.name(&part));
        let charge = FairCharge::new(self.costs.clone(), key, name, exchange.account.clone());
        exchange.log_facts.fair = Some(Arc::new(charge));
        FairKey::of(key)
    }

    /// The key of a request that may never ask for a slot, so it is not charged.
    pub(super) fn key_of(&self, exchange: &Exchange) -> FairKey {
        match &exchange.log_facts.fair {
            Some(charge) => FairKey::of(charge.key),
            None => FairKey::of(self.hasher.hash_one(self.from.of(exchange))),
        }
    }

    /// What the keys have cost, for the ledger.
    pub fn costs(&self) -> &KeyCosts {
        &self.costs
    }

    /// What the keys have cost.
    pub fn view(&self) -> FairView {
        let by = self.from.by().iter().map(ToString::to_string).collect();
        FairView { by, keys: self.costs.view(clock::now()) }
    }
}

#[cfg(test)]
mod tests;
