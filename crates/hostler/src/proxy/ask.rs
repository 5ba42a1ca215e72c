//! One request of our own: a health check, a warm-up, a question or an order to another Hostler. Knows no client and no lease.

use std::future::poll_fn;
use std::time::Duration;

use hostler_wire::{Address, CallError, Limits, MemberConnection};
use tokio::time::timeout;

/// An answer in memory.
#[derive(Debug)]
pub struct WholeAnswer {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Gets `path` on a connection of its own. The error is a sentence for an operator.
pub async fn ask(address: &Address, path: &str, time_limit: Duration) -> Result<WholeAnswer, String> {
    within(time_limit, send(address, "GET", path, "")).await
}

/// Posts to `path`, without a body but with these field lines, each with its CRLF.
pub async fn post(
    address: &Address,
    path: &str,
    fields: &str,
    time_limit: Duration,
) -> Result<WholeAnswer, String> {
    within(time_limit, send(address, "POST", path, &format!("{fields}Content-Length: 0\r\n"))).await
}

async fn within(
    time_limit: Duration,
    sending: impl Future<Output = Result<WholeAnswer, CallError>>,
) -> Result<WholeAnswer, String> {
    match timeout(time_limit, sending).await {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {time_limit:?}")),
    }
}

async fn send(address: &Address, method: &str, path: &str, fields: &str) -> Result<WholeAnswer, CallError> {
    let mut connection = MemberConnection::connect(address).await?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: hostler/{}\r\nConnection: close\r\n{fields}\r\n",
        env!("CARGO_PKG_VERSION")
    );
    let status = status_of(&mut connection, &head).await?;
    let mut body = Vec::new();
    while !poll_fn(|cx| connection.poll_body(cx, &mut body, usize::MAX)).await? {}
    Ok(WholeAnswer { status, body })
}

/// Sends a request without a body, all of it in its `head`, and reads the heads of its answer. Gives the status of the final one.
pub(super) async fn status_of(connection: &mut MemberConnection, head: &str) -> Result<u16, CallError> {
    connection.start().extend_from_slice(head.as_bytes());
    poll_fn(|cx| connection.poll_send(cx)).await;
    let limits = Limits::default();
    loop {
        poll_fn(|cx| connection.poll_head(cx, &limits, false)).await?;
        if !connection.head().is_interim() {
            return Ok(connection.head().status);
        }
    }
}
