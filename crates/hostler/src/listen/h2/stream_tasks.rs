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

use super::stream::{self, AfterStream, NewRequest};
use super::way::SendPiece;
use super::{Http2Shared, RunningStream, StreamState};

/// Tasks that rest on a thread; more of them end.
const MOST_AT_REST: usize = 256;

/// The tasks of one data-plane thread that rest, each with its seat.
#[derive(Default)]
pub struct StreamTasks(Mutex<Vec<(Arc<TaskInbox>, Box<StreamState>)>>);

/// Where a task is given its next exchange.
#[derive(Default)]
struct TaskInbox {
    job: Mutex<Option<StreamJob>>,
    waker: AtomicWaker,
}

/// One stream that has a request.
struct StreamJob {
    running: RunningStream,
    state: Box<StreamState>,
    asked: NewRequest,
}

impl StreamTasks {
    /// Has a request answered.
    pub(super) fn assign(
        self: &Arc<Self>,
        common: &Arc<Http2Shared>,
        request: Request<RecvStream>,
        respond: SendResponse<SendPiece>,
    ) {
        let running = RunningStream::new(common.clone());
        let (resting, mut state) = match lock(&self.0).pop() {
            Some((inbox, state)) => (Some(inbox), state),
            None => (None, StreamState::new(common)),
        };
        let asked = stream::begin(common, &mut state, request, respond);
        let job = Some(StreamJob { running, state, asked });
        match resting {
            Some(inbox) => {
                *lock(&inbox.job) = job;
                inbox.waker.wake();
            }
            None => {
                let inbox = TaskInbox { job: Mutex::new(job), waker: AtomicWaker::new() };
                drop(tokio::spawn(self.clone().work(Arc::new(inbox))));
            }
        }
    }

    async fn work(self: Arc<Self>, inbox: Arc<TaskInbox>) {
        loop {
            let StreamJob { running, state, asked } = poll_fn(|cx| inbox.poll_job(cx)).await;
            let mut state = match stream::serve(&running.0, state, asked).await {
                AfterStream::Nothing(state) => state,
                AfterStream::Tunnel(passage) => return passage.go_on(running.0.shard.clone(), running),
            };
            drop(running);
            state.clear();
            let mut resting = lock(&self.0);
            if resting.len() == MOST_AT_REST {
                return;
            }
            resting.push((inbox.clone(), state));
        }
    }
}

impl TaskInbox {
    fn poll_job(&self, cx: &mut Context<'_>) -> Poll<StreamJob> {
        self.waker.register(cx.waker());
        lock(&self.job).take().map_or(Poll::Pending, Poll::Ready)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
