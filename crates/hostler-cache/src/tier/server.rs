//! One memcached server: its connections, and whether it can be used. Knows no items.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use async_memcached::{AsciiProtocol, Client, Error, ErrorKind, MetaProtocol, Status};
use serde::Serialize;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout};

use super::dial::{MemcachedConnection, dial};

/// The most connections to a server. An operation without a connection waits for one within its time limit.
const CONNECTIONS: usize = 16;

/// The client library reads an answer into a buffer that never shrinks. A connection that has read a larger value is closed after
/// [`LARGE_FOR`]. Until then it is used again, so that a server with many large values gets few new connections.
const SMALL: usize = 64 * 1024;
const LARGE_FOR: Duration = Duration::from_secs(10);

/// After this many failures in a row, a server is not used until it answers its keeper.
const MOST_FAILURES: u32 = 3;

/// Called when a server is found or lost.
pub(super) type NoticeCallback = dyn Fn(Notice<'_>) + Send + Sync;

/// A server was found or lost.
#[derive(Debug, Clone, Copy)]
pub struct Notice<'a> {
    /// Its name in the settings.
    pub server: &'a str,
    /// Why it was lost. `None`: it was found.
    pub lost: Option<&'a str>,
}

pub(super) struct MemcachedServer {
    name: Box<str>,
    tell: Arc<NoticeCallback>,
    /// With the thread that last used each connection: a connection belongs to a runtime, and use from another runtime
    /// costs one more wake-up.
    idle: Mutex<Vec<(ThreadId, MemcachedConnection)>>,
    room: Semaphore,
    is_here: AtomicBool,
    failures: AtomicU32,
    /// How many operations it has answered.
    answered: AtomicUsize,
    /// Only one task at a time synchronises the server's page with our log.
    pub synchronising: Semaphore,
    why: Mutex<Option<Box<str>>>,
    nudged: Notify,
    pub counts: ServerCounts,
}

/// An operation.
pub(super) enum Op<'a> {
    Get(&'a str),
    Set(&'a str, Set<'a>),
    Delete(&'a str),
    /// Reads the version of an item, without its value.
    Look(&'a str),
    /// Reads an item with its version.
    Read(&'a str),
    /// Changes an item if its version is still the same. `None`: adds an item if it does not exist.
    Exchange(&'a str, Option<u64>, Set<'a>),
}

pub(super) struct Set<'a> {
    pub value: &'a [u8],
    /// A number that can be read without the value.
    pub mark: u32,
    /// Seconds until it expires. 0: never.
    pub seconds: u64,
}

pub(super) enum Reply {
    Found(Vec<u8>),
    ItemSeen(ItemSeen),
    Missing,
    Done,
    /// Another Hostler changed the item first.
    Raced,
    /// The server refuses the item: it is too large, or there is no memory for it.
    Refused,
}

impl Reply {
    /// The bytes of the value that was read.
    fn bytes(&self) -> usize {
        match self {
            Self::Found(value) => value.len(),
            Self::ItemSeen(seen) => seen.value.len(),
            Self::Missing | Self::Done | Self::Raced | Self::Refused => 0,
        }
    }
}

/// An item with its version.
pub(super) struct ItemSeen {
    /// Changes with each write.
    pub version: u64,
    pub mark: u32,
    /// Empty if only the version was requested.
    pub value: Vec<u8>,
}

#[derive(Debug)]
pub(super) enum ServerFailure {
    /// It took longer than the time limit.
    Slow,
    /// No connection, or an invalid answer.
    Broken(String),
}

/// A counter. Any thread may add to it.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}

/// What a server was used for.
#[derive(Debug, Default, Serialize)]
pub struct ServerCounts {
    /// It had the requested item.
    pub hits: Counter,
    /// It did not have the item.
    pub misses: Counter,
    /// It had an item that was purged or is too old.
    pub void: Counter,
    /// It had an item that cannot be read.
    pub garbled: Counter,
    /// It did not answer in time.
    pub slow: Counter,
    /// It could not be reached, or broke the protocol.
    pub failed: Counter,
    /// It stored an item.
    pub stored: Counter,
    /// An item was not sent: the server was away or too slow, or the item was too large.
    pub dropped: Counter,
}

/// A server in the Status.
#[derive(Debug, Serialize)]
pub struct ServerStatus {
    /// Its name in the settings.
    pub server: Box<str>,
    /// `here`, or `away`: then it is not used.
    pub state: &'static str,
    /// Why it is away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Box<str>>,
    /// Counted since the start.
    #[serde(flatten)]
    pub counts: serde_json::Value,
}

impl MemcachedServer {
    pub fn new(name: &str, tell: Arc<NoticeCallback>) -> Self {
        Self {
            name: name.into(),
            tell,
            idle: Mutex::default(),
            room: Semaphore::new(CONNECTIONS),
            is_here: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            answered: AtomicUsize::new(0),
            synchronising: Semaphore::new(1),
            why: Mutex::new(Some("not found yet".into())),
            nudged: Notify::new(),
            counts: ServerCounts::default(),
        }
    }

    /// Whether it can be used.
    pub fn is_here(&self) -> bool {
        self.is_here.load(Ordering::Relaxed)
    }

    /// Tells the keeper of this server to look after it now.
    pub fn nudge(&self) {
        self.nudged.notify_one();
    }

    pub async fn nudged(&self) {
        self.nudged.notified().await;
    }

    /// Sends an operation, whether the server is here or not. If the future is dropped or late, the connection is closed,
    /// because its answer may still come.
    pub async fn ask(&self, op: Op<'_>, time_limit: Duration) -> Result<Reply, ServerFailure> {
        let before = self.answered.load(Ordering::Relaxed);
        let outcome =
            timeout(time_limit, self.ask_without_limit(op)).await.unwrap_or(Err(ServerFailure::Slow));
        match &outcome {
            Ok(_) => {
                self.failures.store(0, Ordering::Relaxed);
                self.answered.fetch_add(1, Ordering::Relaxed);
            }
            // Each connection has brought an answer meanwhile, so this operation has waited behind others of a burst.
            Err(ServerFailure::Slow) if self.answered_since(before) >= CONNECTIONS => self.counts.slow.add(1),
            Err(failure) => self.note(failure),
        }
        outcome
    }

    fn answered_since(&self, before: usize) -> usize {
        self.answered.load(Ordering::Relaxed).wrapping_sub(before)
    }

    async fn ask_without_limit(&self, op: Op<'_>) -> Result<Reply, ServerFailure> {
        let broken = |error: Error| ServerFailure::Broken(reason(&error));
        let Ok(_room) = self.room.acquire().await else { return Err(ServerFailure::Broken("closed".into())) };
        let mut connection = match self.take_idle() {
            Some(connection) => connection,
            None => dial(&self.name).await.map_err(broken)?,
        };
        let reply = match ask(&mut connection.client, op).await {
            Ok(reply) => reply,
            Err(Error::Protocol(Status::Error(ErrorKind::Server(_) | ErrorKind::Client(_)))) => {
                Reply::Refused
            }
            Err(error) => return Err(broken(error)),
        };
        if reply.bytes() > SMALL {
            connection.large_since.get_or_insert_with(Instant::now);
        }
        self.idle().push((std::thread::current().id(), connection));
        Ok(reply)
    }

    /// Closes the idle connections that have had a large buffer for a while.
    pub fn shrink(&self) {
        let is_new = |since: Instant| since.elapsed() < LARGE_FOR;
        self.idle().retain(|(_, connection)| connection.large_since.is_none_or(is_new));
    }

    /// The lock guards a list, and each change to it is one call.
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(ThreadId, MemcachedConnection)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_idle(&self) -> Option<MemcachedConnection> {
        let here = std::thread::current().id();
        let mut idle = self.idle();
        let own = idle.iter().rposition(|(thread, _)| *thread == here);
        // If no more connections are allowed, a connection of another thread is better than none. Each operation under way, this one as well,
        // has a connection or is about to have one.
        let at = own.or_else(|| (idle.len() > self.room.available_permits()).then_some(0))?;
        Some(idle.swap_remove(at).1)
    }

    fn note(&self, failure: &ServerFailure) {
        let why = match failure {
            ServerFailure::Slow => {
                self.counts.slow.add(1);
                "it does not answer in time"
            }
            ServerFailure::Broken(why) => {
                self.counts.failed.add(1);
                why
            }
        };
        // The server may have been restarted while the connection was idle. Then all idle connections are dead. They are
        // closed here, so that they count as one failure together.
        self.idle().clear();
        if self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_FAILURES {
            self.leave(why);
        }
    }

    /// The server answers, but cannot be used. Its keeper goes on asking.
    pub fn give_up(&self, why: &str) -> ServerFailure {
        self.counts.failed.add(1);
        self.leave(why);
        ServerFailure::Broken(why.into())
    }

    /// Stops using the server.
    fn leave(&self, why: &str) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.into());
        if self.is_here.swap(false, Ordering::Relaxed) {
            (self.tell)(Notice { server: &self.name, lost: Some(why) });
        }
    }

    /// Uses the server again.
    pub fn come(&self) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if !self.is_here.swap(true, Ordering::Relaxed) {
            (self.tell)(Notice { server: &self.name, lost: None });
        }
    }

    pub fn status(&self) -> ServerStatus {
        ServerStatus {
            server: self.name.clone(),
            state: if self.is_here() { "here" } else { "away" },
            why: self.why.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            counts: serde_json::to_value(&self.counts).unwrap_or_default(),
        }
    }
}

/// For the log and the Status. The client library names its parser's step, which tells an operator nothing.
fn reason(error: &Error) -> String {
    match error {
        Error::Protocol(Status::Error(ErrorKind::Protocol(_))) => {
            "it does not answer as memcached does".into()
        }
        Error::Protocol(Status::Error(ErrorKind::NonexistentCommand)) => {
            "it does not know a command of memcached 1.6".into()
        }
        error => error.to_string(),
    }
}

async fn ask(client: &mut Client, op: Op<'_>) -> Result<Reply, Error> {
    match op {
        Op::Get(name) => match client.get(name).await? {
            // Otherwise it is the answer to another operation.
            Some(value) if value.key == name.as_bytes() => Ok(Reply::Found(value.data.unwrap_or_default())),
            Some(_) => Err(Status::Error(ErrorKind::Protocol(Some("another key's value".into()))).into()),
            None => Ok(Reply::Missing),
        },
        Op::Set(name, set) => {
            let seconds = i64::try_from(set.seconds).unwrap_or(i64::MAX);
            client.set(name, set.value, Some(seconds), Some(set.mark)).await.map(|()| Reply::Done)
        }
        Op::Delete(name) => match client.delete(name).await {
            Err(Error::Protocol(Status::NotFound)) => Ok(Reply::Missing),
            outcome => outcome.map(|()| Reply::Done),
        },
        Op::Look(name) => see(client, name, &["k", "c", "f"]).await,
        Op::Read(name) => see(client, name, &["k", "c", "f", "v"]).await,
        Op::Exchange(name, version, set) => {
            let (mark, seconds) = (format!("F{}", set.mark), format!("T{}", set.seconds));
            // Otherwise "add".
            let how = version.map_or_else(|| "ME".to_owned(), |version| format!("C{version}"));
            match client.meta_set(name, set.value, false, None, Some(&[&how, &mark, &seconds])).await {
                Ok(_) => Ok(Reply::Done),
                Err(Error::Protocol(Status::Exists | Status::NotStored | Status::NotFound)) => {
                    Ok(Reply::Raced)
                }
                Err(error) => Err(error),
            }
        }
    }
}

async fn see(client: &mut Client, name: &str, flags: &[&str]) -> Result<Reply, Error> {
    let Some(item) = client.meta_get(name, false, None, Some(flags)).await? else {
        return Ok(Reply::Missing);
    };
    match (item.key, item.cas, item.flags) {
        // The answer names the key that does not exist.
        (Some(key), ..) if item.status == Some(Status::NotFound) && key == name.as_bytes() => {
            Ok(Reply::Missing)
        }
        (Some(key), Some(version), Some(mark)) if key == name.as_bytes() => {
            Ok(Reply::ItemSeen(ItemSeen { version, mark, value: item.data.unwrap_or_default() }))
        }
        _ => Err(Status::Error(ErrorKind::Protocol(Some("it answered another request".into()))).into()),
    }
}

#[cfg(test)]
mod tests {
    use hostler_testkit::memcached;
    use tokio::runtime::Builder;
    use tokio::task::{JoinSet, spawn_blocking};
    use tokio::time::{advance, pause, resume};

    use super::*;

    /// No test asserts speed.
    const TIME_LIMIT: Duration = Duration::from_secs(10);

    /// So many operations at the same time.
    async fn burst(server: &Arc<MemcachedServer>, operations: usize) {
        let mut asking = JoinSet::new();
        for _ in 0..operations {
            let server = server.clone();
            asking.spawn(async move { server.ask(Op::Look("item"), TIME_LIMIT).await.is_ok() });
        }
        assert_eq!(asking.join_all().await, vec![true; operations]);
    }

    #[tokio::test]
    async fn idle_connections_of_other_threads_count_against_the_limit() {
        let Some(memcached) = memcached().await else { return };
        let address = memcached.address().to_string();
        let server = Arc::new(MemcachedServer::new(&address, Arc::new(|_: Notice<'_>| ())));
        burst(&server, CONNECTIONS / 2).await;
        let shared = server.clone();
        // This thread drives its connections meanwhile.
        spawn_blocking(move || {
            let other = Builder::new_current_thread().enable_all().build().unwrap();
            other.block_on(burst(&shared, CONNECTIONS));
        })
        .await
        .unwrap();
        let idle = server.idle().len();
        assert!(idle <= CONNECTIONS, "{idle}");
    }

    #[tokio::test]
    async fn a_connection_that_has_read_a_large_value_is_closed_after_a_while() {
        let Some(memcached) = memcached().await else { return };
        let server = MemcachedServer::new(&memcached.address().to_string(), Arc::new(|_: Notice<'_>| ()));
        for size in [10, 500_000, 10] {
            let value = vec![7_u8; size];
            let set = Set { value: &value, mark: 0, seconds: 0 };
            assert!(matches!(server.ask(Op::Set("item", set), TIME_LIMIT).await, Ok(Reply::Done)));
            let found = server.ask(Op::Get("item"), TIME_LIMIT).await;
            assert!(matches!(found, Ok(Reply::Found(found)) if found == value));
            server.shrink();
            assert_eq!(server.idle().len(), 1, "it is used again");
            pause();
            advance(LARGE_FOR).await;
            resume();
            server.shrink();
            assert_eq!(server.idle().len(), usize::from(size < SMALL), "after a value of {size} bytes");
        }
    }
}
