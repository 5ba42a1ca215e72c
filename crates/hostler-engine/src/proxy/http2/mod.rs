//! Calls to members over HTTP/2. Knows no client protocol.

mod connection;
mod head;
mod member_io;
mod stream;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use hostler_dispatch::Lease;
use hostler_wire::{Name, Stream, tokens};
use http::Request;
use http::uri::Scheme;

pub(super) use connection::Http2Connections;
use connection::{AT_ONCE, BodyNeed, StreamPermit};
use member_io::{Heard, MemberIo, SilentEnd};
pub(super) use stream::{Fault, KeptBody, MemberStream};

use super::connecting::{go_on, note_connected};
use super::ending::FailedStart;
use super::upload::Upload;
use super::{Call, CallBox, CallSettings, Endpoint, Failure, MemberProtocol, request};
use crate::exchange::{Body, Downstream, Exchange, is_grpc};

/// Sends the request to the leased member and waits for the head of the answer. After a failure the lease comes back, unless it belongs to a
/// member that still works on the request.
pub(super) async fn forward<D: Downstream>(
    exchange: &mut Exchange,
    client: &mut D,
    mut lease: Lease<Endpoint>,
    settings: &CallSettings,
    thread: usize,
) -> Result<CallBox, FailedStart> {
    let mut is_first = true;
    loop {
        let permit = match permit(&lease, exchange, settings, thread).await {
            Ok(permit) => permit,
            Err(failure) => return Err(without_permit(failure, lease, settings)),
        };
        let outcome = match begin(exchange, lease, permit, settings, thread) {
            Ok(call) => call.head(exchange, client).await,
            Err(failed) => Err(*failed),
        };
        match outcome {
            // A member may close a connection while a request is on its way to it. That is not the member's failure, so the same lease
            // tries once more.
            Err((Failure::Unprocessed(_), Some(again)))
                if is_first && !exchange.has_lost_body && !exchange.needs_http1 =>
            {
                (is_first, lease) = (false, again);
            }
            outcome => return outcome,
        }
    }
}

/// Sends the request to the leased member, and does not wait for the answer.
pub(super) async fn begin_call(
    exchange: &Exchange,
    lease: Lease<Endpoint>,
    settings: &CallSettings,
    thread: usize,
) -> Result<CallBox, FailedStart> {
    match permit(&lease, exchange, settings, thread).await {
        Ok(permit) => begin(exchange, lease, permit, settings, thread).map_err(|failed| *failed),
        Err(failure) => Err(without_permit(failure, lease, settings)),
    }
}

/// Sends one request of our own over a connection of its own. Returns the status.
pub(super) async fn ask(stream: Stream, request: Request<()>) -> Result<u16, h2::Error> {
    let member_io = MemberIo::new(stream, SilentEnd::default(), Heard::default());
    let (requests, connection) = h2::client::handshake(member_io).await?;
    let asking = async {
        let (answer, _) = requests.ready().await?.send_request(request, true)?;
        Ok(answer.await?.status().as_u16())
    };
    let mut asking = pin!(asking);
    // The connection must be polled for the request to proceed. It ends with this function.
    tokio::select! {
        status = asking.as_mut() => status,
        // The answer may have come together with the end of the connection. Without one this fails at once.
        _ = connection => asking.await,
    }
}

/// Room on a connection, within `connect_timeout` and the request's own deadline.
async fn permit(
    lease: &Lease<Endpoint>,
    exchange: &Exchange,
    settings: &CallSettings,
    thread: usize,
) -> Result<StreamPermit, Failure> {
    exchange.prepares();
    let (time_limit, need) = (settings.connect_timeout, body_need(exchange));
    let mut permitting = Box::pin(lease.http2_connections(thread).permit(
        &lease.connector,
        &settings.limits,
        time_limit,
        need,
    ));
    let outcome = poll_fn(|cx| match permitting.as_mut().poll(cx) {
        Poll::Ready(outcome) => Poll::Ready(outcome),
        Poll::Pending => exchange.deadline.poll_due(cx).map(|()| Err(Failure::TimedOut)),
    });
    let outcome = outcome.await;
    exchange.awaits();
    if outcome.is_ok() {
        note_connected(lease);
    }
    outcome
}

fn body_need(exchange: &Exchange) -> BodyNeed {
    match &exchange.body {
        Body::None => BodyNeed::Nothing,
        Body::Memory(bytes) if bytes.len() <= AT_ONCE => BodyNeed::AtOnce(bytes.len()),
        Body::Memory(_) | Body::Spilled(..) | Body::Streaming => BodyNeed::AsRead,
    }
}

/// Why a request has no room on a connection, and the lease. If only the time of the request is over, Hostler goes on to connect.
fn without_permit(failure: Failure, lease: Lease<Endpoint>, settings: &CallSettings) -> FailedStart {
    if !matches!(failure, Failure::TimedOut) {
        return (failure, Some(lease));
    }
    let (connector, time_limit) = (lease.connector.clone(), settings.connect_timeout);
    go_on(lease, async move { connector.connect(MemberProtocol::Http2, time_limit).await });
    (failure, None)
}

fn begin(
    exchange: &Exchange,
    lease: Lease<Endpoint>,
    permit: StreamPermit,
    settings: &CallSettings,
    thread: usize,
) -> Result<CallBox, Box<FailedStart>> {
    let upload = Upload::unframed(exchange);
    let Some(head) = head_for(exchange, &lease, upload.as_ref()) else {
        return Err(Box::new((Failure::NotExpressible, Some(lease))));
    };
    // A member that gets more may end the connection, with the requests of others. Before its settings have come, nothing is known.
    let most = permit.requests.current_max_send_header_list_size();
    if head::size(&head) > most {
        return Err(Box::new((Failure::HeadTooLarge(most), Some(lease))));
    }
    match MemberStream::begin(permit, head, upload.is_some()) {
        Ok(stream) => {
            let mut stream = Box::new(stream);
            if matches!(exchange.body, Body::Streaming) {
                stream.keep_body();
            }
            let mut call = Call::on_stream(exchange, lease, stream, upload, settings, thread);
            // A server of gRPC ends a call that is cancelled, so its slot need not stay taken until then.
            call.settings.hangs_up_at_once |= is_grpc(&exchange.head.fields);
            Ok(CallBox::new(call))
        }
        Err(error) => Err(Box::new((Failure::Unprocessed(error.to_string()), Some(lease)))),
    }
}

/// The same head as in HTTP/1.1, converted.
fn head_for(exchange: &Exchange, lease: &Lease<Endpoint>, upload: Option<&Upload>) -> Option<Request<()>> {
    let mut text = Vec::with_capacity(1024);
    request::write_head(&mut text, exchange, upload.map(Upload::framing));
    let scheme = if lease.connector.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
    // `TE` is about one connection, but it is sent on this one too, because some members send trailers only then.
    let mut wanted = exchange.head.fields.all(Name::Te).flat_map(tokens);
    head::request(&text, scheme, wanted.any(|token| token.eq_ignore_ascii_case(b"trailers")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;
    use tokio::time::timeout;

    use super::*;

    /// When so many bytes have come, the head of the request is among them: what precedes it is shorter.
    const BEGUN: usize = 100;

    /// The outcome for a member that sends these frames after the request has come, and closes at once.
    async fn asked(frames: &[u8]) -> Result<u16, h2::Error> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let member = async move {
            let mut come = Vec::new();
            while come.len() < BEGUN {
                assert_ne!(theirs.read_buf(&mut come).await.unwrap(), 0);
            }
            theirs.write_all(frames).await.unwrap();
        };
        let request = Request::get("http://a.test/").header("x-long", "x".repeat(100)).body(()).unwrap();
        let asking = timeout(Duration::from_secs(30), ask(Stream::Unix(ours), request));
        tokio::join!(asking, member).0.expect("an outcome")
    }

    #[tokio::test]
    async fn an_answer_that_comes_with_the_end_of_its_connection_counts() {
        let settings = [0_u8, 0, 0, 4, 0, 0, 0, 0, 0];
        // `:status: 200`, with the end of the head and of the stream.
        let answer = [0_u8, 0, 1, 1, 5, 0, 0, 0, 1, 0x88];
        assert_eq!(asked(&[&settings[..], &answer].concat()).await.unwrap(), 200);
        assert!(asked(&settings).await.is_err());
        assert!(asked(b"").await.is_err());
    }

    #[tokio::test]
    async fn a_whole_response_counts_although_its_connection_ends_before_the_upload() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let member = async move {
            let mut come = Vec::new();
            while come.len() < BEGUN {
                assert_ne!(theirs.read_buf(&mut come).await.unwrap(), 0);
            }
            let settings = [0_u8, 0, 0, 4, 0, 0, 0, 0, 0];
            let head = [0_u8, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];
            // Two bytes, and the end of the stream.
            let body = [0_u8, 0, 2, 0, 1, 0, 0, 0, 1, b'o', b'k'];
            theirs.write_all(&[&settings[..], &head, &body].concat()).await.unwrap();
        };
        let asking = async {
            let (requests, connection) = h2::client::handshake(Stream::Unix(ours)).await.unwrap();
            let request = Request::post("http://a.test/").header("x-long", "x".repeat(100)).body(()).unwrap();
            let (answer, upload) = requests.ready().await.unwrap().send_request(request, false).unwrap();
            // The response is read after the end of the connection.
            let _ = connection.await;
            let mut body = answer.await.unwrap().into_body();
            assert_eq!(body.data().await.unwrap().unwrap(), "ok");
            assert!(body.is_end_stream());
            assert!(body.data().await.is_none());
            drop(upload);
        };
        let both = async { tokio::join!(asking, member) };
        timeout(Duration::from_secs(30), both).await.expect("an outcome");
    }
}
