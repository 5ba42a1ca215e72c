//! Asks a booting worker whether it is ready: by connecting, by its health path, by its warm-up paths. Knows no HTTP (the
//! probe does) and no states of workers.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::log::WorkerLog;
use super::news::{NewsSender, WorkerNews};
use super::port_owner::port_owner;
use super::settings::{Probe, WorkerAddress};

const PAUSE: Duration = Duration::from_millis(50);
/// How often the process that listens is looked for. The kernel gives its table of sockets in pieces, so one look can miss a
/// socket while others open and close. An app in a process group of its own is never found.
const LOOKS: usize = 3;
/// A request for the health path that takes longer is repeated: the first requests to a booting app may hang for good.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Waits until the port accepts a connection, and looks which process of this group listens on it.
pub(super) async fn until_connectable(address: SocketAddr, group: u32, news_sender: NewsSender) {
    let address = loop {
        if let Some(found) = accepting(address).await {
            break found;
        }
        sleep(PAUSE).await;
    };
    let mut owner = None;
    for look in 0..LOOKS {
        if look > 0 {
            sleep(PAUSE).await;
        }
        owner = spawn_blocking(move || port_owner(address.port(), group)).await.ok().flatten();
        if owner.is_some() {
            break;
        }
    }
    news_sender.send(WorkerNews::Connectable { address, owner }).await;
}

/// Where this port of loopback accepts connections: `localhost` is 127.0.0.1 for some programs, and ::1 for others.
pub(super) async fn accepting(address: SocketAddr) -> Option<SocketAddr> {
    let other = (Ipv6Addr::LOCALHOST, address.port()).into();
    for address in [address, other] {
        if TcpStream::connect(address).await.is_ok() {
            return Some(address);
        }
    }
    None
}

/// Waits until the health path answers 2xx.
pub(super) async fn until_healthy(
    probe: Arc<dyn Probe>,
    address: WorkerAddress,
    path: String,
    news_sender: NewsSender,
) {
    let mut before = None;
    loop {
        let answer = probe.get(&address, &path, TIME_LIMIT).await;
        if matches!(answer, Ok(200..300)) {
            return news_sender.send(WorkerNews::Healthy).await;
        }
        if before.as_ref() != Some(&answer) {
            news_sender.send(WorkerNews::Unhealthy(told(&answer))).await;
            before = Some(answer);
        }
        sleep(PAUSE).await;
    }
}

/// Requests each path once, `at_once` of them at a time. The answers do not matter: each request warms the worker.
pub(super) async fn warm_up(
    probe: Arc<dyn Probe>,
    address: WorkerAddress,
    (paths, at_once): (Vec<String>, usize),
    until: Instant,
    (log, news_sender): (WorkerLog, NewsSender),
) {
    let ask = |path: String| {
        let (probe, address, log) = (&probe, &address, &log);
        async move {
            let left = until.saturating_duration_since(Instant::now());
            let answer = probe.get(address, &path, left).await;
            if !matches!(answer, Ok(0..500)) {
                log.warn(format!("warm-up of {path}: {}", told(&answer)));
            }
        }
    };
    stream::iter(paths).for_each_concurrent(at_once, ask).await;
    news_sender.send(WorkerNews::Warmed).await;
}

fn told(answer: &Result<u16, String>) -> String {
    match answer {
        Ok(status) => format!("answered {status}"),
        Err(error) => error.clone(),
    }
}
