//! Joins the CONTINUATION frames of a head into few long ones. Knows no streams.
//!
//! The `h2` crate refuses a head by the number of its frames: six CONTINUATION frames with the default `max_header_size`, however
//! short they are. Hostler's limit on the number of frames is in `flood`; below it, only the length of a head matters.

/// The length of a frame's head (RFC 9113 section 4.1).
const FRAME_HEAD: usize = 9;
/// The longest payload of a frame (RFC 9113 section 6.5.2). Hostler does not change this setting.
const LONGEST: usize = 16_384;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// Processes the bytes of a head after its HEADERS frame.
#[derive(Default)]
pub(super) struct ContinuationJoiner(Option<Box<Open>>);

/// A head that has begun and not ended: the state of its CONTINUATION frames.
#[derive(Default)]
struct Open {
    /// The head of the current frame, as far as it has arrived.
    head: Vec<u8>,
    /// The remaining bytes of its payload.
    ahead: usize,
    /// Payload that was not passed on yet.
    held: Vec<u8>,
    /// The stream of the first CONTINUATION frame.
    stream: Option<[u8; 4]>,
    /// Whether a frame came that is not allowed here. The rest is passed on unchanged, and the `h2` crate ends the connection.
    broken: bool,
}

impl ContinuationJoiner {
    /// Begins after a HEADERS frame that does not end its head.
    pub fn begin(&mut self) {
        self.0.get_or_insert_default();
    }

    /// Whether a head has begun and not ended.
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Takes bytes of the head, and appends to `out` what can be passed on.
    pub fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let Some(open) = &mut self.0 else {
                out.extend_from_slice(bytes);
                return;
            };
            bytes = open.take(bytes, out);
            if open.has_ended() {
                open.pass_on(END_HEADERS, out);
                self.0 = None;
            }
        }
    }
}

impl Open {
    /// Takes some of the bytes, and returns the others.
    fn take<'a>(&mut self, bytes: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        if self.broken {
            out.extend_from_slice(bytes);
            return &[];
        }
        if self.head.len() < FRAME_HEAD {
            let (head, rest) = bytes.split_at(bytes.len().min(FRAME_HEAD - self.head.len()));
            self.head.extend_from_slice(head);
            if self.head.len() == FRAME_HEAD {
                self.begin_frame(out);
            }
            return rest;
        }
        let room = LONGEST - self.held.len();
        if room == 0 {
            self.pass_on(0, out);
            return bytes;
        }
        let (payload, rest) = bytes.split_at(bytes.len().min(self.ahead).min(room));
        self.held.extend_from_slice(payload);
        self.ahead -= payload.len();
        if self.ahead == 0 && !self.has_ended() {
            self.head.clear();
        }
        rest
    }

    fn begin_frame(&mut self, out: &mut Vec<u8>) {
        let &[high, middle, low, kind, _, a, b, c, d] = &self.head[..] else { return };
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        let stream = [a, b, c, d];
        if kind != CONTINUATION || length > LONGEST || self.stream.is_some_and(|first| first != stream) {
            self.broken = true;
            if self.stream.is_some() {
                self.pass_on(0, out);
            }
            out.extend_from_slice(&self.head);
            return;
        }
        self.stream = Some(stream);
        self.ahead = length;
        if length == 0 && !self.has_ended() {
            self.head.clear();
        }
    }

    /// Whether the last frame of the head is complete.
    fn has_ended(&self) -> bool {
        !self.broken && self.ahead == 0 && self.head.len() == FRAME_HEAD && self.head[4] & END_HEADERS != 0
    }

    /// Passes the held payload on as one frame.
    fn pass_on(&mut self, flags: u8, out: &mut Vec<u8>) {
        let length = (self.held.len() as u32).to_be_bytes();
        out.extend_from_slice(&length[1..]);
        out.extend_from_slice(&[CONTINUATION, flags]);
        out.extend_from_slice(&self.stream.unwrap_or_default());
        out.append(&mut self.held);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend_from_slice(&[kind, flags, 0, 0, 0, stream]);
        frame.extend_from_slice(payload);
        frame
    }

    fn joined(bytes: &[u8], piece: usize) -> (Vec<u8>, bool) {
        let (mut joiner, mut out) = (ContinuationJoiner::default(), Vec::new());
        joiner.begin();
        for piece in bytes.chunks(piece) {
            joiner.take(piece, &mut out);
        }
        (out, joiner.is_open())
    }

    #[test]
    fn short_frames_become_one() {
        let frames =
            [frame(9, 0, 1, b"ab"), frame(9, 0, 1, b""), frame(9, 4, 1, b"c"), frame(0, 1, 1, b"body")];
        let expected = [frame(9, 4, 1, b"abc"), frame(0, 1, 1, b"body")].concat();
        assert_eq!(joined(&frames.concat(), 1000), (expected, false));
        assert_eq!(joined(&frame(9, 4, 1, b""), 1), (frame(9, 4, 1, b""), false));
        assert_eq!(joined(&frame(9, 0, 1, b"ab"), 3), (vec![], true));
    }

    #[test]
    fn frames_that_are_not_allowed_there_pass_unchanged() {
        let first = frame(9, 0, 1, b"ab");
        for wrong in [frame(0, 0, 1, b"x"), frame(9, 4, 3, b"x"), frame(9, 4, 1, &[0; LONGEST + 1])] {
            let came = [&first[..], &wrong, &first].concat();
            assert_eq!(joined(&came, 7).0, came);
            assert_eq!(joined(&wrong, 7).0, wrong);
        }
    }

    proptest! {
        #[test]
        fn no_byte_of_a_head_is_lost(lengths in vec(0_usize..20_000, 1..12), piece in 1_usize..30_000) {
            let mut number = 0_u8;
            let mut payload = |length: usize| {
                let bytes: Vec<u8> = (0..length.min(LONGEST)).map(|at| (at % 251) as u8 ^ number).collect();
                number += 1;
                bytes
            };
            let payloads: Vec<_> = lengths.iter().map(|length| payload(*length)).collect();
            let last = payloads.len() - 1;
            let flags = |at| if at == last { END_HEADERS } else { 0 };
            let frames = payloads.iter().enumerate().map(|(at, payload)| frame(9, flags(at), 1, payload));
            let (out, open) = joined(&frames.collect::<Vec<_>>().concat(), piece);
            prop_assert!(!open);
            let whole = payloads.concat();
            let expected = match whole.len() {
                0 => frame(9, END_HEADERS, 1, b""),
                _ => {
                    let count = whole.len().div_ceil(LONGEST);
                    let flags = |at| if at + 1 == count { END_HEADERS } else { 0 };
                    let pieces = whole.chunks(LONGEST).enumerate();
                    pieces.map(|(at, piece)| frame(9, flags(at), 1, piece)).collect::<Vec<_>>().concat()
                }
            };
            prop_assert!(out == expected);
        }
    }
}
