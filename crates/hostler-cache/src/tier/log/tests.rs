//! Logs that were apart come to say the same, and none forgets a purge that may still be needed.

use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::{Terms, Vary};

const DAY_MS: u64 = LONGEST_SECONDS * 1000;

fn entry(asked: u64) -> Entry<()> {
    let terms =
        Terms { received: Moment(asked), lifetime: 60, shared: true, validates: true, ..Terms::default() };
    Entry {
        head: Arc::new(()),
        head_bytes: 0,
        body: Bytes::new(),
        terms,
        vary: Vary::default(),
        asked: Moment(asked),
        tags: Box::new(["shop".into()]),
        forms: Box::default(),
    }
}

fn read(log: &Log) -> Written {
    serde_json::from_slice(&log.written(Moment(5))).unwrap()
}

fn tag(name: &str) -> Purge {
    Purge::Tag(name.into())
}

#[test]
fn two_that_were_apart_agree_once_each_has_read_the_other() {
    let (mut one, mut other) = (Log::default(), Log::default());
    one.add(Moment(10_000), tag("a"));
    other.add(Moment(9000), Purge::All);
    other.add(Moment(11_000), tag("b"));
    assert_eq!(one.merge(&read(&other), Moment(20_000)), [Purge::All, tag("b")]);
    assert_eq!(other.merge(&read(&one), Moment(20_000)), [tag("a")]);
    assert_eq!(one, other);
    assert_eq!(one.merge(&read(&other), Moment(20_000)), []);
    assert_eq!(one.written(Moment(5)), other.written(Moment(5)));
}

#[test]
fn what_was_asked_for_before_a_purge_is_void_and_so_is_what_clocks_cannot_tell_from_it() {
    let mut log = Log::default();
    log.add(Moment(100_000), tag("shop"));
    assert!(log.voids(b"k", &entry(99_000)));
    assert!(log.voids(b"k", &entry(100_000 + SKEW_MS)));
    assert!(!log.voids(b"k", &entry(100_001 + SKEW_MS)));
    let mut log = Log::default();
    log.add(Moment(100_000), tag("other"));
    assert!(!log.voids(b"k", &entry(99_000)));
}

#[test]
fn more_than_can_be_told_apart_void_everything_before_the_oldest() {
    let mut log = Log::default();
    let most = MOST_RECORDS as u64;
    for at in 0..most + 10 {
        log.add(Moment(100_000 + at * 1000), tag(&at.to_string()));
    }
    assert_eq!(log.records.len(), MOST_RECORDS);
    assert!(log.voids(b"k", &entry(100_000 + 9 * 1000)));
    assert!(!log.voids(b"k", &entry(100_000 + 20 * 1000)));
    // Whoever knows only some of them learns that there were more.
    let mut other = Log::default();
    assert_eq!(other.merge(&read(&log), Moment(700_000)).first(), Some(&Purge::All));
    assert_eq!(other, log);
}

#[test]
fn what_is_older_than_anything_stored_is_forgotten_and_does_not_come_back() {
    let now = Moment(10 * DAY_MS);
    let (mut one, mut other) = (Log::default(), Log::default());
    other.add(Moment(now.0 - DAY_MS - SKEW_MS - 1), tag("old"));
    other.add(Moment(now.0 - DAY_MS), tag("young"));
    assert_eq!(one.merge(&read(&other), now), [tag("young")]);
    assert_eq!(other.merge(&read(&one), now), []);
    assert_eq!(one, other);
}

proptest::proptest! {
    #[test]
    fn any_order_of_meetings_ends_in_the_same_log(
        mut purges in proptest::collection::vec((1_u64..5000, 0_u8..3, 0_u8..20), 0..60),
        meetings in proptest::collection::vec((0_usize..3, 0_usize..3), 0..30),
    ) {
        let now = Moment(100_000);
        let mut logs = [Log::default(), Log::default(), Log::default()];
        for (when, at, name) in purges.drain(..) {
            logs[at as usize].add(Moment(when), tag(&name.to_string()));
        }
        let all_round = [(0, 1), (1, 2), (2, 0), (0, 1), (1, 2)];
        for (from, to) in meetings.into_iter().chain(all_round) {
            let written = read(&logs[from]);
            logs[to].merge(&written, now);
        }
        proptest::prop_assert_eq!(&logs[0], &logs[1]);
        proptest::prop_assert_eq!(&logs[1], &logs[2]);
    }
}
