//! A single request of Hostler's own: a health check, a warm-up, or a request to another Hostler. Knows no client and no lease.

use std::future::poll_fn;
use std::time::Duration;

use hostler_wire::{
    Address, CallError, Limits, MemberConnection, write_field, write_head_end, write_request_line,
};
use tokio::time::timeout;

const USER_AGENT: &str = concat!("hostler/", env!("CARGO_PKG_VERSION"));

#[derive(Debug)]
pub struct WholeAnswer {
    pub status: u16,
    pub body: Vec<u8>,
}

/// Gets `path` over a connection of its own, with these fields. The error is a sentence for the operator.
pub async fn ask(
    address: &Address,
    path: &str,
    fields: &[(&str, &str)],
    time_limit: Duration,
) -> Result<WholeAnswer, String> {
    within(time_limit, send(address, "GET", path, fields, |_| {})).await
}

/// As [`ask`], but keeps nothing of the body: it may be long, or have no end.
pub async fn ask_status(
    address: &Address,
    path: &str,
    fields: &[(&str, &str)],
    time_limit: Duration,
) -> Result<u16, String> {
    let answer = within(time_limit, send(address, "GET", path, fields, Vec::clear)).await?;
    Ok(answer.status)
}

/// Posts to `path`, without a body but with these fields.
pub async fn post(
    address: &Address,
    path: &str,
    fields: &[(&str, &str)],
    time_limit: Duration,
) -> Result<WholeAnswer, String> {
    let all = [fields, &[("Content-Length", "0")]].concat();
    within(time_limit, send(address, "POST", path, &all, |_| {})).await
}

async fn within(
    time_limit: Duration,
    sending: impl Future<Output = Result<WholeAnswer, CallError>>,
) -> Result<WholeAnswer, String> {
    match timeout(time_limit, sending).await {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no response within {time_limit:?}")),
    }
}

/// `each` gets the body after each piece of it.
async fn send(
    address: &Address,
    method: &str,
    path: &str,
    more: &[(&str, &str)],
    mut each: impl FnMut(&mut Vec<u8>),
) -> Result<WholeAnswer, CallError> {
    let mut connection = MemberConnection::connect(address).await?;
    let mut fields = vec![("Host", "localhost"), ("User-Agent", USER_AGENT), ("Connection", "close")];
    fields.extend(more);
    let status = status_of(&mut connection, method, path, &fields).await?;
    let mut body = Vec::new();
    loop {
        let has_ended = poll_fn(|cx| connection.poll_body(cx, &mut body, usize::MAX)).await?;
        each(&mut body);
        if has_ended {
            return Ok(WholeAnswer { status, body });
        }
    }
}

/// Sends a request without a body and reads the heads of the answer. Returns the final status.
pub(super) async fn status_of(
    connection: &mut MemberConnection,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
) -> Result<u16, CallError> {
    let head = connection.start();
    write_request_line(head, method.as_bytes(), path.as_bytes());
    for (name, value) in fields {
        write_field(head, name.as_bytes(), value.as_bytes());
    }
    write_head_end(head);
    poll_fn(|cx| connection.poll_send(cx)).await;
    let limits = Limits::default();
    loop {
        poll_fn(|cx| connection.poll_head(cx, &limits, false)).await?;
        if !connection.head().is_interim() {
            return Ok(connection.head().status);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const LENGTH: usize = 4 << 20;

    async fn answers(listener: &TcpListener) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&vec![b'x'; LENGTH]).await.unwrap();
    }

    #[tokio::test]
    async fn a_question_for_the_status_keeps_nothing_of_a_long_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::Tcp("127.0.0.1".into(), listener.local_addr().unwrap().port());
        let asking = send(&address, "GET", "/", &[], Vec::clear);
        let (answer, ()) = tokio::join!(asking, answers(&listener));
        let WholeAnswer { status, body } = answer.unwrap();
        assert_eq!((status, body.len()), (200, 0));
        assert!(body.capacity() < LENGTH / 2, "{}", body.capacity());
        let (answer, ()) = tokio::join!(send(&address, "GET", "/", &[], |_| {}), answers(&listener));
        assert_eq!(answer.unwrap().body.len(), LENGTH);
    }
}
