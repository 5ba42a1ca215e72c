//! The memberships that a worker has left, until their last requests have ended. Knows no process.

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use hostler_dispatch::{MemberId, Membership};

/// Resolves when the last request of a member has ended.
type LastRequest = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The memberships that a worker has left. There may be several: a worker that comes back into rotation while its requests still run joins
/// again, and may leave again before they end.
#[derive(Default)]
pub(super) struct Leaving(Vec<(MemberId, LastRequest)>);

impl Leaving {
    /// The worker leaves the pool, and finishes its requests.
    pub fn add<E: Send + Sync + 'static>(&mut self, membership: Membership<E>) {
        self.0.push((membership.id(), Box::pin(membership.leave())));
    }

    /// Whether requests of this member still run.
    pub fn includes(&self, member: MemberId) -> bool {
        self.0.iter().any(|(id, _)| *id == member)
    }

    /// The member that was left last.
    pub fn newest(&self) -> Option<MemberId> {
        self.0.last().map(|(member, _)| *member)
    }

    /// Waits until the last request of all of them has ended. For ever if there is none. The future can be dropped and made again.
    pub async fn ended(&mut self) {
        if self.0.is_empty() {
            pending::<()>().await;
        }
        poll_fn(|context| {
            self.0.retain_mut(|(_, ended)| ended.as_mut().poll(context).is_pending());
            if self.0.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use hostler_dispatch::{Claim, Pool, PoolSettings};

    use super::*;

    fn is_ready(future: impl Future) -> bool {
        pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[tokio::test]
    async fn a_worker_that_came_back_and_leaves_again_finishes_its_old_requests_too() {
        let pool = Pool::new("test", PoolSettings::default());
        let mut leaving = Leaving::default();
        assert!(!is_ready(leaving.ended()));
        let first = pool.join((), 1);
        let old = pool.acquire(Claim::default()).await.unwrap();
        let (first_id, second) = (first.id(), pool.join((), 1));
        leaving.add(first);
        let new = pool.acquire(Claim::default()).await.unwrap();
        leaving.add(second);
        assert!(leaving.includes(first_id) && leaving.newest() != Some(first_id));
        drop(new);
        assert!(!is_ready(leaving.ended()));
        assert!(leaving.includes(first_id));
        drop(old);
        assert!(is_ready(leaving.ended()));
        assert!(!leaving.includes(first_id) && !is_ready(leaving.ended()));
    }
}
