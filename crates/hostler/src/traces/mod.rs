//! Traces: which requests are exported, and the bounded queue to the exporter. Knows no listeners and no pools.

mod collector;
mod counts;
mod exporter;
mod spans;

use std::sync::Arc;
use std::time::Duration;

use hostler_config::Traces;
use hostler_engine::exchange::{Exchange, TraceContext};
use hostler_engine::journal::Journal;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use collector::Collector;
use counts::TraceCounts;
use exporter::Exporter;

pub use counts::TracesView;

/// So many requests wait for the exporter. Further ones are dropped and counted.
const QUEUE: usize = 1024;
/// How long the end of the program waits for the collector.
const END_LIMIT: Duration = Duration::from_secs(2);

/// Decides which requests are traced, and passes their spans to the exporter.
pub struct Tracer {
    sample: u32,
    slow: Duration,
    parent_based: bool,
    queue: mpsc::Sender<Vec<Span>>,
    end: watch::Sender<bool>,
    counts: Arc<TraceCounts>,
}

impl Tracer {
    /// Starts the exporter on the runtime of the caller. None if traces are off.
    pub fn start(settings: &Traces, journal: &Journal) -> Option<Arc<Self>> {
        let collector = Collector::new(settings.collector.clone()?);
        let (queue, received) = mpsc::channel(QUEUE);
        let (end, ending) = watch::channel(false);
        let counts = Arc::<TraceCounts>::default();
        let exporter = Exporter::new(collector, journal.clone(), counts.clone());
        tokio::spawn(exporter.run(received, ending));
        let Traces { sample, slow, parent_based, .. } = *settings;
        Some(Arc::new(Self { sample, slow, parent_based, queue, end, counts }))
    }

    /// Finds the context of a request that begins.
    pub fn begin(&self, exchange: &mut Exchange) {
        let context = TraceContext::of(&exchange.head.fields, self.sample, self.parent_based);
        exchange.trace = Some(Box::new(context));
    }

    /// Passes on the spans of a request that has ended, if it is exported. Never waits.
    pub fn settle(&self, exchange: &Exchange) {
        let Some(context) = &exchange.trace else { return };
        let is_exported = context.is_sampled
            || exchange.log_facts.refusal.is_some()
            || exchange.timings.started.elapsed() >= self.slow;
        if is_exported && self.queue.try_send(spans::of(exchange, context)).is_err() {
            self.counts.note_dropped(1);
        }
    }

    /// Sends what is left, for a limited time. Later requests are dropped.
    pub async fn end(&self) {
        self.end.send_replace(true);
        // The exporter drops its receiver when all is sent.
        let _ = timeout(END_LIMIT, self.end.closed()).await;
    }

    /// Counters for the Status.
    pub fn view(&self) -> TracesView {
        self.counts.view()
    }
}
