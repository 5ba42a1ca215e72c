//! The tasks that carry out the exchanges of streams: when one has ended they rest, for the next stream of whichever connection. Knows
//! no connections beyond their links.
//!
//! A task that serves requests is some kilobytes large: to make one for each request costs more than to read the request.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use atomic_waker::AtomicWaker;
use h2::RecvStream;
use h2::server::SendResponse;
use http::Request;

use super::stream::{self, After, Asked};
use super::way::Piece;
use super::{Link, Running, Seat};

/// Tasks that rest on a thread; more of them end.
const MOST_AT_REST: usize = 256;

/// The tasks of one data-plane thread that rest, each with its seat.
#[derive(Default)]
pub struct Crew(Mutex<Vec<(Arc<Post>, Box<Seat>)>>);

/// Where a task is given its next exchange.
#[derive(Default)]
struct Post {
    job: Mutex<Option<Job>>,
    waker: AtomicWaker,
}

/// One stream that has a request.
struct Job {
    running: Running,
    seat: Box<Seat>,
    asked: Asked,
}

impl Crew {
    /// Has a request answered.
    pub(super) fn assign(
        self: &Arc<Self>,
        link: &Arc<Link>,
        request: Request<RecvStream>,
        respond: SendResponse<Piece>,
    ) {
        let running = Running::new(link.clone());
        let (resting, mut seat) = match lock(&self.0).pop() {
            Some((post, seat)) => (Some(post), seat),
            None => (None, Seat::new(link)),
        };
        let asked = stream::begin(link, &mut seat, request, respond);
        let job = Some(Job { running, seat, asked });
        match resting {
            Some(post) => {
                *lock(&post.job) = job;
                post.waker.wake();
            }
            None => {
                let post = Post { job: Mutex::new(job), waker: AtomicWaker::new() };
                drop(tokio::spawn(self.clone().work(Arc::new(post))));
            }
        }
    }

    async fn work(self: Arc<Self>, post: Arc<Post>) {
        loop {
            let Job { running, seat, asked } = poll_fn(|cx| post.poll_job(cx)).await;
            let mut seat = match stream::serve(&running.0, seat, asked).await {
                After::Nothing(seat) => seat,
                After::Tunnel(passage) => return passage.go_on(running.0.shard.clone(), running),
            };
            drop(running);
            seat.clear();
            let mut resting = lock(&self.0);
            if resting.len() == MOST_AT_REST {
                return;
            }
            resting.push((post.clone(), seat));
        }
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
