//! Writes the values of one metric. Knows no Status.

use std::borrow::Cow;
use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::table::{Kind, Metric};

/// The values of the metric's labels, in the order of its table.
pub(super) type Values<'a, const N: usize> = [Cow<'a, str>; N];

/// A histogram: each upper bound with its count, and the sum.
pub(super) type Buckets<'a> = (&'a [(f64, u64)], f64);

/// Writes metrics one after another.
pub(super) struct MetricWriter<'e>(pub DescriptorEncoder<'e>);

impl MetricWriter<'_> {
    /// A metric without labels.
    pub fn one(&mut self, metric: &Metric, value: impl Into<Option<f64>>) -> fmt::Result {
        match value.into() {
            Some(value) => number(&mut self.begin(metric)?, metric.kind, value),
            None => Ok(()),
        }
    }

    /// A metric with one value for each combination of labels. Without rows it is left out.
    pub fn each<'a, const N: usize>(
        &mut self,
        metric: &Metric,
        rows: impl IntoIterator<Item = (Values<'a, N>, f64)>,
    ) -> fmt::Result {
        self.all(metric, rows, |encoder, value| number(encoder, metric.kind, value))
    }

    pub fn histograms<'a, const N: usize>(
        &mut self,
        metric: &Metric,
        rows: impl IntoIterator<Item = (Values<'a, N>, Buckets<'a>)>,
    ) -> fmt::Result {
        self.all(metric, rows, |encoder, (buckets, sum)| {
            let count = buckets.iter().map(|(_, count)| count).sum();
            encoder.encode_histogram::<NoLabelSet>(sum, count, buckets, None)
        })
    }

    /// A metric whose labels are the information.
    pub fn info<const N: usize>(&mut self, metric: &Metric, values: Values<'_, N>) -> fmt::Result {
        self.begin(metric)?.encode_info(&labels(metric, &values))
    }

    fn all<'a, const N: usize, V>(
        &mut self,
        metric: &Metric,
        rows: impl IntoIterator<Item = (Values<'a, N>, V)>,
        write: impl Fn(&mut MetricEncoder<'_>, V) -> fmt::Result,
    ) -> fmt::Result {
        let mut rows = rows.into_iter().peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let mut family = self.begin(metric)?;
        for (values, value) in rows {
            write(&mut family.encode_family(&labels(metric, &values))?, value)?;
        }
        Ok(())
    }

    fn begin(&mut self, metric: &Metric) -> Result<MetricEncoder<'_>, fmt::Error> {
        let kind = match metric.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
            Kind::Info => MetricType::Info,
        };
        // The text format adds a full stop.
        self.0.encode_descriptor(metric.name, metric.help, None, kind)
    }
}

fn number(encoder: &mut MetricEncoder<'_>, kind: Kind, value: f64) -> fmt::Result {
    match kind {
        Kind::Counter => encoder.encode_counter::<NoLabelSet, _, f64>(&value, None),
        _ => encoder.encode_gauge(&value),
    }
}

fn labels<'a, const N: usize>(metric: &Metric, values: &'a Values<'_, N>) -> Vec<(&'static str, &'a str)> {
    debug_assert_eq!(metric.labels.len(), N, "{}", metric.name);
    metric.labels.iter().copied().zip(values.iter().map(Cow::as_ref)).collect()
}
