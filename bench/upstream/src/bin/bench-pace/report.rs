//! The figures of a run, as JSON. Knows records and stalls, not their origin.

use std::time::Duration;

use crate::clock::Stall;
use crate::run::Record;

/// The run is divided into intervals. An interval in which the machine took the core away is counted separately.
const INTERVAL: Duration = Duration::from_millis(100);

pub fn report(records: &[Record], stalls: &[Stall], length: Duration) -> String {
    let marked = marked(stalls, length);
    let calm: Vec<Record> =
        records.iter().filter(|record| !marked[interval(record.meant)]).copied().collect();
    let lost = stalls.iter().map(|stall| stall.length).sum();
    let longest = stalls.iter().map(|stall| stall.length).max().unwrap_or_default();
    let ok = records.iter().filter(|record| record.status == Some(200)).count();
    let refused = records.iter().filter(|record| record.status.is_some_and(|status| status != 200)).count();
    let fields = [
        ("planned", number(records.len())),
        ("ok", number(ok)),
        ("refused", number(refused)),
        ("failed", number(records.len() - ok - refused)),
        ("held", number(records.iter().filter(|record| record.held).count())),
        ("p50_us", took(records, 50.0)),
        ("p99_us", took(records, 99.0)),
        ("longest_us", took(records, 100.0)),
        ("calm_p99_us", took(&calm, 99.0)),
        ("intervals", number(marked.len())),
        ("stalled_intervals", number(marked.iter().filter(|is| **is).count())),
        ("stalls", number(stalls.len())),
        ("stalled_us", number(micros(lost))),
        ("longest_stall_us", number(micros(longest))),
        ("waited_us", waited().map_or_else(|| "null".to_owned(), number)),
        ("lag_p50_us", lag(records, 50.0)),
        ("lag_p99_us", lag(records, 99.0)),
    ];
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!(r#""{name}":{value}"#)).collect();
    format!("{{{}}}", fields.join(","))
}

fn interval(at: Duration) -> usize {
    (at.as_nanos() / INTERVAL.as_nanos()) as usize
}

/// The intervals with a stall, and those after it until the delayed requests are done. At three quarters of a service's
/// capacity, the highest load here, that takes three times as long as the stall.
fn marked(stalls: &[Stall], length: Duration) -> Vec<bool> {
    let mut marked = vec![false; interval(length.saturating_sub(Duration::from_nanos(1))) + 1];
    for Stall { from, length } in stalls {
        let touched = interval(*from)..=interval(*from + 4 * *length);
        for at in touched {
            if let Some(interval) = marked.get_mut(at) {
                *interval = true;
            }
        }
    }
    marked
}

/// A request without a good response counts as infinitely long, which is `null` in JSON.
fn took(records: &[Record], percent: f64) -> String {
    let mut values: Vec<u64> = records
        .iter()
        .map(|record| if record.status == Some(200) { micros(record.took) } else { u64::MAX })
        .collect();
    match percentile(&mut values, percent) {
        u64::MAX => "null".to_owned(),
        value => number(value),
    }
}

/// With more digits, because it should be less than a microsecond.
fn lag(records: &[Record], percent: f64) -> String {
    let mut values: Vec<u64> = records.iter().map(|record| record.lag.as_nanos() as u64).collect();
    format!("{:.1}", percentile(&mut values, percent) as f64 / 1000.0)
}

/// How long this process was ready to run while other processes of this machine had the core. Longer stalls come from the
/// host of a virtual machine.
fn waited() -> Option<u64> {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    let nanos: u64 = schedstat.split(' ').nth(1)?.parse().ok()?;
    Some(nanos / 1000)
}

/// Nearest rank.
fn percentile(values: &mut [u64], percent: f64) -> u64 {
    values.sort_unstable();
    let rank = (percent / 100.0 * values.len() as f64 - 1e-9).ceil().max(1.0) as usize;
    values.get(rank - 1).copied().unwrap_or(u64::MAX)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn number(value: impl ToString) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(took: impl IntoIterator<Item = (u64, u64)>) -> Vec<Record> {
        let record = |(meant, took)| Record {
            meant: Duration::from_millis(meant),
            took: Duration::from_micros(took),
            status: Some(200),
            ..Record::default()
        };
        took.into_iter().map(record).collect()
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut values: Vec<u64> = (1..=100).rev().collect();
        assert_eq!([50.0, 99.0, 100.0].map(|percent| percentile(&mut values, percent)), [50, 99, 100]);
    }

    #[test]
    fn a_stall_marks_its_intervals_and_those_in_which_the_generator_catches_up() {
        let stall =
            |from, length| Stall { from: Duration::from_millis(from), length: Duration::from_millis(length) };
        let length = Duration::from_millis(500);
        assert_eq!(marked(&[], length), [false; 5]);
        assert_eq!(marked(&[stall(110, 5)], length), [false, true, false, false, false]);
        assert_eq!(marked(&[stall(190, 5)], length), [false, true, true, false, false]);
        assert_eq!(
            marked(&[stall(350, 200)], length),
            [false, false, false, true, true],
            "none beyond the end"
        );
    }

    #[test]
    fn requests_during_a_stall_count_in_the_total_and_are_shown_separately() {
        let mut records = records((0..100).map(|i| (i * 2, if i < 50 { 50_000 } else { 40 })));
        records[99].status = Some(503);
        let stall = Stall { from: Duration::from_millis(10), length: Duration::from_millis(20) };
        let text = report(&records, &[stall], Duration::from_millis(200));
        for part in [
            r#""ok":99,"refused":1,"failed":0"#,
            r#""p50_us":50000,"p99_us":50000,"longest_us":null,"calm_p99_us":null"#,
            r#""intervals":2,"stalled_intervals":1,"stalls":1,"stalled_us":20000,"longest_stall_us":20000"#,
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        records[99].status = Some(200);
        let text = report(&records, &[stall], Duration::from_millis(200));
        assert!(text.contains(r#""longest_us":50000,"calm_p99_us":40"#), "{text}");
    }
}
