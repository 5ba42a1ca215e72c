//! The sessions of Engine.IO: which member has begun which. Knows no requests.
//!
//! A session ends without a word to Hostler, so it is forgotten after it was not used for a while. Two generations do this without a
//! clock for each session: the older one is dropped as a whole.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A generation lasts this long, so an unused session is remembered for at least this long and at most twice as long. Engine.IO pings
/// every 25 s by default.
const LASTS: Duration = Duration::from_secs(300);
/// The most sessions in one generation. One takes about 150 bytes.
const MOST: usize = 100_000;
/// A longer id is not remembered. Engine.IO makes 20 characters.
const LONGEST_ID: usize = 128;

/// The sessions of one pool.
pub struct Sessions(Mutex<Generations>);

struct Generations {
    young: HashMap<Box<[u8]>, Arc<str>>,
    old: HashMap<Box<[u8]>, Arc<str>>,
    since: Instant,
}

impl Default for Sessions {
    fn default() -> Self {
        Self(Mutex::new(Generations { young: HashMap::new(), old: HashMap::new(), since: Instant::now() }))
    }
}

impl Sessions {
    /// The session `id` has begun at this member.
    pub fn begin(&self, id: &[u8], identity: Arc<str>) {
        if id.is_empty() || id.len() > LONGEST_ID {
            return;
        }
        let mut generations = self.lock();
        generations.age();
        generations.young.insert(id.into(), identity);
    }

    /// The identity of the member that has begun the session.
    pub fn find(&self, id: &[u8]) -> Option<Arc<str>> {
        let mut generations = self.lock();
        generations.age();
        if let Some(identity) = generations.young.get(id) {
            return Some(identity.clone());
        }
        // It is used, so it moves to the younger generation.
        let (id, identity) = generations.old.remove_entry(id)?;
        generations.young.insert(id, identity.clone());
        Some(identity)
    }

    /// How many sessions are remembered.
    pub fn len(&self) -> usize {
        let generations = self.lock();
        generations.young.len() + generations.old.len()
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn age(&mut self) {
        let now = Instant::now();
        let age = now.saturating_duration_since(self.since);
        if age < LASTS && self.young.len() < MOST {
            return;
        }
        self.old = std::mem::take(&mut self.young);
        if age >= 2 * LASTS {
            self.old.clear();
        }
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_session_is_forgotten_when_it_was_not_used_for_long() {
        let sessions = Sessions::default();
        sessions.begin(b"used", "1".into());
        sessions.begin(b"unused", "2".into());
        for _ in 0..6 {
            tokio::time::advance(LASTS / 2).await;
            assert_eq!(sessions.find(b"used").as_deref(), Some("1"));
        }
        assert_eq!(sessions.find(b"unused"), None);
        assert_eq!(sessions.len(), 1);
        tokio::time::advance(LASTS * 3).await;
        assert_eq!(sessions.find(b"used"), None);
    }

    #[test]
    fn the_number_of_sessions_is_bounded() {
        let sessions = Sessions::default();
        let member: Arc<str> = "1".into();
        for number in 0..3 * MOST {
            sessions.begin(number.to_string().as_bytes(), member.clone());
        }
        assert!(sessions.len() <= 2 * MOST, "{}", sessions.len());
        assert!(sessions.find((3 * MOST - 1).to_string().as_bytes()).is_some());
        sessions.begin(&[b'x'; 129], member.clone());
        assert_eq!(sessions.find(&[b'x'; 129]), None);
    }
}
