//! A pool of tasks that serve HTTP/2 streams: a task whose stream has ended waits for the next stream, of any connection. Knows nothing
//! of requests.
//!
//! A task that serves requests needs some kilobytes: to create one costs more than to read a request.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use atomic_waker::AtomicWaker;
use h2::RecvStream;
use h2::server::SendResponse;
use hostler_engine::exchange::Clocked;
use http::Request;

use super::send_buffer::SendPiece;
use super::stream::{self, AfterStream, NewRequest};
use super::{Http2Shared, RunningStream, StreamState};

/// How many idle tasks a thread keeps.
const MOST_AT_REST: usize = 256;

/// The idle tasks of one data-plane thread, each with its state.
#[derive(Default)]
pub struct StreamTasks(Mutex<Vec<(Arc<TaskInbox>, Box<StreamState>)>>);

/// The place where an idle task receives its next stream.
#[derive(Default)]
struct TaskInbox {
    job: Mutex<Option<StreamJob>>,
    waker: AtomicWaker,
}

/// A stream with its request.
struct StreamJob {
    running: RunningStream,
    state: Box<StreamState>,
    new_request: NewRequest,
}

impl StreamTasks {
    /// Gives a request to an idle task, or to a new one.
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
        let new_request = stream::begin(common, &mut state, request, respond);
        let job = Some(StreamJob { running, state, new_request });
        match resting {
            Some(inbox) => {
                *lock(&inbox.job) = job;
                inbox.waker.wake();
            }
            None => {
                let inbox = TaskInbox { job: Mutex::new(job), waker: AtomicWaker::new() };
                drop(tokio::spawn(Clocked::new(self.clone().work(Arc::new(inbox)))));
            }
        }
    }

    async fn work(self: Arc<Self>, inbox: Arc<TaskInbox>) {
        loop {
            let StreamJob { running, state, new_request } = poll_fn(|cx| inbox.poll_job(cx)).await;
            let mut state = match stream::serve(&running.0, state, new_request).await {
                AfterStream::Nothing(state) => state,
                AfterStream::Tunnel(tunnel, head_memory) => {
                    return tunnel.spawn(running.0.shard.clone(), (running, head_memory));
                }
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
