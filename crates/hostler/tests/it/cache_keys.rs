//! Which requests a stored answer is valid for: those of which the member would have seen the same, with the fields that Hostler adds.

use hostler_testkit::{ReceivedAnswer, Seen, Site, upstream};

use crate::cache_hits::{answer, asked, assert_cache, numbered, with_cache};
use crate::site;

const FRESH: &str = "Cache-Control: max-age=60\r\n";

async fn purge(site: &Site, url: &str) {
    site.command(&["purge", url]).await.assert_exit(0);
}

async fn asked_at(site: &Site, host: &str) -> ReceivedAnswer {
    site.send(format!("GET /page HTTP/1.1\r\nHost: {host}\r\n\r\n")).await
}

/// The member sends the value of the field back in its answer.
fn echoing(name: &'static str) -> impl Fn(&Seen) -> Vec<hostler_testkit::Step> {
    move |seen| {
        let seen: Vec<_> = seen.head.all(name);
        hostler_testkit::text(answer(&format!("{FRESH}Vary: {name}\r\n"), &seen.join(", ")))
    }
}

#[tokio::test]
async fn a_host_with_another_port_is_another_key() {
    let host = |seen: &Seen, _: usize| format!("{FRESH}X-Host: {}\r\n", seen.field("host").unwrap());
    let app = upstream().script(numbered(host)).start().await;
    let site = with_cache(&app).await;
    for (host, number) in [("a.test:443", "1"), ("a.test", "2"), ("a.test:8080", "3"), ("a.test.", "4")] {
        for _ in 0..2 {
            asked_at(&site, host).await.assert_ok(number).assert_field("x-host", host);
        }
    }
    asked_at(&site, "a.test:80").await.assert_ok("2");
}

#[tokio::test]
async fn an_unusual_spelling_of_a_host_is_served_from_the_cache_but_not_stored() {
    let host = |seen: &Seen, _: usize| format!("{FRESH}X-Host: {}\r\n", seen.field("host").unwrap());
    let app = upstream().script(numbered(host)).start().await;
    let site = with_cache(&app).await;
    asked_at(&site, "A.test").await.assert_ok("1").assert_field("x-host", "A.test");
    asked_at(&site, "a.test:80").await.assert_ok("2").assert_field("x-host", "a.test:80");
    asked_at(&site, "a.test").await.assert_ok("3").assert_field("x-host", "a.test");
    for host in ["A.test", "a.test:80", "a.test"] {
        asked_at(&site, host).await.assert_ok("3").assert_field("x-host", "a.test");
    }
}

#[tokio::test]
async fn a_request_without_host_has_the_local_address_as_its_key() {
    let app = upstream().script(numbered(|_, _| FRESH.into())).start().await;
    let site = with_cache(&app).await;
    for number in ["1", "2"] {
        let answer = site.send("GET /page HTTP/1.0\r\n\r\n").await;
        answer.assert_ok(number);
        assert_cache(&answer, "fwd=bypass");
    }
}

#[tokio::test]
async fn a_purge_applies_to_the_port_of_its_url() {
    let app = upstream().script(numbered(|_, _| FRESH.into())).start().await;
    let site = with_cache(&app).await;
    asked_at(&site, "a.test").await.assert_ok("1");
    asked_at(&site, "a.test:443").await.assert_ok("2");
    purge(&site, "https://a.test:443/page").await;
    asked_at(&site, "a.test:443").await.assert_ok("2");
    asked_at(&site, "a.test").await.assert_ok("3");
    purge(&site, "http://a.test:443/page").await;
    asked_at(&site, "a.test:443").await.assert_ok("4");
    asked_at(&site, "a.test").await.assert_ok("3");
    purge(&site, "a.test:443/page").await;
    asked_at(&site, "a.test:443").await.assert_ok("5");
    asked_at(&site, "a.test").await.assert_ok("6");
}

#[tokio::test]
async fn a_purge_takes_more_urls_than_fit_into_one_request() {
    let app = upstream().script(numbered(|_, _| FRESH.into())).start().await;
    let site = with_cache(&app).await;
    asked_at(&site, "a.test").await.assert_ok("1");
    asked_at(&site, "b.test").await.assert_ok("2");
    let others: Vec<_> = (0..2000).map(|at| format!("https://a.test/products/{at}/its-long-name")).collect();
    let mut arguments = vec!["purge", "https://a.test/page"];
    arguments.extend(others.iter().map(String::as_str));
    arguments.push("https://b.test/page");
    site.command(&arguments).await.assert_exit(0);
    asked_at(&site, "a.test").await.assert_ok("3");
    asked_at(&site, "b.test").await.assert_ok("4");
}

/// A browser that has the response to a page of another origin asks whether it is still valid, and looks for its own origin in the 304.
#[tokio::test]
async fn a_304_names_the_origin_of_the_page_that_asks() {
    let of_origin = |seen: &Seen| {
        let origin = seen.field("origin").unwrap();
        let cors = format!("Vary: Origin\r\nAccess-Control-Allow-Origin: {origin}\r\n");
        hostler_testkit::text(answer(&format!("{FRESH}ETag: \"v1\"\r\n{cors}"), "data"))
    };
    let app = upstream().script(of_origin).start().await;
    let site = with_cache(&app).await;
    for _ in 0..2 {
        for origin in ["http://a.test", "http://b.test"] {
            let fields = format!("Origin: {origin}\r\nIf-None-Match: \"v1\"\r\n");
            let known = asked(&site, "GET", "/data", &fields).await;
            known.assert_status(304).assert_field("access-control-allow-origin", origin);
        }
    }
    assert_eq!(app.targets().len(), 2, "then from memory");
}

#[tokio::test]
async fn no_visitor_gets_an_answer_made_for_another_client_address() {
    let app = upstream().script(echoing("X-Forwarded-For")).start().await;
    let site = with_cache(&app).await;
    for _ in 0..2 {
        for ip in ["127.0.0.1", "127.0.0.2", "127.0.0.3"] {
            site.connect_from(ip).await.get("/page").await.assert_ok(ip);
        }
    }
    assert_eq!(app.targets().len(), 3, "each is answered from memory the second time");
    // A client's own claims are not trusted, and make no other answer.
    asked(&site, "GET", "/page", "X-Forwarded-For: 6.6.6.6\r\n").await.assert_ok("127.0.0.1");
    assert_eq!(app.targets().len(), 3);
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_whole_forwarding_chain_distinguishes_visitors() {
    for (name, values) in [
        ("X-Forwarded-For", ["1.1.1.1", "2.2.2.2", "1.1.1.1, 2.2.2.2"]),
        ("Forwarded", ["for=1.1.1.1", "for=2.2.2.2", "for=1.1.1.1, for=2.2.2.2"]),
        ("X-Real-IP", ["1.1.1.1", "2.2.2.2", "3.3.3.3"]),
        ("X-Forwarded-Host", ["a.test", "b.test", "c.test"]),
        ("X-Forwarded-Port", ["1", "2", "3"]),
        ("Via", ["1.1 a", "1.1 b", "1.1 a, 1.1 b"]),
    ] {
        let app = upstream().script(echoing(name)).start().await;
        let route = "[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";
        let config = format!("server.trusted_proxies = ['127.0.0.1']\n{route}");
        let site = site(&config).with("app", &app).start().await;
        for _ in 0..2 {
            for value in values {
                let answer = asked(&site, "GET", "/page", &format!("{name}: {value}\r\n")).await;
                let body = String::from_utf8(answer.body.clone()).unwrap();
                assert!(body == value || body.starts_with(&format!("{value}, ")), "{name}: {value}: {body}");
            }
        }
        assert_eq!(app.targets().len(), 3, "{name}");
    }
}

/// Many proxies pass on what their clients write into this field, and apps make the links of their pages of it.
#[tokio::test]
async fn no_visitor_gets_a_page_made_for_another_forwarded_host() {
    let host =
        |seen: &Seen, _: usize| format!("{FRESH}X-Host: {}\r\n", seen.field("x-forwarded-host").unwrap());
    let app = upstream().script(numbered(host)).start().await;
    let route = "[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";
    let config = format!("server.trusted_proxies = ['127.0.0.1']\n{route}");
    let site = site(&config).with("app", &app).start().await;
    for _ in 0..2 {
        for (fields, host, number) in [
            ("X-Forwarded-Host: evil.test\r\n", "evil.test", "1"),
            ("", "site.test", "2"),
            ("X-Forwarded-Host: other.test\r\n", "other.test", "3"),
            ("X-Forwarded-Host: site.test\r\n", "site.test", "2"),
        ] {
            let page = asked(&site, "GET", "/page", fields).await;
            page.assert_ok(number).assert_field("x-host", host);
        }
    }
    assert_eq!(app.targets().len(), 3);
}

/// The same for the other fields that tell an app of a URL. What two visitors of one URL send in `Forwarded` differs in their addresses.
#[tokio::test]
async fn no_visitor_gets_a_page_made_for_another_url_that_a_proxy_tells() {
    for (name, [evil, again, other, usual]) in [
        ("X-Forwarded-Port", ["1", "1", "2", "80"]),
        ("X-Forwarded-Prefix", ["/evil", "/evil", "/other", ""]),
        ("X-Forwarded-Proto", ["evil", "evil", "http, https", "http"]),
        ("X-Original-URL", ["/evil", "/evil", "/other", "/page"]),
        (
            "Forwarded",
            ["for=1.1.1.1;host=evil", "For=2.2.2.2; host=evil", "host=evil, for=2.2.2.2", "for=3.3.3.3"],
        ),
    ] {
        let told = move |seen: &Seen, _: usize| {
            format!("{FRESH}X-Told: {}\r\n", seen.field(name).unwrap_or_default())
        };
        let app = upstream().script(numbered(told)).start().await;
        let route = "[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";
        let config = format!("server.trusted_proxies = ['127.0.0.1']\n{route}");
        let site = site(&config).with("app", &app).start().await;
        for _ in 0..2 {
            let line = |value: &str| format!("{name}: {value}\r\n");
            for (fields, number) in [
                (line(evil), "1"),
                (String::new(), "2"),
                (line(other), "3"),
                (line(usual), "2"),
                (line(again), "1"),
            ] {
                asked(&site, "GET", "/page", &fields).await.assert_ok(number);
            }
        }
        assert_eq!(app.targets().len(), 3, "{name}");
    }
}

#[tokio::test]
async fn an_answer_that_varies_per_request_is_not_cached_with_one_warning() {
    for name in ["X-Request-Id", "traceparent"] {
        let vary = move |_: &Seen, _: usize| format!("{FRESH}Vary: {name}\r\n");
        let app = upstream().script(numbered(vary)).start().await;
        let site = with_cache(&app).await;
        for number in ["1", "2", "3"] {
            asked(&site, "GET", "/page", "X-Request-Id: same\r\n").await.assert_ok(number);
        }
        let said = format!("its responses have {name} in Vary, which differs for each request");
        site.says(&said).await;
        assert_eq!(site.lines().iter().filter(|line| line.contains(&said)).count(), 1, "{:?}", site.lines());
    }
}

#[tokio::test]
async fn a_vary_that_comes_with_a_304_counts() {
    let app = upstream()
        .script(|seen: &Seen| {
            let ip = seen.field("x-forwarded-for").unwrap_or_default();
            let fields = "Cache-Control: max-age=0, stale-while-revalidate=0\r\nETag: \"x\"\r\n";
            hostler_testkit::text(match seen.field("if-none-match") {
                Some(_) => "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nETag: \"x\"\r\n\
                            Vary: X-Forwarded-For\r\n\r\n"
                    .to_string(),
                None => answer(fields, &ip),
            })
        })
        .start()
        .await;
    let site = with_cache(&app).await;
    site.connect_from("127.0.0.1").await.get("/page").await.assert_ok("127.0.0.1");
    site.connect_from("127.0.0.1").await.get("/page").await.assert_ok("127.0.0.1");
    site.connect_from("127.0.0.2").await.get("/page").await.assert_ok("127.0.0.2");
}

/// As `compression` and `cors` of Express, which name the coding only in the `Vary` of an answer with a body.
#[tokio::test]
async fn a_304_that_varies_by_less_opens_no_compressed_page_to_other_clients() {
    let app = upstream().script(|seen: &Seen| {
        let coding = seen.field("accept-encoding").unwrap_or_default();
        hostler_testkit::text(match seen.field("if-none-match") {
            Some(_) => "HTTP/1.1 304 Not Modified\r\nETag: W/\"x\"\r\nVary: Origin\r\n\
                        Cache-Control: max-age=60\r\n\r\n"
                .to_string(),
            None => answer(
                "Cache-Control: max-age=0\r\nETag: W/\"x\"\r\nVary: Origin, Accept-Encoding\r\n",
                &format!("as {coding}"),
            ),
        })
    });
    let app = app.start().await;
    let site = with_cache(&app).await;
    let gzip = "Accept-Encoding: gzip\r\n";
    asked(&site, "GET", "/page", gzip).await.assert_ok("as gzip");
    let fresh = asked(&site, "GET", "/page", gzip).await;
    fresh.assert_ok("as gzip").assert_field("vary", "Origin, Accept-Encoding");
    asked(&site, "GET", "/page", "").await.assert_ok("as ");
    let hit = asked(&site, "GET", "/page", gzip).await;
    assert_cache(hit.assert_ok("as gzip"), "hit");
}

#[tokio::test]
async fn an_answer_without_vary_does_not_hide_a_variant_that_fits() {
    let app = upstream().script(|seen: &Seen| {
        hostler_testkit::text(match seen.field("accept-language") {
            Some(language) => answer(&format!("{FRESH}Vary: Accept-Language\r\n"), &language),
            None => answer(FRESH, "en"),
        })
    });
    let app = app.start().await;
    let site = with_cache(&app).await;
    let german = "Accept-Language: de\r\n";
    asked(&site, "GET", "/page", german).await.assert_ok("de");
    asked(&site, "GET", "/page", "").await.assert_ok("en");
    for (fields, expected) in [(german, "de"), ("", "en")] {
        let hit = asked(&site, "GET", "/page", fields).await;
        assert_cache(hit.assert_ok(expected), "hit");
    }
    assert_eq!(app.targets().len(), 2);
}

#[tokio::test]
async fn an_answer_without_vary_replaces_the_stale_one_with_vary() {
    let fields = |_: &Seen, number: usize| match number {
        1 => "Cache-Control: max-age=0\r\nETag: \"v1\"\r\nVary: Accept-Language\r\n".to_owned(),
        _ => FRESH.to_owned(),
    };
    let app = upstream().script(numbered(fields)).start().await;
    let site = with_cache(&app).await;
    for (expected, cache) in [("1", "fwd=uri-miss"), ("2", "fwd=stale"), ("2", "hit")] {
        let answer = asked(&site, "GET", "/page", "Accept-Language: de\r\n").await;
        assert_cache(answer.assert_ok(expected), cache);
    }
}
