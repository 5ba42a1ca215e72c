//! Lookups of postal codes: every path of the service, over real sockets, from a few rows.

use hostler_testkit::{ReceivedAnswer, Site};
use serde_json::{Value, json};

use crate::site;

/// Portland in two states and two counties, a postal area and a place with one code, a code with two places.
pub(crate) const ROWS: &str = "\
US\t97209\tPortland\tOregon\tOR\tMultnomah\t051\t\t\t45.527\t-122.6854\t4
US\t97201\tPortland\tOregon\tOR\tMultnomah\t051\t\t\t45.5078\t-122.6897\t4
US\t97229\tPortland\tOregon\tOR\tWashington\t067\t\t\t45.5483\t-122.8276\t4
US\t97005\tBeaverton\tOregon\tOR\tWashington\t067\t\t\t45.4963\t-122.8001\t4
US\t04101\tPortland\tMaine\tME\tCumberland\t005\t\t\t43.6606\t-70.2589\t4
US\t85930\tMcnary\tArizona\tAZ\tApache\t001\t\t\t34.0736\t-109.8551\t4
US\t96860\tFPO AA\t\t\t\t\t\t\t21.3448\t-157.9774\t4
US\t96860\tJbphh\tHawaii\tHI\tHonolulu\t003\t\t\t21.316\t-157.8677\t1
US\t09012\tAPO AE\t\t\t\t\t\t\t0\t0\t
DE\t10115\tBerlin\tLand Berlin\tBE\t\t00\tBerlin\t11000\t52.5323\t13.3846\t4
DE\t10115\tMitte\tLand Berlin\tBE\t\t00\tBerlin\t11000\t52.53\t13.38\t4
";
pub(crate) const EVERYWHERE: &str = "[[routes]]\nmatch = '*'\npostal = true\n";

pub(crate) async fn started(keys: &str, routes: &str) -> Site {
    let plan = site(&format!("[postal]\ndata = 'rows.txt'\n{keys}\n{routes}"));
    std::fs::write(plan.folder().join("rows.txt"), ROWS).unwrap();
    plan.start().await
}

/// A request with these fields, each with its line end, and a body.
pub(crate) async fn ask(site: &Site, line: &str, fields: &str, body: &str) -> ReceivedAnswer {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let mut client = site.connect().await;
    client.send(format!("{line} HTTP/1.1\r\nHost: a.test\r\n{fields}{length}\r\n{body}")).await;
    client.answer_to(line.split(' ').next().unwrap()).await
}

/// One value of each row of the answer.
fn each(answer: &ReceivedAnswer, name: &str) -> Vec<Value> {
    answer.assert_status(200);
    answer.json().as_array().unwrap().iter().map(|row| row[name].clone()).collect()
}

#[tokio::test]
async fn the_originals_requests_are_answered_field_by_field() {
    let site = started("", EVERYWHERE).await;
    let portland = r#"{"city":"Portland","code":"97209","county":"Multnomah","lat":45.527,"lng":-122.6854,"state":"OR"}"#;
    // The second one comes from memory.
    for _ in 0..2 {
        let answer = site.get("/api/zipinfo/byzip/97209").await;
        answer
            .assert_ok(portland)
            .assert_field("content-type", "application/json")
            .assert_field("cache-control", "public, max-age=7200")
            .assert_field("access-control-allow-origin", "*");
        assert!(answer.field("etag").unwrap().ends_with("-97209\""));
    }
    for path in [
        "/api/zipinfo/bystate/or/bycity/portland/bycounty/multnomah",
        "/api/zipinfo/bystate/OR/bycity/PORTLAND/bycounty/Multnomah%20County",
        "/api/zipinfo/bystate/oregon/bycity/Portland/bycounty/MULTNOMAH",
    ] {
        let answer = site.get(path).await;
        assert_eq!(each(&answer, "code"), ["97201", "97209"], "{path}");
        assert!(answer.text().ends_with(&format!(",{portland}]")), "a bare array");
    }
    let by_state = site.get("/api/zipinfo/bystate/or").await;
    assert_eq!(each(&by_state, "code"), ["97005", "97201", "97209", "97229"]);
    let post = site.get("/api/zipinfo/byzip/09012").await;
    post.assert_ok(r#"{"city":"APO","code":"09012","county":null,"lat":null,"lng":null,"state":"AE"}"#);
    for unknown in
        ["byzip/00000", "bystate/zz", "bystate/or/bycity/nowhere", "bystate/or/bycity/portland/bycounty/x"]
    {
        let answer = site.get(&format!("/api/zipinfo/{unknown}")).await;
        answer.assert_status(404).assert_field("content-type", "application/problem+json");
    }
}

#[tokio::test]
async fn the_original_field_names_are_available() {
    let site = started("compat_strings = true\njsonp = true", EVERYWHERE).await;
    let mcnary = r#"{"city":"MCNARY","code":"85930","county":"APACHE","lat":"+34.073600","lng":"-109.855100","state":"AZ"}"#;
    site.get("/api/zipinfo/byzip/85930").await.assert_ok(mcnary);
    site.get("/api/zipinfo/byzip/00000").await.assert_ok("null");
    site.get("/api/zipinfo/bystate/zz").await.assert_ok("[]");
    site.get("/api/zipinfo/bystate/or/bycity/nowhere").await.assert_ok("[]");
    site.get("/api/zipinfo/byzip/85930?callback=a.b$_1")
        .await
        .assert_ok(&format!("/**/a.b$_1({mcnary});"))
        .assert_field("content-type", "application/javascript; charset=utf-8")
        .assert_field("x-content-type-options", "nosniff");
    for bad in ["alert(1)//", "1a", "", "a%00", "a-b", &"a".repeat(65)] {
        site.get(&format!("/api/zipinfo/byzip/85930?callback={bad}")).await.assert_status(400);
    }
    let plain = started("", EVERYWHERE).await;
    let answer = plain.get("/api/zipinfo/byzip/85930?callback=f").await;
    assert_eq!(answer.json()["city"], "McNary", "no script if the configuration has none");
}

#[tokio::test]
async fn one_code_gives_a_record_and_several_give_a_list() {
    let site = started("", EVERYWHERE).await;
    let expected = json!({
        "country": "US", "code": "97209", "city": "Portland", "state": "OR", "state_name": "Oregon",
        "county": "Multnomah", "county_code": "051", "lat": 45.527, "lng": -122.6854, "accuracy": 4,
    });
    for path in ["/postal/us/97209", "/postal/US/97209-1234", "/postal/us/97209.json", "/postal/us/97209/"] {
        assert_eq!(site.get(path).await.json(), expected, "{path}");
    }
    let berlin = site.get("/postal/de/10115").await.json();
    assert_eq!((&berlin["city"], &berlin["others"][0]["city"]), (&json!("Berlin"), &json!("Mitte")));
    assert_eq!(site.get("/postal/us/96860").await.json()["city"], "Jbphh");
    let several = site.get("/postal/us/97209,00000,04101").await;
    assert_eq!(each(&several, "status"), [200, 404, 200]);
    assert_eq!(each(&several, "query"), ["97209", "00000", "04101"]);
    assert_eq!(each(&several, "city"), [json!("Portland"), Value::Null, json!("Portland")]);
    assert_eq!(each(&site.get("/postal/countries").await, "country"), ["DE", "US"]);
    assert_eq!(each(&site.get("/postal/us").await, "state"), ["AE", "AZ", "HI", "ME", "OR"]);
    let random = site.get("/postal/de/random").await;
    random.assert_field("cache-control", "no-store");
    assert_eq!(random.json()["code"], "10115");
    assert_eq!(site.get("/postal/meta").await.json()["places"], 10);
}

#[tokio::test]
async fn the_codes_of_a_state_are_paged() {
    let site = started("", EVERYWHERE).await;
    let mut seen = Vec::new();
    let mut path = "/postal/us/or?per_page=3&fields=code".to_owned();
    loop {
        let answer = site.get(&path).await;
        seen.extend(each(&answer, "code"));
        let link = answer.field("link").unwrap();
        let Some(next) = link.split(", ").find(|link| link.ends_with("rel=\"next\"")) else { break };
        let query = next.trim_start_matches("<?").split('>').next().unwrap();
        path = format!("/postal/us/or?{query}");
    }
    assert_eq!(seen, ["97005", "97201", "97209", "97229"]);
    site.get("/postal/us/or?page=2").await.assert_status(404);
    assert_eq!(each(&site.get("/postal/us/or/portland/washington").await, "code"), ["97229"]);
    let county = site.get("/postal/us/or?county=washington%20county&per_page=1").await;
    assert_eq!(each(&county, "code"), ["97005"]);
    assert!(
        county
            .field("link")
            .unwrap()
            .starts_with("<?county=washington%20county&per_page=1&page=2>; rel=\"next\"")
    );
    site.get("/postal/us/or?county=nowhere").await.assert_status(404).assert_says("nowhere");
    site.get("/postal/us/or?page=x").await.assert_status(400).assert_says("a number from 1 to 1000000");
}

#[tokio::test]
async fn a_conditional_postal_request_gets_a_304() {
    let site = started("", EVERYWHERE).await;
    for path in
        ["/api/zipinfo/byzip/97209", "/api/zipinfo/bystate/or", "/postal/us/97209", "/postal/us/search?q=p"]
    {
        let first = site.get(path).await;
        let (tag, date) = (first.field("etag").unwrap(), first.field("last-modified").unwrap());
        for condition in [
            format!("If-None-Match: {tag}\r\n"),
            format!("If-None-Match: \"x\", W/{tag}\r\n"),
            format!("If-Modified-Since: {date}\r\n"),
        ] {
            let again = ask(&site, &format!("GET {path}"), &condition, "").await;
            again.assert_status(304).assert_field("etag", &tag).assert_no_field("content-type");
            assert_eq!(again.field("cache-control"), first.field("cache-control"));
        }
        let stale = format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {date}\r\n");
        ask(&site, &format!("GET {path}"), &stale, "").await.assert_ok(&first.text());
        let head = ask(&site, &format!("HEAD {path}"), "", "").await;
        assert_eq!((head.status, head.field("content-length")), (200, first.field("content-length")));
        assert_eq!(head.field("etag"), Some(tag));
    }
    let csv = site.get("/postal/us/97209.csv").await;
    assert_ne!(csv.field("etag"), site.get("/postal/us/97209").await.field("etag"), "another form");
}

#[tokio::test]
async fn an_answer_has_the_requested_format_and_fields() {
    let site = started("", EVERYWHERE).await;
    let csv = "code,city\r\n97005,Beaverton\r\n97201,Portland\r\n97209,Portland\r\n97229,Portland\r\n";
    for (path, accept) in [
        ("/postal/us/or?fields=city,code", "Accept: text/csv\r\n"),
        ("/postal/us/or.csv?fields=code,city", ""),
        ("/postal/us/or?format=csv&fields=%20city,code,", "Accept: application/json\r\n"),
    ] {
        let answer = ask(&site, &format!("GET {path}"), accept, "").await;
        answer.assert_ok(csv).assert_field("content-type", "text/csv; charset=utf-8");
        assert_eq!(answer.field("vary").is_some(), !path.contains("csv"), "{path}");
    }
    let lines = site.get("/postal/us/or/portland.ndjson?fields=code").await;
    lines.assert_ok("{\"code\":\"97201\"}\n{\"code\":\"97209\"}\n{\"code\":\"97229\"}\n");
    let features = site.get("/postal/us/97209.geojson?fields=code").await.json();
    assert_eq!(features["features"][0]["geometry"]["coordinates"], json!([-122.6854, 45.527]));
    assert_eq!(features["features"][0]["properties"], json!({ "code": "97209" }));
    for (path, accept, kind) in [
        ("/postal/us/97209.xml", "", "application/xml; charset=utf-8"),
        ("/postal/us/97209", "Accept: text/xml\r\n", "application/xml; charset=utf-8"),
        ("/postal/us/97209.txt", "", "text/plain; charset=utf-8"),
        ("/postal/us/97209?format=txt", "", "text/plain; charset=utf-8"),
        ("/postal/us/97209", "Accept: text/html, application/xml;q=0.9, */*;q=0.8\r\n", "application/json"),
    ] {
        let answer = ask(&site, &format!("GET {path}"), accept, "").await;
        answer.assert_status(200).assert_field("content-type", kind);
    }
    let xml = site.get("/postal/us/97209,x.xml?fields=query&fields=code,,").await;
    let items = "<item>\n<query>97209</query>\n<code>97209</code>\n</item>\n<item>\n<query>x</query>\n<code></code>\n</item>\n";
    assert_eq!(xml.text().split_once("?>\n").unwrap().1, format!("<postal>\n{items}</postal>\n"));
    site.get("/postal/us/97209.txt?fields=code,city").await.assert_ok("code: 97209\ncity: Portland\n");
    site.get("/postal.csv?fields=country").await.assert_ok("country\r\nDE\r\nUS\r\n");
    for meta in ["/postal/meta", "/postal/meta/", "/postal/meta.json"] {
        assert_eq!(site.get(meta).await.assert_status(200).json()["countries"], 2);
    }
    assert_eq!(site.get("/postal/us/97209?fields=,").await.json()["city"], "Portland");
    site.get("/openapi.json").await.assert_status(200).assert_field("access-control-allow-origin", "*");
    site.get("/postal/us/97209?fields=zip").await.assert_status(400).assert_says("there is no \\\"zip\\\"");
}

#[tokio::test]
async fn near_codes_are_found_from_a_point_and_from_a_code() {
    let site = started("", EVERYWHERE).await;
    let near = site.get("/postal/near?lat=45.527&lng=-122.6854&limit=3").await;
    assert_eq!(each(&near, "code"), ["97209", "97201", "97005"]);
    assert_eq!(each(&near, "distance_km")[0].as_f64(), Some(0.0));
    let nearest = site.get("/postal/us/97209/nearest?radius_km=20&unit=mi").await;
    assert_eq!(each(&nearest, "code"), ["97201", "97005", "97229"]);
    assert_eq!(each(&nearest, "distance_mi")[0], 1.343);
    let all = site.get("/postal/near?lat=0&lng=0&limit=1000").await;
    assert_eq!(each(&all, "code").len(), 8, "no cap; each code once; what is nowhere is not near");
    assert_eq!(each(&site.get("/postal/near?lat=45&lng=-122&country=de").await, "code"), ["10115"]);
    let far = site.get("/postal/us/97209/distance/04101,97201,00000,09012").await;
    let distances = each(&far, "distance_km");
    assert!((distances[0].as_f64().unwrap() - 4_083.0).abs() < 30.0, "{distances:?}");
    assert_eq!(distances[2..], [Value::Null, Value::Null]);
    site.get("/postal/us/09012/nearest")
        .await
        .assert_status(404)
        .assert_says("the location of 09012 is not known");
}

#[tokio::test]
async fn a_half_typed_name_or_code_is_completed() {
    let site = started("", EVERYWHERE).await;
    let found = async |query: &str| {
        let answer = site.get(&format!("/postal/us/search?{query}")).await;
        let codes = each(&answer, "codes");
        each(&answer, "code")
            .into_iter()
            .zip(codes)
            .map(|(code, codes)| format!("{code} {codes}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(found("q=portl").await, ["\"97201\" 3", "\"04101\" 1"].map(|row| row.to_owned()));
    assert_eq!(found("q=PORTLAND+me").await, ["\"04101\" 1"]);
    assert_eq!(found("q=portland&state=oregon").await, ["\"97201\" 3"]);
    assert_eq!(found("prefix=972&limit=2").await, ["\"97201\" 1", "\"97209\" 1"]);
    assert_eq!(found("q=").await, [""; 0]);
    for bad in ["", "q=a&prefix=b", "q=a&limit=101", "q=a&limit=-1"] {
        site.get(&format!("/postal/us/search?{bad}")).await.assert_status(400);
    }
    site.get("/postal/us/search?q=a&state=zz").await.assert_status(404);
}

#[tokio::test]
async fn many_codes_are_posted_at_once() {
    let site = started("", EVERYWHERE).await;
    let body = r#"["97209", {"country":"de","code":"10115"}, "00000", 5, {"country":"fr","code":"1"}]"#;
    let answer = site.post("/postal/batch", body).await;
    assert_eq!(each(&answer, "status"), [200, 200, 404, 400, 404]);
    assert_eq!(each(&answer, "country"), [json!("US"), json!("DE"), Value::Null, Value::Null, Value::Null]);
    assert_eq!(each(&answer, "query"), ["97209", "10115", "00000", "5", "1"]);
    let lines =
        ask(&site, "POST /postal/batch?country=de", "Accept: application/x-ndjson\r\n", "10115\r\n\n97209\n")
            .await;
    assert_eq!(lines.text().lines().count(), 2);
    let valid = site.post("/postal/validate", r#"["97209-0001","99999-0001","97209-000A","9720"]"#).await;
    assert_eq!(each(&valid, "valid"), [true, true, false, false]);
    assert_eq!(each(&valid, "known"), [true, false, false, false]);
    assert_eq!(each(&valid, "code")[0], "97209");

    let close =
        site.post("/postal/match-close?within_km=5", r#"["97209","04101","97201","00000","09012"]"#).await;
    assert_eq!((each(&close, "code"), each(&close, "other")), (vec!["97209".into()], vec!["97201".into()]));
    let twice = site.post("/postal/match-close", "97209\n97201\n97209\n97201").await;
    assert_eq!(each(&twice, "other"), ["97201"], "no code is a neighbour of itself");
    site.post("/postal/match-close", format!("[{}]", vec!["\"97209\""; 201].join(",")))
        .await
        .assert_status(413);

    let many = |count: usize| format!("[{}]", vec!["\"97209\""; count].join(","));
    assert_eq!(each(&site.post("/postal/batch", many(1000)).await, "status").len(), 1000);
    site.post("/postal/batch", many(1001)).await.assert_status(413);
    site.post("/postal/batch", "97209\n".repeat(1001)).await.assert_status(413);
    site.post("/postal/batch", " ".repeat((1 << 20) + 1)).await.assert_status(413);
    for bad in ["[", "[1,", "{}", "\"97209\"", "\u{0}"] {
        let answer = site.post("/postal/batch", bad).await;
        assert!(answer.status == 400 || (bad == "\u{0}" && answer.status == 200), "{bad:?}: {answer:?}");
    }
    site.post("/postal/batch", b"[\"\xff\"]").await.assert_status(400);
    site.post("/postal/batch", "[".repeat(100_000)).await.assert_status(400);
    ask(&site, "POST /postal/batch", "Content-Length: 0\r\n", "").await.assert_status(400);
    let long = site.post("/postal/batch", format!("[\"{}\"]", "\u{e9}".repeat(1000))).await;
    assert!(long.text().len() < 1000, "the answer does not repeat a long input");
}

#[tokio::test]
async fn an_invalid_postal_request_gets_an_explanation() {
    let site = started("", EVERYWHERE).await;
    for (status, path) in [
        (404, "/postal/us/00000"),
        (404, "/postal/us/%00"),
        (404, "/postal/us/atlantis"),
        (404, "/postal/xx/1"),
        (404, "/postal/usa/97209"),
        (404, "/postal/us/or/nowhere"),
        (404, "/postal/us/or/portland/nowhere"),
        (404, "/postal/us/a/b/c/d/e"),
        (404, "/postal/us/%e2%80%ae/x"),
        (404, "/api/zipinfo/"),
        (404, "/api/zipinfo/byzip/"),
        (404, "/api/zipinfo/byzip/9720%30%30"),
        (400, "/postal/us/%ff"),
        (400, "/postal/us/97209/distance/"),
        (400, "/api/zipinfo/byzip/%ff"),
        (400, "/postal/us/97209?fields=%ff"),
        (400, "/postal/us/97209?format=exe"),
        (400, "/postal/near"),
        (400, "/postal/near?lat=NaN&lng=0"),
        (400, "/postal/near?lat=91&lng=0"),
        (400, "/postal/near?lat=1e999&lng=0"),
        (400, "/postal/near?lat=0&lng=0&radius_km=-1"),
        (400, "/postal/near?lat=0&lng=0&limit=99999999999999999999"),
        (400, "/postal/us/97209/nearest?unit=parsec"),
        (400, "/postal/us/or?page=0"),
        (400, "/postal/us/or?page=18446744073709551615"),
        (404, "/elsewhere"),
        (404, "/postalx"),
    ] {
        let answer = site.get(path).await;
        answer.assert_status(status).assert_field("content-type", "application/problem+json");
        let said = answer.json();
        assert_eq!(said["status"], status, "{path}");
        assert!(said["detail"].as_str().unwrap().len() > 10 && said["title"].is_string(), "{path}: {said}");
    }
    let codes = vec!["97209"; 101].join(",");
    site.get(&format!("/postal/us/{codes}")).await.assert_status(400);
    site.get(&format!("/postal/us/{}", "9".repeat(7000))).await.assert_status(404);
    for (line, allow) in [
        ("DELETE /postal/us/97209", "GET, HEAD, OPTIONS"),
        ("GET /postal/batch", "POST, OPTIONS"),
        ("POST /api/zipinfo/byzip/97209", "GET, HEAD, OPTIONS"),
        ("PUT /openapi.json", "GET, HEAD, OPTIONS"),
    ] {
        ask(&site, line, "", "").await.assert_status(405).assert_field("allow", allow);
    }
}

#[tokio::test]
async fn pages_of_allowed_origins_may_read_postal_answers() {
    let site = started("", EVERYWHERE).await;
    let preflight = "Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n";
    for path in ["/postal/batch", "/openapi.json"] {
        let answer = ask(&site, &format!("OPTIONS {path}"), preflight, "").await;
        answer.assert_status(204).assert_field("access-control-allow-origin", "*");
        answer.assert_field("access-control-allow-methods", "GET, HEAD, POST");
    }
    let page = ask(&site, "GET /postal/us/or?per_page=2", "Origin: https://a.example\r\n", "").await;
    assert!(page.field("link").is_some_and(|link| link.contains("rel=\"next\"")));
    page.assert_field("access-control-expose-headers", "ETag, Link");
    let site = started("cors = 'https://a.example'", EVERYWHERE).await;
    for path in ["/postal/us/97209", "/api/zipinfo/byzip/97209"] {
        for (origin, allowed) in
            [("https://a.example", true), ("https://b.example", false), ("https://a.example", true)]
        {
            let answer = ask(&site, &format!("GET {path}"), &format!("Origin: {origin}\r\n"), "").await;
            answer.assert_status(200);
            let field = answer.field("access-control-allow-origin");
            assert_eq!(field.as_deref(), allowed.then_some(origin), "{path}");
        }
    }
    let site = started("cors = []", EVERYWHERE).await;
    site.get("/api/zipinfo/byzip/97209")
        .await
        .assert_status(200)
        .assert_no_field("access-control-allow-origin");
}

#[tokio::test]
async fn the_postal_service_is_below_its_routes_path() {
    let routes =
        "[[routes]]\nmatch = '/lookup/*'\npostal = true\n[[routes]]\nmatch = '/postal/*'\npostal = true\n";
    let site = started("", routes).await;
    for path in ["/lookup/postal/us/97209", "/lookup/api/zipinfo/byzip/97209", "/postal/us/97209"] {
        assert_eq!(site.get(path).await.json()["code"], "97209", "{path}");
    }
    site.get("/postal/nothing").await.assert_status(404);
}
