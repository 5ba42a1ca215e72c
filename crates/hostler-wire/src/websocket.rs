//! Finds where one WebSocket frame ends and the next begins (RFC 6455 section 5.2), and writes a Close frame. Reads no
//! payload.

/// The longest head of a frame: two bytes, a length of eight bytes, a mask of four bytes.
const LONGEST_HEAD: usize = 14;
const CLOSE: u8 = 0x8;

/// Follows the frames of one direction, in pieces of any size.
#[derive(Debug, Default)]
pub struct Frames {
    head: [u8; LONGEST_HEAD],
    /// How many bytes of the head have come.
    come: u8,
    /// How many bytes of the payload are still to come.
    left: u64,
    closed: bool,
}

impl Frames {
    /// Takes the next bytes up to the first end of a frame. Returns how many these are: all bytes if no frame ends in
    /// them.
    pub fn take_to_end(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            if self.left > 0 {
                let part = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len() - at);
                at += part;
                self.left -= part as u64;
            } else {
                self.head[usize::from(self.come)] = bytes[at];
                self.come += 1;
                at += 1;
                if usize::from(self.come) < self.head_length() {
                    continue;
                }
                self.left = self.payload_length();
            }
            if self.left == 0 {
                self.closed |= self.head[0] & 0x0f == CLOSE;
                self.come = 0;
                return at;
            }
        }
        at
    }

    /// Takes the next bytes.
    pub fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = &bytes[self.take_to_end(bytes)..];
        }
    }

    /// Whether the position is between two frames, or before the first one. Another frame may be inserted here.
    pub fn is_between(&self) -> bool {
        self.come == 0
    }

    /// Whether a whole Close frame has come. No frame may follow it.
    pub fn has_closed(&self) -> bool {
        self.closed
    }

    /// The length of the head, as far as it is known: the second byte determines it.
    fn head_length(&self) -> usize {
        if self.come < 2 {
            return 2;
        }
        let mask = if self.head[1] & 0x80 == 0 { 0 } else { 4 };
        2 + self.extended_length() + mask
    }

    fn extended_length(&self) -> usize {
        match self.head[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        }
    }

    fn payload_length(&self) -> u64 {
        match self.extended_length() {
            0 => u64::from(self.head[1] & 0x7f),
            bytes => self.head[2..2 + bytes].iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
        }
    }
}

/// "Going away" (RFC 6455 section 7.4.1). Clients reconnect after it.
const GOING_AWAY: u16 = 1001;

/// A Close frame with "going away". Frames of clients must be masked.
pub fn going_away(mask: Option<[u8; 4]>) -> Vec<u8> {
    let [high, low] = GOING_AWAY.to_be_bytes();
    match mask {
        None => vec![0x80 | CLOSE, 2, high, low],
        Some(mask) => {
            let [a, b, c, d] = mask;
            vec![0x80 | CLOSE, 0x80 | 2, a, b, c, d, high ^ a, low ^ b]
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn frame(opcode: u8, masked: bool, payload: usize) -> Vec<u8> {
        let mask = if masked { 0x80 } else { 0 };
        let mut frame = vec![0x80 | opcode];
        match payload {
            0..126 => frame.push(mask | payload as u8),
            126..65536 => {
                frame.push(mask | 126);
                frame.extend_from_slice(&(payload as u16).to_be_bytes());
            }
            _ => {
                frame.push(mask | 127);
                frame.extend_from_slice(&(payload as u64).to_be_bytes());
            }
        }
        frame.extend_from_slice(if masked { &[1, 2, 3, 4] } else { &[] });
        // The payload looks like the head of a frame.
        frame.resize(frame.len() + payload, 0x88);
        frame
    }

    #[test]
    fn frames_of_all_lengths_cut_at_any_byte_end_where_they_end() {
        for masked in [false, true] {
            for payload in [0, 1, 2, 125, 126, 127, 300] {
                let bytes = [frame(1, masked, payload), frame(2, masked, 7)].concat();
                let first = bytes.len() - frame(2, masked, 7).len();
                for cut in 0..=bytes.len() {
                    let mut frames = Frames::default();
                    frames.take(&bytes[..cut]);
                    assert_eq!(
                        frames.is_between(),
                        [0, first, bytes.len()].contains(&cut),
                        "{payload} {cut}"
                    );
                    if cut < first {
                        assert_eq!(frames.take_to_end(&bytes[cut..]), first - cut);
                    }
                    assert!(!frames.has_closed());
                }
            }
        }
    }

    #[test]
    fn a_length_of_eight_bytes_is_read_whole() {
        let mut frames = Frames::default();
        frames.take(&frame(2, true, 70_000));
        assert!(frames.is_between());
        frames.take(&[0x82, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        frames.take(&[0; 100_000]);
        assert!(!frames.is_between(), "a length that never ends is no reason to fail");
    }

    #[test]
    fn a_close_frame_counts_once_it_is_whole() {
        for mask in [None, Some([9, 8, 7, 6])] {
            let close = going_away(mask);
            let mut frames = Frames::default();
            frames.take(&frame(1, mask.is_some(), 3));
            frames.take(&close[..close.len() - 1]);
            assert!(!frames.has_closed());
            frames.take(&close[close.len() - 1..]);
            assert!(frames.has_closed() && frames.is_between());
        }
        assert_eq!(going_away(None), [0x88, 2, 0x03, 0xe9]);
        assert_eq!(going_away(Some([1, 2, 3, 4])), [0x88, 0x82, 1, 2, 3, 4, 0x03 ^ 1, 0xe9 ^ 2]);
    }

    proptest! {
        #[test]
        fn frames_end_at_the_same_bytes_however_the_stream_is_cut(
            kinds in vec((0_u8..11, any::<bool>(), 0_usize..70_000), 1..6),
            cuts in vec(1_usize..5_000, 1..40),
        ) {
            let frames: Vec<_> = kinds.iter().map(|(opcode, masked, len)| frame(*opcode, *masked, *len)).collect();
            let ends: Vec<usize> = frames.iter().scan(0, |end, frame| { *end += frame.len(); Some(*end) }).collect();
            let (bytes, mut found, mut at) = (frames.concat(), Vec::new(), 0);
            let (mut follower, mut cuts) = (Frames::default(), cuts.iter().cycle());
            while at < bytes.len() {
                let piece = &bytes[at..bytes.len().min(at + cuts.next().unwrap())];
                at += follower.take_to_end(piece);
                if follower.is_between() {
                    found.push(at);
                }
            }
            prop_assert_eq!(found, ends);
            prop_assert_eq!(follower.has_closed(), kinds.iter().any(|(opcode, ..)| *opcode == CLOSE));
        }

        #[test]
        fn no_websocket_bytes_cause_a_panic(pieces in vec(vec(any::<u8>(), 0..40), 0..20)) {
            let mut frames = Frames::default();
            pieces.iter().for_each(|piece| frames.take(piece));
        }
    }
}
