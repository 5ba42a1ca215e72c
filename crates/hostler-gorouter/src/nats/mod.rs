//! One connection to NATS servers, which is made again whenever it is lost. Knows no messages and no routes.
//!
//! A listener gets [`NatsEvent::Connected`] only after its subscription has been sent on that connection. So it receives the answers to
//! all that it publishes from then on.

mod backlog;
mod options;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event, ServerInfo, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use hostler_config::Nats;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use hostler_engine::journal::{Journal, Level, SeldomLine};

pub use async_nats::Message;
use backlog::{BacklogLimits, BacklogReader, MessageOutcome};

/// What each subscription may hold unread. Further messages are lost, and the log says so.
const MOST_UNREAD: BacklogLimits = BacklogLimits { messages: options::MAX_WAITING, bytes: 128 << 20 };
/// How long messages may take to be sent. If the connection is lost meanwhile, the library goes on only with the next one, perhaps hours later.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);
/// The log has each line about trouble at most this often.
const LOG_PAUSE: Duration = Duration::from_secs(60);
const TOO_FAST: &str = "messages come faster than Hostler reads them; some are lost";

/// A connection. Cheap to clone; it ends with its last clone and its last listener.
#[derive(Clone)]
pub struct NatsConnection {
    now: watch::Receiver<ConnectionState>,
    journal: Journal,
}

#[derive(Clone, Default)]
struct ConnectionState {
    /// None before the first connection, and after the client has ended.
    client: Option<Client>,
    /// The number of clients so far. A new client has none of the subscriptions of the one before.
    clients: u64,
    /// The number of connections so far.
    connects: u64,
}

#[derive(Debug)]
pub enum NatsEvent {
    /// The connection was made, for the first time or again. Messages in between are lost.
    Connected,
    Message(Message),
}

impl NatsConnection {
    /// Connects in the background.
    pub fn open(settings: Nats, journal: Journal) -> Self {
        let (now, seen) = watch::channel(ConnectionState::default());
        tokio::spawn(keep_connected(settings, Arc::new(now), journal.clone()));
        Self { now: seen, journal }
    }

    /// Whether there is a connection, as far as we know.
    pub fn is_up(&self) -> bool {
        self.number().is_some()
    }

    /// The number of the connection, if there is one as far as we know. Each one has another number.
    pub fn number(&self) -> Option<u64> {
        let ConnectionState { client, clients, .. } = self.now.borrow().clone();
        // The client counts a connection before it says that it is connected.
        let client = client.filter(|client| client.connection_state() == State::Connected)?;
        Some((clients << 32) + client.statistics().connects.load(Ordering::Relaxed))
    }

    /// Waits for the first connection, without a limit.
    pub async fn up(&self) {
        let _ = self.now.clone().wait_for(|now| now.connects > 0).await;
    }

    pub fn server(&self) -> Option<String> {
        let ServerInfo { host, port, .. } = self.client()?.try_server_info()?;
        Some(format!("{host}:{port}"))
    }

    /// Our own address as the server sees it. Before the first connection: this machine's address.
    pub fn own_address(&self) -> String {
        let seen = self.client().and_then(|client| client.try_server_info());
        seen.map(|info| info.client_ip).filter(|ip| !ip.is_empty()).unwrap_or_else(|| "127.0.0.1".into())
    }

    /// Publishes a message. Without a connection it is lost: a caller that needs it to arrive publishes it again after
    /// [`NatsEvent::Connected`].
    pub async fn publish(&self, subject: String, payload: Bytes) {
        if let Some(client) = self.client().filter(|_| self.is_up()) {
            let _ = client.publish(subject, payload).await;
        }
    }

    /// Publishes a request whose answers arrive under `reply`.
    pub async fn ask(&self, subject: String, reply: String) {
        if let Some(client) = self.client().filter(|_| self.is_up()) {
            let _ = client.publish_with_reply(subject, reply, Bytes::new()).await;
        }
    }

    /// Waits until all messages have been sent, for [`FLUSH_LIMIT`] at most. False if that was too short.
    pub async fn flush(&self) -> bool {
        let Some(client) = self.client().filter(|_| self.is_up()) else { return true };
        timeout(FLUSH_LIMIT, client.flush()).await.is_ok()
    }

    /// Subscribes to a subject. `*` stands for one word.
    pub fn listen(&self, subject: impl Into<String>) -> Listener {
        let (now, journal) = (self.now.clone(), self.journal.clone());
        Listener { now, journal, subject: subject.into(), backlog: None, client: 0, connects: 0 }
    }

    fn client(&self) -> Option<Client> {
        self.now.borrow().client.clone()
    }
}

/// A subscription that is made again with each connection.
pub struct Listener {
    now: watch::Receiver<ConnectionState>,
    journal: Journal,
    subject: String,
    backlog: Option<BacklogReader>,
    /// The client of this subscription, and the last connection that was reported.
    client: u64,
    connects: u64,
}

impl Listener {
    /// The next event. It pends for ever once the connection is closed. Cancel-safe.
    pub async fn next(&mut self) -> NatsEvent {
        loop {
            let now = self.now.borrow_and_update().clone();
            if let Some(client) = now.client.as_ref().filter(|_| now.clients != self.client) {
                // Without a connection the client stores the subscription and sends it later.
                let subscriber = client.subscribe(self.subject.clone()).await.ok();
                self.backlog = subscriber.map(|subscriber| kept(subscriber, self.journal.clone()));
                self.client = now.clients;
            }
            let is_subscribed = now.client.is_some() && now.clients == self.client && self.backlog.is_some();
            if now.connects != self.connects && is_subscribed {
                self.connects = now.connects;
                return NatsEvent::Connected;
            }
            tokio::select! {
                biased;
                message = heard(&mut self.backlog) => return NatsEvent::Message(message),
                changed = self.now.changed() => if changed.is_err() {
                    std::future::pending::<()>().await;
                },
            }
        }
    }
}

/// Moves messages from the library, which limits only their number, to a backlog. Ends with the subscription or with its reader.
fn kept(mut subscriber: Subscriber, journal: Journal) -> BacklogReader {
    let (mut writer, reader) = backlog::new(MOST_UNREAD);
    tokio::spawn(async move {
        while let Some(message) = subscriber.next().await {
            match writer.take(message) {
                MessageOutcome::Kept | MessageOutcome::Lost => {}
                MessageOutcome::FirstLost => journal.event(Level::Error, &format!("nats: {TOO_FAST}")),
                MessageOutcome::Unread => return,
            }
        }
    });
    reader
}

async fn heard(backlog: &mut Option<BacklogReader>) -> Message {
    let message = match backlog {
        Some(backlog) => backlog.next().await,
        None => None,
    };
    match message {
        Some(message) => message,
        // The client has ended: `keep_connected` makes another.
        None => std::future::pending().await,
    }
}

/// Makes clients while the connection is in use. A client reconnects by itself. It ends only if the library panics, as it does when a server
/// sends an error without a text.
async fn keep_connected(settings: Nats, now: Arc<watch::Sender<ConnectionState>>, journal: Journal) {
    let mut failures = 0;
    while now.receiver_count() > 0 {
        // A task of the library that panics tells no event. But the callback is dropped when the client ends, however that happens.
        let (lives, ended) = oneshot::channel::<()>();
        let connected = {
            let now = Arc::downgrade(&now);
            let log = ConnectionLog::new(journal.clone(), &settings);
            options::of(&settings).event_callback(move |event| {
                let _lives = &lives;
                log.event(&event);
                if let (Event::Connected, Some(now)) = (event, now.upgrade()) {
                    now.send_modify(|now| now.connects += 1);
                }
                std::future::ready(())
            })
        };
        match connect(connected, &settings).await {
            Ok(client) => {
                failures = 0;
                now.send_modify(|now| (now.client, now.clients) = (Some(client), now.clients + 1));
                tokio::select! {
                    _ = ended => {}
                    () = now.closed() => return,
                }
                now.send_modify(|now| now.client = None);
                journal.event(Level::Error, "nats: the connection failed inside Hostler; connecting again");
                // The next client may end at once, too.
                sleep(options::MAX_PAUSE).await;
            }
            Err(error) => {
                // One log line for an outage, not one for each attempt.
                if failures == 0 {
                    let servers = names(&settings);
                    let text = format!("nats: no connection to {servers}: {error}; trying again");
                    journal.event(Level::Warn, &text);
                }
                failures += 1;
                sleep(options::pause(failures)).await;
            }
        }
    }
}

/// In a task of its own: if the library panics, only this attempt fails.
async fn connect(options: ConnectOptions, settings: &Nats) -> Result<Client, String> {
    match tokio::spawn(options.connect(settings.servers.clone())).await {
        Ok(connected) => connected.map_err(|error| error.to_string()),
        Err(_) => Err("a server does not speak NATS".to_owned()),
    }
}

/// The log lines about one client.
struct ConnectionLog {
    journal: Journal,
    servers: String,
    told: Mutex<ToldTrouble>,
}

/// What the log has said of the connection.
struct ToldTrouble {
    /// Why attempts to connect have failed, if the log says so. Empty while there is a connection.
    failures: BTreeSet<String>,
    /// The lines about trouble.
    lines: BTreeMap<String, SeldomLine>,
    /// The last line is about trouble, or there is none: it is news that there is a connection.
    was_last: bool,
}

/// The servers, without the passwords that their addresses may have.
fn names(settings: &Nats) -> String {
    let servers = settings.servers.iter().map(|server| format!("{}:{}", server.host(), server.port()));
    servers.collect::<Vec<_>>().join(", ")
}

impl ConnectionLog {
    fn new(journal: Journal, settings: &Nats) -> Self {
        let told = ToldTrouble { failures: BTreeSet::new(), lines: BTreeMap::new(), was_last: true };
        Self { journal, servers: names(settings), told: Mutex::new(told) }
    }

    fn event(&self, event: &Event) {
        match event {
            Event::Connected => {
                let mut told = self.told();
                told.failures.clear();
                if std::mem::take(&mut told.was_last) {
                    self.write(Level::Info, "connected");
                }
            }
            Event::Disconnected => {
                _ = self.trouble(Level::Warn, "the connection is lost; connecting again");
            }
            Event::SlowConsumer(_) => _ = self.trouble(Level::Error, TOO_FAST),
            Event::ServerError(error) => {
                _ = self.trouble(Level::Error, &format!("the server says: {error}"));
            }
            Event::LameDuckMode => self.write(Level::Info, "the server is about to stop"),
            Event::ClientError(error) => self.failed(&error.to_string()),
            // Whatever ends a client, `keep_connected` notices it.
            Event::Draining | Event::Closed => {}
        }
    }

    /// A failed attempt to connect again. There may be several each second, and of several servers each has its reason. So only a new one
    /// has a line.
    fn failed(&self, why: &str) {
        let why = why.strip_prefix("nats: ").unwrap_or(why);
        if self.told().failures.contains(why) {
            return;
        }
        if self.trouble(Level::Warn, &format!("no connection to {}: {why}; trying again", self.servers)) {
            self.told().failures.insert(why.to_owned());
        }
    }

    /// Writes a line, but each at most once in [`LOG_PAUSE`]: a server may accept connections and close them at once. Returns whether it is
    /// written.
    fn trouble(&self, level: Level, text: &str) -> bool {
        let (mut told, now) = (self.told(), Instant::now());
        told.lines.retain(|_, line| line.was_written_in(LOG_PAUSE, now));
        if !told.lines.entry(text.to_owned()).or_default().is_due(LOG_PAUSE, now) {
            return false;
        }
        told.was_last = true;
        self.write(level, text);
        true
    }

    fn write(&self, level: Level, text: &str) {
        self.journal.event(level, &format!("nats: {text}"));
    }

    fn told(&self) -> MutexGuard<'_, ToldTrouble> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::net::Ipv4Addr;
    use std::os::fd::OwnedFd;
    use std::process::Command;

    use async_nats::ClientError;
    use hostler_config::NatsLogin;
    use hostler_engine::journal::LogFormat;
    use hostler_testkit::{eventually, nats, within};
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use tokio::time::advance;

    use super::*;

    fn settings(urls: &[&str]) -> Nats {
        Nats {
            servers: urls.iter().map(|url| url.parse().unwrap()).collect(),
            login: NatsLogin::None,
            tls: None,
            ping_interval: Duration::from_secs(60),
        }
    }

    fn opened(url: &str) -> NatsConnection {
        let settings = settings(&[url]);
        let journal = Journal::new(LogFormat::Json, false, File::create("/dev/null").unwrap()).unwrap();
        NatsConnection::open(settings, journal)
    }

    #[tokio::test]
    async fn a_server_that_makes_the_library_panic_is_connected_to_again() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let connection = opened(&format!("nats://{}", server.local_addr().unwrap()));
        let mut clients = Vec::new();
        // The library panics while it connects, then when it is connected, and then not any more.
        for said in ["-ERR\r\n", "INFO {}\r\nPONG\r\n-ERR\r\n", "INFO {}\r\nPONG\r\n"] {
            let (mut client, _) = within("a connection", server.accept()).await.unwrap();
            client.write_all(said.as_bytes()).await.unwrap();
            clients.push(client);
        }
        eventually("the second client to be in use", async || {
            connection.number().filter(|number| number >> 32 == 2)
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn each_trouble_has_one_line_in_an_outage_and_in_a_minute() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let journal = Journal::new(LogFormat::Json, false, File::from(OwnedFd::from(writer))).unwrap();
        let settings = settings(&["nats://app:s3cret@10.0.0.4:4222", "nats://10.0.0.5"]);
        let log = ConnectionLog::new(journal.clone(), &settings);
        let fails = |why: &str| log.event(&Event::ClientError(ClientError::Other(why.into())));
        // The server accepts connections, and closes them at once.
        for _ in 0..100 {
            log.event(&Event::Connected);
            log.event(&Event::Disconnected);
            ["IO error", "timed out", "IO error"].into_iter().for_each(fails);
        }
        log.event(&Event::Connected);
        // Soon after that it is away.
        log.event(&Event::Disconnected);
        fails("IO error");
        advance(LOG_PAUSE).await;
        (0..100).for_each(|_| fails("IO error"));
        log.event(&Event::Connected);
        journal.end();
        let mut told = String::new();
        reader.read_to_string(&mut told).unwrap();
        let io_error = "no connection to 10.0.0.4:4222, 10.0.0.5:4222: IO error; trying again";
        let parts = [
            "connected",
            "is lost",
            io_error,
            ": timed out; trying again",
            "connected",
            io_error,
            "connected",
        ];
        assert_eq!(told.lines().count(), parts.len(), "{told}");
        assert!(told.lines().zip(parts).all(|(line, part)| line.contains(part)), "{told}");
        assert!(!told.contains("s3cret"), "{told}");
    }

    #[tokio::test]
    async fn a_flush_ends_although_the_server_reads_nothing() {
        let Some(server) = nats().start().await else { return };
        let connection = opened(&server.url());
        eventually("a connection", async || connection.is_up().then_some(())).await;
        assert!(connection.flush().await);
        let stopped = Command::new("kill").args(["-STOP", &server.pid().to_string()]).status().unwrap();
        assert!(stopped.success());
        // More than the system holds for it.
        for _ in 0..64 {
            connection.publish("a".into(), vec![b'x'; 512 * 1024].into()).await;
        }
        assert!(!connection.flush().await);
    }
}
