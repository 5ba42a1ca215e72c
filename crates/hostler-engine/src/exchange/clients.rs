//! Counts the connections and requests of each client address, says which are over a limit, and has what all connections of a
//! client share. Sets no limit, and knows no sockets and no trust.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use hostler_coding::ClientEncoders;
use serde::Serialize;

use super::memory::{MemoryAccount, MemoryBudget};
use super::spool::{Spool, SpoolAccount};

/// With this many tables, threads that look up different clients rarely wait for the same lock.
const TABLES: usize = 64;

/// All clients with a connection or request. An entry lives as long as its client has one, so clients with ever new addresses do not make
/// the table grow.
#[derive(Debug)]
pub struct Clients {
    tables: [Mutex<HashMap<Network, Weak<ClientLoad>>>; TABLES],
    refused_connections: AtomicU64,
    refused_requests: AtomicU64,
}

/// The clients, for the Status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ClientsView {
    /// Client addresses (IPv6: networks of 64 bits) with a connection or request.
    pub counted: usize,
    /// Connections that were refused because the client had reached its limit.
    pub refused_connections: u64,
    /// Requests that were refused because the client had reached its limit.
    pub refused_requests: u64,
    /// Requests and tunnels that are under way, of clients whose requests have a limit.
    pub requests: usize,
    /// The client that has the most of them. None while there are none.
    pub busiest: Option<BusiestClient>,
}

/// The client with the most requests under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BusiestClient {
    /// Its address. The first address of its network for IPv6.
    pub client: IpAddr,
    /// Its requests and tunnels that are under way.
    pub requests: usize,
}

/// What counts as one client: an IPv4 address, or an IPv6 network of 64 bits, which a provider's customer has (RFC 6177).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Network {
    V4(u32),
    V6(u64),
}

impl Network {
    fn of(ip: IpAddr) -> Self {
        match hostler_address::of_client(ip) {
            IpAddr::V4(ip) => Self::V4(ip.to_bits()),
            IpAddr::V6(ip) => Self::V6((ip.to_bits() >> 64) as u64),
        }
    }

    fn first_address(self) -> IpAddr {
        match self {
            Self::V4(bits) => Ipv4Addr::from_bits(bits).into(),
            Self::V6(bits) => Ipv6Addr::from_bits(u128::from(bits) << 64).into(),
        }
    }

    fn table(self) -> usize {
        let bits = match self {
            Self::V4(bits) => u64::from(bits),
            Self::V6(bits) => bits,
        };
        // The upper bits of the product depend on all bits of the address.
        (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % TABLES
    }
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            tables: std::array::from_fn(|_| Mutex::default()),
            refused_connections: AtomicU64::new(0),
            refused_requests: AtomicU64::new(0),
        }
    }
}

impl Clients {
    /// The entry of this client.
    pub fn find(self: &Arc<Self>, ip: IpAddr) -> Arc<ClientLoad> {
        let network = Network::of(ip);
        let mut table = self.table(network);
        if let Some(load) = table.get(&network).and_then(Weak::upgrade) {
            return load;
        }
        let load = Arc::new(ClientLoad {
            clients: self.clone(),
            network,
            connections: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
            was_told: AtomicBool::new(false),
            spool: OnceLock::new(),
            encoders: OnceLock::new(),
            request_memory: OnceLock::new(),
            window_memory: OnceLock::new(),
        });
        table.insert(network, Arc::downgrade(&load));
        load
    }

    pub fn view(&self) -> ClientsView {
        let mut view = ClientsView {
            refused_connections: self.refused_connections.load(Relaxed),
            refused_requests: self.refused_requests.load(Relaxed),
            ..ClientsView::default()
        };
        for table in &self.tables {
            // The last owner of an entry takes the lock when it drops it, so none is dropped under the lock.
            let loads: Vec<_> = lock(table).values().filter_map(Weak::upgrade).collect();
            view.counted += loads.len();
            for load in loads {
                let requests = load.requests.load(Relaxed);
                view.requests += requests;
                if requests > view.busiest.map_or(0, |busiest| busiest.requests) {
                    view.busiest = Some(BusiestClient { client: load.network.first_address(), requests });
                }
            }
        }
        view
    }

    fn table(&self, network: Network) -> MutexGuard<'_, HashMap<Network, Weak<ClientLoad>>> {
        lock(&self.tables[network.table()])
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connections and requests of one client.
#[derive(Debug)]
pub struct ClientLoad {
    clients: Arc<Clients>,
    network: Network,
    connections: AtomicUsize,
    requests: AtomicUsize,
    streams: AtomicUsize,
    was_told: AtomicBool,
    spool: OnceLock<SpoolAccount>,
    encoders: OnceLock<ClientEncoders>,
    request_memory: OnceLock<Arc<MemoryAccount>>,
    window_memory: OnceLock<Arc<MemoryAccount>>,
}

impl ClientLoad {
    /// True once in the life of this entry, so that many refusals give one log line.
    pub fn is_first_refusal(&self) -> bool {
        !self.was_told.swap(true, Relaxed)
    }

    /// Counts a stream of HTTP/2, also one whose request is refused: it may wait for the client to take the refusal. False: the client has `most` of
    /// them already. Otherwise [`Self::end_stream`] follows.
    pub fn begin_stream(&self, most: usize) -> bool {
        let begins = self.streams.fetch_add(1, Relaxed) < most;
        if !begins {
            self.end_stream();
            self.clients.refused_requests.fetch_add(1, Relaxed);
        }
        begins
    }

    /// The client's share of the spool, for all its connections.
    pub fn spool_account(&self, spool: &Arc<Spool>) -> SpoolAccount {
        self.spool.get_or_init(|| spool.account()).clone()
    }

    /// The client's share of the memory for requests, for all its connections.
    pub fn request_memory(&self, budget: &Arc<MemoryBudget>) -> Arc<MemoryAccount> {
        self.request_memory.get_or_init(|| budget.account()).clone()
    }

    /// The same for the receive windows of its HTTP/2 connections. It is another share, because without room for a window an upload that waits
    /// would stop the others of its connection.
    pub fn window_memory(&self, budget: &Arc<MemoryBudget>) -> Arc<MemoryAccount> {
        self.window_memory.get_or_init(|| budget.account()).clone()
    }

    /// What the encoders of the client hold, on all its connections.
    pub fn encoders(&self) -> ClientEncoders {
        self.encoders.get_or_init(ClientEncoders::default).clone()
    }

    /// A stream has ended.
    pub fn end_stream(&self) {
        self.streams.fetch_sub(1, Relaxed);
    }
}

impl Drop for ClientLoad {
    fn drop(&mut self) {
        let mut table = self.clients.table(self.network);
        // The client may have come back meanwhile and have a new entry.
        if table.get(&self.network).is_some_and(|load| load.strong_count() == 0) {
            table.remove(&self.network);
        }
    }
}

/// A connection of a client, counted as long as this lives.
#[derive(Debug)]
pub struct ClientConnection(Arc<ClientLoad>);

impl ClientConnection {
    /// Counts a connection. Also returns by how many the client is now over its limit.
    pub fn new(load: Arc<ClientLoad>, most: usize) -> (Self, usize) {
        let now = load.connections.fetch_add(1, Relaxed) + 1;
        let over = now.saturating_sub(most);
        if over > 0 {
            load.clients.refused_connections.fetch_add(1, Relaxed);
        }
        (Self(load), over)
    }

    pub fn load(&self) -> &Arc<ClientLoad> {
        &self.0
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

/// A request, or the tunnel that it has become, counted as long as this lives.
#[derive(Debug)]
pub struct ClientRequest(Arc<ClientLoad>);

impl ClientRequest {
    /// Counts a request, unless the client has reached its limit.
    pub fn new(load: Arc<ClientLoad>, most: usize) -> Result<Self, Arc<ClientLoad>> {
        if load.requests.fetch_add(1, Relaxed) < most {
            return Ok(Self(load));
        }
        load.requests.fetch_sub(1, Relaxed);
        load.clients.refused_requests.fetch_add(1, Relaxed);
        Err(load)
    }
}

impl Drop for ClientRequest {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Also those of clients that are gone.
    fn entries(clients: &Clients) -> usize {
        clients.tables.iter().map(|table| lock(table).len()).sum()
    }

    #[test]
    fn a_client_is_an_ipv4_address_however_written_or_a_64_of_ipv6() {
        let clients = Arc::new(Clients::default());
        let same = |one: &str, other: &str| Arc::ptr_eq(&clients.find(ip(one)), &clients.find(ip(other)));
        let held: Vec<_> = ["192.0.2.1", "2001:db8:1:2::1"].map(|text| clients.find(ip(text))).into();
        assert!(same("192.0.2.1", "::ffff:192.0.2.1"));
        assert!(!same("192.0.2.1", "192.0.2.2"));
        assert!(same("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"));
        assert!(!same("2001:db8:1:2::1", "2001:db8:1:3::1"));
        // Through NAT64.
        assert!(same("192.0.2.1", "64:ff9b::192.0.2.1"));
        assert!(!same("64:ff9b::192.0.2.1", "64:ff9b::192.0.2.2"));
        drop(held);
    }

    #[test]
    fn connections_over_the_limit_are_reported_and_counted() {
        let clients = Arc::new(Clients::default());
        let load = clients.find(ip("192.0.2.1"));
        let (one, over) = ClientConnection::new(load.clone(), 1);
        assert_eq!(over, 0);
        let (two, over) = ClientConnection::new(load.clone(), 1);
        assert_eq!(over, 1);
        drop((one, two));
        assert_eq!(ClientConnection::new(load.clone(), 1).1, 0);
        let request = ClientRequest::new(load.clone(), 1).ok().unwrap();
        assert!(ClientRequest::new(load.clone(), 1).is_err());
        drop(request);
        assert!(ClientRequest::new(load.clone(), 1).is_ok());
        let seen =
            ClientsView { counted: 1, refused_connections: 1, refused_requests: 1, ..Default::default() };
        assert_eq!(clients.view(), seen);
        assert!(load.is_first_refusal() && !load.is_first_refusal());
    }

    #[test]
    fn the_client_with_the_most_requests_is_told() {
        let clients = Arc::new(Clients::default());
        let begin = |text: &str, count: usize| -> Vec<_> {
            (0..count).map(|_| ClientRequest::new(clients.find(ip(text)), 100).ok().unwrap()).collect()
        };
        let held = [begin("192.0.2.1", 3), begin("2001:db8:1:2::9", 5), begin("192.0.2.2", 1)];
        let view = clients.view();
        let busiest = BusiestClient { client: ip("2001:db8:1:2::"), requests: 5 };
        assert_eq!((view.counted, view.requests, view.busiest), (3, 9, Some(busiest)));
        drop(held);
        assert_eq!(clients.view(), ClientsView::default());
    }

    #[test]
    fn the_connections_of_a_client_have_one_share_of_the_spool() {
        let (clients, spool) = (Arc::new(Clients::default()), Spool::new(1000, 100, std::env::temp_dir()));
        let account = |text: &str| clients.find(ip(text)).spool_account(&spool);
        let load = clients.find(ip("192.0.2.1"));
        let (mut one, mut other) = (account("192.0.2.1").file(), account("192.0.2.1").file());
        one.claim(400).unwrap();
        assert!(other.claim(200).is_err());
        assert!(account("192.0.2.2").file().claim(200).is_ok());
        drop(load);
    }

    #[test]
    fn the_connections_of_a_client_have_one_share_of_the_memory_for_requests() {
        let (clients, budget) = (Arc::new(Clients::default()), MemoryBudget::new(1000));
        let reservation = |text: &str| clients.find(ip(text)).request_memory(&budget).reservation();
        let load = clients.find(ip("192.0.2.1"));
        let (mut one, mut other) = (reservation("192.0.2.1"), reservation("192.0.2.1"));
        assert!(one.resize(400));
        assert!(!other.resize(200));
        assert!(reservation("192.0.2.2").resize(200));
        drop(load);
    }

    #[test]
    fn clients_without_connections_take_no_memory() {
        let clients = Arc::new(Clients::default());
        for n in 0..10_000 {
            let load = clients.find(IpAddr::V4(n.into()));
            let connection = ClientConnection::new(load.clone(), 1);
            let request = ClientRequest::new(load, 1);
            drop((connection, request));
        }
        assert_eq!(entries(&clients), 0);
    }

    #[test]
    fn a_client_that_arrives_while_its_entry_is_removed_is_counted() {
        let clients = Arc::new(Clients::default());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let clients = clients.clone();
                std::thread::spawn(move || {
                    for _ in 0..20_000 {
                        let (connection, _) = ClientConnection::new(clients.find(ip("192.0.2.1")), 1);
                        assert!(Arc::ptr_eq(connection.load(), &clients.find(ip("192.0.2.1"))));
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(entries(&clients), 0);
    }
}
