//! A member that did not offer HTTP/2, and does so later.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hostler_dispatch::{Claim, Pool, PoolSettings};
use tokio::time::{Instant, sleep_until, timeout};

use super::kept::{exchange, request, settings};
use super::{Dialled, SimulatedMember, WireSettings, listen, simulated_address, wire};
use crate::exchange::NoClient;
use crate::proxy::{Connector, Endpoint, MemberProtocol, Meter, forward};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Answers in HTTP/1.1, and counts its connections.
#[derive(Default)]
struct AskedMember(AtomicUsize);

impl SimulatedMember for AskedMember {
    fn dial(self: Arc<Self>) -> Dialled {
        self.0.fetch_add(1, Ordering::Relaxed);
        let (stream, member) = wire(WireSettings { capacity: 10_000, seed: 1, discarded: Arc::new(|_| {}) });
        tokio::spawn(async move {
            loop {
                request(&member).await;
                member.write_at_once(ANSWER);
            }
        });
        Dialled::Accepted(stream, Duration::ZERO)
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_without_http2_is_asked_again_after_a_minute() {
    let member = Arc::new(AskedMember::default());
    listen(vec![member.clone() as Arc<dyn SimulatedMember>]);
    let pool = Pool::new("app", PoolSettings::default());
    let connector = Connector { protocol: MemberProtocol::Http2, ..simulated_address(0).into() };
    let endpoint = Endpoint::new(connector.clone(), "a".into(), Arc::new(Meter::new(1)), 1, None);
    let _membership = pool.join(endpoint, 1);
    // As after a handshake without ALPN.
    assert!(connector.note_http2(false));
    let mut exchange = exchange();
    let mut ask = async || {
        let lease = pool.acquire(Claim::default()).await.unwrap();
        let answered = forward(&mut exchange, &mut NoClient, lease, &settings(), 0).await;
        let Ok(call) = answered else { panic!("it is answered in HTTP/1.1") };
        call.finish(&mut exchange);
    };
    ask().await;
    sleep_until(Instant::now() + Duration::from_secs(1)).await;
    assert_eq!((member.0.load(Ordering::Relaxed), connector.spoken()), (1, MemberProtocol::Http1));
    // The kept connection is too old then.
    sleep_until(Instant::now() + Duration::from_secs(61)).await;
    ask().await;
    let is_used = async {
        while connector.spoken() == MemberProtocol::Http1 {
            sleep_until(Instant::now() + Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(1), is_used).await.expect("its HTTP/2 is noticed");
    assert_eq!(member.0.load(Ordering::Relaxed), 3);
}
