//! Tells routers of our own pools over NATS, as the clients of Cloud Foundry's router do. Knows names and whether each can be served,
//! and nothing of requests.
//!
//! One task, on the control thread. What can be served is said at once, and again at the pace that routers ask for; what cannot any
//! more is taken back at once. Whoever may have missed something (a connection is made again, a router starts) is told all of it.

mod ledger;
mod message;

use std::sync::Arc;
use std::time::Duration;

use hostler_config::Advertise;
use hostler_engine::journal::{Journal, Level};
use ledger::{AnnouncedNames, Ledger};
use message::{Sender, wanted_interval};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::nats::{Listener, NatsConnection, NatsEvent};

const REGISTER: &str = "router.register";
const UNREGISTER: &str = "router.unregister";
/// How often is looked at what can be served.
const GLANCE: Duration = Duration::from_millis(50);
/// How long the farewell may take: NATS may be away just then, and we have to go.
const FAREWELL: Duration = Duration::from_secs(1);
/// From the farewell until clients are let in no more: routers that have heard it finish what they were about to send us.
const GRACE: Duration = Duration::from_millis(250);

/// What announces us.
pub struct AnnounceSettings {
    /// Where others reach us.
    pub at: Advertise,
    /// The availability zone of this machine; empty: none.
    pub zone: String,
    /// How often is said what we serve, unless a router wants to hear it more often.
    pub interval: Duration,
    /// Where is written what was said.
    pub journal: Journal,
}

/// What can be served at a moment: a pool's name, and a name for which it answers.
pub type Servable = Box<dyn Fn() -> Vec<(Arc<str>, String)> + Send>;

/// Our pools' announcement. Dropped, it falls silent and takes nothing back: a successor goes on with it.
pub struct Announcement {
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Announcement {
    /// Begins to announce.
    pub fn begin(connection: &NatsConnection, settings: AnnounceSettings, servable: Servable) -> Self {
        let inbox = format!("_INBOX.{}", uuid::Uuid::new_v4().simple());
        let voice = Voice {
            starts: connection.listen("router.start"),
            answers: connection.listen(inbox.clone()),
            inbox,
            connection: connection.clone(),
            sender: Sender::new(settings.at, settings.zone),
            ledger: Ledger::default(),
            longest: settings.interval,
            interval: settings.interval,
            journal: settings.journal,
        };
        let (end, ended) = oneshot::channel();
        Self { end: Some(end), task: tokio::spawn(voice.speak(servable, ended)) }
    }

    /// Takes all back, and waits a moment: whoever has not heard it by then finds a closed door and tries another.
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

/// The task that speaks.
struct Voice {
    connection: NatsConnection,
    /// Routers that start; answers to our greetings.
    starts: Listener,
    answers: Listener,
    inbox: String,
    sender: Sender,
    ledger: Ledger,
    longest: Duration,
    interval: Duration,
    journal: Journal,
}

impl Voice {
    async fn speak(mut self, servable: Servable, mut ended: oneshot::Receiver<()>) {
        let mut glance = tokio::time::interval(GLANCE);
        let mut last_said = Instant::now();
        loop {
            tokio::select! {
                // Dropped without a word, we fall silent.
                told = &mut ended => return if told.is_ok() { self.farewell().await },
                news = self.starts.next() => match news {
                    // Missed: what was said while there was no connection.
                    NatsEvent::Connected => {
                        self.interval = self.longest;
                        self.say_all().await;
                    }
                    NatsEvent::Message(message) => {
                        self.heed(&message.payload);
                        self.say_all().await;
                    }
                },
                news = self.answers.next() => match news {
                    NatsEvent::Connected => self.connection.ask("router.greet".into(), self.inbox.clone()).await,
                    NatsEvent::Message(message) => self.heed(&message.payload),
                },
                _ = glance.tick() => {
                    let news = self.ledger.take(servable());
                    self.say(UNREGISTER, &news.gone).await;
                    self.say(REGISTER, &news.come).await;
                    self.record(&news.come, "announced");
                    self.record(&news.gone, "taken back, it cannot be served");
                    continue;
                }
                () = sleep_until(last_said + self.interval) => self.say(REGISTER, &self.ledger.announced()).await,
            }
            last_said = Instant::now();
        }
    }

    /// The most impatient router sets the pace.
    fn heed(&mut self, payload: &[u8]) {
        if let Some(interval) = wanted_interval(payload) {
            self.interval = self.interval.min(interval);
        }
    }

    async fn say_all(&self) {
        let all = self.ledger.all();
        self.say(UNREGISTER, &all.gone).await;
        self.say(REGISTER, &all.come).await;
    }

    async fn say(&self, subject: &str, names: &AnnouncedNames) {
        for (pool, names) in names {
            self.connection.publish(subject.to_owned(), self.sender.payload(pool, names)).await;
        }
    }

    async fn farewell(&mut self) {
        let gone = self.ledger.take([]).gone;
        if gone.is_empty() {
            return;
        }
        self.say(UNREGISTER, &gone).await;
        let _ = timeout(FAREWELL, self.connection.flush()).await;
        self.record(&gone, "taken back");
        tokio::time::sleep(GRACE).await;
    }

    fn record(&self, names: &AnnouncedNames, what: &str) {
        for (pool, names) in names {
            self.journal.event(Level::Info, &format!("pool {pool}: {}: {what}", names.join(", ")));
        }
    }
}
