//! Several runtimes at once, as in the program: never more leases than slots, and no request sleeps for ever.

use std::time::Duration;

use super::*;

const THREADS: usize = 3;
const TASKS: usize = 40;
const ROUNDS: usize = 150;

/// An endpoint that counts its current requests.
#[derive(Default)]
struct CountingEndpoint {
    now: AtomicUsize,
    served: AtomicUsize,
}

async fn visit(pool: &Pool<CountingEndpoint>) {
    let mut ticket = None;
    loop {
        let acquire = pool.acquire(Claim { ticket, ..Claim::default() });
        ticket = Some(acquire.ticket());
        let impatient = fastrand::u8(..) < 40;
        let lease = tokio::select! {
            lease = acquire => lease.expect("the queue is long enough"),
            () = tokio::task::yield_now(), if impatient => return,
        };
        assert_eq!(lease.now.fetch_add(1, Ordering::SeqCst), 0, "two at once at a member with one slot");
        if fastrand::bool() {
            tokio::task::yield_now().await;
        }
        lease.now.fetch_sub(1, Ordering::SeqCst);
        if fastrand::u8(..) < 10 {
            lease.end(LeaseEnding::Unreachable);
            continue;
        }
        lease.reached();
        lease.served.fetch_add(1, Ordering::SeqCst);
        return;
    }
}

#[test]
fn under_load_from_several_runtimes_no_slot_is_shared_or_lost() {
    let settings = PoolSettings {
        queue_limit: THREADS * TASKS,
        backoff: super::super::BackoffSettings {
            min: Duration::from_micros(50),
            max: Duration::from_millis(1),
        },
        ..PoolSettings::default()
    };
    let pool = Pool::new("test", settings);
    let _members: Vec<_> = (0..4).map(|_| pool.join(CountingEndpoint::default(), 1)).collect();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let tasks = async {
                    let tasks: tokio::task::JoinSet<()> = (0..TASKS)
                        .map(|_| {
                            let pool = pool.clone();
                            async move {
                                for _ in 0..ROUNDS {
                                    visit(&pool).await;
                                }
                            }
                        })
                        .collect();
                    tasks.join_all().await;
                };
                let all = async { tokio::time::timeout(Duration::from_secs(60), tasks).await };
                runtime.block_on(all).expect("a request was never woken");
            });
        }
    });
    let figures = pool.snapshot_with(|endpoint| endpoint.served.load(Ordering::SeqCst) as u64);
    assert_eq!((figures.in_use, figures.queue_length), (0, 0));
    let served: u64 = figures.members.iter().map(|member| member.endpoint).sum();
    assert_eq!(served + figures.counters.member_failures, figures.counters.granted);
    assert!(
        figures.counters.left_queue > 0 && figures.counters.member_failures > 0,
        "{:?}",
        figures.counters
    );
}
