//! Bounds how many bytes a task moves before the other tasks of its thread run. Knows no streams.
//!
//! tokio bounds the number of reads and writes that a task makes in one turn (128), whatever their size. A task that moves 64 KB with each
//! of them would move 4 MB while small requests wait. Here bytes use up the same budget. When it is used up, the next read or write is
//! `Pending`, and tokio polls the task again after the other tasks and after it has asked the kernel for events.

use std::pin::pin;
use std::task::{Context, Poll, ready};

use tokio::task::{coop, yield_now};

/// This many bytes count as one more operation of the turn. A transfer of 64 KB at a time moves about 256 KB in a turn, and a source that is
/// only read, or a sink that is only written to, about 512 KB.
const UNIT: usize = 4 * 1024;

/// The most bytes of one write.
pub const MOST_AT_ONCE: usize = 128 * 1024;

/// Counts bytes that were read. One operation always stays, so that the task can write them in the same turn.
pub(crate) fn has_read(cx: &mut Context<'_>, bytes: usize) {
    for _ in 0..bytes / UNIT {
        let Poll::Ready(turn) = coop::poll_proceed(cx) else { return };
        if !coop::has_budget_remaining() {
            // `turn` is dropped without progress, so it gives this last operation back.
            return;
        }
        turn.made_progress();
    }
}

/// Counts bytes that were written.
pub fn has_written(cx: &mut Context<'_>, bytes: usize) {
    for _ in 0..bytes / UNIT {
        if !coop::has_budget_remaining() {
            return;
        }
        if let Poll::Ready(turn) = coop::poll_proceed(cx) {
            turn.made_progress();
        }
    }
}

/// Ends the turn: the task is polled again after the other tasks, and after the kernel was asked for events. A task that only wakes itself
/// would be polled 61 times before that.
pub fn end(cx: &mut Context<'_>) {
    let _ = pin!(yield_now()).poll(cx);
}

/// Makes an operation in memory count, as tokio's own operations do.
pub(crate) fn counted<T>(cx: &mut Context<'_>, act: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    let turn = ready!(coop::poll_proceed(cx));
    let outcome = act(cx);
    if outcome.is_ready() {
        turn.made_progress();
    }
    outcome
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io;
    use std::pin::Pin;
    use std::rc::Rc;

    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
    use tokio::task::LocalSet;

    use super::*;
    use crate::stream::{Duplex, Stream, read_some, read_then};

    /// A source that always has bytes, and a sink that always takes them.
    #[derive(Debug)]
    struct Endless;

    impl AsyncRead for Endless {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let room = buf.remaining();
            buf.put_slice(&vec![7; room]);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Endless {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(buf.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl Duplex for Endless {
        fn abort(&mut self) {}
    }

    const ALL: usize = 100 << 20;

    /// The bytes of each turn of a task that moves 100 MB with `step`, and how often another task ran meanwhile.
    async fn turns(
        step: impl Fn(&mut Context<'_>, &mut Stream, &mut Stream) -> Poll<usize> + 'static,
    ) -> (Vec<usize>, usize) {
        let others = Rc::new(RefCell::new(0));
        let counting = others.clone();
        let set = LocalSet::new();
        set.spawn_local(async move {
            loop {
                yield_now().await;
                *counting.borrow_mut() += 1;
            }
        });
        let moving = spawn_in(&set, step);
        let turns = set.run_until(moving).await.unwrap();
        let ended = turns.iter().sum::<usize>();
        assert!(ended > ALL - (1 << 20), "{ended} bytes in all turns but the last one");
        let others = *others.borrow();
        (turns, others)
    }

    fn spawn_in(
        set: &LocalSet,
        step: impl Fn(&mut Context<'_>, &mut Stream, &mut Stream) -> Poll<usize> + 'static,
    ) -> tokio::task::JoinHandle<Vec<usize>> {
        set.spawn_local(async move {
            let [mut from, mut to] = [Endless, Endless].map(|end| Stream::InHttp2(Box::new(end)));
            let (mut turns, mut moved) = (Vec::new(), 0);
            std::future::poll_fn(|cx| {
                let mut turn = 0;
                while moved < ALL {
                    match step(cx, &mut from, &mut to) {
                        Poll::Ready(bytes) => (moved, turn) = (moved + bytes, turn + bytes),
                        Poll::Pending => {
                            turns.push(turn);
                            return Poll::Pending;
                        }
                    }
                }
                Poll::Ready(())
            })
            .await;
            turns
        })
    }

    #[tokio::test]
    async fn a_task_that_moves_many_bytes_lets_other_tasks_run_every_quarter_of_a_megabyte() {
        let (turns, others) = turns(|cx, from, to| {
            read_then(from, cx, usize::MAX, |cx, bytes| {
                let Poll::Ready(Ok(written)) = Pin::new(to).poll_write(cx, bytes) else {
                    panic!("what was read is written in the same turn")
                };
                written
            })
            .map(Result::unwrap)
        })
        .await;
        assert!(turns.iter().all(|turn| (128 << 10..=256 << 10).contains(turn)), "{turns:?}");
        assert!(others >= turns.len(), "{others} of {}", turns.len());
    }

    #[tokio::test]
    async fn a_task_that_only_reads_or_only_writes_has_the_same_bound() {
        let (turns, others) =
            turns(|cx, from, _| read_some(from, cx, usize::MAX, <[u8]>::len).map(Result::unwrap)).await;
        assert!(turns.iter().all(|turn| (256 << 10..=768 << 10).contains(turn)), "{turns:?}");
        assert!(others >= turns.len());
        let bytes = vec![7; MOST_AT_ONCE];
        let (turns, others) =
            self::turns(move |cx, _, to| Pin::new(to).poll_write(cx, &bytes).map(Result::unwrap)).await;
        assert!(turns.iter().all(|turn| (256 << 10..=768 << 10).contains(turn)), "{turns:?}");
        assert!(others >= turns.len());
    }

    #[tokio::test]
    async fn small_reads_and_writes_count_as_operations_only() {
        let (turns, _) =
            turns(|cx, from, _| read_some(from, cx, 1024, <[u8]>::len).map(Result::unwrap)).await;
        assert!(turns.iter().all(|turn| *turn == 128 * 1024), "{turns:?}");
    }
}
