//! How long a slow client is waited for, and where its bytes go meanwhile.

use std::task::Waker;

use hostler_engine::exchange::{DiskThreads, MemoryBudget, Spool, Sweep};

use super::*;

fn at(own: u64, now: u64) -> Progress {
    Progress { all: own, own, least: 1, now }
}

fn budget(limit: u64) -> Arc<MemoryBudget> {
    MemoryBudget::with_minimum(limit, LEAST_ANSWER_MEMORY)
}

fn account() -> SpoolAccount {
    Spool::new(10 << 20, 100, std::env::temp_dir()).account()
}

#[test]
fn a_fast_client_is_waited_for() {
    let budget = budget(64 << 20);
    let mut buffer = AnswerBuffer::new(&budget.account(), &at(0, 0));
    let full = (1 << 20, 1 << 20);
    for moment in 0..50 {
        let place = buffer.place(full, BufferKind::Stored, &at(moment * FAST, moment * 200), account);
        assert_eq!(place, BufferPlace::Full, "{moment}");
    }
    assert_eq!(buffer.place(full, BufferKind::Stored, &at(50 * FAST, 10_000), account), BufferPlace::Full);
    assert_eq!(
        buffer.place(full, BufferKind::Stored, &at(51 * FAST - 1, 10_200), account),
        BufferPlace::File(PIECE)
    );
}

#[test]
fn answers_without_a_member_and_streams_never_go_to_a_file() {
    for kind in [BufferKind::Ready, BufferKind::Straight] {
        let mut buffer = AnswerBuffer::new(&budget(64 << 20).account(), &at(0, 0));
        for now in [0, 1000, 100_000] {
            assert_eq!(buffer.place((100, 100), kind, &at(0, now), account), BufferPlace::Full, "{kind:?}");
        }
    }
}

#[test]
fn an_answer_that_is_not_stored_goes_on_without_memory_while_nothing_of_it_waits() {
    let connection = budget(0).account();
    // Another stream has a part of the minimum.
    let mut other = connection.reservation();
    other.set(1);
    let mut buffer = AnswerBuffer::new(&connection, &at(0, 0));
    let mut place = |unsent, kind| buffer.place((unsent, 1 << 20), kind, &at(0, 0), account);
    for kind in [BufferKind::Ready, BufferKind::Straight] {
        assert_eq!(place(0, kind), BufferPlace::Memory(LITTLE), "{kind:?}");
        assert_eq!(place(1, kind), BufferPlace::Full, "{kind:?}");
    }
    assert_eq!(place(0, BufferKind::Stored), BufferPlace::Full, "the file begins later");
}

#[test]
fn without_memory_bytes_over_the_minimum_go_to_a_file_at_once() {
    let budget = budget(0);
    let mut buffer = AnswerBuffer::new(&budget.account(), &at(0, 0));
    let mut outbox = vec![1; PIECE];
    buffer.wait(&mut outbox, LEAST, BufferKind::Stored, account);
    assert_eq!((outbox.len(), buffer.is_spilling()), (LEAST, true));
    assert_eq!(budget.view().used, LEAST as u64);
    assert_eq!(buffer.place((LEAST, 1 << 20), BufferKind::Ready, &at(0, 0), account), BufferPlace::Full);
}

#[test]
fn what_tls_holds_is_a_part_of_the_minimum() {
    let budget = budget(0);
    let mut buffer = AnswerBuffer::new(&budget.account(), &at(0, 0));
    let room = |buffer: &mut AnswerBuffer| buffer.place((0, 1 << 20), BufferKind::Ready, &at(0, 0), account);
    buffer.note_held_back(LEAST - 10);
    assert_eq!(room(&mut buffer), BufferPlace::Memory(10));
    buffer.note_held_back(PIECE);
    assert_eq!(room(&mut buffer), BufferPlace::Full);
    let mut outbox = vec![1; 100];
    buffer.wait(&mut outbox, 0, BufferKind::Stored, account);
    assert_eq!((outbox.len(), buffer.is_spilling()), (0, true));
    assert_eq!(budget.view().used, PIECE as u64);
}

#[test]
fn without_a_spool_arrived_bytes_stay_in_memory_and_are_counted() {
    let budget = budget(0);
    let mut buffer = AnswerBuffer::new(&budget.account(), &at(0, 0));
    let mut outbox = vec![1; PIECE];
    let no_room = || Spool::new(0, 100, std::env::temp_dir()).account();
    buffer.wait(&mut outbox, 0, BufferKind::Stored, no_room);
    assert_eq!((outbox.len(), buffer.is_full()), (PIECE, true));
    assert_eq!(budget.view().used, PIECE as u64);
    drop(buffer);
    assert_eq!(budget.view().used, 0);
}

#[test]
fn a_file_returns_its_bytes_in_order() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let spool = Spool::new(10 << 20, 100, std::env::temp_dir());
        let mut spill = Spill::new(&spool.account());
        let bytes: Vec<u8> = (0..1_500_000_u32).map(|n| (n / 7) as u8).collect();
        let (mut given, mut back, mut outbox) = (0, Vec::new(), Vec::new());
        while back.len() < bytes.len() {
            let room = spill.room().min(bytes.len() - given).min(50_001);
            spill.place().extend_from_slice(&bytes[given..given + room]);
            spill.took(room);
            given += room;
            // At first the client does not read.
            let wanted = if given < 800_000 { 0 } else { 33_333 };
            let mut cx = Context::from_waker(Waker::noop());
            spill.poll(&mut cx, &mut outbox, wanted, given == bytes.len()).unwrap();
            back.append(&mut outbox);
            assert_eq!(spill.waiting(), (given - back.len()) as u64);
            tokio::task::yield_now().await;
        }
        assert!(back == bytes && spill.is_empty());
        drop(spill);
        while spool.view().used > 0 {
            tokio::task::yield_now().await;
        }
    });
}

#[tokio::test(start_paused = true)]
async fn a_file_system_that_hangs_ends_the_answer_after_a_minute() {
    let threads = DiskThreads::new(1);
    let spool = Spool::with_threads(threads.clone(), 10 << 20, 100, std::env::temp_dir());
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let hanging = tokio::spawn(threads.run(move || {
        let _ = ended.recv();
        Ok(())
    }));
    tokio::task::yield_now().await;
    let mut spill = Spill::new(&spool.account());
    let room = spill.room();
    spill.place().resize(room, 1);
    spill.took(room);
    let mut poll = || spill.poll(&mut Context::from_waker(Waker::noop()), &mut Vec::new(), 0, true);
    let mut looks = 0;
    let error = loop {
        match poll() {
            Err(error) => break error,
            Ok(()) => tokio::time::advance(Duration::from_secs(1)).await,
        }
        looks += 1;
        assert!(looks < 100, "the answer still waits");
    };
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(looks >= 59, "it waited for {looks} seconds");
    drop(end);
    let _ = hanging.await;
    drop(spill);
    while spool.view().used > 0 {
        tokio::task::yield_now().await;
    }
}

fn slow(
    buffer: &mut AnswerBuffer,
    progress: &Progress,
    held: Option<HeldResource>,
    stall: &Deadline,
) -> Option<Slow> {
    let send_limits =
        SendLimits { min_send_rate: 240, min_slot_rate: 65_536, send_timeout: Duration::from_secs(30) };
    match buffer.poll_slow(&mut Context::from_waker(Waker::noop()), progress, held, &send_limits, stall) {
        Poll::Ready(slow) => Some(slow),
        Poll::Pending => None,
    }
}

/// After how many milliseconds a client that takes `bytes` every `pause` is cut off, and why.
fn lasts(bytes: u64, pause: u64, held: Option<HeldResource>) -> Option<(u64, Slow)> {
    let stall = Sweep::new().deadline();
    let mut buffer = AnswerBuffer::new(&budget(1 << 20).account(), &at(0, 0));
    (0..600_000 / pause).find_map(|n| {
        let slow = slow(&mut buffer, &at(n * bytes, n * pause), held, &stall)?;
        Some((n * pause, slow))
    })
}

#[test]
fn a_byte_at_long_intervals_is_too_slow_and_a_steady_slow_reader_is_not() {
    assert_eq!(lasts(1, 9000, None), Some((27_000, Slow::TooSlow)));
    assert_eq!(lasts(1024, 1000, None), None);
    assert_eq!(lasts(32_768, 29_000, None), None, "the network brings it in bursts");
}

/// After how many seconds a client that takes `step` bytes once, and then none, is cut off.
async fn lasts_after(step: u64) -> u64 {
    let sweep = Sweep::new();
    let runs = tokio::spawn(sweep.clone().run());
    let stall = sweep.deadline();
    let mut buffer = AnswerBuffer::new(&budget(1 << 20).account(), &at(0, 0));
    let began = tokio::time::Instant::now();
    for second in 0.. {
        let taken = if second == 0 { 0 } else { step };
        if let Some(cut) = slow(&mut buffer, &at(taken, second * 1000), None, &stall) {
            assert_eq!(cut, Slow::Stalled);
            break;
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        // After so long a step the sweep first lets the runtime look at its sockets, so it needs two turns.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }
    runs.abort();
    began.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_large_step_of_progress_counts_for_longer_than_a_small_one() {
    assert_eq!(lasts_after(0).await, 31);
    assert_eq!(lasts_after(1024).await, 33, "1 s, then the limit and what 1 KB takes at 1 KB/s");
    assert_eq!(lasts_after(20 << 10).await, 52);
    assert_eq!(lasts_after(10 << 20).await, 77, "1 s, then two and a half times the limit");
}

#[test]
fn a_worker_waits_only_for_clients_that_read_on() {
    assert_eq!(lasts(65_536, 1000, Some(HeldResource::Worker)), None);
    assert_eq!(lasts(8192, 1000, Some(HeldResource::Worker)), Some((12_000, Slow::HoldsWorker)));
    assert_eq!(lasts(0, 1000, Some(HeldResource::Worker)), Some((10_000, Slow::HoldsWorker)));
    assert_eq!(lasts(8192, 1000, Some(HeldResource::Cache)), Some((12_000, Slow::HoldsCache)));
}

#[test]
fn answers_that_delay_each_other_are_slow_only_if_all_of_them_are() {
    let lasts = |of_all: u64| {
        let stall = Sweep::new().deadline();
        let mut buffer = AnswerBuffer::new(&budget(1 << 20).account(), &at(0, 0));
        (0..600).find_map(|second| {
            let progress = Progress { all: second * of_all, ..at(second * 1024, second * 1000) };
            slow(&mut buffer, &progress, Some(HeldResource::CacheByAll), &stall)
        })
    };
    assert_eq!((lasts(100_000), lasts(8192)), (None, Some(Slow::HoldsCache)));
}
