//! Several Hostlers that share memcached, and purges: with real servers, and with one that is slow, silent or sends garbage.

use std::time::Duration;

use hostler_testkit::{LinkFault, Seen, Site, Upstream, eventually, fault_proxy, memcached, text, upstream};

use crate::cache_hits::{answer, asked, assert_cache, numbered};
use crate::site;

/// A time limit that a loaded machine does not exceed.
const PATIENT: &str = "cache.timeout = '5s'\n";

async fn sharing(upstream: &Upstream, memcached: &str, more: &str) -> Site {
    with_cache("'standard'", upstream, memcached, more).await
}

/// `cache`: the value of this key of the route.
async fn with_cache(cache: &str, upstream: &Upstream, memcached: &str, more: &str) -> Site {
    let routes = format!("[[routes]]\nmatch = '*'\npool = 'app'\ncache = {cache}\n");
    let config = format!("cache.memcached = '{memcached}'\n{more}{routes}");
    let site = site(&config).with("app", upstream).start().await;
    site.says(&format!("memcached {memcached}: it answers")).await;
    site
}

async fn figure(site: &Site, name: &str) -> u64 {
    site.status().await["cache"]["memcached"][0][name].as_u64().unwrap()
}

/// Waits until memcached has stored this many items.
async fn stores(site: &Site, count: u64) {
    let look = async || (figure(site, "stored").await >= count).then_some(());
    eventually(format!("{count} to be stored"), look).await;
}

fn tagged(tag: &str) -> String {
    answer(&format!("Cache-Control: max-age=600\r\nCache-Tag: {tag}\r\nETag: \"1\"\r\n"), "rendered")
}

#[tokio::test]
async fn an_answer_rendered_by_one_hostler_is_a_hit_at_another() {
    let Some(memcached) = memcached().await else { return };
    let (app, idle) = (upstream().answers(tagged("a")).start().await, upstream().start().await);
    let address = memcached.address().to_string();
    let (one, other) = (sharing(&app, &address, PATIENT).await, sharing(&idle, &address, PATIENT).await);
    one.get("/a?b=1").await.assert_ok("rendered");
    stores(&one, 1).await;
    let hit = other.get("/a?b=1").await;
    hit.assert_ok("rendered").assert_field("etag", "\"1\"").assert_field("cache-control", "max-age=600");
    assert_cache(&hit, "hit; ttl=");
    other.get("/a?b=1").await.assert_ok("rendered");
    assert_eq!((figure(&other, "hits").await, figure(&other, "misses").await), (1, 0));
    assert_eq!(idle.targets(), Vec::<String>::new());
    other.command(&["status"]).await.assert_exit(0);
    let shown = other.command(&["status"]).await.stdout;
    assert!(shown.contains(&format!("memcached {address}: in use, 1 hits")), "{shown}");
}

#[tokio::test]
async fn a_request_with_only_if_cached_gets_what_another_hostler_has_stored() {
    let Some(memcached) = memcached().await else { return };
    let (app, idle) = (upstream().answers(tagged("a")).start().await, upstream().start().await);
    let address = memcached.address().to_string();
    let cache = "{ request_directives = true }";
    let one = with_cache(cache, &app, &address, PATIENT).await;
    let other = with_cache(cache, &idle, &address, PATIENT).await;
    one.get("/a").await.assert_ok("rendered");
    stores(&one, 1).await;
    let alone = "Cache-Control: only-if-cached\r\n";
    let hit = asked(&other, "GET", "/a", alone).await;
    hit.assert_ok("rendered");
    assert_cache(&hit, "hit; ttl=");
    asked(&other, "GET", "/b", alone).await.assert_refused(504, "only_if_cached");
    assert_eq!(idle.targets(), Vec::<String>::new());
}

#[tokio::test]
async fn a_purge_at_one_hostler_reaches_memcached_and_the_memory_of_the_other() {
    let Some(memcached) = memcached().await else { return };
    let app = upstream().answers(tagged("shop")).start().await;
    let address = memcached.address().to_string();
    let (one, other) = (sharing(&app, &address, PATIENT).await, sharing(&app, &address, PATIENT).await);
    one.get("/a").await.assert_ok("rendered");
    stores(&one, 1).await;
    other.get("/a").await.assert_ok("rendered");
    assert_eq!(app.targets().len(), 1);

    let purged = one.command(&["purge", "--tag", "shop"]).await;
    purged.assert_exit(0);
    assert!(purged.stdout.contains("1 stored response purged"), "{purged:?}");
    assert!(purged.stdout.contains("1 of 1 memcached servers have the purge"), "{purged:?}");
    let gone = async || (other.status().await["cache"]["keys"] == 0).then_some(());
    eventually("the other's memory to be empty", gone).await;
    assert_cache(&other.get("/a").await, "fwd=uri-miss");
    assert_eq!(app.targets().len(), 2);
}

#[tokio::test]
async fn a_purge_names_a_url_a_prefix_a_tag_or_everything() {
    let app = upstream().answers(tagged("t1, t2")).start().await;
    let routes = "[[routes]]\nmatch = '*'\npool = 'app'\ncache = { query_without = ['utm_*'] }\n";
    let site = site(routes).with("app", &app).start().await;
    let fill = async || {
        for path in ["/", "/shop/1?b=2&a=1", "/shop/2", "/news"] {
            site.get(path).await.assert_ok("rendered");
        }
    };
    let host = "site.test";
    for (arguments, count) in [
        (vec!["purge".to_owned(), format!("https://{host}/shop/1?a=1&utm_source=x&b=2")], 1),
        (vec!["purge".into(), "--prefix".into(), format!("{host}/shop/")], 2),
        (vec!["purge".into(), "--tag".into(), "t2".into()], 4),
        (vec!["purge".into(), "--tag".into(), "other".into()], 0),
        (vec!["purge".into(), "--all".into()], 4),
    ] {
        fill().await;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let purged = site.command(&arguments).await;
        purged.assert_exit(0);
        assert!(purged.stdout.starts_with(&format!("{count} stored response")), "{arguments:?}: {purged:?}");
    }
    site.command(&["purge"]).await.assert_exit(2).assert_complains("required");
    site.command(&["purge", "not a url"]).await.assert_exit(2).assert_complains("is not a URL such as");
}

#[tokio::test]
async fn a_purge_needs_the_header_that_admin_commands_need() {
    let app = upstream().start().await;
    let site = crate::in_front_of(&app, "").await;
    let mut admin = hostler_testkit::client(site.admin()).await;
    admin.send("POST /purge?all=true HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n").await;
    admin.answer_to("POST").await.assert_status(403);
    for (query, status) in [("", 400), ("?tags=a", 400), ("?url=", 400), ("?all=true", 200)] {
        let fields = "Host: 127.0.0.1\r\nHostler-Command: 1\r\nContent-Length: 0\r\n";
        admin.send(format!("POST /purge{query} HTTP/1.1\r\n{fields}\r\n")).await;
        admin.answer_to("POST").await.assert_status(status);
    }
}

#[tokio::test]
async fn no_request_fails_when_memcached_fails() {
    let Some(memcached) = memcached().await else { return };
    let between = fault_proxy(memcached.address()).await;
    let address = between.address().to_string();
    let app = upstream().answers(tagged("a")).start().await;
    let site = sharing(&app, &address, "cache.timeout = '500ms'\n").await;
    let meddlings =
        [LinkFault::Garbled, LinkFault::Mute, LinkFault::Late(Duration::from_secs(2)), LinkFault::None];
    for (round, meddling) in meddlings.into_iter().enumerate() {
        between.set(meddling);
        for number in 0..20 {
            let path = format!("/{round}/{number}");
            site.get(&path).await.assert_ok("rendered");
            let again = site.get(&path).await;
            assert_cache(&again, "hit; ttl=");
        }
        if meddling != LinkFault::None {
            site.says(&format!("memcached {address}: ")).await;
        }
    }
    assert_eq!(app.targets().len(), 80);
    let look = async || (site.status().await["cache"]["memcached"][0]["state"] == "here").then_some(());
    eventually("memcached to be back", look).await;
}

#[tokio::test]
async fn an_entry_stale_everywhere_is_fetched_by_one_hostler() {
    let Some(memcached) = memcached().await else { return };
    let lines = "Cache-Control: max-age=600, stale-while-revalidate=600\r\nETag: \"1\"\r\n";
    // The first one is stale on arrival.
    let fields = move |_: &Seen, number| format!("{lines}{}", if number == 1 { "Age: 601\r\n" } else { "" });
    let app = upstream().script(numbered(fields)).start().await;
    // This server accepts requests and never answers.
    let mute = upstream().holds_requests().start().await;
    let address = memcached.address().to_string();
    let (one, other) = (sharing(&app, &address, PATIENT).await, sharing(&mute, &address, PATIENT).await);
    one.get("/a").await.assert_ok("1");
    stores(&one, 1).await;
    other.get("/a").await.assert_ok("1");
    one.get("/a").await.assert_ok("1");
    stores(&one, 2).await;
    let is_new = async || (other.get("/a").await.text() == "2").then_some(());
    eventually("the other to have the new one", is_new).await;
    assert_eq!(mute.targets(), Vec::<String>::new());
}

#[tokio::test]
async fn a_page_that_each_request_validates_is_not_written_to_memcached_each_time() {
    let Some(memcached) = memcached().await else { return };
    let app = upstream().script(|seen: &Seen| match (&*seen.target(), seen.field("if-none-match")) {
        ("/last", _) => text(tagged("last")),
        (_, None) => text(answer("Cache-Control: max-age=0\r\nETag: \"1\"\r\n", "hello")),
        (_, Some(_)) => text("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n"),
    });
    let (app, idle) = (app.start().await, upstream().start().await);
    let address = memcached.address().to_string();
    let cache = "{ request_directives = true }";
    let one = with_cache(cache, &app, &address, PATIENT).await;
    let other = with_cache(cache, &idle, &address, PATIENT).await;
    for _ in 0..100 {
        one.get("/page").await.assert_ok("hello");
    }
    // Writes are done in order, so those of the page are done when this one is.
    one.get("/last").await.assert_ok("rendered");
    let is_there = async || {
        (asked(&other, "GET", "/last", "Cache-Control: only-if-cached\r\n").await.status == 200).then_some(())
    };
    eventually("the last page in memcached", is_there).await;
    let (stored, dropped) = (figure(&one, "stored").await, figure(&one, "dropped").await);
    assert!(stored + dropped < 50, "{stored} stored, {dropped} dropped");
    assert_eq!(app.targets().len(), 101, "each request has validated it");
}

#[tokio::test]
async fn an_unsafe_method_at_one_hostler_invalidates_the_entry_at_the_other() {
    let Some(memcached) = memcached().await else { return };
    let app =
        upstream().script(numbered(|_: &Seen, _| "Cache-Control: max-age=600\r\n".into())).start().await;
    let address = memcached.address().to_string();
    let (one, other) = (sharing(&app, &address, PATIENT).await, sharing(&app, &address, PATIENT).await);
    one.get("/a").await.assert_ok("1");
    stores(&one, 1).await;
    other.get("/a").await.assert_ok("1");
    asked(&one, "POST", "/a", "Content-Length: 0\r\n").await.assert_status(200);
    one.get("/a").await.assert_ok("3");
    let is_new = async || (other.get("/a").await.text() != "1").then_some(());
    eventually("the other to have heard of it", is_new).await;
    // An answer that is fetched in the same millisecond in which the change is noticed is not stored, so it is fetched again.
    let is_kept = async || {
        let (shown, again) = (other.get("/a").await.text(), other.get("/a").await.text());
        assert!(shown != "1" && again != "1", "{shown}, {again}");
        (shown == again).then_some(())
    };
    eventually("the new one to be kept", is_kept).await;
}

/// A Hostler has purged `/a` while memcached did not answer, and does something else before it answers again. `then` gets its configuration.
async fn purges_while_memcached_is_away(then: impl AsyncFnOnce(&Site, &str)) {
    let Some(memcached) = memcached().await else { return };
    let between = fault_proxy(memcached.address()).await;
    let app = upstream().script(numbered(|_, _| "Cache-Control: max-age=600\r\n".into())).start().await;
    let (servers, member) = (between.address(), app.address());
    let routes = "[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";
    let config = format!("cache.memcached = '{servers}'\npools.app.members = ['{member}']\n{routes}");
    let site = site(&config).start().await;
    site.says(&format!("memcached {servers}: it answers")).await;
    site.get("/a").await.assert_ok("1");
    stores(&site, 1).await;
    between.set(LinkFault::Mute);
    let purged = site.command(&["purge", "--all"]).await;
    purged.assert_exit(0);
    let told = "0 of 1 memcached servers have the purge; the others get the purge when they answer again";
    assert!(purged.stdout.contains(told), "{purged:?}");
    then(&site, &config).await;
    between.set(LinkFault::None);
    let here = async || (site.status().await["cache"]["memcached"][0]["state"] == "here").then_some(());
    eventually("memcached is used again", here).await;
    site.get("/a").await.assert_ok("2");
}

#[tokio::test]
async fn an_upgrade_keeps_a_purge_that_memcached_has_not_got() {
    purges_while_memcached_is_away(async |site: &Site, _: &str| {
        site.command(&["upgrade"]).await.assert_exit(0);
    })
    .await;
}

#[tokio::test]
async fn a_stop_delivers_a_purge_that_memcached_has_not_got_or_logs_that_it_is_lost() {
    for comes_back in [true, false] {
        let Some(memcached) = memcached().await else { return };
        let between = fault_proxy(memcached.address()).await;
        let app = upstream().answers(tagged("shop")).start().await;
        let mut site = sharing(&app, &between.address().to_string(), "").await;
        let other = sharing(&app, &memcached.address().to_string(), PATIENT).await;
        other.get("/a").await.assert_ok("rendered");
        stores(&other, 1).await;
        between.set(LinkFault::Mute);
        site.command(&["purge", "--tag", "shop"]).await.assert_exit(0);
        if comes_back {
            between.set(LinkFault::None);
        }
        site.terminate();
        assert_eq!(site.exit().await, 0);
        let lost = site.lines().into_iter().find(|line| line.contains("purges are lost, because"));
        if comes_back {
            assert_eq!(lost, None);
            // The page of purges is read within a moment.
            eventually("the purge at the other one", async || {
                other.get("/a").await.assert_ok("rendered");
                (app.targets().len() > 1).then_some(())
            })
            .await;
        } else {
            let lost = lost.expect("a line about the purge");
            assert!(lost.contains("0 of one key each and 1 of a tag, a prefix or everything"), "{lost}");
        }
    }
}

#[tokio::test]
async fn a_reload_of_the_memcached_settings_keeps_a_purge_that_memcached_has_not_got() {
    purges_while_memcached_is_away(async |site: &Site, config: &str| {
        site.rewrite(&format!("cache.namespace = 'hostler'\ncache.timeout = '1s'\n{config}"));
        site.command(&["reload"]).await.assert_exit(0);
    })
    .await;
}

#[tokio::test]
async fn a_reload_switches_to_another_memcached() {
    let Some(memcached) = memcached().await else { return };
    let Some(second) = hostler_testkit::memcached().await else { return };
    let app = upstream().answers(tagged("a")).start().await;
    let routes = "[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";
    let member = format!("pools.app.members = ['{}']\n", app.address());
    let config = |more: &str| format!("{more}{PATIENT}{member}{routes}");
    let first = format!("cache.memcached = '{}'\n", memcached.address());
    let then = format!("cache.memcached = '{}'\ncache.memory = '2 MiB'\n", second.address());
    let site = site(&config(&first)).start().await;
    site.says(&format!("memcached {}: it answers", memcached.address())).await;
    site.get("/a").await.assert_ok("rendered");
    site.rewrite(&config(&then));
    let reloaded = site.command(&["reload"]).await;
    reloaded.assert_exit(0);
    assert!(reloaded.stdout.contains("cache.memory: not applied yet; run `hostler upgrade`"), "{reloaded:?}");
    assert!(reloaded.stdout.contains("cache: memcached changed"), "{reloaded:?}");
    site.says(&format!("memcached {}: it answers", second.address())).await;
    assert_cache(&site.get("/a").await, "hit; ttl=");
    assert_eq!(site.status().await["cache"]["memcached"][0]["server"], second.address().to_string());
}
