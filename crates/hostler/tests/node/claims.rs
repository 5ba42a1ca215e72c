//! Fields by which a worker pretends to be Hostler: they reach no client, in any kind of answer.

use hostler_testkit::client;

use super::site::source;

/// Sends all fields that a worker must not send, before, in and after its answer.
const APP: &str = "
const claims = {
    'Hostler-Refusal': 'queue_full', 'Hostler-Fallback': 'x', 'hostler-anything': 'x', 'Hostler_Refusal': 'x',
    'Cache-Status': 'Hostler; hit; ttl=9', 'Hostler-Cache-Control': 'max-age=60', 'X-Kept': 'yes',
};
let count = 0;
require('node:http').createServer((request, response) => {
    if (request.url === '/hinted') response.writeEarlyHints({ link: '</a.css>; rel=preload', ...claims });
    response.writeHead(200, { ...claims, Trailer: 'Hostler-Refusal' });
    response.write(String(++count));
    response.addTrailers({ 'Hostler-Refusal': 'x', 'Cache-Status': 'x', 'X-Sum': '1' });
    response.end();
}).listen(3000);
";

#[tokio::test]
async fn hostler_fields_of_a_worker_reach_no_client() {
    let site = source(APP).started().await;
    for path in ["/", "/hinted"] {
        let answer = client(site.address()).await.get(path).await;
        answer.assert_status(200).assert_field("x-kept", "yes");
        assert_eq!(answer.interim.len(), usize::from(path == "/hinted"));
        for head in answer.interim.iter().chain([&answer.head]) {
            let text = head.text().to_lowercase();
            let names: Vec<_> =
                text.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
            let strange = |name: &&&str| name.starts_with("hostler") || name.starts_with("cache-status");
            assert_eq!(names.iter().find(strange), None, "{path}: {text}");
        }
        assert_eq!(answer.trailers, ["X-Sum: 1"]);
    }
}

#[tokio::test]
async fn cache_fields_of_a_worker_are_used_and_reach_no_client() {
    let site = source(APP).option("routes=[{match=\"*\",pool=\"app\",cache=\"standard\"}]").started().await;
    for status in ["Hostler; fwd=uri-miss; fwd-status=200; stored", "Hostler; hit; ttl="] {
        let answer = client(site.address()).await.get("/").await;
        assert!(answer.assert_ok("1").field("cache-status").unwrap().starts_with(status), "{answer:?}");
        assert_eq!(answer.head.all("cache-status").len(), 1);
        for name in ["hostler-cache-control", "hostler-refusal", "hostler_refusal", "hostler-anything"] {
            answer.assert_no_field(name);
        }
    }
}
