//! The text formats of metrics: OpenMetrics, and Prometheus's older format. Knows no metrics.

use std::fmt;

use hostler_wire::weight;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::Registry;

use super::super::status::Status;
use super::families;

/// A text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus's text format 0.0.4, which everything can read.
    Prometheus,
}

impl Format {
    /// The format for a client with these `Accept` fields. Prometheus names OpenMetrics if it can read it. Ranges such as `*/*` get the format
    /// that everything can read.
    pub fn wanted<'a>(accept: impl Iterator<Item = &'a str>) -> Self {
        if accept.flat_map(|value| value.split(',')).any(names_openmetrics) {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// A weight of 0 means that the client does not take it.
fn names_openmetrics(range: &str) -> bool {
    let mut parts = range.split(';').map(str::trim);
    let named = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/openmetrics-text"));
    named && !parts.any(|part| weight(part.as_bytes()) == Some(0))
}

/// The Status in this format.
pub fn encode(status: Status, format: Format) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Snapshot(status)));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(match format {
        Format::OpenMetrics => out,
        Format::Prometheus => older(&out),
    })
}

#[derive(Debug)]
struct Snapshot(Status);

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        families::write(&self.0, encoder)
    }
}

/// Turns OpenMetrics into the older format. There, the type belongs to the name of the samples: of a counter with its suffix.
/// It has no type for information, no units and no end mark.
fn older(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1024);
    let mut help = "";
    for line in text.lines() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        if line.starts_with("# HELP ") {
            help = line;
            continue;
        }
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                kind => ("", kind),
            };
            let words = help
                .strip_prefix("# HELP ")
                .and_then(|rest| rest.split_once(' '))
                .map_or("", |(_, words)| words);
            out.extend(["# HELP ", name, suffix, " ", words, "\n# TYPE ", name, suffix, " ", kind, "\n"]);
            continue;
        }
        out.extend([line, "\n"]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_only_for_those_that_ask_for_it() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        assert_eq!(Format::wanted([prometheus].into_iter()), Format::OpenMetrics);
        assert_eq!(
            Format::wanted(["text/plain", "Application/OpenMetrics-Text; q=1"].into_iter()),
            Format::OpenMetrics
        );
        for accept in [
            "*/*",
            "text/plain",
            "text/html,application/xhtml+xml",
            "application/openmetrics-text;version=1.0.0; q=0, text/plain",
            "application/openmetrics-text;Q=0.000",
            "text/plain;x=application/openmetrics-text",
        ] {
            assert_eq!(Format::wanted([accept].into_iter()), Format::Prometheus, "{accept}");
        }
        assert_eq!(Format::wanted([].into_iter()), Format::Prometheus);
    }

    #[test]
    fn the_older_format_names_the_samples() {
        let text = "# HELP a What a is.\n# TYPE a counter\na_total{b=\"c\"} 1\n# HELP d e.\n# TYPE d info\nd_info{v=\"1\"} 1\n\
                    # HELP f_seconds g.\n# TYPE f_seconds histogram\n# UNIT f_seconds seconds\nf_seconds_sum 1.0\n# EOF\n";
        let expected = "# HELP a_total What a is.\n# TYPE a_total counter\na_total{b=\"c\"} 1\n# HELP d_info e.\n# TYPE d_info gauge\n\
                        d_info{v=\"1\"} 1\n# HELP f_seconds g.\n# TYPE f_seconds histogram\nf_seconds_sum 1.0\n";
        assert_eq!(older(text), expected);
    }
}
