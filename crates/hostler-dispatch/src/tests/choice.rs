//! Which member gets the next request.

use super::*;

fn served<const N: usize>(pool: &Pool<&'static str>) -> [&'static str; N] {
    std::array::from_fn(|_| *lease(pool))
}

#[test]
fn warm_stays_with_the_member_used_last_while_one_request_runs_at_a_time() {
    let pool = pool_with(MemberChoice::Warm);
    let _members = ["a", "b", "c"].map(|name| pool.join(name, 1));
    let (a, b) = (lease(&pool), lease(&pool));
    let (first, second) = (*a, *b);
    drop(a);
    drop(b);
    assert_eq!(served(&pool), [second; 4]);
    assert_ne!(first, second);
}

#[test]
fn warm_sends_no_request_to_a_busy_member_while_another_is_idle() {
    let pool = pool_with(MemberChoice::Warm);
    let _members = ["a", "b"].map(|name| pool.join(name, 4));
    let leases: Vec<_> = (0..8).map(|_| lease(&pool)).collect();
    for pair in leases.chunks(2) {
        assert_ne!(*pair[0], *pair[1], "one each before a second for either");
    }
}

#[test]
fn round_robin_takes_the_next_member_and_skips_busy_ones() {
    let pool = pool_with(MemberChoice::RoundRobin);
    let _members = ["a", "b", "c"].map(|name| pool.join(name, 1));
    assert_eq!(served(&pool), ["a", "b", "c", "a", "b"]);
    let _busy = lease(&pool);
    assert_eq!(served(&pool), ["a", "b", "a", "b"]);
}

#[test]
fn round_robin_keeps_its_turn_when_a_member_leaves() {
    let pool = pool_with(MemberChoice::RoundRobin);
    let [a, _b, _c] = ["a", "b", "c"].map(|name| pool.join(name, 1));
    assert_eq!(served(&pool), ["a", "b"]);
    drop(a);
    assert_eq!(served(&pool), ["c", "b"]);
}

#[test]
fn least_busy_compares_the_share_of_busy_slots() {
    let pool = pool_with(MemberChoice::LeastBusy);
    let _small = pool.join("small", 1);
    let _large = pool.join("large", 4);
    let leases: Vec<_> = (0..5).map(|_| lease(&pool)).collect();
    let names: Vec<_> = leases.iter().map(|lease| **lease).collect();
    assert_eq!(names, ["small", "large", "large", "large", "large"]);
}

#[test]
fn least_busy_takes_the_longest_unused_of_equal_members() {
    let pool = pool_with(MemberChoice::LeastBusy);
    let _members = ["a", "b", "c"].map(|name| pool.join(name, 1));
    assert_eq!(served(&pool), ["a", "b", "c", "a", "b", "c"]);
}

#[test]
fn choices_are_parsed_from_the_words_they_print() {
    for choice in [MemberChoice::Warm, MemberChoice::RoundRobin, MemberChoice::LeastBusy] {
        assert_eq!(choice.to_string().parse(), Ok(choice));
        assert_eq!(serde_json::to_value(choice).unwrap(), choice.as_str());
    }
    let error = "hot".parse::<MemberChoice>().unwrap_err();
    assert_eq!(error.to_string(), r#"no such choice "hot": use "warm", "round_robin" or "least_busy""#);
}
