//! A pool of tasks that serve HTTP/2 streams: a task whose stream has ended waits for the next stream, of any connection. A stream over those
//! that its client may have gets none. Knows nothing of requests.
//!
//! A task that serves requests needs some kilobytes: to create one costs more than to read a request.

use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use atomic_waker::AtomicWaker;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use hostler_engine::exchange::{ClientLoad, Clocked};
use http::Request;

use super::send_buffer::SendPiece;
use super::stream::{self, AfterStream, NewRequest};
use super::{Http2Shared, StreamState};

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
    /// Gives a request to an idle task, or to a new one. A stream over those that its client may have is reset.
    pub(super) fn assign(
        self: &Arc<Self>,
        common: &Arc<Http2Shared>,
        request: Request<RecvStream>,
        mut respond: SendResponse<SendPiece>,
    ) {
        let Some(running) = RunningStream::new(common.clone()) else {
            return respond.send_reset(Reason::REFUSED_STREAM);
        };
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
            let mut state = match stream::serve(&running.common, state, new_request).await {
                AfterStream::Nothing(state) => state,
                AfterStream::Tunnel(tunnel, head_memory) => {
                    return tunnel.spawn(running.common.shard.clone(), (running, head_memory));
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

/// Counts one exchange or tunnel of a connection while it lives.
struct RunningStream {
    common: Arc<Http2Shared>,
    /// Its client, if the requests of clients are limited.
    client: Option<Arc<ClientLoad>>,
}

impl RunningStream {
    /// None: its client has too many streams.
    fn new(common: Arc<Http2Shared>) -> Option<Self> {
        let mut client = None;
        if let Some(place) = &common.origin.place
            && let Some(most) = common.settings.most_streams(common.origin.peer.ip())
        {
            if !place.load().begin_stream(most) {
                return None;
            }
            client = Some(place.load().clone());
        }
        common.running.fetch_add(1, Ordering::Relaxed);
        Some(Self { common, client })
    }
}

impl Drop for RunningStream {
    fn drop(&mut self) {
        if let Some(client) = &self.client {
            client.end_stream();
        }
        if self.common.running.fetch_sub(1, Ordering::Release) == 1 {
            self.common.waker.wake();
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
