//! A request of Hostler's own whose answer is long: the body is read piece by piece. Knows no client and no lease.

use std::future::poll_fn;

use hostler_wire::{Address, CallError, MemberConnection};

use super::ask::status_of;

/// How much of a body is read at once.
const PIECE: usize = 256 * 1024;

/// An answer whose body is still arriving. Dropping it closes the connection.
pub struct ArrivingAnswer {
    pub status: u16,
    connection: MemberConnection,
}

impl ArrivingAnswer {
    /// Posts to `path`, without a body but with these fields. The error is a sentence for the operator.
    pub async fn post(address: &Address, path: &str, more: &[(&str, &str)]) -> Result<Self, String> {
        let asking = async {
            let mut connection = MemberConnection::connect(address).await?;
            let mut fields = vec![("Host", "localhost"), ("Connection", "close"), ("Content-Length", "0")];
            fields.extend(more);
            let status = status_of(&mut connection, "POST", path, &fields).await?;
            Ok::<_, CallError>(Self { status, connection })
        };
        asking.await.map_err(|error| error.to_string())
    }

    /// Appends the next piece of the body. Returns whether the body is complete.
    pub async fn piece(&mut self, into: &mut Vec<u8>) -> Result<bool, String> {
        poll_fn(|cx| self.connection.poll_body(cx, into, PIECE)).await.map_err(|error| error.to_string())
    }
}
