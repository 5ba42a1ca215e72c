//! What a rate limit tells the client, in `RateLimit-Policy`, `RateLimit` and `Retry-After`, and the log. Decides nothing.
//!
//! The fields are those of draft-ietf-httpapi-ratelimit-headers-10 and -11. They are about numbers of requests only: the draft has no unit
//! for worker time.

use std::time::Duration;

use hostler_config::RequestRate;
use sfv::{KeyRef, ListSerializer, StringRef};

use super::{EmptyBucket, LimitUnit, RateLimiter};
use crate::exchange::{Edit, Exchange, Left};
use crate::gateway::refusal::Refusal;

impl RateLimiter {
    /// For the log: which limit, and whose bucket.
    pub(super) fn detail(&self, key: &str) -> String {
        let limit = format!("{} {}: {}", self.scope.as_str(), self.name, self.rule);
        if self.rule.key.is_empty() { limit } else { format!("{limit} ({key})") }
    }

    /// The refusal of a request whose bucket is empty. The fields are about requests only, and say nothing of worker time. `wait`: after
    /// this time no limit refuses it.
    pub(super) fn refuse(
        &self,
        exchange: &mut Exchange,
        spent: &EmptyBucket,
        wait: Duration,
        detail: String,
    ) -> Refusal {
        exchange.log_facts.retry_after = u32::try_from(whole_seconds(wait)).unwrap_or(u32::MAX);
        if spent.of == LimitUnit::Requests {
            self.show(exchange, Left { tokens: 0, next: spent.wait });
        }
        Refusal::RateLimited(detail.into())
    }

    /// Adds the fields to the answer. They stand beside those of other limits, and of the app.
    pub(super) fn show(&self, exchange: &mut Exchange, left: Left) {
        let Some(rate) = self.rule.requests else { return };
        let (quota, window) = quota(rate, self.rule.per);
        let values = [("q", quota), ("w", window)];
        let own = &mut exchange.to_client.own;
        own.push(Edit::Add("RateLimit-Policy".into(), item(self.scope.as_str(), values)));
        let values = [("r", left.tokens), ("t", whole_seconds(left.next))];
        own.push(Edit::Add("RateLimit".into(), item(self.scope.as_str(), values)));
    }
}

/// The limit as so many requests in a window of whole seconds. The window is the time in which an empty bucket is full, and at least
/// `per`: then the quota is never less than what a full bucket has.
fn quota(RequestRate { requests, burst }: RequestRate, per: Duration) -> (u64, u64) {
    let (requests, per) = (u128::from(requests.max(1)), per.as_nanos().max(1));
    let full = (u128::from(burst) * per).div_ceil(requests);
    let window = full.max(per).div_ceil(1_000_000_000);
    let quota = window * 1_000_000_000 * requests / per;
    (u64::try_from(quota).unwrap_or(u64::MAX), u64::try_from(window).unwrap_or(u64::MAX))
}

/// A list of one item (RFC 9651): `"route";q=100;w=60`.
fn item(name: &'static str, values: [(&'static str, u64); 2]) -> Vec<u8> {
    let mut list = ListSerializer::new();
    let mut parameters = list.bare_item(StringRef::constant(name));
    for (key, value) in values {
        // A larger number is no integer of RFC 9651. No limit has one.
        let value = sfv::Integer::try_from(value).unwrap_or(sfv::Integer::MAX);
        parameters = parameters.parameter(KeyRef::constant(key), value);
    }
    // The list itself is finished next.
    let _ = parameters.finish();
    list.finish().unwrap_or_default().into_bytes()
}

/// Rounded up, so that a client that waits so long does not come too early.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
