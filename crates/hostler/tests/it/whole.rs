//! Answers in memory: sent completely and in order, at the client's speed, in every protocol and size.

use h2::client::Builder;
use hostler_testkit::{
    Client, ConnectionEnding, Site, SitePlan, authority, client_with_window, eventually, tls_clients, within,
};
use tokio::task::JoinSet;

use crate::{http2, site, tls};

/// Three sizes: one that is copied behind the head, one that is not, one that the kernel does not take at once.
const SIZES: [usize; 3] = [10, 10_000, 1 << 20];

fn body(size: usize) -> String {
    (b'a'..=b'z').cycle().take(size).map(char::from).collect()
}

fn with_routes(config: &str) -> String {
    let route = |size| format!("\n[[routes]]\nmatch = '/{size}'\nrespond = {{ file = '{size}.txt' }}\n");
    format!("{config}\n{}", SIZES.map(route).concat())
}

async fn start(plan: SitePlan) -> Site {
    for size in SIZES {
        std::fs::write(plan.folder().join(format!("{size}.txt")), body(size)).unwrap();
    }
    plan.start().await
}

async fn started(config: &str) -> Site {
    start(site(&with_routes(config))).await
}

async fn assert_all_come(client: &mut Client) {
    for size in SIZES {
        client.get(&format!("/{size}")).await.assert_ok(&body(size));
    }
    let head = "HEAD /10000 HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send(head).await;
    client.answer_to("HEAD").await.assert_field("content-length", "10000");
    client.get("/10").await.assert_ok(&body(10));
}

#[tokio::test]
async fn large_answers_arrive_whole_over_tcp_and_tls() {
    let trust = authority();
    let site = start(tls::secured(&trust, &with_routes(tls::ONE))).await;
    assert_all_come(&mut site.connect().await).await;
    assert_all_come(&mut tls_clients(&trust).connect("a.test", site.tls_address()).await).await;
}

#[tokio::test]
async fn large_answers_arrive_whole_at_a_slow_client() {
    let site = started("").await;
    let mut slow = client_with_window(4096, site.address()).await;
    assert_all_come(&mut slow).await;
}

#[tokio::test]
async fn requests_that_were_sent_together_are_answered_in_their_order() {
    let site = started("").await;
    let order = [2, 0, 1, 1, 0, 2, 1].map(|at| SIZES[at]);
    let mut client = site.connect().await;
    let requests = order.map(|size| format!("GET /{size} HTTP/1.1\r\nHost: a\r\n\r\n"));
    client.send(requests.concat()).await;
    for size in order {
        client.answer().await.assert_ok(&body(size));
    }
}

#[tokio::test]
async fn large_answers_arrive_whole_in_parallel_streams() {
    let site = started("").await;
    let mut talk = http2::talk(&site).await;
    let mut reading = JoinSet::new();
    for size in [SIZES[2], SIZES[0], SIZES[1], SIZES[2]] {
        let (answer, _) = talk.begin(http2::get(&format!("/{size}")), true).await;
        reading.spawn(async move {
            let (head, came) = http2::whole(answer).await;
            assert_eq!((head.status().as_u16(), came.len()), (200, size));
            assert_eq!(came, body(size).as_bytes());
        });
    }
    reading.join_all().await;
}

#[tokio::test]
async fn a_client_that_stops_reading_is_disconnected() {
    let site = started("server.send_timeout = '300ms'").await;
    let mut client = client_with_window(4096, site.address()).await;
    // More than all kernel buffers hold, so that some answer is taken in part.
    client.send(format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", SIZES[2]).repeat(20)).await;
    let stalled = eventually("an answer that is not taken", async || {
        site.access_lines().into_iter().find(|line| !line["aborted"].is_null())
    });
    assert_eq!(stalled.await["aborted"], "client stalled");
    assert_eq!(client.rest().await.1, ConnectionEnding::Reset);
}

#[tokio::test]
async fn a_stream_that_does_not_read_is_reset_and_the_others_go_on() {
    let site = started("server.send_timeout = '300ms'").await;
    let mut talk = http2::talk_with(&site, Builder::new().initial_window_size(10_000)).await;
    let (answer, _) = talk.begin(http2::get(&format!("/{}", SIZES[2])), true).await;
    let mut stalled = within("an answer", answer).await.unwrap().into_body();
    let error = loop {
        match within("the end", stalled.data()).await.expect("it is not whole") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.reason(), Some(h2::Reason::CANCEL));
    let path = format!("/{}", SIZES[2]);
    assert_eq!(site.access(&path).await["aborted"], "client stalled");
    assert_eq!(talk.ask(http2::get("/10")).await.1, body(10).as_bytes());
}
