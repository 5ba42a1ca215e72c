//! Sends spans to a collector in batches, by OTLP over HTTP. Knows no requests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hostler_engine::journal::{Journal, Level};
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, Uri};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::counts::TraceCounts;
use super::spans::text;

/// A batch has the spans of so many requests at most.
const BATCH: usize = 256;
/// How long a batch waits for further requests.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long the collector may take for a batch.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// The wait before a batch is sent again.
const PAUSE: Duration = Duration::from_secs(1);

/// Where a collector listens.
pub struct Collector {
    uri: Uri,
    address: (String, u16),
}

impl Collector {
    /// `uri` has a host and a path.
    pub fn new(uri: Uri) -> Self {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        Self { address: (host, uri.port_u16().unwrap_or(80)), uri }
    }

    /// A connection of its own for each batch: there is one a second at most, unless there are very many requests.
    async fn send(&self, body: Bytes) -> Result<(), SendError> {
        let again = |error: &dyn std::fmt::Display| SendError { why: error.to_string(), is_final: false };
        let (host, port) = &self.address;
        let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(|error| again(&error))?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| again(&error))?;
        let connection = tokio::spawn(connection);
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let request = Request::post(self.uri.path())
            .header(HOST, authority)
            .header(CONTENT_TYPE, "application/x-protobuf")
            .header(USER_AGENT, concat!("hostler/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(body))
            .map_err(|error| SendError { why: error.to_string(), is_final: true })?;
        let answer = sender.send_request(request).await;
        connection.abort();
        let status = answer.map_err(|error| again(&error))?.status();
        if status.is_success() {
            return Ok(());
        }
        // OTLP says after which answers a batch may be sent again.
        let is_final = !matches!(status.as_u16(), 429 | 502..=504);
        Err(SendError { why: format!("it answered {status}"), is_final })
    }
}

struct SendError {
    why: String,
    /// Sending the batch again would not help.
    is_final: bool,
}

pub struct Exporter {
    collector: Collector,
    journal: Journal,
    counts: Arc<TraceCounts>,
    /// The last attempt has failed, and the log says so.
    is_failing: bool,
}

impl Exporter {
    pub fn new(collector: Collector, journal: Journal, counts: Arc<TraceCounts>) -> Self {
        Self { collector, journal, counts, is_failing: false }
    }

    /// Sends batches until it is told to end and nothing is left.
    pub async fn run(mut self, mut received: mpsc::Receiver<Vec<Span>>, mut ending: watch::Receiver<bool>) {
        let mut batch = Vec::new();
        loop {
            if *ending.borrow() {
                received.close();
            }
            tokio::select! {
                // Also when the queue is closed and empty.
                count = received.recv_many(&mut batch, BATCH) => if count == 0 { return },
                _ = ending.changed(), if !received.is_closed() => continue,
            }
            let until = Instant::now() + INTERVAL;
            while batch.len() < BATCH && !received.is_closed() {
                let room = BATCH - batch.len();
                tokio::select! {
                    _ = received.recv_many(&mut batch, room) => {}
                    () = sleep_until(until) => break,
                    _ = ending.changed() => received.close(),
                }
            }
            self.export(std::mem::take(&mut batch), &mut ending).await;
        }
    }

    /// Sends a batch, again and again until the collector takes it. At the end of the program it is sent once.
    async fn export(&mut self, batch: Vec<Vec<Span>>, ending: &mut watch::Receiver<bool>) {
        let requests = batch.len() as u64;
        let body = Bytes::from(message(batch.into_iter().flatten().collect()).encode_to_vec());
        loop {
            let late = |_| Err(SendError { why: format!("no answer in {TIME_LIMIT:?}"), is_final: false });
            let sent = timeout(TIME_LIMIT, self.collector.send(body.clone())).await.unwrap_or_else(late);
            self.note(&sent);
            match sent {
                Ok(()) => {
                    self.counts.note_exported(requests);
                    return;
                }
                Err(error) if error.is_final || *ending.borrow() => {
                    self.counts.note_dropped(requests);
                    return;
                }
                Err(_) => tokio::select! {
                    () = sleep(PAUSE) => {}
                    _ = ending.changed() => {}
                },
            }
        }
    }

    /// One line when sending begins to fail, and one when it works again.
    fn note(&mut self, sent: &Result<(), SendError>) {
        let uri = &self.collector.uri;
        match sent {
            Err(SendError { why, .. }) if !self.is_failing => {
                let text =
                    format!("traces: the collector {uri} takes no spans: {why}. Requests are not affected");
                self.journal.event(Level::Warn, &text);
            }
            Ok(()) if self.is_failing => {
                let text = format!("traces: the collector {uri} takes spans again");
                self.journal.event(Level::Info, &text);
            }
            _ => {}
        }
        self.is_failing = sent.is_err();
    }
}

fn message(spans: Vec<Span>) -> ExportTraceServiceRequest {
    let version = env!("CARGO_PKG_VERSION");
    let resource = Resource {
        attributes: vec![text("service.name", "hostler"), text("service.version", version)],
        ..Resource::default()
    };
    let scope =
        InstrumentationScope { name: "hostler".into(), version: version.into(), ..Default::default() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
    let resource_spans =
        vec![ResourceSpans { resource: Some(resource), scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }
}
