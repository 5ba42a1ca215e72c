//! Header fields: passed on unchanged, without those of one connection, and with true facts about the client.

use hostler_testkit::{Seen, Site, Upstream, upstream};

use crate::in_front_of;

const TRUSTING: &str = "server.trusted_proxies = ['127.0.0.2', '10.0.0.0/8']";

/// Sends a GET with these lines from this address, and returns what the member saw.
async fn seen_from(from: &str, site: &Site, app: &Upstream, fields: &str) -> Seen {
    let mut client = site.connect_from(from).await;
    client.send(format!("GET / HTTP/1.1\r\nHost: Site.test:99\r\n{fields}\r\n")).await;
    client.answer().await.assert_ok("ok");
    app.requests().pop().unwrap()
}

#[tokio::test]
async fn names_keep_their_case_and_lines_their_order() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let lines = [
        "HoSt: a",
        "X-Zulu: 1",
        "accept: */*",
        "COOKIE: a=b",
        "x-alpha:  two  words ",
        "X-Zulu: 2",
        "X-Empty:",
    ];
    site.send(format!("GET /A%20b?C=%2f HTTP/1.1\r\n{}\r\n\r\n", lines.join("\r\n"))).await;
    let seen = app.only_request();
    assert_eq!(seen.head.start_line(), "GET /A%20b?C=%2f HTTP/1.1");
    assert_eq!(seen.head.lines()[..7], lines);
}

#[tokio::test]
async fn an_answer_keeps_its_names_order_and_reason() {
    let lines =
        "sErVer: app\r\nSet-Cookie: a=1\r\nX-B: 2\r\nset-cookie: c=3\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT";
    let app = upstream()
        .answers(format!("HTTP/1.1 299 Quite All Right\r\n{lines}\r\nContent-Length: 0\r\n\r\n"))
        .start()
        .await;
    let site = in_front_of(&app, "").await;
    let answer = site.get("/").await;
    assert_eq!(
        answer.head.text(),
        format!("HTTP/1.1 299 Quite All Right\r\n{lines}\r\nContent-Length: 0\r\n\r\n")
    );
}

#[tokio::test]
async fn hop_by_hop_fields_are_removed() {
    let fields = "Connection: keep-alive, X-Private\r\nKeep-Alive: timeout=5\r\nProxy-Connection: x\r\nTE: trailers\r\n\
        Upgrade: h2c\r\nHTTP2-Settings: x\r\nX-Private: 1\r\nX-Public: 2\r\n";
    let app =
        upstream().answers(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok")).start().await;
    let site = in_front_of(&app, "").await;
    let answer = site.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
    let seen = app.only_request();
    for name in
        ["connection", "keep-alive", "proxy-connection", "te", "upgrade", "http2-settings", "x-private"]
    {
        assert_eq!(seen.field(name), None, "{name}");
        answer.assert_no_field(name);
    }
    assert_eq!(seen.field("x-public").as_deref(), Some("2"));
    answer.assert_ok("ok").assert_field("x-public", "2");
}

#[tokio::test]
async fn a_client_cannot_remove_hostlers_fields_by_naming_them_in_connection() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let named =
        "X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host, X-Request-Id, Via, Host, Content-Length";
    let head =
        format!("POST / HTTP/1.1\r\nHost: a\r\nConnection: close, {named}\r\nContent-Length: 4\r\n\r\nbody");
    site.send(head).await.assert_ok("ok");
    let seen = app.only_request();
    assert_eq!(seen.body, b"body");
    for (name, value) in [
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "a"),
        ("host", "a"),
        ("content-length", "4"),
    ] {
        assert_eq!(seen.field(name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(seen.field("x-request-id").map(|id| id.len()), Some(24));
}

#[tokio::test]
async fn forwarding_fields_of_an_untrusted_client_are_replaced() {
    let app = upstream().start().await;
    let site = in_front_of(&app, TRUSTING).await;
    let hearsay = "X-Forwarded-For: 8.8.8.8\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Port: 1\r\n\
        X-Forwarded-Server: evil\r\nX-Forwarded-Prefix: /evil\r\nX-Forwarded-Anything: evil\r\nForwarded: for=8.8.8.8\r\n\
        X-Real-IP: 8.8.8.8\r\nCF-Connecting-IP: 8.8.8.8\r\nTrue-Client-IP: 8.8.8.8\r\nX-Geo-Country: XX\r\nx-other: kept\r\n";
    let seen = seen_from("127.0.0.1", &site, &app, hearsay).await;
    let text = seen.head.text();
    assert!(!text.contains("8.8.8.8") && !text.contains("evil") && !text.contains("XX"), "{text}");
    let expected = [
        "x-other: kept",
        "X-Forwarded-For: 127.0.0.1",
        "X-Forwarded-Proto: http",
        "X-Forwarded-Host: Site.test:99",
    ];
    assert_eq!(seen.head.lines()[1..5], expected);
    assert_eq!(site.access("/").await["client"], "127.0.0.1");
}

#[tokio::test]
async fn disguised_forwarding_fields_of_an_untrusted_client_are_removed() {
    let app = upstream().start().await;
    let site = in_front_of(&app, TRUSTING).await;
    let hearsay = "X_Forwarded_For: 8.8.8.8\r\nx-real_ip: 8.8.8.8\r\nX_Forwarded_Anything: evil\r\nContent_Length: 8\r\n\
        X_REQUEST_ID: evil\r\nmy_own: kept\r\n";
    let seen = seen_from("127.0.0.1", &site, &app, hearsay).await;
    assert_eq!(seen.head.lines()[1..3], ["my_own: kept", "X-Forwarded-For: 127.0.0.1"]);
}

#[tokio::test]
async fn forwarding_fields_of_a_trusted_proxy_are_extended() {
    let app = upstream().start().await;
    let site = in_front_of(&app, TRUSTING).await;
    let word = "X-Forwarded-For: 6.6.6.6, 81.2.69.160\r\nX-Forwarded-For: 10.9.9.9\r\nX-Forwarded-Proto: https\r\n\
        X-Forwarded-Host: shop.test\r\n";
    let seen = seen_from("127.0.0.2", &site, &app, word).await;
    for (name, value) in [
        ("x-forwarded-for", "6.6.6.6, 81.2.69.160, 10.9.9.9, 127.0.0.2"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "shop.test"),
        ("host", "Site.test:99"),
    ] {
        assert_eq!(seen.field(name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(
        site.access("/").await["client"],
        "81.2.69.160",
        "the first from the right that is not trusted"
    );
}

#[tokio::test]
async fn a_trusted_proxy_without_forwarding_fields_is_the_client() {
    let app = upstream().start().await;
    let site = in_front_of(&app, TRUSTING).await;
    let seen = seen_from("127.0.0.2", &site, &app, "").await;
    assert_eq!(seen.field("x-forwarded-for").as_deref(), Some("127.0.0.2"));
    assert_eq!(seen.field("x-forwarded-proto").as_deref(), Some("http"));
    assert_eq!(site.access("/").await["client"], "127.0.0.2");
}

#[tokio::test]
async fn client_address_can_name_another_header() {
    let app = upstream().start().await;
    let config = format!("{TRUSTING}\nserver.client_ip_header = 'CF-Connecting-IP'");
    let site = in_front_of(&app, &config).await;
    let named = "CF-Connecting-IP: 81.2.69.160\r\nX-Forwarded-For: 6.6.6.6\r\n";
    let seen = seen_from("127.0.0.2", &site, &app, named).await;
    assert_eq!(site.access("/").await["client"], "81.2.69.160");
    // The app finds the client there, too.
    assert_eq!(seen.field("cf-connecting-ip").as_deref(), Some("81.2.69.160"));
    // The proxy has passed on what the client says about itself.
    assert_eq!(seen.field("x-forwarded-for").as_deref(), Some("81.2.69.160, 127.0.0.2"));
    let seen = seen_from("127.0.0.2", &site, &app, "X-Forwarded-For: 6.6.6.6\r\n").await;
    assert_eq!(seen.field("x-forwarded-for").as_deref(), Some("127.0.0.2"));
}

#[tokio::test]
async fn with_a_broken_chain_the_proxy_is_the_client_and_the_log_says_so() {
    let app = upstream().start().await;
    let site = in_front_of(&app, TRUSTING).await;
    let endless = vec!["10.0.0.2"; 6000].join(",");
    for (line, client, doubtful) in [
        ("81.2.69.160", "81.2.69.160", false),
        ("6.6.6.6, unknown", "127.0.0.2", true),
        ("6.6.6.6, nonsense, 10.0.0.3", "10.0.0.3", true),
        (&endless, "10.0.0.2", true),
    ] {
        seen_from("127.0.0.2", &site, &app, &format!("X-Forwarded-For: {line}\r\n")).await;
        let logged = site.exchanges(app.requests().len()).await.pop().unwrap();
        assert_eq!(
            (&logged["client"], logged["client_doubtful"] == true),
            (&client.into(), doubtful),
            "{line:.60}"
        );
    }
}

#[tokio::test]
async fn trusted_hops_counts_proxies_without_known_addresses() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.trusted_hops = 2").await;
    let told =
        seen_from("127.0.0.9", &site, &app, "X-Forwarded-For: 6.6.6.6, 81.2.69.160, 203.0.113.5\r\n").await;
    assert_eq!(
        told.field("x-forwarded-for").as_deref(),
        Some("6.6.6.6, 81.2.69.160, 203.0.113.5, 127.0.0.9")
    );
    seen_from("127.0.0.9", &site, &app, "X-Forwarded-For: 6.6.6.6\r\n").await;
    let logged = site.exchanges(2).await;
    assert_eq!((&logged[0]["client"], &logged[0]["client_doubtful"]), (&"81.2.69.160".into(), &().into()));
    assert_eq!((&logged[1]["client"], &logged[1]["client_doubtful"]), (&"127.0.0.9".into(), &true.into()));
}

#[tokio::test]
async fn a_request_has_the_same_id_in_every_log() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let made = seen_from("127.0.0.1", &site, &app, "").await.field("x-request-id").unwrap();
    assert!(made.len() == 24 && made.bytes().all(|b| b.is_ascii_hexdigit()), "{made}");
    let given = seen_from("127.0.0.1", &site, &app, "X-Request-ID: abc-123_X.y\r\n").await;
    assert_eq!(given.head.all("x-request-id"), ["abc-123_X.y"]);
    for bad in ["with space", "\"quoted\"", "", &"x".repeat(129), "a\r\nX-Request-Id: b c"] {
        let seen = seen_from("127.0.0.1", &site, &app, &format!("X-Request-Id: {bad}\r\n")).await;
        let ids = seen.head.all("x-request-id");
        assert!(ids.len() == 1 && ids[0] != bad, "{bad:?} became {ids:?}");
    }
    let logged: Vec<_> =
        site.exchanges(2).await.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(logged[..2], [made, "abc-123_X.y".to_owned()]);
}

#[tokio::test]
async fn a_refusal_names_the_request() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "[[routes]]\nmatch = '/app'\npool = 'app'").await;
    let answer = site.send("GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: me\r\n\r\n").await;
    answer
        .assert_refused(404, "no_route")
        .assert_field("x-request-id", "me")
        .assert_field("cache-control", "no-store");
}

#[tokio::test]
async fn a_request_gets_via_and_an_answer_gets_date() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let seen = seen_from("127.0.0.1", &site, &app, "Via: 1.0 before\r\n").await;
    let via = seen.head.all("via");
    assert!(via.len() == 2 && via[0] == "1.0 before" && via[1].starts_with("1.1 hostler-"), "{via:?}");
    site.send("GET / HTTP/1.0\r\n\r\n").await.assert_ok("ok");
    let via = app.requests().pop().unwrap().field("via").unwrap();
    assert!(via.starts_with("1.0 hostler-"), "{via}");
    let date = site.get("/").await.field("date").unwrap();
    assert!(date.ends_with(" GMT") && date.len() == 29, "{date}");
}

#[tokio::test]
async fn options_and_trace_respect_max_forwards() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let ask = async |method: &str, hops: &str| {
        site.send(format!("{method} / HTTP/1.1\r\nHost: a\r\nmax-forwards: {hops}\r\n\r\n")).await
    };
    ask("TRACE", "0").await.assert_refused(405, "trace");
    ask("TRACE", "5").await.assert_refused(405, "trace");
    ask("OPTIONS", "0").await.assert_status(204);
    assert_eq!(app.requests().len(), 0);
    for (method, said, passed) in [("OPTIONS", "3", "2"), ("OPTIONS", "soon", "soon"), ("GET", "0", "0")] {
        ask(method, said).await.assert_ok("ok");
        let seen = app.requests().pop().unwrap();
        assert_eq!(seen.head.all("max-forwards"), [passed], "{method} {said}");
    }
}

#[tokio::test]
async fn trace_is_refused_unless_the_route_allows_it() {
    let app = upstream().start().await;
    let routes = "[[routes]]\nmatch = '/traced/*'\npool = 'app'\ntrace = true\n[[routes]]\nmatch = '*'\npool = 'app'\n";
    let site = crate::site(routes).with("app", &app).start().await;
    let ask = async |path: &str, fields: &str| {
        site.send(format!("TRACE {path} HTTP/1.1\r\nHost: a\r\nCookie: secret=1\r\n{fields}\r\n")).await
    };
    let answer = ask("/x", "").await;
    answer.assert_refused(405, "trace").assert_field("allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    assert!(!answer.text().contains("secret"));
    ask("/traced/x", "Max-Forwards: 0\r\n").await.assert_refused(405, "trace");
    assert_eq!(app.requests().len(), 0);
    ask("/traced/x", "Max-Forwards: 1\r\n").await.assert_ok("ok");
    assert_eq!(app.only_request().head.all("max-forwards"), ["0"]);
    ask("/traced/x", "").await.assert_ok("ok");
}

#[tokio::test]
async fn hostler_fields_of_another_hostler_are_passed_on_except_those_for_caches() {
    let app = upstream()
        .answers(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nHostler-Refusal: queue_full\r\nCache-Status: Inner; hit\r\n\
             Hostler-Cache-Control: max-age=1\r\nCDN-Cache-Control: max-age=2\r\n\r\nok",
        )
        .start()
        .await;
    let site = in_front_of(&app, "").await;
    let answer = site.get("/").await;
    answer
        .assert_ok("ok")
        .assert_field("hostler-refusal", "queue_full")
        .assert_field("cache-status", "Inner; hit");
    answer.assert_no_field("hostler-cache-control").assert_field("cdn-cache-control", "max-age=2");
}

#[tokio::test]
async fn interim_answers_of_another_hostler_have_no_fields_for_caches_either() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nHostler-Cache-Control: max-age=1\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let app = upstream().answers([interim, last].concat()).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.begin("/").await;
    let head = client.next_head().await.unwrap();
    assert_eq!(head.text(), "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
    client.answer().await.assert_ok("ok");
}

#[tokio::test]
async fn certificate_and_url_fields_of_an_untrusted_client_are_removed() {
    let app = upstream().start().await;
    let site = in_front_of(&app, TRUSTING).await;
    let hearsay = "Client-Cert: :MIIB:\r\nclient-cert-chain: :MIIB:\r\nX-SSL-Client-Verify: SUCCESS\r\n\
        X-Client-Cert: evil\r\nSSL-Client-Verify: SUCCESS\r\nX-Forwarded-Client-Cert: evil\r\n\
        X-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\nX-Client-Version: kept\r\n";
    let seen = seen_from("127.0.0.1", &site, &app, hearsay).await;
    assert_eq!(seen.head.lines()[1..3], ["X-Client-Version: kept", "X-Forwarded-For: 127.0.0.1"]);
    let seen = seen_from("127.0.0.2", &site, &app, hearsay).await;
    assert_eq!(seen.field("client-cert").as_deref(), Some(":MIIB:"), "a trusted proxy may have seen it");
    assert_eq!(seen.field("x-original-url").as_deref(), Some("/admin"));
}

#[tokio::test]
async fn underscore_names_that_shadow_hostlers_fields_reach_no_member() {
    let app = upstream().start().await;
    let config = format!(
        "{TRUSTING}\n[[routes]]\nmatch = '*'\npool = 'app'\nrequest_headers = {{ set = {{ X-User = 'me', my_key = 'ours' }} }}"
    );
    let site = in_front_of(&app, &config).await;
    let shadows = "Client_Cert: evil\r\nCLIENT_CERT_CHAIN: evil\r\nSSL_CLIENT_VERIFY: evil\r\nX_Forwarded_Proto: evil\r\n\
        X-Real_IP: evil\r\nX_Request_Id: evil\r\nHostler_Any: evil\r\nX_Geo_Country: evil\r\nTransfer_Encoding: evil\r\n\
        X_User: evil\r\nmy_own: kept\r\n";
    for from in ["127.0.0.1", "127.0.0.2"] {
        let seen = seen_from(from, &site, &app, shadows).await;
        let text = seen.head.text();
        assert!(!text.contains("evil"), "{from}: {text}");
        assert_eq!(seen.field("my_own").as_deref(), Some("kept"), "{from}");
        assert_eq!(seen.head.all("x-user"), ["me"], "{from}");
        assert_eq!(seen.head.all("my_key"), ["ours"], "{from}");
    }
}

#[tokio::test]
async fn an_empty_forwarding_field_of_a_trusted_proxy_counts_as_absent() {
    let app = upstream().start().await;
    let site = in_front_of(&app, TRUSTING).await;
    for empty in ["", " ", " ,"] {
        let names =
            ["Proto", "Host", "For", "Port", "Prefix"].map(|name| format!("X-Forwarded-{name}:{empty}\r\n"));
        let lines = format!("{}Forwarded:{empty}\r\nX-Real-IP:{empty}\r\n", names.concat());
        let seen = seen_from("127.0.0.2", &site, &app, &lines).await;
        let said: Vec<_> = seen.head.lines()[1..5].to_vec();
        assert_eq!(
            said,
            [
                "X-Forwarded-For: 127.0.0.2",
                "X-Forwarded-Proto: http",
                "X-Forwarded-Host: Site.test:99",
                &format!("X-Request-Id: {}", seen.field("x-request-id").unwrap()),
            ],
            "{empty:?}"
        );
    }
    let both =
        seen_from("127.0.0.2", &site, &app, "X-Forwarded-Proto:\r\nX-Forwarded-Proto: https\r\n").await;
    assert_eq!(both.head.all("x-forwarded-proto"), ["https"], "a line that says something stays");
}
