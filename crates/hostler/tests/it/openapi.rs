//! Compares `/openapi.json` with the answers: every path is requested, and each answer must match its schema.

use std::collections::BTreeSet;

use hostler_testkit::{ReceivedAnswer, Site};
use serde_json::{Value, json};

use crate::geo::places;
use crate::postal::{ROWS, ask};
use crate::site;

/// Status, method, target, body.
type Request = (u16, &'static str, &'static str, &'static str);

/// Each path with requests for each of its answers.
const REQUESTS: &[(&str, &[Request])] = &[
    ("/get_city", &[(200, "GET", "/get_city", "")]),
    ("/crossdomain.xml", &[(200, "GET", "/crossdomain.xml", "")]),
    ("/status", &[(200, "GET", "/status", "")]),
    (
        "/geo",
        &[
            (200, "GET", "/geo", ""),
            (200, "GET", "/geo.csv", ""),
            (200, "GET", "/geo.geojson", ""),
            (200, "GET", "/geo?format=ndjson", ""),
            (400, "GET", "/geo?fields=x", ""),
        ],
    ),
    (
        "/geo/{ip}",
        &[
            (200, "GET", "/geo/81.2.69.160", ""),
            (200, "GET", "/geo/2a02:100::1.xml?lang=de", ""),
            (200, "GET", "/geo/10.0.0.1?fields=type,city", ""),
            (400, "GET", "/geo/1.2.3", ""),
        ],
    ),
    (
        "/geo/{ip}/{field}",
        &[
            (200, "GET", "/geo/81.2.69.160/city", ""),
            (404, "GET", "/geo/10.0.0.1/city", ""),
            (400, "GET", "/geo/x/city", ""),
        ],
    ),
    (
        "/geo/nearest-zip",
        &[
            (200, "GET", "/geo/nearest-zip", ""),
            (200, "GET", "/geo/nearest-zip.geojson?unit=mi", ""),
            (200, "GET", "/geo/nearest-zip.csv?fields=code", ""),
            (400, "GET", "/geo/nearest-zip?fields=x", ""),
        ],
    ),
    (
        "/geo/{ip}/nearest-zip",
        &[(200, "GET", "/geo/81.2.69.160/nearest-zip", ""), (404, "GET", "/geo/10.0.0.1/nearest-zip", "")],
    ),
    (
        "/geo/batch",
        &[
            (200, "POST", "/geo/batch", "[\"81.2.69.160\",\"x\"]"),
            (200, "POST", "/geo/batch.geojson", "[\"81.2.69.160\",\"x\"]"),
            (200, "POST", "/geo/batch?format=xml", "[\"81.2.69.160\",\"x\"]"),
            (400, "POST", "/geo/batch", "["),
        ],
    ),
    ("/geo/meta", &[(200, "GET", "/geo/meta", "")]),
    (
        "/api/zipinfo/byzip/{code}",
        &[
            (200, "GET", "/api/zipinfo/byzip/97209", ""),
            (200, "GET", "/api/zipinfo/byzip/09012", ""),
            (404, "GET", "/api/zipinfo/byzip/1", ""),
        ],
    ),
    (
        "/api/zipinfo/bystate/{state}",
        &[(200, "GET", "/api/zipinfo/bystate/or", ""), (404, "GET", "/api/zipinfo/bystate/zz", "")],
    ),
    (
        "/api/zipinfo/bystate/{state}/bycity/{city}",
        &[(200, "GET", "/api/zipinfo/bystate/or/bycity/portland", "")],
    ),
    (
        "/api/zipinfo/bystate/{state}/bycity/{city}/bycounty/{county}",
        &[(200, "GET", "/api/zipinfo/bystate/or/bycity/portland/bycounty/multnomah", "")],
    ),
    (
        "/postal/countries",
        &[
            (200, "GET", "/postal/countries", ""),
            (200, "GET", "/postal/countries.csv", ""),
            (200, "GET", "/postal/countries.geojson", ""),
        ],
    ),
    ("/postal/meta", &[(200, "GET", "/postal/meta", "")]),
    ("/postal/{cc}", &[(200, "GET", "/postal/us", ""), (404, "GET", "/postal/zz", "")]),
    (
        "/postal/{cc}/{code}",
        &[
            (200, "GET", "/postal/us/97209", ""),
            (200, "GET", "/postal/us/97209.geojson", ""),
            (200, "GET", "/postal/us/97209.ndjson", ""),
            (200, "GET", "/postal/us/97209.xml", ""),
            (200, "GET", "/postal/us/97209.txt", ""),
            (200, "GET", "/postal/us/or?county=multnomah", ""),
            (200, "GET", "/postal/us/09012", ""),
            (200, "GET", "/postal/de/10115", ""),
            (200, "GET", "/postal/us/97209,1", ""),
            (200, "GET", "/postal/us/or", ""),
            (404, "GET", "/postal/us/1", ""),
            (400, "GET", "/postal/us/97209?fields=x", ""),
        ],
    ),
    (
        "/postal/{cc}/{state}/{city}",
        &[(200, "GET", "/postal/us/or/portland", ""), (404, "GET", "/postal/us/or/x", "")],
    ),
    ("/postal/{cc}/{state}/{city}/{county}", &[(200, "GET", "/postal/us/or/portland/multnomah", "")]),
    (
        "/postal/{cc}/{code}/nearest",
        &[(200, "GET", "/postal/us/97209/nearest?unit=mi", ""), (404, "GET", "/postal/us/09012/nearest", "")],
    ),
    ("/postal/{cc}/{code}/distance/{codes}", &[(200, "GET", "/postal/us/97209/distance/97201,09012,1", "")]),
    (
        "/postal/{cc}/search",
        &[
            (200, "GET", "/postal/us/search?q=p", ""),
            (200, "GET", "/postal/us/search?prefix=9", ""),
            (400, "GET", "/postal/us/search", ""),
        ],
    ),
    ("/postal/{cc}/random", &[(200, "GET", "/postal/us/random", "")]),
    ("/postal/near", &[(200, "GET", "/postal/near?lat=1&lng=2", ""), (400, "GET", "/postal/near", "")]),
    (
        "/postal/batch",
        &[(200, "POST", "/postal/batch", "[\"97209\",1,\"x\"]"), (400, "POST", "/postal/batch", "[")],
    ),
    (
        "/postal/match-close",
        &[
            (200, "POST", "/postal/match-close", "[\"97209\",\"97201\"]"),
            (400, "POST", "/postal/match-close?within_km=x", "[]"),
        ],
    ),
    ("/postal/validate", &[(200, "POST", "/postal/validate", "[\"97209\",1,\"x\"]")]),
];

async fn started() -> Site {
    let plan = site(
        "server.trusted_proxies = ['127.0.0.1']\ngeo.databases = 'places.mmdb'\npostal.data = 'rows.txt'\n\
         [[routes]]\nmatch = '/v1/*'\ngeo = true\npostal = true\n\
         [[routes]]\nmatch = '/postal/*'\npostal = true\n",
    );
    places().write(plan.folder(), "places.mmdb");
    std::fs::write(plan.folder().join("rows.txt"), ROWS).unwrap();
    plan.start().await
}

#[tokio::test]
async fn every_path_in_the_description_answers_as_described() {
    let site = started().await;
    let document = site.get("/v1/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["servers"][0]["url"], "/v1");
    let described: BTreeSet<&str> =
        document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    let asked: BTreeSet<&str> = REQUESTS.iter().map(|(path, _)| *path).collect();
    assert_eq!(described, asked, "each path is described, and asked here");
    for (path, requests) in REQUESTS {
        for (status, method, target, body) in *requests {
            let fields = "X-Forwarded-For: 81.2.69.160\r\nX-Other: 10.0.0.1\r\n";
            // Only clients of a private network may ask about other addresses.
            let fields = if path.contains("{ip}") || path.contains("batch") { "" } else { fields };
            let answer = ask(&site, &format!("{method} /v1{target}"), fields, body).await;
            answer.assert_status(*status);
            let operation = &document["paths"][*path][method.to_lowercase()];
            agrees(&document, operation, &answer, target);
        }
    }
}

/// The answer is one of the operation's answers.
fn agrees(document: &Value, operation: &Value, answer: &ReceivedAnswer, target: &str) {
    let response = &operation["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{target}: {} is not described", answer.status);
    let kind = answer.field("content-type").unwrap();
    let kind = kind.split(';').next().unwrap();
    let content = &response["content"][kind];
    assert!(content.is_object(), "{target}: {kind} is not described");
    if kind.ends_with("json") && !kind.ends_with("ndjson") {
        // References lead into the document, so the schema is placed beside its components.
        let schema = json!({ "allOf": [content["schema"]], "components": document["components"] });
        let validator = jsonschema::validator_for(&schema).unwrap();
        let body = answer.json();
        let wrong: Vec<String> = validator.iter_errors(&body).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{target}: {wrong:?} in {body}");
    }
}

#[tokio::test]
async fn a_route_describes_the_services_that_it_has() {
    let site = started().await;
    let document = site.get("/postal/openapi.json").await.json();
    assert_eq!(document["servers"][0]["url"], "/");
    assert!(document["paths"]["/postal/near"].is_object() && document["paths"]["/geo"].is_null());
    let references = document.to_string();
    for part in references.split("\"$ref\":\"#/components/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(document.pointer(&format!("/components/{name}")).is_some(), "{name} is nowhere");
    }
}
