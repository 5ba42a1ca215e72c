//! Files as a target: for browsers, for caches, and for attackers.

use std::collections::HashSet;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hostler_testkit::{ReceivedAnswer, Site, SitePlan};

use crate::site;

/// A site with a route for all paths to a folder, `public`, with these settings.
fn folder(settings: &str) -> SitePlan {
    let comma = if settings.is_empty() { "" } else { "," };
    plan(&format!("[[routes]]\nmatch = '*'\nstatic = {{ dir = 'public'{comma} {settings} }}"))
}

pub(crate) fn plan(config: &str) -> SitePlan {
    let plan = site(config);
    for (name, text) in [
        ("index.html", "<p>home"),
        ("app.js", "let a = 1;"),
        ("app.js.br", "BROTLI"),
        ("app.js.gz", "GZIP"),
        ("logo.svg", "<svg/>"),
        ("logo.svgz", "GZIP"),
        ("noext", "?"),
        ("empty.txt", ""),
        ("a b\u{e9}.txt", "odd name"),
        (".env", "SECRET"),
        (".git/config", "SECRET"),
        (".well-known/security.txt", "well known"),
        ("docs/index.html", "<p>docs"),
        ("bare/file.txt", "bare"),
        ("assets/x-1a2b.css", "p{}"),
    ] {
        put(plan.folder(), &format!("public/{name}"), text);
    }
    put(plan.folder(), "secret.txt", "SECRET");
    plan
}

fn put(folder: &Path, name: &str, text: impl AsRef<[u8]>) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub(crate) async fn ask(site: &Site, line: &str, fields: &str) -> ReceivedAnswer {
    let mut client = site.connect().await;
    let fields: String =
        fields.split('|').filter(|line| !line.is_empty()).map(|line| format!("{line}\r\n")).collect();
    client.send(format!("{line} HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n")).await;
    client.answer_to(line.split(' ').next().unwrap()).await
}

#[tokio::test]
async fn a_file_has_all_fields_that_caches_and_browsers_need() {
    let site = folder("").start().await;
    let answer = site.get("/app.js").await;
    answer
        .assert_ok("let a = 1;")
        .assert_field("content-type", "text/javascript; charset=utf-8")
        .assert_field("content-length", "10")
        .assert_field("accept-ranges", "bytes")
        .assert_field("cache-control", "no-cache")
        .assert_no_field("vary")
        .assert_no_field("content-encoding");
    let etag = answer.field("etag").unwrap();
    assert!(etag.starts_with('"') && etag.ends_with('"'), "{etag} is strong");
    assert!(answer.field("last-modified").unwrap().ends_with(" GMT"));

    let head = ask(&site, "HEAD /app.js", "").await;
    let same = |answer: &ReceivedAnswer| {
        let mut lines = answer.head.lines();
        lines.retain(|line| !line.starts_with("Date"));
        lines
    };
    assert_eq!((head.status, same(&head)), (200, same(&answer)));
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/logo.svg", "image/svg+xml; charset=utf-8"),
        ("/noext", "application/octet-stream"),
        ("/app.js.gz", "application/gzip"),
        ("/empty.txt", "text/plain; charset=utf-8"),
    ] {
        site.get(path).await.assert_status(200).assert_field("content-type", kind);
    }
    let drawing = site.get("/logo.svgz").await;
    drawing.assert_ok("GZIP").assert_field("content-encoding", "gzip");
    drawing.assert_field("content-type", "image/svg+xml; charset=utf-8");
    site.get("/a%20b%C3%A9.txt?x=1").await.assert_ok("odd name");
}

#[tokio::test]
async fn a_conditional_request_for_an_unchanged_file_gets_a_304() {
    let site = folder("precompressed = true").start().await;
    let first = site.get("/app.js").await;
    let (etag, modified) = (first.field("etag").unwrap(), first.field("last-modified").unwrap());
    for fields in [
        format!("If-None-Match: {etag}"),
        format!("If-None-Match: \"other\", W/{etag}"),
        format!("If-Modified-Since: {modified}"),
    ] {
        let answer = ask(&site, "GET /app.js", &fields).await;
        answer
            .assert_status(304)
            .assert_field("etag", &etag)
            .assert_field("cache-control", "no-cache")
            .assert_field("vary", "Accept-Encoding")
            .assert_no_field("content-length");
    }
    ask(&site, "GET /app.js", "If-Match: \"other\"").await.assert_refused(412, "precondition");
    put(site.folder(), "public/app.js", "let a = 2;");
    let changed = ask(&site, "GET /app.js", &format!("If-None-Match: {etag}")).await;
    changed.assert_ok("let a = 2;");
    assert_ne!(changed.field("etag").unwrap(), etag);
}

#[tokio::test]
async fn a_range_of_a_file_is_sent_with_content_range() {
    let plan = folder("");
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    put(plan.folder(), "public/film.mp4", &bytes);
    let site = plan.start().await;
    let whole = site.get("/film.mp4").await;
    assert!(whole.body == bytes, "{} bytes", whole.body.len());
    let part = ask(&site, "GET /film.mp4", "Range: bytes=200000-699999").await;
    part.assert_status(206)
        .assert_field("content-range", "bytes 200000-699999/1000000")
        .assert_field("content-length", "500000")
        .assert_field("content-type", "video/mp4");
    assert!(part.body == bytes[200_000..700_000]);
    ask(&site, "GET /film.mp4", "Range: bytes=1000000-")
        .await
        .assert_refused(416, "range")
        .assert_field("content-range", "bytes */1000000");
    let etag = whole.field("etag").unwrap();
    ask(&site, "GET /film.mp4", &format!("Range: bytes=0-0|If-Range: {etag}")).await.assert_status(206);
    ask(&site, "GET /film.mp4", "Range: bytes=0-0|If-Range: \"old\"").await.assert_status(200);
    ask(&site, "GET /film.mp4", "Range: bytes=0-0,5-6").await.assert_status(200);
    ask(&site, "HEAD /film.mp4", "Range: bytes=0-0").await.assert_status(200);
}

#[tokio::test]
async fn a_precompressed_file_is_sent_to_clients_that_accept_it() {
    let site = folder("precompressed = true").start().await;
    let plain = site.get("/app.js").await;
    plain.assert_ok("let a = 1;").assert_field("vary", "Accept-Encoding").assert_no_field("content-encoding");
    let mut tags = vec![plain.field("etag").unwrap()];
    for (takes, coding, body) in [
        ("gzip, deflate, br, zstd", "br", "BROTLI"),
        ("gzip", "gzip", "GZIP"),
        ("br;q=0.5, gzip", "gzip", "GZIP"),
    ] {
        let answer = ask(&site, "GET /app.js", &format!("Accept-Encoding: {takes}")).await;
        answer
            .assert_ok(body)
            .assert_field("content-encoding", coding)
            .assert_field("vary", "Accept-Encoding")
            .assert_field("content-type", "text/javascript; charset=utf-8");
        tags.push(answer.field("etag").unwrap());
    }
    assert_eq!(tags.iter().collect::<HashSet<_>>().len(), 3, "each form has a tag of its own: {tags:?}");
    let fields = format!("Accept-Encoding: br|If-None-Match: {}", tags[0]);
    ask(&site, "GET /app.js", &fields).await.assert_ok("BROTLI");
    ask(&site, "GET /logo.svg", "Accept-Encoding: br")
        .await
        .assert_ok("<svg/>")
        .assert_no_field("content-encoding");
    // Compressed twice, it would need both codings in the field.
    put(site.folder(), "public/logo.svgz.br", "BROTLI OF GZIP");
    ask(&site, "GET /logo.svgz", "Accept-Encoding: gzip, br")
        .await
        .assert_ok("GZIP")
        .assert_field("content-encoding", "gzip");
    let site = folder("").start().await;
    ask(&site, "GET /app.js", "Accept-Encoding: br").await.assert_ok("let a = 1;").assert_no_field("vary");
}

#[tokio::test]
async fn a_folder_is_its_index_and_is_named_with_a_slash() {
    let site = folder("").start().await;
    site.get("/").await.assert_ok("<p>home");
    site.get("/docs/").await.assert_ok("<p>docs");
    site.get("/docs?a=b").await.assert_status(308).assert_field("location", "./docs/?a=b");
    for path in ["/bare", "/bare/", "/app.js/", "/docs/index.html/", "/none/"] {
        site.get(path).await.assert_refused(404, "no_file");
    }
    site.get("/docs//index.html?x").await.assert_status(308).assert_field("location", "/docs/index.html?x");
    site.get("/.//evil.test//").await.assert_status(308).assert_field("location", "/./evil.test/");
    site.get("/%5Cevil.test//x").await.assert_status(308).assert_field("location", "/%5Cevil.test/x");
    for path in ["//evil.test//", "/\\evil.test//x"] {
        site.get(path).await.assert_refused(400, "bad_target").assert_no_field("location");
    }
}

#[tokio::test]
async fn no_hidden_file_and_no_file_outside_the_folder_is_sent() {
    let plan = folder("fallback = 'index.html'");
    let public = plan.folder().join("public");
    symlink("../secret.txt", public.join("leak.txt")).unwrap();
    symlink("/etc", public.join("etc")).unwrap();
    symlink("app.js", public.join("near.js")).unwrap();
    rustix_fifo(&public.join("pipe.js"));
    let site = plan.start().await;
    site.get("/near.js").await.assert_ok("let a = 1;");
    site.get("/.well-known/security.txt").await.assert_ok("well known");
    let long = format!("/{}.js", "x".repeat(5_000));
    for path in [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e%2fsecret.txt",
        "/docs/../../secret.txt",
        "/leak.txt",
        "/etc/hosts.txt",
        "/pipe.js",
        "/app.js%00.txt",
        "/docs%2findex.html",
        "/..%5csecret.txt",
        &long,
    ] {
        site.get(path).await.assert_refused(404, "no_file");
    }
    for path in ["/.env", "/.git/config", "/%2egit/config", "/etc/passwd", "/etc"] {
        let answer = site.get(path).await;
        assert!(!String::from_utf8_lossy(&answer.body).contains("SECRET"), "{path}");
        assert!(!String::from_utf8_lossy(&answer.body).contains("root:"), "{path}");
    }
    assert_eq!(site.access("/leak.txt").await["detail"], "leak.txt: a symbolic link leads out of the folder");
    let site = folder("dotfiles = true").start().await;
    site.get("/.env").await.assert_ok("SECRET");
}

fn rustix_fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
}

#[tokio::test]
async fn the_spa_page_replaces_missing_pages_and_never_missing_assets() {
    let site = folder("fallback = 'index.html'").start().await;
    for path in ["/users/7", "/users/john.doe", "/bare", "/bare/", "/none/"] {
        let answer = ask(&site, &format!("GET {path}"), "Accept: text/html,*/*;q=0.8").await;
        answer
            .assert_ok("<p>home")
            .assert_field("cache-control", "no-cache")
            .assert_field("content-type", "text/html; charset=utf-8");
    }
    site.get("/users/7").await.assert_ok("<p>home").assert_field("vary", "Accept");
    for path in ["/package/@scope%2Fname", "/package/@scope%2Fname/"] {
        site.get(path).await.assert_ok("<p>home");
    }
    ask(&site, "HEAD /users/7", "").await.assert_status(200);
    for path in ["/assets/gone.js", "/logo.png", "/x/style.css", "/app.js.map", "/old.html", "/a%2Fold.js"] {
        ask(&site, &format!("GET {path}"), "Accept: text/html,*/*").await.assert_refused(404, "no_file");
    }
    site.get("/..%2f..%2fsecret").await.assert_refused(404, "no_file");
    for accept in ["application/json", "application/json, text/html;q=0, */*; Q=0.0"] {
        ask(&site, "GET /api/users", &format!("Accept: {accept}")).await.assert_refused(404, "no_file");
    }
    site.post("/users/7", "x").await.assert_refused(405, "method");
}

#[tokio::test]
async fn a_not_found_page_is_sent_with_404() {
    let plan = folder("not_found = '404.html', fallback = 'app.html', precompressed = true");
    put(plan.folder(), "public/404.html", "<p>none");
    put(plan.folder(), "public/404.html.br", "BROTLI");
    put(plan.folder(), "public/app.html", "<p>app");
    let site = plan.start().await;
    let answer = site.get("/gone.html").await;
    answer
        .assert_status(404)
        .assert_field("content-type", "text/html; charset=utf-8")
        .assert_field("cache-control", "no-store");
    answer.assert_no_field("etag").assert_no_field("last-modified").assert_no_field("accept-ranges");
    assert_eq!(answer.body, b"<p>none");
    let answer = ask(&site, "GET /gone.html", "Accept-Encoding: br|If-None-Match: *|Range: bytes=0-1").await;
    assert_eq!((answer.status, &*answer.body), (404, &b"BROTLI"[..]));
    ask(&site, "HEAD /gone.html", "").await.assert_status(404).assert_field("content-length", "7");
    ask(&site, "GET /gone.js", "Accept: application/javascript").await.assert_refused(404, "no_file");
    site.get("/users/7").await.assert_ok("<p>app");
    site.get("/404.html").await.assert_ok("<p>none");
}

#[tokio::test]
async fn files_allow_only_get_and_head() {
    let site = folder("").start().await;
    let mut client = site.connect().await;
    for method in ["OPTIONS", "DELETE", "TRACE"] {
        client.send(format!("{method} /app.js HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        client.answer().await.assert_refused(405, "method").assert_field("allow", "GET, HEAD");
    }
    client.get("/app.js").await.assert_ok("let a = 1;");
    client.send("PUT /app.js HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n").await;
    client.answer().await.assert_refused(405, "method").assert_field("connection", "close");
}

#[tokio::test]
async fn immutable_files_get_a_long_max_age_and_others_the_configured_one() {
    let site = folder("cache_control = 'max-age=60', immutable = ['/assets/*'], fallback = 'index.html'")
        .start()
        .await;
    let for_ever = "public, max-age=31536000, immutable";
    site.get("/assets/x-1a2b.css").await.assert_status(200).assert_field("cache-control", for_ever);
    site.get("/app.js").await.assert_field("cache-control", "max-age=60");
    site.get("/assets/page").await.assert_ok("<p>home").assert_field("cache-control", "max-age=60");
    site.get("/assets/gone.css")
        .await
        .assert_refused(404, "no_file")
        .assert_field("cache-control", "no-store");
    let site = folder("cache_control = ''").start().await;
    site.get("/app.js").await.assert_no_field("cache-control");
}

#[tokio::test]
async fn a_deploy_may_move_the_symbolic_link_of_the_folder() {
    let plan = plan("[[routes]]\nmatch = '*'\nstatic = 'current'");
    put(plan.folder(), "releases/1/v.txt", "one");
    put(plan.folder(), "releases/2/v.txt", "two");
    symlink("releases/1", plan.folder().join("current")).unwrap();
    let site = plan.start().await;
    site.get("/v.txt").await.assert_ok("one");
    symlink("releases/2", site.folder().join("next")).unwrap();
    std::fs::rename(site.folder().join("next"), site.folder().join("current")).unwrap();
    site.get("/v.txt").await.assert_ok("two");
    std::fs::remove_file(site.folder().join("current")).unwrap();
    site.get("/v.txt").await.assert_refused(500, "file_system");
}

#[tokio::test]
async fn a_file_that_stays_open_between_requests_is_replaced_at_once() {
    let site = folder("").start().await;
    let at = |name: &str| site.folder().join("public").join(name);
    for turn in 0..3 {
        let text = format!("let a = {turn};");
        // As an editor or a deploy does: the new file gets the name of the old one.
        std::fs::write(at("next"), &text).unwrap();
        std::fs::rename(at("next"), at("app.js")).unwrap();
        site.get("/app.js").await.assert_ok(&text);
        site.get("/app.js").await.assert_ok(&text);
    }
    std::fs::write(at("app.js"), "written in place").unwrap();
    site.get("/app.js").await.assert_ok("written in place");
    std::fs::remove_file(at("app.js")).unwrap();
    site.get("/app.js").await.assert_refused(404, "no_file");
    // A link out of the folder is not followed, though the file was sent before.
    symlink("../secret.txt", at("app.js")).unwrap();
    site.get("/app.js").await.assert_refused(404, "no_file");
}

#[tokio::test]
async fn a_file_that_shrinks_while_it_is_sent_is_cut_and_never_filled_up() {
    let plan = folder("");
    let size = 64 << 20;
    std::fs::File::create(plan.folder().join("public/big.bin")).unwrap().set_len(size).unwrap();
    let site = plan.start().await;
    let mut client = site.begin("/big.bin").await;
    client.next_head().await.unwrap();
    client.read_exactly(1000).await;
    std::fs::File::options()
        .write(true)
        .open(site.folder().join("public/big.bin"))
        .unwrap()
        .set_len(1000)
        .unwrap();
    let (rest, _) = client.rest().await;
    assert!((rest.len() as u64) < size - 1000, "{} bytes", rest.len());
    assert_eq!(site.access("/big.bin").await["aborted"], "file_system");
    site.get("/app.js").await.assert_status(200);
}

#[tokio::test]
async fn undated_files_with_other_contents_have_other_etags() {
    let plan = folder("");
    let path = plan.folder().join("public/app.js");
    let changed = || std::fs::metadata(&path).map(|about| (about.ctime(), about.ctime_nsec())).unwrap();
    let undated = |text: &str, date: u64| {
        let before = changed();
        // The clock of the file system is coarse.
        while changed() == before {
            std::fs::write(&path, text).unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(date)).unwrap();
        }
    };
    let site = plan.start().await;
    // 1970, that of `npm pack`, and that of Bazel.
    for date in [0, 499_162_500, 946_684_800] {
        undated("let a = 1;", date);
        let first = site.get("/app.js").await;
        first.assert_no_field("last-modified");
        undated("let a = 2;", date);
        let fields = format!("If-None-Match: {}", first.field("etag").unwrap());
        ask(&site, "GET /app.js", &fields).await.assert_ok("let a = 2;");
    }
}
