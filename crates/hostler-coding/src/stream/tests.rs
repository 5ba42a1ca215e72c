//! Bodies in pieces, decoded again with other libraries.

use std::collections::VecDeque;
use std::future::poll_fn;

use compression_codecs::core::util::{PartialBuffer, WriteBuffer};
use compression_codecs::{BrotliDecoder, DecodeV2, GzipDecoder, ZstdDecoder};
use proptest::prelude::*;
use tokio::time::{advance, sleep_until, timeout};

use super::*;
use crate::EncoderMemory;

const CODINGS: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];
const EFFORTS: [EncoderEffort; 3] = [EncoderEffort::Low, EncoderEffort::Balanced, EncoderEffort::High];

fn stream(coding: Coding, effort: EncoderEffort, flow: Flow) -> (EncodedStream, Arc<EncoderMemory>) {
    let memory = Arc::new(EncoderMemory::new(u64::MAX));
    let allowance = Allowance::new(memory.clone());
    (EncodedStream::begin(coding, effort, flow, &allowance, None).unwrap(), memory)
}

/// The decoded text of the pieces so far.
fn decoded(coding: Coding, encoded: &[u8]) -> Vec<u8> {
    let mut decoder: Box<dyn DecodeV2> = match coding {
        Coding::Brotli => Box::new(BrotliDecoder::new()),
        Coding::Zstd => Box::new(ZstdDecoder::new()),
        Coding::Gzip => Box::new(GzipDecoder::new()),
    };
    let (mut input, mut plain, mut room) = (PartialBuffer::new(encoded), Vec::new(), vec![0; 4096]);
    if encoded.is_empty() {
        return plain;
    }
    loop {
        let mut output = WriteBuffer::new_initialized(&mut room);
        let is_end = decoder.decode(&mut input, &mut output).unwrap();
        let came = output.written().to_vec();
        plain.extend_from_slice(&came);
        if is_end || input.unwritten().is_empty() && came.len() < 4096 {
            return plain;
        }
    }
}

/// A body in pieces. An empty piece is a pause.
struct Pieces {
    pieces: VecDeque<Vec<u8>>,
}

impl Pieces {
    fn poll(&mut self, cx: &mut Context<'_>, into: &mut Vec<u8>, max: usize) -> Poll<Result<bool, ()>> {
        let Some(piece) = self.pieces.front_mut() else { return Poll::Ready(Ok(true)) };
        if piece.is_empty() {
            self.pieces.pop_front();
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        into.extend(piece.drain(..piece.len().min(max)));
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        Poll::Ready(Ok(false))
    }
}

async fn encoded(stream: &mut EncodedStream, pieces: Vec<Vec<u8>>) -> Vec<u8> {
    let mut source = Pieces { pieces: pieces.into() };
    let mut into = Vec::new();
    while !poll_fn(|cx| stream.poll(cx, &mut into, |cx, into, max| source.poll(cx, into, max))).await.unwrap()
    {
    }
    into
}

fn page(length: usize) -> Vec<u8> {
    let words = ["<li>", "calendar", " of ", "reviews", "</li>\n", "photo", " & "];
    let mut random = fastrand::Rng::with_seed(7);
    let mut page = Vec::new();
    while page.len() < length {
        page.extend_from_slice(words[random.usize(..words.len())].as_bytes());
    }
    page.truncate(length);
    page
}

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_body_encoded_in_pieces_decodes_to_the_original(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5000), 0..12),
        coding in prop::sample::select(&CODINGS[..]),
        effort in prop::sample::select(&EFFORTS[..]),
        events in any::<bool>(),
    ) {
        let whole = pieces.concat();
        let flow = if events { Flow::Events } else { Flow::Bytes };
        let (mut stream, memory) = stream(coding, effort, flow);
        let encoded = run(encoded(&mut stream, pieces));
        prop_assert_eq!(decoded(coding, &encoded), whole.clone());
        let usage = memory.usage();
        prop_assert_eq!((usage.bytes_before, usage.bytes_after), (whole.len() as u64, encoded.len() as u64));
    }
}

#[tokio::test(start_paused = true)]
async fn large_bodies_arrive_whole_and_much_smaller() {
    for coding in CODINGS {
        for effort in EFFORTS {
            let whole = page(700_000);
            let (mut stream, memory) = stream(coding, effort, Flow::Bytes);
            let encoded = encoded(&mut stream, vec![whole.clone()]).await;
            assert!(encoded.len() < whole.len() / 3, "{coding:?} {effort:?}: {}", encoded.len());
            assert_eq!(decoded(coding, &encoded), whole, "{coding:?} {effort:?}");
            drop(stream);
            assert_eq!(memory.usage().memory, 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn buffered_bytes_are_flushed_after_a_pause() {
    for coding in CODINGS {
        let (mut stream, _) = stream(coding, EncoderEffort::Balanced, Flow::Bytes);
        let (mut into, mut said) = (Vec::new(), VecDeque::from([&b"<head>"[..], b"</head>"]));
        let mut come = async |into: &mut Vec<u8>| {
            let source = |_: &mut Context<'_>, into: &mut Vec<u8>, _| match said.pop_front() {
                Some(said) => {
                    into.extend_from_slice(said);
                    Poll::Ready(Ok::<_, ()>(false))
                }
                None => Poll::Pending,
            };
            let mut source = source;
            let came = poll_fn(|cx| stream.poll(cx, into, &mut source));
            timeout(PAUSE * 10, came).await.is_ok()
        };
        // The header of the format may come at once, but the text comes after the pause.
        while decoded(coding, &into) != b"<head></head>" {
            assert!(come(&mut into).await, "{coding:?}");
        }
        let length = into.len();
        // No bytes are held back, so none come.
        assert!(!come(&mut into).await);
        assert_eq!(into.len(), length);
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_come_slowly_and_without_a_pause_are_not_held_back() {
    for coding in CODINGS {
        let (mut stream, _) = stream(coding, EncoderEffort::Balanced, Flow::Bytes);
        let mut next = Box::pin(sleep_until(Instant::now() + Duration::from_millis(1)));
        let mut source = |cx: &mut Context<'_>, into: &mut Vec<u8>, _: usize| {
            ready!(next.as_mut().poll(cx));
            next.as_mut().reset(Instant::now() + Duration::from_millis(1));
            into.extend_from_slice(b"a line\n");
            Poll::Ready(Ok::<_, ()>(false))
        };
        let (mut into, began) = (Vec::new(), Instant::now());
        for part in 1..4 {
            let known = decoded(coding, &into).len();
            while decoded(coding, &into).len() == known {
                assert!(!poll_fn(|cx| stream.poll(cx, &mut into, &mut source)).await.unwrap());
            }
            assert!(began.elapsed() < LONGEST * 2 * part, "{coding:?} {part}: {:?}", began.elapsed());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_sent_at_once() {
    for coding in CODINGS {
        let (mut stream, _) = stream(coding, EncoderEffort::Balanced, Flow::Events);
        let mut into = Vec::new();
        for event in ["data: 1\n\n", "data: 2\n\n"] {
            let mut said = Some(event);
            let expected = [decoded(coding, &into), event.into()].concat();
            let began = Instant::now();
            while decoded(coding, &into) != expected {
                let source = |_: &mut Context<'_>, into: &mut Vec<u8>, _| match said.take() {
                    Some(said) => {
                        into.extend_from_slice(said.as_bytes());
                        Poll::Ready(Ok::<_, ()>(false))
                    }
                    None => Poll::Pending,
                };
                let mut source = source;
                assert!(!poll_fn(|cx| stream.poll(cx, &mut into, &mut source)).await.unwrap());
            }
            assert_eq!(began.elapsed(), Duration::ZERO, "{coding:?}");
            advance(Duration::from_secs(1)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn other_tasks_run_between_two_pieces() {
    let (mut stream, _) = stream(Coding::Gzip, EncoderEffort::Low, Flow::Bytes);
    let mut pieces = Pieces { pieces: [page(PIECE * 4)].into() };
    let turns = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let other = tokio::spawn({
        let turns = turns.clone();
        async move {
            loop {
                turns.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        }
    });
    let mut into = Vec::new();
    while !poll_fn(|cx| stream.poll(cx, &mut into, |cx, into, max| pieces.poll(cx, into, max))).await.unwrap()
    {
    }
    assert!(turns.load(std::sync::atomic::Ordering::Relaxed) >= 4);
    other.abort();
}

#[tokio::test(start_paused = true)]
async fn a_truncated_body_gets_no_end_of_stream() {
    for coding in CODINGS {
        let (mut stream, _) = stream(coding, EncoderEffort::Balanced, Flow::Bytes);
        let mut into = Vec::new();
        let broken = poll_fn(|cx| stream.poll(cx, &mut into, |_, _, _| Poll::Ready(Err("cut")))).await;
        assert!(matches!(broken, Err(StreamError::Source("cut"))));
        assert!(into.is_empty());
    }
}
