//! Lives of workers, without processes and without a clock.

mod aside;
mod development;
mod held_up;
mod hung;
mod model;
mod spares;
mod succession;

use std::sync::Arc;

use super::*;
use crate::settings::WorkerSettings;

const SECOND: Duration = Duration::from_secs(1);
const SPAWN_FAILED: LifecycleEvent = LifecycleEvent::SpawnFailed { proven: false };

/// One life, its own clock, and the last actions.
struct Life {
    life: Option<Lifecycle>,
    now: Instant,
    todo: Vec<Action>,
}

fn settings() -> WorkerSettings {
    WorkerSettings {
        start_timeout: 30 * SECOND,
        stop_timeout: 10 * SECOND,
        hang_timeout: 60 * SECOND,
        ..WorkerSettings::default()
    }
}

fn spawned(settings: WorkerSettings) -> Life {
    born_as(PoolRole::Regular, settings)
}

fn born_as(role: PoolRole, settings: WorkerSettings) -> Life {
    let life = Lifecycle::new(settings.into(), role, fastrand::Rng::with_seed(7));
    Life { life: Some(life), now: Instant::now(), todo: vec![Action::AskTurn] }
}

fn successor() -> Life {
    born_as(PoolRole::Successor, settings()).on(LifecycleEvent::Turn)
}

fn booting() -> Life {
    spawned(settings()).on(LifecycleEvent::Turn)
}

fn ready() -> Life {
    booting().on(LifecycleEvent::Listening)
}

fn hung() -> Life {
    ready().on(LifecycleEvent::Hung)
}

impl Life {
    fn on(mut self, event: LifecycleEvent) -> Self {
        let (life, todo) = self.life.take().unwrap().step(event, self.now);
        self.life = Some(life);
        self.todo = todo;
        self
    }

    fn after(mut self, time: Duration) -> Self {
        self.now += time;
        self
    }

    /// Goes to the next deadline.
    fn at_deadline(mut self) -> Self {
        self.now = self.now.max(self.life().deadline().expect("a deadline"));
        self.on(LifecycleEvent::Tick)
    }

    /// Dies without having had a request.
    fn dies(self) -> Self {
        self.on(LifecycleEvent::Exited(DeathReport::default()))
    }

    fn dies_over_a_request(self) -> Self {
        self.on(LifecycleEvent::Exited(DeathReport { served: true, ..DeathReport::default() }))
    }

    fn gets_killed(self) -> Self {
        self.on(LifecycleEvent::Exited(DeathReport { killed: true, ..DeathReport::default() }))
    }

    fn life(&self) -> &Lifecycle {
        self.life.as_ref().unwrap()
    }

    fn rest(&self) -> Duration {
        match self.life().state() {
            LifecycleState::BackingOff { until } => until - self.now,
            LifecycleState::Queued => Duration::ZERO,
            state => panic!("not at rest: {state:?}"),
        }
    }

    fn boots_again(self) -> Self {
        let rested = if self.life().state() == LifecycleState::Queued { self } else { self.at_deadline() };
        assert_eq!(rested.todo.last(), Some(&Action::AskTurn));
        rested.on(LifecycleEvent::Turn)
    }

    #[track_caller]
    fn does(self, todo: &[Action]) -> Self {
        assert_eq!(self.todo, todo, "in {:?}", self.life().state());
        self
    }

    #[track_caller]
    fn is(self, state: LifecycleState) -> Self {
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
fn a_worker_waits_for_its_turn_boots_listens_and_joins() {
    let life = spawned(settings()).is(LifecycleState::Queued);
    life.on(LifecycleEvent::Turn)
        .does(&[Action::Spawn])
        .on(LifecycleEvent::Listening)
        .does(&[Action::Join])
        .is(LifecycleState::Ready);
}

#[test]
fn health_comes_before_warm_up_and_warm_up_before_the_pool() {
    let life =
        spawned(WorkerSettings { health: Some("/health".into()), warmup: vec!["/".into()], ..settings() })
            .on(LifecycleEvent::Turn);
    let life = life.on(LifecycleEvent::Listening).does(&[Action::CheckHealth]);
    let life = life.on(LifecycleEvent::Listening).does(&[]);
    let life = life.on(LifecycleEvent::Healthy).does(&[Action::WarmUp]);
    life.on(LifecycleEvent::Warmed).does(&[Action::Join]).is(LifecycleState::Ready);
}

#[test]
fn a_worker_that_is_not_ready_in_time_is_killed_and_replaced() {
    let life = booting().at_deadline().does(&[Action::YieldTurn]);
    let life = life.after(19 * SECOND).on(LifecycleEvent::Tick).does(&[]);
    let life = life.at_deadline().does(&[Action::Kill(KillReason::StartTimeout)]);
    life.gets_killed().does(&[Action::AskTurn]);
}

#[test]
fn a_slow_warm_up_does_not_keep_a_worker_out_of_the_pool() {
    let life = spawned(WorkerSettings { warmup: vec!["/".into()], ..settings() })
        .on(LifecycleEvent::Turn)
        .on(LifecycleEvent::Listening);
    let start = life.now;
    assert_eq!(life.life().warm_by(), Some(start + 30 * SECOND));
    let life = life.at_deadline().does(&[Action::YieldTurn]);
    life.at_deadline().does(&[Action::Join]).is(LifecycleState::Ready).on(LifecycleEvent::Warmed).does(&[]);
}

#[test]
fn after_its_first_crash_a_worker_leaves_the_pool_and_is_replaced_at_once() {
    ready().dies().does(&[Action::Leave, Action::AskTurn]).is(LifecycleState::Queued);
}

#[test]
fn repeated_crashes_before_readiness_lengthen_the_back_off() {
    let mut life = booting();
    for rest in [0, 200, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
        life = life.dies().rests_about(Duration::from_millis(rest)).boots_again();
    }
    assert_eq!(life.life().crashes(), 10);
}

#[test]
fn a_command_that_cannot_be_started_is_a_crash() {
    let life = booting().on(SPAWN_FAILED).does(&[Action::AskTurn]).on(LifecycleEvent::Turn);
    life.on(SPAWN_FAILED).rests_about(Duration::from_millis(200));
}

#[test]
fn a_second_of_service_resets_the_back_off_and_ten_reset_the_crashes() {
    for (served, crashes) in [(SECOND, 6), (10 * SECOND, 1)] {
        let mut life = booting();
        for _ in 0..5 {
            life = life.dies().boots_again();
        }
        let life = life.on(LifecycleEvent::Listening).after(served).dies().rests_about(Duration::ZERO);
        assert_eq!((life.life().crashes(), life.life().failed_boots()), (crashes, 0), "{served:?}");
        life.boots_again().dies().rests_about(Duration::ZERO);
    }
}

#[test]
fn a_worker_that_dies_right_after_readiness_is_in_a_crash_loop_too() {
    let mut life = booting();
    for _ in 0..8 {
        life = life.on(LifecycleEvent::Listening).after(SECOND / 2).dies().boots_again();
    }
    life.on(LifecycleEvent::Listening).dies().rests_about(30 * SECOND);
}

#[test]
fn a_worker_that_requests_crash_is_booted_at_once_every_time() {
    let mut life = booting();
    for _ in 0..100 {
        life = life
            .on(LifecycleEvent::Listening)
            .dies_over_a_request()
            .rests_about(Duration::ZERO)
            .boots_again();
    }
    assert_eq!((life.life().crashes(), life.life().deaths()), (100, 100));
    // A worker that is killed from outside boots at once, and so does one that was ready for a while.
    let life = life.on(LifecycleEvent::Listening).gets_killed().rests_about(Duration::ZERO).boots_again();
    life.on(LifecycleEvent::Listening).after(SECOND).dies().rests_about(Duration::ZERO);
}

#[test]
fn a_hung_worker_is_booted_again_at_once() {
    let mut life = hung();
    for _ in 0..5 {
        life = life.on(LifecycleEvent::Diagnosed).gets_killed().rests_about(Duration::ZERO).boots_again();
        life = life.on(LifecycleEvent::Listening).on(LifecycleEvent::Hung);
    }
}

#[test]
fn failed_boots_of_a_proven_version_wait_at_most_a_second() {
    let known = LifecycleEvent::Exited(DeathReport { proven: true, ..DeathReport::default() });
    let mut life = booting();
    for rest in [0, 200, 500, 1_000, 1_000, 1_000] {
        life = life.on(known).rests_about(Duration::from_millis(rest)).boots_again();
    }
    let life = life.on(LifecycleEvent::SpawnFailed { proven: true }).rests_about(SECOND).boots_again();
    let life = life.gets_killed().rests_about(SECOND).boots_again();
    // The settings have changed, so it is not known whether they work.
    life.dies().rests_about(30 * SECOND);
}

#[test]
fn boots_over_the_cpu_budget_wait_until_the_budget_refills() {
    let death = DeathReport { served: true, owed: 7 * SECOND, ..DeathReport::default() };
    let life = ready().on(LifecycleEvent::Exited(death));
    assert_eq!(life.rest(), 7 * SECOND);
    life.boots_again();
}

#[test]
fn a_stop_sends_shutdown_to_a_worker_that_listens_then_sigterm_at_half_time_then_sigkill() {
    let life = booting().on(LifecycleEvent::Hears).on(LifecycleEvent::Listening);
    let start = life.now;
    let life = life.on(LifecycleEvent::Stop).does(&[Action::Leave, Action::SayShutdown]);
    let life = life.at_deadline().does(&[Action::Terminate]);
    assert_eq!(life.now - start, 5 * SECOND);
    let life = life.at_deadline().does(&[Action::Kill(KillReason::StopTimeout)]);
    assert_eq!(life.now - start, 10 * SECOND);
    life.gets_killed().does(&[]).is(LifecycleState::Stopped);
}

#[test]
fn a_stop_begins_with_sigterm_for_a_worker_that_does_not_listen() {
    let life = ready().on(LifecycleEvent::Stop).does(&[Action::Leave, Action::Terminate]);
    let start = life.now;
    let life =
        life.on(LifecycleEvent::Stop).does(&[]).at_deadline().does(&[Action::Kill(KillReason::StopTimeout)]);
    assert_eq!(life.now - start, 10 * SECOND);
}

#[test]
fn listening_of_an_earlier_process_does_not_count() {
    let life = ready().on(LifecycleEvent::Hears).dies().boots_again().on(LifecycleEvent::Listening);
    life.on(LifecycleEvent::Stop).does(&[Action::Leave, Action::Terminate]);
}

#[test]
fn a_worker_that_stops_in_time_is_not_replaced() {
    ready().on(LifecycleEvent::Stop).dies().does(&[]).is(LifecycleState::Stopped);
    booting().on(LifecycleEvent::Stop).does(&[Action::Terminate]).dies().is(LifecycleState::Stopped);
}

#[test]
fn a_boot_that_takes_long_lets_others_boot_beside_it() {
    let life = booting();
    let start = life.now;
    let life = life.at_deadline().does(&[Action::YieldTurn]);
    assert_eq!(life.now - start, TURN);
    life.on(LifecycleEvent::Listening).does(&[Action::Join]);
}

#[test]
fn new_settings_hold_from_the_next_deadline_on() {
    let mut life = ready();
    life.life.as_mut().unwrap().adopt(Arc::new(WorkerSettings { stop_timeout: SECOND, ..settings() }));
    let start = life.now;
    let life = life.on(LifecycleEvent::Stop).at_deadline().does(&[Action::Kill(KillReason::StopTimeout)]);
    assert_eq!(life.now - start, SECOND);
}

#[test]
fn a_worker_without_a_process_stops_at_once() {
    spawned(settings())
        .on(LifecycleEvent::Stop)
        .does(&[])
        .is(LifecycleState::Stopped)
        .on(LifecycleEvent::Turn)
        .does(&[]);
    booting().dies().boots_again().dies().on(LifecycleEvent::Stop).does(&[]).is(LifecycleState::Stopped);
}

#[test]
fn a_worker_whose_app_is_gone_behind_npm_is_killed_and_replaced_but_not_while_it_stops() {
    ready()
        .on(LifecycleEvent::Orphaned)
        .does(&[Action::Leave, Action::Kill(KillReason::Orphaned)])
        .dies()
        .does(&[Action::AskTurn]);
    ready().on(LifecycleEvent::Stop).on(LifecycleEvent::Orphaned).does(&[]);
}

#[test]
fn a_kill_takes_effect_in_every_state() {
    ready()
        .on(LifecycleEvent::Kill)
        .does(&[Action::Leave, Action::Kill(KillReason::Ordered)])
        .gets_killed()
        .is(LifecycleState::Stopped);
    ready()
        .on(LifecycleEvent::Stop)
        .on(LifecycleEvent::Kill)
        .does(&[Action::Kill(KillReason::Ordered)])
        .gets_killed()
        .is(LifecycleState::Stopped);
    hung()
        .on(LifecycleEvent::Diagnosed)
        .on(LifecycleEvent::Kill)
        .does(&[])
        .gets_killed()
        .is(LifecycleState::Stopped);
    spawned(settings()).on(LifecycleEvent::Kill).does(&[]).is(LifecycleState::Stopped);
}

#[test]
fn a_process_that_cannot_even_be_killed_does_not_hold_up_its_replacement_or_the_stop() {
    hung().on(LifecycleEvent::Diagnosed).at_deadline().does(&[Action::AskTurn]);
    ready().on(LifecycleEvent::Kill).at_deadline().does(&[]).is(LifecycleState::Stopped);
}

#[test]
fn a_late_event_of_an_earlier_state_changes_nothing() {
    ready()
        .on(LifecycleEvent::Listening)
        .does(&[])
        .on(LifecycleEvent::Healthy)
        .does(&[])
        .on(LifecycleEvent::Turn)
        .does(&[])
        .is(LifecycleState::Ready);
    ready().on(LifecycleEvent::Tick).does(&[]).is(LifecycleState::Ready);
    let stopped = ready().on(LifecycleEvent::Stop).dies();
    stopped
        .on(LifecycleEvent::Listening)
        .does(&[])
        .dies()
        .does(&[])
        .on(LifecycleEvent::Kill)
        .does(&[])
        .is(LifecycleState::Stopped);
}
