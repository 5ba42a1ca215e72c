//! Registers our own pools with routers over NATS, as clients of Cloud Foundry's router do. Knows the pools' names and whether each can
//! be served; knows no requests.
//!
//! One task on the control thread. It registers a pool as soon as the pool can be served, repeats that at the interval that routers ask
//! for, and unregisters the pool as soon as it cannot be served. After a reconnect, or when a router starts, it sends all registrations
//! again.

mod announcements;
mod message;
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use announcements::{AnnouncedName, AnnouncedNames, Announcements, by_pool};
use hostler_config::Advertise;
use hostler_engine::journal::{Journal, Level};
use message::{Sender, wanted_interval};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, sleep_until, timeout};

use crate::nats::{Listener, NatsConnection, NatsEvent};

pub use told::ToldName;

const REGISTER: &str = "router.register";
const UNREGISTER: &str = "router.unregister";
/// How often the task checks which pools can be served.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The time limit for the last messages: NATS may be unreachable while the program stops.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);
/// The wait between unregistering and closing the listeners: routers finish the requests that they were about to send.
const GRACE: Duration = Duration::from_millis(250);
/// So long after a name has left [`Servable`], routers have heard of it and have finished the requests that they were about to send.
pub const NOTICE: Duration = Duration::from_millis(300);
/// With the next connection, all messages are sent again.
const LATER: &str = "; routers hear of it when NATS is connected";

pub struct AnnounceSettings {
    /// The address at which routers reach us.
    pub at: Advertise,
    /// The availability zone of this machine. Empty if there is none.
    pub zone: String,
    /// How often registrations are repeated, unless a router asks for a shorter interval.
    pub interval: Duration,
    /// What a predecessor has announced and is announced no more: at this address, or at all if its address was another one.
    pub former: Vec<ToldName>,
    pub journal: Journal,
}

/// Returns what can be served now: pairs of a pool's name and a name under which it is announced.
pub type Servable = Box<dyn Fn() -> Vec<(Arc<str>, String)> + Send>;

/// The running announcement. Dropping it stops the messages without unregistering, because a successor goes on with them.
pub struct Announcement {
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Announcement {
    pub fn begin(connection: &NatsConnection, settings: AnnounceSettings, servable: Servable) -> Self {
        let announce_task = AnnounceTask::new(connection, settings);
        let (end, ended) = oneshot::channel();
        Self { end: Some(end), task: tokio::spawn(announce_task.run(servable, ended)) }
    }

    /// Unregisters all pools and waits a moment. A router that misses the messages finds the listeners closed and tries another member.
    pub async fn end(mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
        let _ = (&mut self.task).await;
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The names with what sends messages about each address.
fn by_address(told: &[ToldName], zone: &str) -> Vec<(Sender, AnnouncedNames)> {
    let mut addresses: BTreeMap<(String, u16, bool), BTreeSet<AnnouncedName>> = BTreeMap::new();
    for told in told {
        if let Some(Advertise { host, port, tls }) = told.address() {
            addresses.entry((host, port, tls)).or_default().insert(told.entry());
        }
    }
    let sender = |(host, port, tls)| Sender::new(Advertise { host, port, tls }, zone.to_owned());
    addresses.into_iter().map(|(address, names)| (sender(address), by_pool(&names))).collect()
}

/// The task.
struct AnnounceTask {
    connection: NatsConnection,
    /// The messages of routers that start, and the answers to our greetings.
    starts: Listener,
    answers: Listener,
    inbox: String,
    sender: Sender,
    announcements: Announcements,
    /// What a predecessor has announced at other addresses. Empty after one interval, in which it may have said it once more. Without a
    /// connection no router hears that, so it stays.
    elsewhere: Vec<(Sender, AnnouncedNames)>,
    longest: Duration,
    interval: Duration,
    journal: Journal,
}

impl AnnounceTask {
    fn new(connection: &NatsConnection, settings: AnnounceSettings) -> Self {
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            settings.former.into_iter().partition(|told| told.is_at(&settings.at));
        let inbox = format!("_INBOX.{}", uuid::Uuid::new_v4().simple());
        Self {
            starts: connection.listen("router.start"),
            answers: connection.listen(inbox.clone()),
            inbox,
            connection: connection.clone(),
            elsewhere: by_address(&elsewhere, &settings.zone),
            sender: Sender::new(settings.at, settings.zone),
            announcements: Announcements::after(here.iter().map(ToldName::entry)),
            longest: settings.interval,
            interval: settings.interval,
            journal: settings.journal,
        }
    }

    async fn run(mut self, servable: Servable, mut ended: oneshot::Receiver<()>) {
        let mut poll = tokio::time::interval(POLL_INTERVAL);
        // Otherwise an hour of SIGSTOP would be followed by 72,000 looks at once.
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_published = Instant::now();
        // Before anything is taken back elsewhere.
        self.look(servable()).await;
        loop {
            tokio::select! {
                // Dropped without a message: a successor goes on, so nothing is unregistered.
                told = &mut ended => return if told.is_ok() { self.unregister_all().await },
                news = self.starts.next() => match news {
                    // Messages that were sent without a connection are lost.
                    NatsEvent::Connected => {
                        self.interval = self.longest;
                        self.publish_all().await;
                    }
                    NatsEvent::Message(message) => {
                        self.adopt_interval(&message.payload);
                        self.publish_all().await;
                    }
                },
                news = self.answers.next() => match news {
                    NatsEvent::Connected => self.connection.ask("router.greet".into(), self.inbox.clone()).await,
                    NatsEvent::Message(message) => self.adopt_interval(&message.payload),
                },
                _ = poll.tick() => {
                    self.look(servable()).await;
                    continue;
                }
                () = sleep_until(last_published + self.interval) => self.repeat().await,
            }
            last_published = Instant::now();
        }
    }

    /// Tells routers once more what they know.
    async fn repeat(&mut self) {
        let is_heard = self.connection.is_up();
        self.publish(REGISTER, &self.announcements.announced()).await;
        self.unregister_elsewhere().await;
        if is_heard {
            self.elsewhere.clear();
        }
    }

    /// Tells routers what has changed.
    async fn look(&mut self, servable: Vec<AnnouncedName>) {
        let news = self.announcements.take(servable);
        self.publish(UNREGISTER, &news.gone).await;
        self.publish(REGISTER, &news.come).await;
        self.record(&news.come, "announced", LATER);
        self.record(&news.gone, "unregistered, because it cannot be served", LATER);
    }

    /// The router with the shortest interval sets ours.
    fn adopt_interval(&mut self, payload: &[u8]) {
        if let Some(interval) = wanted_interval(payload) {
            self.interval = self.interval.min(interval);
        }
    }

    async fn publish_all(&self) {
        let all = self.announcements.all();
        self.publish(UNREGISTER, &all.gone).await;
        self.publish(REGISTER, &all.come).await;
        self.unregister_elsewhere().await;
    }

    async fn unregister_elsewhere(&self) {
        for (sender, names) in &self.elsewhere {
            self.publish_by(sender, UNREGISTER, names).await;
        }
    }

    async fn publish(&self, subject: &str, names: &AnnouncedNames) {
        self.publish_by(&self.sender, subject, names).await;
    }

    async fn publish_by(&self, sender: &Sender, subject: &str, names: &AnnouncedNames) {
        for (pool, names) in names {
            self.connection.publish(subject.to_owned(), sender.payload(pool, names)).await;
        }
    }

    async fn unregister_all(&mut self) {
        let gone = self.announcements.take([]).gone;
        if gone.is_empty() {
            return;
        }
        self.publish(UNREGISTER, &gone).await;
        let _ = timeout(FLUSH_LIMIT, self.connection.flush()).await;
        self.record(&gone, "unregistered", "; NATS is not connected, so routers do not hear of it");
        tokio::time::sleep(GRACE).await;
    }

    /// `without`: what to add if there is no connection, so that the messages are lost.
    fn record(&self, names: &AnnouncedNames, what: &str, without: &str) {
        let without = if self.connection.is_up() { "" } else { without };
        for (pool, names) in names {
            self.journal.event(Level::Info, &format!("pool {pool}: {}: {what}{without}", names.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use hostler_config::{Nats, NatsLogin};
    use hostler_engine::journal::LogFormat;
    use hostler_testkit::{eventually, nats};

    use super::*;

    #[tokio::test]
    async fn an_old_address_is_unregistered_as_soon_as_somebody_hears_it() {
        let Some(server) = nats().start().await else { return };
        let settings = Nats {
            servers: vec![server.url().parse().unwrap()],
            login: NatsLogin::None,
            tls: None,
            ping_interval: Duration::from_secs(60),
        };
        let journal = Journal::new(LogFormat::Json, false, File::create("/dev/null").unwrap()).unwrap();
        let connection = NatsConnection::open(settings, journal.clone());
        let at = |host: &str| Advertise { host: host.into(), port: 443, tls: true };
        let settings = AnnounceSettings {
            at: at("new.internal"),
            zone: String::new(),
            interval: Duration::from_secs(20),
            former: vec![ToldName::new(&at("old.internal"), "web", "a.test")],
            journal,
        };
        let mut task = AnnounceTask::new(&connection, settings);
        // Nothing has waited, so there is no connection yet.
        task.repeat().await;
        assert_eq!(task.elsewhere.len(), 1);
        eventually("a connection", async || connection.is_up().then_some(())).await;
        task.repeat().await;
        assert!(task.elsewhere.is_empty());
    }
}
