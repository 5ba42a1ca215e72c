//! HTTP/2 towards clients, with a client library: requests, answers, and the end of connections.

use std::future::poll_fn;

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use hostler_testkit::{
    Frame, Site, Step, authority, eventually, frame_client, h2spec, ok, run, text, upstream, within,
};
use http::{HeaderMap, Request, Response};
use tokio::net::TcpStream;

use crate::{in_front_of, tls};

/// A client's connection.
pub(super) struct Talk {
    pub send: SendRequest<Bytes>,
}

pub(super) async fn talk(site: &Site) -> Talk {
    talk_with(site, &Builder::new()).await
}

pub(super) async fn talk_with(site: &Site, builder: &Builder) -> Talk {
    let stream = TcpStream::connect(site.address()).await.unwrap();
    let (send, connection) = builder.handshake(stream).await.unwrap();
    tokio::spawn(connection);
    Talk { send }
}

pub(super) fn get(path: &str) -> Request<()> {
    Request::get(format!("http://site.test{path}")).body(()).unwrap()
}

fn post(path: &str) -> Request<()> {
    Request::post(format!("http://site.test{path}")).body(()).unwrap()
}

impl Talk {
    pub async fn begin(&mut self, request: Request<()>, end: bool) -> (ResponseFuture, SendStream<Bytes>) {
        within("room for a stream", poll_fn(|cx| self.send.poll_ready(cx))).await.unwrap();
        self.send.send_request(request, end).unwrap()
    }

    pub async fn ask(&mut self, request: Request<()>) -> (Response<()>, Vec<u8>) {
        let (answer, _) = self.begin(request, true).await;
        whole(answer).await
    }
}

pub(super) async fn whole(answer: ResponseFuture) -> (Response<()>, Vec<u8>) {
    let (head, body) = within("an answer", answer).await.unwrap().into_parts();
    let (body, _) = read(body).await.unwrap();
    (Response::from_parts(head, ()), body)
}

async fn read(mut body: RecvStream) -> Result<(Vec<u8>, Option<HeaderMap>), h2::Error> {
    let mut bytes = Vec::new();
    while let Some(data) = within("a body", body.data()).await {
        let data = data?;
        body.flow_control().release_capacity(data.len()).unwrap();
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, body.trailers().await?))
}

#[tokio::test]
async fn a_request_reaches_the_member_as_one_of_http_1_1() {
    let app = upstream().answers("HTTP/1.1 201 Made\r\nX-Two: 2\r\nX-Two: 3\r\nConnection: X-One\r\nX-One: 1\r\nContent-Length: 2\r\n\r\nhi").start().await;
    let site = in_front_of(&app, "").await;
    let mut talk = talk(&site).await;
    let mut request = post("/a?b=c");
    for (name, value) in [("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("x-mine", "")] {
        request.headers_mut().append(name, value.parse().unwrap());
    }
    let (answer, mut body) = talk.begin(request, false).await;
    body.send_data("hel".into(), false).unwrap();
    body.send_data("lo".into(), true).unwrap();
    let (head, body) = whole(answer).await;
    assert_eq!((head.status().as_u16(), body), (201, b"hi".to_vec()));
    assert!(head.headers().get_all("x-two").iter().eq(["2", "3"]));
    assert!(head.headers().contains_key("date") && !head.headers().contains_key("x-one"), "{head:?}");

    let seen = app.only_request();
    assert_eq!(
        (seen.method(), seen.target(), seen.body.clone()),
        ("POST".into(), "/a?b=c".into(), b"hello".to_vec())
    );
    assert!(seen.field("via").unwrap().starts_with("2.0 hostler-"));
    for (name, value) in [
        ("host", Some("site.test")),
        ("cookie", Some("a=1; b=2")),
        ("content-length", Some("5")),
        ("te", None),
        ("transfer-encoding", None),
        ("x-mine", Some("")),
    ] {
        assert_eq!(seen.field(name).as_deref(), value, "{name}");
    }
    let line = site.access("/a?b=c").await;
    assert_eq!(
        (&line["protocol"], &line["status"], &line["bytes_in"]),
        (&"HTTP/2".into(), &201.into(), &5.into())
    );
}

#[tokio::test]
async fn streams_of_a_connection_wait_in_the_queue_of_the_pool() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "[pools.app]\nconcurrency = 2\n").await;
    let mut talk = talk(&site).await;
    let mut answers = Vec::new();
    for n in 0..20 {
        answers.push(talk.begin(get(&format!("/{n}")), true).await.0);
    }
    site.settles("app", 2, 18).await;
    assert_eq!(site.status().await["connections"]["open"], 1);
    app.release_all();
    for (n, answer) in answers.into_iter().enumerate() {
        assert_eq!(whole(answer).await.1, format!("/{n}").as_bytes());
    }
    assert_eq!(app.most_running(), 2);
}

#[tokio::test]
async fn large_bodies_go_both_ways_and_trailers_with_them() {
    let app = upstream()
        .script(|seen| {
            let size = seen.body.len();
            let body = format!("{size:x}\r\n{}\r\n0\r\nX-Sum: {size}\r\n\r\n", "y".repeat(size));
            text(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"))
        })
        .start()
        .await;
    for config in ["", "[[routes]]\nmatch = \"*\"\npool = \"app\"\nbuffer = \"none\"\n"] {
        let site = in_front_of(&app, config).await;
        let mut talk = talk(&site).await;
        let (answer, mut body) = talk.begin(post("/"), false).await;
        let mut left = 3_000_000;
        while left > 0 {
            body.reserve_capacity(left);
            let granted = within("room", poll_fn(|cx| body.poll_capacity(cx))).await.unwrap().unwrap();
            body.send_data(vec![b'x'; granted.min(left)].into(), false).unwrap();
            left -= granted.min(left);
        }
        let trailers = HeaderMap::from_iter([("x-end".parse().unwrap(), "here".parse().unwrap())]);
        body.send_trailers(trailers).unwrap();
        let answer = within("an answer", answer).await.unwrap();
        assert!(!answer.headers().contains_key("content-length"));
        let (body, trailers) = read(answer.into_body()).await.unwrap();
        assert!(body.len() == 3_000_000 && body.iter().all(|byte| *byte == b'y'), "{config}");
        assert_eq!(trailers.unwrap()["x-sum"], "3000000");
        let seen = app.requests().pop().unwrap();
        assert_eq!((seen.body.len(), seen.trailers), (3_000_000, vec!["x-end: here".into()]), "{config}");
    }
}

#[tokio::test]
async fn answers_without_a_body_end_with_their_head() {
    let app = upstream()
        .script(|seen| match seen.target().as_str() {
            "/204" => text("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"),
            "/304" => text("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n"),
            _ if seen.method() == "HEAD" => text("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"),
            _ => ok(""),
        })
        .start()
        .await;
    let site = in_front_of(&app, "").await;
    let mut talk = talk(&site).await;
    let head = Request::head("http://site.test/").body(()).unwrap();
    for (request, status, length) in [
        (get("/204"), 204, None),
        (get("/304"), 304, Some("7")),
        (head, 200, Some("7")),
        (get("/"), 200, Some("0")),
    ] {
        let (answer, _) = talk.begin(request, true).await;
        let answer = within("an answer", answer).await.unwrap();
        assert!(answer.body().is_end_stream(), "{answer:?}");
        assert_eq!(answer.status().as_u16(), status);
        let found = answer.headers().get("content-length").map(|value| value.to_str().unwrap());
        assert_eq!(found, length, "{status}");
    }
}

#[tokio::test]
async fn an_answer_that_the_member_truncates_resets_its_stream() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    let cut = vec![Step::Send([head, "abc"].concat().into()), Step::Hold, Step::Close];
    let broken = text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n");
    let app = upstream().in_turn([cut, broken]).start().await;
    let site = in_front_of(&app, "[pools.app]\nconcurrency = 1\n").await;
    let mut talk = talk(&site).await;
    let (answer, _) = talk.begin(get("/cut"), true).await;
    let mut body = within("an answer", answer).await.unwrap().into_body();
    assert_eq!(within("data", body.data()).await.unwrap().unwrap(), "abc");
    app.release(1);
    let error = within("the end", body.data()).await.unwrap().unwrap_err();
    assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
    assert_eq!(site.access("/cut").await["aborted"], "worker");

    let (answer, _) = talk.ask(get("/broken")).await;
    assert_eq!(answer.status(), 502, "nothing of it had been sent");
    let (answer, _) = talk.ask(get("/after")).await;
    assert_eq!(answer.status(), 200, "the connection and the slot live on");
    site.settles("app", 0, 0).await;
}

#[tokio::test]
async fn a_stream_that_is_reset_leaves_the_queue() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "[pools.app]\nconcurrency = 1\n").await;
    let mut talk = talk(&site).await;
    let (first, _) = talk.begin(get("/first"), true).await;
    app.has_seen(1).await;
    let (second, mut stream) = talk.begin(get("/second"), true).await;
    site.settles("app", 1, 1).await;
    stream.send_reset(Reason::CANCEL);
    drop(second);
    site.settles("app", 1, 0).await;
    app.release_all();
    assert_eq!(whole(first).await.1, b"/first");
    assert_eq!(app.targets(), ["/first"]);
    assert_eq!(site.access("/second").await["aborted"], "client");
}

#[tokio::test]
async fn a_stream_that_its_client_resets_before_the_answer_is_logged_with_499() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    let mut talk = talk(&site).await;
    let (_answer, mut stream) = talk.begin(get("/left"), true).await;
    app.has_seen(1).await;
    stream.send_reset(Reason::CANCEL);
    // The server has handled the reset when it answers a later request.
    let (_later, _) = talk.begin(get("/later"), true).await;
    site.settles("app", 1, 1).await;
    app.release_all();
    let line = site.access("/left").await;
    assert_eq!(
        (&line["status"], &line["refusal"], &line["aborted"], &line["bytes_out"]),
        (&499.into(), &"client_left".into(), &"client".into(), &0.into()),
        "{line}"
    );
}

#[tokio::test]
async fn a_client_that_reads_nothing_holds_no_slot_and_loses_its_stream() {
    let app = upstream().does(ok("z".repeat(500_000))).start().await;
    let site = in_front_of(&app, "[server]\nsend_timeout = \"1s\"\n").await;
    let mut talk = talk(&site).await;
    let (answer, _) = talk.begin(get("/slow"), true).await;
    let mut body = within("an answer", answer).await.unwrap().into_body();
    site.settles("app", 0, 0).await;
    let mut taken = 0;
    let error = loop {
        match within("the end", body.data()).await.expect("it is not whole") {
            Ok(data) => taken += data.len(),
            Err(error) => break error,
        }
    };
    assert!(taken < 500_000 && error.reason() == Some(Reason::CANCEL), "{taken} {error:?}");
    let line = site.access("/slow").await;
    assert_eq!(line["aborted"], "client stalled", "{line}");
    assert!(line["bytes_out"].as_u64().unwrap() < 500_000, "{line}");
    assert_eq!(talk.ask(Request::head("http://site.test/").body(()).unwrap()).await.0.status(), 200);
}

#[tokio::test]
async fn interim_answers_and_expectations_are_passed_on() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
    let app = upstream().does([text(hints), ok("ok")].concat()).start().await;
    let site = in_front_of(&app, "").await;
    let mut talk = talk(&site).await;
    let mut request = post("/");
    request.headers_mut().insert("expect", "100-continue".parse().unwrap());
    let (mut answer, mut body) = talk.begin(request, false).await;
    let interim = within("100", poll_fn(|cx| answer.poll_informational(cx))).await.unwrap().unwrap();
    assert_eq!(interim.status(), 100);
    body.send_data("hello".into(), true).unwrap();
    let interim = within("103", poll_fn(|cx| answer.poll_informational(cx))).await.unwrap().unwrap();
    assert_eq!((interim.status().as_u16(), &interim.headers()["link"]), (103, &"</a.css>".parse().unwrap()));
    assert_eq!(whole(answer).await.1, b"ok");
    assert_eq!(app.only_request().field("expect"), None);
}

#[tokio::test]
async fn a_request_over_a_limit_is_refused_and_the_connection_goes_on() {
    let app = upstream().start().await;
    let site = in_front_of(
        &app,
        "[server]\nmax_header_size = \"8KiB\"\nmax_header_fields = 10\nmax_body_size = 100\n",
    )
    .await;
    let mut talk = talk(&site).await;
    let mut large = get("/");
    large.headers_mut().insert("x-large", "x".repeat(8200).parse().unwrap());
    let mut many = get("/");
    for n in 0..11 {
        many.headers_mut().append("x-many", n.into());
    }
    let long = get(&format!("/{}", "x".repeat(8192)));
    let cases = [
        (large, 431, "header_too_large"),
        (many, 431, "too_many_fields"),
        (long, 414, "start_line_too_large"),
    ];
    for (request, status, reason) in cases {
        let (answer, _) = talk.ask(request).await;
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["hostler-refusal"]),
            (status, &reason.parse().unwrap())
        );
    }
    let (answer, mut body) = talk.begin(post("/"), false).await;
    let _ = body.send_data(vec![0; 101].into(), false);
    let (answer, _) = whole(answer).await;
    assert_eq!(answer.status(), 413);
    assert_eq!(talk.ask(get("/")).await.1, b"ok");
    assert_eq!(app.requests().len(), 1);
}

#[tokio::test]
async fn streams_over_the_limit_are_refused_and_count_as_no_request() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "[server]\nhttp2_max_streams = 2\n").await;
    let mut client = frame_client(site.address()).await;
    let request = |stream| {
        Frame::request(
            stream,
            &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")],
        )
    };
    client.send(&[Frame::new(Frame::SETTINGS, 1, 0, ""), request(1), request(3), request(5)]).await;
    let reset = client.next_of(Frame::RST_STREAM).await;
    assert_eq!((reset.stream, reset.code()), (5, 7), "REFUSED_STREAM");
    app.release_all();
    site.exchanges(2).await;
    assert_eq!(app.requests().len(), 2);
}

#[tokio::test]
async fn an_http2_preface_on_a_port_without_http2_is_refused() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "[server]\nhttp2 = false\n").await;
    site.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.assert_refused(505, "version");
}

#[tokio::test]
async fn an_idle_http2_connection_gets_goaway() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "[server]\nidle_timeout = \"1s\"\n").await;
    let mut client = frame_client(site.address()).await;
    let last = client.next_of(Frame::GOAWAY).await;
    assert_eq!(last.code(), 0);
    while client.next().await.is_some() {}
    eventually("no connection", async || (site.status().await["connections"]["open"] == 0).then_some(()))
        .await;
}

#[tokio::test]
async fn a_stop_finishes_open_streams_and_accepts_no_more() {
    let app = upstream().holds_requests().start().await;
    let mut site = in_front_of(&app, "").await;
    let mut talk = talk(&site).await;
    let (answer, _) = talk.begin(get("/held"), true).await;
    app.has_seen(1).await;
    site.terminate();
    // The client library stops sending once it is told to.
    eventually("to be told to go away", async || {
        poll_fn(|cx| std::task::Poll::Ready(talk.send.poll_ready(cx).is_ready())).await.then_some(())?;
        talk.send.send_request(get("/late"), true).is_err().then_some(())
    })
    .await;
    app.release_all();
    assert_eq!(whole(answer).await.1, b"/held");
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn h2spec_passes() {
    let Some(program) = h2spec() else { return };
    // If the body is shorter than what a case needs, the case is skipped.
    let page = "a page that is long enough for the cases that cut it into pieces";
    let app = upstream().does(ok(page)).start().await;
    let site = tls::secured(&authority(), tls::ONE).with("app", &app).start().await;
    for (address, tls) in [(site.address(), None), (site.tls_address(), Some("--tls"))] {
        let port = address.port().to_string();
        let mut arguments = vec!["-h", "127.0.0.1", "-p", &port, "-o", "10", "--strict", "--insecure"];
        arguments.extend(tls);
        let output = run(program.to_str().unwrap(), &arguments, site.folder()).await;
        let passed = output.stdout.contains("146 tests, 146 passed, 0 skipped, 0 failed");
        assert!(passed, "{tls:?} {}", output.stdout);
    }
}
