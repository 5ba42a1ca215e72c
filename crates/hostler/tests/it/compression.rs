//! Compression of answers: which clients get it, which answers are compressed, and that no bytes are lost or delayed.

use compression_codecs::core::util::{PartialBuffer, WriteBuffer};
use compression_codecs::{BrotliDecoder, DecodeV2, GzipDecoder, ZstdDecoder};
use hostler_testkit::{Client, ReceivedAnswer, Step, Upstream, eventually, text, upstream};

use crate::http2::talk;
use crate::in_front_of;

const ON: &str = "[server]\ncompress = true\n";

pub(crate) fn page() -> String {
    (0..2000).map(|row| format!("<li>Room {row} of the calendar</li>\n")).collect()
}

/// A decoded body.
fn decoded(coding: &str, encoded: &[u8]) -> String {
    let mut decoder: Box<dyn DecodeV2> = match coding {
        "br" => Box::new(BrotliDecoder::new()),
        "zstd" => Box::new(ZstdDecoder::new()),
        "gzip" => Box::new(GzipDecoder::new()),
        other => panic!("{other:?} is no coding of ours"),
    };
    let (mut input, mut plain, mut room) = (PartialBuffer::new(encoded), Vec::new(), vec![0; 4096]);
    while !encoded.is_empty() {
        let mut output = WriteBuffer::new_initialized(&mut room);
        let is_end = decoder.decode(&mut input, &mut output).unwrap();
        let came = output.written().to_vec();
        plain.extend_from_slice(&came);
        if is_end || input.unwritten().is_empty() && came.len() < 4096 {
            break;
        }
    }
    String::from_utf8(plain).unwrap()
}

pub(crate) fn plain(answer: &ReceivedAnswer) -> String {
    decoded(&answer.field("content-encoding").unwrap_or_default(), &answer.body)
}

async fn get(client: &mut Client, path: &str, fields: &str) -> ReceivedAnswer {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
    client.answer().await
}

/// The same, once the thread's budget for encoding allows it. On a slow machine, the answer before may have used up the budget.
async fn get_encoded(client: &mut Client, path: &str, fields: &str) -> ReceivedAnswer {
    eventually(format!("{path} to be encoded"), async || {
        Some(get(client, path, fields).await).filter(|answer| answer.field("content-encoding").is_some())
    })
    .await
}

pub(crate) fn html(fields: &str, body: &str) -> Vec<Step> {
    text(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n{fields}\r\n{body}",
        body.len()
    ))
}

async fn app() -> Upstream {
    upstream()
        .script(|_| html("ETag: \"v1\"\r\nAccept-Ranges: bytes\r\nVary: Cookie\r\n", &page()))
        .start()
        .await
}

#[tokio::test]
async fn an_answer_is_compressed_as_its_client_likes_best() {
    let app = app().await;
    let site = in_front_of(&app, ON).await;
    let mut client = site.connect().await;
    for (accepted, expected) in
        [("gzip, deflate, br, zstd", "zstd"), ("gzip, br", "br"), ("gzip, br;q=0.5", "gzip")]
    {
        let answer = get_encoded(&mut client, "/", &format!("Accept-Encoding: {accepted}\r\n")).await;
        answer
            .assert_status(200)
            .assert_field("content-encoding", expected)
            .assert_field("vary", "Cookie, Accept-Encoding")
            .assert_field("etag", "W/\"v1\"")
            .assert_no_field("content-length")
            .assert_no_field("accept-ranges");
        assert_eq!(plain(&answer), page(), "{accepted}");
        assert!(answer.body.len() < page().len() / 4, "{accepted}: {}", answer.body.len());
    }
    assert_eq!(app.connections(), 1, "and the connection to the member is still in step");
    let status = site.status().await;
    assert_eq!(status["compression"]["encoded"], 3);
    assert_eq!(status["compression"]["memory"], 0);
}

#[tokio::test]
async fn a_client_without_accept_encoding_gets_the_plain_answer_with_vary() {
    let app = app().await;
    let site = in_front_of(&app, ON).await;
    let mut client = site.connect().await;
    for fields in ["", "Accept-Encoding: identity\r\n", "Accept-Encoding: gzip;q=0\r\n"] {
        get(&mut client, "/", fields)
            .await
            .assert_ok(&page())
            .assert_field("content-length", &page().len().to_string())
            .assert_field("etag", "\"v1\"")
            .assert_field("vary", "Cookie, Accept-Encoding")
            .assert_no_field("content-encoding");
    }
    let answer = site.send("GET / HTTP/1.0\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n").await;
    answer.assert_ok(&page()).assert_no_field("content-encoding");
}

#[tokio::test]
async fn a_head_request_gets_the_fields_of_a_get() {
    let app = upstream()
        .script(|seen| match seen.method().as_str() {
            "HEAD" => text("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n"),
            _ => html("", &page()),
        })
        .start()
        .await;
    let site = in_front_of(&app, ON).await;
    let mut client = site.connect().await;
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br\r\n\r\n").await;
    let answer = client.answer_to("HEAD").await;
    answer.assert_status(200).assert_field("content-encoding", "br").assert_no_field("content-length");
    assert_eq!(plain(&get(&mut client, "/", "Accept-Encoding: br\r\n").await), page());
}

#[tokio::test]
async fn small_encoded_partial_and_no_transform_answers_are_not_compressed() {
    let app = upstream()
        .script(|seen| match seen.target().as_str() {
            "/small" => html("", "<p>small</p>"),
            "/encoded" => html("Content-Encoding: gzip\r\n", &page()),
            "/sealed" => html("Cache-Control: public, no-transform\r\n", &page()),
            "/piece" => text(format!("HTTP/1.1 206 Partial Content\r\nContent-Type: text/html\r\nContent-Range: bytes 0-4/9999\r\nContent-Length: 2000\r\n\r\n{}", &page()[..2000])),
            "/nothing" => text("HTTP/1.1 204 No Content\r\nContent-Type: text/html\r\n\r\n"),
            _ => text(format!("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 2000\r\n\r\n{}", &page()[..2000])),
        })
        .start()
        .await;
    let site = in_front_of(&app, ON).await;
    let mut client = site.connect().await;
    for path in ["/small", "/sealed", "/nothing", "/image"] {
        let answer = get(&mut client, path, "Accept-Encoding: gzip\r\n").await;
        answer.assert_no_field("content-encoding").assert_no_field("vary");
    }
    let piece = get(&mut client, "/piece", "Accept-Encoding: gzip\r\n").await;
    piece.assert_no_field("content-encoding").assert_field("vary", "Accept-Encoding");
    let answer = get(&mut client, "/encoded", "Accept-Encoding: gzip\r\n").await;
    answer.assert_ok(&page()).assert_field("content-encoding", "gzip").assert_no_field("vary");
    let unwilling = "Accept-Encoding: gzip\r\nCache-Control: no-transform\r\n";
    get(&mut client, "/page", unwilling).await.assert_no_field("content-encoding");
}

#[tokio::test]
async fn a_digest_after_the_body_is_never_that_of_other_bytes() {
    let answer = |trailer: &str| {
        let (length, page) = (page().len(), page());
        text(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{trailer}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{page}\r\n0\r\nContent-MD5: x\r\nX-Sum: 9\r\n\r\n"
        ))
    };
    let script = move |named: bool| answer(if named { "Trailer: Content-MD5\r\n" } else { "" });
    let app = upstream().script(move |seen| script(seen.target() == "/named")).start().await;
    let site = in_front_of(&app, ON).await;
    let mut client = site.connect().await;
    let named = get(&mut client, "/named", "Accept-Encoding: gzip\r\n").await;
    named.assert_ok(&page()).assert_no_field("content-encoding");
    assert_eq!(named.trailers, ["Content-MD5: x", "X-Sum: 9"]);
    let encoded = get_encoded(&mut client, "/", "Accept-Encoding: gzip\r\n").await;
    assert_eq!(plain(&encoded), page());
    assert_eq!(encoded.trailers, ["X-Sum: 9"]);
}

#[tokio::test]
async fn the_first_part_of_a_compressed_page_arrives_before_the_rest_exists() {
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n";
    for coding in ["zstd", "br", "gzip"] {
        let steps = [
            text([head, &chunk("<head></head>")].concat()),
            vec![Step::Hold],
            text([&chunk("<body></body>"), "0\r\nX-Sum: 9\r\n\r\n"].concat()),
        ];
        let app = upstream().does(steps.concat()).start().await;
        let site = in_front_of(&app, ON).await;
        let mut client = site.connect().await;
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n")).await;
        client.next_head().await.unwrap();
        let mut encoded = Vec::new();
        while decoded(coding, &encoded) != "<head></head>" {
            encoded.extend(next_chunk(&mut client).await);
        }
        app.release(1);
        while decoded(coding, &encoded) != "<head></head><body></body>" {
            encoded.extend(next_chunk(&mut client).await);
        }
        assert!(client.read_until("\r\n\r\n").await.ends_with("0\r\nX-Sum: 9\r\n\r\n"));
    }
}

async fn next_chunk(client: &mut Client) -> Vec<u8> {
    let size = client.read_until("\r\n").await;
    let size = usize::from_str_radix(size.trim(), 16).unwrap();
    assert!(size > 0, "it has ended");
    let chunk = client.read_exactly(size).await;
    client.read_exactly(2).await;
    chunk
}

#[tokio::test]
async fn event_streams_are_compressed_only_where_configured() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let event = "8\r\ndata: 1\n\r\n";
    let app = upstream().does([text([head, event].concat()), vec![Step::Hold]].concat()).start().await;
    let request = "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";

    let usual = in_front_of(&app, ON).await;
    let mut client = usual.connect().await;
    client.send(request).await;
    assert_eq!(client.next_head().await.unwrap().field("content-encoding"), None);
    assert_eq!(next_chunk(&mut client).await, b"data: 1\n");

    let asked = in_front_of(&app, "[server.compress]\nevent_streams = true\n").await;
    let mut client = asked.connect().await;
    client.send(request).await;
    assert_eq!(client.next_head().await.unwrap().field("content-encoding").as_deref(), Some("gzip"));
    let mut encoded = Vec::new();
    while decoded("gzip", &encoded) != "data: 1\n" {
        encoded.extend(next_chunk(&mut client).await);
    }
}

#[tokio::test]
async fn a_truncated_compressed_answer_is_visibly_truncated() {
    let steps = [
        text(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000000\r\n\r\n{}",
            page()
        )),
        vec![Step::Hold, Step::Reset],
    ];
    let app = upstream().does(steps.concat()).start().await;
    for coding in ["zstd", "br", "gzip"] {
        // One site for each, so that its thread has spent no time on encoding yet.
        let site = in_front_of(&app, ON).await;
        let mut client = site.connect().await;
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n")).await;
        client.next_head().await.unwrap();
        let first = next_chunk(&mut client).await;
        assert!(!first.is_empty());
        app.release(1);
        let (rest, _) = client.rest().await;
        assert!(!rest.ends_with("\r\n0\r\n\r\n"), "{coding}");
        assert_eq!(site.exchanges(1).await[0]["aborted"], "worker");
    }
}

#[tokio::test]
async fn a_refusal_in_place_of_an_answer_is_not_compressed() {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"v1\"\r\nTransfer-Encoding: chunked\r\n\r\n";
    let app = upstream().answers([head, "1\r\na\r\nnonsense\r\n"].concat()).start().await;
    let site = in_front_of(&app, ON).await;
    let mut client = site.connect().await;
    let answer = get(&mut client, "/", "Accept-Encoding: zstd\r\n").await;
    answer.assert_refused(502, "bad_answer").assert_no_field("content-encoding").assert_no_field("etag");
}

#[tokio::test]
async fn a_304_has_the_validator_that_the_client_was_given() {
    let app = upstream()
        .script(|seen| match seen.field("if-none-match") {
            Some(_) => text("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n"),
            None => html("ETag: \"v1\"\r\n", &page()),
        })
        .start()
        .await;
    let site = in_front_of(&app, ON).await;
    let mut client = site.connect().await;
    let given = get(&mut client, "/", "Accept-Encoding: gzip\r\n").await.field("etag").unwrap();
    let again = format!("Accept-Encoding: gzip\r\nIf-None-Match: {given}\r\n");
    get(&mut client, "/", &again).await.assert_status(304).assert_field("etag", &given);
    let other = "If-None-Match: \"v1\"\r\n";
    get(&mut client, "/", other).await.assert_status(304).assert_field("etag", "\"v1\"");
}

#[tokio::test]
async fn a_route_has_its_own_compression_and_fixed_answers_are_compressed_too() {
    let app = app().await;
    let page = page();
    let config = format!(
        "[server]\ncompress = {{ encodings = [\"gzip\"] }}\n\
         [[routes]]\nmatch = \"/*\"\npool = \"app\"\n\
         [[routes]]\nmatch = \"/plain/*\"\npool = \"app\"\ncompress = false\n\
         [[routes]]\nmatch = \"/json/*\"\npool = \"app\"\ncompress = {{ types = [\"application/json\"] }}\n\
         [[routes]]\nmatch = \"/fixed\"\nrespond = '''{page}'''\n"
    );
    let site = in_front_of(&app, &config).await;
    let mut client = site.connect().await;
    let all = "Accept-Encoding: gzip, br, zstd\r\n";
    for (path, expected) in
        [("/", Some("gzip")), ("/plain/", None), ("/json/", None), ("/fixed", Some("gzip"))]
    {
        let answer = match expected {
            Some(_) => get_encoded(&mut client, path, all).await,
            None => get(&mut client, path, all).await,
        };
        assert_eq!(answer.assert_status(200).field("content-encoding").as_deref(), expected, "{path}");
    }
    assert_eq!(plain(&get_encoded(&mut client, "/fixed", all).await), page);
    let head = eventually("a head as of what is encoded", async || {
        client.send(format!("HEAD /fixed HTTP/1.1\r\nHost: a\r\n{all}\r\n")).await;
        Some(client.answer_to("HEAD").await).filter(|answer| answer.field("content-encoding").is_some())
    })
    .await;
    head.assert_field("content-encoding", "gzip").assert_no_field("content-length");
    get(&mut client, "/fixed", "").await.assert_ok(&page).assert_field("vary", "Accept-Encoding");
}

#[tokio::test]
async fn a_route_that_changes_vary_does_not_hide_that_answers_are_compressed() {
    let answers = |vary: &'static str| upstream().script(move |_| html(vary, &page()));
    let cases: [(&str, &str, &[&str]); 7] = [
        ("", "set = { Vary = 'Origin' }", &["Origin", "Accept-Encoding"]),
        ("Vary: Cookie, accept-encoding\r\n", "set = { Vary = 'Origin' }", &["Origin", "Accept-Encoding"]),
        ("", "set = { Vary = 'accept-encoding, Origin' }", &["accept-encoding, Origin"]),
        ("", "default = { Vary = 'Origin' }", &["Accept-Encoding", "Origin"]),
        ("Vary: Cookie\r\n", "default = { Vary = 'Origin' }", &["Cookie, Accept-Encoding"]),
        ("", "add = { Vary = 'Origin' }", &["Accept-Encoding", "Origin"]),
        ("", "remove = ['Vary']", &[]),
    ];
    for (vary, change, expected) in cases {
        let app = answers(vary).start().await;
        let config =
            format!("{ON}[[routes]]\nmatch = '*'\npool = 'app'\nresponse_headers = {{ {change} }}\n");
        let site = in_front_of(&app, &config).await;
        let answer = get(&mut site.connect().await, "/", "Accept-Encoding: gzip\r\n").await;
        assert_eq!(answer.assert_status(200).head.all("vary"), expected, "{vary:?} {change}");
        let (answer, _) = talk(&site).await.ask(crate::http2::get("/")).await;
        let seen: Vec<_> = answer.headers().get_all("vary").iter().collect();
        assert_eq!(seen, expected, "{vary:?} {change}");
    }
}

#[tokio::test]
async fn without_compression_memory_answers_are_sent_plain() {
    let app = app().await;
    let site = in_front_of(&app, "[server]\ncompress = true\ncompress_memory = \"100 KiB\"\n").await;
    let mut client = site.connect().await;
    let answer = get(&mut client, "/", "Accept-Encoding: zstd\r\n").await;
    answer
        .assert_ok(&page())
        .assert_no_field("content-encoding")
        .assert_field("vary", "Cookie, Accept-Encoding");
    assert_eq!(site.status().await["compression"]["spared"], 1);
}

#[tokio::test]
async fn a_reload_switches_compression_on() {
    let app = app().await;
    let off = in_front_of(&app, "").await;
    get(&mut off.connect().await, "/", "Accept-Encoding: br\r\n").await.assert_no_field("content-encoding");
    off.rewrite(&format!("{ON}[pools.app]\nmembers = [\"{}\"]\n", app.address()));
    let said = off.command(&["reload"]).await.assert_exit(0).stdout.clone();
    assert!(said.contains("server: compress") && said.contains("routes: changed, now 1"), "{said}");
    let answer = get(&mut off.connect().await, "/", "Accept-Encoding: br\r\n").await;
    assert_eq!(plain(&answer), page());
}

#[tokio::test]
async fn http2_streams_are_compressed_too() {
    let app = app().await;
    let site = in_front_of(&app, ON).await;
    let socket = tokio::net::TcpStream::connect(site.address()).await.unwrap();
    let (mut sender, connection) = h2::client::handshake(socket).await.unwrap();
    let running = tokio::spawn(connection);
    let request = http::Request::get("http://a/").header("accept-encoding", "br").body(()).unwrap();
    let answer = sender.send_request(request, true).unwrap().0.await.unwrap();
    assert_eq!(answer.headers()["content-encoding"], "br");
    assert_eq!(answer.headers()["etag"], "W/\"v1\"");
    let (mut body, mut encoded) = (answer.into_body(), Vec::new());
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        encoded.extend_from_slice(&data);
    }
    assert_eq!(decoded("br", &encoded), page());
    running.abort();
}
