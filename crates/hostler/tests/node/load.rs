//! Steady load from clients that keep their connections and clients that do not. Each request must be answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hostler_testkit::{Client, client, eventually};
use tokio::task::JoinSet;

/// Running clients. Each waits for its answer before its next request.
pub struct Load {
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    clients: JoinSet<()>,
}

impl Load {
    /// Starts clients: half of them keep their connection, the others open a new one for each request.
    pub fn on(address: SocketAddr) -> Self {
        let mut load = Self { is_over: Arc::default(), answered: Arc::default(), clients: JoinSet::new() };
        for number in 0..6 {
            let (is_over, answered) = (load.is_over.clone(), load.answered.clone());
            load.clients.spawn(async move {
                let mut kept: Option<Client> = None;
                while !is_over.load(Ordering::Relaxed) {
                    let mut client = match kept.take() {
                        Some(client) => client,
                        None => client(address).await,
                    };
                    let answer = client.get("/wait?ms=2").await;
                    answer.assert_status(200);
                    let closes = answer.field("connection").is_some_and(|field| field == "close");
                    kept = Some(client).filter(|_| number % 2 == 0 && !closes);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        load
    }

    /// Waits until this many further requests have been answered.
    pub async fn goes_on_for(&self, more: usize) {
        let until = self.answered.load(Ordering::Relaxed) + more;
        eventually(format!("{more} more answers"), async || {
            (self.answered.load(Ordering::Relaxed) >= until).then_some(())
        })
        .await;
    }

    /// Stops the clients. A request that was not answered with 200 is a panic here.
    pub async fn stop(mut self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        while let Some(client) = self.clients.join_next().await {
            client.unwrap();
        }
        self.answered.load(Ordering::Relaxed)
    }
}
