//! The registrar: it takes registrations over NATS in Cloud Foundry's router protocol. Knows pools and routes; knows no requests of
//! clients.
//!
//! One task on the control thread reads the messages. [`registry`] turns a message into changes, and [`pools`] applies these to pools at
//! once. Changed hosts are published together a moment later, or earlier when a caller reads the table: what the caller gets is already
//! served. A route that loses its last member gives way at once: each lookup asks for its presence.

mod facts;
mod key;
mod log;
mod message;
mod pools;
mod registry;
mod start;
mod view;
mod words;

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hostler_address::OwnAddresses;
use hostler_config::HostPattern;
use log::{Refused, RegistrarLog};
use message::Registration;
use pools::{AddressFailed, Pools};
use registry::{RegistrationRules, Registry, RouteChange};
use serde_json::{Value, json};
use start::RegistrarStart;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, interval_at, sleep_until};
use words::Oddity;

use crate::nats::{Listener, Message, NatsConnection, NatsEvent};

pub use pools::{RouteTemplate, ServedRoute};

/// The delay between a change of routes and its publication. It merges many changes into one; a route must be served within 100 ms.
const PUBLISH_DELAY: Duration = Duration::from_millis(10);
/// How often idle connections to members are checked.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// One subscription for register, unregister and greet keeps the messages in the order in which they were published.
const SUBJECTS: &str = "router.*";

/// Replaces the routes of these hosts. A host without routes is removed.
pub type Publish = Box<dyn FnMut(Vec<(HostPattern, Vec<ServedRoute>)>) + Send>;

/// A running registrar. Cheap to clone.
#[derive(Clone)]
pub struct RegistrarTask {
    connection: NatsConnection,
    state: Arc<Mutex<RegistrarState>>,
}

/// The limits on one message.
#[derive(Clone, Copy)]
struct RegistrationLimits {
    /// In bytes.
    message_size: usize,
    uris: usize,
}

/// The state of the registrar.
struct RegistrarState {
    limits: RegistrationLimits,
    own: Arc<OwnAddresses>,
    registry: Registry,
    pools: Pools,
    log: RegistrarLog,
    /// Hosts whose routes have changed since they were published.
    touched: HashSet<HostPattern>,
    publish: Publish,
}

impl RegistrarTask {
    /// Subscribes on the connection. `known` is what a predecessor has exported; it is published before this returns. `publish` must not
    /// call this registrar.
    pub fn open(connection: NatsConnection, template: RouteTemplate, known: &[u8], publish: Publish) -> Self {
        let settings = &template.settings;
        let rules = RegistrationRules {
            stale_threshold: settings.stale_threshold,
            keep_empty: settings.keep_empty,
            suspend_pruning: settings.suspend_pruning,
            sharding: settings.sharding,
            segments: settings.isolation_segments.clone(),
            folds_paths: template.rules.is_compat(),
            max_routes: settings.max_routes,
            max_memory: settings.max_memory,
        };
        let (failed, failures) = mpsc::unbounded_channel();
        let task = RegistrarLoop {
            listener: connection.listen(SUBJECTS),
            start: RegistrarStart::new(settings.register_interval, settings.stale_threshold),
            prune_interval: settings.prune_interval,
            threads: template.threads,
            failures,
        };
        let limits = RegistrationLimits { message_size: settings.max_message_size, uris: settings.max_uris };
        let mut state = RegistrarState {
            limits,
            own: template.own.clone(),
            registry: Registry::new(rules),
            log: RegistrarLog::new(template.journal.clone()),
            pools: Pools::new(template, failed),
            touched: HashSet::new(),
            publish,
        };
        known.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).for_each(|line| state.take(line));
        state.publish();
        let registrar = Self { connection, state: Arc::new(Mutex::new(state)) };
        tokio::spawn(task.run(registrar.clone()));
        registrar
    }

    pub fn status(&self) -> Value {
        let state = self.published();
        let (routes, members) = state
            .registry
            .iter()
            .fold((0, 0), |(routes, members), (.., entry)| (routes + 1, members + entry.members.len()));
        json!({
            "connected": self.connection.is_up(),
            "server": self.connection.server(),
            "routes": routes,
            "members": members,
            "pruning_suspended": state.registry.is_suspended(),
            "pruned": state.registry.pruned(),
            "memory": state.registry.bytes(),
            "messages": state.log.counts(),
        })
    }

    /// All routes with their members, as gorouter answers `/routes`.
    pub fn routes(&self) -> Value {
        let state = self.published();
        let routes = state.registry.iter().map(|(host, path, entry)| {
            let members: Vec<_> = entry.members.iter().map(view::MemberView::of).collect();
            (name(host, path), json!(members))
        });
        json!(routes.collect::<BTreeMap<_, _>>())
    }

    /// All routes sorted by name, in rows for operators.
    pub fn table(&self) -> Vec<Value> {
        let (state, now) = (self.published(), Instant::now());
        let mut rows: BTreeMap<String, Value> = BTreeMap::new();
        for (host, path, entry) in state.registry.iter() {
            let name = name(host, path);
            let row = json!({
                "route": name,
                "target": "registered",
                "service": entry.options.service_url,
                "members": view::rows(entry, now),
            });
            rows.insert(name, row);
        }
        rows.into_values().collect()
    }

    /// All registrations, one per line, for a successor.
    pub fn export(&self) -> Vec<u8> {
        let state = self.state();
        let mut lines = Vec::new();
        for (host, path, entry) in state.registry.iter() {
            let uri = name(host, path);
            for member in &entry.members {
                lines.extend(view::registration(&uri, member).to_string().into_bytes());
                lines.push(b'\n');
            }
        }
        lines
    }

    /// Tells all tunnels to end.
    pub fn dismiss_tunnels(&self) {
        self.state().pools.dismiss_tunnels();
    }

    /// The state, after all changes in it have been published.
    fn published(&self) -> MutexGuard<'_, RegistrarState> {
        let mut state = self.state();
        state.publish();
        state
    }

    fn state(&self) -> MutexGuard<'_, RegistrarState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(host: &HostPattern, path: &str) -> String {
    key::RouteKey { host: host.clone(), path: path.into() }.to_string()
}

/// The task that reads the messages.
struct RegistrarLoop {
    listener: Listener,
    start: RegistrarStart,
    prune_interval: Duration,
    threads: usize,
    failures: mpsc::UnboundedReceiver<AddressFailed>,
}

impl RegistrarLoop {
    async fn run(mut self, registrar: RegistrarTask) {
        let mut pruning = interval_at(Instant::now() + self.prune_interval, self.prune_interval);
        let mut sweeping = interval(SWEEP_INTERVAL);
        let mut due: Option<Instant> = None;
        loop {
            if due.is_none() && !registrar.state().touched.is_empty() {
                due = Some(Instant::now() + PUBLISH_DELAY);
            }
            tokio::select! {
                news = self.listener.next() => match news {
                    NatsEvent::Connected => self.announce(&registrar, "router.start".into()).await,
                    NatsEvent::Message(message) => self.handle(&registrar, message).await,
                },
                Some(failed) = self.failures.recv() => registrar.state().remove_failed(&failed),
                _ = pruning.tick() => {
                    let is_connected = registrar.connection.is_up();
                    registrar.state().prune(is_connected);
                }
                _ = sweeping.tick() => registrar.state().sweep(self.threads),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    due = None;
                    registrar.state().publish();
                }
            }
        }
    }

    async fn handle(&self, registrar: &RegistrarTask, message: Message) {
        match message.subject.as_str() {
            "router.register" => registrar.state().register(&message.payload),
            "router.unregister" => registrar.state().unregister(&message.payload),
            "router.greet" => {
                if let Some(reply) = message.reply {
                    self.announce(registrar, reply.to_string()).await;
                }
            }
            // Messages of other routers, and our own.
            _ => {}
        }
    }

    /// Tells clients that this router is up, and how often they must register.
    async fn announce(&self, registrar: &RegistrarTask, subject: String) {
        let payload = self.start.payload(registrar.connection.own_address());
        registrar.connection.publish(subject, payload).await;
    }
}

impl RegistrarState {
    /// Takes a registration, unless it is too large.
    fn register(&mut self, payload: &[u8]) {
        match payload.len() > self.limits.message_size {
            true => self.log.refused(&Refused::MessageSize(self.limits.message_size)),
            false => self.take(payload),
        }
    }

    fn take(&mut self, payload: &[u8]) {
        let message = match Registration::parse(payload) {
            Ok(message) => message,
            Err(why) => return self.log.invalid("router.register", &why, payload),
        };
        if message.uris.len() > self.limits.uris {
            let host = message.host.clone();
            return self.log.refused(&Refused::Uris(host, message.chosen_port(), self.limits.uris));
        }
        if let Some(refused) = self.own_address(&message) {
            return self.log.refused(&refused);
        }
        self.log.counts.registered += 1;
        let outcome = self.registry.register(&message, Instant::now());
        self.apply(outcome);
    }

    /// A registration of one of our own addresses would lead requests to the admin listener, or in circles. A host name is checked when
    /// it is connected to ([`hostler_engine::proxy::Connector`]).
    fn own_address(&self, message: &Registration) -> Option<Refused> {
        let address = SocketAddr::new(message.host.parse().ok()?, message.chosen_port());
        self.own.find(address).map(|ours| Refused::OwnAddress(address, ours))
    }

    fn unregister(&mut self, payload: &[u8]) {
        match Registration::parse(payload) {
            Ok(message) => {
                self.log.counts.unregistered += 1;
                let outcome = self.registry.unregister(&message, Instant::now());
                self.apply(outcome);
            }
            Err(why) => self.log.invalid("router.unregister", &why, payload),
        }
    }

    fn remove_failed(&mut self, failed: &AddressFailed) {
        let Some(address) = self.pools.address(&failed.route, failed.member) else { return };
        let changes = self.registry.failed((*failed.route).clone(), &address, Instant::now());
        self.apply((changes, Vec::new()));
    }

    fn prune(&mut self, is_connected: bool) {
        let was_suspended = self.registry.is_suspended();
        let changes = self.registry.prune(is_connected, Instant::now());
        self.log.pruned(was_suspended, self.registry.is_suspended(), &changes);
        self.apply((changes, Vec::new()));
    }

    fn apply(&mut self, (changes, odd): (Vec<RouteChange>, Vec<Oddity>)) {
        odd.iter().for_each(|oddity| self.log.odd(oddity));
        self.pools.apply(changes, &mut self.touched);
    }

    fn sweep(&mut self, threads: usize) {
        (0..threads).for_each(|thread| self.pools.prune(thread));
        self.pools.sweep();
    }

    fn publish(&mut self) {
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
