//! What can happen to a pool in a history, and how a number becomes a history.

use std::time::Duration;

use crate::{BackoffSettings, EjectSettings, LongLived, MemberChoice, Order, Policy, PoolSettings, Priority};

/// The most steps of a history.
const MOST_STEPS: usize = 48;
/// One of so many histories is about fair shares: two keys wait most of the time. It is longer than the others.
const FAIR: u64 = 8;

/// The settings of a pool, and what happens to it.
#[derive(Clone, Debug)]
pub struct History {
    pub seed: u64,
    pub settings: PoolSettings,
    /// The pool knows from the start how long its slots are held.
    pub is_warm: bool,
    /// Members whose event loops are observed may join.
    pub is_observed: bool,
    pub steps: Vec<Step>,
}

/// A number that a step takes modulo the number of things that it may be about.
pub type Pick = usize;

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Arrive(Arrival),
    /// A task is polled, whether it was woken or not.
    Poll(Pick),
    /// All tasks that were woken are polled, the newest first if `true`.
    PollWoken(bool),
    /// A client leaves while its request waits.
    Leave(Pick),
    Unbind(Pick),
    Sent(Pick),
    End(Pick, Ending),
    /// A lease ends, and its request comes back with its ticket.
    Return(Pick, Ending),
    Strike(Pick),
    Reached(Pick),
    Tunnel(Pick),
    EndTunnel(Pick),
    Stream(Pick),
    Join(Joining),
    Part(Pick, Parting),
    Resize(Pick, usize),
    Observe(Pick, usize),
    Health(Pick, bool),
    Hold(Pick),
    EndHold,
    /// An event loop computes from now on, or has used this many microseconds more and waits.
    Loop(Pick, Option<u64>),
    Update(PoolSettings),
    RefuseEarly(Priority, u64),
    Pause,
    Resume,
    Sleep,
    Wake,
    Close,
    /// This many microseconds pass.
    Pass(u64),
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival {
    pub priority: Priority,
    pub key: u64,
    pub kind: u64,
    /// In milliseconds.
    pub expected: Option<u64>,
    pub time_limit: Option<u64>,
    pub long_lived: Option<LongLived>,
    pub wish: Wish,
}

/// The member that a request is for, among those that ever joined.
#[derive(Clone, Copy, Debug, Default)]
pub enum Wish {
    #[default]
    Any,
    Bound(Pick),
    Wanted(Pick),
    Only(Pick),
    Near,
    Tried(Pick),
    Cautious,
    Alone,
    Spread,
    Present,
    Forgiving,
}

#[derive(Clone, Copy, Debug)]
pub enum Ending {
    Finished,
    Dropped,
    /// Its client has left, and its member was told to stop.
    Abandoned,
    Unreachable,
    HungUp,
    /// As hung up, by a member that probably lives.
    Unanswered,
    Unprocessed,
}

#[derive(Clone, Copy, Debug)]
pub enum Joining {
    Plain(usize),
    Near(usize),
    Observed(usize),
}

#[derive(Clone, Copy, Debug)]
pub enum Parting {
    /// It crashes, or its membership ends otherwise.
    Lost,
    /// It drains, and serves its bound requests meanwhile.
    Drains,
    GivenUp,
    KeepsTunnels,
}

impl History {
    /// The history of this number.
    pub fn of_seed(seed: u64) -> Self {
        let mut dice = fastrand::Rng::with_seed(seed);
        let settings = settings(&mut dice);
        let (is_warm, is_observed) = (dice.bool(), dice.u8(..) < 60);
        let is_about_shares = seed % FAIR == FAIR - 1;
        let count = dice.usize(MOST_STEPS / 4..=MOST_STEPS) * if is_about_shares { 2 } else { 1 };
        let first = Step::Join(Joining::Plain(dice.usize(1..3)));
        let steps = (1..count).map(|_| step(&mut dice, is_observed));
        let steps = [first].into_iter().chain(steps).collect();
        let history = Self { seed, settings, is_warm, is_observed, steps };
        if is_about_shares { history.about_shares() } else { history }
    }

    /// The same in a fair pool, with requests of one class that wait for any member and have no time limit.
    fn about_shares(mut self) -> Self {
        self.settings = fair(self.settings);
        for step in &mut self.steps {
            match step {
                Step::Arrive(arrival) => {
                    // Two keys: one that always waits, and one that sometimes has no request.
                    let (key, kind) = (arrival.key / 2, arrival.kind);
                    *arrival = Arrival { key, kind, ..Arrival::default() };
                }
                Step::Update(settings) => *settings = fair(*settings),
                Step::Close | Step::Unbind(_) => *step = Step::PollWoken(false),
                _ => {}
            }
        }
        self
    }
}

fn fair(settings: PoolSettings) -> PoolSettings {
    PoolSettings { fair: true, policy: Policy::Fifo, queue_limit: 32, ..settings }
}

fn settings(dice: &mut fastrand::Rng) -> PoolSettings {
    let ms = Duration::from_millis;
    let choices = [MemberChoice::Warm, MemberChoice::RoundRobin, MemberChoice::LeastBusy];
    let delay = ms(dice.u64(1..200));
    PoolSettings {
        choice: choices[dice.usize(..3)],
        queue_limit: if dice.u8(..) < 30 { dice.usize(0..4) } else { dice.usize(4..16) },
        policy: if dice.bool() { Policy::Fifo } else { Policy::Adaptive },
        order: if dice.u8(..) < 90 { Order::ShortFirst { delay } } else { Order::Arrival },
        fair: dice.u8(..) < 70,
        backoff: BackoffSettings { min: ms(5), max: ms(100) },
        eject: EjectSettings { failures: dice.u32(0..3), min: ms(20), max: ms(200), share: 100 },
        max_tunnels: dice.usize(0..3),
        max_streams: dice.usize(0..3),
        bound_drain: ms(dice.u64(0..100)),
        burst: Duration::ZERO,
    }
}

fn arrival(dice: &mut fastrand::Rng) -> Arrival {
    let pick = dice.usize(..8);
    let wishes = [
        Wish::Bound(pick),
        Wish::Bound(pick),
        Wish::Wanted(pick),
        Wish::Only(pick),
        Wish::Near,
        Wish::Tried(pick),
        Wish::Cautious,
        Wish::Alone,
        Wish::Spread,
        Wish::Present,
        Wish::Forgiving,
    ];
    let long_lived = [LongLived::Tunnel, LongLived::Stream][dice.usize(..2)];
    Arrival {
        priority: [Priority::High, Priority::Normal, Priority::Normal, Priority::Low][dice.usize(..4)],
        key: dice.u64(..3),
        kind: dice.u64(..3),
        expected: (dice.u8(..) < 200).then(|| [1, 3, 10, 29][dice.usize(..4)]),
        time_limit: (dice.u8(..) < 160).then(|| dice.u64(1..400)),
        long_lived: Some(long_lived).filter(|_| dice.u8(..) < 25),
        wish: if dice.u8(..) < 90 { wishes[dice.usize(..wishes.len())] } else { Wish::Any },
    }
}

fn ending(dice: &mut fastrand::Rng) -> Ending {
    match dice.u8(..16) {
        0 => Ending::Unreachable,
        1 => Ending::HungUp,
        2 => Ending::Unprocessed,
        3..5 => Ending::Abandoned,
        5..7 => Ending::Dropped,
        7 => Ending::Unanswered,
        _ => Ending::Finished,
    }
}

fn step(dice: &mut fastrand::Rng, is_observed: bool) -> Step {
    let pick = dice.usize(..64);
    match dice.u8(..100) {
        0..32 => Step::Arrive(arrival(dice)),
        32..38 => Step::Poll(pick),
        38..46 => Step::PollWoken(dice.bool()),
        46..49 => Step::Leave(pick),
        49..50 => Step::Unbind(pick),
        50..68 => Step::End(pick, ending(dice)),
        68..71 => Step::Return(pick, ending(dice)),
        71..73 => Step::Strike(pick),
        73 => Step::Reached(pick),
        74..76 => long_lived_step(dice, pick),
        76..79 => Step::Join(joining(dice, is_observed)),
        79..81 => Step::Part(
            pick,
            [Parting::Lost, Parting::Drains, Parting::GivenUp, Parting::KeepsTunnels][dice.usize(..4)],
        ),
        81..87 => rare_step(dice, pick, is_observed),
        _ => Step::Pass(if dice.bool() { dice.u64(1..200_000) } else { 1000 * dice.u64(1..20) }),
    }
}

fn long_lived_step(dice: &mut fastrand::Rng, pick: Pick) -> Step {
    [Step::Tunnel(pick), Step::EndTunnel(pick), Step::Stream(pick)][dice.usize(..3)]
}

fn joining(dice: &mut fastrand::Rng, is_observed: bool) -> Joining {
    match dice.u8(..4) {
        0 => Joining::Near(dice.usize(1..3)),
        1 | 2 if is_observed => Joining::Observed(dice.usize(1..5)),
        _ => Joining::Plain(dice.usize(0..3)),
    }
}

fn rare_step(dice: &mut fastrand::Rng, pick: Pick, is_observed: bool) -> Step {
    match dice.u8(..32) {
        0..4 => Step::Resize(pick, dice.usize(0..4)),
        4..7 => Step::Health(pick, dice.bool()),
        7..9 => Step::Hold(pick),
        9..11 => Step::EndHold,
        11..14 if is_observed => Step::Loop(pick, dice.bool().then(|| dice.u64(1..3000))),
        14..16 if is_observed => Step::Sent(pick),
        16 if is_observed => Step::Observe(pick, dice.usize(1..5)),
        17..20 => Step::Update(settings(dice)),
        20 => Step::RefuseEarly(Priority::ALL[dice.usize(..Priority::COUNT)], dice.u64(..3)),
        21..23 => Step::Pause,
        23..27 => Step::Resume,
        27..29 => Step::Sleep,
        29 => Step::Wake,
        30 if dice.u8(..) < 40 => Step::Close,
        _ => Step::PollWoken(false),
    }
}
