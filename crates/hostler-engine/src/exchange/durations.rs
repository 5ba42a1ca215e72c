//! How long the requests of a route took, counted by scheme, method and status. Reads no clock.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Scheme;

/// The upper bounds of the buckets in microseconds. They are those of OpenTelemetry's conventions for `http.server.request.duration`.
const BOUNDS: [u64; 14] = [
    5_000, 10_000, 25_000, 50_000, 75_000, 100_000, 250_000, 500_000, 750_000, 1_000_000, 2_500_000,
    5_000_000, 7_500_000, 10_000_000,
];
/// A route counts at most so many combinations apart. A client can choose the method, and an app the status.
const MOST_KINDS: usize = 64;
/// The methods of RFC 9110 and RFC 5789. Any other method counts as [`OTHER_METHOD`].
const METHODS: [&str; 9] = ["GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"];
/// The name of all other methods in OpenTelemetry's conventions.
pub const OTHER_METHOD: &str = "_OTHER";

/// The kind of a request, as far as it is counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestKind {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// A method of RFC 9110 or PATCH, or else `_OTHER`.
    pub method: &'static str,
    /// The status that was sent. 0: none. A single digit: one that begins with this digit.
    pub status: u16,
}

/// The durations of one kind of request at one moment.
#[derive(Debug, Clone)]
pub struct DurationsView {
    /// What the requests have in common.
    pub kind: RequestKind,
    /// Each upper bound in seconds, and how many requests are above the bound before and not above this one. The last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
    /// The sum of all durations in seconds.
    pub sum: f64,
}

/// The durations of a route's requests. The figures only grow.
#[derive(Debug, Default)]
pub struct Durations {
    first: Next,
    /// The requests of further kinds when there are too many, by the first digit of their status: errors must not be hidden among the others.
    rest: [Next; 6],
}

/// A list that only grows, so it needs no lock.
type Next = OnceLock<Box<Series>>;

#[derive(Debug)]
struct Series {
    kind: RequestKind,
    buckets: [AtomicU64; BOUNDS.len() + 1],
    /// In microseconds.
    sum: AtomicU64,
    next: Next,
}

/// The name of a method that is counted apart. A client could invent others without end.
pub fn known_method(method: &[u8]) -> Option<&'static str> {
    METHODS.into_iter().find(|known| known.as_bytes() == method)
}

impl RequestKind {
    /// The kind of a request with this method.
    pub fn new(scheme: Scheme, method: &[u8], status: u16) -> Self {
        Self { scheme, method: known_method(method).unwrap_or(OTHER_METHOD), status }
    }

    /// Its status as text: empty without one, and `5xx` if only the first digit is known.
    pub fn status_text(self) -> Cow<'static, str> {
        match self.status {
            0 => Cow::Borrowed(""),
            digit @ 1..=5 => format!("{digit}xx").into(),
            status => status.to_string().into(),
        }
    }

    /// The first digit of the status. 0: without a status. Statuses above 599 count as 5.
    fn class(self) -> u16 {
        match self.status {
            digit @ 0..=5 => digit,
            status => (status / 100).min(5),
        }
    }

    /// The kind that counts it if there are too many.
    fn of_rest(self) -> Self {
        Self { scheme: Scheme::Http, method: OTHER_METHOD, status: self.class() }
    }
}

impl Durations {
    /// A request has ended after this time.
    pub fn record(&self, kind: RequestKind, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let series = self.series(kind);
        series.buckets[BOUNDS.partition_point(|bound| *bound < time)].fetch_add(1, Ordering::Relaxed);
        series.sum.fetch_add(time, Ordering::Relaxed);
    }

    /// The series that counts this kind.
    fn series(&self, kind: RequestKind) -> &Series {
        let mut next = &self.first;
        for _ in 0..MOST_KINDS {
            let series = next.get_or_init(|| Box::new(Series::new(kind)));
            if series.kind == kind {
                return series;
            }
            next = &series.next;
        }
        let rest = kind.of_rest();
        // A series of this kind may exist from requests before. A second one would be the same metric twice.
        let known = self.apart().find(|series| series.kind == rest);
        known.unwrap_or_else(|| {
            self.rest[usize::from(rest.status)].get_or_init(|| Box::new(Series::new(rest)))
        })
    }

    /// How many requests have ended, by the first digit of the status. 0: without a status. Statuses above 599 count as 5.
    pub fn classes(&self) -> [u64; 6] {
        let mut classes = [0; 6];
        for series in self.all() {
            classes[usize::from(series.kind.class())] += series.count();
        }
        classes
    }

    /// The figures of each kind, in the order in which they first came. Those of the rest are the last ones.
    pub fn view(&self) -> Vec<DurationsView> {
        self.all().map(Series::view).collect()
    }

    /// The kinds that are counted apart.
    fn apart(&self) -> impl Iterator<Item = &Series> {
        std::iter::successors(self.first.get(), |series| series.next.get()).map(Box::as_ref)
    }

    fn all(&self) -> impl Iterator<Item = &Series> {
        self.apart().chain(self.rest.iter().filter_map(OnceLock::get).map(Box::as_ref))
    }
}

impl Series {
    fn new(kind: RequestKind) -> Self {
        Self { kind, buckets: Default::default(), sum: AtomicU64::new(0), next: OnceLock::new() }
    }

    fn count(&self) -> u64 {
        self.buckets.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn view(&self) -> DurationsView {
        let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e6).chain([f64::INFINITY]);
        let counts = self.buckets.iter().map(|count| count.load(Ordering::Relaxed));
        DurationsView {
            kind: self.kind,
            buckets: bounds.zip(counts).collect(),
            sum: self.sum.load(Ordering::Relaxed) as f64 / 1e6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: RequestKind = RequestKind { scheme: Scheme::Http, method: "GET", status: 200 };

    #[test]
    fn a_time_falls_into_the_first_bucket_whose_bound_is_not_below_it() {
        let durations = Durations::default();
        for micros in [0, 5_000, 5_001, 10_000_000, 10_000_001] {
            durations.record(GET, Duration::from_micros(micros));
        }
        let [view] = &durations.view()[..] else { panic!("one kind") };
        let filled: Vec<_> = view.buckets.iter().copied().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(0.005, 2), (0.01, 1), (10.0, 1), (f64::INFINITY, 1)]);
        assert!((view.sum - 20.010_002).abs() < 1e-9, "{}", view.sum);
    }

    #[test]
    fn scheme_method_and_status_are_counted_apart() {
        let durations = Durations::default();
        let kinds = [
            (Scheme::Http, "GET", 200),
            (Scheme::Https, "GET", 200),
            (Scheme::Http, "BREW", 200),
            (Scheme::Http, "GET", 0),
            (Scheme::Http, "GET", 999),
        ];
        for (scheme, method, status) in kinds {
            durations.record(RequestKind::new(scheme, method.as_bytes(), status), Duration::ZERO);
        }
        let methods: Vec<_> = durations.view().iter().map(|view| view.kind.method).collect();
        assert_eq!(methods, ["GET", "GET", "_OTHER", "GET", "GET"]);
        assert_eq!(durations.classes(), [1, 0, 3, 0, 0, 1]);
    }

    #[test]
    fn kinds_beyond_the_limit_are_counted_by_the_first_digit_of_their_status() {
        let durations = Durations::default();
        for status in (100..300).chain([503, 999, 0]) {
            durations.record(RequestKind { status, ..GET }, Duration::ZERO);
        }
        let most = MOST_KINDS as u64;
        let views = durations.view();
        let rest = views[MOST_KINDS..].iter();
        let rest: Vec<_> =
            rest.map(|view| (view.kind.method, view.kind.status_text(), view.buckets[0].1)).collect();
        let expected = [("", 1), ("1xx", 100 - most), ("2xx", 100), ("5xx", 2)];
        assert_eq!(rest, expected.map(|(status, count)| (OTHER_METHOD, Cow::Borrowed(status), count)));
        assert_eq!(durations.classes(), [1, 100, 100, 0, 0, 2]);
    }

    #[test]
    fn no_kind_is_there_twice_when_there_are_too_many() {
        let durations = Durations::default();
        let others = RequestKind::new(Scheme::Http, b"PROPFIND", 0);
        let many = (400..500).map(|status| RequestKind { status, ..GET });
        for kind in [others].into_iter().chain(many).chain([RequestKind { status: 0, ..GET }]) {
            durations.record(kind, Duration::ZERO);
        }
        let views = durations.view();
        assert_eq!(views.len(), MOST_KINDS + 1);
        let counted = views.iter().filter(|view| view.kind == others).map(|view| view.buckets[0].1);
        assert_eq!(counted.collect::<Vec<_>>(), [2]);
        assert_eq!(durations.classes(), [2, 0, 0, 0, 100, 0]);
    }
}
