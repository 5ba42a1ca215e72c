//! Lives of workers, with no process and no clock.

mod hung;
mod model;
mod spares;
mod succession;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const SPAWN_FAILED: Event = Event::SpawnFailed { proven: false };

/// A life, its own clock, and what was to be done last.
struct Life {
    life: Option<Lifecycle>,
    now: Instant,
    todo: Vec<Action>,
}

fn rules() -> Rules {
    Rules {
        start_timeout: 30 * SECOND,
        stop_timeout: 10 * SECOND,
        hang_timeout: 60 * SECOND,
        checks_health: false,
        warms_up: false,
    }
}

fn born(rules: Rules) -> Life {
    born_as(Standing::Regular, rules)
}

fn born_as(standing: Standing, rules: Rules) -> Life {
    let life = Lifecycle::new(rules, standing, fastrand::Rng::with_seed(7));
    Life { life: Some(life), now: Instant::now(), todo: vec![Action::AskTurn] }
}

fn successor() -> Life {
    born_as(Standing::Successor, rules()).on(Event::Turn)
}

fn booting() -> Life {
    born(rules()).on(Event::Turn)
}

fn ready() -> Life {
    booting().on(Event::Listening)
}

fn hung() -> Life {
    ready().on(Event::Hung)
}

impl Life {
    fn on(mut self, event: Event) -> Self {
        let (life, todo) = self.life.take().unwrap().step(event, self.now);
        self.life = Some(life);
        self.todo = todo;
        self
    }

    fn after(mut self, time: Duration) -> Self {
        self.now += time;
        self
    }

    /// As if it had waited for the next deadline.
    fn at_deadline(mut self) -> Self {
        self.now = self.now.max(self.life().deadline().expect("a deadline"));
        self.on(Event::Tick)
    }

    /// Without ever having had a request.
    fn dies(self) -> Self {
        self.on(Event::Exited(Death::default()))
    }

    fn dies_over_a_request(self) -> Self {
        self.on(Event::Exited(Death { served: true, ..Death::default() }))
    }

    fn gets_killed(self) -> Self {
        self.on(Event::Exited(Death { killed: true, ..Death::default() }))
    }

    fn life(&self) -> &Lifecycle {
        self.life.as_ref().unwrap()
    }

    fn rest(&self) -> Duration {
        match self.life().state() {
            State::BackingOff { until } => until - self.now,
            State::Queued => Duration::ZERO,
            state => panic!("not at rest: {state:?}"),
        }
    }

    fn boots_again(self) -> Self {
        let rested = if self.life().state() == State::Queued { self } else { self.at_deadline() };
        assert_eq!(rested.todo.last(), Some(&Action::AskTurn));
        rested.on(Event::Turn)
    }

    #[track_caller]
    fn does(self, todo: &[Action]) -> Self {
        assert_eq!(self.todo, todo, "in {:?}", self.life().state());
        self
    }

    #[track_caller]
    fn is(self, state: State) -> Self {
        assert_eq!(self.life().state(), state);
        self
    }

    #[track_caller]
    fn rests_about(self, full: Duration) -> Self {
        let rest = self.rest();
        assert!(rest <= full && rest >= full.mul_f64(0.8), "rests {rest:?}, not about {full:?}");
        self
    }
}

#[test]
fn it_waits_for_its_turn_boots_listens_and_joins() {
    let life = born(rules()).is(State::Queued);
    life.on(Event::Turn).does(&[Action::Spawn]).on(Event::Listening).does(&[Action::Join]).is(State::Ready);
}

#[test]
fn health_comes_before_warm_up_and_warm_up_before_the_pool() {
    let life = born(Rules { checks_health: true, warms_up: true, ..rules() }).on(Event::Turn);
    let life = life.on(Event::Listening).does(&[Action::CheckHealth]);
    let life = life.on(Event::Listening).does(&[]);
    let life = life.on(Event::Healthy).does(&[Action::WarmUp]);
    life.on(Event::Warmed).does(&[Action::Join]).is(State::Ready);
}

#[test]
fn one_that_is_not_ready_in_time_is_killed_and_comes_back() {
    let life = booting().at_deadline().does(&[Action::YieldTurn]);
    let life = life.after(19 * SECOND).on(Event::Tick).does(&[]);
    let life = life.at_deadline().does(&[Action::Kill(Why::StartTimeout)]);
    life.gets_killed().does(&[Action::AskTurn]);
}

#[test]
fn a_warm_up_that_takes_too_long_does_not_keep_it_out() {
    let life = born(Rules { warms_up: true, ..rules() }).on(Event::Turn).on(Event::Listening);
    let start = life.now;
    assert_eq!(life.life().warm_by(), Some(start + 30 * SECOND));
    let life = life.at_deadline().does(&[Action::YieldTurn]);
    life.at_deadline().does(&[Action::Join]).is(State::Ready).on(Event::Warmed).does(&[]);
}

#[test]
fn the_first_crash_is_replaced_at_once_and_it_leaves_the_pool_first() {
    ready().dies().does(&[Action::Leave, Action::AskTurn]).is(State::Queued);
}

#[test]
fn crashes_in_a_row_before_it_is_ready_rest_longer_and_longer() {
    let mut life = booting();
    for rest in [0, 200, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
        life = life.dies().rests_about(Duration::from_millis(rest)).boots_again();
    }
    assert_eq!(life.life().crashes(), 10);
}

#[test]
fn a_command_that_cannot_be_started_is_a_crash() {
    let life = booting().on(SPAWN_FAILED).does(&[Action::AskTurn]).on(Event::Turn);
    life.on(SPAWN_FAILED).rests_about(Duration::from_millis(200));
}

#[test]
fn after_ten_good_seconds_all_is_forgotten() {
    let mut life = booting();
    for _ in 0..5 {
        life = life.dies().boots_again();
    }
    let life = life.on(Event::Listening).after(10 * SECOND).dies().rests_about(Duration::ZERO);
    assert_eq!((life.life().crashes(), life.life().failed_boots()), (1, 0));
    life.boots_again().dies().rests_about(Duration::ZERO);
}

#[test]
fn one_that_dies_right_after_it_was_ready_is_in_a_crash_loop_too() {
    let mut life = booting();
    for _ in 0..8 {
        life = life.on(Event::Listening).after(SECOND / 2).dies().boots_again();
    }
    life.on(Event::Listening).dies().rests_about(30 * SECOND);
}

#[test]
fn one_that_dies_over_requests_is_booted_again_at_once_however_often() {
    let mut life = booting();
    for _ in 0..100 {
        life = life.on(Event::Listening).dies_over_a_request().rests_about(Duration::ZERO).boots_again();
    }
    assert_eq!((life.life().crashes(), life.life().deaths()), (100, 100));
    // So is one that is killed from outside, and one that was ready for a while.
    let life = life.on(Event::Listening).gets_killed().rests_about(Duration::ZERO).boots_again();
    life.on(Event::Listening).after(SECOND).dies().rests_about(Duration::ZERO);
}

#[test]
fn one_that_hung_is_booted_again_at_once() {
    let mut life = hung();
    for _ in 0..5 {
        life = life.on(Event::Diagnosed).gets_killed().rests_about(Duration::ZERO).boots_again();
        life = life.on(Event::Listening).on(Event::Hung);
    }
}

#[test]
fn boots_that_fail_of_what_is_known_to_work_rest_for_a_second_at_most() {
    let known = Event::Exited(Death { proven: true, ..Death::default() });
    let mut life = booting();
    for rest in [0, 200, 500, 1_000, 1_000, 1_000] {
        life = life.on(known).rests_about(Duration::from_millis(rest)).boots_again();
    }
    let life = life.on(Event::SpawnFailed { proven: true }).rests_about(SECOND).boots_again();
    let life = life.gets_killed().rests_about(SECOND).boots_again();
    // What was changed meanwhile is not known to work any more.
    life.dies().rests_about(30 * SECOND);
}

#[test]
fn where_boots_have_taken_too_much_cpu_it_rests_for_as_long_as_they_owe() {
    let death = Death { served: true, owed: 7 * SECOND, ..Death::default() };
    let life = ready().on(Event::Exited(death));
    assert_eq!(life.rest(), 7 * SECOND);
    life.boots_again();
}

#[test]
fn a_stop_begins_with_shutdown_for_one_that_hears_then_sigterm_at_half_time_then_sigkill() {
    let life = booting().on(Event::Hears).on(Event::Listening);
    let start = life.now;
    let life = life.on(Event::Stop).does(&[Action::Leave, Action::SayShutdown]);
    let life = life.at_deadline().does(&[Action::Terminate]);
    assert_eq!(life.now - start, 5 * SECOND);
    let life = life.at_deadline().does(&[Action::Kill(Why::StopTimeout)]);
    assert_eq!(life.now - start, 10 * SECOND);
    life.gets_killed().does(&[]).is(State::Stopped);
}

#[test]
fn a_stop_begins_with_sigterm_for_one_that_does_not_hear() {
    let life = ready().on(Event::Stop).does(&[Action::Leave, Action::Terminate]);
    let start = life.now;
    let life = life.on(Event::Stop).does(&[]).at_deadline().does(&[Action::Kill(Why::StopTimeout)]);
    assert_eq!(life.now - start, 10 * SECOND);
}

#[test]
fn what_it_heard_in_an_earlier_life_does_not_count() {
    let life = ready().on(Event::Hears).dies().boots_again().on(Event::Listening);
    life.on(Event::Stop).does(&[Action::Leave, Action::Terminate]);
}

#[test]
fn one_that_stops_in_time_is_not_replaced() {
    ready().on(Event::Stop).dies().does(&[]).is(State::Stopped);
    booting().on(Event::Stop).does(&[Action::Terminate]).dies().is(State::Stopped);
}

#[test]
fn a_boot_that_takes_long_lets_others_boot_beside_it() {
    let life = booting();
    let start = life.now;
    let life = life.at_deadline().does(&[Action::YieldTurn]);
    assert_eq!(life.now - start, TURN);
    life.on(Event::Listening).does(&[Action::Join]);
}

#[test]
fn other_rules_hold_from_the_next_deadline_on() {
    let mut life = ready();
    life.life.as_mut().unwrap().adopt(Rules { stop_timeout: SECOND, ..rules() });
    let start = life.now;
    let life = life.on(Event::Stop).at_deadline().does(&[Action::Kill(Why::StopTimeout)]);
    assert_eq!(life.now - start, SECOND);
}

#[test]
fn one_without_a_process_stops_at_once() {
    born(rules()).on(Event::Stop).does(&[]).is(State::Stopped).on(Event::Turn).does(&[]);
    booting().dies().boots_again().dies().on(Event::Stop).does(&[]).is(State::Stopped);
}

#[test]
fn one_whose_app_is_gone_behind_npm_is_killed_and_replaced_but_not_while_it_stops() {
    ready()
        .on(Event::Orphaned)
        .does(&[Action::Leave, Action::Kill(Why::Orphaned)])
        .dies()
        .does(&[Action::AskTurn]);
    ready().on(Event::Stop).on(Event::Orphaned).does(&[]);
}

#[test]
fn a_kill_takes_effect_in_every_state() {
    ready()
        .on(Event::Kill)
        .does(&[Action::Leave, Action::Kill(Why::Ordered)])
        .gets_killed()
        .is(State::Stopped);
    ready()
        .on(Event::Stop)
        .on(Event::Kill)
        .does(&[Action::Kill(Why::Ordered)])
        .gets_killed()
        .is(State::Stopped);
    hung().on(Event::Diagnosed).on(Event::Kill).does(&[]).gets_killed().is(State::Stopped);
    born(rules()).on(Event::Kill).does(&[]).is(State::Stopped);
}

#[test]
fn a_process_that_cannot_even_be_killed_does_not_hold_up_its_replacement_or_the_stop() {
    hung().on(Event::Diagnosed).at_deadline().does(&[Action::AskTurn]);
    ready().on(Event::Kill).at_deadline().does(&[]).is(State::Stopped);
}

#[test]
fn a_late_word_of_an_earlier_state_changes_nothing() {
    ready()
        .on(Event::Listening)
        .does(&[])
        .on(Event::Healthy)
        .does(&[])
        .on(Event::Turn)
        .does(&[])
        .is(State::Ready);
    ready().on(Event::Tick).does(&[]).is(State::Ready);
    let stopped = ready().on(Event::Stop).dies();
    stopped.on(Event::Listening).does(&[]).dies().does(&[]).on(Event::Kill).does(&[]).is(State::Stopped);
}
