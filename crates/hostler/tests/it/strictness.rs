//! Every request that two readers could read in two ways is refused, and the bytes after it are never read as a request.

use std::path::Path;

use hostler_testkit::{Site, Upstream, upstream};
use serde_json::Value;

use crate::in_front_of;

/// Sends a request with a second one behind it, which must never be seen. The answer has this status and reason, its text names the
/// error, the connection ends, and nothing reaches the member.
async fn check(site: &Site, app: &Upstream, bytes: &[u8], status: u16, reason: &str, word: &str) {
    let shown = String::from_utf8_lossy(bytes).chars().take(120).collect::<String>();
    let mut client = site.connect().await;
    client.send([bytes, b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"].concat()).await;
    let answer = client.answer().await;
    assert_eq!(
        (answer.status, answer.field("hostler-refusal").as_deref()),
        (status, Some(reason)),
        "{shown:?}{answer:?}"
    );
    answer.assert_status(status).assert_says(word).assert_field("connection", "close");
    client.assert_closed().await;
    assert_eq!(app.targets(), Vec::<String>::new(), "after {shown:?}");
}

async fn check_all(cases: &[(&str, &str, &str)]) {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    for (bytes, reason, word) in cases {
        check(&site, &app, bytes.as_bytes(), 400, reason, word).await;
    }
    // The site still works.
    site.get("/").await.assert_ok("ok");
}

#[tokio::test]
async fn a_body_of_doubtful_length_is_refused() {
    const P: &str = "POST / HTTP/1.1\r\nHost: a\r\n";
    let with = |fields: &str| format!("{P}{fields}\r\n\r\n0\r\n\r\n");
    let cases = [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", "Content-Length and Transfer-Encoding"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", "Content-Length and Transfer-Encoding"),
        ("Content-Length: 0\r\ntransfer-encoding: identity", "Content-Length and Transfer-Encoding"),
        ("Content-Length: 5\r\nContent-Length: 6", "more than one Content-Length"),
        ("Content-Length: 5\r\ncontent-length: 5", "more than one Content-Length"),
        ("Content-Length: 5, 5", "more than one Content-Length"),
        ("Content-Length: 5,6", "more than one Content-Length"),
        ("Content-Length:", "Content-Length"),
        ("Content-Length: -1", "Content-Length"),
        ("Content-Length: +5", "Content-Length"),
        ("Content-Length: 0x5", "Content-Length"),
        ("Content-Length: 5 5", "Content-Length"),
        ("Content-Length: 5.0", "Content-Length"),
        ("Content-Length: \"5\"", "Content-Length"),
        ("Content-Length: 99999999999999999999", "Content-Length"),
        ("Content-Length: 18446744073709551621", "Content-Length"),
        ("Transfer-Encoding: chunked, gzip", "Transfer-Encoding"),
        ("Transfer-Encoding: chunked, chunked", "Transfer-Encoding"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding"),
        ("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", "Transfer-Encoding"),
        ("Transfer-Encoding: identity", "Transfer-Encoding"),
        ("Transfer-Encoding: xchunked", "Transfer-Encoding"),
        ("Transfer-Encoding: chunked;q=1", "Transfer-Encoding"),
        ("Transfer-Encoding: \"chunked\"", "Transfer-Encoding"),
        ("Transfer-Encoding:", "Transfer-Encoding"),
        ("Transfer-Encoding: ,chunked", "Transfer-Encoding"),
        ("Transfer-Encoding: \u{b}chunked", "header line 3"),
    ]
    .map(|(fields, word)| (with(fields), word));
    let cases: Vec<_> = cases
        .iter()
        .map(|(bytes, word)| {
            (&**bytes, if word.starts_with("header") { "bad_head" } else { "bad_framing" }, *word)
        })
        .collect();
    check_all(&cases).await;
}

#[tokio::test]
async fn a_transfer_coding_besides_chunked_is_not_implemented() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let bytes = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n";
    check(&site, &app, bytes, 501, "transfer_coding", "Transfer-Encoding").await;
}

#[tokio::test]
async fn transfer_codings_in_http_1_0_are_refused() {
    let bytes = "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    check_all(&[(bytes, "bad_framing", "HTTP/1.0")]).await;
}

#[tokio::test]
async fn a_request_must_name_one_well_formed_host() {
    check_all(&[
        ("GET / HTTP/1.1\r\n\r\n", "bad_host", "missing"),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "bad_host", "more than one"),
        ("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", "bad_host", "more than one"),
        ("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", "bad_host", "more than one"),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", "bad_host", "empty"),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "bad_host", "malformed"),
        ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "bad_host", "malformed"),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "bad_host", "malformed"),
        ("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", "bad_host", "malformed"),
        ("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", "bad_host", "malformed"),
        ("GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n", "bad_host", "malformed"),
        ("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "bad_host", "malformed"),
        ("GET / HTTP/1.1\r\nHost: http://a\r\n\r\n", "bad_host", "malformed"),
        ("GET / HTTP/1.1\r\nHost: ex%61mple.com\r\n\r\n", "bad_host", "malformed"),
        ("GET / HTTP/1.1\r\nHost: a%00.b\r\n\r\n", "bad_host", "malformed"),
        ("GET / HTTP/1.1\r\nHost: a|b\r\n\r\n", "bad_host", "malformed"),
        ("GET / HTTP/1.1\r\nHost: a\\b\r\n\r\n", "bad_host", "malformed"),
    ])
    .await;
}

#[tokio::test]
async fn a_head_that_is_not_http_is_refused() {
    check_all(&[
        // obs-fold, bare LF, bare CR
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", "bad_head", "obs-fold"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n", "bad_head", "obs-fold"),
        ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", "bad_head", "obs-fold"),
        ("GET / HTTP/1.1\nHost: a\n\n", "bad_head", "bare LF"),
        ("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", "bad_head", "bare LF"),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", "bad_head", "bare LF"),
        ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "bad_head", "bare LF"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\rY: c\r\n\r\n", "bad_head", "header line 3 is malformed (X)"),
        ("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", "bad_head", "header line 2 is malformed (Host)"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\rContent-Length: 5\r\n\r\n", "bad_head", "header line 3"),
        // names
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", "bad_head", "header line 2 is malformed (Host )"),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\n", "bad_head", "(Content-Length )"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n",
            "bad_head",
            "(Transfer-Encoding\\x09)",
        ),
        ("GET / HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n", "bad_head", "(X Y)"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX\u{0}: b\r\n\r\n", "bad_head", "(X\\x00)"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX(: b\r\n\r\n", "bad_head", "(X()"),
        ("GET / HTTP/1.1\r\nHost: a\r\nÄ: b\r\n\r\n", "bad_head", "(\\xc3\\x84)"),
        ("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", "bad_head", "header line 3"),
        ("GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", "bad_head", "header line 3"),
        // values
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \u{0}\r\n\r\n", "bad_head", "(X)"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\u{1}c\r\n\r\n", "bad_head", "(X)"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \u{7f}\r\n\r\n", "bad_head", "(X)"),
        ("GET / HTTP/1.1\r\nHost: a\u{0}\r\n\r\n", "bad_head", "(Host)"),
        // the request line
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "bad_head", "request line"),
        ("GET / \r\nHost: a\r\n\r\n", "bad_head", "request line"),
        ("GET / http/1.1\r\nHost: a\r\n\r\n", "bad_head", "request line"),
        ("GET /\r\nHost: a\r\n\r\n", "bad_head", "request line"),
        ("GET / a HTTP/1.1\r\nHost: a\r\n\r\n", "bad_head", "request line"),
        (" GET / HTTP/1.1\r\nHost: a\r\n\r\n", "bad_head", "request line"),
        ("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", "bad_head", "request line"),
        ("G(T / HTTP/1.1\r\nHost: a\r\n\r\n", "bad_head", "request line"),
        ("GET /\u{0} HTTP/1.1\r\nHost: a\r\n\r\n", "bad_head", "request line"),
        ("\u{16}\u{3}\u{1}\u{2}\r\n\r\n", "bad_head", "request line"),
    ])
    .await;
}

#[tokio::test]
async fn another_version_of_http_is_refused() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.http2 = false").await;
    for version in ["HTTP/2.0", "HTTP/1.2", "HTTP/0.9"] {
        let bytes = format!("GET / {version}\r\nHost: a\r\n\r\n");
        check(&site, &app, bytes.as_bytes(), 505, "version", "neither HTTP/1.0 nor HTTP/1.1").await;
    }
    check(&site, &app, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "version", "neither HTTP/1.0 nor HTTP/1.1")
        .await;
}

#[tokio::test]
async fn an_invalid_target_or_one_for_a_proxy_is_refused() {
    check_all(&[
        ("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", "connect", "CONNECT"),
        ("CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", "connect", "CONNECT"),
        ("GET http://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n", "bad_target", "request target"),
        ("GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", "bad_target", "request target"),
        ("GET ftp://a/x HTTP/1.1\r\nHost: a\r\n\r\n", "bad_target", "request target"),
        ("GET a/x HTTP/1.1\r\nHost: a\r\n\r\n", "bad_target", "request target"),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", "bad_target", "request target"),
        ("GET /x#y HTTP/1.1\r\nHost: a\r\n\r\n", "bad_target", "fragment"),
        ("GET http://ex%61mple.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", "bad_target", "request target"),
        ("GET //admin/x HTTP/1.1\r\nHost: a\r\n\r\n", "bad_target", "two slashes"),
        ("GET http://a//admin/x HTTP/1.1\r\nHost: a\r\n\r\n", "bad_target", "two slashes"),
        ("GET /100% HTTP/1.1\r\nHost: a\r\n\r\n", "bad_target", "percent sign"),
        ("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", "bad_target", "percent sign"),
    ])
    .await;
}

#[tokio::test]
async fn characters_that_a_uri_cannot_have_are_refused() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let anywhere = ["\"", "<", ">", "\u{e9}", "\u{80}", "\u{ff3c}"];
    let in_paths = ["\\", "{", "}", "`"].into_iter().chain(anywhere);
    for mark in in_paths {
        let bytes = format!("GET /x{mark}..{mark}admin HTTP/1.1\r\nHost: a\r\n\r\n");
        check(&site, &app, bytes.as_bytes(), 400, "bad_target", "in the path").await;
    }
    for mark in anywhere {
        let bytes = format!("GET /x?y={mark} HTTP/1.1\r\nHost: a\r\n\r\n");
        check(&site, &app, bytes.as_bytes(), 400, "bad_target", "in the query").await;
    }
    for byte in (0..b' ').chain([0x7f]) {
        let bytes = [b"GET /x", &[byte][..], b"y HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
        let answer = site.send(bytes).await;
        answer.assert_status(400);
    }
    assert_eq!(app.targets(), Vec::<String>::new());
    // Characters that browsers leave unencoded (the URL standard's percent-encode sets).
    let from_a_browser = "/a'(b)*,;:@[c]!$&+=~^|/%7C?q='(b)*,;:@[c]!$&+=~\\^`{|}/?100%";
    site.get(from_a_browser).await.assert_ok("ok");
    assert_eq!(app.targets(), [from_a_browser]);
}

#[tokio::test]
async fn a_path_that_apps_read_in_different_ways_cannot_bypass_a_route() {
    let app = upstream().start().await;
    let routes = "[[routes]]\nmatch = '/admin/*'\nrespond = { status = 403, body = 'no' }\n\
        [[routes]]\nmatch = '/v1/*'\npool = 'app'\nrewrite = { strip_prefix = '/v1' }\n\
        [[routes]]\nmatch = '*'\npool = 'app'\n";
    let site = in_front_of(&app, routes).await;
    for path in [
        "/admin",
        "/admin/x",
        "/%61dmin/x",
        "/admin/a%2Fb",
        "/admin//x",
        "/admin/./x",
        "/admin/;a/x",
        "/x/../admin/y",
    ] {
        site.get(path).await.assert_status(403).assert_says("no");
    }
    for path in ["/x/%2e%2e/admin/x", "/x%2F..%2Fadmin", "/admin%2Fx", "/v1/../admin/x"] {
        site.get(path).await.assert_status(403);
    }
    for path in [
        "/admin/../x",
        "/admin/%2e%2e/x",
        "/admin/..%2Fx",
        "/admin/%2e%2e%2fx",
        "/admin/%2e%2e%2fx/..",
        "/x/..%5cadmin",
        "/admin;a=b/x",
        "/x/..;/admin/x",
        "/;x/admin/x",
        "//admin/x",
        "//host/admin/x",
        "/v1//admin/x",
    ] {
        site.get(path).await.assert_refused(400, "bad_target");
    }
    assert_eq!(app.targets(), Vec::<String>::new());
    for path in ["/a/../b", "/a%2Fb", "/a//b", "/a;b=c", "/x/admin", "/.well-known/x"] {
        site.get(path).await.assert_ok("ok");
        assert_eq!(app.targets().pop().as_deref(), Some(path), "what all agree on goes on as it came");
    }
}

#[tokio::test]
async fn an_absolute_target_that_agrees_with_host_reaches_the_member_as_a_path() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let cases = [
        ("GET http://a/x?y=z", "/x?y=z"),
        ("GET HTTP://A:80/x", "/x"),
        ("GET http://a", "/"),
        ("GET http://a?q", "/?q"),
        ("OPTIONS http://a", "*"),
        ("OPTIONS *", "*"),
        ("GET /a//b", "/a//b"),
        ("GET /%2e%2E/?http://b", "/%2e%2E/?http://b"),
    ];
    for (number, (line, target)) in cases.into_iter().enumerate() {
        site.send(format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n")).await.assert_ok("ok");
        let seen = app.requests().remove(number);
        assert_eq!((seen.target().as_str(), seen.field("host").as_deref()), (target, Some("a")), "{line}");
    }
}

#[tokio::test]
async fn the_host_of_an_absolute_target_replaces_another_host() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "[[routes]]\nmatch = 'b.test/*'\npool = 'app'").await;
    site.send("GET http://b.test/x HTTP/1.1\r\nHost: a.test\r\nX: y\r\n\r\n").await.assert_ok("ok");
    site.send("GET http://a.test/x HTTP/1.1\r\nHost: b.test\r\n\r\n").await.assert_refused(404, "no_route");
    let seen = app.only_request();
    let hosts = seen.head.all("host");
    assert_eq!((seen.target().as_str(), hosts.as_slice()), ("/x", &["b.test".to_owned()][..]));
    assert_eq!(seen.field("x-forwarded-host").as_deref(), Some("b.test"));
}

#[tokio::test]
async fn a_bad_request_on_a_kept_connection_is_refused_on_its_own() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    for bad in ["X\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let mut client = site.connect().await;
        let long = "x".repeat(500);
        client.send(format!("HEAD /good?{long} HTTP/1.1\r\nHost: a\r\nUser-Agent: honest\r\n\r\n")).await;
        client.answer_to("HEAD").await.assert_status(200);
        client.send(bad).await;
        // Unlike the answer to HEAD, with its body.
        client.answer().await.assert_refused(400, "bad_head").assert_says("400 Bad Request");
        client.assert_closed().await;
    }
    let lines = site.exchanges(6).await;
    let refused: Vec<_> = lines.iter().filter(|line| line["refusal"] == "bad_head").collect();
    assert_eq!(refused.len(), 3, "{lines:?}");
    for bad in refused {
        assert_eq!(
            (&bad["method"], &bad["target"], &bad["user_agent"]),
            (&"".into(), &"".into(), &Value::Null)
        );
    }
}

#[tokio::test]
async fn the_fuzzing_corpus_harms_no_running_server() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (folder, before) in [
        ("request_head", ""),
        ("chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ] {
        let entries: Vec<_> = std::fs::read_dir(corpus.join(folder)).unwrap().collect();
        assert!(!entries.is_empty(), "{folder}");
        for entry in entries {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            let mut client = site.connect().await;
            client.send([before.as_bytes(), &bytes].concat()).await;
            client.finish_sending().await;
            client.rest().await;
        }
    }
    site.get("/").await.assert_ok("ok");
    assert!(site.access_lines().iter().all(|line| line["status"] != 500));
    assert!(site.complaints().is_empty(), "{:?}", site.complaints());
}
