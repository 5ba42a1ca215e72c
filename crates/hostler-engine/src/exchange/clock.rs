//! The time of a wake-up: a task reads the clock once for all that it does before it waits again. Knows no requests.
//!
//! Reading the clock costs about as much as parsing three header fields, and a request needs the time about seven times. The time of a
//! wake-up is early by what the task has done since it was woken: a few microseconds, seldom 0.1 ms. It is good for deadlines, and for
//! times in the log. For what must be exact, `Instant::now` is there.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::time::Instant;

thread_local! {
    static WAKE_UP: Cell<WakeUp> = const { Cell::new(WakeUp::Unknown) };
}

/// What is known of the current wake-up.
#[derive(Clone, Copy)]
enum WakeUp {
    /// The task that runs is not [`Clocked`], so nothing tells when it waits.
    Unknown,
    /// The clock was not read yet.
    Unread,
    /// The clock was read at this time.
    Read(Instant),
}

/// The time of the current wake-up. Outside of a [`Clocked`] task: the current time.
pub fn now() -> Instant {
    match WAKE_UP.get() {
        WakeUp::Read(now) => now,
        WakeUp::Unread => {
            let now = Instant::now();
            WAKE_UP.set(WakeUp::Read(now));
            now
        }
        WakeUp::Unknown => Instant::now(),
    }
}

/// Reads the clock again: the time of the current wake-up from here on. For what must be exact and must not lie after what comes later in the
/// same wake-up.
pub fn exact_now() -> Instant {
    let now = Instant::now();
    if !matches!(WAKE_UP.get(), WakeUp::Unknown) {
        WAKE_UP.set(WakeUp::Read(now));
    }
    now
}

pin_project! {
    /// A future of a task. While it is polled, [`now`] reads the clock at most once.
    pub struct Clocked<F> {
        #[pin]
        task: F,
    }
}

impl<F> Clocked<F> {
    /// Wraps the whole future of a task.
    pub fn new(task: F) -> Self {
        Self { task }
    }
}

impl<F: Future> Future for Clocked<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        WAKE_UP.set(WakeUp::Unread);
        let polled = self.project().task.poll(cx);
        WAKE_UP.set(WakeUp::Unknown);
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clocked_task_reads_the_clock_again_after_each_wait() {
        let second = Duration::from_secs(1);
        let task = tokio::spawn(Clocked::new(async move {
            let began = now();
            tokio::time::advance(second).await;
            (began, now(), now())
        }));
        let (began, later, again) = task.await.unwrap();
        assert!(later - began >= second, "{:?}", later - began);
        assert_eq!(later, again);
    }

    #[tokio::test(start_paused = true)]
    async fn an_exact_time_is_never_after_a_time_that_is_read_later() {
        let (before, exact, after) = Clocked::new(async {
            let before = now();
            let mut passing = Box::pin(tokio::time::advance(Duration::from_secs(1)));
            let _ = std::future::poll_fn(|cx| Poll::Ready(passing.as_mut().poll(cx))).await;
            (before, exact_now(), now())
        })
        .await;
        assert!(exact - before >= Duration::from_secs(1), "{:?}", exact - before);
        assert_eq!(exact, after);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clocked_task_keeps_its_time_while_it_does_not_wait() {
        let (before, after) = Clocked::new(async {
            let before = now();
            // The first poll passes the time.
            let mut passing = Box::pin(tokio::time::advance(Duration::from_secs(1)));
            let _ = std::future::poll_fn(|cx| Poll::Ready(passing.as_mut().poll(cx))).await;
            (before, now())
        })
        .await;
        assert_eq!(before, after);
        assert_ne!(now(), before, "outside of the task it is the current time");
    }
}
