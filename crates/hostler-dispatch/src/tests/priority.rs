//! Three classes: a higher class is served first, and no class waits for ever.

use super::*;
use crate::{MemberPreference, Priority};

fn wait(pool: &Pool<&'static str>, priority: Priority) -> Request<&'static str> {
    let mut request = of(pool.acquire(Claim { priority, ..Claim::default() }));
    request.assert_waits();
    request
}

#[test]
fn the_higher_class_is_served_first_and_each_class_by_arrival() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let mut low = wait(&pool, Priority::Low);
    let mut normal = [(); 2].map(|()| wait(&pool, Priority::Normal));
    let mut high = wait(&pool, Priority::High);
    let waiting = pool.snapshot().waiting;
    assert_eq!((waiting.high, waiting.normal, waiting.low), (1, 2, 1));

    drop(running);
    let [first, second] = &mut normal;
    for request in [&mut high, first, second, &mut low] {
        assert!(request.woken());
        request.assert_served();
    }
}

#[test]
fn a_waiting_class_is_skipped_at_most_eight_times() {
    let pool = pool(100);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let mut low: Vec<_> = (0..3).map(|_| wait(&pool, Priority::Low)).collect();
    let mut normal: Vec<_> = (0..3).map(|_| wait(&pool, Priority::Normal)).collect();
    let mut high: Vec<_> = (0..40).map(|_| wait(&pool, Priority::High)).collect();
    drop(running);

    let mut order = String::new();
    while order.len() < 30 {
        for (name, class) in [('h', &mut high), ('n', &mut normal), ('l', &mut low)] {
            if class.first().is_some_and(Request::woken) {
                order.push(name);
                class.remove(0).assert_served();
            }
        }
    }
    assert_eq!(order, "hhhhhhhhnlhhhhhhhnlhhhhhhhnlhh");
}

#[test]
fn a_returning_request_keeps_its_place_in_its_class() {
    let pool = pool(9);
    let _member = pool.join("a", 1);
    let mut early = of(pool.acquire(Claim { priority: Priority::Low, ..Claim::default() }));
    let (ticket, early) = (early.ticket(), early.lease());
    let (mut low, mut normal) = (wait(&pool, Priority::Low), wait(&pool, Priority::Normal));
    let claim = Claim { priority: Priority::Low, ..Claim::again(ticket) };
    let mut again = of(pool.acquire(claim));
    again.assert_waits();
    drop(early);
    normal.assert_served();
    assert!(again.woken() && !low.woken());
    again.assert_served();
    low.assert_served();
}

#[test]
fn a_full_queue_refuses_the_newest_request_of_the_lowest_class_below() {
    for fair in [false, true] {
        let pool = Pool::new("test", PoolSettings { queue_limit: 4, fair, ..PoolSettings::default() });
        let member = pool.join("a", 1);
        let _running = lease(&pool);
        let mut low = [(); 2].map(|()| wait(&pool, Priority::Low));
        let mut normal = wait(&pool, Priority::Normal);
        let preference = MemberPreference { bound: Some(member.id()), ..MemberPreference::default() };
        let mut bound = of(pool.acquire(Claim { priority: Priority::Low, preference, ..Claim::default() }));
        bound.assert_waits();

        let full = AcquireError::QueueFull { limit: 4 };
        let early = |priority| pool.refuse_early(priority, None);
        assert_eq!((early(Priority::High), early(Priority::Low)), (None, Some(full)));
        let mut high = vec![];
        let [first, second] = &mut low;
        for victim in [&mut bound, second, first, &mut normal] {
            victim.assert_waits();
            high.push(wait(&pool, Priority::High));
            assert!(victim.woken());
            victim.assert_refused(full);
        }
        assert_eq!(early(Priority::High), Some(full), "all that wait are of its class");
        of(pool.acquire(Claim { priority: Priority::High, ..Claim::default() })).assert_refused(full);
        high.iter_mut().for_each(Request::assert_waits);
        assert_eq!(pool.snapshot().counters.refused_full, 7);
    }
}
