//! Gathers spans in batches, and sends each batch until the collector takes it. Knows no requests and no connections.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hostler_engine::journal::{Journal, Level, SeldomLine};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::collector::{Collector, SendError, SpansTaken};
use super::counts::TraceCounts;
use super::spans::text;

/// A batch has the spans of so many requests at most.
const BATCH: usize = 256;
/// How long a batch waits for further requests.
const INTERVAL: Duration = Duration::from_secs(1);
/// The wait before a batch is sent again, unless the collector asks for a longer one.
const PAUSE: Duration = Duration::from_secs(1);
/// The log names the same trouble at most this often: it may come and go with each batch.
const LOG_PAUSE: Duration = Duration::from_secs(600);

pub struct Exporter {
    collector: Collector,
    journal: Journal,
    counts: Arc<TraceCounts>,
    /// The last attempt has failed, and the log says so.
    is_failing: bool,
    /// The lines that attempts fail, and that it rejects spans.
    failing: SeldomLine,
    rejecting: SeldomLine,
}

impl Exporter {
    pub fn new(collector: Collector, journal: Journal, counts: Arc<TraceCounts>) -> Self {
        let (failing, rejecting) = (SeldomLine::default(), SeldomLine::default());
        Self { collector, journal, counts, is_failing: false, failing, rejecting }
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
        let batch: Vec<_> = batch.into_iter().flatten().collect();
        let spans = batch.len() as u64;
        let body = Bytes::from(message(batch).encode_to_vec());
        loop {
            let sent = self.collector.send(body.clone()).await;
            self.note(&sent);
            match sent {
                Ok(SpansTaken { rejected, .. }) => {
                    self.counts.note_exported(requests);
                    self.counts.note_rejected(u64::try_from(rejected).unwrap_or(0).min(spans));
                    return;
                }
                Err(error) if error.is_final || *ending.borrow() => {
                    self.counts.note_dropped(requests);
                    return;
                }
                Err(error) => tokio::select! {
                    () = sleep(error.wait.unwrap_or(PAUSE).max(PAUSE)) => {}
                    _ = ending.changed() => {}
                },
            }
        }
    }

    /// One line when sending begins to fail, and one when it works again, but at most one pair in [`LOG_PAUSE`].
    fn note(&mut self, sent: &Result<SpansTaken, SendError>) {
        let (uri, now) = (self.collector.uri(), Instant::now());
        match sent {
            Err(SendError { why, .. }) if !self.is_failing && self.failing.is_due(LOG_PAUSE, now) => {
                let text =
                    format!("traces: the collector {uri} takes no spans: {why}. Requests are not affected");
                self.journal.event(Level::Warn, &text);
                self.is_failing = true;
            }
            Err(_) => {}
            Ok(SpansTaken { rejected, why }) => {
                if *rejected > 0 && self.rejecting.is_due(LOG_PAUSE, now) {
                    let text = format!(
                        "traces: the collector {uri} rejects spans ({rejected} of this batch): {why}"
                    );
                    self.journal.event(Level::Warn, &text);
                }
                if std::mem::take(&mut self.is_failing) {
                    let text = format!("traces: the collector {uri} takes spans again");
                    self.journal.event(Level::Info, &text);
                }
            }
        }
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::OwnedFd;

    use hostler_config::CollectorAddress;
    use hostler_engine::journal::LogFormat;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn trouble_that_comes_and_goes_has_a_line_in_ten_minutes_and_one_that_stays_is_told() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let journal = Journal::new(LogFormat::Json, false, File::from(OwnedFd::from(writer))).unwrap();
        let uri = "http://127.0.0.1:4318/v1/traces".parse().unwrap();
        let address = CollectorAddress { uri, headers: http::HeaderMap::new(), tls: None };
        let mut exporter = Exporter::new(Collector::new(address), journal.clone(), Arc::default());
        let fails = || Err(SendError { why: "503".into(), is_final: false, wait: None });
        let rejects = || Ok(SpansTaken { rejected: 1, why: "too old".into() });
        for _ in 0..100 {
            for sent in [fails(), rejects(), Ok(SpansTaken::default())] {
                exporter.note(&sent);
                advance(Duration::from_secs(1)).await;
            }
        }
        advance(LOG_PAUSE).await;
        (0..10).for_each(|_| exporter.note(&fails()));
        journal.end();
        let mut told = String::new();
        reader.read_to_string(&mut told).unwrap();
        let parts = ["takes no spans: 503", "rejects spans", "takes spans again", "takes no spans: 503"];
        assert_eq!(told.lines().count(), parts.len(), "{told}");
        assert!(told.lines().zip(parts).all(|(line, part)| line.contains(part)), "{told}");
    }
}
