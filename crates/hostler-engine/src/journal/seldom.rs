//! A line that is written at most once in a time, however often its reason comes. Knows no clock, and writes nothing itself.

use std::time::Duration;

use tokio::time::Instant;

/// When such a line was written last.
#[derive(Clone, Copy, Debug, Default)]
pub struct SeldomLine(Option<Instant>);

impl SeldomLine {
    /// Whether the line is to be written now: it was not written in this time. If so, it counts as written.
    pub fn is_due(&mut self, pause: Duration, now: Instant) -> bool {
        let is_due = !self.was_written_in(pause, now);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }

    /// Whether it was written in this time before `now`.
    pub fn was_written_in(&self, pause: Duration, now: Instant) -> bool {
        self.0.is_some_and(|last| now.saturating_duration_since(last) < pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(60);

    #[test]
    fn a_line_is_due_once_in_its_pause_also_if_its_reason_comes_all_the_time() {
        let (mut line, start) = (SeldomLine::default(), Instant::now());
        let seconds = (0..=180).map(|second| start + Duration::from_secs(second));
        let written: Vec<_> =
            seconds.filter(|now| line.is_due(PAUSE, *now)).map(|now| (now - start).as_secs()).collect();
        assert_eq!(written, [0, 60, 120, 180]);
    }

    #[test]
    fn to_look_does_not_count_as_a_line() {
        let (mut line, now) = (SeldomLine::default(), Instant::now());
        assert!(!line.was_written_in(PAUSE, now) && !line.was_written_in(PAUSE, now));
        assert!(line.is_due(PAUSE, now) && line.was_written_in(PAUSE, now));
        assert!(!line.was_written_in(PAUSE, now + PAUSE));
    }

    #[test]
    fn a_clock_that_was_read_before_the_last_line_allows_no_further_one() {
        let (mut line, now) = (SeldomLine::default(), Instant::now());
        assert!(line.is_due(PAUSE, now + PAUSE) && !line.is_due(PAUSE, now));
    }
}
