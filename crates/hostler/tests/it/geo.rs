//! Lookups of addresses: every path of the service, over real sockets, from a made-up database.

use hostler_testkit::{Mmdb, ReceivedAnswer, Site, mmdb, mmdb_v4};
use serde_json::{Value, json};

use crate::site;

/// London, with a district; a town with names; a place without a city.
pub(crate) fn places() -> Mmdb {
    mmdb("Test-City")
        .city("81.2.69.0/24", &[("en", "London (Shadwell)"), ("fr", "Londres")], "GB", (51.5143, -0.09123))
        .city("2a02:100::/32", &[("en", "Munich"), ("de", "M\u{fc}nchen")], "DE", (48.137, 11.575))
        .city("67.43.156.0/24", &[], "BT", (27.5, 90.5))
}

/// A site that trusts `X-Forwarded-For` of its clients, with these keys of `[geo]`.
pub(crate) async fn started(keys: &str, routes: &str) -> Site {
    let plan = site(&format!(
        "server.trusted_proxies = ['127.0.0.1']\n[geo]\ndatabases = 'places.mmdb'\n{keys}\n{routes}"
    ));
    places().write(plan.folder(), "places.mmdb");
    plan.start().await
}

const EVERYWHERE: &str = "[[routes]]\nmatch = '*'\ngeo = true\n";

async fn ask(site: &Site, from: &str, line: &str, fields: &str, body: &str) -> ReceivedAnswer {
    let length = format!("Content-Length: {}\r\n", body.len());
    let mut client = site.connect().await;
    client
        .send(format!(
            "{line} HTTP/1.1\r\nHost: a.test\r\nX-Forwarded-For: {from}\r\n{fields}{length}\r\n{body}"
        ))
        .await;
    client.answer_to(line.split(' ').next().unwrap()).await
}

async fn get(site: &Site, from: &str, path: &str) -> ReceivedAnswer {
    ask(site, from, &format!("GET {path}"), "", "").await
}

#[tokio::test]
async fn requests_to_the_original_service_get_the_same_answers() {
    let site = started("", EVERYWHERE).await;
    for (from, city) in [
        ("81.2.69.160", "London"),
        ("::ffff:81.2.69.160", "London"),
        ("2002:5102:45a0::1", "London"),
        ("2a02:100::1", "Munich"),
        ("67.43.156.1", "Unknown"),
        ("9.9.9.9", "Unknown"),
        ("10.1.1.1", "Unknown"),
        ("127.0.0.1", "Unknown"),
    ] {
        let answer = get(&site, from, "/get_city?x=1").await;
        answer.assert_ok(&format!("{{\"city\":\"{city}\"}}\n"));
        answer.assert_field("content-type", "text/plain");
        answer.assert_field("cache-control", "private, no-store");
    }
    let xml = get(&site, "9.9.9.9", "/crossdomain.xml").await;
    xml.assert_status(200).assert_says("<allow-access-from domain=\"*\" />");
    xml.assert_field("content-type", "text/xml");
    let missing = get(&site, "9.9.9.9", "/nothing").await;
    missing.assert_status(404).assert_field("content-type", "text/plain");
    assert_eq!(missing.text(), "File not found.\n");
    for status in 1..=2 {
        let counters = get(&site, "9.9.9.9", "/status").await;
        counters.assert_ok(&format!("{{\"cities\":8,\"xmls\":1,\"fnf\":1,\"status\":{status}}}\n"));
        counters.assert_field("content-type", "text/plain");
    }
}

#[tokio::test]
async fn a_caller_gets_its_own_place_in_an_uncacheable_answer() {
    let site = started("", EVERYWHERE).await;
    let answer = get(&site, "81.2.69.160", "/geo").await;
    answer.assert_status(200).assert_field("cache-control", "private, no-store").assert_no_field("etag");
    let expected = json!({
        "ip": "81.2.69.160", "network": "81.2.69.0/24",
        "city": "London", "district": "Shadwell", "region": { "code": null, "name": null },
        "country": { "code": "GB", "name": null, "eu": false }, "continent": null,
        "lat": 51.5143, "lng": -0.0912, "accuracy_km": null, "timezone": null, "postal": null,
        "type": "global", "source": "x-forwarded-for",
    });
    assert_eq!(answer.json(), expected);
    let own = site.get("/geo?fields=ip,type,source").await;
    assert_eq!(own.json(), json!({ "ip": "127.0.0.1", "type": "loopback", "source": "socket" }));
    assert_eq!(get(&site, "2a02:100::1", "/geo/city?lang=de").await.text(), "M\u{fc}nchen\n");
    assert_eq!(get(&site, "2a02:100::1", "/geo/country").await.text(), "DE\n");
}

#[tokio::test]
async fn an_address_is_looked_up_in_the_requested_format() {
    let site = started("decimals = 2", EVERYWHERE).await;
    let text = async |path: &str| site.get(path).await.assert_status(200).text();
    assert_eq!(site.get("/geo/81.2.69.160").await.json()["lng"], json!(-0.09));
    assert_eq!(site.get("/geo/2a02:100::1").await.json()["country"]["eu"], json!(true));
    assert_eq!(site.get("/geo/%32a02:100::1?lang=fr,de").await.json()["city"], "M\u{fc}nchen");
    assert_eq!(site.get("/geo/81.2.69.160").await.json().get("source"), None);
    assert_eq!(text("/geo/81.2.69.160/city").await, "London\n");
    assert_eq!(text("/geo/81.2.69.160/coordinates").await, "51.51,-0.09\n");
    assert_eq!(text("/geo/81.2.69.160/network").await, "81.2.69.0/24\n");
    assert_eq!(
        text("/geo/81.2.69.160.txt?fields=city,country.code").await,
        "city: London\ncountry.code: GB\n"
    );
    assert_eq!(text("/geo/81.2.69.160.csv?fields=city,lat").await, "city,lat\r\nLondon,51.51\r\n");
    let xml = text("/geo/81.2.69.160.xml?fields=city,country.code").await;
    assert!(xml.contains("<city>London</city>\n<country>\n<code>GB</code>\n</country>\n"), "{xml}");
    assert_eq!(
        text("/geo/81.2.69.160?format=csv&fields=city&fields=ip,").await,
        "ip,city\r\n81.2.69.160,London\r\n"
    );
    assert_eq!(text("/geo/81.2.69.160.ndjson?fields=city").await, "{\"city\":\"London\"}\n");
    let feature = site.get("/geo/81.2.69.160.geojson?fields=city").await;
    feature.assert_field("content-type", "application/geo+json");
    let point = json!({ "type": "Point", "coordinates": [-0.09, 51.51] });
    let expected = json!({ "type": "Feature", "geometry": point, "properties": { "city": "London" } });
    assert_eq!(feature.json(), expected);
    assert_eq!(site.get("/geo/10.0.0.1.geojson").await.json()["geometry"], Value::Null);
    let browser = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";
    let shown = ask(&site, "127.0.0.1", "GET /geo/81.2.69.160?fields=ip", browser, "").await;
    shown.assert_ok("{\"ip\":\"81.2.69.160\"}\n");
    let by_accept =
        ask(&site, "127.0.0.1", "GET /geo/81.2.69.160?fields=ip", "Accept: text/csv\r\n", "").await;
    by_accept.assert_ok("ip\r\n81.2.69.160\r\n").assert_field("content-type", "text/csv; charset=utf-8");
    let french = "Accept-Language: fr-CH, en;q=0.5\r\n";
    let french = ask(&site, "127.0.0.1", "GET /geo/81.2.69.160/city", french, "").await;
    french.assert_ok("Londres\n").assert_field("vary", "Accept, Accept-Language");
}

#[tokio::test]
async fn a_bad_lookup_request_gets_an_explanation() {
    let site = started("", EVERYWHERE).await;
    for (path, status, says) in [
        ("/geo/localhost", 400, "is not an IP address"),
        ("/geo/010.0.0.1", 400, "is not an IP address"),
        ("/geo/127.1", 400, "is not an IP address"),
        ("/geo/fe80::1%25eth0", 400, "is not an IP address"),
        ("/geo/%00", 400, "is not an IP address"),
        ("/geo/%ff%fe", 400, "is not an IP address"),
        ("/geo/1.1.1.1/secret", 404, "there is no \\\"secret\\\"; there are ip, network, city"),
        ("/geo/9.9.9.9/city", 404, "not known for this address"),
        ("/geo/1.1.1.1?fields=ip,nonsense", 400, "there is no \\\"nonsense\\\""),
        ("/geo/1.1.1.1?lang=%ff", 400, "not percent-encoded UTF-8"),
        ("/geo/1.1.1.1?format=exe", 400, "is not one of json, ndjson, csv, geojson, xml, txt"),
        ("/geo/1.1.1.1/city/x", 404, "below /geo"),
        ("/geo/nearest-zip", 404, "no postal codes on this route"),
    ] {
        let answer = site.get(path).await;
        answer.assert_status(status).assert_field("content-type", "application/problem+json");
        answer.assert_says(says);
        assert_eq!(answer.json()["status"], status, "{path}");
    }
    for path in ["/geology", "/GET_CITY", "/get_city/"] {
        site.get(path).await.assert_status(404).assert_says("File not found.");
    }
    let long = format!("/geo/{}", "1".repeat(30_000));
    assert!(site.get(&long).await.assert_status(400).body.len() < 250);
}

#[tokio::test]
async fn a_batch_answers_each_item_with_a_place_or_an_error() {
    let site = started("", EVERYWHERE).await;
    let post = async |query: &str, fields: &str, body: &str| {
        ask(&site, "127.0.0.1", &format!("POST /geo/batch{query}"), fields, body).await
    };
    let list = "[\"81.2.69.160\", \"nonsense\", 5, \"10.0.0.1\"]";
    let answer = post("?fields=ip,city,type", "", list).await;
    answer.assert_field("cache-control", "private, no-store");
    let expected = json!([
        { "ip": "81.2.69.160", "city": "London", "type": "global" },
        { "ip": "nonsense", "error": "\"nonsense\" is not an IP address" },
        { "ip": "5", "error": "\"5\" is not an IP address" },
        { "ip": "10.0.0.1", "city": null, "type": "private" },
    ]);
    assert_eq!(answer.json(), expected);
    let lines =
        post("?fields=city", "Accept: application/x-ndjson\r\n", "81.2.69.160\n\n2a02:100::1\n").await;
    lines.assert_ok("{\"city\":\"London\"}\n{\"city\":\"Munich\"}\n");
    lines.assert_field("content-type", "application/x-ndjson");
    let csv = post("?fields=ip,city", "Accept: text/csv\r\n", "81.2.69.160\nx,y\n").await;
    csv.assert_ok("ip,city,error\r\n81.2.69.160,London,\r\n,,\"\"\"x,y\"\" is not an IP address\"\r\n");
    let xml = post(".xml?fields=ip", "", "81.2.69.160\n<x>\n").await;
    let items = "<geo>\n<ip>81.2.69.160</ip>\n</geo>\n<geo>\n<ip>&lt;x&gt;</ip>\n<error>\"&lt;x&gt;\" is not an IP address</error>\n</geo>\n";
    assert_eq!(xml.text().split_once("?>\n").unwrap().1, format!("<batch>\n{items}</batch>\n"));
    let text = post("?format=txt&fields=ip,city", "", "81.2.69.160\nx\n").await;
    text.assert_ok("ip: 81.2.69.160\ncity: London\n\nip: x\nerror: \"x\" is not an IP address\n");
    let places = post("?format=geojson&fields=ip", "", "81.2.69.160\nx\n").await.json();
    assert_eq!(places["features"][0]["geometry"]["coordinates"], json!([-0.0912, 51.5143]));
    assert_eq!(places["features"][1]["properties"]["ip"], "x");
    post("", "", "[]").await.assert_ok("[]\n");
    let thousand: Vec<Value> = (0..1000).map(|at| json!(format!("81.2.69.{}", at % 256))).collect();
    let answer = post("", "", &Value::from(thousand).to_string()).await;
    assert_eq!(answer.json().as_array().unwrap().len(), 1000);
}

#[tokio::test]
async fn an_invalid_or_too_large_batch_is_refused() {
    let site = started("", EVERYWHERE).await;
    let many = "1.1.1.1\n".repeat(1001);
    for (body, status, says) in [
        ("", 400, "the body has no addresses"),
        ("{\"ip\":\"1.1.1.1\"}", 400, "not a JSON list"),
        ("[\"1.1.1.1\"", 400, "not a JSON list"),
        (&many, 413, "1001 addresses are too many; send at most 1000 in one request"),
    ] {
        let answer = ask(&site, "127.0.0.1", "POST /geo/batch", "", body).await;
        answer.assert_status(status).assert_says(says);
    }
    let large = site.send("POST /geo/batch HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n").await;
    large.assert_refused(413, "body_too_large");
    site.get("/get_city").await.assert_status(200);
}

#[tokio::test]
async fn lookups_of_other_addresses_are_allowed_as_configured() {
    let ask_all = async |site: &Site, from: &str| {
        let one = get(site, from, "/geo/81.2.69.160").await;
        let many = ask(site, from, "POST /geo/batch", "", "81.2.69.160").await;
        assert_eq!(one.status, many.status);
        one
    };
    let near = started("", EVERYWHERE).await;
    let answer = ask_all(&near, "10.1.2.3").await;
    answer.assert_status(200).assert_field("cache-control", "private, max-age=3600");
    ask_all(&near, "fd00::1").await.assert_status(200);
    ask_all(&near, "9.9.9.9").await.assert_status(403).assert_says("only for clients of its own network");
    // A chain that breaks off ends at a proxy, and the proxy's place is not the client's.
    ask_all(&near, "nonsense").await.assert_status(403);
    get(&near, "81.2.69.1", "/geo/city").await.assert_ok("London\n");

    let public = started("lookups = 'public'\nmax_age = '1m'", EVERYWHERE).await;
    let answer = ask_all(&public, "9.9.9.9").await;
    answer.assert_status(200).assert_field("cache-control", "public, max-age=60");

    let off = started("lookups = 'off'", EVERYWHERE).await;
    ask_all(&off, "127.0.0.1").await.assert_status(403).assert_says("does not look up other addresses");
}

#[tokio::test]
async fn methods_and_conditions_follow_http() {
    let site = started("", EVERYWHERE).await;
    let send = async |line: &str, fields: &str| ask(&site, "127.0.0.1", line, fields, "").await;
    let whole = send("GET /geo/81.2.69.160", "").await;
    let tag = whole.field("etag").unwrap();
    let head = send("HEAD /geo/81.2.69.160", "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    head.assert_field("content-length", &whole.body.len().to_string()).assert_field("etag", &tag);
    for known in [tag.clone(), format!("\"other\", W/{tag}"), "*".into()] {
        let unchanged = send("GET /geo/81.2.69.160", &format!("If-None-Match: {known}\r\n")).await;
        unchanged.assert_status(304).assert_field("etag", &tag).assert_no_field("content-type");
        unchanged.assert_field("cache-control", "private, max-age=3600");
    }
    send("GET /geo/81.2.69.161", &format!("If-None-Match: {tag}\r\n")).await.assert_status(200);
    for (path, allow) in
        [("/get_city", "GET, HEAD, OPTIONS"), ("/geo", "GET, HEAD, OPTIONS"), ("/geo/batch", "POST, OPTIONS")]
    {
        send(&format!("DELETE {path}"), "").await.assert_status(405).assert_field("allow", allow);
        let options = send(&format!("OPTIONS {path}"), "").await;
        options.assert_status(204).assert_field("allow", allow);
        options.assert_no_field("access-control-allow-origin");
    }
    send("GET /geo/batch", "").await.assert_status(405);
}

#[tokio::test]
async fn pages_of_allowed_origins_may_read_answers() {
    let origin = |origin: &str| format!("Origin: {origin}\r\n");
    let some = started("cors = ['https://a.test', 'https://b.test:8443']", EVERYWHERE).await;
    let answer = ask(&some, "9.9.9.9", "GET /get_city", &origin("https://b.test:8443"), "").await;
    answer.assert_field("access-control-allow-origin", "https://b.test:8443").assert_field("vary", "Origin");
    let other = ask(&some, "9.9.9.9", "GET /get_city", &origin("https://c.test"), "").await;
    other.assert_status(200).assert_no_field("access-control-allow-origin").assert_field("vary", "Origin");
    let preflight = format!("{}Access-Control-Request-Method: POST\r\n", origin("https://a.test"));
    let preflight = ask(&some, "9.9.9.9", "OPTIONS /geo/batch", &preflight, "").await;
    preflight.assert_status(204).assert_field("access-control-allow-methods", "GET, HEAD, POST");

    let all = started("cors = '*'", EVERYWHERE).await;
    let answer = ask(&all, "9.9.9.9", "GET /geo", &origin("null"), "").await;
    answer.assert_field("access-control-allow-origin", "*");
    let unknown = ask(&all, "9.9.9.9", "GET /nothing", &origin("null"), "").await;
    unknown.assert_status(404).assert_field("access-control-allow-origin", "*");
    let none =
        ask(&started("", EVERYWHERE).await, "9.9.9.9", "GET /geo", &origin("https://a.test"), "").await;
    none.assert_no_field("access-control-allow-origin");
}

#[tokio::test]
async fn a_page_may_read_why_a_lookup_is_over_the_rate_limit() {
    let limited = format!("{EVERYWHERE}rate_limit = {{ requests = 1, per = '1h' }}\n");
    let site = started("cors = ['https://a.test']", &limited).await;
    let origin = "Origin: https://a.test\r\n";
    ask(&site, "9.9.9.9", "GET /geo", origin, "").await.assert_status(200);
    let refused = ask(&site, "9.9.9.9", "GET /geo", origin, "").await;
    refused
        .assert_refused(429, "rate_limited")
        .assert_field("content-type", "application/problem+json")
        .assert_field("access-control-allow-origin", "https://a.test")
        .assert_field("access-control-expose-headers", "Retry-After")
        .assert_says("too many requests");
    assert!(refused.field("retry-after").is_some(), "{refused:?}");
}

#[tokio::test]
async fn an_error_of_a_lookup_is_not_stored_on_a_route_that_sets_cache_control() {
    let fields = "Cache-Control = 'public, max-age=600', CDN-Cache-Control = 'max-age=600'";
    let site = started("", &format!("{EVERYWHERE}response_headers = {{ set = {{ {fields} }} }}\n")).await;
    let found = site.get("/geo/81.2.69.160").await;
    found.assert_status(200).assert_field("cache-control", "public, max-age=600");
    for (path, status) in [("/geo/x", 400), ("/geo/10.0.0.1/city", 404), ("/nothing", 404)] {
        let error = site.get(path).await;
        error.assert_status(status).assert_field("cache-control", "no-store");
        error.assert_no_field("cdn-cache-control");
    }
}

#[tokio::test]
async fn lookup_paths_are_below_the_routes_path() {
    let routes = "[[routes]]\nmatch = '/lookup/*'\ngeo = true\n[[routes]]\nmatch = '/geo/*'\ngeo = true\n
        [[routes]]\nmatch = '/get_city'\ngeo = true\n[[routes]]\nmatch = '/get_city/*'\nrespond = 'other'\n";
    let site = started("", routes).await;
    for path in ["/lookup/get_city", "/get_city", "/geo/get_city", "/%6Cookup/x/../get_city"] {
        site.get(path).await.assert_ok("{\"city\":\"Unknown\"}\n");
    }
    for path in ["/lookup/geo/81.2.69.160/city", "/geo/81.2.69.160/city", "/lookup/./geo/81.2.69.160/city"] {
        site.get(path).await.assert_ok("London\n");
    }
    assert_eq!(site.get("/geo/status").await.json()["cities"], 4);
    site.get("/lookup").await.assert_status(404);
    site.get("/get_city/x").await.assert_ok("other");
    assert_eq!(site.status().await["routes"][0]["target"], "geo");
}

#[tokio::test]
async fn the_data_version_and_its_attribution_are_shown() {
    let site = started("", EVERYWHERE).await;
    let meta = site.get("/geo/meta").await.json();
    let database = &meta["databases"][0];
    assert_eq!((&database["file"], &database["type"]), (&json!("places.mmdb"), &json!("Test-City")));
    assert_eq!((&database["schema"], &database["ip_version"]), (&json!("nested"), &json!(6)));
    assert_eq!((&meta["attribution"], &meta["reloads"]), (&Value::Null, &json!(0)));

    let plan = site_of_two();
    mmdb_v4("dbip city").flat("81.2.69.0/24", "London", "GB", (51.5, -0.1)).write(plan.folder(), "v4.mmdb");
    mmdb("city").flat("2a02:100::/32", "Munich", "DE", (48.1, 11.5)).write(plan.folder(), "dbip-v6.mmdb");
    let two = plan.start().await;
    let meta = two.get("/geo/meta").await.json();
    let thanks = meta["attribution"].as_str().unwrap();
    assert!(thanks.contains("https://db-ip.com") && thanks.contains("CC BY 4.0"), "{thanks}");
    assert_eq!(two.get("/geo/81.2.69.160/country").await.text(), "GB\n");
    assert_eq!(two.get("/geo/2a02:100::1/city").await.text(), "Munich\n");
}

#[tokio::test]
async fn a_geo_answer_contains_the_nearest_postal_code() {
    let plan = site(
        "server.trusted_proxies = ['127.0.0.1']
        [geo]
        databases = 'places.mmdb'
        [postal]
        data = 'US.txt'
        [[routes]]
        match = '/x/*'
        geo = true
        postal = true",
    );
    let portland = mmdb("City").city("9.9.9.0/24", &[("en", "Portland")], "US", (45.52, -122.68));
    portland.city("67.43.156.0/24", &[], "BT", (91.0, 0.0)).write(plan.folder(), "places.mmdb");
    let rows = [
        "US\t97209\tPortland\tOregon\tOR\tMultnomah\t051\t\t\t45.527\t-122.6854\t4",
        "US\t10001\tNew York\tNew York\tNY\tNew York\t061\t\t\t40.7484\t-73.9967\t4",
    ];
    std::fs::write(plan.folder().join("US.txt"), rows.join("\n")).unwrap();
    let site = plan.start().await;
    let own = get(&site, "9.9.9.9", "/x/geo/nearest-zip").await;
    own.assert_status(200).assert_says("97209").assert_field("cache-control", "private, no-store");
    let named = site.get("/x/geo/9.9.9.9/nearest-zip").await;
    named.assert_status(200).assert_says("97209").assert_field("cache-control", "private, max-age=3600");
    site.get("/x/geo/nearest-zip").await.assert_status(404).assert_says("is not known");
    get(&site, "67.43.156.1", "/x/geo/nearest-zip").await.assert_status(404);
    site.get("/x/api/zipinfo/byzip/97209").await.assert_status(200);
    site.get("/x/nothing").await.assert_status(404).assert_says("File not found.");
    assert_eq!(site.status().await["routes"][0]["target"], "geo, postal");
}

fn site_of_two() -> hostler_testkit::SitePlan {
    site(&format!("[geo]\ndatabases = ['v4.mmdb', 'dbip-v6.mmdb']\n{EVERYWHERE}"))
}
