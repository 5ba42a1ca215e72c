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
/// So many of these places are for requests that are sampled. Any client can cause refusals, more than a collector takes.
const FOR_SAMPLED: usize = QUEUE / 2;
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
        if !is_exported {
            return;
        }
        let has_room = context.is_sampled || self.queue.capacity() > FOR_SAMPLED;
        // The place first: spans for which there is none need not be made.
        match self.queue.try_reserve() {
            Ok(place) if has_room => place.send(spans::of(exchange, context)),
            _ => self.counts.note_dropped(1),
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

#[cfg(test)]
mod tests {
    use hostler_engine::exchange::Sweep;

    use super::*;

    #[tokio::test]
    async fn refusals_leave_room_for_requests_that_are_sampled() {
        let (queue, mut received) = mpsc::channel(QUEUE);
        let (end, counts) = (watch::Sender::new(false), Arc::<TraceCounts>::default());
        let slow = Duration::from_secs(3600);
        let tracer = Tracer { sample: 0, slow, parent_based: true, queue, end, counts };
        let ended = |sample, refusal| {
            let address = ([127, 0, 0, 1], 80).into();
            let mut exchange = Exchange::new(address, address, Sweep::new().deadline());
            exchange.trace = Some(Box::new(TraceContext::of(&exchange.head.fields, sample, true)));
            exchange.log_facts.refusal = refusal;
            exchange
        };
        let (refused, sampled) = (ended(0, Some("bad_head")), ended(1, None));
        (0..2 * QUEUE).for_each(|_| tracer.settle(&refused));
        assert_eq!(tracer.view().dropped, (QUEUE + FOR_SAMPLED) as u64);
        (0..FOR_SAMPLED).for_each(|_| tracer.settle(&sampled));
        assert_eq!(tracer.view().dropped, (QUEUE + FOR_SAMPLED) as u64, "each has a place");
        tracer.settle(&sampled);
        tracer.settle(&ended(0, None));
        assert_eq!(tracer.view().dropped, (QUEUE + FOR_SAMPLED + 1) as u64);
        let mut all = Vec::new();
        assert_eq!(received.recv_many(&mut all, 2 * QUEUE).await, QUEUE);
    }
}
