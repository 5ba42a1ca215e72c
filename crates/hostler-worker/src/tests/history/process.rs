//! The processes of a history. They boot, serve, crash, hang and obey signals in virtual time. Knows no rules.

use std::time::Duration;

use tokio::time::Instant;

use super::steps::Code;

/// What a worker task hears of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    Turn,
    Listening,
    Hears,
    Healthy,
    Warmed,
    Diagnosed,
    Orphaned,
    Exited { was_killed: bool },
}

/// A process, and what it will do.
#[derive(Debug)]
pub struct TestProcess {
    /// What it will do, and when.
    pub due: Vec<(Instant, News)>,
    pub listens: bool,
    pub is_hung: bool,
    /// Its app has ended.
    pub is_orphan: bool,
    /// How long its health path and its warm-up paths take.
    pub slowness: Duration,
    /// How long it takes to end when it is told to. `None`: it does not end.
    pub obeys: Option<Duration>,
    /// It is stuck in the kernel.
    pub cannot_be_killed: bool,
    /// It was killed.
    pub is_killed: bool,
}

impl TestProcess {
    /// `is_flaky`: code that works may fail to boot, too.
    pub fn new(code: Code, is_flaky: bool, dice: &mut fastrand::Rng, now: Instant) -> Self {
        let ms = |dice: &mut fastrand::Rng, most: u64| Duration::from_millis(dice.u64(1..most));
        let is_slow = is_flaky && dice.u8(..) < 20;
        let boot = ms(dice, if is_slow { 15_000 } else { 2_000 });
        let code = if is_flaky && dice.u8(..) < 30 { Code::EndsAtStart } else { code };
        let mut process = Self {
            due: vec![],
            listens: false,
            is_hung: false,
            is_orphan: false,
            slowness: ms(dice, 500),
            obeys: (!is_flaky || dice.u8(..) >= 20).then(|| ms(dice, 400)),
            cannot_be_killed: is_flaky && dice.u8(..) < 3,
            is_killed: false,
        };
        if dice.bool() {
            process.will(News::Hears, now + boot / 2);
        }
        let end = News::Exited { was_killed: false };
        match code {
            Code::Works => process.will(News::Listening, now + boot),
            Code::EndsAtStart => process.will(end, now + boot),
            Code::NeverListens => {}
            Code::EndsSoon => {
                process.will(News::Listening, now + boot);
                process.will(end, now + boot + ms(dice, 450));
            }
        }
        process
    }

    pub fn will(&mut self, what: News, at: Instant) {
        self.due.push((at, what));
    }

    /// When it does something next.
    pub fn next(&self) -> Option<Instant> {
        self.due.iter().map(|(at, _)| *at).min()
    }

    /// What it does now.
    pub fn happens(&mut self, now: Instant) -> Option<News> {
        let first = self.next().filter(|at| *at <= now)?;
        let index = self.due.iter().position(|(at, _)| *at == first)?;
        let (_, what) = self.due.remove(index);
        self.listens |= what == News::Listening;
        Some(what)
    }

    /// SIGTERM, or the message `"shutdown"`.
    pub fn told_to_end(&mut self, now: Instant) {
        if let Some(time) = self.obeys.filter(|_| !self.is_hung) {
            self.will(News::Exited { was_killed: false }, now + time);
        }
    }

    /// SIGKILL.
    pub fn killed(&mut self, now: Instant) {
        if !self.cannot_be_killed && !std::mem::replace(&mut self.is_killed, true) {
            self.will(News::Exited { was_killed: true }, now + Duration::from_millis(5));
        }
    }

    /// Its event loop stands still, so it says nothing any more.
    pub fn hangs(&mut self) {
        self.is_hung = true;
        self.due.retain(|(_, what)| matches!(what, News::Exited { was_killed: true } | News::Diagnosed));
    }

    /// Whether it answers a new connection.
    pub fn accepts(&self) -> bool {
        self.listens && !self.is_orphan
    }
}
