//! Makes an answer with several ranges (RFC 9110 section 14.6). Decides nothing.

use std::ops::Range;

use bytes::Bytes;
use hostler_wire::{Name, ResponseHead, content_range, write_field, write_head_end};

use super::head::is_of_all_content;

/// The head and body of an answer with these parts of `body`. The `boundary` must not occur in the body.
pub fn parts(
    stored: &ResponseHead,
    body: &Bytes,
    parts: &[Range<u64>],
    boundary: &str,
) -> (ResponseHead, Bytes) {
    let mut head = ResponseHead::with_status(206);
    for (field, name, value) in stored.fields.iter() {
        if field.known != Name::ContentType && !is_of_all_content(field) {
            head.fields.add(name, value);
        }
    }
    let kind = format!("multipart/byteranges; boundary={boundary}");
    head.fields.add(b"Content-Type", kind.as_bytes());
    let kind = stored.fields.first(Name::ContentType);
    let bytes: u64 = parts.iter().map(|part| part.end - part.start).sum();
    let mut all = Vec::with_capacity(bytes as usize + (parts.len() + 1) * 200);
    for part in parts {
        all.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
        if let Some(kind) = kind {
            write_field(&mut all, b"Content-Type", kind);
        }
        let range = content_range(part, body.len() as u64);
        write_field(&mut all, b"Content-Range", range.as_bytes());
        write_head_end(&mut all);
        all.extend_from_slice(&body[part.start as usize..part.end as usize]);
        all.extend_from_slice(b"\r\n");
    }
    all.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (head, all.into())
}

#[cfg(test)]
mod tests {
    use hostler_wire::Limits;

    use super::*;

    #[test]
    fn each_part_of_a_multipart_answer_names_its_type_and_range() {
        let mut stored = ResponseHead::default();
        let text = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Digest: x\r\nETag: \"a\"\r\n\r\n";
        stored.parse(text, &Limits::default()).unwrap();
        let (head, body) = parts(&stored, &Bytes::from_static(b"0123456789"), &[0..2, 5..6], "edge");
        assert_eq!((head.status, head.fields.first(Name::ContentRange)), (206, None));
        assert_eq!(head.fields.first(Name::ContentDigest), None, "that was of the whole");
        let kind = head.fields.first(Name::ContentType).unwrap();
        assert_eq!(kind, b"multipart/byteranges; boundary=edge");
        let expected = "--edge\nContent-Type: text/plain\nContent-Range: bytes 0-1/10\n\n01\n\
            --edge\nContent-Type: text/plain\nContent-Range: bytes 5-5/10\n\n5\n--edge--\n";
        assert_eq!(body, expected.replace('\n', "\r\n"));
    }
}
