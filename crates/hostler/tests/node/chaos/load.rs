//! Steady load: clients that send one request after the other, on kept and on new connections, and record the results. Judges nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use hostler_testkit::{Client, ConnectionEnding, ReceivedAnswer, client, try_client_from};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::ledger::{Entry, Ledger, Outcome};
use super::request::{Leaving, Request};

/// A tenth of a second between two requests of a client: enough requests to meet every fault, and few enough for two slow cores.
const MOST_PAUSES: u8 = 11;
const PAUSE: Duration = Duration::from_millis(20);

/// Shared by all clients of a run.
pub struct Users {
    address: SocketAddr,
    pub admin: SocketAddr,
    pub ledger: Ledger,
    is_over: AtomicBool,
    /// Counts the starts and ends of upgrades, so it is odd during one. A predecessor closes its kept connections, and a request may
    /// cross with that (RFC 9112 section 9.3.1).
    upgrades: AtomicUsize,
}

/// A connection that was kept from an earlier request.
struct Kept {
    client: Client,
    upgrades: usize,
}

impl Users {
    pub fn new(address: SocketAddr, admin: SocketAddr) -> Arc<Self> {
        let (is_over, upgrades) = (AtomicBool::new(false), AtomicUsize::new(0));
        Arc::new(Self { address, admin, ledger: Ledger::new(), is_over, upgrades })
    }

    /// Hostler's Status, from the current process.
    pub async fn status(&self) -> Value {
        let mut client = client(self.admin).await;
        client.send("GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
        client.answer().await.assert_status(200).json()
    }

    pub async fn pool(&self, name: &str) -> Value {
        let status = self.status().await;
        status["pools"].as_array().unwrap().iter().find(|pool| pool["name"] == name).unwrap().clone()
    }

    /// The processes of a pool's ready workers.
    pub async fn ready_pids(&self, pool: &str) -> Vec<u32> {
        let pool = self.pool(pool).await;
        let workers = pool["workers"].as_array().into_iter().flatten();
        let ready = workers.filter(|worker| worker["state"] == "ready");
        ready.filter_map(|worker| Some(worker["pid"].as_u64()? as u32)).collect()
    }

    pub async fn pid(&self) -> u32 {
        self.status().await["pid"].as_u64().unwrap() as u32
    }

    pub fn upgrade_begins(&self) {
        self.upgrades.fetch_add(1, Ordering::Relaxed);
    }

    pub fn upgrade_ends(&self) {
        self.upgrades.fetch_add(1, Ordering::Relaxed);
    }

    /// How many upgrades have begun.
    pub fn upgrades(&self) -> usize {
        self.upgrades.load(Ordering::Relaxed).div_ceil(2)
    }

    /// Starts a client that sends requests to this pool until the run ends.
    pub fn start(self: &Arc<Self>, name: &str, pool: &'static str, chance: fastrand::Rng) -> JoinHandle<()> {
        tokio::spawn(Arc::clone(self).ask_on_and_on(name.to_owned(), pool, chance))
    }

    /// Stops all clients.
    pub fn send_home(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Sends one request on its own connection.
    pub async fn ask(&self, request: Request) {
        let began = Instant::now();
        let (outcome, _) = self.attempt(&request, None, true).await;
        self.ledger.enter(Entry { request, outcome, began, ended: Instant::now() });
    }

    async fn ask_on_and_on(self: Arc<Self>, name: String, pool: &'static str, mut chance: fastrand::Rng) {
        let mut pauses = interval(PAUSE);
        pauses.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut kept = None;
        for number in 0.. {
            pause(&mut pauses, chance.u8(1..MOST_PAUSES)).await;
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let request = Request::ordinary(format!("{name}-{number}"), pool, &mut chance);
            let is_last = chance.u8(..5) == 0;
            let began = Instant::now();
            let outcome;
            (outcome, kept) = self.attempt(&request, kept, is_last).await;
            self.ledger.enter(Entry { request, outcome, began, ended: Instant::now() });
        }
    }

    /// Sends a request and reads its answer. Sends it a second time only if any client would: when a kept connection was closed already.
    async fn attempt(&self, request: &Request, kept: Option<Kept>, is_last: bool) -> (Outcome, Option<Kept>) {
        let upgrades = self.upgrades.load(Ordering::Relaxed);
        if let Some(Kept { client, upgrades: then }) = kept {
            match exchange(client, request, is_last).await {
                (Outcome::Nothing(_), _) if self.may_have_crossed_with_an_end_since(then) => {}
                (outcome, client) => return (outcome, client.map(|client| Kept { client, upgrades: then })),
            }
        }
        let Some(client) = try_client_from(request.from.into(), self.address).await else {
            return (Outcome::Nothing("no process listens".into()), None);
        };
        let (outcome, client) = exchange(client, request, is_last).await;
        (outcome, client.map(|client| Kept { client, upgrades }))
    }
}

impl Users {
    fn may_have_crossed_with_an_end_since(&self, then: usize) -> bool {
        let now = self.upgrades.load(Ordering::Relaxed);
        now != then || now % 2 == 1
    }
}

async fn pause(pauses: &mut Interval, times: u8) {
    for _ in 0..times {
        pauses.tick().await;
    }
}

/// One request over one connection, which is returned if it can be used again.
async fn exchange(mut client: Client, request: &Request, is_last: bool) -> (Outcome, Option<Client>) {
    let bytes = request.bytes(is_last);
    if request.leaving == Some(Leaving::WhileSending) {
        client.send(&bytes[..bytes.len() - 1]).await;
        client.reset();
        return (Outcome::Left, None);
    }
    client.send(&bytes).await;
    if request.leaving == Some(Leaving::WhileWaiting) {
        let mut pauses = interval(PAUSE);
        pause(&mut pauses, 2).await;
        client.reset();
        return (Outcome::Left, None);
    }
    // The test kit's client panics at its time limit. Here that is one more result.
    let reading = tokio::spawn(read(client, request.method, is_last));
    match reading.await {
        Ok(Read { answer: Some(answer), client, surplus }) if surplus.is_empty() => {
            let stays = !is_last && answer.field("connection").is_none();
            (Outcome::of(request, answer), stays.then_some(client))
        }
        Ok(Read { answer: Some(answer), surplus, .. }) => {
            (Outcome::Nothing(format!("more than one answer: {answer:?} and {surplus:?}")), None)
        }
        Ok(Read { answer: None, .. }) => (Outcome::Nothing("the connection was closed".into()), None),
        Err(panic) => (Outcome::Nothing(panic.to_string()), None),
    }
}

struct Read {
    answer: Option<ReceivedAnswer>,
    /// The bytes after the answer.
    surplus: String,
    client: Client,
}

async fn read(mut client: Client, method: &'static str, is_last: bool) -> Read {
    let answer = client.maybe_answer(method).await;
    let is_whole = answer.as_ref().is_some_and(|answer| answer.ending == ConnectionEnding::Whole);
    let surplus = if is_last && is_whole { client.rest().await.0 } else { String::new() };
    Read { answer, surplus, client }
}
