//! The tasks that carry out the exchanges of streams: when one has ended they rest, for the next stream of whichever connection. Knows
//! no connections beyond their links.
//!
//! A task that serves requests is some kilobytes large: to make one for each request costs more than to read the request.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use atomic_waker::AtomicWaker;
use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::Request;

use super::stream::{self, After};
use super::{Running, Seat};

/// Tasks that rest on a thread; more of them end.
const MOST_AT_REST: usize = 128;

/// The tasks of one data-plane thread that rest.
#[derive(Default)]
pub struct Crew(Mutex<Vec<Arc<Post>>>);

/// Where a task is given its next exchange.
#[derive(Default)]
struct Post {
    job: Mutex<Option<Job>>,
    waker: AtomicWaker,
}

/// One stream that has a request.
pub(super) struct Job {
    pub running: Running,
    pub request: Request<RecvStream>,
    pub respond: SendResponse<Bytes>,
}

impl Crew {
    /// Has an exchange carried out.
    pub(super) fn assign(self: &Arc<Self>, job: Job) {
        let resting = lock(&self.0).pop();
        match resting {
            Some(post) => {
                *lock(&post.job) = Some(job);
                post.waker.wake();
            }
            None => drop(tokio::spawn(self.clone().work(job))),
        }
    }

    async fn work(self: Arc<Self>, mut job: Job) {
        let post = Arc::new(Post::default());
        let mut seat = Seat::new(&job.running.0);
        loop {
            let Job { running, request, respond } = job;
            match stream::serve(&running.0, seat, request, respond).await {
                After::Nothing(free) => seat = free,
                After::Tunnel(passage) => return passage.go_on(running.0.shard.clone(), running),
            }
            drop(running);
            seat.clear();
            if !self.rest(&post) {
                return;
            }
            job = poll_fn(|cx| post.poll_job(cx)).await;
        }
    }

    /// False if there are enough.
    fn rest(&self, post: &Arc<Post>) -> bool {
        let mut resting = lock(&self.0);
        let has_room = resting.len() < MOST_AT_REST;
        if has_room {
            resting.push(post.clone());
        }
        has_room
    }
}

impl Post {
    fn poll_job(&self, cx: &mut Context<'_>) -> Poll<Job> {
        self.waker.register(cx.waker());
        lock(&self.job).take().map_or(Poll::Pending, Poll::Ready)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
