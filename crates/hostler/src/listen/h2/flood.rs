//! Counts the frames that are cheap for a client and expensive for Hostler, and tells when there are too many. Knows no streams and no sockets.
//!
//! The limits are for each connection, and far above what an honest client needs. Each is a token bucket. The `h2` crate has limits of its
//! own besides.

use std::fmt;

use tokio::time::Instant;

/// The length of the preface, `PRI * HTTP/2.0` and what follows it (RFC 9113 section 3.4).
const PREFACE: u32 = 24;
/// The length of a frame's head (RFC 9113 section 4.1).
const FRAME_HEAD: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

/// The most CONTINUATION frames of one head; more if the longest allowed head needs them.
const MOST_CONTINUATIONS: u32 = 32;
/// The longest payload of a frame (RFC 9113 section 6.5.2).
const LONGEST_FRAME: usize = 16_384;
/// For this many heads the client may reset one more stream: a proxy resets the streams of its own clients that leave. A client that resets
/// all its streams is stopped nearly as soon.
const HEADS_A_RESET: u8 = 8;
/// For this many bytes of answers the client may send one more WINDOW_UPDATE: an honest client may send one for each small frame.
const BYTES_A_WINDOW_UPDATE: usize = 256;
/// A PING after this many bytes of answers does not count. A client of gRPC measures the connection so: when data comes and its last PING was
/// answered, it sends a WINDOW_UPDATE and a PING. These are the answer to a PING and a DATA frame with an empty message.
const BYTES_A_PING: usize = 2 * FRAME_HEAD + 8 + 5;

/// How many frames of a kind a client may send at once, and then per second.
struct FloodLimit {
    most: u32,
    a_second: u32,
}

const RESETS: FloodLimit = FloodLimit { most: 500, a_second: 33 };
const SETTINGS_FRAMES: FloodLimit = FloodLimit { most: 100, a_second: 5 };
const PINGS: FloodLimit = FloodLimit { most: 1000, a_second: 200 };
const EMPTY_DATA: FloodLimit = FloodLimit { most: 200, a_second: 20 };
const WINDOW_UPDATES: FloodLimit = FloodLimit { most: 5000, a_second: 500 };
const OTHERS: FloodLimit = FloodLimit { most: 1000, a_second: 100 };

/// What a client sends too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Flood {
    /// Streams opened and reset.
    Resets = 1,
    /// A head in too many CONTINUATION frames.
    Continuations,
    /// SETTINGS, each of which requires an answer.
    Settings,
    /// PING, each of which requires an answer.
    Pings,
    /// Empty DATA frames that do not end a stream.
    EmptyData,
    /// WINDOW_UPDATE.
    WindowUpdates,
    /// PRIORITY, GOAWAY, and unknown types.
    Others,
    /// A head that is not complete within `server.header_timeout`.
    SlowHead,
}

impl Flood {
    const ALL: [Self; 8] = [
        Self::Resets,
        Self::Continuations,
        Self::Settings,
        Self::Pings,
        Self::EmptyData,
        Self::WindowUpdates,
        Self::Others,
        Self::SlowHead,
    ];

    /// The kind with this number.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|flood| *flood as u8 == number)
    }
}

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resets => "too many streams opened and reset",
            Self::Continuations => "a head in too many CONTINUATION frames",
            Self::Settings => "too many SETTINGS frames",
            Self::Pings => "too many PING frames",
            Self::EmptyData => "too many empty DATA frames",
            Self::WindowUpdates => "too many WINDOW_UPDATE frames",
            Self::Others => "too many PRIORITY, GOAWAY or unknown frames",
            Self::SlowHead => "a head that did not arrive in time (server.header_timeout)",
        })
    }
}

/// A token bucket for frames with a limit. Each connection has six of them, so they are small.
struct Bucket {
    left: u32,
    /// When the bucket was last filled, in milliseconds since its meter began. The clock is read only when it is empty. The milliseconds of 50 days do
    /// not fit, so they begin again at 0: a bucket may then get fewer tokens, once.
    filled: u32,
}

impl Bucket {
    fn full(limit: &FloodLimit) -> Self {
        Self { left: limit.most, filled: 0 }
    }

    /// Takes one token. False if there is none. `began`: when the meter began.
    fn take(&mut self, limit: &FloodLimit, began: Instant) -> bool {
        if self.left == 0 {
            let now = began.elapsed().as_millis() as u32;
            let millis = u64::from(now.wrapping_sub(self.filled));
            let earned = millis * u64::from(limit.a_second) / 1000;
            if earned > 0 {
                self.filled = now;
            }
            self.left = u32::try_from(earned).unwrap_or(u32::MAX).min(limit.most);
        }
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }

    fn give(&mut self, more: usize, limit: &FloodLimit) {
        self.left = self.left.saturating_add(u32::try_from(more).unwrap_or(u32::MAX)).min(limit.most);
    }
}

/// Follows the frames of a client, in pieces of any size.
pub(super) struct FloodMeter {
    /// The remaining bytes of the preface or of a payload.
    ahead: u32,
    head: [u8; FRAME_HEAD],
    /// How many bytes of the next frame's head have arrived.
    known: u8,
    /// The type of the current frame; none before the first one.
    kind: Option<u8>,
    /// Whether a head has begun and not ended.
    open: bool,
    /// Whether a head has begun since [`Self::take_begun`] was last called.
    has_begun: bool,
    continuations: u32,
    /// Heads for which no token was added yet.
    heads: u8,
    most_continuations: u32,
    /// So many resets may be the end of an event stream, a response of gRPC or a tunnel.
    lasting: u32,
    /// When the connection began. The buckets count from here.
    began: Instant,
    resets: Bucket,
    settings: Bucket,
    pings: Bucket,
    empty_data: Bucket,
    window_updates: Bucket,
    others: Bucket,
    /// Bytes written for which no token was added yet.
    written: u8,
    /// Bytes written since the last PING that did not count.
    since_ping: usize,
}

impl FloodMeter {
    /// A meter for heads of at most `max_header_size` bytes. A client may fill only half of each frame.
    pub fn new(max_header_size: usize) -> Self {
        let needed = u32::try_from(2 * max_header_size.div_ceil(LONGEST_FRAME)).unwrap_or(u32::MAX);
        Self {
            ahead: PREFACE,
            head: [0; FRAME_HEAD],
            known: 0,
            kind: None,
            open: false,
            has_begun: false,
            continuations: 0,
            heads: 0,
            most_continuations: needed.max(MOST_CONTINUATIONS),
            lasting: 0,
            began: Instant::now(),
            resets: Bucket::full(&RESETS),
            settings: Bucket::full(&SETTINGS_FRAMES),
            pings: Bucket::full(&PINGS),
            empty_data: Bucket::full(&EMPTY_DATA),
            window_updates: Bucket::full(&WINDOW_UPDATES),
            others: Bucket::full(&OTHERS),
            written: 0,
            since_ping: 0,
        }
    }

    /// Counts the frames in `bytes`.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), Flood> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.ahead > 0 {
                let passed = rest.len().min(self.ahead as usize);
                self.ahead -= passed as u32;
                rest = &rest[passed..];
            } else {
                let known = usize::from(self.known);
                let taken = rest.len().min(FRAME_HEAD - known);
                self.head[known..known + taken].copy_from_slice(&rest[..taken]);
                self.known += taken as u8;
                rest = &rest[taken..];
                if known + taken == FRAME_HEAD {
                    self.known = 0;
                    self.begin_frame()?;
                }
            }
        }
        Ok(())
    }

    /// Notes bytes that were written.
    pub fn wrote(&mut self, bytes: usize) {
        let written = usize::from(self.written) + bytes;
        self.window_updates.give(written / BYTES_A_WINDOW_UPDATE, &WINDOW_UPDATES);
        self.written = (written % BYTES_A_WINDOW_UPDATE) as u8;
        self.since_ping = self.since_ping.saturating_add(bytes);
    }

    /// Notes that event streams, responses of gRPC and tunnels have begun. A client has no other way to end one than a reset, so as many resets
    /// are no flood; at most `most`, which is how many may be open at the same time.
    pub fn note_lasting(&mut self, begun: u32, most: u32) {
        self.lasting = self.lasting.saturating_add(begun).min(most);
    }

    /// Whether the preface with its SETTINGS, or a head, has begun and not ended. Both must arrive within `header_timeout`.
    pub fn is_inside_head(&self) -> bool {
        self.open
            || self.kind.is_none()
            || (self.ahead > 0 && matches!(self.kind, Some(HEADERS | CONTINUATION)))
    }

    /// Whether a head has begun since the last call. It has its own time, even if the end of the head before it came with it.
    pub fn take_begun(&mut self) -> bool {
        std::mem::take(&mut self.has_begun)
    }

    fn begin_frame(&mut self) -> Result<(), Flood> {
        let [high, middle, low, kind, flags, ..] = self.head;
        let length = u32::from_be_bytes([0, high, middle, low]);
        self.ahead = length;
        self.kind = Some(kind);
        let has = |flag| flags & flag != 0;
        let (bucket, limit, flood) = match kind {
            HEADERS => {
                self.open = !has(END_HEADERS);
                self.continuations = 0;
                self.begin_head();
                return Ok(());
            }
            CONTINUATION => {
                self.open = !has(END_HEADERS);
                self.continuations += 1;
                let few = self.continuations <= self.most_continuations;
                return if few { Ok(()) } else { Err(Flood::Continuations) };
            }
            DATA if length > u32::from(has(PADDED)) || has(END_STREAM) => return Ok(()),
            DATA => (&mut self.empty_data, EMPTY_DATA, Flood::EmptyData),
            RST_STREAM if self.lasting > 0 => {
                self.lasting -= 1;
                return Ok(());
            }
            RST_STREAM => (&mut self.resets, RESETS, Flood::Resets),
            SETTINGS => (&mut self.settings, SETTINGS_FRAMES, Flood::Settings),
            PING if self.since_ping >= BYTES_A_PING => {
                self.since_ping = 0;
                self.window_updates.give(1, &WINDOW_UPDATES);
                return Ok(());
            }
            PING => (&mut self.pings, PINGS, Flood::Pings),
            WINDOW_UPDATE => (&mut self.window_updates, WINDOW_UPDATES, Flood::WindowUpdates),
            _ => (&mut self.others, OTHERS, Flood::Others),
        };
        if bucket.take(&limit, self.began) { Ok(()) } else { Err(flood) }
    }

    /// A proxy sends the requests of many clients. What it may do grows with them.
    fn begin_head(&mut self) {
        self.has_begun = true;
        // Some programs send an empty frame before the end of each body.
        self.empty_data.give(1, &EMPTY_DATA);
        self.heads += 1;
        if self.heads == HEADS_A_RESET {
            self.heads = 0;
            self.resets.give(1, &RESETS);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let mut frame = (length as u32).to_be_bytes()[1..].to_vec();
        frame.extend_from_slice(&[kind, flags, 0, 0, 0, 1]);
        frame.resize(FRAME_HEAD + length, 0);
        frame
    }

    fn begun() -> FloodMeter {
        let mut meter = FloodMeter::new(65_536);
        meter.read(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        assert!(meter.is_inside_head(), "the first SETTINGS belong to it");
        meter.read(&frame(SETTINGS, 0, 0)).unwrap();
        assert!(!meter.is_inside_head());
        meter
    }

    /// How many such frames are accepted, and the flood that follows.
    fn borne(meter: &mut FloodMeter, kind: u8, flags: u8, length: usize) -> (usize, Option<Flood>) {
        let frame = frame(kind, flags, length);
        (0..10_000).find_map(|count| Some((count, Some(meter.read(&frame).err()?)))).unwrap_or((10_000, None))
    }

    #[tokio::test(start_paused = true)]
    async fn each_flood_is_known_by_its_frames() {
        let cases = [
            (RST_STREAM, 0, 4, 500, Some(Flood::Resets)),
            (SETTINGS, 0, 0, 99, Some(Flood::Settings)),
            (SETTINGS, 1, 0, 99, Some(Flood::Settings)),
            (PING, 0, 8, 1000, Some(Flood::Pings)),
            (DATA, 0, 0, 200, Some(Flood::EmptyData)),
            (DATA, PADDED, 1, 200, Some(Flood::EmptyData)),
            (WINDOW_UPDATE, 0, 4, 5000, Some(Flood::WindowUpdates)),
            (CONTINUATION, 0, 0, 32, Some(Flood::Continuations)),
            (2, 0, 5, 1000, Some(Flood::Others)),
            (7, 0, 8, 1000, Some(Flood::Others)),
            (0xfa, 0, 0, 1000, Some(Flood::Others)),
            (DATA, END_STREAM, 0, 10_000, None),
            (DATA, 0, 1, 10_000, None),
            (HEADERS, END_HEADERS, 20, 10_000, None),
        ];
        for (kind, flags, length, expected, flood) in cases {
            assert_eq!(borne(&mut begun(), kind, flags, length), (expected, flood), "{kind}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_frames_are_no_flood() {
        let mut meter = begun();
        for _ in 0..3000 {
            meter.read(&frame(RST_STREAM, 0, 4)).unwrap();
            tokio::time::advance(Duration::from_millis(40)).await;
        }
        let (many, flood) = borne(&mut meter, RST_STREAM, 0, 4);
        assert!(many <= 501 && flood == Some(Flood::Resets), "{many}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_limits_hold_however_long_the_connection_is_open() {
        let mut meter = begun();
        for _month in 0..5 {
            (0..500).for_each(|_| meter.read(&frame(RST_STREAM, 0, 4)).unwrap());
            tokio::time::advance(Duration::from_secs(30 * 24 * 3600)).await;
        }
        assert_eq!(borne(&mut meter, RST_STREAM, 0, 4), (500, Some(Flood::Resets)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_an_event_stream_is_no_flood() {
        let mut meter = begun();
        for _ in 0..1000 {
            meter.note_lasting(10, 128);
            (0..10).for_each(|_| meter.read(&frame(RST_STREAM, 0, 4)).unwrap());
        }
        // Those that end in another way are not saved up.
        meter.note_lasting(1000, 128);
        assert_eq!(borne(&mut meter, RST_STREAM, 0, 4), (628, Some(Flood::Resets)));
    }

    #[tokio::test(start_paused = true)]
    async fn window_updates_for_read_bytes_are_no_flood() {
        let mut meter = begun();
        for _ in 0..20_000 {
            meter.wrote(600);
            meter.read(&frame(WINDOW_UPDATE, 0, 4)).unwrap();
            meter.read(&frame(WINDOW_UPDATE, 0, 4)).unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_ping_for_each_message_is_no_flood() {
        let mut meter = begun();
        for _ in 0..20_000 {
            // An empty message of gRPC, and then the answer to the PING.
            meter.wrote(FRAME_HEAD + 5);
            meter.read(&frame(WINDOW_UPDATE, 0, 4)).unwrap();
            meter.read(&frame(PING, 0, 8)).unwrap();
            meter.wrote(FRAME_HEAD + 8);
        }
        // Answers to other PINGs do not make up for them.
        let flooded = (0..3000).find_map(|_| {
            meter.wrote(FRAME_HEAD + 8);
            meter.read(&frame(PING, 0, 8)).err()
        });
        assert_eq!(flooded, Some(Flood::Pings));
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_may_reset_some_of_many_streams_and_send_an_empty_frame_in_each() {
        let mut meter = begun();
        let stream =
            [frame(HEADERS, END_HEADERS, 20), frame(DATA, 0, 0), frame(DATA, END_STREAM, 0)].concat();
        for _ in 0..1000 {
            meter.read(&stream.repeat(8)).unwrap();
            meter.read(&frame(RST_STREAM, 0, 4)).unwrap();
        }
        let rapid = [frame(HEADERS, END_HEADERS, 20), frame(RST_STREAM, 0, 4)].concat();
        let flooded = (0..600).find_map(|_| meter.read(&rapid).err());
        assert_eq!(flooded, Some(Flood::Resets));
    }

    #[test]
    fn a_head_is_under_way_until_its_last_byte() {
        let mut meter = begun();
        let (first, last) = (frame(HEADERS, 0, 10), frame(CONTINUATION, END_HEADERS, 10));
        let bytes = [first, last].concat();
        for byte in &bytes[..bytes.len() - 1] {
            meter.read(std::slice::from_ref(byte)).unwrap();
        }
        assert!(meter.is_inside_head());
        meter.read(&bytes[bytes.len() - 1..]).unwrap();
        assert!(!meter.is_inside_head());
    }

    #[test]
    fn a_head_that_begins_behind_the_end_of_another_is_told() {
        let mut meter = begun();
        let head = frame(HEADERS, END_HEADERS, 20);
        assert!(!meter.take_begun());
        let both = [&head[20..], &head[..15]].concat();
        let pieces = [&head[..15], &head[15..20], &both[..]];
        for (piece, begins) in pieces.into_iter().zip([true, false, true]) {
            meter.read(piece).unwrap();
            assert!(meter.is_inside_head());
            assert_eq!(meter.take_begun(), begins);
        }
    }

    #[test]
    fn a_long_head_may_need_more_frames() {
        let mut meter = FloodMeter::new(1 << 20);
        meter.read(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        meter.read(&frame(SETTINGS, 0, 0)).unwrap();
        assert_eq!(borne(&mut meter, CONTINUATION, 0, 0), (128, Some(Flood::Continuations)));
    }

    #[test]
    fn each_kind_of_excess_has_its_own_number() {
        for flood in Flood::ALL {
            assert_eq!(Flood::of(flood as u8), Some(flood));
        }
        assert_eq!(Flood::of(0), None);
    }

    proptest! {
        #[test]
        fn frames_are_counted_equally_however_the_bytes_are_cut(
            frames in vec((0_u8..11, any::<u8>(), 0_usize..300), 1..60),
            cuts in vec(1_usize..100, 1..20),
        ) {
            let bytes = frames.iter().map(|(kind, flags, length)| frame(*kind, *flags, *length)).collect::<Vec<_>>().concat();
            let mut whole = begun();
            let expected = whole.read(&bytes);
            let (mut cut, mut rest, mut seen) = (begun(), &bytes[..], Ok(()));
            for size in cuts.iter().cycle() {
                if rest.is_empty() || seen.is_err() {
                    break;
                }
                let (piece, more) = rest.split_at(rest.len().min(*size));
                seen = cut.read(piece);
                rest = more;
            }
            prop_assert_eq!(seen, expected);
            prop_assert_eq!(cut.is_inside_head(), whole.is_inside_head());
            // So few frames are no flood, so what is left is compared.
            let left = |meter: &FloodMeter| {
                let of_answers = [&meter.resets, &meter.settings, &meter.pings].map(|bucket| bucket.left);
                let others = [&meter.empty_data, &meter.window_updates, &meter.others].map(|bucket| bucket.left);
                (of_answers, others, meter.continuations, meter.heads)
            };
            prop_assert_eq!(left(&cut), left(&whole));
        }
    }
}
