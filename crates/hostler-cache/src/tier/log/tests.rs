//! Logs that were separated converge, and a purged response stays purged, whatever the order of meetings.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::{Freshness, Vary};

const SERVERS: usize = 2;

/// The page on each server, with its version there.
#[derive(Default)]
struct Servers {
    pages: [Option<(Vec<u8>, PageVersion)>; SERVERS],
    written: u64,
}

fn entry(tag: &str) -> crate::Entry<()> {
    crate::Entry {
        head: Arc::new(()),
        head_bytes: 0,
        body: Bytes::new(),
        freshness: Freshness::default(),
        vary: Vary::default(),
        asked: crate::FetchMark::now(None),
        tags: Box::new([tag.into()]),
        forms: Box::default(),
    }
}

fn tag(name: &str) -> Purge {
    Purge::Tag(name.into())
}

fn url(name: &str) -> Purge {
    Purge::Url(name.into())
}

impl Servers {
    fn page(&self, index: usize) -> Option<(Written, PageVersion)> {
        let (bytes, version) = self.pages[index].as_ref()?;
        Some((serde_json::from_slice(bytes).unwrap(), *version))
    }

    /// Does what the keeper does. Returns the purges to apply to memory.
    fn agree(&mut self, log: &mut PurgeLog, index: usize, now: Instant) -> Vec<Purge> {
        let forget = log.read(index, self.page(index), now);
        let read_by_all = log.read_by_all(index, now);
        if let Some(draft) = log.draft(index, &read_by_all, now) {
            self.written += 1;
            self.pages[index] = Some((draft.bytes(), (self.written, draft.mark())));
            log.wrote(index, draft, now);
        }
        forget
    }

    fn agree_all(&mut self, log: &mut PurgeLog, now: Instant) -> Vec<Purge> {
        (0..SERVERS).flat_map(|index| self.agree(log, index, now)).collect()
    }
}

fn logs() -> (Servers, PurgeLog, PurgeLog, Instant) {
    let (mut servers, now) = (Servers::default(), Instant::now());
    let (mut one, mut other) = (PurgeLog::new(SERVERS), PurgeLog::new(SERVERS));
    servers.agree_all(&mut one, now);
    servers.agree_all(&mut other, now);
    (servers, one, other, now)
}

#[test]
fn a_purge_or_a_change_that_a_page_lacks_is_undelivered() {
    let (mut servers, mut log, now) = (Servers::default(), PurgeLog::new(SERVERS), Instant::now());
    log.add(tag("shop"));
    log.change(1, b"example.org/a");
    assert_eq!(log.undelivered(), [tag("shop"), url("example.org/a")]);
    servers.agree(&mut log, 1, now);
    assert_eq!(log.undelivered(), [tag("shop")]);
    servers.agree(&mut log, 0, now);
    assert_eq!(log.undelivered(), []);
}

#[test]
fn a_purge_reaches_the_other_hostler_once() {
    let (mut servers, mut one, mut other, now) = logs();
    one.add(tag("shop"));
    assert_eq!(servers.agree_all(&mut one, now), []);
    assert_eq!(servers.agree_all(&mut other, now), [tag("shop")]);
    assert_eq!(servers.agree_all(&mut other, now), []);
    assert!(one.draft(0, &[], now).is_none(), "there is nothing to say");
}

#[test]
fn an_answer_made_after_its_author_knew_a_purge_stays_valid_with_any_clocks() {
    let (mut servers, mut one, mut other, now) = logs();
    let before = other.under(0).unwrap();
    one.add(tag("shop"));
    assert!(one.voids(0, b"k", &entry("shop"), before), "at once, though no server knows of it");
    servers.agree_all(&mut one, now);
    let unknowing = other.under(0).unwrap();
    servers.agree_all(&mut other, now);
    let knowing = other.under(0).unwrap();
    for log in [&one, &other] {
        assert!(log.voids(0, b"k", &entry("shop"), before));
        assert!(log.voids(0, b"k", &entry("shop"), unknowing));
        assert!(!log.voids(0, b"k", &entry("news"), before));
        assert!(!log.voids(0, b"k", &entry("shop"), knowing));
    }
}

#[test]
fn a_change_is_on_the_page_of_its_server_until_all_have_read_it() {
    let (mut servers, mut one, mut other, now) = logs();
    let before = other.under(1).unwrap();
    one.change(1, b"a.org/cart");
    assert!(one.voids(1, b"a.org/cart", &entry("x"), before));
    servers.agree_all(&mut one, now);
    assert_eq!(servers.agree_all(&mut other, now), [url("a.org/cart")]);
    assert!(other.voids(1, b"a.org/cart", &entry("x"), before));
    assert!(!other.voids(1, b"a.org/cart", &entry("x"), other.under(1).unwrap()));
    let later = now + Duration::from_secs(60);
    assert_eq!(one.read_by_all(1, now), []);
    assert_eq!(one.read_by_all(1, later).len(), 1);
    servers.agree_all(&mut one, later);
    assert_eq!(servers.agree_all(&mut other, later), []);
    assert_eq!(other.read_by_all(1, later + Duration::from_secs(60)), [], "it is gone");
    // A Hostler that was away, or that starts now, cannot know what it has missed.
    let mut late = PurgeLog::new(SERVERS);
    assert_eq!(servers.agree_all(&mut late, later), [Purge::All]);
}

#[test]
fn a_change_while_an_equal_one_is_written_has_a_record_of_its_own() {
    let (mut servers, mut one, mut other, now) = logs();
    one.change(0, b"a.org/cart");
    let draft = one.draft(0, &[], now).unwrap();
    // The server has the page, and the other Hostler reads it, before the one that writes it knows that it is there.
    servers.pages[0] = Some((draft.bytes(), (99, draft.mark())));
    servers.agree(&mut other, 0, now);
    let between = other.under(0).unwrap();
    one.change(0, b"a.org/cart");
    one.wrote(0, draft, now);
    assert!(one.lacks(0));
    servers.agree(&mut one, 0, now);
    assert!(!one.lacks(0));
    assert_eq!(servers.agree(&mut other, 0, now), [url("a.org/cart")]);
    assert!(other.voids(0, b"a.org/cart", &entry("x"), between));
}

#[test]
fn thousands_of_changes_are_recorded_compactly_and_displace_no_purge() {
    let (mut servers, mut one, mut other, now) = logs();
    one.add(tag("shop"));
    for round in 0..50 {
        for at in 0..400 {
            one.change(0, format!("a.org/cart/{round}-{at}").as_bytes());
        }
        one.change(0, b"a.org/news");
        servers.agree_all(&mut one, now);
        let told = servers.agree_all(&mut other, now);
        assert!(told.len() <= 402, "{}", told.len());
    }
    assert!(servers.pages[0].as_ref().unwrap().0.len() < 64 << 10);
    let words: Vec<_> = one.purges.values().map(|told| told.purge.clone()).collect();
    assert!(
        words.contains(&tag("shop")) && words.contains(&Purge::Prefix("a.org/cart/".into())),
        "{words:?}"
    );
    assert!(words.len() <= 3, "{words:?}");
}

#[test]
fn changes_for_an_absent_server_are_merged_until_it_returns() {
    let (mut servers, mut one, mut other, now) = logs();
    (0..100_000).for_each(|at| one.change(0, format!("a.org/cart/{at}").as_bytes()));
    assert!(one.voids(0, b"a.org/cart/1", &entry("x"), one.under(0).unwrap()));
    servers.agree_all(&mut one, now);
    let told = servers.agree_all(&mut other, now);
    assert!(told.contains(&Purge::Prefix("a.org/cart/".into())), "{told:?}");
}

#[test]
fn too_many_purges_void_everything() {
    let (mut servers, mut one, mut other, now) = logs();
    let before = one.under(0).unwrap();
    (0..=MOST_PURGES).for_each(|at| one.add(tag(&at.to_string())));
    servers.agree_all(&mut one, now);
    assert_eq!(servers.agree(&mut other, 0, now), [Purge::All]);
    assert!(other.voids(0, b"k", &entry("other"), before));
    assert!(!other.voids(0, b"k", &entry("1"), other.under(0).unwrap()));
}

#[test]
fn purges_too_long_for_an_item_of_memcached_void_everything() {
    let (mut servers, mut one, mut other, now) = logs();
    let long = "x".repeat(2 << 10);
    (0..1000).for_each(|at| one.add(url(&format!("a.org/?{at}{long}"))));
    servers.agree_all(&mut one, now);
    let length = servers.pages[0].as_ref().map(|(page, _)| page.len());
    assert!(length.is_some_and(|length| length < 1 << 20), "{length:?}");
    assert!(servers.agree(&mut other, 0, now).contains(&Purge::All));
}

#[test]
fn a_repeated_purge_is_one_record_and_voids_answers_in_between() {
    let (mut servers, mut one, mut other, now) = logs();
    for _ in 0..MOST_PURGES * 2 {
        let between = other.under(0).unwrap();
        one.add(tag("front"));
        servers.agree_all(&mut one, now);
        assert!(servers.agree(&mut other, 0, now).contains(&tag("front")));
        assert!(other.voids(0, b"k", &entry("front"), between));
        servers.agree(&mut other, 1, now);
    }
    assert_eq!((one.purges.len(), other.purges.len()), (1, 1));
}

#[test]
fn a_lost_page_is_written_again_and_older_answers_are_void() {
    let (mut servers, mut one, mut other, now) = logs();
    one.add(tag("shop"));
    servers.agree_all(&mut one, now);
    servers.agree_all(&mut other, now);
    one.change(0, b"a.org/cart");
    servers.agree(&mut one, 0, now);
    let before = one.under(0).unwrap();
    servers.pages[0] = None;
    servers.agree(&mut one, 0, now);
    assert!(one.voids(0, b"k", &entry("other"), before));
    assert_eq!(
        servers.agree(&mut other, 0, now),
        [url("a.org/cart")],
        "it was not read yet when the page was lost"
    );
    let told = servers.agree(&mut PurgeLog::new(SERVERS), 0, now);
    assert!(told.len() == 2 && told.contains(&tag("shop")) && told.contains(&url("a.org/cart")), "{told:?}");
}

#[test]
fn a_purge_is_removed_after_a_day_and_does_not_return() {
    let (mut servers, mut one, mut other, mut now) = logs();
    one.add(tag("shop"));
    for hour in 0..40 {
        for log in [&mut one, &mut other] {
            servers.agree_all(log, now);
        }
        assert_eq!(one.purges.len(), usize::from(hour < 26), "{hour}");
        now += Duration::from_secs(3600);
    }
    assert!(other.purges.is_empty());
}

/// A step of a random history: which Hostler does what, on which server.
#[derive(Debug, Clone)]
enum Step {
    Purge(usize, u8),
    Change(usize, usize, u8),
    Agree(usize, usize),
    Ask(usize, usize, u8),
    Lose(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (who, at, name) = (0..3_usize, 0..SERVERS, 0..3_u8);
    let step = prop_oneof![
        1 => (who.clone(), name.clone()).prop_map(|(who, name)| Step::Purge(who, name)),
        2 => (who.clone(), at.clone(), name.clone()).prop_map(|(who, at, name)| Step::Change(who, at, name)),
        6 => (who.clone(), at.clone()).prop_map(|(who, at)| Step::Agree(who, at)),
        4 => (who, at.clone(), name).prop_map(|(who, at, name)| Step::Ask(who, at, name)),
        1 => at.prop_map(Step::Lose),
    ];
    prop::collection::vec(step, 0..80)
}

/// A response on a server, and whether it was requested before its key was purged or changed.
struct Answer {
    at: usize,
    name: u8,
    under: LogPosition,
    is_old: bool,
    by: usize,
}

proptest! {
    #[test]
    fn no_item_older_than_a_purge_or_change_is_used_after_the_next_read(steps in steps()) {
        let (mut servers, now) = (Servers::default(), Instant::now());
        let mut logs = [PurgeLog::new(SERVERS), PurgeLog::new(SERVERS), PurgeLog::new(SERVERS)];
        let mut answers: Vec<Answer> = Vec::new();
        for step in steps {
            match step {
                Step::Purge(who, name) => {
                    logs[who].add(tag(&name.to_string()));
                    answers.iter_mut().filter(|answer| answer.name == name).for_each(|answer| answer.is_old = true);
                }
                Step::Change(who, at, name) => {
                    logs[who].change(at, format!("a.org/{name}").as_bytes());
                    let is_it = |answer: &&mut Answer| answer.name == name && answer.at == at;
                    answers.iter_mut().filter(is_it).for_each(|answer| answer.is_old = true);
                }
                Step::Agree(who, at) => drop(servers.agree(&mut logs[who], at, now)),
                Step::Ask(by, at, name) => {
                    if let Some(under) = logs[by].under(at) {
                        answers.push(Answer { at, name, under, is_old: false, by });
                    }
                }
                Step::Lose(at) => servers.pages[at] = None,
            }
        }
        for _ in 0..12 {
            logs.iter_mut().for_each(|log| drop(servers.agree_all(log, now)));
        }
        for answer in &answers {
            let key = format!("a.org/{}", answer.name);
            let entry = entry(&answer.name.to_string());
            let void = logs.each_ref().map(|log| log.voids(answer.at, key.as_bytes(), &entry, answer.under));
            prop_assert!(!answer.is_old || void == [true; 3], "{} by {}: {void:?}", answer.name, answer.by);
            prop_assert!(void.iter().all(|one| *one == void[0]), "they agree: {void:?}");
        }
        for index in 0..SERVERS {
            prop_assert!(logs.iter_mut().all(|log| log.draft(index, &[], now).is_none()), "no log has more to write");
        }
    }
}
