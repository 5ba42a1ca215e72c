//! Three classes: a higher class is served first, and no class waits for ever.

use super::*;
use crate::Priority;

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
    let early = {
        let mut request = of(pool.acquire(Claim { priority: Priority::Low, ..Claim::default() }));
        request.lease()
    };
    let ticket = early.ticket();
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
