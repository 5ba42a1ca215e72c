//! Sends one message to a collector, by OTLP over HTTP, with TLS if its address says so. Knows no spans and no batches.

use std::fmt::Display;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hostler_config::CollectorAddress;
use hostler_engine::journal::on_one_line;
use hostler_engine::proxy::{Connector, MemberProtocol, MemberTls};
use hostler_wire::{Address, parse_http_date};
use http::header::{CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

/// How long the collector may take for a message, up to the head of its answer.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// How long the rest of the answer may take.
const REST_LIMIT: Duration = Duration::from_secs(1);
/// A collector cannot make Hostler wait longer: the spans that come meanwhile are lost.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// An answer has a few bytes. More are not read.
const ANSWER_LIMIT: usize = 64 * 1024;

/// Where a collector listens, and how to reach it.
pub struct Collector {
    address: CollectorAddress,
    connector: Connector,
}

/// The collector has taken a message.
#[derive(Debug, Default)]
pub struct SpansTaken {
    /// So many of the spans it has thrown away.
    pub rejected: i64,
    /// The collector's words for that.
    pub why: String,
}

/// The collector has not taken a message.
pub struct SendError {
    /// A part of a sentence for the operator.
    pub why: String,
    /// Sending the message again would not help.
    pub is_final: bool,
    /// The collector asks for this wait before the next try.
    pub wait: Option<Duration>,
}

impl Collector {
    pub fn new(address: CollectorAddress) -> Self {
        let host = address.uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let usual = if address.tls.is_some() { 443 } else { 80 };
        let tls = address.tls.as_ref().map(|tls| {
            let name = tls.server_name.clone().expect("invariant: it was resolved with the host's name");
            Box::new(MemberTls { config: tls.config.clone(), name })
        });
        let to = Address::Tcp(host, address.uri.port_u16().unwrap_or(usual));
        Self { address, connector: Connector { tls, ..Connector::from(to) } }
    }

    pub fn uri(&self) -> &Uri {
        &self.address.uri
    }

    /// A connection of its own for each message: there is one a second at most, unless there are very many requests.
    pub async fn send(&self, message: Bytes) -> Result<SpansTaken, SendError> {
        let until = Instant::now() + TIME_LIMIT;
        let stream = self.connector.connect(MemberProtocol::Http1, TIME_LIMIT).await;
        let stream = TokioIo::new(stream.map_err(|error| again(&error))?);
        let (mut sender, connection) = http1::handshake(stream).await.map_err(|error| again(&error))?;
        // Ends with this future, also if it is dropped: a collector that reads nothing must not collect connections.
        let mut task = JoinSet::new();
        task.spawn(async move { drop(connection.await) });
        let answered = timeout_at(until, sender.send_request(self.request(message))).await;
        let late = |_| again(&format!("no response in {TIME_LIMIT:?}"));
        read(answered.map_err(late)?.map_err(|error| again(&error))?).await
    }

    fn request(&self, message: Bytes) -> Request<Full<Bytes>> {
        let uri = self.uri();
        let mut request = Request::new(Full::new(message));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = Uri::try_from(uri.path()).unwrap_or_default();
        // The resolver takes no fields that Hostler sets.
        let fields = request.headers_mut();
        fields.clone_from(&self.address.headers);
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        fields.extend(HeaderValue::from_str(authority).map(|value| (HOST, value)));
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        const NAME: &str = concat!("hostler/", env!("CARGO_PKG_VERSION"));
        fields.entry(USER_AGENT).or_insert(HeaderValue::from_static(NAME));
        request
    }
}

async fn read(answer: Response<Incoming>) -> Result<SpansTaken, SendError> {
    let status = answer.status();
    if !status.is_success() {
        // OTLP says after which answers a message may be sent again.
        let is_final = !matches!(status.as_u16(), 429 | 502..=504);
        return Err(SendError {
            why: format!("it answered {status}"),
            is_final,
            wait: wait(answer.headers(), SystemTime::now()),
        });
    }
    // Only an answer in the usual form says something. The spans have arrived in any case.
    let Ok(Ok(body)) = timeout(REST_LIMIT, Limited::new(answer.into_body(), ANSWER_LIMIT).collect()).await
    else {
        return Ok(SpansTaken::default());
    };
    let told = ExportTraceServiceResponse::decode(body.to_bytes()).unwrap_or_default().partial_success;
    let words = |text: String| on_one_line(&text).take(200).collect();
    Ok(told.map_or_else(SpansTaken::default, |told| SpansTaken {
        rejected: told.rejected_spans,
        why: words(told.error_message),
    }))
}

fn again(error: &dyn Display) -> SendError {
    SendError { why: error.to_string(), is_final: false, wait: None }
}

/// `Retry-After`, in seconds or as a date (RFC 9110 section 10.2.3). A date that is over asks for no wait.
fn wait(fields: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = fields.get(RETRY_AFTER)?.as_bytes();
    let wait = match std::str::from_utf8(value).ok()?.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => parse_http_date(value)?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn spans_have_arrived_also_if_the_answer_that_says_so_has_no_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}/v1/traces", listener.local_addr().unwrap()).parse().unwrap();
        let collector = Collector::new(CollectorAddress { uri, headers: HeaderMap::new(), tls: None });
        let answering = async {
            let mut stream = BufReader::new(listener.accept().await.unwrap().0);
            stream.read_line(&mut String::new()).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").await.unwrap();
            stream
        };
        let (sent, _open) = tokio::join!(collector.send(Bytes::from_static(b"spans")), answering);
        assert!(sent.is_ok_and(|taken| taken.rejected == 0));
    }

    #[test]
    fn a_busy_collector_says_how_long_to_wait_up_to_a_limit() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_792_567_673);
        for (field, expected) in [
            ("7", Some(Duration::from_secs(7))),
            ("999999999", Some(LONGEST_WAIT)),
            ("soon", None),
            ("-1", None),
            ("Wed, 21 Oct 2026 07:28:00 GMT", Some(Duration::from_secs(7))),
            ("Wed, 21 Oct 2026 08:28:00 GMT", Some(LONGEST_WAIT)),
            ("Wed, 21 Oct 2026 07:27:00 GMT", Some(Duration::ZERO)),
            ("Wed, 21 Oct 2026", None),
        ] {
            let fields = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(field))]);
            assert_eq!(wait(&fields, now), expected, "{field}");
        }
        assert_eq!(wait(&HeaderMap::new(), now), None);
    }
}
