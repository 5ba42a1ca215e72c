//! What is stored, what is evicted, and what must not be stored after a purge.

use bytes::Bytes;

use super::*;
use crate::{FetchMark, Freshness, Moment, Selecting, Vary};

fn entry(asked: u64, body: usize, tags: &[&str]) -> Arc<Entry<()>> {
    Arc::new(Entry {
        head: Arc::new(()),
        head_bytes: 0,
        body: Bytes::from(vec![0; body]),
        freshness: Freshness {
            received: Moment(asked),
            lifetime: 60,
            shared: true,
            validates: true,
            ..Freshness::default()
        },
        vary: Vary::default(),
        asked: FetchMark { at: Moment(asked), tick: Tick(asked), under: None },
        tags: tags.iter().map(|tag| (*tag).into()).collect(),
        forms: Box::default(),
    })
}

/// An entry for requests that have this value in a field.
fn variant(asked: u64, value: u64, tags: &[&str]) -> Arc<Entry<()>> {
    let fields = Box::new([Selecting { name: "x".into(), value: Some(value.to_ne_bytes().into()) }]);
    let plain = Arc::into_inner(entry(asked, 5, tags)).unwrap();
    Arc::new(Entry { vary: Vary { secure: false, route: 0, fields }, ..plain })
}

fn cache() -> Cache<()> {
    Cache::new(1 << 20, 100_000)
}

#[test]
fn an_entry_is_found_only_under_its_key() {
    let cache = cache();
    assert!(cache.keep(b"example.org/a", entry(10, 5, &[])));
    assert_eq!(cache.look(b"example.org/a").unwrap().iter().count(), 1);
    assert!(cache.look(b"example.org/b").is_none());
}

#[test]
fn variants_lie_side_by_side_the_newest_first_and_are_bounded() {
    let cache = cache();
    for at in 1..100 {
        cache.keep(b"k", variant(at, at, &[]));
    }
    let variants = cache.look(b"k").unwrap();
    let asked: Vec<_> = variants.iter().map(|entry| entry.asked.at.0).collect();
    // The first was alone under its key. Whether it was used then is not known, so it stays.
    assert_eq!(asked, (85..100).rev().chain([1]).collect::<Vec<_>>());
    assert_eq!(variants.find(|entry| entry.asked.at.0 < 90).unwrap().asked.at, Moment(89));
    cache.keep(b"k", variant(1000, 90, &[]));
    let variants = cache.look(b"k").unwrap();
    assert_eq!(variants.iter().count(), 16);
    assert_eq!(variants.find(|entry| entry.vary == variant(0, 90, &[]).vary).unwrap().asked.at, Moment(1000));
}

#[test]
fn unused_variants_do_not_displace_one_that_is_used() {
    let cache = cache();
    let finds = |value: u64| {
        cache.look(b"k").unwrap().find(|entry| entry.vary == variant(0, value, &[]).vary).is_ok()
    };
    for value in 0..4 {
        cache.keep(b"k", variant(value, value, &[]));
    }
    assert!(finds(2));
    for junk in 100..200 {
        cache.keep(b"k", variant(junk, junk, &[]));
    }
    assert!(finds(2) && !finds(3));
    // A newer response for the same requests is used like the one before.
    cache.keep(b"k", variant(300, 2, &[]));
    let old = cache.look(b"k").unwrap().iter().next().unwrap().clone();
    assert!(cache.exchange(b"k", &old, variant(301, 2, &[])));
    for junk in 400..500 {
        cache.keep(b"k", variant(junk, junk, &[]));
    }
    assert!(finds(2));
}

#[test]
fn among_used_variants_the_one_that_was_used_longest_ago_gives_way() {
    let cache = cache();
    let finds = |value: u64| {
        cache.look(b"k").unwrap().find(|entry| entry.vary == variant(0, value, &[]).vary).is_ok()
    };
    for value in 1..=16 {
        cache.keep(b"k", variant(value, value, &[]));
        assert!(finds(value));
    }
    assert!(finds(1) && finds(2));
    cache.keep(b"k", variant(17, 17, &[]));
    assert!(!finds(3) && finds(1) && finds(2) && finds(17));
}

#[test]
fn large_variants_of_one_key_leave_room_for_other_keys() {
    let cache = cache();
    let others: Vec<_> = (0..5).map(|at| format!("other/{at}")).collect();
    for key in &others {
        cache.keep(key.as_bytes(), entry(1, 50_000, &[]));
    }
    for at in 1..=16 {
        let small = Arc::into_inner(variant(at, at, &[])).unwrap();
        assert!(cache.keep(b"k", Arc::new(Entry { body: Bytes::from(vec![0; 90_000]), ..small })));
        assert!(cache.counts().bytes <= 1 << 20);
    }
    let asked: Vec<_> = cache.look(b"k").unwrap().iter().map(|entry| entry.asked.at.0).collect();
    // As above, the first stays.
    assert_eq!(asked, [16, 1]);
    assert!(others.iter().all(|key| cache.look(key.as_bytes()).is_some()));
}

#[test]
fn an_entry_over_max_entry_is_not_stored_and_an_update_over_it_changes_nothing() {
    let cache = cache();
    assert!(!cache.keep(b"k", entry(1, 100_000, &[])));
    let small = entry(1, 90_000, &[]);
    assert!(cache.keep(b"k", Arc::clone(&small)));
    assert!(!cache.exchange(b"k", &small, entry(2, 100_000, &[])));
    assert!(cache.look(b"k").unwrap().find(|entry| entry.is_same(&small)).is_ok());
}

#[test]
fn the_forms_of_an_entry_count_but_not_for_max_entry() {
    let cache = cache();
    let form = |coding, size| StoredForm { coding, head: Arc::new(()), body: Bytes::from(vec![0; size]) };
    let found = || cache.look(b"k").unwrap().find(|_| true).unwrap();
    let plain = entry(1, 90_000, &[]);
    assert!(cache.keep(b"k", Arc::clone(&plain)));
    assert!(cache.add_form(b"k", &plain, form("gzip", 20_000)));
    assert_eq!(found().form("gzip").unwrap().body.len(), 20_000);
    let more = found().weight() - plain.weight();
    assert!((20_000..20_200).contains(&more), "{more}");
    assert!(cache.counts().bytes >= 110_000, "forms count: {:?}", cache.counts());
    let fresh = Arc::new(found().with(form("br", 10_000)));
    assert!(cache.exchange(b"k", &found(), fresh), "it can be validated");
    // One key gets a quarter of the memory.
    assert!(!cache.add_form(b"k", &found(), form("zstd", 150_000)));
    assert_eq!(found().forms.len(), 2);
}

#[test]
fn an_entry_that_gets_a_form_meanwhile_can_be_validated_and_removed() {
    let cache = cache();
    let form = || StoredForm { coding: "gzip", head: Arc::new(()), body: Bytes::new() };
    let (old, fresh) = (entry(1, 10, &[]), entry(2, 10, &[]));
    cache.keep(b"k", Arc::clone(&old));
    assert!(cache.add_form(b"k", &old, form()));
    assert!(cache.exchange(b"k", &old, Arc::clone(&fresh)));
    assert!(!cache.exchange(b"k", &old, entry(3, 10, &[])), "it is replaced");
    assert!(cache.add_form(b"k", &fresh, form()));
    cache.remove(b"k", &old);
    assert!(cache.look(b"k").is_some());
    cache.remove(b"k", &fresh);
    assert!(cache.look(b"k").is_none());
}

#[test]
fn a_form_of_a_replaced_entry_is_dropped() {
    let cache = cache();
    let old = entry(1, 10, &[]);
    cache.keep(b"k", Arc::clone(&old));
    cache.keep(b"k", entry(2, 10, &[]));
    let form = StoredForm { coding: "gzip", head: Arc::new(()), body: Bytes::new() };
    assert!(!cache.add_form(b"k", &old, form));
}

#[test]
fn the_store_stays_within_its_size() {
    let cache = cache();
    for at in 0_u32..500 {
        cache.keep(&at.to_ne_bytes(), entry(1, 10_000, &[]));
    }
    let counts = cache.counts();
    assert!(counts.bytes <= 1 << 20 && counts.keys > 80, "{counts:?}");
    assert_eq!(counts.keys + counts.evicted, 500);
}

#[test]
fn a_purge_removes_its_entries_and_returns_their_count() {
    let cache = cache();
    for path in ["a.org/", "a.org/shop/1", "a.org/shop/2", "b.org/shop/1"] {
        cache.keep(path.as_bytes(), entry(10, 5, &["all", path]));
        cache.keep(path.as_bytes(), variant(11, 1, &["second"]));
    }
    let now = Tick(20);
    assert_eq!(cache.purge(&Purge::Tag("b.org/shop/1".into()), now), 1);
    assert_eq!(cache.look(b"b.org/shop/1").unwrap().iter().count(), 1, "the other variant stays");
    assert_eq!(cache.purge(&Purge::Prefix("a.org/shop/".into()), now), 4);
    assert_eq!(cache.purge(&Purge::Url("a.org/".into()), now), 2);
    assert_eq!(cache.purge(&Purge::Url("a.org/".into()), now), 0);
    assert_eq!(cache.purge(&Purge::All, now), 1);
    assert_eq!(cache.counts().keys, 0);
    assert_eq!(cache.counts().purged, 8);
}

#[test]
fn a_store_that_is_empty_again_tells_that_it_was_used() {
    let cache = cache();
    let counted = || (cache.counts().keys, cache.counts().has_stored);
    assert_eq!(counted(), (0, false));
    assert!(cache.keep(b"a", entry(10, 5, &[])));
    assert_eq!(counted(), (1, true));
    cache.forget(b"a", Tick(20));
    assert_eq!(counted(), (0, true));
}

#[test]
fn a_purge_counts_also_if_another_with_an_earlier_time_is_noted_after_it() {
    let cache = cache();
    cache.purge(&Purge::Tag("t".into()), Tick(100));
    cache.purge(&Purge::Tag("of a command that has begun before".into()), Tick(8));
    assert!(!cache.keep(b"a", entry(50, 5, &["t"])));
    assert!(cache.is_void(b"a", Tick(50)) && !cache.is_void(b"a", Tick(101)));
}

#[test]
fn an_answer_under_way_during_a_purge_is_not_stored() {
    let cache = cache();
    for purge in [Purge::Tag("t".into()), Purge::Prefix("a".into()), Purge::Url("a/1".into()), Purge::All] {
        let cache = self::cache();
        cache.purge(&purge, Tick(20));
        assert!(!cache.keep(b"a/1", entry(20, 5, &["t"])), "{purge:?}");
        assert!(cache.keep(b"a/1", entry(21, 5, &["t"])), "{purge:?}");
        assert!(purge == Purge::All || cache.keep(b"b/1", entry(19, 5, &["u"])), "{purge:?}");
    }
    cache.forget(b"a/1", Tick(20));
    assert!(!cache.keep(b"a/1", entry(19, 5, &[])));
}

#[test]
fn a_clock_that_was_set_back_voids_no_answer_that_was_requested_after_a_purge() {
    let cache = cache();
    for purge in [Purge::Url("a/1".into()), Purge::All] {
        cache.purge(&purge, Tick(20));
    }
    let later = Arc::into_inner(entry(1000, 5, &[])).unwrap();
    let asked = FetchMark { at: Moment(1), tick: Tick(21), under: None };
    assert!(cache.keep(b"a/1", Arc::new(Entry { asked, ..later })));
    assert!(Tick::now() > Tick::default() && Tick::now() <= Tick::now());
}

#[test]
fn a_fetch_under_way_is_void_after_a_purge_that_may_concern_it() {
    let is_void = |purge: Purge| {
        let cache = cache();
        cache.purge(&purge, Tick(20));
        [19, 20, 21].map(|since| cache.is_void(b"a/b", Tick(since)))
    };
    let (void, valid) = ([true, true, false], [false; 3]);
    assert_eq!(is_void(Purge::Url("a/b".into())), void);
    assert_eq!(is_void(Purge::Url("a/c".into())), valid);
    assert_eq!(is_void(Purge::Prefix("a/".into())), void);
    assert_eq!(is_void(Purge::Prefix("b/".into())), valid);
    assert_eq!(is_void(Purge::Tag("any".into())), void, "no one knows its tags yet");
    assert_eq!(is_void(Purge::All), void);
    let cache = cache();
    cache.forget(b"a/b", Tick(20));
    assert_eq!([19, 20, 21].map(|since| cache.is_void(b"a/b", Tick(since))), void);
}

#[test]
fn too_many_purges_to_remember_void_all_older_answers() {
    let cache = cache();
    for at in 0..2000 {
        cache.purge(&Purge::Tag(at.to_string()), Tick(1000 + at));
    }
    assert!(!cache.keep(b"k", entry(1200, 5, &[])));
    assert!(cache.keep(b"k", entry(2990, 5, &["not purged"])));
}

#[test]
fn a_purge_and_an_answer_at_the_same_time_leave_no_stale_entry() {
    for _ in 0..200 {
        let cache = cache();
        std::thread::scope(|scope| {
            scope.spawn(|| cache.keep(b"k", entry(10, 5, &["t"])));
            scope.spawn(|| cache.purge(&Purge::Tag("t".into()), Tick(20)));
        });
        assert!(cache.look(b"k").is_none());
    }
}
