//! What clients get at the moment when the last member of a registered route leaves.

use hostler_testkit::{client as http_client, nats, ok, upstream, within};

use crate::registrar::{answers, client, registration, say, site_on};

#[tokio::test]
async fn a_route_that_loses_its_last_member_gives_way_without_a_refusal() {
    let Some(nats) = nats().start().await else { return };
    let (first, second) = (upstream().start().await, upstream().script(|_| ok("second")).start().await);
    for (config, other, route) in [
        ("", "a.test", "a.test/api"),
        ("keep_empty = \"0s\"", "a.test", "a.test/api"),
        ("keep_empty = \"0s\"", "*.test", "a.test"),
    ] {
        let site = site_on(&nats, config).await;
        let client = client(&nats).await;
        say(&client, "router.register", &registration(&second, &[other])).await;
        for _ in 0..3 {
            say(&client, "router.register", &registration(&first, &[route])).await;
            answers(&site, "a.test", "/api/1", "ok").await;
            let mut visitor = http_client(site.address()).await;
            say(&client, "router.unregister", &registration(&first, &[route])).await;
            within("the other route", async {
                let mut refusals = 0;
                loop {
                    visitor.send("GET /api/1 HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
                    let answer = visitor.answer().await;
                    if answer.body == b"second" {
                        break;
                    }
                    // Only a request that had found the route before it lost its member is refused.
                    refusals += usize::from(answer.status != 200);
                    assert!(refusals <= 1, "{}", answer.text());
                }
            })
            .await;
        }
    }
}
