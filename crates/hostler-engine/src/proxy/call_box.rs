//! A call in memory that its thread uses again for later calls, so that a call allocates nothing. Also the wait for its head. Knows no
//! client protocol.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::ops::{Deref, DerefMut};
use std::task::{Poll, ready};

use hostler_dispatch::Lease;
use hostler_wire::CallError;

use super::ending::{CallRemains, end_lease};
use super::failure::Failure;
use super::tunnel::MemberEnd;
use super::{Call, CallEnding, Endpoint};
use crate::exchange::{Downstream, Exchange};

/// How many places one thread keeps: about the calls that begin in one turn of its loop.
const MOST: usize = 64;

thread_local! {
    /// Boxes without a call.
    static SPARE: RefCell<Vec<CallBox>> = const { RefCell::new(Vec::new()) };
}

/// A call on the heap. The future of its request moves it about a dozen times, and each time only the pointer is copied.
pub struct CallBox(Box<Option<Call>>);

impl CallBox {
    #[inline]
    pub(super) fn new(call: Call) -> Self {
        match SPARE.with_borrow_mut(Vec::pop) {
            Some(mut empty) => {
                *empty.0 = Some(call);
                empty
            }
            None => Self(Box::new(Some(call))),
        }
    }

    /// Waits for the head of the response, and passes interim responses to the client. Returns early when the response is late
    /// ([`Self::is_late`]) or the `patience` of the exchange is over, so that the caller can act before it waits on. After a failure the
    /// lease comes back, unless it belongs to a member that still works on the request.
    pub(super) async fn head<D: Downstream>(
        mut self,
        exchange: &mut Exchange,
        client: &mut D,
    ) -> Result<Self, (Failure, Option<Lease<Endpoint>>)> {
        let outcome = poll_fn(|cx| {
            let outcome = self.poll_head(cx, exchange, client);
            // The first bytes wake the member's event loop. The rest of a body may wait for an app that does not read it.
            if self.link.written() > 0 || !self.link.has_unsent() {
                self.lease.sent();
            }
            if outcome.is_pending()
                && let Some(patience) = &mut exchange.patience
            {
                ready!(patience.as_mut().poll(cx));
                exchange.patience = None;
                return Poll::Ready(Ok(false));
            }
            outcome.map_ok(|()| true)
        });
        match outcome.await {
            Ok(true) => {
                self.note_head(exchange);
                Ok(self)
            }
            Ok(false) => Ok(self),
            Err(Failure::TimedOut) if exchange.waits_on() => Ok(self),
            Err(failure) => Err(self.unboxed().without_answer(exchange, failure)),
        }
    }

    /// Waits on for the head of a late answer.
    pub async fn wait_on<D: Downstream>(
        self,
        exchange: &mut Exchange,
        client: &mut D,
    ) -> Result<Self, Failure> {
        self.head(exchange, client).await.map_err(end_lease)
    }

    /// See [`Call::finish`].
    pub fn finish(self, exchange: &mut Exchange) {
        self.unboxed().finish(exchange);
    }

    /// See [`Call::abandon`].
    pub fn abandon(self, exchange: &mut Exchange) {
        self.unboxed().abandon(exchange);
    }

    /// See [`Call::give_up`].
    pub fn give_up(self, exchange: &mut Exchange, error: CallError) -> Failure {
        self.unboxed().give_up(exchange, error)
    }

    /// See [`Call::break_off`].
    pub fn break_off(self, error: CallError) -> (Failure, CallRemains) {
        self.unboxed().break_off(error)
    }

    /// See [`Call::end`].
    pub fn end(self, how: CallEnding) -> CallRemains {
        self.unboxed().end(how)
    }

    /// See [`Call::switch`].
    pub fn switch(self, exchange: &mut Exchange) -> MemberEnd {
        self.unboxed().switch(exchange)
    }

    /// The call. Its place is used again.
    pub(super) fn unboxed(self) -> Call {
        let mut empty = self;
        let call = empty.0.take().expect("invariant: only this takes the call");
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < MOST {
                spare.push(empty);
            }
        });
        call
    }
}

impl Deref for CallBox {
    type Target = Call;

    fn deref(&self) -> &Call {
        self.0.as_ref().as_ref().expect("invariant: a box in use has a call")
    }
}

impl DerefMut for CallBox {
    fn deref_mut(&mut self) -> &mut Call {
        self.0.as_mut().as_mut().expect("invariant: a box in use has a call")
    }
}
