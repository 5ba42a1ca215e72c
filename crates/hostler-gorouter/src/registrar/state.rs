//! What the registrar knows: it applies messages to the registry, and the changes to pools and routes. Knows no connection.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use hostler_address::OwnAddresses;
use hostler_config::HostPattern;
use tokio::time::Instant;

use super::empty_route::EmptyRoute;
use super::first_export::FirstExport;
use super::key::RouteKey;
use super::log::{Refused, RegistrarLog};
use super::message::Registration;
use super::pools::{AddressFailed, Pools, ServedRoute};
use super::registry::{Departure, Registry, RouteChange};
use super::words::IgnoredPart;
use crate::request::MemberFault;

/// Replaces the routes of these hosts. A host without routes is removed.
pub type Publish = Box<dyn FnMut(Vec<(HostPattern, Vec<ServedRoute>)>) + Send>;

/// The limits on one message.
#[derive(Clone, Copy)]
pub(super) struct RegistrationLimits {
    /// In bytes.
    pub message_size: usize,
    pub uris: usize,
}

/// The state of the registrar.
pub(super) struct RegistrarState {
    pub limits: RegistrationLimits,
    pub own: Arc<OwnAddresses>,
    pub registry: Registry,
    pub pools: Pools,
    pub log: RegistrarLog,
    /// Hosts whose routes have changed since they were published.
    pub touched: HashSet<HostPattern>,
    pub publish: Publish,
    /// Only in a successor that has not taken over yet.
    pub first_export: Option<FirstExport>,
}

impl RegistrarState {
    pub fn register(&mut self, payload: &[u8]) {
        if let Some(message) = self.read("router.register", payload) {
            self.take(&message);
        }
    }

    /// A message, unless it is too large: each URI costs time, in which the control thread does nothing else.
    fn read(&mut self, subject: &str, payload: &[u8]) -> Option<Registration> {
        let RegistrationLimits { message_size, uris } = self.limits;
        if payload.len() > message_size {
            self.log.refused(&Refused::MessageSize(message_size));
            return None;
        }
        match Registration::parse(payload) {
            Ok(message) if message.uris.len() > uris => {
                let port = message.chosen_port();
                self.log.refused(&Refused::Uris(message.host, port, uris));
                None
            }
            Ok(message) => Some(message),
            Err(why) => {
                self.log.invalid(subject, &why, payload);
                None
            }
        }
    }

    fn take(&mut self, message: &Registration) {
        if let Some(refused) = self.own_address(message) {
            return self.log.refused(&refused);
        }
        self.log.counts.registered += 1;
        if let Some(first) = &mut self.first_export {
            self.registry.places(message).iter().for_each(|place| first.registered(place));
        }
        let outcome = self.registry.register(message, Instant::now());
        self.apply(outcome);
    }

    /// Takes what a predecessor has exported.
    pub fn inherit(&mut self, known: &[u8]) {
        exported(known).for_each(|message| self.take(&message));
        self.take_empty(known);
        let members = self.registry.iter().flat_map(|(host, path, entry)| {
            let key = RouteKey { host: host.clone(), path: path.into() };
            entry.members.iter().map(move |member| (key.clone(), member.facts.address.clone()))
        });
        self.first_export = Some(FirstExport::new(members));
        self.publish();
    }

    /// Corrects it by what the predecessor has exported later.
    pub fn take_over(&mut self, newest: Option<&[u8]>) {
        let (Some(mut first), Some(newest)) = (self.first_export.take(), newest) else { return };
        for message in exported(newest) {
            // Each one has one route.
            let Some(place) = self.registry.places(&message).pop() else { continue };
            let entry = self.registry.entry(&place.0);
            if first.takes(&place, entry.is_some_and(|entry| entry.member(&place.1).is_some())) {
                self.take(&message);
            }
        }
        self.take_empty(newest);
        for (key, address) in first.gone() {
            let changes = self.registry.leave(key, &address, Departure::Unregistered, Instant::now());
            self.apply((changes, Vec::new()));
        }
        self.publish();
    }

    /// Takes the routes without members that a predecessor has exported.
    fn take_empty(&mut self, known: &[u8]) {
        for (key, options, empty_for) in EmptyRoute::exported(known) {
            let changes = self.registry.inherit_empty(key, options, empty_for, Instant::now());
            self.apply((changes, Vec::new()));
        }
    }

    /// A registration of one of our own addresses would lead requests to the admin listener, or in circles. A host name is checked when
    /// it is connected to ([`hostler_engine::proxy::Connector`]).
    fn own_address(&self, message: &Registration) -> Option<Refused> {
        let address = SocketAddr::new(message.host.parse().ok()?, message.chosen_port());
        self.own.find(address).map(|ours| Refused::OwnAddress(address, ours))
    }

    pub fn unregister(&mut self, payload: &[u8]) {
        let Some(message) = self.read("router.unregister", payload) else { return };
        self.log.counts.unregistered += 1;
        let places = self.registry.places(&message);
        let outcome = self.registry.unregister(&message, Instant::now());
        self.apply(outcome);
        for place in places {
            // The member may have left before, for example because it was silent. Then its tunnels are still open.
            if let Some(room) = self.pools.rooms.get_mut(&place.0) {
                room.dismiss(&place.1);
            }
            if let Some(first) = &mut self.first_export {
                first.unregistered(place);
            }
        }
    }

    /// `is_connected`: the client of the member can register it again. If not, the member may be back soon, and its route would lack it until
    /// NATS is back.
    pub fn remove_failed(&mut self, failed: &AddressFailed, is_connected: bool) {
        if !is_connected && self.registry.suspends_pruning() {
            return;
        }
        let Some(address) = self.pools.address(&failed.route, failed.member) else { return };
        let why = match failed.fault {
            MemberFault::Unfit => Departure::Failed,
            MemberFault::Unfound => Departure::Unfound,
        };
        let changes = self.registry.leave((*failed.route).clone(), &address, why, Instant::now());
        self.apply((changes, Vec::new()));
    }

    pub fn connected(&mut self, connection: Option<u64>) {
        if let Some(connection) = connection {
            self.registry.connected(connection, Instant::now());
        }
    }

    /// A look for silent members, which was due at `due`.
    pub fn prune(&mut self, connection: Option<u64>, due: Instant) {
        let was_suspended = self.registry.is_suspended();
        let changes = self.registry.prune_due(connection, due, Instant::now());
        self.log.pruned(was_suspended, self.registry.is_suspended(), &changes);
        self.apply((changes, Vec::new()));
    }

    fn apply(&mut self, (changes, odd): (Vec<RouteChange>, Vec<IgnoredPart>)) {
        odd.iter().for_each(|oddity| self.log.odd(oddity));
        self.pools.apply(changes, &mut self.touched);
    }

    pub fn sweep(&mut self, threads: usize) {
        self.pools.prune(threads);
        self.pools.sweep();
    }

    /// A request waits for a descriptor, which an idle connection may have.
    pub fn make_room(&self, threads: usize) {
        self.pools.make_room(threads);
    }

    pub fn publish(&mut self) {
        if self.touched.is_empty() {
            return;
        }
        let touched = std::mem::take(&mut self.touched);
        let delta = touched.into_iter().map(|host| {
            let served = self.pools.served(&self.registry, &host);
            (host, served)
        });
        (self.publish)(delta.collect());
    }
}

/// The registrations that a predecessor has exported, one in a line. It has written them itself, so none is malformed.
fn exported(lines: &[u8]) -> impl Iterator<Item = Registration> {
    lines.split(|&byte| byte == b'\n').filter_map(|line| Registration::parse(line).ok())
}
