//! The parts of one registered route. Knows no registrations.

use std::collections::HashMap;
use std::sync::Arc;

use hostler_dispatch::{LeftTunnels, Membership, Pool};
use hostler_engine::gateway::Route;
use hostler_engine::proxy::Endpoint;

use crate::request::SharedPresence;

/// The parts of one route.
pub(super) struct RouteRoom {
    pub pool: Pool<Endpoint>,
    pub route: Arc<Route>,
    /// The route is bound to a route service.
    pub has_service: bool,
    /// Whether it has members, as a lookup sees it.
    pub presence: Arc<SharedPresence>,
    pub members: HashMap<Box<str>, Membership<Endpoint>>,
    /// The tunnels of earlier registrations, by address. They end when the member unregisters.
    pub left: HashMap<Box<str>, Vec<LeftTunnels<Endpoint>>>,
}

impl RouteRoom {
    /// The tunnels stay open.
    pub fn keep(&mut self, address: &str, tunnels: LeftTunnels<Endpoint>) {
        if tunnels.are_open() {
            self.left.entry(address.into()).or_default().push(tunnels);
        }
    }

    /// Tells the tunnels of earlier registrations of this address to end.
    pub fn dismiss(&mut self, address: &str) {
        self.left.remove(address).iter().flatten().for_each(LeftTunnels::dismiss);
    }

    /// Forgets tunnels that have ended.
    pub fn sweep(&mut self) {
        self.left.retain(|_, tunnels| {
            tunnels.retain(LeftTunnels::are_open);
            !tunnels.is_empty()
        });
    }
}
