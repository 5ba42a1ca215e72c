//! How a connection parses the bytes that a member sends, all at once and byte by byte: one table. Knows no proxy.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::future::poll_fn;
use std::time::Duration;

use hostler_wire::{CallError, Limits, MemberConnection, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    /// The statuses of all heads, interim ones first.
    heads: Vec<u16>,
    body: String,
    trailers: Vec<String>,
    error: Option<String>,
    /// Another call may follow on the connection.
    reusable: bool,
}

fn whole(heads: &[u16], body: &str) -> Outcome {
    Outcome { heads: heads.to_vec(), body: body.into(), trailers: vec![], error: None, reusable: true }
}

impl Outcome {
    fn not_reusable(mut self) -> Self {
        self.reusable = false;
        self
    }

    fn with_trailers(mut self, lines: &[&str]) -> Self {
        self.trailers = lines.iter().map(|line| (*line).to_owned()).collect();
        self
    }

    fn broken(mut self, error: &str) -> Self {
        self.error = Some(error.to_owned());
        self.not_reusable()
    }
}

fn refused(error: &str) -> Outcome {
    whole(&[], "").broken(error)
}

async fn outcome(bytes: &[u8], piece: usize, to_head: bool) -> Outcome {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let sent = bytes.to_vec();
    let member = tokio::spawn(async move {
        // Closing a socket with unread bytes resets the connection, which is another case.
        theirs.read_exact(&mut [0; REQUEST.len()]).await.unwrap();
        for part in sent.chunks(piece) {
            // The reader may have closed after enough bytes.
            let _ = theirs.write_all(part).await;
            tokio::task::yield_now().await;
        }
    });
    let mut connection = MemberConnection::new(Stream::Unix(ours));
    connection.start().extend_from_slice(REQUEST);
    poll_fn(|cx| connection.poll_send(cx)).await;
    let mut outcome = whole(&[], "");
    let called =
        timeout(Duration::from_secs(30), call(&mut connection, to_head, &mut outcome)).await.unwrap();
    outcome.error = called.err().map(|error| error.to_string());
    outcome.reusable = outcome.error.is_none() && connection.is_reusable(tokio::time::Instant::now());
    member.await.unwrap();
    outcome
}

async fn call(
    connection: &mut MemberConnection,
    to_head: bool,
    outcome: &mut Outcome,
) -> Result<(), CallError> {
    loop {
        poll_fn(|cx| connection.poll_head(cx, &Limits::default(), to_head)).await?;
        outcome.heads.push(connection.head().status);
        if !connection.head().is_interim() {
            break;
        }
    }
    let mut body = Vec::new();
    let read = loop {
        match poll_fn(|cx| connection.poll_body(cx, &mut body, 1000)).await {
            Ok(false) => {}
            Ok(true) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    outcome.body = String::from_utf8(body).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let trailers = connection.trailers().into_iter().flat_map(|fields| fields.iter());
    outcome.trailers = trailers.map(|(_, name, value)| format!("{}: {}", text(name), text(value))).collect();
    read
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const CLOSED: &str = "connection closed before a response";
const CUT: &str = "connection closed in the middle of the response's body";

fn malformed(what: &str) -> Outcome {
    refused(&format!("malformed response: {what}"))
}

type Case = (String, Outcome);

fn good_answers() -> Vec<Case> {
    vec![
        (format!("{OK}Content-Length: 2\r\n\r\nok"), whole(&[200], "ok")),
        (format!("{OK}Content-Length: 0\r\n\r\n"), whole(&[200], "")),
        (format!("{OK}Content-Length: 2\r\nConnection: close\r\n\r\nok"), whole(&[200], "ok").not_reusable()),
        ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok".into(), whole(&[200], "ok").not_reusable()),
        (format!("{OK}\r\nto the end"), whole(&[200], "to the end").not_reusable()),
        (format!("{CHUNKED}2\r\nok\r\n3;x=y\r\nay!\r\n0\r\n\r\n"), whole(&[200], "okay!")),
        (format!("{CHUNKED}0\r\nX-Sum: 9\r\n\r\n"), whole(&[200], "").with_trailers(&["X-Sum: 9"])),
        ("HTTP/1.1 204 No Content\r\n\r\n".into(), whole(&[204], "")),
        ("HTTP/1.1 999 Request denied\r\nContent-Length: 0\r\n\r\n".into(), whole(&[999], "")),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n".into(), whole(&[304], "")),
        (
            format!(
                "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n{OK}Content-Length: 2\r\n\r\nok"
            ),
            whole(&[103, 100, 200], "ok"),
        ),
        // More bytes than announced.
        (format!("{OK}Content-Length: 2\r\n\r\nok{OK}\r\n"), whole(&[200], "ok").not_reusable()),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok".into(), whole(&[204], "").not_reusable()),
        // They may still come.
        ("HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n".into(), whole(&[204], "").not_reusable()),
        (
            "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
            whole(&[204], "").not_reusable(),
        ),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n".into(), whole(&[204], "")),
    ]
}

fn bad_heads() -> Vec<Case> {
    vec![
        (String::new(), refused(CLOSED)),
        ("HTTP/1.1 200".into(), refused(CLOSED)),
        (format!("{OK}Content-Length: 2\r\n"), refused(CLOSED)),
        ("HTTP/1.1 100 Continue\r\n\r\n".into(), whole(&[100], "").broken(CLOSED)),
        // Start lines.
        ("garbage\r\n\r\n".into(), malformed("the status line is malformed")),
        ("HTTP/1.1 20 OK\r\n\r\n".into(), malformed("the status line is malformed")),
        ("HTTP/1.1 099 OK\r\n\r\n".into(), malformed("the status line is malformed")),
        ("ICY 200 OK\r\n\r\n".into(), malformed("the status line is malformed")),
        (
            "HTTP/2.0 200 OK\r\n\r\n".into(),
            malformed("the protocol version is neither HTTP/1.0 nor HTTP/1.1"),
        ),
        (
            "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n".into(),
            malformed("101 to a protocol that the request did not offer"),
        ),
        // Lines.
        ("HTTP/1.1 200 OK\n\n".into(), malformed("a line ends in a bare LF")),
        (
            format!("{OK}X: a\r\n b\r\n\r\n"),
            malformed("a header field is folded over several lines (obs-fold)"),
        ),
        (format!("{OK}X : a\r\n\r\n"), malformed("header line 2 is malformed (X )")),
        (format!("{OK}X: a\rb\r\n\r\n"), malformed("header line 2 is malformed (X)")),
        (format!("{OK}X: \0\r\n\r\n"), malformed("header line 2 is malformed (X)")),
        (
            format!("{OK}X: {}\r\n\r\n", "x".repeat(70_000)),
            malformed("the header block is larger than 65536 bytes"),
        ),
        (
            format!("HTTP/1.1 200 {}", "x".repeat(70_000)),
            malformed("the start line is larger than 65536 bytes"),
        ),
        (format!("{OK}{}\r\n", "X: y\r\n".repeat(101)), malformed("there are more than 100 header fields")),
    ]
}

fn doubtful_lengths() -> Vec<Case> {
    vec![
        (
            format!("{OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
            malformed("Content-Length and Transfer-Encoding together"),
        ),
        (
            format!("{OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\nok"),
            malformed("more than one Content-Length"),
        ),
        (format!("{OK}Content-Length: 2, 2\r\n\r\nok"), malformed("more than one Content-Length")),
        (format!("{OK}Content-Length: +2\r\n\r\nok"), malformed("Content-Length is malformed")),
        (
            format!("{OK}Transfer-Encoding: gzip, chunked\r\n\r\n"),
            malformed("Transfer-Encoding has a coding besides \"chunked\""),
        ),
        (
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
            malformed("Transfer-Encoding in an HTTP/1.0 message"),
        ),
    ]
}

fn broken_bodies() -> Vec<Case> {
    let bad_body =
        |body: &str, what: &str| whole(&[200], body).broken(&format!("malformed response: {what}"));
    vec![
        (format!("{OK}Content-Length: 9\r\n\r\nshort"), whole(&[200], "short").broken(CUT)),
        (CHUNKED.into(), whole(&[200], "").broken(CUT)),
        (format!("{CHUNKED}9\r\nshort"), whole(&[200], "short").broken(CUT)),
        (format!("{CHUNKED}5\r\nshort\r\n"), whole(&[200], "short").broken(CUT)),
        (format!("{CHUNKED}5\r\nshort\r\n0\r\n"), whole(&[200], "short").broken(CUT)),
        (format!("{CHUNKED}5\r\nlonger\r\n"), bad_body("longe", "a chunk does not end in CR LF")),
        (format!("{CHUNKED}x\r\n"), bad_body("", "a chunk size is malformed")),
        (format!("{CHUNKED}2\nok\n0\n\n"), bad_body("", "a chunk size is malformed")),
        (
            format!("{CHUNKED}2\r\nok\r\n0\r\nno colon\r\n\r\n"),
            bad_body("ok", "a trailer field is malformed"),
        ),
    ]
}

#[tokio::test]
async fn every_answer_is_read_the_same_in_one_piece_and_byte_by_byte() {
    for (bytes, expected) in [good_answers(), bad_heads(), doubtful_lengths(), broken_bodies()].concat() {
        let shown: String = bytes.chars().take(100).collect();
        for piece in [usize::MAX, 7, 1] {
            // Writing bytes one by one is slow, and makes no difference for a head over its limit.
            if bytes.len() > 10_000 && piece < 1000 {
                continue;
            }
            let mut seen = outcome(bytes.as_bytes(), piece, false).await;
            if piece < usize::MAX {
                // Bytes after the announced end are found only after they have come. `is_fresh` checks again.
                seen.reusable = expected.reusable;
            }
            assert_eq!(seen, expected, "{shown:?} in pieces of {piece}");
        }
    }
}

#[tokio::test]
async fn an_answer_to_head_has_no_body() {
    for fields in ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", ""] {
        let answer = format!("{OK}{fields}\r\n");
        assert_eq!(outcome(answer.as_bytes(), 1, true).await, whole(&[200], ""), "{fields:?}");
    }
    let with_body = format!("{OK}Content-Length: 5\r\n\r\nhello");
    assert_eq!(outcome(with_body.as_bytes(), usize::MAX, true).await, whole(&[200], "").not_reusable());
}

#[tokio::test]
async fn a_connection_serves_one_call_after_another_until_it_is_not_quiet() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let mut connection = MemberConnection::new(Stream::Unix(ours));
    for _ in 1..=3 {
        connection.start().extend_from_slice(REQUEST);
        poll_fn(|cx| connection.poll_send(cx)).await;
        assert!(!connection.is_answered());
        assert!(connection.head().fields.is_empty(), "nothing is left of the last head");
        theirs
            .write_all(b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok")
            .await
            .unwrap();
        let mut seen = whole(&[], "");
        call(&mut connection, false, &mut seen).await.unwrap();
        assert_eq!(seen, whole(&[200], "ok"));
        assert!(connection.is_answered() && connection.is_reusable(tokio::time::Instant::now()));
    }
    let now = tokio::time::Instant::now();
    assert!(connection.is_fresh(now, None));
    assert!(connection.is_fresh(now + Duration::from_secs(3), None));
    assert!(
        !connection.is_fresh(now + Duration::from_secs(4), None),
        "a second before the member closes by its own word"
    );
    assert!(!connection.is_fresh(now + Duration::from_secs(2), Some(Duration::from_secs(1))));
    drop(theirs);
    // The runtime reports the event at its next turn.
    while connection.is_fresh(now, None) {
        tokio::task::yield_now().await;
    }
}

/// The result of reading ahead, after all bytes of the member and the end of its connection have arrived.
async fn ahead(bytes: &str) -> Option<String> {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let mut connection = MemberConnection::new(Stream::Unix(ours));
    let (head, rest) = bytes.split_once('|').unwrap();
    theirs.write_all(head.as_bytes()).await.unwrap();
    poll_fn(|cx| connection.poll_head(cx, &Limits::default(), false)).await.unwrap();
    theirs.write_all(rest.as_bytes()).await.unwrap();
    drop(theirs);
    poll_fn(|cx| connection.poll_ahead(cx)).await.err().map(|error| error.to_string())
}

#[tokio::test]
async fn a_look_ahead_finds_truncated_answers_and_takes_no_complete_one_for_truncated() {
    let cut = "connection closed in the middle of the response's body";
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n|",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n|abc",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na|bc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n|",
    ] {
        assert_eq!(ahead(answer).await.as_deref(), Some(cut), "{answer}");
    }
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n|abcd",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd|",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n|",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n|1\r\na\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n|0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n|",
        "HTTP/1.1 204 No Content\r\n\r\n|",
    ] {
        assert_eq!(ahead(answer).await, None, "{answer}");
    }
}

/// Whether it shows that a member has read nothing, if it reads so many bytes of this request and closes.
#[cfg(target_os = "linux")]
async fn is_shown_unread(request: &[u8], read: usize) -> bool {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let mut connection = MemberConnection::new(Stream::Unix(ours));
    connection.start().extend_from_slice(request);
    poll_fn(|cx| connection.poll_send(cx)).await;
    theirs.read_exact(&mut vec![0; read]).await.unwrap();
    drop(theirs);
    let error = poll_fn(|cx| connection.poll_head(cx, &Limits::default(), false)).await.unwrap_err();
    connection.has_read_nothing(&error)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_request_that_was_not_read_is_recognised_if_it_is_short() {
    assert!(is_shown_unread(REQUEST, 0).await);
    assert!(!is_shown_unread(REQUEST, REQUEST.len()).await);
    let long = [REQUEST, &vec![b'x'; 40 << 10]].concat();
    assert!(!is_shown_unread(&long, 0).await, "Node may have read the first part of it");
}
