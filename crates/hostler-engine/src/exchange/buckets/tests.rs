//! How many tokens buckets give in which time, and how much memory they take.

use tokio::time::advance;

use super::*;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn buckets(tokens: u64, per: Duration, burst: u64) -> TokenBuckets {
    TokenBuckets::new(Refill::new(tokens, per, burst), Instant::now())
}

/// How many tokens can be taken at once.
fn drained(buckets: &TokenBuckets, key: u64) -> usize {
    (0..100_000).take_while(|_| buckets.take(key, Instant::now()).is_ok()).count()
}

#[tokio::test(start_paused = true)]
async fn a_bucket_gives_its_burst_at_once_and_then_one_token_after_the_other() {
    let buckets = buckets(60, millis(60_000), 10);
    assert_eq!(buckets.take(1, Instant::now()), Ok(Left { tokens: 9, next: millis(1000) }));
    assert_eq!(drained(&buckets, 1), 9);
    assert_eq!(buckets.take(1, Instant::now()), Err(Empty(millis(1000))));
    advance(millis(999)).await;
    assert_eq!(buckets.take(1, Instant::now()), Err(Empty(millis(1))));
    advance(millis(1)).await;
    assert_eq!(buckets.take(1, Instant::now()), Ok(Left { tokens: 0, next: millis(1000) }));
    advance(millis(2500)).await;
    assert_eq!(buckets.take(1, Instant::now()), Ok(Left { tokens: 1, next: millis(500) }));
    advance(millis(3_600_000)).await;
    assert_eq!(drained(&buckets, 1), 10, "it is never fuller than full");
}

#[tokio::test(start_paused = true)]
async fn in_any_time_a_key_gets_its_burst_and_what_came_back_and_no_more() {
    for (tokens, per, burst) in [(7, 1000, 7), (3, 1000, 1), (100, 60_000, 20), (1, 5000, 1)] {
        let buckets = buckets(tokens, millis(per), burst);
        let mut taken = 0;
        // 13 ms divides none of the intervals.
        for _ in 0..10_000 {
            taken += drained(&buckets, 1) as u64;
            advance(millis(13)).await;
        }
        let most = burst + 9_999 * 13 * tokens / per;
        assert!(taken <= most, "{tokens} in {per}: {taken}, more than {most}");
        // A full bucket gets no tokens: some are lost between two tries.
        assert!(taken * 20 > most * 19, "{tokens} in {per}: {taken}, much less than {most}");
    }
}

#[tokio::test(start_paused = true)]
async fn keys_have_buckets_of_their_own_and_a_token_can_be_given_back() {
    let buckets = buckets(5, millis(1000), 5);
    assert_eq!((drained(&buckets, 1), drained(&buckets, 2)), (5, 5));
    buckets.give_back(1);
    assert_eq!((drained(&buckets, 1), drained(&buckets, 2)), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_bucket_in_debt_is_empty_until_the_debt_is_paid() {
    // 10 ms of work in 100 ms, in microseconds.
    let buckets = TokenBuckets::new(Refill::of_charges(10_000, millis(100)), Instant::now());
    let look = || buckets.look(1, Instant::now());
    assert_eq!(look(), Ok(()));
    let charge = BucketCharge { buckets: Arc::new(self::buckets(1, millis(1), 1)), key: 1 };
    charge.settle(Duration::ZERO, Instant::now());
    assert!(charge.buckets.is_empty());
    buckets.charge(1, 9_999, Instant::now());
    assert_eq!(look(), Ok(()), "a little is left");
    buckets.charge(1, 20_001, Instant::now());
    let Err(Empty(wait)) = look() else { panic!("30 ms are charged, and 10 were there") };
    assert_eq!(wait.as_millis(), 200);
    advance(wait - Duration::from_nanos(1)).await;
    assert!(look().is_err());
    advance(Duration::from_nanos(1)).await;
    assert_eq!(look(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_much_work_in_a_short_time_is_exact() {
    // Work of so many workers, in microseconds: one comes back in 3.3 nanoseconds, or in a half.
    for workers in [300, 2000] {
        let second = millis(1000);
        let tokens = workers * 1_000_000;
        let buckets = TokenBuckets::new(Refill::of_charges(tokens, second), Instant::now());
        let look = || buckets.look(1, Instant::now());
        buckets.charge(1, tokens / 2, Instant::now());
        assert_eq!(look(), Ok(()), "a half is left");
        buckets.charge(1, tokens, Instant::now());
        advance(second / 2).await;
        assert!(look().is_err());
        advance(millis(1)).await;
        assert_eq!(look(), Ok(()), "{workers} workers");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_keys_take_bounded_memory_and_those_in_debt_stay() {
    let buckets = buckets(10, millis(1000), 10);
    // As hashes of keys are: any bit may be set.
    let hash = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    assert_eq!(drained(&buckets, hash(0)), 10);
    for key in 1..=100_000 {
        assert!(buckets.take(hash(key), Instant::now()).is_ok());
        assert!(buckets.len() <= MOST_KEYS, "{key}");
    }
    assert_eq!(drained(&buckets, hash(0)), 0, "the emptiest bucket was not forgotten");
    assert!(buckets.len() > MOST_KEYS / 4);
    advance(millis(1000)).await;
    for key in 200_000..400_000 {
        let _ = buckets.take(hash(key), Instant::now());
    }
    assert!(buckets.len() <= MOST_KEYS);
}

#[tokio::test]
async fn threads_share_a_bucket_exactly() {
    let buckets = Arc::new(buckets(1000, millis(3_600_000), 1000));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let buckets = buckets.clone();
            std::thread::spawn(move || (0..1000).filter(|_| buckets.take(7, Instant::now()).is_ok()).count())
        })
        .collect();
    let taken: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(taken, 1000);
}
