//! Tests of bodies that come in pieces, with readers of different speeds.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake};
use std::time::Duration;

use hostler_cache::Cache;
use tokio::time::{Instant, timeout};

use super::*;
use crate::cache::{Filling, UnreadLimit};

const LIMIT: UnreadLimit = UnreadLimit { time: Duration::from_millis(250), bytes: 10 };

/// A source that gives these pieces, then its end. None breaks it off.
#[derive(Default)]
struct Pieces {
    left: VecDeque<Vec<u8>>,
    ends: bool,
    breaks: bool,
}

impl BodyFeed for Pieces {
    fn poll_body(&mut self, _: &mut Context<'_>, into: &mut Vec<u8>, max: usize) -> Poll<Result<bool, Cut>> {
        match self.left.front_mut() {
            Some(piece) => {
                into.extend(piece.drain(..piece.len().min(max)));
                if piece.is_empty() {
                    self.left.pop_front();
                }
                Poll::Ready(Ok(self.left.is_empty() && self.ends))
            }
            None if self.breaks => Poll::Ready(Err(Cut("broken".into()))),
            None if self.ends => Poll::Ready(Ok(true)),
            None => Poll::Pending,
        }
    }

    fn trailers(&self) -> Option<&Fields> {
        None
    }
}

fn pieces(pieces: &[&str]) -> Pieces {
    Pieces { left: pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect(), ..Pieces::default() }
}

/// What a reader gets now, and whether that is the end. None if the body was cut.
fn read(reading: &mut BodyReading, max: usize) -> Option<(String, bool)> {
    let mut into = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    let ended = loop {
        let room = max - into.len();
        match reading.poll_body(&mut cx, &mut into, room) {
            Poll::Ready(Ok(true)) => break true,
            Poll::Ready(Ok(false)) if into.len() < max => {}
            Poll::Ready(Err(_)) => return None,
            Poll::Ready(Ok(false)) | Poll::Pending => break false,
        }
    };
    Some((String::from_utf8(into).unwrap(), ended))
}

fn some(text: &str, ended: bool) -> Option<(String, bool)> {
    Some((text.into(), ended))
}

#[test]
fn each_reader_gets_the_whole_body_at_its_own_speed() {
    let incoming_body = IncomingBody::new(100);
    let mut source = pieces(&["one ", "two "]);
    let mut first = incoming_body.reading().unwrap();
    assert_eq!(read(&mut first, 9), some("", false));
    assert_eq!(incoming_body.begin(&mut source), None);
    assert_eq!(read(&mut first, 2), some("on", false));
    let mut second = incoming_body.reading().unwrap();
    assert_eq!(read(&mut second, 99), some("one two ", false));
    source.left.push_back(b"three".into());
    source.ends = true;
    assert_eq!(incoming_body.begin(&mut source), Some(FillOutcome::Whole("one two three".into())));
    assert_eq!(read(&mut first, 99), some("e two three", true));
    assert_eq!(read(&mut second, 99), some("three", true));
    assert_eq!(read(&mut incoming_body.reading().unwrap(), 99), some("one two three", true));
}

#[test]
fn a_body_is_filled_to_its_end_without_a_reader() {
    let incoming_body = IncomingBody::new(100);
    let mut source = Pieces { ends: true, ..pieces(&["one ", "two"]) };
    drop(incoming_body.reading());
    assert_eq!(incoming_body.begin(&mut source), Some(FillOutcome::Whole("one two".into())));
}

#[test]
fn a_reader_of_a_range_ends_with_the_range() {
    let incoming_body = IncomingBody::new(100);
    let mut source = pieces(&["0123"]);
    let (mut part, mut later) =
        (incoming_body.reading().unwrap().only(1..3), incoming_body.reading().unwrap().only(5..7));
    assert_eq!(incoming_body.begin(&mut source), None);
    assert_eq!(read(&mut part, 99), some("12", true));
    assert_eq!(read(&mut later, 99), some("", false));
    source.left.push_back(b"456789".into());
    assert_eq!(incoming_body.begin(&mut source), None);
    assert_eq!(read(&mut later, 1), some("5", false));
    assert_eq!(read(&mut later, 99), some("6", true));
}

#[test]
fn a_truncated_body_is_an_error_for_unfinished_readers_and_takes_no_new_ones() {
    let incoming_body = IncomingBody::new(100);
    let mut reading = incoming_body.reading().unwrap();
    let mut source = Pieces { breaks: true, ..pieces(&["one"]) };
    assert_eq!(incoming_body.begin(&mut source), Some(FillOutcome::Cut(Cut("broken".into()))));
    assert_eq!(read(&mut reading, 99), None);
    assert!(incoming_body.reading().is_none());
}

#[test]
fn readers_get_an_error_when_filling_stops() {
    let incoming_body = IncomingBody::new(100);
    let mut reading = incoming_body.reading().unwrap();
    drop(Filling::new(&incoming_body, LIMIT));
    assert_eq!(read(&mut reading, 99), None);
}

#[test]
fn a_body_at_the_size_limit_is_kept_and_one_byte_more_is_not() {
    let mut source = Pieces { ends: true, ..pieces(&["12345"]) };
    assert_eq!(IncomingBody::new(5).begin(&mut source), Some(FillOutcome::Whole("12345".into())));
    let incoming_body = IncomingBody::new(5);
    let mut first = incoming_body.reading().unwrap();
    let mut source = Pieces { ends: true, ..pieces(&["123456789"]) };
    assert_eq!(incoming_body.begin(&mut source), Some(FillOutcome::TooLarge));
    assert!(incoming_body.reading().is_none(), "the beginning is gone soon");
    assert_eq!(incoming_body.begin(&mut source), None, "there is no room until a reader has read");
    assert_eq!(read(&mut first, 4), some("1234", false));
    assert_eq!(incoming_body.begin(&mut source), Some(FillOutcome::ReadWithoutStoring));
    assert_eq!(read(&mut first, 99), some("56789", true));
}

#[test]
fn a_body_over_the_limit_reaches_all_its_readers_at_the_speed_of_the_slowest() {
    let incoming_body = IncomingBody::new(4);
    let (mut slow, mut fast) = (incoming_body.reading().unwrap(), incoming_body.reading().unwrap());
    let mut source = Pieces { ends: true, ..pieces(&["01234", "56", "78"]) };
    assert!(!slow.holds_up() && !fast.holds_up());
    assert_eq!(incoming_body.begin(&mut source), Some(FillOutcome::TooLarge));
    assert!(slow.holds_up() && fast.holds_up());
    assert_eq!(read(&mut fast, 99), some("01234", false));
    assert_eq!(incoming_body.begin(&mut source), None, "there is no room");
    assert_eq!(read(&mut slow, 3), some("012", false));
    assert_eq!(incoming_body.begin(&mut source), None);
    assert_eq!(read(&mut fast, 99), some("56", false));
    assert_eq!(read(&mut slow, 99), some("3456", false));
    assert_eq!(incoming_body.begin(&mut source), Some(FillOutcome::ReadWithoutStoring));
    assert_eq!(read(&mut fast, 99), some("78", true));
    assert_eq!(read(&mut slow, 99), some("78", true));
}

#[test]
fn when_the_slowest_reader_leaves_the_next_one_sets_the_pace_and_without_readers_filling_stops() {
    let incoming_body = IncomingBody::new(4);
    let (slowest, mut other) = (incoming_body.reading().unwrap(), incoming_body.reading().unwrap());
    let mut source = pieces(&["01234", "56", "78"]);
    assert_eq!(incoming_body.begin(&mut source), Some(FillOutcome::TooLarge));
    assert_eq!(read(&mut other, 99), some("01234", false));
    assert_eq!(incoming_body.begin(&mut source), None);
    assert_eq!(read(&mut other, 99), some("", false));
    drop(slowest);
    assert_eq!(incoming_body.begin(&mut source), None);
    assert_eq!(read(&mut other, 99), some("5678", false));
    drop(other);
    assert_eq!(incoming_body.begin(&mut source), Some(FillOutcome::Unwanted));
}

#[test]
fn while_clients_hold_too_much_a_long_body_does_not_come_into_memory() {
    let store: Cache<()> = Cache::new(1 << 20, 1 << 20);
    let piece = || vec![b'x'; 200_000];
    let source = || Pieces { left: [piece(), piece()].into(), ends: true, breaks: false };
    let begun = || IncomingBody::counted(1 << 20, store.share(0).unwrap());
    let (incoming_body, next) = (begun(), begun());
    let with_room = IncomingBody::counted(1 << 20, store.share(400_000).unwrap());
    let mut others = store.share(0).unwrap();
    others.grow(3 << 20);
    let mut reading = incoming_body.reading().unwrap();
    let mut source_of_it = source();
    assert!(matches!(with_room.begin(&mut source()), Some(FillOutcome::Whole(_))), "it had its room before");
    assert_eq!(incoming_body.begin(&mut source_of_it), Some(FillOutcome::TooLarge));
    assert!(incoming_body.has_given_way() && reading.holds_up());
    assert_eq!(incoming_body.begin(&mut source_of_it), None, "it waits for its reader");
    let mut bytes = 0;
    while bytes < 400_000 {
        let mut into = Vec::new();
        let _ = reading.poll_body(&mut Context::from_waker(Waker::noop()), &mut into, usize::MAX);
        bytes += into.len();
        let _ = incoming_body.begin(&mut source_of_it);
    }
    drop(others);
    assert!(matches!(next.begin(&mut source()), Some(FillOutcome::Whole(_))), "now it fits");
}

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_reader_with_a_slow_client_learns_that_others_wait_for_it() {
    let incoming_body = IncomingBody::new(4);
    let mut reading = incoming_body.reading().unwrap();
    let mut source = pieces(&["01"]);
    assert_eq!(incoming_body.begin(&mut source), None);
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(wakes.clone());
    let come = reading.poll_body(&mut Context::from_waker(&waker), &mut Vec::new(), 1);
    assert_eq!(come, Poll::Ready(Ok(false)));
    source.left.push_back(b"2".into());
    assert_eq!(incoming_body.begin(&mut source), None);
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0, "it does not wait for more");
    source.left.push_back(b"345".into());
    assert_eq!(incoming_body.begin(&mut source), Some(FillOutcome::TooLarge));
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_reader_filling_goes_on_for_a_short_time_only() {
    let incoming_body = IncomingBody::new(100);
    let reading = incoming_body.reading().unwrap();
    let mut source = pieces(&["0123456789 a piece for the reader"]);
    let mut filling = Filling::new(&incoming_body, LIMIT);
    let began = Instant::now();
    assert!(timeout(Duration::from_secs(9), filling.fill(&mut source)).await.is_err());
    drop(reading);
    assert_eq!(filling.fill(&mut source).await, FillOutcome::Unwanted);
    assert_eq!(began.elapsed(), Duration::from_millis(9250));
    assert!(incoming_body.reading().is_none());
}

#[tokio::test(start_paused = true)]
async fn without_a_reader_filling_goes_on_for_a_few_bytes_only() {
    let incoming_body = IncomingBody::new(100);
    drop(incoming_body.reading());
    let mut filling = Filling::new(&incoming_body, LIMIT);
    let began = Instant::now();
    assert_eq!(filling.fill(&mut pieces(&["0123456789a"])).await, FillOutcome::Unwanted);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_comes_before_filling_has_stopped_gets_the_whole_body() {
    let incoming_body = IncomingBody::new(100);
    drop(incoming_body.reading());
    let mut filling = Filling::new(&incoming_body, LIMIT);
    let mut source = pieces(&["01234"]);
    assert!(timeout(Duration::from_millis(200), filling.fill(&mut source)).await.is_err());
    let mut reading = incoming_body.reading().unwrap();
    assert!(timeout(Duration::from_secs(60), filling.fill(&mut source)).await.is_err());
    (source.left, source.ends) = ([b"56789abcdefgh".to_vec()].into(), true);
    assert!(matches!(filling.fill(&mut source).await, FillOutcome::Whole(_)));
    assert_eq!(read(&mut reading, 99), some("0123456789abcdefgh", true));
}

#[test]
fn an_empty_body_is_complete() {
    let incoming_body = IncomingBody::new(4);
    let mut reading = incoming_body.reading().unwrap();
    assert_eq!(
        incoming_body.begin(&mut Pieces { ends: true, ..pieces(&[]) }),
        Some(FillOutcome::Whole(Bytes::new()))
    );
    assert_eq!(read(&mut reading, 99), some("", true));
    assert_eq!(read(&mut IncomingBody::full("ab".into()).reading().unwrap(), 99), some("ab", true));
}

#[tokio::test]
async fn readers_on_other_threads_are_woken() {
    let incoming_body = IncomingBody::new(1 << 20);
    let mut readers = Vec::new();
    for _ in 0..8 {
        let mut reading = incoming_body.reading().unwrap();
        readers.push(std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let mut all = Vec::new();
                while !poll_fn(|cx| reading.poll_body(cx, &mut all, 1000)).await.unwrap() {}
                all.len()
            })
        }));
    }
    let mut source = Pieces::default();
    for _ in 0..500 {
        source.left.push_back(vec![b'x'; 1000]);
        assert_eq!(incoming_body.begin(&mut source), None);
    }
    source.ends = true;
    let filled = Filling::new(&incoming_body, LIMIT).fill(&mut source).await;
    assert!(matches!(filled, FillOutcome::Whole(body) if body.len() == 500_000));
    for reader in readers {
        assert_eq!(reader.join().unwrap(), 500_000);
    }
}
