//! Hostile requests to the lookup services: each gets a clear answer, none gets a 5xx, and the next client is not affected.

use hostler_testkit::{Client, ReceivedAnswer, Site, mmdb};

use crate::site;

const ROWS: &str = "US\t97209\tPortland\tOregon\tOR\tMultnomah\t051\t\t\t45.527\t-122.6854\t4\n\
    US\t97210\tPortland\tOregon\tOR\tMultnomah\t051\t\t\t45.5303\t-122.7033\t4\n\
    US\t55401\tMinneapolis\tMinnesota\tMN\tHennepin\t053\t\t\t44.9835\t-93.2683\t4\n\
    US\t09012\tAPO AE\t\t\t\t\t\t\t49.4333\t7.6\t4\n";

/// Both services for all clients, at the root. `X-Forwarded-For` from 127.0.0.1 is trusted.
pub(crate) async fn services(server: &str) -> Site {
    let plan = site(&format!(
        "{server}\nserver.trusted_proxies = ['127.0.0.1']\n\
         [geo]\ndatabases = 'places.mmdb'\nlookups = 'public'\n[postal]\ndata = 'US.txt'\njsonp = true\n\
         [[routes]]\nmatch = '*'\ngeo = true\npostal = true\n"
    ));
    mmdb("City")
        .city("81.2.69.0/24", &[("en", "London")], "GB", (51.5, -0.1))
        .write(plan.folder(), "places.mmdb");
    std::fs::write(plan.folder().join("US.txt"), ROWS).unwrap();
    plan.start().await
}

/// The error is described in one sentence, as a problem document, and quotes at most one line of the request.
pub(crate) fn assert_clear(answer: &ReceivedAnswer, asked: &str) {
    let body = answer.text();
    assert!(body.len() < 1500, "{asked:.200}: {} bytes", body.len());
    assert!(!body.bytes().any(|byte| byte < b' ' && byte != b'\n' || byte == 0x7f), "{asked:.200}: {body:?}");
    match answer.field("content-type").as_deref() {
        Some("application/problem+json") => {
            let told = answer.json();
            assert_eq!(told["status"], answer.status, "{asked:.200}");
            assert!(told["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{asked:.200}: {told}");
        }
        Some("text/plain" | "text/plain; charset=utf-8") => assert!(!body.is_empty(), "{asked:.200}"),
        other => panic!("{asked:.200}: a problem as {other:?}: {answer:?}"),
    }
}

/// Invalid requests, and the status for each.
const WRONG: &[(&str, u16)] = &[
    ("/geo/999.1.1.1", 400),
    ("/geo/1.1.1.1%00", 400),
    ("/geo/%00", 400),
    ("/geo/%ff%fe", 400),
    ("/geo/%0d%0aSet-Cookie:x", 400),
    ("/geo/%3Cscript%3E", 400),
    ("/geo/2130706433", 400),
    ("/geo/0x7f.1", 400),
    ("/geo/fe80::1%25eth0", 400),
    ("/geo/1.1.1.1?fields=%00", 400),
    ("/geo/1.1.1.1?lang=%ff", 400),
    ("/geo/batch", 405),
    ("/postal/us/%00", 404),
    ("/postal/us/00000", 404),
    ("/postal/xx/97209", 404),
    ("/postal/us/%ff", 400),
    ("/postal/%ff/97209", 400),
    ("/postal/us/00000/nearest", 404),
    ("/postal/us/97209/nearest?limit=-1", 400),
    ("/postal/us/97209/nearest?limit=99999999999999999999", 400),
    ("/postal/us/97209/distance/97210?unit=furlong", 400),
    ("/postal/near", 400),
    ("/postal/near?lat=NaN&lng=0", 400),
    ("/postal/near?lat=91&lng=0", 400),
    ("/postal/near?lat=0&lng=1e999", 400),
    ("/postal/near?lat=0&lng=0&radius_km=inf", 400),
    ("/postal/us/search", 400),
    ("/postal/us/search?q=a&prefix=9", 400),
    ("/postal/us/search?q=%ff", 400),
    ("/postal/us/or?page=0", 400),
    ("/postal/us/or?page=18446744073709551615", 400),
    ("/postal/us/or?page=2", 404),
    ("/postal/us/or?per_page=0", 400),
    ("/postal/us/97209?format=exe", 400),
    ("/postal/us/97209?fields=nonsense", 400),
    ("/postal/batch", 405),
    ("/api/zipinfo/byzip/%00", 404),
    ("/api/zipinfo/byzip/%ff", 400),
    ("/api/zipinfo/bystate/xx", 404),
    ("/api/zipinfo/bystate/or/bycity/%00", 404),
    ("/api/zipinfo/bystate/or/bycity/portland/bycounty/nowhere", 404),
    ("/api/zipinfo/byzip/97209?callback=alert(1)", 400),
    ("/", 404),
    ("/..%2f..%2fetc/passwd", 404),
];

#[tokio::test]
async fn a_hostile_lookup_gets_an_explanation_and_the_next_request_an_answer() {
    let site = services("").await;
    let long = "9".repeat(20_000);
    let commas = ",".repeat(20_000);
    let codes = "97209,".repeat(2000);
    let words = "a&".repeat(5000);
    let endless: &[(&str, u16)] = &[
        (&format!("/geo/{long}"), 400),
        (&format!("/geo/1.1.1.1/{long}"), 404),
        (&format!("/geo/1.1.1.1?fields={long}"), 400),
        (&format!("/postal/us/{long}"), 404),
        (&format!("/postal/us/{codes}"), 400),
        (&format!("/postal/us/97209/distance/{codes}"), 400),
        (&format!("/postal/us/97209?{words}"), 400),
        (&format!("/api/zipinfo/byzip/{long}"), 404),
        (&format!("/api/zipinfo/byzip/97209?callback={long}"), 400),
        (&format!("/{commas}"), 404),
    ];
    let mut client = site.connect().await;
    for (path, status) in WRONG.iter().chain(endless) {
        let answer = client.get(path).await;
        assert_eq!(answer.status, *status, "{path:.200}: {answer:?}");
        assert_clear(&answer, path);
        client.get("/get_city").await.assert_ok("{\"city\":\"Unknown\"}\n");
    }
    assert_eq!(site.complaints(), [""; 0]);
}

#[tokio::test]
async fn a_chain_of_ten_thousand_proxies_is_not_followed() {
    let chain = |entry: &str| {
        format!(
            "GET /get_city HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {}\r\n\r\n",
            vec![entry; 10_000].join(",")
        )
    };
    // Such a head is too large to be delivered.
    services("").await.send(chain("127.0.0.1")).await.assert_refused(431, "header_too_large");

    let site = services("server.max_header_size = '1 MiB'\nserver.max_header_fields = 256").await;
    let mut client = site.connect().await;
    let cases =
        [("127.0.0.1", "Unknown", true), ("81.2.69.160", "London", false), ("nonsense", "Unknown", true)];
    for (at, (entry, city, doubtful)) in cases.into_iter().enumerate() {
        client.send(chain(entry)).await;
        client.answer().await.assert_ok(&format!("{{\"city\":\"{city}\"}}\n"));
        let line = format!("X-Forwarded-For: {entry}\r\n");
        client.send(format!("GET /geo?fields=ip HTTP/1.1\r\nHost: a\r\n{}\r\n", line.repeat(250))).await;
        let answer = client.answer().await;
        assert_eq!(answer.json()["ip"], if entry == "nonsense" { "127.0.0.1" } else { entry });
        let logged = &site.exchanges(2 * at + 2).await[2 * at..];
        assert!(
            logged.iter().all(|line| (line["client_doubtful"] == true) == doubtful),
            "{entry}: {logged:?}"
        );
    }
}

#[tokio::test]
async fn the_place_of_a_proxy_is_not_that_of_its_client() {
    let plan = site(
        "server.trusted_proxies = ['127.0.0.1', '81.2.69.160']\n\
         [geo]\ndatabases = 'places.mmdb'\n[[routes]]\nmatch = '*'\ngeo = true\n",
    );
    mmdb("City")
        .city("81.2.69.0/24", &[("en", "London")], "GB", (51.5, -0.1))
        .write(plan.folder(), "places.mmdb");
    let site = plan.start().await;
    let mut client = site.connect().await;
    for (chain, source, city) in
        [("81.2.69.160", "x-forwarded-for", Some("London")), ("nonsense, 81.2.69.160", "doubtful", None)]
    {
        let fields = format!("Host: a\r\nX-Forwarded-For: {chain}\r\n\r\n");
        client.send(format!("GET /geo HTTP/1.1\r\n{fields}")).await;
        let told = client.answer().await.json();
        assert_eq!((&told["ip"], &told["source"]), (&"81.2.69.160".into(), &source.into()), "{chain}");
        assert_eq!(told["city"].as_str(), city, "{chain}");
        client.send(format!("GET /get_city HTTP/1.1\r\n{fields}")).await;
        client.answer().await.assert_ok(&format!("{{\"city\":\"{}\"}}\n", city.unwrap_or("Unknown")));
    }
}

async fn post(client: &mut Client, path: &str, fields: &str, body: &[u8]) -> ReceivedAnswer {
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
    client.send([head.as_bytes(), body].concat()).await;
    client.answer().await
}

#[tokio::test]
async fn invalid_and_too_large_batches_get_an_explanation() {
    let site = services("").await;
    let mut client = site.connect().await;
    let lines = "97209\n".repeat(1001);
    let deep = "[".repeat(100_000);
    let list = format!("[{}1]", "1,".repeat(400_000));
    for path in ["/geo/batch", "/postal/batch", "/postal/validate"] {
        for (body, status) in [
            (lines.as_bytes(), 413),
            (list.as_bytes(), 413),
            (deep.as_bytes(), 400),
            (b"[\"97209\"", 400),
            (b"[\xff\xfe]", 400),
            (b"\xff", 400),
        ] {
            let answer = post(&mut client, path, "", body).await;
            let asked = format!("{path} {:.20}", String::from_utf8_lossy(body));
            assert_eq!(answer.status, status, "{asked}: {answer:?}");
            assert_clear(&answer, &asked);
        }
        client.get("/get_city").await.assert_status(200);
        let announced = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n");
        let refused = site.send(announced).await;
        assert_too_large(&refused, path);
        let mut endless = site.connect().await;
        endless.send(format!("POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")).await;
        let chunk = format!("40000\r\n{}\r\n", "1".repeat(0x40000));
        for _ in 0..5 {
            endless.send_some(chunk.as_bytes());
        }
        assert_too_large(&endless.answer().await, path);
        endless.assert_closed().await;

        let mut broken = site.connect().await;
        broken
            .send(format!("POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n"))
            .await;
        let answer = broken.answer().await;
        answer.assert_refused(400, "bad_body").assert_field("content-type", "application/problem+json");
        assert_clear(&answer, path);
    }
}

fn assert_too_large(answer: &ReceivedAnswer, path: &str) {
    answer
        .assert_refused(413, "body_too_large")
        .assert_field("content-type", "application/problem+json")
        .assert_says("1048576 bytes");
    assert_clear(answer, path);
    // A client that may read answers may also read errors.
    let origins = answer.field("access-control-allow-origin");
    assert_eq!(origins.as_deref(), path.starts_with("/postal").then_some("*"), "{path}");
    assert!(answer.field("x-request-id").is_some(), "{answer:?}");
}

#[tokio::test]
async fn a_bad_batch_item_gets_an_error_of_one_line() {
    // More than other routes keep of bodies in memory.
    let site = services("server.body_memory = '1 KiB'").await;
    let mut client = site.connect().await;
    let item = format!("\u{0}\u{7f}<{}>\u{1f600}", "x".repeat(900));
    let list = serde_json::to_vec(&vec![item; 1000]).unwrap();
    for path in ["/geo/batch", "/postal/batch", "/postal/validate"] {
        for accept in ["", "Accept: text/csv\r\n", "Accept: application/x-ndjson\r\n"] {
            let answer = post(&mut client, path, accept, &list).await;
            answer.assert_status(200);
            assert!(answer.body.len() < 1_000_000, "{path} {accept}: {} bytes", answer.body.len());
            let lines = answer.text().lines().count();
            let items = if accept.is_empty() { answer.json().as_array().map_or(0, Vec::len) } else { lines };
            assert!(items >= 1000, "{path} {accept}: {items}");
        }
    }
    let deep = "[".repeat(500) + &"]".repeat(500);
    let large = format!("{{\"code\":\"97209\",\"of\":[{}0]}}", "{\"\":0},".repeat(100_000));
    for path in ["/geo/batch", "/postal/batch", "/postal/validate"] {
        let answer = post(&mut client, path, "", format!("[\"97209\",{deep},{large}]").as_bytes()).await;
        let items = answer.assert_status(200).json();
        assert_eq!(items.as_array().map(Vec::len), Some(3), "{path}: {items}");
        assert_ne!(items[2]["status"], 200, "a large value is not read");
        assert_ne!(items[2]["valid"], true, "a large value is not read");
    }
    let odd = br#"["97209", null, 5, {}, {"code": 97209}, {"code": "x", "country": "\u0000"}, [], "", "81.2.69.160"]"#;
    for path in ["/geo/batch", "/postal/batch", "/postal/validate"] {
        let answer = post(&mut client, path, "", odd).await;
        assert_eq!(answer.assert_status(200).json().as_array().map(Vec::len), Some(9), "{path}: {answer:?}");
    }
}
