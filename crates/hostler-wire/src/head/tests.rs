//! Heads that are accepted, and heads that are refused, with the reason.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::field::Name;
use crate::scan::HeadScan;

fn request(head: &str) -> Result<RequestHead, HeadError> {
    let mut parsed = RequestHead::default();
    parsed.parse(head.as_bytes(), &Limits::default()).map(|()| parsed)
}

#[test]
fn a_head_keeps_names_values_and_order_as_sent() {
    let head = request("GET /a?b HTTP/1.1\r\nHoSt: x\r\nX-One:  1 \r\nx-two:\r\nX-One: 2\r\n\r\n").unwrap();
    assert_eq!((head.method(), head.target(), head.version), (&b"GET"[..], &b"/a?b"[..], Version::Http11));
    let mut lines = Vec::new();
    head.fields.copy_lines(&mut lines, |field, _| field.known != Name::Host);
    assert_eq!(lines, b"X-One:  1 \r\nx-two:\r\nX-One: 2\r\n");
    let seen: Vec<_> = head.fields.iter().map(|(_, n, v)| (n, v)).collect();
    let expected: Vec<(&[u8], &[u8])> =
        vec![(b"HoSt", b"x"), (b"X-One", b"1"), (b"x-two", b""), (b"X-One", b"2")];
    assert_eq!(seen, expected);
    assert_eq!(head.fields.first(Name::Host), Some(&b"x"[..]));
}

#[test]
fn fields_named_by_connection_are_marked_but_never_those_that_frame_the_message() {
    let head = request(
            "GET / HTTP/1.1\r\nHost: x\r\nX-Secret: 1\r\nConnection: close, X-Secret,host\r\nContent-Length: 0\r\n\r\n",
        )
        .unwrap();
    let listed: Vec<_> =
        head.fields.iter().filter(|(f, _, _)| f.listed).map(|(_, n, _)| n.to_vec()).collect();
    assert_eq!(listed, [b"X-Secret".to_vec()]);
}

#[test]
fn each_parse_error_is_named() {
    let cases: &[(&str, HeadError)] = &[
        ("GET /\r\nHost: x\r\n\r\n", HeadError::RequestLine),
        ("GET  / HTTP/1.1\r\n\r\n", HeadError::RequestLine),
        ("G@T / HTTP/1.1\r\n\r\n", HeadError::RequestLine),
        ("GET / HTTP/2.0\r\n\r\n", HeadError::Version),
        ("GET / HTTP/1.2\r\n\r\n", HeadError::Version),
        ("\r\nGET / HTTP/1.2\r\n\r\n", HeadError::Version),
        ("GET / a HTTP/1.1\r\n\r\n", HeadError::RequestLine),
        ("GET / a HTTP/1.2\r\n\r\n", HeadError::RequestLine),
        ("GET / \r\n\r\n", HeadError::RequestLine),
        ("GET / http/1.1\r\n\r\n", HeadError::RequestLine),
        ("GET / HTTP/1.1\r\nHost : x\r\n\r\n", HeadError::Field { line: 2, name: "Host ".into() }),
        (
            "GET / HTTP/1.1\r\nHost: x\r\nA\0b: 1\r\n\r\n",
            HeadError::Field { line: 3, name: "A\\x00b".into() },
        ),
        ("GET / HTTP/1.1\r\nHost: x\r\nA: 1\0\r\n\r\n", HeadError::Field { line: 3, name: "A".into() }),
        ("GET / HTTP/1.1\r\nHost: x\r\nA: 1\r2\r\n\r\n", HeadError::Field { line: 3, name: "A".into() }),
        ("GET / HTTP/1.1\r\n: x\r\n\r\n", HeadError::Field { line: 2, name: String::new() }),
        ("GET / HTTP/1.1\r\nHost\r\n\r\n", HeadError::Field { line: 2, name: "Host\\x0d".into() }),
    ];
    for (head, expected) in cases {
        assert_eq!(request(head).err().as_ref(), Some(expected), "{head:?}");
    }
}

#[test]
fn field_lines_are_counted() {
    let head = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(101));
    assert_eq!(request(&head).err(), Some(HeadError::TooManyFields(100)));
}

#[test]
fn field_lines_are_read_up_to_any_configured_limit() {
    for most in [1, TABLE - 1, TABLE, TABLE + 1, 1000] {
        let limits = Limits { max_fields: most, ..Limits::default() };
        let head = |start: &str, lines: usize| format!("{start}\r\n{}\r\n", "A: b\r\n".repeat(lines));
        let request = |lines| {
            let mut parsed = RequestHead::default();
            parsed.parse(head("GET /x HTTP/1.1", lines).as_bytes(), &limits).map(|()| parsed.fields.len())
        };
        let response = |lines| {
            let mut parsed = ResponseHead::default();
            parsed.parse(head("HTTP/1.1 200 OK", lines).as_bytes(), &limits).map(|()| parsed.fields.len())
        };
        assert_eq!((request(most), response(most)), (Ok(most), Ok(most)));
        let refused = Err(HeadError::TooManyFields(most));
        assert_eq!((request(most + 1), response(most + 1)), (refused.clone(), refused));
    }
}

#[test]
fn a_head_that_fails_to_parse_keeps_nothing_of_the_one_before() {
    let mut head = request("DELETE /a/long/target HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert_eq!(head.parse(b"X\r\n\r\n", &Limits::default()), Err(HeadError::RequestLine));
    assert_eq!((head.method(), head.target(), head.fields.len()), (&b""[..], &b""[..], 0));
}

#[test]
fn a_target_can_be_narrowed_and_replaced() {
    let mut head = request("GET http://x/a?b HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    head.narrow_target(8..12);
    assert_eq!(head.target(), b"/a?b");
    head.replace_target(b"/other");
    assert_eq!(head.target(), b"/other");
    head.fields.add(b"X-Late", b"1");
    let mut lines = Vec::new();
    head.fields.copy_lines(&mut lines, |_, _| true);
    assert_eq!(lines, b"Host: x\r\nX-Late: 1\r\n");
    assert_eq!(head.fields.first(Name::Host), Some(&b"x"[..]));
}

#[test]
fn responses_are_read_as_strictly() {
    let mut head = ResponseHead::default();
    let mut parse = |text: &str| head.parse(text.as_bytes(), &Limits::default()).map(|()| head.status);
    assert_eq!(parse("HTTP/1.1 200 OK\r\nA: b\r\n\r\n"), Ok(200));
    assert_eq!(parse("HTTP/1.1 204\r\n\r\n"), Ok(204));
    assert_eq!(parse("HTTP/1.1 999 Request denied\r\n\r\n"), Ok(999));
    assert_eq!(parse("HTTP/1.1 099 What\r\n\r\n"), Err(HeadError::StatusLine));
    assert_eq!(parse("HTTP/1.1 1000 What\r\n\r\n"), Err(HeadError::StatusLine));
    assert_eq!(parse("HTTP/1.1 20 OK\r\n\r\n"), Err(HeadError::StatusLine));
    assert_eq!(parse("HTTP/3.1 200 OK\r\n\r\n"), Err(HeadError::Version));
    assert_eq!(
        parse("HTTP/1.1 200 OK\r\nA : b\r\n\r\n"),
        Err(HeadError::Field { line: 2, name: "A ".into() })
    );
}

/// The result of the careful way: find the end first, then parse.
fn carefully(bytes: &[u8]) -> Option<(usize, RequestHead)> {
    let end = HeadScan::default().advance(bytes, Limits::default().max_size).ok()??;
    let mut head = RequestHead::default();
    head.parse(&bytes[..end], &Limits::default()).ok()?;
    Some((end, head))
}

fn shown(head: &RequestHead) -> String {
    let fields: Vec<_> = head.fields.iter().map(|(_, n, v)| (n.escape_ascii(), v.escape_ascii())).collect();
    format!("{} {} {:?} {fields:?}", head.method().escape_ascii(), head.target().escape_ascii(), head.version)
}

#[test]
fn a_plain_head_is_read_at_once_with_any_bytes_after_it() {
    for fields in ["", "Host: x\r\n", "A:\r\nB: c \t\r\nD:e\r\n"] {
        let text = format!("GET /a HTTP/1.1\r\n{fields}\r\n");
        let mut head = request("DELETE /before HTTP/1.0\r\nA: b\r\n\r\n").unwrap();
        for rest in ["", "x", "\n", "\r\n", "GET /b HTTP/1.1\r\n\r\n"] {
            let bytes = format!("{text}{rest}");
            assert_eq!(
                head.parse_at_once(bytes.as_bytes(), &Limits::default()),
                Some(text.len()),
                "{bytes:?}"
            );
            assert_eq!(shown(&head), shown(&request(&text).unwrap()));
        }
    }
    let mut answer = ResponseHead::default();
    let text = b"HTTP/1.1 200 Fine\r\nA: b\r\n\r\nbody";
    assert_eq!(answer.parse_at_once(text, &Limits::default()), Some(text.len() - 4));
    assert_eq!((answer.status, answer.reason()), (200, &b"Fine"[..]));
    assert_eq!(answer.parse_at_once(b"HTTP/1.1 200 Fine\r\n", &Limits::default()), None);
    assert_eq!((answer.reason(), answer.fields.len()), (&b""[..], 0));
}

#[test]
fn a_head_with_an_ambiguous_end_is_not_read_at_once() {
    for text in [
        "GET / HTTP/1.1\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\n\r\n",
        "GET / HTTP/1.1\r\nHost: x \n\r\n",
        "GET / HTTP/1.1\r\nHost:\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\n",
        "GET / HTTP/1.1\r\n\n",
        "GET / HTTP/1.1\n\n",
        "\nGET / HTTP/1.1\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\n\r\n",
    ] {
        let mut head = RequestHead::default();
        assert_eq!(head.parse_at_once(text.as_bytes(), &Limits::default()), None, "{text:?}");
        assert!(head.method().is_empty() && head.fields.is_empty());
    }
    let small = Limits { max_size: 20, ..Limits::default() };
    let text = b"GET / HTTP/1.1\r\nA: b\r\n\r\n";
    assert_eq!(RequestHead::default().parse_at_once(text, &small), None);
}

/// As [`carefully`], for an answer.
fn answer_carefully(bytes: &[u8]) -> Option<(usize, ResponseHead)> {
    let end = HeadScan::default().advance(bytes, Limits::default().max_size).ok()??;
    let mut head = ResponseHead::default();
    head.parse(&bytes[..end], &Limits::default()).ok()?;
    Some((end, head))
}

fn shown_answer(head: &ResponseHead) -> String {
    let fields: Vec<_> = head.fields.iter().map(|(_, n, v)| (n.escape_ascii(), v.escape_ascii())).collect();
    format!("{:?} {} {} {fields:?}", head.version, head.status, head.reason().escape_ascii())
}

/// What is read at once must be what the careful way reads.
fn agree(bytes: &[u8]) {
    let mut head = RequestHead::default();
    match head.parse_at_once(bytes, &Limits::default()) {
        Some(end) => {
            let (careful_end, careful) = carefully(bytes).expect("no careful reader accepts it");
            assert_eq!((end, shown(&head)), (careful_end, shown(&careful)), "{}", bytes.escape_ascii());
        }
        None => assert!(head.method().is_empty() && head.fields.is_empty()),
    }
    let mut answer = ResponseHead::default();
    match answer.parse_at_once(bytes, &Limits::default()) {
        Some(end) => {
            let (careful_end, careful) = answer_carefully(bytes).expect("no careful reader accepts it");
            let both = (shown_answer(&answer), shown_answer(&careful));
            assert_eq!((end, both.0), (careful_end, both.1), "{}", bytes.escape_ascii());
        }
        None => assert!(answer.reason().is_empty() && answer.fields.is_empty()),
    }
}

const HEADS: [&str; 2] = [
    "GET /rooms/1?a=b HTTP/1.1\r\nHost: shop.test\r\nX-Other-Name: some value, and more of it\r\nA:b\r\n\r\n",
    "HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\nX-Other-Name: \ta value\twith tabs \t\r\nB:\r\n\r\n",
];

#[test]
fn each_byte_at_each_place_of_a_head_is_read_as_the_careful_way_reads_it() {
    for text in HEADS {
        agree(text.as_bytes());
        for at in 0..text.len() {
            for byte in 0..=u8::MAX {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = byte;
                agree(&bytes);
                bytes[at] = text.as_bytes()[at];
                bytes.insert(at, byte);
                agree(&bytes);
            }
            agree(&text.as_bytes()[..at]);
            agree(&[&text.as_bytes()[..at], &text.as_bytes()[at + 1..]].concat());
        }
    }
}

#[test]
fn heads_as_browsers_and_servers_send_them_are_read_at_once() {
    let browser = "GET /a/%C3%A9?q=[1]|{2}^`~ HTTP/1.1\r\nHost: [::1]:8080\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n\
        Cookie: a=\"b\"; caf\u{e9}=1\r\nsec-ch-ua: \"Not)A;Brand\";v=\"8\"\r\nEmpty:\r\n\r\n";
    assert_eq!(
        RequestHead::default().parse_at_once(browser.as_bytes(), &Limits::default()),
        Some(browser.len())
    );
    for answer in [
        "HTTP/1.1 200 OK\r\nX-Powered-By: Express\r\nContent-Type: text/html\r\nKeep-Alive: timeout=5\r\n\r\n",
        "HTTP/1.0 304 \r\n\r\n",
    ] {
        let end = ResponseHead::default().parse_at_once(answer.as_bytes(), &Limits::default());
        assert_eq!(end, Some(answer.len()), "{answer:?}");
    }
}

#[test]
fn the_limit_of_field_lines_holds_for_heads_that_are_read_at_once() {
    let limits = Limits { max_fields: 3, ..Limits::default() };
    let parsed = |lines: usize| {
        let text = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(lines));
        RequestHead::default().parse_at_once(text.as_bytes(), &limits).is_some()
    };
    assert_eq!([2, 3, 4].map(parsed), [true, true, false]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn the_fast_and_the_careful_parser_agree(
        start in prop_oneof![
            4 => Just("GET /a HTTP/1.1"), 4 => Just("HTTP/1.1 200 OK"), 1 => Just("GET /a"), 1 => Just(""),
        ],
        pieces in vec(
            prop_oneof![
                8 => Just(&b"\r\n"[..]),
                4 => Just(&b"Host: x"[..]),
                2 => Just(&b"A:"[..]),
                1 => Just(&b"\n"[..]),
                1 => Just(&b"\r"[..]),
                1 => Just(&b" "[..]),
                1 => Just(&b"\t"[..]),
                1 => Just(&b":"[..]),
                1 => Just(&b"\0"[..]),
                1 => Just(&b"\xff"[..]),
            ],
            0..12,
        ),
    ) {
        agree(&[start.as_bytes(), &pieces.concat()].concat());
    }
}

#[test]
fn of_a_head_that_does_not_parse_the_request_line_is_kept_for_the_log() {
    for (text, line) in [
        ("GET /a HTTP/3.0\r\nHost: a\r\n\r\n", ["GET", "/a", "HTTP/3.0"]),
        ("\r\nGET /a HTTP/3.0 \r\n\r\n", ["GET", "/a", "HTTP/3.0 "]),
        ("GET /a HTTP/1.0\r\nBad Name: 1\r\n\r\n", ["GET", "/a", "HTTP/1.0"]),
        ("GET /a HTTP/\u{e9}\r\n\r\n", ["GET", "/a", "HTTP/\u{e9}"]),
        ("GET /a b?token=1 HTTP/1.1\r\n\r\n", ["GET", "/a", "(malformed)"]),
        ("G\0T /a HTTP/1.1\r\n\r\n", ["", "", "HTTP/1.1"]),
    ] {
        let mut head = RequestHead::default();
        head.parse(text.as_bytes(), &Limits::default()).unwrap_err();
        let words = [head.method(), head.target()].map(|word| std::str::from_utf8(word).unwrap());
        assert_eq!([words[0], words[1], head.version_text()], line, "{text:?}");
        assert!(head.fields.is_empty());
        head.clear();
        assert_eq!((head.method(), head.version_text()), (&b""[..], "HTTP/1.1"));
    }
}
