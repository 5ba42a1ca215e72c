//! Changes by routes: prefixes, header fields, and redirects.

use hostler_testkit::{Seen, upstream};

use crate::http2::{get, talk};
use crate::site;

#[tokio::test]
async fn a_path_prefix_is_replaced_by_another() {
    let app = upstream().start().await;
    let config = "[[routes]]\nmatch = '/api/*'\npool = 'app'\nrewrite = { strip_prefix = '/api' }\n\
        [[routes]]\nmatch = '/old/*'\npool = 'app'\nrewrite = { strip_prefix = '/old', add_prefix = '/new/v2' }";
    let site = site(config).with("app", &app).start().await;
    for (path, expected) in [
        ("/api/users%2F1?a=/api/", "/users%2F1?a=/api/"),
        ("/api", "/"),
        ("/%61pi/x", "/x"),
        ("/api/other/../x", "/x"),
        ("/old/a/", "/new/v2/a/"),
        ("/old?q", "/new/v2/?q"),
    ] {
        site.get(path).await.assert_ok("ok");
        assert_eq!(
            app.requests().pop().unwrap().head.start_line(),
            format!("GET {expected} HTTP/1.1"),
            "{path}"
        );
    }
    let logged = site.access("/old?q").await;
    assert_eq!(
        (&logged["route"], &logged["status"]),
        (&"/old/*".into(), &200.into()),
        "the log has what the client sent"
    );
}

#[tokio::test]
async fn no_path_leaves_the_prefix_that_a_route_adds_also_not_as_an_app_reads_it() {
    let app = upstream().start().await;
    let config = "[[routes]]\nmatch = '*'\npool = 'app'\nrewrite = { add_prefix = '/tenants/a' }";
    let site = site(config).with("app", &app).start().await;
    for path in ["/..%2fb/x", "/x%2F..%2f..%2fb", "/..;/b", "/..%5Cb"] {
        site.get(path).await.assert_refused(400, "bad_target");
    }
    let answer = site.send("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").await;
    answer.assert_refused(400, "bad_target");
    assert!(answer.text().contains("it has no path, and this route rewrites the path"), "{}", answer.text());
    for (path, expected) in [("/x%2Fy;v=1/.z", "/tenants/a/x%2Fy;v=1/.z"), ("/../b", "/tenants/a/b")] {
        site.get(path).await.assert_ok("ok");
        let seen = app.requests().pop().unwrap();
        assert_eq!(seen.head.start_line(), format!("GET {expected} HTTP/1.1"));
    }
}

#[tokio::test]
async fn a_rewritten_request_that_fails_still_has_its_route() {
    let app = upstream().answers("garbage\r\n\r\n").start().await;
    let config = "[[routes]]\nmatch = '/api/*'\npool = 'app'\nrewrite = { strip_prefix = '/api' }\n[[routes]]\nmatch = '*'\nrespond = 'other'";
    let site = site(config).with("app", &app).start().await;
    site.get("/api/x").await.assert_refused(502, "bad_answer");
    assert_eq!(site.access("/api/x").await["route"], "/api/*");
}

#[tokio::test]
async fn fields_are_changed_for_the_member_and_for_the_client() {
    let app = upstream()
        .answers("HTTP/1.1 200 OK\r\nServer: app\r\nX-Frame-Options: ALLOW\r\nX-Own: 1\r\nContent-Length: 2\r\n\r\nok")
        .start()
        .await;
    let config = "[[routes]]\nmatch = '*'\npool = 'app'\n\
        request_headers = { set = { Host = 'internal', X-Secret = 'ours' }, remove = ['Cookie'], default = { Accept-Language = 'en' } }\n\
        response_headers = { remove = ['Server'], set = { X-Frame-Options = 'DENY' }, add = { Link = '</a>' }, default = { X-Own = '2', X-New = '3' } }";
    let site = site(config).with("app", &app).start().await;
    let answer = site
        .send("GET / HTTP/1.1\r\nHost: public\r\nCookie: a\r\nx-secret: theirs\r\ncookie: b\r\n\r\n")
        .await;
    answer
        .assert_ok("ok")
        .assert_no_field("server")
        .assert_field("x-frame-options", "DENY")
        .assert_field("link", "</a>")
        .assert_field("x-own", "1")
        .assert_field("x-new", "3");
    let seen: Seen = app.only_request();
    for (name, value) in [
        ("host", Some("internal")),
        ("x-forwarded-host", Some("public")),
        ("x-secret", Some("ours")),
        ("cookie", None),
        ("accept-language", Some("en")),
    ] {
        assert_eq!(seen.field(name).as_deref(), value, "{name}");
    }
    site.send("GET / HTTP/1.0\r\n\r\n").await.assert_ok("ok");
    assert_eq!(
        app.requests().pop().unwrap().field("host").as_deref(),
        Some("internal"),
        "also where there was none"
    );
}

#[tokio::test]
async fn a_client_cannot_keep_a_default_away_with_a_line_that_is_removed() {
    let app = upstream().start().await;
    let route = "[[routes]]\nmatch = '*'\npool = 'app'\nrequest_headers = { default = { X-Forwarded-Prefix = '/shop' } }";
    for (trusted, expected) in [("10.0.0.1", "/shop"), ("127.0.0.1", "/theirs")] {
        let config = format!("server.trusted_proxies = ['{trusted}']\n{route}");
        let site = site(&config).with("app", &app).start().await;
        site.send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-Prefix: /theirs\r\n\r\n").await.assert_ok("ok");
        let seen = app.requests().pop().unwrap();
        assert_eq!(seen.field("x-forwarded-prefix").as_deref(), Some(expected), "trusted: {trusted}");
    }
}

#[tokio::test]
async fn refusals_and_fixed_answers_keep_their_own_fields() {
    let app = upstream().answers("garbage\r\n\r\n").start().await;
    let headers = "response_headers = { set = { Cache-Control = 'max-age=31536000', CDN-Cache-Control = 'max-age=60', X-Frame-Options = 'DENY' }, remove = ['Content-Type'] }";
    let config = format!(
        "[[routes]]\nmatch = '*'\npool = 'app'\n{headers}\n[[routes]]\nmatch = '/fixed'\nrespond = 'x'\n{headers}"
    );
    let site = site(&config).with("app", &app).start().await;
    site.get("/")
        .await
        .assert_refused(502, "bad_answer")
        .assert_field("cache-control", "no-store")
        .assert_no_field("cdn-cache-control")
        .assert_field("content-type", "text/plain; charset=utf-8")
        .assert_field("x-frame-options", "DENY");
    site.get("/fixed")
        .await
        .assert_ok("x")
        .assert_field("cache-control", "max-age=31536000")
        .assert_field("cdn-cache-control", "max-age=60")
        .assert_no_field("content-type");
}

#[tokio::test]
async fn a_route_that_removes_cache_status_removes_it_from_refusals_too() {
    let app = upstream().answers("garbage\r\n\r\n").start().await;
    let keys = "cache = 'standard'\nresponse_headers = { remove = ['Cache-Status'] }";
    let site =
        site(&format!("[[routes]]\nmatch = '*'\npool = 'app'\n{keys}\n")).with("app", &app).start().await;
    site.get("/").await.assert_refused(502, "bad_answer").assert_no_field("cache-status");
    let (head, _) = talk(&site).await.ask(get("/")).await;
    assert_eq!(head.status(), 502);
    assert!(!head.headers().contains_key("cache-status"), "{head:?}");
}

#[tokio::test]
async fn a_field_that_a_route_removes_or_sets_is_not_in_interim_answers() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nX-Kept: 1\r\nServer: app\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let app = upstream().answers([interim, last].concat()).start().await;
    let keys = "response_headers = { remove = ['Server'], set = { Link = '</b.css>' } }";
    let site =
        site(&format!("[[routes]]\nmatch = '*'\npool = 'app'\n{keys}\n")).with("app", &app).start().await;
    let mut client = site.begin("/").await;
    let head = client.next_head().await.unwrap();
    assert_eq!(head.text(), "HTTP/1.1 103 Early Hints\r\nX-Kept: 1\r\n\r\n");
    client.answer().await.assert_ok("ok").assert_field("link", "</b.css>");
}

#[tokio::test]
async fn requests_are_redirected() {
    let config = "[[routes]]\nmatch = 'example.com'\nredirect = { to = 'https://www.{host}{path}{query}', status = 301 }\n\
        [[routes]]\nmatch = '/old/*'\nredirect = '/new/{rest}'\n\
        [[routes]]\nmatch = '/x'\nredirect = { to = 'https://elsewhere.test/', status = 303 }\nresponse_headers = { set = { Cache-Control = 'no-store' } }";
    let site = site(config).start().await;
    let answer = site.send("GET /a%20b?c=d HTTP/1.1\r\nHost: Example.com:8080\r\n\r\n").await;
    answer
        .assert_status(301)
        .assert_field("location", "https://www.Example.com/a%20b?c=d")
        .assert_field("content-length", "0");
    site.send("GET / HTTP/1.0\r\n\r\n").await.assert_refused(404, "no_route");
    site.get("/old/a/b?c").await.assert_status(307).assert_field("location", "/new/a/b");
    site.get("/old//evil.test").await.assert_status(307).assert_field("location", "/new/evil.test");
    site.post("/x", "body")
        .await
        .assert_status(303)
        .assert_field("location", "https://elsewhere.test/")
        .assert_field("cache-control", "no-store");
}

#[tokio::test]
async fn a_reload_applies_new_header_changes() {
    let config = |version: u32| {
        format!(
            "[[routes]]\nmatch = '*'\nrespond = 'x'\nresponse_headers = {{ set = {{ X-Version = '{version}' }} }}"
        )
    };
    let site = site(&config(1)).start().await;
    site.get("/").await.assert_field("x-version", "1");
    site.rewrite(&config(2));
    site.command(&["reload"]).await.assert_exit(0);
    site.get("/").await.assert_field("x-version", "2");
}
