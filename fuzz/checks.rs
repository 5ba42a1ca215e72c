//! What must hold for any bytes that a stranger sends: no panic, and the same outcome however they are cut. Knows no sockets.
#![allow(dead_code, reason = "each fuzz target uses its own check")]

use hostler_wire::{
    BodyReader, Chunk, ChunkStart, ChunkedDecoder, ChunkedError, Field, Fields, Frames, FramingError,
    HeadError, HeadScan, Limits, Name, RequestHead, ResponseHead, WebLink, links, request_body,
    response_body, write_end,
};

/// Names and values.
type Lines = Vec<(Vec<u8>, Vec<u8>)>;

const LIMITS: Limits = Limits { max_size: 4096, max_fields: 32 };

/// A request's head: found, parsed, framed, and copied to a member that must read the same.
pub fn request_head(bytes: &[u8]) {
    let found = scan_in_pieces(bytes, bytes.len().max(1));
    for piece in [1, 7] {
        assert_eq!(scan_in_pieces(bytes, piece), found, "the end of a head does not depend on how it comes");
    }
    let mut at_once = RequestHead::default();
    let whole = at_once.parse_at_once(bytes, &LIMITS);
    let Ok(Some(end)) = found else { return assert_eq!(whole, None, "{}", shown(bytes)) };
    let mut head = RequestHead::default();
    let parsed = head.parse(&bytes[..end], &LIMITS);
    if let Some(whole) = whole {
        assert!(
            parsed.is_ok() && whole == end,
            "what is read at once is what careful readers read: {}",
            shown(bytes)
        );
        assert_eq!(
            (at_once.method(), at_once.target(), at_once.version),
            (head.method(), head.target(), head.version)
        );
        assert_eq!(lines(&at_once.fields), lines(&head.fields));
    }
    // Every accessor, also after a failure.
    let (method, target) = (head.method().to_vec(), head.target().to_vec());
    let framing = request_body(&head);
    check_fields(&head.fields);
    if parsed.is_err() {
        // The request line may be there, for the log.
        assert!(method.is_empty() == target.is_empty() && head.fields.is_empty());
        assert!(method.is_empty() || !head.version_text().contains(['\r', '\n']));
        return;
    }
    assert!(!method.is_empty() && !target.is_empty());
    assert!(!target.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0));

    let mut copy = [&method[..], b" ", &target, b" HTTP/1.1\r\n"].concat();
    head.fields.copy_lines(&mut copy, |_, _| true);
    copy.extend_from_slice(b"\r\n");
    let limits = Limits { max_size: 2 * LIMITS.max_size, ..LIMITS };
    assert_eq!(HeadScan::default().advance(&copy, limits.max_size), Ok(Some(copy.len())), "{}", shown(&copy));
    let mut again = RequestHead::default();
    again.parse(&copy, &limits).unwrap_or_else(|error| panic!("{error}: {}", shown(&copy)));
    assert_eq!((again.method(), again.target()), (&method[..], &target[..]));
    assert_eq!(lines(&again.fields), lines(&head.fields));
    if head.version == again.version {
        assert_eq!(request_body(&again), framing, "a program behind Hostler sees the same body");
    }
}

/// A member's answer: interim heads, head, body, and what is left over.
pub fn response(bytes: &[u8]) {
    let (to_head, bytes) = match bytes.split_first() {
        Some((first, rest)) => (first % 4 == 0, rest),
        None => return,
    };
    let whole = read_answer(bytes, bytes.len().max(1), to_head);
    for piece in [1, 3, 64] {
        assert_eq!(read_answer(bytes, piece, to_head), whole, "{}", shown(bytes));
    }
}

/// The frames of a WebSocket's direction: they end where they end, however they come.
pub fn frames(bytes: &[u8]) {
    let whole = frame_ends(bytes, bytes.len().max(1));
    for piece in [1, 3, 64] {
        assert_eq!(frame_ends(bytes, piece), whole, "{}", shown(bytes));
    }
}

/// Where frames end, whether one of them was a Close frame, and whether the last one is whole.
fn frame_ends(bytes: &[u8], piece: usize) -> (Vec<usize>, bool, bool) {
    let (mut frames, mut ends, mut at) = (Frames::default(), Vec::new(), 0);
    while at < bytes.len() {
        let next = &bytes[at..bytes.len().min(at + piece)];
        let taken = frames.take_to_end(next);
        assert!((1..=next.len()).contains(&taken), "what is there is taken");
        at += taken;
        if frames.is_between() {
            ends.push(at);
        }
    }
    (ends, frames.has_closed(), frames.is_between())
}

/// The links of a field: each is the same when it stands alone, all together are read as before, and none could end the line that it is
/// written into.
pub fn link(bytes: &[u8]) {
    let all: Vec<WebLink<'_>> = links(bytes).map_while(Result::ok).collect();
    for link in &all {
        assert_eq!(WebLink::only(link.text), Some(*link), "{}", shown(bytes));
        assert!(link.text.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~')), "{}", shown(bytes));
        assert_eq!(link.parameters().next().is_none(), link.parameters().count() == 0);
        assert!(link.relations().all(|word| !word.is_empty()));
    }
    let texts: Vec<_> = all.iter().map(|link| link.text).collect();
    let joined = texts.join(&b", "[..]);
    let again: Vec<_> = links(&joined).map(|link| link.expect("it was read before").text.to_vec()).collect();
    assert_eq!(again, texts, "{}", shown(bytes));
}

/// A body in the chunked coding: decoded, and encoded again.
pub fn chunked(bytes: &[u8]) {
    let whole = decode(bytes, bytes.len().max(1));
    for piece in [1, 3, 64] {
        assert_eq!(decode(bytes, piece), whole, "{}", shown(bytes));
    }
    let Ok(Decoded { body, trailers, ended: true, .. }) = whole else { return };
    let mut decoder = ChunkedDecoder::default();
    let mut at = 0;
    loop {
        let (used, chunk) = decoder.step(&bytes[at..]).expect("it was decoded before");
        at += used;
        if chunk == Chunk::End {
            break;
        }
    }
    let mut encoded = Vec::new();
    for piece in body.chunks(11) {
        let start = ChunkStart::open(&mut encoded);
        encoded.extend_from_slice(piece);
        start.finish(&mut encoded);
    }
    write_end(&mut encoded, Some(decoder.trailers()));
    let again =
        decode(&encoded, encoded.len()).unwrap_or_else(|error| panic!("{error}: {}", shown(&encoded)));
    assert!(again.ended && again.used == encoded.len() && again.body == body, "{}", shown(&encoded));
    assert!(again.trailers.iter().all(|line| trailers.contains(line)), "no trailer is made up");
}

/// Where a head ends. Why there is none may differ with the pieces: over the limit and malformed, whichever is seen first.
fn scan_in_pieces(bytes: &[u8], piece: usize) -> Result<Option<usize>, Refused> {
    let mut scan = HeadScan::default();
    for end in (0..bytes.len()).step_by(piece).map(|start| bytes.len().min(start + piece)) {
        if let Some(found) = scan.advance(&bytes[..end], LIMITS.max_size).map_err(|_| Refused)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

#[derive(Debug, PartialEq, Eq)]
struct Refused;

/// How an answer was read.
#[derive(Debug, PartialEq)]
struct Read {
    heads: Vec<(u16, Lines)>,
    outcome: Outcome,
}

#[derive(Debug, PartialEq)]
enum Outcome {
    /// More is needed for a head.
    NoHead,
    Refused,
    BadHead(HeadError),
    BadFraming(FramingError),
    /// How much of a broken body was seen before depends on the pieces.
    BadBody,
    Body {
        body: Vec<u8>,
        used: usize,
        ended: bool,
        trailers: Lines,
    },
}

fn read_answer(bytes: &[u8], piece: usize, to_head: bool) -> Read {
    let mut heads = Vec::new();
    let mut at = 0;
    let mut head = ResponseHead::default();
    let outcome = loop {
        let end = match scan_in_pieces(&bytes[at..], piece) {
            Ok(Some(end)) => end,
            Ok(None) => break Outcome::NoHead,
            Err(Refused) => break Outcome::Refused,
        };
        let mut at_once = ResponseHead::default();
        let whole = at_once.parse_at_once(&bytes[at..], &LIMITS);
        if let Err(error) = head.parse(&bytes[at..at + end], &LIMITS) {
            assert_eq!(whole, None, "{}", shown(bytes));
            break Outcome::BadHead(error);
        }
        if let Some(whole) = whole {
            assert_eq!(
                (whole, at_once.status, lines(&at_once.fields)),
                (end, head.status, lines(&head.fields))
            );
        }
        at += end;
        check_fields(&head.fields);
        assert!((100..1000).contains(&head.status), "{}", head.status);
        heads.push((head.status, lines(&head.fields)));
        let length = match response_body(&head, to_head) {
            Ok(length) => length,
            Err(error) => break Outcome::BadFraming(error),
        };
        if head.is_interim() && heads.len() < 10 {
            continue;
        }
        let mut reader = BodyReader::new(length);
        let mut body = Vec::new();
        break match read_body(&mut reader, &bytes[at..], piece, &mut body) {
            Err(_) => Outcome::BadBody,
            Ok(used) => {
                assert!(body.len() <= used);
                Outcome::Body {
                    body,
                    used,
                    ended: reader.end_of_input(),
                    trailers: reader.trailers().map(lines).unwrap_or_default(),
                }
            }
        };
    };
    Read { heads, outcome }
}

fn read_body(
    reader: &mut BodyReader,
    bytes: &[u8],
    piece: usize,
    body: &mut Vec<u8>,
) -> Result<usize, ChunkedError> {
    let mut at = 0;
    while at < bytes.len() && !reader.has_ended() {
        let used = reader.take(&bytes[at..bytes.len().min(at + piece)], body)?;
        assert!(used > 0, "a body that has not ended takes what it is given");
        at += used;
    }
    Ok(at)
}

/// How a chunked body was decoded.
#[derive(Debug, PartialEq)]
struct Decoded {
    body: Vec<u8>,
    used: usize,
    ended: bool,
    trailers: Lines,
}

fn decode(bytes: &[u8], piece: usize) -> Result<Decoded, ChunkedError> {
    let mut decoder = ChunkedDecoder::default();
    let (mut body, mut used, mut ended) = (Vec::new(), 0, false);
    while used < bytes.len() && !ended {
        let (taken, chunk) = decoder.step(&bytes[used..bytes.len().min(used + piece)])?;
        assert!(taken > 0, "a step goes forward");
        used += taken;
        match chunk {
            Chunk::Data(data) => body.extend_from_slice(data),
            Chunk::End => ended = true,
            Chunk::More => {}
        }
    }
    assert!(body.len() <= used);
    let trailers = if ended { lines(decoder.trailers()) } else { Vec::new() };
    Ok(Decoded { body, used, ended, trailers })
}

/// Nothing that ends a line or a string is in a name or a value, and what is known of a field is true.
fn check_fields(fields: &Fields) {
    assert_eq!(fields.iter().count(), fields.len());
    for (field, name, value) in fields.iter() {
        let Field { known, .. } = field;
        assert!(
            !name.is_empty() && name.iter().all(u8::is_ascii_graphic) && !name.contains(&b':'),
            "{name:?}"
        );
        assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)), "{value:?}");
        assert!(*known == Name::Other || known.as_str().as_bytes().eq_ignore_ascii_case(name));
        assert_eq!(fields.first(*known).is_some(), fields.all(*known).next().is_some());
    }
}

fn lines(fields: &Fields) -> Lines {
    fields.iter().map(|(_, name, value)| (name.to_vec(), value.to_vec())).collect()
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
