//! A pool for each registered route. Its members join and leave as the registry says. Knows no messages.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hostler_address::OwnAddresses;
use hostler_coding::EncodingPlan;
use hostler_config::{self as config, Buffer, Choice, HostPattern, LowIf, Policy};
use hostler_dispatch::{EjectSettings, MemberId, Order, Pool, PoolSettings};
use hostler_engine::exchange::Counters;
use hostler_engine::gateway::{
    Changes, ExpectedCosts, FairKeys, Poison, PoisonSettings, PoolTarget, PoolTargetSettings, Route,
    RoutePresence, Target,
};
use hostler_engine::journal::Journal;
use hostler_engine::proxy::{Connector, Endpoint, MemberNews, MemberProtocol, MemberTls, Meter};
use hostler_wire::{Address, Limits};
use rustls::pki_types::ServerName;
use tokio::sync::mpsc;

use super::facts::RegistrarFacts;
use super::key::RouteKey;
use super::member_names::MemberNames;
use super::registry::{Departure, Registry, RouteChange, RouteOptions};
use super::room::RouteRoom;
use super::words::Balancing;
use crate::request::{MemberFault, PlatformRules, RegisteredRoute, SharedPresence};

/// The slots of a member without a limit: more than there can be connections.
const NO_LIMIT: usize = 1 << 24;

/// How many removed routes wait for [`Pools::sweep`]. Each takes some kilobytes, and clients can make and remove 100,000 in a second.
const MOST_LEAVING: usize = 1000;

/// The common settings of all registered routes.
pub struct RouteTemplate {
    pub settings: config::Registrar,
    /// The limits on an answer's head.
    pub limits: Limits,
    pub max_interim_answers: usize,
    /// The addresses that Hostler itself listens on.
    pub own: Arc<OwnAddresses>,
    pub threads: usize,
    /// The rules for requests by registered routes.
    pub rules: Arc<PlatformRules>,
    /// Under which keys requests share the slots of each route. None: they get them in order of arrival.
    pub fair: Option<Arc<FairKeys>>,
    /// What the requests of each route are expected to cost. None: they get slots in order of arrival.
    pub costs: Option<Arc<ExpectedCosts>>,
    /// Which requests get low priority.
    pub low: Arc<[LowIf]>,
    /// How answers are encoded.
    pub compress: Option<Arc<EncodingPlan>>,
    /// Count the requests of all registered routes together: there can be 100,000 routes.
    pub counters: Arc<Counters>,
    /// The times of these requests. One for all: histograms for each route would take too much memory.
    pub meter: Arc<Meter>,
    pub journal: Journal,
}

/// A registered route as the table serves it.
#[derive(Clone)]
pub struct ServedRoute {
    /// Percent-decoded, without a slash at the end. Paths below it are included.
    pub path: Box<str>,
    pub route: Arc<Route>,
    /// The route has no members.
    pub is_empty: bool,
}

/// A member has failed on the data plane.
pub(super) struct AddressFailed {
    pub route: Arc<RouteKey>,
    pub member: MemberId,
    pub fault: MemberFault,
}

pub(super) struct Pools {
    template: RouteTemplate,
    /// Registered members are not our workers, so their deaths cannot be observed. It stays empty.
    poison: Arc<Poison>,
    pub rooms: HashMap<RouteKey, RouteRoom>,
    names: MemberNames,
    /// Routes that were removed and may still have requests.
    leaving: HashSet<RouteKey>,
    /// With so many of them, those without requests are freed at once. They count in no limit on registrations.
    most_leaving: usize,
    failed: mpsc::UnboundedSender<AddressFailed>,
}

impl Pools {
    /// An empty set. Failures of members with TLS are sent to `failed`.
    pub fn new(template: RouteTemplate, failed: mpsc::UnboundedSender<AddressFailed>) -> Self {
        let journal = template.journal.clone();
        Self {
            poison: Arc::new(Poison::new("registered".into(), PoisonSettings::OFF, journal, None)),
            template,
            rooms: HashMap::new(),
            names: MemberNames::default(),
            leaving: HashSet::new(),
            most_leaving: MOST_LEAVING,
            failed,
        }
    }

    /// Applies the registry's changes, and adds the hosts whose routes have changed to `touched`.
    pub fn apply(&mut self, changes: Vec<RouteChange>, touched: &mut HashSet<HostPattern>) {
        // A route that is removed with its last member never counts as empty.
        for change in &changes {
            if let RouteChange::Closed(key) = change {
                self.set_gone(key);
            }
        }
        for change in changes {
            match change {
                RouteChange::Opened(key) => {
                    self.open(&key);
                    touched.insert(key.host);
                }
                RouteChange::Joined(key, facts) => {
                    if self.join(&key, &facts) {
                        touched.insert(key.host);
                    }
                }
                RouteChange::Left(key, address, why) => {
                    if self.leave(&key, &address, why) {
                        touched.insert(key.host);
                    }
                }
                RouteChange::Ruled(key, options) => {
                    if self.rule(&key, &options) {
                        touched.insert(key.host);
                    }
                }
                RouteChange::Closed(key) => {
                    touched.insert(key.host.clone());
                    self.set_gone(&key);
                    // A new registration of the route may come while the room is still here. It begins without options.
                    self.rule(&key, &RouteOptions::default());
                    self.leaving.insert(key);
                }
            }
        }
        if self.leaving.len() >= self.most_leaving {
            self.free_left();
        }
    }

    /// The routes of a host.
    pub fn served(&self, registry: &Registry, host: &HostPattern) -> Vec<ServedRoute> {
        let paths = registry.paths(host).filter_map(|(path, entry)| {
            let key = RouteKey { host: host.clone(), path: path.into() };
            let route = self.rooms.get(&key)?.route.clone();
            Some(ServedRoute { path: key.path, route, is_empty: entry.members.is_empty() })
        });
        paths.collect()
    }

    /// Frees what has ended: tunnels of earlier registrations, and routes that were removed and have no requests any more.
    pub fn sweep(&mut self) {
        self.rooms.values_mut().for_each(RouteRoom::sweep);
        self.free_left();
        self.names.sweep();
    }

    /// Frees routes that were removed and have no requests any more.
    fn free_left(&mut self) {
        let rooms = &mut self.rooms;
        self.leaving.retain(|key| {
            let Some(room) = rooms.get(key) else { return false };
            let figures = room.pool.snapshot();
            let is_busy = figures.is_busy();
            if !is_busy {
                rooms.remove(key);
            }
            is_busy
        });
        // So many more must leave until the next time, or each message would look at all that have requests.
        self.most_leaving = self.leaving.len() + self.leaving.len().max(MOST_LEAVING);
    }

    pub fn address(&self, key: &RouteKey, member: MemberId) -> Option<Box<str>> {
        let members = &self.rooms.get(key)?.members;
        members.iter().find(|(_, membership)| membership.id() == member).map(|(address, _)| address.clone())
    }

    /// Checks each pool. The data plane does the same for configured pools.
    pub fn prune(&self, threads: usize) {
        self.each_endpoint(&|endpoint: &Endpoint| (0..threads).for_each(|thread| endpoint.prune(thread)));
    }

    /// Closes idle connections, because a request waits for a descriptor.
    pub fn make_room(&self, threads: usize) {
        self.each_endpoint(&|endpoint: &Endpoint| (0..threads).for_each(|thread| endpoint.make_room(thread)));
    }

    /// Also those of earlier registrations, which still have tunnels.
    fn each_endpoint(&self, act: &impl Fn(&Endpoint)) {
        self.rooms.values().for_each(|room| room.pool.each_endpoint(act));
    }

    pub fn dismiss_tunnels(&self) {
        self.rooms.values().for_each(|room| room.pool.dismiss_tunnels());
    }

    /// True if that changes the table.
    fn join(&mut self, key: &RouteKey, facts: &RegistrarFacts) -> bool {
        let mut endpoint = self.endpoint(facts);
        let is_near = self.template.rules.settings().zone.as_deref() == Some(&*facts.instance.zone);
        let slots = match self.template.settings.concurrency {
            0 => NO_LIMIT,
            limit => limit,
        };
        // Requests may still run in the pool of the earlier registration.
        self.leaving.remove(key);
        if !self.rooms.contains_key(key) {
            self.rooms.insert(key.clone(), self.room(key));
        }
        let Some(room) = self.rooms.get_mut(key) else { return false };
        endpoint.news =
            Some(MemberNews { journal: self.template.journal.clone(), pool: room.route.pattern.clone() });
        let was_empty = room.members.is_empty();
        let joined = match is_near {
            true => room.pool.join_near(endpoint, slots),
            false => room.pool.join(endpoint, slots),
        };
        room.presence.set(RoutePresence::Served);
        if let Some(former) = room.members.insert(facts.address.clone(), joined) {
            // The same process under another name: its tunnels can stay open.
            room.keep(&facts.address, former.leave_tunnels());
        }
        was_empty
    }

    /// A route without members, which it had at the predecessor.
    fn open(&mut self, key: &RouteKey) {
        self.leaving.remove(key);
        if !self.rooms.contains_key(key) {
            self.rooms.insert(key.clone(), self.room(key));
        }
        if let Some(room) = self.rooms.get(key) {
            room.presence.set(RoutePresence::Empty);
        }
    }

    fn leave(&mut self, key: &RouteKey, address: &str, why: Departure) -> bool {
        let Some(room) = self.rooms.get_mut(key) else { return false };
        let Some(membership) = room.members.remove(address) else { return false };
        if room.members.is_empty() && room.presence.get() == RoutePresence::Served {
            // Before the pool is empty: no lookup may find it from then on if another route of the host matches.
            room.presence.set(RoutePresence::Empty);
        }
        match why {
            Departure::Unregistered => {
                drop(membership);
                room.dismiss(address);
            }
            // The client has not unregistered. Perhaps it has only lost its connection to NATS, so its requests may finish.
            Departure::Silent => room.keep(address, membership.give_up()),
            Departure::Failed | Departure::Unfound => room.keep(address, membership.leave_tunnels()),
        }
        room.members.is_empty()
    }

    fn set_gone(&self, key: &RouteKey) {
        if let Some(room) = self.rooms.get(key) {
            room.presence.set(RoutePresence::Gone);
        }
    }

    fn rule(&mut self, key: &RouteKey, options: &RouteOptions) -> bool {
        let settings = self.pool_settings(options);
        let Some(room) = self.rooms.get(key) else { return false };
        room.pool.update(settings);
        let has_service = !options.service_url.is_empty();
        if room.has_service == has_service {
            return false;
        }
        let route = self.route(key, (room.pool.clone(), room.presence.clone()), has_service);
        if let Some(room) = self.rooms.get_mut(key) {
            room.route = route;
            room.has_service = has_service;
        }
        true
    }

    fn room(&self, key: &RouteKey) -> RouteRoom {
        let pool = Pool::new(key.to_string(), self.pool_settings(&RouteOptions::default()));
        let presence: Arc<SharedPresence> = Arc::default();
        let route = self.route(key, (pool.clone(), presence.clone()), false);
        RouteRoom { pool, route, has_service: false, presence, members: HashMap::new(), left: HashMap::new() }
    }

    fn route(
        &self,
        key: &RouteKey,
        (pool, presence): (Pool<Endpoint>, Arc<SharedPresence>),
        has_service: bool,
    ) -> Arc<Route> {
        let settings = &self.template.settings;
        let failed = self.failed.clone();
        let whose = Arc::new(key.clone());
        let kind = RegisteredRoute {
            rules: self.template.rules.clone(),
            context_path: if key.path.is_empty() { "/".into() } else { key.path.clone() },
            has_route_service: has_service,
            presence,
            on_failed: Arc::new(move |member, fault| {
                // The receiver is gone only when the program stops.
                let _ = failed.send(AddressFailed { route: whose.clone(), member, fault });
            }),
        };
        let target = PoolTargetSettings {
            queue_timeout: settings.queue.timeout,
            request_timeout: settings.request_timeout,
            connect_timeout: settings.connect_timeout,
            hang_timeout: None,
            hangs_up_at_once: false,
            tunnel_idle_timeout: settings.tunnel_idle_timeout,
            response_idle_timeout: settings.response_idle_timeout,
            stream_idle_timeout: settings.stream_idle_timeout,
            limits: self.template.limits,
            max_interim_answers: self.template.max_interim_answers,
        };
        let target = PoolTarget::new(pool, self.template.meter.clone(), self.poison.clone(), target);
        let target = PoolTarget {
            fair: self.template.fair.clone(),
            costs: self.template.costs.clone(),
            low: self.template.low.clone(),
            ..target
        };
        Arc::new(Route {
            streams_body: settings.buffer == Buffer::None,
            kind: Some(Arc::new(kind)),
            changes: Changes { compress: self.template.compress.clone(), ..Changes::default() },
            counters: self.template.counters.clone(),
            ..Route::new(target.name.clone(), Target::Pool(target), settings.max_body_size)
        })
    }

    fn pool_settings(&self, options: &RouteOptions) -> PoolSettings {
        let RouteTemplate { settings, rules, .. } = &self.template;
        PoolSettings {
            choice: match (options.balancing, settings.choice) {
                (Some(Balancing::RoundRobin), _) | (None, Choice::RoundRobin) => {
                    hostler_dispatch::MemberChoice::RoundRobin
                }
                (Some(Balancing::LeastConnection), _) | (None, Choice::LeastBusy) => {
                    hostler_dispatch::MemberChoice::LeastBusy
                }
                (None, Choice::Warm) => hostler_dispatch::MemberChoice::Warm,
            },
            queue_limit: rules.queue_limit(settings.queue.limit),
            policy: match settings.queue.policy {
                Policy::Adaptive => hostler_dispatch::Policy::Adaptive,
                Policy::Fifo => hostler_dispatch::Policy::Fifo,
            },
            order: settings.queue.short_first.map_or(Order::Arrival, |delay| Order::ShortFirst { delay }),
            fair: !settings.queue.fair.is_empty(),
            eject: EjectSettings {
                failures: settings.ejection.timeouts,
                min: settings.ejection.time,
                max: settings.ejection.max_time,
                share: settings.ejection.max_percent,
            },
            ..PoolSettings::default()
        }
    }

    fn endpoint(&mut self, facts: &RegistrarFacts) -> Endpoint {
        let tls = facts.tls.then(|| MemberTls {
            config: self.template.settings.member_tls.config.clone(),
            name: certified_name(facts),
        });
        let mut connector = Connector {
            tls: tls.map(Box::new),
            protocol: if facts.http2 { MemberProtocol::Http2 } else { MemberProtocol::Http1 },
            shuns: Some(self.template.own.clone()),
            ..Connector::from(Address::Tcp(facts.host.to_string(), facts.port))
        };
        if connector.has_name() {
            connector.names = self.names.of(&facts.host);
        }
        let label = facts.address.as_ref().into();
        let mut endpoint =
            Endpoint::new(connector, label, self.template.meter.clone(), self.template.threads, None);
        endpoint.instance = Some(facts.instance.clone());
        endpoint
    }
}

/// The name that the member's certificate must have.
fn certified_name(facts: &RegistrarFacts) -> ServerName<'static> {
    let wanted = if facts.san.is_empty() { &facts.host } else { &facts.san };
    let impossible = || ServerName::try_from("invalid.").expect("invariant: a constant name is valid");
    // No certificate has the name "invalid.", so the TLS handshake with this member fails and the error is reported.
    ServerName::try_from(wanted.to_string()).unwrap_or_else(|_| impossible())
}
