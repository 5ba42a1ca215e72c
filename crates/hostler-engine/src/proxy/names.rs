//! The addresses of a member's name. One lookup of a name runs at a time, however many connections wait for it: each takes a thread, and a
//! name server that does not answer keeps it for long. What a lookup has found is used while none succeeds. Knows no connections.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// If a lookup has run for this long, and an earlier one has found addresses, these are used.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a lookup has found.
type LookupOutcome = Result<Vec<SocketAddr>, Arc<io::Error>>;

/// What is known of one name.
#[derive(Debug, Default)]
pub struct NameAddresses(Mutex<KnownAddresses>);

#[derive(Debug, Default)]
struct KnownAddresses {
    /// Those that the last successful lookup has found.
    addresses: Vec<SocketAddr>,
    running: Option<Lookup>,
}

/// A lookup that runs.
#[derive(Clone, Debug)]
struct Lookup {
    began: Instant,
    found: watch::Receiver<Option<LookupOutcome>>,
}

impl NameAddresses {
    /// The addresses of the name. Joins a lookup that already runs, else begins `lookup`. If the result does not come in time, or no name
    /// server answers, returns the addresses of the last successful lookup.
    pub(super) async fn get<F>(self: &Arc<Self>, lookup: F, until: Instant) -> io::Result<Vec<SocketAddr>>
    where
        F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
    {
        let (Lookup { began, mut found }, before) = self.join(lookup);
        let now = Instant::now();
        let half_time = now + until.saturating_duration_since(now) / 2;
        let patience = if before.is_empty() { until } else { half_time.min(began + PATIENCE) };
        let found = match timeout_at(patience, found.wait_for(Option::is_some)).await {
            Ok(Ok(found)) => found.clone(),
            _ => None,
        };
        match found {
            Some(Ok(addresses)) => Ok(addresses),
            Some(Err(error)) if before.is_empty() || !is_passing(&error) => {
                let of_resolver = || io::Error::new(error.kind(), error.to_string());
                Err(error.raw_os_error().map_or_else(of_resolver, io::Error::from_raw_os_error))
            }
            None if before.is_empty() => {
                Err(io::Error::new(io::ErrorKind::AddrNotAvailable, "no answer to the lookup of its name"))
            }
            _ => Ok(before),
        }
    }

    /// Joins the lookup that runs, or begins this one. Also returns the addresses from before.
    fn join<F>(self: &Arc<Self>, lookup: F) -> (Lookup, Vec<SocketAddr>)
    where
        F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
    {
        let mut known = self.lock();
        // A lookup whose sender is gone without a result is over: its runtime has ended.
        if let Some(running) = known.running.as_ref().filter(|running| running.found.has_changed().is_ok()) {
            return (running.clone(), known.addresses.clone());
        }
        let (sender, found) = watch::channel(None);
        let running = Lookup { began: Instant::now(), found };
        known.running = Some(running.clone());
        let name = Arc::clone(self);
        tokio::spawn(async move {
            let found = lookup.await.map_err(Arc::new);
            name.note(&found);
            sender.send_replace(Some(found));
        });
        (running, known.addresses.clone())
    }

    /// The lookup that ran has found this.
    fn note(&self, found: &LookupOutcome) {
        let mut known = self.lock();
        known.running = None;
        match found {
            Ok(addresses) => known.addresses.clone_from(addresses),
            Err(error) if !is_passing(error) => known.addresses.clear(),
            Err(_) => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, KnownAddresses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the error says nothing about the name: no name server has answered, or the system lacks a resource. Errors of the C library's
/// resolver can only be recognised by their text (that of glibc and that of musl).
fn is_passing(error: &io::Error) -> bool {
    let text = error.to_string();
    error.raw_os_error().is_some()
        || ["Temporary failure", "Try again"].iter().any(|part| text.contains(part))
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::oneshot;

    use super::*;

    const ONE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    async fn known() -> Arc<NameAddresses> {
        let name = Arc::<NameAddresses>::default();
        assert_eq!(name.get(async { Ok(vec![ONE]) }, soon()).await.unwrap(), [ONE]);
        name
    }

    #[tokio::test(start_paused = true)]
    async fn while_no_name_server_answers_the_addresses_from_before_are_used_and_only_the_first_connection_waits()
     {
        let (name, began) = (known().await, Instant::now());
        assert_eq!(name.get(pending(), soon()).await.unwrap(), [ONE]);
        let waited = began.elapsed();
        assert!(waited < 2 * PATIENCE, "{waited:?}");
        assert_eq!(name.get(pending(), soon()).await.unwrap(), [ONE]);
        assert!(began.elapsed() - waited < PATIENCE / 2);
        let unknown = Arc::<NameAddresses>::default();
        assert_eq!(unknown.get(pending(), soon()).await.unwrap_err().kind(), io::ErrorKind::AddrNotAvailable);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_is_gone_is_forgotten_and_one_that_cannot_be_asked_for_is_not() {
        let failed = |why: &str| {
            let text = format!("failed to lookup address information: {why}");
            async move { Err(io::Error::other(text)) }
        };
        let name = known().await;
        let passing = || failed("Temporary failure in name resolution");
        assert_eq!(name.get(passing(), soon()).await.unwrap(), [ONE]);
        name.get(failed("Name or service not known"), soon()).await.unwrap_err();
        name.get(passing(), soon()).await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_begin_together_look_a_name_up_once() {
        let (name, lookups) = (Arc::<NameAddresses>::default(), Arc::<AtomicUsize>::default());
        let lookup = |answer: oneshot::Receiver<()>| {
            let lookups = lookups.clone();
            async move {
                lookups.fetch_add(1, Ordering::Relaxed);
                let _ = answer.await;
                Ok(vec![ONE])
            }
        };
        let ((first, of_first), (_second, of_second)) = (oneshot::channel(), oneshot::channel());
        let answer = async {
            tokio::task::yield_now().await;
            first.send(()).expect("the lookup waits for it");
        };
        let (one, other, ()) =
            tokio::join!(name.get(lookup(of_first), soon()), name.get(lookup(of_second), soon()), answer);
        assert_eq!((one.unwrap(), other.unwrap()), (vec![ONE], vec![ONE]));
        assert_eq!(lookups.load(Ordering::Relaxed), 1);
        let of_later = oneshot::channel().1;
        name.get(lookup(of_later), soon()).await.unwrap();
        assert_eq!(lookups.load(Ordering::Relaxed), 2, "a name may lead elsewhere at any time");
    }
}
