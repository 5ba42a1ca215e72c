//! Random requests to the lookup services: three thousand, always the same ones, and none gets a 5xx.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde_json::Value;

use crate::lookups_hostile::{assert_clear, services};

/// Pieces of paths, queries and heads, each of which has a meaning somewhere.
const BEGINNINGS: &[&str] = &[
    "",
    "/geo",
    "/geo/81.2.69.160",
    "/geo/batch",
    "/postal",
    "/postal/us",
    "/postal/us/97209",
    "/postal/us/or/portland",
    "/postal/near",
    "/postal/us/search",
    "/postal/batch",
    "/postal/validate",
    "/api/zipinfo/byzip",
    "/api/zipinfo/byzip/97209",
    "/api/zipinfo/bystate/or",
    "/get_city",
];
const SEGMENTS: &[&str] = &[
    "geo",
    "postal",
    "us",
    "US",
    "xx",
    "api",
    "zipinfo",
    "byzip",
    "bystate",
    "bycity",
    "bycounty",
    "batch",
    "validate",
    "meta",
    "near",
    "nearest",
    "nearest-zip",
    "distance",
    "search",
    "random",
    "countries",
    "get_city",
    "status",
    "crossdomain.xml",
    "openapi.json",
    "97209",
    "97209,55401",
    "00000",
    "or",
    "Oregon",
    "portland",
    "multnomah",
    "81.2.69.160",
    "::1",
    "1.1.1.1.json",
    "97209.csv",
    "97209.geojson",
    ".xml",
    "",
    "%00",
    "%ff",
    "%2e%2e",
    "..",
    "%2F",
    "%25",
    "a%0d%0ab",
    "%F0%9F%98%80",
    "'\"<>",
    "{}",
    "-1",
    "99999999999999999999",
    "1e999",
    "*",
    ",",
    ",,,,",
    "city",
    "coordinates",
    "country",
    "%u0041",
    "+",
];
const QUERIES: &[&str] = &[
    "lat=45.5",
    "lng=-122.6",
    "lat=NaN",
    "lng=1e999",
    "lat=-0",
    "limit=1",
    "limit=0",
    "limit=-1",
    "limit=%00",
    "radius_km=1",
    "radius_km=inf",
    "fields=city,code",
    "fields=country.code",
    "fields=",
    "fields=%00",
    "lang=de",
    "lang=%ff",
    "q=p",
    "q=%ff",
    "q=",
    "prefix=972",
    "prefix=",
    "format=csv",
    "format=geojson",
    "format=exe",
    "callback=f",
    "callback=alert(1)",
    "page=1",
    "page=0",
    "per_page=1000",
    "unit=mi",
    "unit=x",
    "state=or",
    "state=%00",
    "country=us",
    "country=%ff",
    "=",
    "&",
    "%",
    "a=b=c",
    "?",
];
const FIELDS: &[&str] = &[
    "Accept: */*",
    "Accept: text/csv;q=nan",
    "Accept: application/geo+json",
    "Accept: ,;=,",
    "Accept-Language: de-AT;q=2, *",
    "Accept-Encoding: br;q=-1",
    "If-None-Match: *",
    "If-None-Match: \"",
    "If-Modified-Since: yesterday",
    "Range: bytes=0-0",
    "Range: bytes=9-1",
    "Origin: null",
    "Origin: \u{e9}",
    "X-Forwarded-For: 81.2.69.160",
    "X-Forwarded-For: ,",
    "Cookie: a=b",
    "Access-Control-Request-Method: X",
    "Cache-Control: no-store, max-age=",
    "Upgrade: websocket\r\nConnection: upgrade",
];
const METHODS: &[&str] =
    &["GET", "GET", "GET", "GET", "HEAD", "POST", "POST", "OPTIONS", "PUT", "DELETE", "PATCH", "QUERY"];
const BODIES: &[&str] = &[
    "",
    "[]",
    "{}",
    "[",
    "\"97209\"",
    "97209\n55401",
    "[\"81.2.69.160\",{\"code\":\"97209\"}]",
    "\u{0}",
    "null",
];

struct Asked {
    method: &'static str,
    text: String,
}

fn asked(random: &mut Rng) -> Asked {
    let pick = |random: &mut Rng, from: &[&'static str]| from[random.usize(..from.len())];
    let mut target = pick(random, BEGINNINGS).to_owned();
    for _ in 0..random.usize(..4) {
        target += "/";
        target += pick(random, SEGMENTS);
    }
    for at in 0..random.usize(..4) {
        target += if at == 0 { "?" } else { "&" };
        target += pick(random, QUERIES);
    }
    let method = pick(random, METHODS);
    let fields: String = (0..random.usize(..3)).map(|_| format!("{}\r\n", pick(random, FIELDS))).collect();
    let body = if matches!(method, "GET" | "HEAD") { "" } else { pick(random, BODIES) };
    let text = format!(
        "{method} {target} HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    Asked { method, text }
}

#[tokio::test]
async fn random_lookup_requests_get_no_5xx() {
    let site = services("").await;
    let mut random = Rng::with_seed(6);
    let mut client = site.connect().await;
    let mut seen = BTreeMap::<u16, u32>::new();
    for _ in 0..3000 {
        let Asked { method, text } = asked(&mut random);
        client.send(&text).await;
        let answer = client.answer_to(method).await;
        assert!((200..500).contains(&answer.status), "{text}\n{answer:?}");
        *seen.entry(answer.status).or_default() += 1;
        if answer.status >= 400 && method != "HEAD" {
            assert_clear(&answer, &text);
        }
        let kind = answer.field("content-type");
        if method != "HEAD" && matches!(kind.as_deref(), Some("application/json" | "application/geo+json")) {
            let body: Result<Value, _> = serde_json::from_slice(&answer.body);
            assert!(body.is_ok(), "{text}\n{answer:?}");
        }
        if answer.field("connection").as_deref() == Some("close") {
            client = site.connect().await;
        }
    }
    // It has been asked a bit of everything.
    for status in [200, 204, 304, 400, 404, 405] {
        assert!(seen.contains_key(&status), "{seen:?}");
    }
    client.get("/get_city").await.assert_status(200);
    assert_eq!(site.complaints(), [""; 0]);
}
