//! What the tier promises: tests with real memcached servers, and with one that is stopped, slow or broken.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use hostler_cache::{Entry, Purge, Tick};
use hostler_testkit::{
    LinkFault, eventually, fault_proxy, memcached, memcached_at, memcached_with_password, no_upstream,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

#[path = "tier/hostler.rs"]
mod hostler;

use hostler::{entry, hostler, hostler_with, log, two_hostlers};

macro_rules! memcached_or_skip {
    () => {{
        let Some(memcached) = memcached().await else { return };
        memcached
    }};
}

#[tokio::test]
async fn an_entry_of_one_hostler_is_a_hit_at_another() {
    let memcached = memcached_or_skip!();
    let servers = [memcached.address().to_string()];
    let (one, other) = two_hostlers(&servers).await;
    assert!(!other.tier.fetch(b"example.org/").await, "no server has it");
    one.stores("example.org/", entry("rendered", &[]));
    assert_eq!(other.gets("example.org/").await, "rendered");
    let entry = other.cache.look(b"example.org/").unwrap();
    assert_eq!(*entry.find(|_| true).unwrap().head, "HTTP/1.1 200 OK");
    assert_eq!(other.count("hits"), 1);
    // It is counted after others can already read it.
    eventually("it to be counted", async || (one.count("stored") == 1).then_some(())).await;
}

#[tokio::test]
async fn a_server_may_have_only_an_ipv6_address() {
    let Some(mut memcached) = memcached_at(Ipv6Addr::LOCALHOST.into()).await else { return };
    let servers = [memcached.address().to_string()];
    assert!(servers[0].starts_with("[::1]:"));
    let (one, other) = two_hostlers(&servers).await;
    // Larger than all buffers on the way.
    let large = "x".repeat(900_000);
    one.stores("example.org/", entry(&large, &[]));
    assert_eq!(other.gets("example.org/").await, large);
    memcached.stop();
    one.finds(0).await;
    memcached.start_again().await;
    one.finds(1).await;
}

#[tokio::test]
async fn each_server_has_a_share_of_the_keys_and_a_lost_server_loses_only_its_share() {
    let (first, mut second) = (memcached_or_skip!(), memcached_or_skip!());
    let servers = [first.address().to_string(), second.address().to_string()];
    let (one, other) = two_hostlers(&servers).await;
    let keys: Vec<_> = (0..40).map(|at| format!("example.org/{at}")).collect();
    assert!(keys.iter().all(|key| one.stores(key, entry(key, &[]))));
    for key in &keys {
        assert_eq!(other.gets(key).await, key.as_str());
    }
    // The last one is counted after others can already read it.
    eventually("all to be counted", async || (one.count("stored") == 40).then_some(())).await;
    let stored: Vec<_> =
        one.tier.status().iter().map(|server| server.counts["stored"].as_u64().unwrap()).collect();
    assert!(stored.iter().all(|count| *count > 5), "{stored:?}");

    second.stop();
    let third = hostler(&servers);
    third.finds(1).await;
    let mut found = 0;
    for key in &keys {
        found += u64::from(third.tier.fetch(key.as_bytes()).await);
    }
    assert_eq!(found, stored[0], "{:?}", third.tier.status());
}

#[tokio::test]
async fn a_purge_reaches_the_servers_and_the_memory_of_all() {
    let memcached = memcached_or_skip!();
    let servers = [memcached.address().to_string()];
    let (one, other) = two_hostlers(&servers).await;
    for (key, tags) in [("example.org/a", ["shop"].as_slice()), ("example.org/b", &["news"])] {
        one.stores(key, entry(key, tags));
        other.gets(key).await;
    }
    let purged = one.tier.purge(vec![Purge::Tag("shop".into())]).await;
    assert_eq!((purged.entries, purged.told, purged.servers), (1, 1, 1));
    assert!(one.body("example.org/a").is_none());
    let gone = async || other.body("example.org/a").is_none().then_some(());
    eventually("the other to forget it too", gone).await;
    assert!(other.body("example.org/b").is_some(), "only what was meant");
    assert!(!other.tier.fetch(b"example.org/a").await, "memcached has it, and no Hostler uses it");
    assert_eq!(other.count("void"), 1);

    // A Hostler that starts later learns of it too.
    let third = hostler(&servers);
    third.finds(1).await;
    assert!(!third.tier.fetch(b"example.org/a").await);
    assert_eq!(third.gets("example.org/b").await, "example.org/b");
}

#[tokio::test]
async fn a_purge_made_while_the_server_is_away_is_sent_when_it_returns() {
    let memcached = memcached_or_skip!();
    let between = fault_proxy(memcached.address()).await;
    let (near, far) = ([memcached.address().to_string()], [between.address().to_string()]);
    let one = hostler_with(&far, Duration::from_millis(200));
    let other = hostler(&near);
    one.finds(1).await;
    other.finds(1).await;
    between.set(LinkFault::Mute);
    one.finds(0).await;
    let purged = one.tier.purge(vec![Purge::Prefix("example.org/".into())]).await;
    assert_eq!((purged.told, purged.servers), (0, 1));
    other.stores("example.org/a", entry("a", &[]));
    between.set(LinkFault::None);
    one.finds(1).await;
    let gone = async || other.body("example.org/a").is_none().then_some(());
    eventually("the purge to arrive", gone).await;
}

#[tokio::test]
async fn a_server_that_lost_its_purge_log_gets_it_again_and_its_older_items_are_void() {
    let mut memcached = memcached_or_skip!();
    let servers = [memcached.address().to_string()];
    let one = hostler(&servers);
    one.finds(1).await;
    one.tier.purge(vec![Purge::Tag("shop".into())]).await;
    let before = one.tier.mark_fetch(b"example.org/a");
    memcached.stop();
    one.finds(0).await;
    memcached.start_again().await;
    one.finds(1).await;

    one.stores_what_was_asked("example.org/a", entry("old", &[]), before);
    eventually("it to be dropped", async || (one.count("dropped") == 1).then_some(())).await;
    let other = hostler(&servers);
    other.finds(1).await;
    one.stores("example.org/b", entry("new", &[]));
    assert_eq!(other.gets("example.org/b").await, "new");
    assert!(!other.tier.fetch(b"example.org/a").await, "it was asked for when there was another log");
    assert!(log(&servers[0]).await.contains("shop"));
}

#[tokio::test]
async fn an_entry_made_after_a_purge_serves_all_instances_at_once() {
    let memcached = memcached_or_skip!();
    let servers = [memcached.address().to_string()];
    let hostlers = [hostler(&servers), hostler(&servers), hostler(&servers)];
    for one in &hostlers {
        one.finds(1).await;
    }
    let [one, other, third] = hostlers;
    one.stores("example.org/a", entry("old", &["shop"]));
    other.gets("example.org/a").await;
    let before = other.tier.mark_fetch(b"example.org/a");
    one.tier.purge(vec![Purge::Tag("shop".into())]).await;
    other.forgets("example.org/a").await;
    // This one was on its way: it was requested before the purge.
    let late = Entry { asked: before, ..Arc::into_inner(entry("late", &["shop"])).unwrap() };
    other.tier.put(b"example.org/a", hostler_cache::Variants::from(Arc::new(late)));
    eventually("it to be dropped", async || (other.count("dropped") == 1).then_some(())).await;
    other.stores("example.org/a", entry("new", &["shop"]));
    eventually("it to be stored", async || (other.count("stored") == 1).then_some(())).await;
    assert!(one.tier.fetch(b"example.org/a").await, "no clock has a say in this");
    assert_eq!(one.body("example.org/a").unwrap(), "new");
    assert_eq!(third.gets("example.org/a").await, "new");
}

#[tokio::test]
async fn an_unsafe_method_invalidates_the_entry_in_all_instances() {
    let memcached = memcached_or_skip!();
    let servers = [memcached.address().to_string()];
    let (one, other) = two_hostlers(&servers).await;
    for key in ["example.org/a", "example.org/b"] {
        one.stores(key, entry("old", &[]));
        other.gets(key).await;
    }
    let before = other.tier.mark_fetch(b"example.org/a");
    one.cache.forget(b"example.org/a", Tick::now());
    one.tier.forget(b"example.org/a");
    assert!(!one.tier.fetch(b"example.org/a").await, "void at once for a Hostler that knows of the change");
    other.forgets("example.org/a").await;
    assert!(!other.tier.fetch(b"example.org/a").await, "memcached has it, and no Hostler uses it");
    other.stores_what_was_asked("example.org/a", entry("late", &[]), before);
    assert!(other.body("example.org/a").is_none(), "it was asked for before");
    assert!(other.body("example.org/b").is_some(), "only what was meant");
    // What was requested in the millisecond of the change counts as requested before it.
    let later = async || other.stores("example.org/a", entry("new", &[])).then_some(());
    eventually("a response of a later millisecond to be stored", later).await;
    assert_eq!(one.gets("example.org/a").await, "new");
}

#[tokio::test]
async fn thousands_of_invalidations_are_sent_compactly_and_displace_no_purge() {
    let memcached = memcached_or_skip!();
    let servers = [memcached.address().to_string()];
    let (one, other) = two_hostlers(&servers).await;
    for key in ["example.org/cart/1", "example.org/cart/2999", "example.org/news/1", "example.org/a"] {
        one.stores(key, entry(key, &[if key.ends_with('a') { "shop" } else { "" }]));
        other.gets(key).await;
    }
    one.tier.purge(vec![Purge::Tag("shop".into())]).await;
    (0..3000).for_each(|at| one.tier.forget(format!("example.org/cart/{at}").as_bytes()));
    for key in ["example.org/cart/1", "example.org/cart/2999", "example.org/a"] {
        other.forgets(key).await;
    }
    assert!(other.body("example.org/news/1").is_some());
    let log = log(&servers[0]).await;
    assert!(log.len() < 64 << 10 && log.contains("shop") && log.contains("example.org/cart/\""), "{log}");
}

#[tokio::test]
async fn an_invalidation_made_while_the_server_is_away_is_sent_when_it_returns() {
    let memcached = memcached_or_skip!();
    let between = fault_proxy(memcached.address()).await;
    let one = hostler_with(&[between.address().to_string()], Duration::from_millis(200));
    let other = hostler(&[memcached.address().to_string()]);
    one.finds(1).await;
    other.finds(1).await;
    other.stores("example.org/a", entry("old", &[]));
    between.set(LinkFault::Mute);
    one.finds(0).await;
    one.tier.forget(b"example.org/a");
    between.set(LinkFault::None);
    other.forgets("example.org/a").await;
}

#[tokio::test]
async fn a_silent_server_is_skipped_after_a_few_requests_and_used_again_once_it_answers() {
    let memcached = memcached_or_skip!();
    let between = fault_proxy(memcached.address()).await;
    let one = hostler_with(&[between.address().to_string()], Duration::from_millis(200));
    one.finds(1).await;
    between.set(LinkFault::Mute);
    let before = one.count("slow");
    for _ in 0..20 {
        assert!(!one.tier.fetch(b"example.org/").await);
    }
    // The keeper sends operations too.
    let waited = one.count("slow") - before;
    assert!((3..=6).contains(&waited), "{waited} of 20 have waited");
    let told = one.told.lock().unwrap().clone();
    assert!(told.last().unwrap().ends_with(": it does not answer in time"), "{told:?}");
    between.set(LinkFault::None);
    one.finds(1).await;
    one.stores("example.org/", entry("again", &[]));
    eventually("it to be stored", async || (one.count("stored") == 1).then_some(())).await;
}

#[tokio::test]
async fn a_server_that_answers_only_a_part_of_a_burst_in_time_stays_in_use() {
    let memcached = memcached_or_skip!();
    let between = fault_proxy(memcached.address()).await;
    let one = Arc::new(hostler_with(&[between.address().to_string()], Duration::from_secs(2)));
    one.finds(1).await;
    // Each connection brings at most ten answers in the time limit.
    between.set(LinkFault::Late(Duration::from_millis(200)));
    let mut burst = JoinSet::new();
    for at in 0..400 {
        let one = one.clone();
        burst.spawn(async move { one.tier.fetch(format!("example.org/{at}").as_bytes()).await });
    }
    burst.join_all().await;
    assert!(one.count("slow") > 100, "the burst is larger than what the server can answer");
    let told = one.told.lock().unwrap().clone();
    assert!(told.iter().all(|notice| notice.ends_with(": here")), "{told:?}");
}

#[tokio::test]
async fn a_server_that_takes_a_second_is_never_asked() {
    let memcached = memcached_or_skip!();
    let between = fault_proxy(memcached.address()).await;
    between.set(LinkFault::Late(Duration::from_secs(1)));
    let one = hostler_with(&[between.address().to_string()], Duration::from_millis(200));
    eventually("its keeper to have tried", async || (one.count("slow") > 0).then_some(())).await;
    assert!(!one.tier.fetch(b"example.org/").await);
    assert_eq!(one.tier.status()[0].state, "away");
    one.tier.put(b"example.org/", hostler_cache::Variants::from(entry("x", &[])));
    assert_eq!(one.count("dropped"), 1);
}

#[tokio::test]
async fn garbled_answers_are_misses() {
    let memcached = memcached_or_skip!();
    let between = fault_proxy(memcached.address()).await;
    let one = hostler(&[between.address().to_string()]);
    one.finds(1).await;
    one.stores("example.org/", entry("right", &[]));
    eventually("it to be stored", async || (one.count("stored") == 1).then_some(())).await;
    between.set(LinkFault::Garbled);
    for _ in 0..5 {
        assert!(!one.tier.fetch(b"example.org/").await);
    }
    one.finds(0).await;
    assert!(one.count("failed") > 0);
    assert_eq!(one.tier.status()[0].why.as_deref(), Some("it does not answer as memcached does"));
}

#[tokio::test]
async fn a_server_that_answers_and_takes_no_purge_log_says_why_it_is_not_used() {
    let Some(memcached) = memcached_with_password().await else { return };
    let one = hostler(&[memcached.address().to_string()]);
    let why = async || one.tier.status()[0].why.clone().filter(|why| **why != *"not found yet");
    assert_eq!(*eventually("a reason", why).await, *"it refuses the purge log");
    assert_eq!(one.tier.status()[0].state, "away");
    assert!(one.count("failed") > 0);
}

#[tokio::test]
async fn an_item_that_another_program_overwrote_is_a_miss() {
    use async_memcached::{AsciiProtocol, Client};
    let memcached = memcached_or_skip!();
    let servers = [memcached.address().to_string()];
    let one = hostler(&servers);
    one.finds(1).await;
    one.stores("example.org/", entry("right", &[]));
    eventually("it to be stored", async || (one.count("stored") == 1).then_some(())).await;
    let mut client = Client::new(format!("tcp://{}", servers[0])).await.unwrap();
    let name = "test:5:3678c956d215f1f094df6580c354b3ce3d90e31d";
    assert!(
        client.get(name).await.unwrap().is_some(),
        "the name of its item: test:5: and the SHA-1 of its key"
    );
    client.set(name, b"nonsense".as_slice(), None, None).await.unwrap();
    one.cache.purge(&Purge::Url("example.org/".into()), Tick(1));
    assert!(!one.tier.fetch(b"example.org/").await);
    assert_eq!(one.count("garbled"), 1);
    assert_eq!(one.tier.status()[0].state, "here", "the server itself is fine");
}

#[tokio::test]
async fn an_item_too_large_for_the_server_is_not_sent() {
    let memcached = memcached_or_skip!();
    let one = hostler(&[memcached.address().to_string()]);
    one.finds(1).await;
    let large = "x".repeat(1_000_000);
    one.stores("example.org/large", entry(&large, &[]));
    eventually("it to be dropped", async || (one.count("dropped") == 1).then_some(())).await;
    // memcached needs a part of its mebibyte itself.
    let nearly = "x".repeat(999_000);
    one.stores("example.org/nearly", entry(&nearly, &[]));
    eventually("it to be stored", async || (one.count("stored") == 1).then_some(())).await;
}

#[tokio::test]
async fn a_response_that_has_become_too_large_for_an_item_removes_the_one_before() {
    let memcached = memcached_or_skip!();
    let servers = [memcached.address().to_string()];
    let (one, other) = two_hostlers(&servers).await;
    assert!(one.stores("example.org/", entry("small", &[])));
    eventually("it to be stored", async || (one.count("stored") == 1).then_some(())).await;
    assert!(one.stores("example.org/", entry(&"x".repeat(1_000_000), &[])));
    eventually("it to be dropped", async || (one.count("dropped") == 1).then_some(())).await;
    assert!(!other.tier.fetch(b"example.org/").await, "no Hostler gets the response from before");
    assert_eq!(other.count("misses"), 1);
}

#[tokio::test]
async fn an_unreachable_server_causes_no_wait() {
    let one = hostler(&[no_upstream()]);
    assert!(!one.tier.fetch(b"example.org/").await);
    let purged = one.tier.purge(vec![Purge::All]).await;
    assert_eq!((purged.told, purged.servers), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_asked_after_one_second_then_two_and_so_on() {
    let folder = tempfile::tempdir().unwrap();
    let one = hostler(&[format!("unix:{}", folder.path().join("none").display())]);
    let began = Instant::now();
    for (asked, after) in (1..).zip([0, 1, 3, 7, 15, 25, 35]) {
        sleep_until(began + Duration::from_secs(after) + Duration::from_millis(500)).await;
        assert_eq!(one.count("failed"), asked, "after {after} s");
    }
}
