//! The message that a router publishes about itself: `router.start`, and the answer to `router.greet`. Knows no connection.

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

pub(super) struct RegistrarStart {
    id: String,
    register_interval: u64,
    stale_threshold: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    id: &'a str,
    hosts: [&'a str; 1],
    minimum_register_interval_in_seconds: u64,
    prune_threshold_in_seconds: u64,
}

impl RegistrarStart {
    /// The id is made once and stays the same for the life of the process.
    pub fn new(register_interval: Duration, stale_threshold: Duration) -> Self {
        Self {
            id: format!("0-{}", uuid::Uuid::new_v4()),
            // Some clients make a ticker of this interval, and a ticker of 0 makes them crash.
            register_interval: register_interval.as_secs().max(1),
            stale_threshold: stale_threshold.as_secs().max(1),
        }
    }

    /// Whether this is a payload of ours.
    pub fn is_in(&self, payload: &[u8]) -> bool {
        payload.windows(self.id.len()).any(|part| part == self.id.as_bytes())
    }

    /// `host`: the address at which clients reach us.
    pub fn payload(&self, host: String) -> Bytes {
        let message = Message {
            id: &self.id,
            hosts: [&host],
            minimum_register_interval_in_seconds: self.register_interval,
            prune_threshold_in_seconds: self.stale_threshold,
        };
        serde_json::to_vec(&message).unwrap_or_default().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_message_is_gorouters_and_its_interval_is_never_zero() {
        let start = RegistrarStart {
            id: "3-a42768db".into(),
            ..RegistrarStart::new(Duration::from_millis(3), Duration::from_secs(4))
        };
        let expected = r#"{"id":"3-a42768db","hosts":["10.9.9.9"],"minimumRegisterIntervalInSeconds":1,"pruneThresholdInSeconds":4}"#;
        assert_eq!(start.payload("10.9.9.9".into()), expected);
        assert!(start.is_in(expected.as_bytes()) && !start.is_in(&expected.as_bytes()[10..]));
        let ids = [(); 2].map(|()| RegistrarStart::new(Duration::ZERO, Duration::ZERO).id);
        assert!(ids[0] != ids[1] && ids[0].len() == "0-a42768db-9c5c-43a9-4595-1ddab4c6b866".len());
    }
}
