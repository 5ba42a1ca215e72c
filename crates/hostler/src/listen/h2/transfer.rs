//! An answer on its way into a stream: how far it is, and what can go wrong. Moves nothing.

use hostler_wire::Fields;
use http::Response;

use crate::exchange::Exchange;
use crate::listen::response_body::{ResponseBody, Trouble};

/// What went wrong on the way.
pub(super) enum TransferError {
    ResponseBody(Trouble),
    /// The file between them.
    File(std::io::Error),
    /// Gone, or as good as gone.
    Client(&'static str),
}

/// An answer under way.
pub(super) struct StreamTransfer {
    /// Until it has gone.
    pub head: Option<Response<()>>,
    /// None once all has come.
    pub body: Option<ResponseBody>,
    pub trailers: Option<Fields>,
    /// All has been handed over, the end of the stream included.
    pub done: bool,
    /// There was no room for more of it.
    pub was_full: bool,
    /// What keeps the rest from being handed over is the way that all streams share.
    pub waits_for_others: bool,
}

impl StreamTransfer {
    pub fn new(head: Response<()>, body: Option<ResponseBody>) -> Self {
        let (was_full, waits_for_others) = (false, false);
        Self { head: Some(head), body, trailers: None, done: false, was_full, waits_for_others }
    }

    pub fn abandon(self, exchange: &mut Exchange, who: &'static str) {
        if let Some(body) = self.body {
            body.abandon(exchange);
        }
        exchange.log_facts.aborted = Some(who);
    }
}
