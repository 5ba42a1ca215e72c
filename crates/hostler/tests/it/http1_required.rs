//! A member that speaks HTTP/2 and requires HTTP/1.1 for requests, such as one that authenticates connections.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hostler_testkit::upstream;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::http2_member::{PREFACE, answer_heads};
use crate::site;

/// Serves a connection in the protocol with which it begins. HTTP/1.1 goes to this address.
async fn serve(mut connection: TcpStream, app: String, resets: Arc<AtomicUsize>) -> io::Result<()> {
    let mut first = [0; 3];
    let count = connection.peek(&mut first).await?;
    if PREFACE.starts_with(&first[..count]) {
        // RST_STREAM with HTTP_1_1_REQUIRED.
        let reset = |[a, b, c, d]: [u8; 4]| vec![0, 0, 4, 3, 0, a, b, c, d, 0, 0, 0, 13];
        return answer_heads(connection, resets, reset).await;
    }
    let mut to = TcpStream::connect(app).await?;
    copy_bidirectional(&mut connection, &mut to).await.map(|_| ())
}

#[tokio::test]
async fn a_request_for_which_its_member_requires_http_1_1_is_sent_again_in_that_with_any_method() {
    let app = upstream().start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let resets = Arc::new(AtomicUsize::new(0));
    let (counted, to) = (resets.clone(), app.address().to_owned());
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(serve(connection, to.clone(), counted.clone()));
        }
    });
    let site = site("pools.app.protocol = \"http2\"").with_member("app", &address).start().await;
    // One connection, so one thread, which keeps its connections.
    let mut client = site.connect().await;
    for _ in 0..3 {
        client.get("/").await.assert_ok("ok");
    }
    assert_eq!(app.connections(), 1);
    client.post("/post", "abc").await.assert_ok("ok");
    let last = app.requests().pop().unwrap();
    assert_eq!((last.target().as_str(), &last.body[..]), ("/post", &b"abc"[..]));
    assert_eq!((app.requests().len(), resets.load(Ordering::SeqCst)), (4, 4));
    site.says("requires HTTP/1.1 for a request (HTTP_1_1_REQUIRED)").await;
}
