//! What all live pages and the task that takes pictures share. Takes no picture.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use hostler_engine::exchange::EndedExchange;
use serde::Serialize;
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;

use super::history::LiveHistory;
use crate::admin::status::Sources;

/// A client that asks for single requests asks again within this time.
const ASKED_FOR: Duration = Duration::from_secs(5);
/// Pictures that a slow page may be behind. It misses older ones.
const MOST_BEHIND: usize = 8;

/// What all pages share.
pub struct Live {
    pub sources: Arc<Sources>,
    history: Mutex<LiveHistory>,
    /// None once Hostler stops: then all streams end.
    events: Mutex<Option<broadcast::Sender<Bytes>>>,
    /// A page was opened, or a client asks for single requests.
    pub opened: Notify,
    /// When a client last asked for single requests.
    asked: Mutex<Option<Instant>>,
    /// The slowest requests of the last minute, the slowest first.
    slowest: Mutex<Vec<EndedExchange>>,
}

impl Live {
    pub fn new(sources: Arc<Sources>) -> Self {
        let (events, _) = broadcast::channel(MOST_BEHIND);
        Self {
            sources,
            history: Mutex::default(),
            events: Mutex::new(Some(events)),
            opened: Notify::new(),
            asked: Mutex::default(),
            slowest: Mutex::default(),
        }
    }

    /// Ends the events of all pages, so that the listener can stop.
    pub fn end(&self) {
        drop(self.events.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.opened.notify_one();
    }

    /// None once Hostler stops.
    pub fn events(&self) -> Option<broadcast::Sender<Bytes>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A client asks for single requests: for some seconds, Hostler looks at those that end.
    pub fn ask(&self) {
        if !self.is_asked() {
            // At once, so that no request is missed that ends before the sampler runs.
            self.sources.recent.observe(1, 1, Duration::ZERO);
        }
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.opened.notify_one();
    }

    pub fn is_asked(&self) -> bool {
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.is_some_and(|at| at.elapsed() < ASKED_FOR)
    }

    pub fn note_slowest(&self, slowest: &[EndedExchange]) {
        slowest.clone_into(&mut self.slowest.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub fn slowest(&self) -> Vec<EndedExchange> {
        self.slowest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn with_history<T>(&self, act: impl FnOnce(&mut LiveHistory) -> T) -> T {
        act(&mut self.history.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An event as it goes to a page (`text/event-stream`). JSON has no line breaks.
pub fn event(name: &str, data: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into()
}
