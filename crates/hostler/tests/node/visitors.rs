//! Pages that a real worker makes for each visitor, behind the cache: no visitor gets the page of another.

use std::net::Ipv4Addr;

use hostler_testkit::client_from;
use tokio::task::JoinSet;

use super::site::configured;

const APP: &str = "
require('node:http').createServer((request, response) => {
    const field = request.url.slice(1);
    response.setHeader('Cache-Control', 'max-age=60');
    response.setHeader('Vary', field);
    setTimeout(() => response.end(`${request.headers[field]}`), 5);
}).listen(3000);
";

#[tokio::test]
async fn no_visitor_gets_the_page_of_another() {
    let config = "[pools.app]\ncommand = 'node app.cjs'\nworkers = 1\nconcurrency = 4\n\
        [[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'";
    let plan = configured(config);
    std::fs::write(plan.folder().join("app.cjs"), APP).unwrap();
    let site = plan.started().await;
    for _ in 0..5 {
        let mut visits = JoinSet::new();
        for visitor in 1..=8 {
            let (ip, address) = (Ipv4Addr::new(127, 0, 0, visitor), site.address());
            visits.spawn(async move {
                client_from(ip.into(), address)
                    .await
                    .get("/x-forwarded-for")
                    .await
                    .assert_ok(&ip.to_string());
            });
        }
        visits.join_all().await;
    }
    for number in 0..5 {
        let id = format!("visit-{number}");
        let request = format!("GET /x-request-id HTTP/1.1\r\nHost: a\r\nX-Request-Id: {id}\r\n\r\n");
        site.send(request).await.assert_ok(&id);
    }
    site.says("its responses have x-request-id in Vary, which differs for each request").await;
    site.stop().await;
}
