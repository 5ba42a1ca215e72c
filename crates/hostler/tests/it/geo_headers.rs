//! The fields `X-Geo-*` as members get them: only Hostler writes them.

use hostler_testkit::{Seen, Site, Upstream, eventually, mmdb, text, upstream};
use serde_json::json;

use crate::http2_member::Http2Plan;
use crate::site;

/// Clients connect through a trusted proxy at 127.0.0.2, or directly.
const CONFIG: &str = "server.trusted_proxies = ['127.0.0.2']\n[geo]\ndatabases = 'places.mmdb'\ndecimals = 2\n\
    [[routes]]\nmatch = '*'\npool = 'app'\ngeo_headers = true\n\
    [[routes]]\nmatch = '/plain/*'\npool = 'app'\n\
    [[routes]]\nmatch = '/kept/*'\npool = 'app'\ngeo_headers = true\ncache = 'standard'\n";

/// Two places are known: all details of the first one, and of the second one a name that is not ASCII.
async fn placed(app: &Upstream) -> Site {
    let london = json!({
        "city": { "names": { "en": "London (Shadwell)" } },
        "country": { "iso_code": "GB", "is_in_european_union": false },
        "continent": { "code": "EU" },
        "subdivisions": [{ "iso_code": "ENG", "names": { "en": "England" } }],
        "location": { "latitude": 51.5142, "longitude": -0.0931, "time_zone": "Europe/London" },
        "postal": { "code": "EC4M 7" },
    });
    let plan = site(CONFIG).with("app", app);
    let places = mmdb("Test-City").record("81.2.69.0/24", &london);
    let places = places.city("89.160.20.0/24", &[("en", "Linköping")], "SE", (58.4167, 15.6167));
    places.write(plan.folder(), "places.mmdb");
    plan.start().await
}

/// The `X-Geo-*` fields that a member gets for a request from this address with these lines.
async fn told(site: &Site, app: &Upstream, from: &str, path: &str, lines: &str) -> Vec<String> {
    let mut client = site.connect_from(from).await;
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n")).await;
    client.answer().await.assert_ok("ok");
    geo(&app.requests().pop().unwrap())
}

fn geo(seen: &Seen) -> Vec<String> {
    let is_geo = |line: &String| line.to_ascii_lowercase().replace('_', "-").starts_with("x-geo");
    seen.head.lines().into_iter().filter(is_geo).collect()
}

/// The fields for 89.160.20.112, of which little is known.
const SWEDEN: [&str; 5] = [
    "X-Geo-City: Link%C3%B6ping",
    "X-Geo-Country: SE",
    "X-Geo-Eu: true",
    "X-Geo-Latitude: 58.42",
    "X-Geo-Longitude: 15.62",
];

#[tokio::test]
async fn a_member_gets_its_clients_place_in_headers() {
    let app = upstream().start().await;
    let site = placed(&app).await;
    let london = told(&site, &app, "127.0.0.2", "/", "X-Forwarded-For: 81.2.69.160\r\n").await;
    assert_eq!(
        london,
        [
            "X-Geo-City: London",
            "X-Geo-Region: England",
            "X-Geo-Region-Code: ENG",
            "X-Geo-Country: GB",
            "X-Geo-Continent: EU",
            "X-Geo-Eu: false",
            "X-Geo-Latitude: 51.51",
            "X-Geo-Longitude: -0.09",
            "X-Geo-Timezone: Europe/London",
            "X-Geo-Postal: EC4M%207",
        ]
    );
    // The second time the text is not made again.
    assert_eq!(told(&site, &app, "127.0.0.2", "/", "X-Forwarded-For: 81.2.69.1\r\n").await, london);
    let sweden = told(&site, &app, "127.0.0.2", "/", "X-Forwarded-For: 2002:59a0:1470::1\r\n").await;
    assert_eq!(sweden, SWEDEN);
}

#[tokio::test]
async fn geo_headers_of_clients_are_removed() {
    let app = upstream().start().await;
    let site = placed(&app).await;
    let claims = "X-Geo-City: Atlantis\r\nx-geo-planet: Mars\r\nX_Geo_Country: XX\r\nConnection: X-Geo-City, X-Geo-Eu\r\n";
    for (from, lines) in [
        // A direct client without a place, a proxy that is trusted otherwise, and a client without data.
        ("127.0.0.1", ""),
        ("127.0.0.2", ""),
        ("127.0.0.2", "X-Forwarded-For: 203.0.113.9\r\n"),
        ("127.0.0.2", "X-Forwarded-For: 8.8.8.8\r\n"),
        // The client is unknown, and it is not the address before the garbage in the field.
        ("127.0.0.2", "X-Forwarded-For: 81.2.69.160, nonsense\r\n"),
    ] {
        let told = told(&site, &app, from, "/", &format!("{lines}{claims}")).await;
        assert_eq!(told, [""; 0], "{from} {lines}");
    }
    let sweden = format!("X-Forwarded-For: 89.160.20.112\r\n{claims}");
    let told = told(&site, &app, "127.0.0.2", "/", &sweden).await;
    assert_eq!(told, SWEDEN);
}

#[tokio::test]
async fn a_route_without_geo_headers_passes_on_only_those_of_a_trusted_edge() {
    let app = upstream().start().await;
    let site = placed(&app).await;
    let claim = "X-Forwarded-For: 81.2.69.160\r\nX-Geo-City: Paris\r\n";
    assert_eq!(told(&site, &app, "127.0.0.2", "/plain/x", claim).await, ["X-Geo-City: Paris"]);
    assert_eq!(told(&site, &app, "127.0.0.1", "/plain/x", claim).await, [""; 0]);
}

#[tokio::test]
async fn the_cache_keeps_one_variant_per_country_with_any_client_fields() {
    let greets = |seen: &Seen| {
        let country = seen.field("x-geo-country").unwrap_or_default();
        text(format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: X-Geo-Country\r\nContent-Length: {}\r\n\r\n{country}",
            country.len()
        ))
    };
    let app = upstream().script(greets).start().await;
    let site = placed(&app).await;
    for (from, claims, country, calls) in [
        ("81.2.69.160", "", "GB", 1),
        ("81.2.69.1", "", "GB", 1),
        ("89.160.20.112", "", "SE", 2),
        ("89.160.20.113", "X-Geo-Country: GB\r\n", "SE", 2),
        ("8.8.8.8", "X-Geo-Country: GB\r\n", "", 3),
        ("10.0.0.1", "", "", 3),
        ("81.2.69.2", "X-Geo-Country: SE\r\n", "GB", 3),
    ] {
        let mut client = site.connect_from("127.0.0.2").await;
        client
            .send(format!("GET /kept/x HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {from}\r\n{claims}\r\n"))
            .await;
        client.answer().await.assert_ok(country);
        assert_eq!(app.requests().len(), calls, "{from} {claims}");
    }
}

#[tokio::test]
async fn an_entry_of_one_country_is_refreshed_for_that_country() {
    let greets = |seen: &Seen| {
        let country = seen.field("x-geo-country").unwrap_or_default();
        text(format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=0, stale-while-revalidate=60\r\nVary: X-Geo-Country\r\n\
             Content-Length: {}\r\n\r\n{country}",
            country.len()
        ))
    };
    let app = upstream().script(greets).start().await;
    let site = placed(&app).await;
    let asked = eventually("a refresh after the first", async || {
        let mut client = site.connect_from("127.0.0.2").await;
        client.send("GET /kept/x HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 89.160.20.1\r\n\r\n").await;
        client.answer().await.assert_ok("SE");
        let asked = app.requests();
        (asked.len() >= 2).then_some(asked)
    });
    for seen in asked.await {
        assert_eq!(geo(&seen)[0], "X-Geo-City: Link%C3%B6ping");
    }
}

#[tokio::test]
async fn a_member_in_http2_gets_geo_headers_too() {
    let member = Http2Plan::default().start(|asked| asked.ok("")).await;
    let plan = site(&format!("pools.app.protocol = 'http2'\n{CONFIG}")).with_member("app", member.address());
    let places = mmdb("Test-City").city("89.160.20.0/24", &[("en", "Link\u{f6}ping")], "SE", (58.4, 15.6));
    places.write(plan.folder(), "places.mmdb");
    let site = plan.start().await;
    let mut client = site.connect_from("127.0.0.2").await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 89.160.20.1\r\nX-Geo-City: x\r\n\r\n").await;
    client.answer().await.assert_status(200);
    let (_, fields) = member.seen().remove(0);
    assert_eq!(fields.get_all("x-geo-city").iter().collect::<Vec<_>>(), ["Link%C3%B6ping"]);
}
