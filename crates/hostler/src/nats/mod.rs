//! One connection to NATS servers, kept for ever, and what is heard over it. Knows no messages and no routes.
//!
//! Whoever listens hears [`NatsEvent::Connected`] only after his subscription has gone out on that connection: what he then says,
//! others may answer at once.

mod options;

use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, Event, ServerInfo, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use hostler_config::Nats;
use tokio::sync::watch;
use tokio::time::sleep;

use hostler_engine::journal::{Journal, Level};

pub use async_nats::Message;

/// The longest pause between two tries; the library's own, for a connection that was made before, is as long.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A connection; cheap to clone. It ends with its last clone and the last listener.
#[derive(Clone)]
pub struct NatsConnection {
    now: watch::Receiver<ConnectionState>,
}

/// What there is at one moment.
#[derive(Clone, Default)]
struct ConnectionState {
    /// None before the first connection, and after the servers have turned us away.
    client: Option<Client>,
    /// Counts clients: a new one knows nothing of the subscriptions of the last.
    clients: u64,
    /// Counts connections.
    connects: u64,
}

/// What a listener hears.
#[derive(Debug)]
pub enum NatsEvent {
    /// There is a connection, or there is one again; what was said in between was missed.
    Connected,
    /// Somebody has said something.
    Message(Message),
}

impl NatsConnection {
    /// Begins to connect, in the background.
    pub fn open(settings: Nats, journal: Journal) -> Self {
        let (now, seen) = watch::channel(ConnectionState::default());
        tokio::spawn(keep(settings, Arc::new(now), journal));
        Self { now: seen }
    }

    /// Whether there is a connection at this moment, as far as we know.
    pub fn is_up(&self) -> bool {
        self.client().is_some_and(|client| client.connection_state() == State::Connected)
    }

    /// Waits for the first connection; for ever, if there never is one.
    pub async fn up(&self) {
        let _ = self.now.clone().wait_for(|now| now.connects > 0).await;
    }

    /// The server that we are connected to.
    pub fn server(&self) -> Option<String> {
        let ServerInfo { host, port, .. } = self.client()?.try_server_info()?;
        Some(format!("{host}:{port}"))
    }

    /// Our own address, as the server sees it; that of this machine to itself before there is a connection.
    pub fn own_address(&self) -> String {
        let seen = self.client().and_then(|client| client.try_server_info());
        seen.map(|info| info.client_ip).filter(|ip| !ip.is_empty()).unwrap_or_else(|| "127.0.0.1".into())
    }

    /// Says something. What cannot be said now is not said later: whoever must be heard says it again when he hears
    /// [`NatsEvent::Connected`].
    pub async fn publish(&self, subject: String, payload: Bytes) {
        if let Some(client) = self.client().filter(|_| self.is_up()) {
            let _ = client.publish(subject, payload).await;
        }
    }

    /// Asks all who hear this subject; what they answer is said under `reply`.
    pub async fn ask(&self, subject: String, reply: String) {
        if let Some(client) = self.client().filter(|_| self.is_up()) {
            let _ = client.publish_with_reply(subject, reply, Bytes::new()).await;
        }
    }

    /// Waits until all that was said has gone out.
    pub async fn flush(&self) {
        if let Some(client) = self.client().filter(|_| self.is_up()) {
            let _ = client.flush().await;
        }
    }

    /// Hears what is said under a subject, `*` standing for one word.
    pub fn listen(&self, subject: impl Into<String>) -> Listener {
        Listener { now: self.now.clone(), subject: subject.into(), subscriber: None, client: 0, connects: 0 }
    }

    fn client(&self) -> Option<Client> {
        self.now.borrow().client.clone()
    }
}

/// A subscription that outlives connections.
pub struct Listener {
    now: watch::Receiver<ConnectionState>,
    subject: String,
    subscriber: Option<Subscriber>,
    /// The client that it is subscribed with, and the last connection that it has told of.
    client: u64,
    connects: u64,
}

impl Listener {
    /// The next news; pends for ever once the connection is closed. Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> NatsEvent {
        loop {
            let now = self.now.borrow_and_update().clone();
            if let Some(client) = now.client.as_ref().filter(|_| now.clients != self.client) {
                // A client without a connection keeps what it is told.
                self.subscriber = client.subscribe(self.subject.clone()).await.ok();
                self.client = now.clients;
            }
            let is_subscribed =
                now.client.is_some() && now.clients == self.client && self.subscriber.is_some();
            if now.connects != self.connects && is_subscribed {
                self.connects = now.connects;
                return NatsEvent::Connected;
            }
            tokio::select! {
                biased;
                message = heard(&mut self.subscriber) => return NatsEvent::Message(message),
                changed = self.now.changed() => if changed.is_err() {
                    std::future::pending::<()>().await;
                },
            }
        }
    }
}

async fn heard(subscriber: &mut Option<Subscriber>) -> Message {
    let message = match subscriber {
        Some(subscriber) => subscriber.next().await,
        None => None,
    };
    match message {
        Some(message) => message,
        // Its client has ended: there will be another.
        None => std::future::pending().await,
    }
}

/// Makes clients for as long as somebody wants one. A client makes its connection again by itself, and ends only when the
/// servers turn it away.
async fn keep(settings: Nats, now: Arc<watch::Sender<ConnectionState>>, journal: Journal) {
    let mut failures = 0;
    while now.receiver_count() > 0 {
        let ended = Arc::new(tokio::sync::Notify::new());
        let connected = {
            let (now, journal, ended) = (Arc::downgrade(&now), journal.clone(), ended.clone());
            options::of(&settings).event_callback(move |event| {
                heed(&event, &journal);
                match (event, now.upgrade()) {
                    (Event::Connected, Some(now)) => now.send_modify(|now| now.connects += 1),
                    (Event::Closed, _) => ended.notify_one(),
                    _ => {}
                }
                std::future::ready(())
            })
        };
        match connected.connect(&settings.servers[..]).await {
            Ok(client) => {
                failures = 0;
                now.send_modify(|now| (now.client, now.clients) = (Some(client), now.clients + 1));
                tokio::select! {
                    () = ended.notified() => {}
                    () = now.closed() => return,
                }
                now.send_modify(|now| now.client = None);
            }
            Err(error) => {
                // One line for a server that is away, not one a second.
                if failures == 0 {
                    journal.event(Level::Warn, &format!("nats: no connection: {error}; trying on"));
                }
                failures += 1;
            }
        }
        sleep(options::pause(failures)).await;
    }
}

fn heed(event: &Event, journal: &Journal) {
    let (level, text) = match event {
        Event::Connected => (Level::Info, "connected".to_owned()),
        Event::Disconnected => (Level::Warn, "the connection is lost; connecting again".to_owned()),
        Event::SlowConsumer(_) => {
            (Level::Error, "messages came faster than they are read; some are lost".to_owned())
        }
        Event::ServerError(error) => (Level::Error, format!("the server says: {error}")),
        Event::Closed => (Level::Warn, "the servers have turned us away; trying on".to_owned()),
        Event::LameDuckMode => (Level::Info, "the server is about to stop".to_owned()),
        // A try to connect that came to nothing; there are many.
        Event::ClientError(_) | Event::Draining => return,
    };
    journal.event(level, &format!("nats: {text}"));
}
