//! Files on routes with further settings: a prefix that is removed, a pool behind the files, compression.

use std::time::{Duration, SystemTime};

use hostler_testkit::{ok, upstream};

use crate::compression::page;
use crate::files::{ask, plan};
use crate::http2::{get, talk};

#[tokio::test]
async fn with_a_stripped_prefix_a_folder_redirects_relative_to_the_request_path() {
    let below = |prefix: &str| {
        plan(&format!(
            "[[routes]]\nmatch = '/x/y/*'\nstatic = 'public'\nrewrite = {{ strip_prefix = '{prefix}' }}"
        ))
    };
    for prefix in ["/x/y", "/x/y/"] {
        let site = below(prefix).start().await;
        for (path, location) in
            [("/x/y", "./y/"), ("/x/y?a=//b", "./y/?a=//b"), ("/x/%79", "./%79/"), ("/a/../x/./y", "./y/")]
        {
            site.get(path).await.assert_status(308).assert_field("location", location);
            let head = ask(&site, &format!("HEAD {path}"), "").await;
            head.assert_status(308).assert_field("location", location);
        }
        for path in ["/x/y/", "/x/y/.", "/x/y/docs/..", "/x/y/%2e"] {
            site.get(path).await.assert_ok("<p>home");
        }
        site.get("/x/y/docs").await.assert_status(308).assert_field("location", "./docs/");
        site.get("/x/y/app.js").await.assert_ok("let a = 1;");
        site.get("//evil.test/../x/y").await.assert_refused(400, "bad_target");
        site.get("/x/y//evil.test").await.assert_status(308).assert_field("location", "/x/y/evil.test");
    }
    // The path is rewritten, and the redirect still uses the path that was asked for.
    let added = "[[routes]]\nmatch = '/x/*'\nstatic = 'public'\nrewrite = { strip_prefix = '/x', add_prefix = '/docs' }";
    let site = plan(added).start().await;
    site.get("/x").await.assert_status(308).assert_field("location", "./x/");
    site.get("/x/").await.assert_ok("<p>docs");
    // If only the folder's own path leads here, only its index can be served.
    let site =
        plan("[[routes]]\nmatch = '/x'\nstatic = 'public'\nrewrite = { strip_prefix = '/x' }").start().await;
    site.get("/x").await.assert_ok("<p>home");
}

#[tokio::test]
async fn files_may_come_before_a_pool() {
    let app = upstream().start().await;
    let files_first = plan("[[routes]]\nmatch = '*'\npool = 'app'\nstatic = { dir = 'public', index = '' }")
        .with("app", &app);
    let site = files_first.start().await;
    site.get("/app.js").await.assert_ok("let a = 1;");
    assert_eq!(site.access("/app.js").await.get("pool"), None);
    for path in ["/", "/docs", "/docs/", "/users/7", "/none.js", "/.env", "/../secret.txt"] {
        site.get(path).await.assert_ok("ok");
        assert_eq!(site.access(path).await["pool"], "app", "{path}");
    }
    site.post("/app.js", "for the app").await.assert_ok("ok");
    let upgrade = "GET /app.js HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    site.send(upgrade).await.assert_ok("ok");
    ask(&site, "GET /app.js", "Range: bytes=99-").await.assert_refused(416, "range");
    assert_eq!(app.requests().len(), 9);

    let first =
        "[[routes]]\nmatch = '/x/*'\npool = 'app'\nstatic = 'public'\nrewrite = { strip_prefix = '/x' }";
    let site = plan(first).with("app", &app).start().await;
    site.get("/x?q").await.assert_status(308).assert_field("location", "./x/?q");
    site.get("/x/").await.assert_ok("<p>home");
    site.get("/x/users").await.assert_ok("ok");
}

#[tokio::test]
async fn an_app_behind_files_gets_what_names_no_file_as_it_was_sent() {
    let app = upstream().script(|seen| ok(seen.target())).start().await;
    let files_first = plan("[[routes]]\nmatch = '*'\npool = 'app'\nstatic = 'public'").with("app", &app);
    let site = files_first.start().await;
    for path in ["/proxy/https://a.test/b.png?w=1", "/docs//index.html", "/a/"] {
        site.get(path).await.assert_ok(path);
    }
    std::fs::rename(site.folder().join("public"), site.folder().join("old")).unwrap();
    site.get("/app.js").await.assert_ok("/app.js");
    std::fs::rename(site.folder().join("old"), site.folder().join("public")).unwrap();
    site.get("/app.js").await.assert_ok("let a = 1;");
}

#[tokio::test]
async fn a_date_does_not_say_of_which_form_of_a_file_a_client_has_a_part() {
    let plan = plan("server.compress = true\n[[routes]]\nmatch = '*'\nstatic = 'public'");
    let (page, path) = (page(), plan.folder().join("public/page.html"));
    std::fs::write(&path, &page).unwrap();
    // In the second of its change a date says nothing.
    let before = SystemTime::now() - Duration::from_secs(3600);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
    let site = plan.start().await;
    let whole = site.get("/page.html").await;
    let (etag, date) = (whole.field("etag").unwrap(), whole.field("last-modified").unwrap());
    let guarded = |validator: &str| format!("Range: bytes=4-7|If-Range: {validator}");
    // The client of the gzip form would put bytes of the file behind it.
    let answer = ask(&site, "GET /page.html", &format!("Accept-Encoding: gzip|{}", guarded(&date))).await;
    answer.assert_status(200).assert_no_field("content-range");
    for (validator, accepted) in [(&date, "identity"), (&etag, "gzip")] {
        let fields = format!("Accept-Encoding: {accepted}|{}", guarded(validator));
        let part = ask(&site, "GET /page.html", &fields).await;
        assert_eq!(part.assert_status(206).text(), page[4..8], "{validator}");
    }
}

#[tokio::test]
async fn a_route_that_changes_vary_does_not_hide_that_files_have_compressed_forms() {
    let cases: [(&str, &str, &[&str]); 5] = [
        ("true", "set = { Vary = 'Origin' }", &["Origin", "Accept-Encoding"]),
        ("true", "default = { Vary = 'Origin' }", &["Accept-Encoding", "Origin"]),
        ("true", "add = { Vary = 'Origin' }", &["Accept-Encoding", "Origin"]),
        ("true", "remove = ['Vary']", &[]),
        ("false", "set = { Vary = 'Origin' }", &["Origin"]),
    ];
    for (precompressed, change, expected) in cases {
        let config = format!(
            "[[routes]]\nmatch = '*'\nstatic = {{ dir = 'public', precompressed = {precompressed} }}\n\
             response_headers = {{ {change} }}"
        );
        let site = plan(&config).start().await;
        let answer = ask(&site, "GET /app.js", "Accept-Encoding: br").await;
        assert_eq!(answer.assert_status(200).head.all("vary"), expected, "{precompressed} {change}");
        let (answer, _) = talk(&site).await.ask(get("/app.js")).await;
        let seen: Vec<_> = answer.headers().get_all("vary").iter().collect();
        assert_eq!(seen, expected, "{precompressed} {change}");
    }
}

#[tokio::test]
async fn files_have_registered_media_types_and_fonts_are_compressed() {
    let plan = plan("server.compress = true\n[[routes]]\nmatch = '*'\nstatic = 'public'");
    for name in ["font.otf", "font.woff", "film.ts", "DRAWING.SVGZ"] {
        std::fs::write(plan.folder().join("public").join(name), page()).unwrap();
    }
    let site = plan.start().await;
    for (path, kind, coding) in [
        ("/font.otf", "font/otf", Some("gzip")),
        ("/font.woff", "font/woff", None),
        ("/film.ts", "video/mp2t", None),
        // It is compressed already, and sent as it is.
        ("/DRAWING.SVGZ", "image/svg+xml; charset=utf-8", Some("gzip")),
    ] {
        let answer = ask(&site, &format!("GET {path}"), "Accept-Encoding: gzip").await;
        answer.assert_status(200).assert_field("content-type", kind);
        assert_eq!(answer.field("content-encoding").as_deref(), coding, "{path}");
    }
    ask(&site, "GET /DRAWING.SVGZ", "Accept-Encoding: gzip").await.assert_ok(&page());
}

#[tokio::test]
async fn the_spa_page_replaces_a_path_that_ends_in_a_domain_name() {
    let app = "[[routes]]\nmatch = '*'\nstatic = { dir = 'public', fallback = 'index.html' }";
    let site = plan(app).start().await;
    for path in ["/users/jane@example.com", "/domains/proton.me"] {
        site.get(path).await.assert_ok("<p>home");
    }
    site.get("/users/gone.js").await.assert_refused(404, "no_file");
}

#[tokio::test]
async fn the_404_page_keeps_its_own_fields() {
    let config = "[[routes]]\nmatch = '*'\nstatic = { dir = 'public', not_found = 'docs/index.html' }\n\
        response_headers = { set = { Cache-Control = 'max-age=31536000', X-Frame-Options = 'DENY' } }";
    let site = plan(config).start().await;
    for (path, status, caching) in [
        ("/app.js", 200, "max-age=31536000"),
        ("/gone", 404, "no-store"),
        ("/docs/", 200, "max-age=31536000"),
    ] {
        let answer = site.get(path).await;
        answer
            .assert_status(status)
            .assert_field("cache-control", caching)
            .assert_field("x-frame-options", "DENY");
    }
}

#[tokio::test]
async fn files_without_a_precompressed_form_are_compressed_when_sent() {
    let plan =
        plan("[[routes]]\nmatch = '*'\ncompress = true\nstatic = { dir = 'public', precompressed = true }");
    let text = "let a = 1;\n".repeat(1_000);
    std::fs::write(plan.folder().join("public/large.js"), &text).unwrap();
    let site = plan.start().await;
    ask(&site, "GET /app.js", "Accept-Encoding: gzip")
        .await
        .assert_ok("GZIP")
        .assert_field("vary", "Accept-Encoding");
    let encoded = ask(&site, "GET /large.js", "Accept-Encoding: gzip").await;
    encoded
        .assert_status(200)
        .assert_field("content-encoding", "gzip")
        .assert_field("vary", "Accept-Encoding");
    assert!(encoded.body.len() < text.len() / 10, "{} bytes", encoded.body.len());
    let etag = encoded.field("etag").unwrap();
    assert!(etag.starts_with("W/"), "{etag}: the bytes are others");
    let fields = format!("Accept-Encoding: gzip|If-None-Match: {etag}");
    ask(&site, "GET /large.js", &fields)
        .await
        .assert_status(304)
        .assert_field("etag", &etag)
        .assert_field("vary", "Accept-Encoding");
    let part = ask(&site, "GET /large.js", "Accept-Encoding: gzip|Range: bytes=0-2").await;
    part.assert_status(206).assert_no_field("content-encoding");
    assert_eq!(part.body, b"let");
}
