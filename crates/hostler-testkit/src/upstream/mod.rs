//! A member that does exactly what a test says, and records its requests. Knows nothing of Hostler.

mod script;
mod serving;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::eventually::eventually;
use crate::port::held_port;
pub use script::{Seen, Step, ok, text};
use serving::{Script, UpstreamListener, UpstreamShared, accept};

/// An upstream to be started.
pub struct UpstreamPlan {
    script: Arc<Script>,
    at_head: bool,
    unix: Option<PathBuf>,
    tls: Option<TlsAcceptor>,
}

/// An upstream that answers every request with `200 ok`, by default.
pub fn upstream() -> UpstreamPlan {
    UpstreamPlan { script: Arc::new(|_| ok("ok")), at_head: false, unix: None, tls: None }
}

/// The address of a member that refuses connections.
pub fn no_upstream() -> String {
    Box::leak(Box::new(held_port())).address().to_string()
}

impl UpstreamPlan {
    /// Sets the steps for each request. They begin when the request is complete.
    pub fn script(mut self, script: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Self {
        self.script = Arc::new(script);
        self
    }

    /// Sets the same steps for every request.
    pub fn does(self, steps: Vec<Step>) -> Self {
        self.script(move |_| steps.clone())
    }

    /// Sends the same bytes for every request.
    pub fn answers(self, bytes: impl AsRef<[u8]>) -> Self {
        self.does(text(bytes))
    }

    /// Sets the steps for the first request, the second, and so on. Later requests get a 200.
    pub fn in_turn(self, scripts: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let left = Mutex::new(scripts.into_iter().collect::<VecDeque<_>>());
        self.script(move |_| left.lock().unwrap().pop_front().unwrap_or_else(|| ok("ok")))
    }

    /// Holds every request until it is released, then answers 200 with the request's target.
    pub fn holds_requests(self) -> Self {
        self.script(|seen| [vec![Step::Hold], ok(seen.target())].concat())
    }

    /// Begins the steps when the head of a request is complete.
    pub fn at_head(mut self) -> Self {
        self.at_head = true;
        self
    }

    /// Listens on a Unix socket.
    pub fn on_unix(mut self, path: &Path) -> Self {
        self.unix = Some(path.to_owned());
        self
    }

    /// Uses TLS.
    pub fn over_tls(mut self, config: ServerConfig) -> Self {
        self.tls = Some(TlsAcceptor::from(Arc::new(config)));
        self
    }

    /// Starts it.
    pub async fn start(self) -> Upstream {
        let (listener, address) = match self.unix {
            Some(path) => (
                UpstreamListener::Unix(UnixListener::bind(&path).unwrap()),
                format!("unix:{}", path.display()),
            ),
            None => {
                let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
                let address = listener.local_addr().unwrap().to_string();
                match self.tls {
                    Some(tls) => (UpstreamListener::Tls(listener, tls), format!("https://{address}")),
                    None => (UpstreamListener::Tcp(listener), address),
                }
            }
        };
        let shared = Arc::new(UpstreamShared {
            script: self.script,
            at_head: self.at_head,
            released: Semaphore::new(0),
            state: Mutex::default(),
            ended: watch::Sender::new(false),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Upstream { address, shared, accepting }
    }
}

/// A running upstream. Dropping it ends it and all its connections.
pub struct Upstream {
    address: String,
    shared: Arc<UpstreamShared>,
    accepting: JoinHandle<()>,
}

impl Upstream {
    /// Its address, in the form for a pool's member.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Releases this many held requests.
    pub fn release(&self, requests: usize) {
        self.shared.released.add_permits(requests);
    }

    /// Releases all held requests and all later ones.
    pub fn release_all(&self) {
        self.shared.released.add_permits(1_000_000);
    }

    /// All requests so far, in the order of their heads.
    pub fn requests(&self) -> Vec<Seen> {
        self.shared.state().seen.clone()
    }

    /// The targets of all requests so far.
    pub fn targets(&self) -> Vec<String> {
        self.requests().iter().map(Seen::target).collect()
    }

    /// The only request so far.
    ///
    /// # Panics
    /// If there were several or none.
    #[track_caller]
    pub fn only_request(&self) -> Seen {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "exactly one request: {:?}", self.targets());
        requests.remove(0)
    }

    /// How many requests run now.
    pub fn running(&self) -> usize {
        self.shared.state().running
    }

    /// The most requests that ran at the same time.
    pub fn most_running(&self) -> usize {
        self.shared.state().most_running
    }

    /// How many connections it has had.
    pub fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.shared.state().open
    }

    /// Waits until it has had this many requests.
    pub async fn has_seen(&self, requests: usize) {
        eventually(format!("{requests} requests at {}", self.address), async || {
            (self.requests().len() >= requests).then_some(())
        })
        .await;
    }

    /// Ends it. Its connections are closed and new ones are refused.
    pub async fn stop(self) {
        self.shared.ended.send_replace(true);
        self.accepting.abort();
        eventually("the upstream's connections to end", async || (self.open() == 0).then_some(())).await;
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
        self.shared.ended.send_replace(true);
    }
}
