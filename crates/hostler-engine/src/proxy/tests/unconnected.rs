//! Requests whose time is over before a connection to their member is made.

use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::{Claim, Pool, PoolSettings};
use tokio::time::{Instant, sleep_until};

use super::kept::{exchange, settings};
use super::{Dialled, SimulatedMember, listen, simulated_address};
use crate::exchange::NoClient;
use crate::proxy::{CallSettings, Connector, Endpoint, Failure, MemberProtocol, Meter, forward};

/// As a machine that is gone.
struct SilentToConnect;

impl SimulatedMember for SilentToConnect {
    fn dial(self: Arc<Self>) -> Dialled {
        Dialled::Silent
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_to_which_no_connection_is_made_has_failed_although_its_request_had_less_time() {
    let second = Duration::from_secs(1);
    for protocol in [MemberProtocol::Http1, MemberProtocol::Http2] {
        listen(vec![Arc::new(SilentToConnect) as Arc<dyn SimulatedMember>]);
        let pool = Pool::new("app", PoolSettings::default());
        let connector = Connector { protocol, ..simulated_address(0).into() };
        let _member = pool.join(Endpoint::new(connector, "a".into(), Arc::new(Meter::new(1)), 1, None), 1);
        let lease = pool.acquire(Claim::default()).await.unwrap();
        let mut exchange = exchange();
        exchange.deadline.set_at(Instant::now() + second);
        let settings = CallSettings { connect_timeout: 5 * second, ..settings() };
        let outcome = forward(&mut exchange, &mut NoClient, lease, &settings, 0).await;
        assert!(matches!(outcome, Err(Failure::TimedOut)), "{protocol:?}");
        let seen = || {
            let figures = pool.snapshot();
            (figures.in_use, figures.counters.member_timeouts, figures.counters.member_failures)
        };
        assert_eq!(seen(), (1, 0, 0), "{protocol:?}: it may still answer");
        sleep_until(Instant::now() + 6 * second).await;
        assert_eq!(seen(), (0, 1, 1), "{protocol:?}");
    }
}
