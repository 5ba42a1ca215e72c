//! Decides which responses are encoded, and with which coding. Knows heads, no bodies.

use hostler_wire::{Fields, Name, ResponseHead, tokens};

use super::head::DIGESTS;
use super::{Coding, EncoderEffort, MediaRange, accept};

/// The operator's settings for encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodingPlan {
    /// The allowed codings, the best first.
    pub codings: Vec<Coding>,
    /// The media types that are encoded.
    pub types: Vec<MediaRange>,
    /// A body with a known length below this many bytes is not encoded.
    pub min_size: u64,
    /// The effort of the encoders.
    pub effort: EncoderEffort,
    /// Also encode event streams.
    pub event_streams: bool,
}

/// What to do with a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodingDecision {
    /// Send it as it is. No client gets it encoded.
    Leave,
    /// Send it as it is, with `Vary`, because other clients get it encoded.
    Vary,
    /// Encode it.
    Encode(Coding),
}

impl EncodingPlan {
    /// What to do with the response to a request with these fields. `length` is the length of its body, if known.
    pub fn verdict(&self, request: &Fields, answer: &ResponseHead, length: Option<u64>) -> EncodingDecision {
        // A 206 is a part of a body of which the client has other parts without a coding. A 304 is about a body that the client has. Both
        // have the `Vary` of the whole (RFC 9110 sections 15.3.7 and 15.4.5). Their length is not that of the whole.
        let is_about_whole = matches!(answer.status, 206 | 304);
        if !self.is_worth_it(answer, length.filter(|_| !is_about_whole)) || forbids(request) {
            return EncodingDecision::Leave;
        }
        match accept::choose(request.all(Name::AcceptEncoding), &self.codings) {
            Some(coding) if !is_about_whole => EncodingDecision::Encode(coding),
            _ => EncodingDecision::Vary,
        }
    }

    /// Whether the client may have the beginning of an encoded answer, behind which a part of the plain one does not fit: its `If-Range` has
    /// a date or a weak tag, and an encoded answer may have the same ones as the plain one.
    pub fn may_have_sent_part(&self, request: &Fields) -> bool {
        let validator = request.first(Name::IfRange);
        validator.is_some_and(|validator| !validator.starts_with(b"\""))
            && !forbids(request)
            && accept::choose(request.all(Name::AcceptEncoding), &self.codings).is_some()
    }

    fn is_worth_it(&self, answer: &ResponseHead, length: Option<u64>) -> bool {
        // 204 and 205 have no body.
        if matches!(answer.status, 204 | 205) || length.is_some_and(|length| length < self.min_size.max(1)) {
            return false;
        }
        // A body that already has a coding stays as it is. A digest is for exactly these bytes, also one that comes after them.
        let has = |name| answer.fields.first(name).is_some();
        let mut trailers = answer.fields.all(Name::Trailer).flat_map(tokens).map(Name::of);
        let has_digest = DIGESTS.into_iter().any(has) || trailers.any(|name| DIGESTS.contains(&name));
        if has(Name::ContentEncoding) || has_digest || forbids(&answer.fields) {
            return false;
        }
        if answer.status != 206 && has(Name::ContentRange) {
            return false;
        }
        let kind = answer.fields.first(Name::ContentType).unwrap_or_default();
        // Most 304 do not name the type.
        if answer.status == 304 && kind.is_empty() {
            return true;
        }
        match is_event_stream(kind) {
            true => self.event_streams,
            false => self.types.iter().any(|range| range.contains(kind)),
        }
    }
}

/// Whether the request or the response has `no-transform` (RFC 9111 sections 5.2.1.6 and 5.2.2.6).
fn forbids(fields: &Fields) -> bool {
    let mut directives = fields.all(Name::CacheControl).flat_map(tokens);
    directives.any(|directive| directive.eq_ignore_ascii_case(b"no-transform"))
}

fn is_event_stream(kind: &[u8]) -> bool {
    kind.get(..17).is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/event-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> EncodingPlan {
        EncodingPlan {
            codings: vec![Coding::Zstd, Coding::Gzip],
            types: vec!["text/*".parse().unwrap(), "application/json".parse().unwrap()],
            min_size: 100,
            effort: EncoderEffort::Balanced,
            event_streams: false,
        }
    }

    fn answer(status: u16, fields: &[(&str, &str)]) -> ResponseHead {
        let mut head = ResponseHead::new(status, "");
        fields.iter().for_each(|(name, value)| head.fields.add(name.as_bytes(), value.as_bytes()));
        head
    }

    fn request(fields: &[(&str, &str)]) -> Fields {
        answer(200, fields).fields
    }

    fn verdict(
        plan: &EncodingPlan,
        status: u16,
        fields: &[(&str, &str)],
        length: Option<u64>,
    ) -> EncodingDecision {
        plan.verdict(&request(&[("Accept-Encoding", "gzip")]), &answer(status, fields), length)
    }

    #[test]
    fn only_answers_worth_encoding_are_encoded() {
        let html = ("Content-Type", "text/html; charset=utf-8");
        let encode = EncodingDecision::Encode(Coding::Gzip);
        type Case<'a> = (u16, &'a [(&'a str, &'a str)], Option<u64>, EncodingDecision);
        let cases: &[Case<'_>] = &[
            (200, &[html], None, encode),
            (200, &[html], Some(100), encode),
            (200, &[html], Some(99), EncodingDecision::Leave),
            (404, &[html], None, encode),
            (500, &[("Content-Type", "application/json")], None, encode),
            (200, &[("Content-Type", "image/png")], None, EncodingDecision::Leave),
            (200, &[], None, EncodingDecision::Leave),
            (206, &[html, ("Content-Range", "bytes 0-1/2000")], Some(2), EncodingDecision::Vary),
            (206, &[("Content-Type", "image/png")], None, EncodingDecision::Leave),
            (304, &[html], Some(0), EncodingDecision::Vary),
            (304, &[], None, EncodingDecision::Vary),
            (304, &[("Content-Type", "image/png")], None, EncodingDecision::Leave),
            (304, &[("Content-Encoding", "gzip")], None, EncodingDecision::Leave),
            (204, &[html], None, EncodingDecision::Leave),
            (200, &[html, ("Content-Encoding", "gzip")], None, EncodingDecision::Leave),
            (200, &[html, ("Content-Encoding", "identity")], None, EncodingDecision::Leave),
            (200, &[html, ("Content-Range", "bytes 0-1/2")], None, EncodingDecision::Leave),
            (200, &[html, ("Repr-Digest", "sha-256=:AA==:")], None, EncodingDecision::Leave),
            (200, &[html, ("Trailer", "X-Sum, content-md5")], None, EncodingDecision::Leave),
            (200, &[html, ("Trailer", "X-Sum")], None, encode),
            (200, &[html, ("Cache-Control", "public, No-Transform")], None, EncodingDecision::Leave),
            (200, &[html, ("Cache-Control", "public, max-age=3")], None, encode),
            (200, &[("Content-Type", "text/event-stream")], None, EncodingDecision::Leave),
        ];
        for (status, fields, length, expected) in cases {
            assert_eq!(
                verdict(&plan(), *status, fields, *length),
                *expected,
                "{status} {fields:?} {length:?}"
            );
        }
    }

    #[test]
    fn event_streams_are_encoded_where_configured() {
        let asked = EncodingPlan { event_streams: true, types: Vec::new(), ..plan() };
        let events = ("Content-Type", "text/event-stream; charset=utf-8");
        assert_eq!(verdict(&asked, 200, &[events], None), EncodingDecision::Encode(Coding::Gzip));
    }

    #[test]
    fn only_a_strong_tag_says_of_which_form_a_client_has_a_part() {
        let (gzip, date) = (("Accept-Encoding", "gzip"), ("If-Range", "Mon, 01 Jan 2024 00:00:00 GMT"));
        type Case<'a> = (&'a [(&'a str, &'a str)], bool);
        let cases: [Case<'_>; 7] = [
            (&[gzip, date], true),
            (&[gzip, ("If-Range", "W/\"a\"")], true),
            (&[gzip, ("If-Range", "\"a\"")], false),
            (&[gzip], false),
            (&[date], false),
            (&[("Accept-Encoding", "identity"), date], false),
            (&[gzip, date, ("Cache-Control", "no-transform")], false),
        ];
        for (fields, expected) in cases {
            assert_eq!(plan().may_have_sent_part(&request(fields)), expected, "{fields:?}");
        }
    }

    #[test]
    fn a_client_without_a_coding_gets_vary() {
        let html = answer(200, &[("Content-Type", "text/html")]);
        for fields in [&[][..], &[("Accept-Encoding", "br")], &[("Accept-Encoding", "gzip;q=0")]] {
            assert_eq!(plan().verdict(&request(fields), &html, None), EncodingDecision::Vary, "{fields:?}");
        }
        let unwilling = request(&[("Accept-Encoding", "gzip"), ("Cache-Control", "no-transform")]);
        assert_eq!(plan().verdict(&unwilling, &html, None), EncodingDecision::Leave);
    }
}
