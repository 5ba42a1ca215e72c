//! The registrar: it takes registrations over NATS in Cloud Foundry's router protocol. Knows pools and routes; knows no requests of
//! clients.
//!
//! One task on the control thread reads the messages. [`registry`] turns a message into changes, and [`pools`] applies these to pools at
//! once. Changed hosts are published together a moment later, or earlier when a caller reads the table: what the caller gets is already
//! served. A route that loses its last member gives way at once: each lookup asks for its presence.

mod empty_route;
mod facts;
mod first_export;
mod key;
mod log;
mod member_names;
mod message;
mod pools;
mod registry;
mod room;
mod start;
mod state;
mod view;
mod words;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hostler_config::HostPattern;
use hostler_engine::proxy::{ROOM_PAUSE, descriptor_wanted};
use key::RouteKey;
use log::RegistrarLog;
use pools::{AddressFailed, Pools};
use registry::{RegistrationRules, Registry};
use serde_json::{Value, json};
use start::RegistrarStart;
use state::{RegistrarState, RegistrationLimits};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at, sleep_until, timeout};

use crate::nats::{Listener, Message, NatsConnection, NatsEvent};

pub use pools::{RouteTemplate, ServedRoute};
pub use state::Publish;

/// The delay between a change of routes and its publication. It merges many changes into one; a route must be served within 100 ms.
const PUBLISH_DELAY: Duration = Duration::from_millis(10);
/// How often idle connections to members are checked.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// One subscription for register, unregister and greet keeps the messages in the order in which they were published.
const SUBJECTS: &str = "router.*";
/// The subject of a mark: a message to this registrar itself, which follows all others that the server has. Other programs ignore it.
const MARK: &str = "router.hostler-mark";
/// How long a mark may be under way.
const MARK_LIMIT: Duration = Duration::from_secs(1);

/// A running registrar. Cheap to clone.
#[derive(Clone)]
pub struct RegistrarTask {
    connection: NatsConnection,
    state: Arc<Mutex<RegistrarState>>,
    /// Whether messages have arrived here from some time on.
    subscribed: watch::Receiver<bool>,
    /// The last mark that was read.
    marks: watch::Receiver<Bytes>,
}

impl RegistrarTask {
    /// Subscribes on the connection. `known` is what a predecessor has exported, if there is one; it is published before this returns.
    /// `publish` must not call this registrar.
    pub fn open(
        connection: NatsConnection,
        template: RouteTemplate,
        known: Option<&[u8]>,
        publish: Publish,
    ) -> Self {
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
        let (subscription, subscribed) = watch::channel(false);
        let (marked, marks) = watch::channel(Bytes::new());
        let task = RegistrarLoop {
            listener: connection.listen(SUBJECTS),
            start: RegistrarStart::new(settings.register_interval, settings.stale_threshold),
            prune_interval: settings.prune_interval,
            threads: template.threads,
            failures,
            subscription,
            marked,
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
            first_export: None,
        };
        if let Some(known) = known {
            state.inherit(known);
        }
        let registrar = Self { connection, state: Arc::new(Mutex::new(state)), subscribed, marks };
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
            "messages": state.log.counts,
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

    /// All registrations and all routes without members, one per line, for a successor.
    pub fn export(&self) -> Vec<u8> {
        let (state, now) = (self.state(), Instant::now());
        let mut lines = Vec::new();
        for (host, path, entry) in state.registry.iter() {
            let uri = name(host, path);
            let empty = entry.members.is_empty().then(|| view::empty_route(&uri, entry, now));
            let members = entry.members.iter().map(|member| view::registration(&uri, member));
            for line in members.chain(empty) {
                lines.extend(line.to_string().into_bytes());
                lines.push(b'\n');
            }
        }
        lines
    }

    /// Waits until messages arrive, without a limit. The message about ourselves is the first one.
    pub async fn subscribed(&self) {
        let _ = self.subscribed.clone().wait_for(|subscribed| *subscribed).await;
    }

    /// Waits until all messages have been read that the server had before this call, for [`MARK_LIMIT`] at most.
    pub async fn catch_up(&self) {
        if !self.connection.is_up() {
            return;
        }
        // Other routers read it as a registration without URIs.
        let mark = Bytes::from(json!({ "id": uuid::Uuid::new_v4().to_string() }).to_string());
        let mut marks = self.marks.clone();
        self.connection.publish(MARK.into(), mark.clone()).await;
        let _ = timeout(MARK_LIMIT, marks.wait_for(|read| *read == mark)).await;
    }

    /// Takes what the predecessor has exported after we subscribed. None: it has exported nothing again.
    pub fn take_over(&self, newest: Option<&[u8]>) {
        self.state().take_over(newest);
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
    RouteKey { host: host.clone(), path: path.into() }.to_string()
}

/// The task that reads the messages.
struct RegistrarLoop {
    listener: Listener,
    start: RegistrarStart,
    prune_interval: Duration,
    threads: usize,
    failures: mpsc::UnboundedReceiver<AddressFailed>,
    subscription: watch::Sender<bool>,
    marked: watch::Sender<Bytes>,
}

impl RegistrarLoop {
    async fn run(mut self, registrar: RegistrarTask) {
        let mut pruning = interval_at(Instant::now() + self.prune_interval, self.prune_interval);
        let mut sweeping = interval(SWEEP_INTERVAL);
        for ticks in [&mut pruning, &mut sweeping] {
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        let (mut due, mut room_made) = (None::<Instant>, None::<Instant>);
        loop {
            if due.is_none() && !registrar.state().touched.is_empty() {
                due = Some(Instant::now() + PUBLISH_DELAY);
            }
            tokio::select! {
                news = self.listener.next() => match news {
                    NatsEvent::Connected => {
                        registrar.state().connected(registrar.connection.number());
                        self.announce(&registrar, "router.start".into()).await;
                    }
                    NatsEvent::Message(message) => self.handle(&registrar, message).await,
                },
                Some(failed) = self.failures.recv() => {
                    let is_connected = registrar.connection.is_up();
                    registrar.state().remove_failed(&failed, is_connected);
                }
                was_due = pruning.tick() => {
                    let connection = registrar.connection.number();
                    registrar.state().prune(connection, was_due);
                }
                _ = sweeping.tick() => registrar.state().sweep(self.threads),
                () = descriptor_wanted() => {
                    if room_made.is_none_or(|at| at.elapsed() >= ROOM_PAUSE) {
                        room_made = Some(Instant::now());
                        registrar.state().make_room(self.threads);
                    }
                }
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
            // The server has had our subscription before it.
            "router.start" if self.start.is_in(&message.payload) => _ = self.subscription.send_replace(true),
            MARK => _ = self.marked.send_replace(message.payload),
            // Messages of other routers.
            _ => {}
        }
    }

    /// Tells clients that this router is up, and how often they must register.
    async fn announce(&self, registrar: &RegistrarTask, subject: String) {
        let payload = self.start.payload(registrar.connection.own_address());
        registrar.connection.publish(subject, payload).await;
    }
}
