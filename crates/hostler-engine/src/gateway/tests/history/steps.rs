//! What can happen to a gateway and its members in a history, and how a number becomes a history.

use super::script::Script;

/// The most steps of a history.
const MOST_STEPS: usize = 36;
/// In one of so many histories members are told to stop.
const HANGS_UP: u64 = 4;

/// The settings of the pool and its members, and what happens to them.
#[derive(Clone, Debug)]
pub struct History {
    pub seed: u64,
    pub settings: Settings,
    pub steps: Vec<Step>,
}

/// All times are in milliseconds.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Members do nothing wrong, and no client leaves: each request must be answered.
    pub is_tame: bool,
    /// How many slots each member has.
    pub slots: Vec<usize>,
    pub queue_limit: usize,
    pub queue_timeout: u64,
    pub request_timeout: u64,
    pub connect_timeout: u64,
    /// How many timeouts in a row eject a member.
    pub failures: u32,
    /// After this long a second member is asked. None: never.
    pub hedge: Option<u64>,
    /// Bodies of requests go to the member as they come.
    pub streams_body: bool,
    /// How many bytes each direction of a connection holds.
    pub capacity: usize,
    /// A member without a response is told to stop when its client has left or the time is over, as in a pool with learned concurrency. The
    /// pool is fair, too.
    pub hangs_up: bool,
}

#[derive(Clone, Debug)]
pub enum Step {
    Ask(Ask),
    /// No connection to this member can be made for so long: it refuses, or nothing answers.
    Outage {
        member: usize,
        long: u64,
        is_silent: bool,
    },
    /// The member closes its idle connections. The proxy learns of it after so long.
    CloseIdle {
        member: usize,
        after: u64,
    },
    /// The member sends an answer without a request over each idle connection.
    Unasked {
        member: usize,
    },
    Pass(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }

    pub fn is_idempotent(self) -> bool {
        self != Self::Post
    }
}

/// One request.
#[derive(Clone, Debug)]
pub struct Ask {
    pub id: u64,
    pub method: Method,
    /// The length of its body.
    pub body: usize,
    pub is_chunked: bool,
    /// The body comes in pieces, with this long between them.
    pub pause: u64,
    /// When its client leaves.
    pub leaves: Option<u64>,
    /// What the members do when they get it for the first time, the second time and so on. Later: the last one.
    pub scripts: Vec<Script>,
}

impl History {
    /// The history of this number.
    pub fn of_seed(seed: u64) -> Self {
        let mut dice = fastrand::Rng::with_seed(seed);
        let hangs_up = seed % HANGS_UP == HANGS_UP - 1;
        let settings = Settings { hangs_up, ..settings(&mut dice) };
        let count = dice.usize(4..=MOST_STEPS);
        let steps = (0..count as u64).map(|id| step(&mut dice, &settings, id)).collect();
        Self { seed, settings, steps }
    }
}

fn settings(dice: &mut fastrand::Rng) -> Settings {
    let is_tame = dice.u8(..) < 64;
    let members = dice.usize(1..=3);
    Settings {
        is_tame,
        slots: (0..members).map(|_| dice.usize(1..=3)).collect(),
        queue_limit: if is_tame || dice.bool() { 100 } else { dice.usize(1..6) },
        queue_timeout: if is_tame { 60_000 } else { dice.u64(50..800) },
        request_timeout: if is_tame { 60_000 } else { dice.u64(200..1_200) },
        connect_timeout: dice.u64(20..150),
        failures: dice.u32(0..4),
        hedge: (dice.u8(..) < 72).then(|| dice.u64(20..120)),
        streams_body: dice.u8(..) < 90,
        capacity: [200, 2_000, 20_000, 200_000][dice.usize(..4)],
        hangs_up: false,
    }
}

fn step(dice: &mut fastrand::Rng, settings: &Settings, id: u64) -> Step {
    let (member, is_tame) = (dice.usize(..settings.slots.len()), settings.is_tame);
    match dice.u8(..100) {
        0..62 => Step::Ask(ask(dice, settings, id)),
        62..66 => Step::CloseIdle { member, after: if is_tame { 0 } else { dice.u64(..4) } },
        66..70 if !is_tame => Step::Unasked { member },
        70..76 if !is_tame => Step::Outage { member, long: dice.u64(5..600), is_silent: dice.u8(..) < 100 },
        _ => Step::Pass(if dice.u8(..) < 200 { dice.u64(..40) } else { dice.u64(..1_500) }),
    }
}

fn ask(dice: &mut fastrand::Rng, settings: &Settings, id: u64) -> Ask {
    let method = [Method::Get, Method::Get, Method::Head, Method::Post, Method::Post, Method::Put];
    let method = method[dice.usize(..method.len())];
    let sizes = [0, 1, 20, 300, 3_000, 20_000];
    let body = if matches!(method, Method::Get | Method::Head) { 0 } else { sizes[dice.usize(..6)] };
    let is_slow = dice.u8(..) < 60;
    let leaves = !settings.is_tame && dice.u8(..) < 70;
    Ask {
        id,
        method,
        body,
        is_chunked: body > 0 && dice.u8(..) < 80,
        pause: if is_slow { dice.u64(1..30) } else { 0 },
        leaves: leaves.then(|| if dice.bool() { dice.u64(..40) } else { dice.u64(..300) }),
        scripts: (0..dice.usize(1..4)).map(|_| Script::random(dice, settings.is_tame)).collect(),
    }
}

/// The request that each member answers at the end of a history.
pub fn plain(id: u64) -> Ask {
    let (method, leaves, scripts) = (Method::Get, None, vec![Script::plain()]);
    Ask { id, method, body: 0, is_chunked: false, pause: 0, leaves, scripts }
}
