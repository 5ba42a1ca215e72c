//! Random lives, checked against the rules that hold at every moment, for any events in any order.

use proptest::prelude::*;

use super::*;

fn event() -> impl Strategy<Value = LifecycleEvent> {
    prop_oneof![
        6 => Just(LifecycleEvent::Turn),
        4 => Just(LifecycleEvent::Listening),
        2 => Just(LifecycleEvent::Healthy),
        2 => Just(LifecycleEvent::Warmed),
        1 => any::<bool>().prop_map(|proven| LifecycleEvent::SpawnFailed { proven }),
        1 => Just(LifecycleEvent::Hears),
        1 => Just(LifecycleEvent::Deaf),
        1 => Just(LifecycleEvent::Orphaned),
        1 => Just(LifecycleEvent::Hung),
        1 => Just(LifecycleEvent::Diagnosed),
        2 => death().prop_map(LifecycleEvent::Exited),
        3 => Just(LifecycleEvent::StepIn),
        2 => Just(LifecycleEvent::StepBack),
        2 => Just(LifecycleEvent::SetAside),
        2 => Just(LifecycleEvent::PutBack),
        1 => Just(LifecycleEvent::StandsStill),
        2 => any::<bool>().prop_map(|ends| LifecycleEvent::Drain { until: ends.then(|| Instant::now() + SECOND) }),
        2 => Just(LifecycleEvent::Undrain),
        1 => Just(LifecycleEvent::Stop),
        1 => Just(LifecycleEvent::Retire),
        1 => Just(LifecycleEvent::Finished),
        1 => Just(LifecycleEvent::Kill),
        6 => Just(LifecycleEvent::Tick),
    ]
}

fn death() -> impl Strategy<Value = DeathReport> {
    let facts = (any::<bool>(), any::<bool>(), any::<bool>(), 0..2_u32);
    facts.prop_map(|(killed, served, proven, owed)| DeathReport {
        killed,
        served,
        proven,
        owed: owed * SECOND,
    })
}

/// What a worker task would hold.
#[derive(Default)]
struct Hands {
    process: bool,
    member: bool,
    turn: bool,
    dismissed: bool,
}

impl Hands {
    fn take(&mut self, event: LifecycleEvent, before: &Lifecycle, life: &Lifecycle, actions: &[Action]) {
        self.dismissed |=
            matches!(event, LifecycleEvent::Stop | LifecycleEvent::Retire | LifecycleEvent::Kill);
        self.turn |= event == LifecycleEvent::Turn && before.state() == LifecycleState::Queued;
        // A worker that cannot be killed is given up in the end.
        if matches!(
            life.state(),
            LifecycleState::Queued | LifecycleState::BackingOff { .. } | LifecycleState::Stopped
        ) {
            self.process = false;
        }
        for action in actions {
            match action {
                Action::Spawn => {
                    assert!(!self.process && !self.dismissed && self.turn, "spawned out of turn");
                    self.process = true;
                }
                Action::Join => {
                    assert!(self.process && !self.member && !self.dismissed, "joins out of turn");
                    self.member = true;
                }
                Action::Leave | Action::Withdraw => {
                    assert!(self.member, "leaves what it has not joined");
                    self.member = false;
                }
                Action::YieldTurn => {
                    assert!(self.turn, "yields a turn that it has not");
                    self.turn = false;
                }
                Action::TakeOver => assert!(self.member && life.role() == PoolRole::Regular),
                Action::Terminate | Action::SayShutdown | Action::Kill(_) | Action::Diagnose => {
                    assert!(!self.member, "members are not signalled");
                }
                Action::AskTurn => assert!(!self.dismissed, "boots again although it was dismissed"),
                Action::CheckHealth | Action::WarmUp => {}
            }
        }
        if life.role() != PoolRole::Spare {
            assert!(
                !matches!(life.state(), LifecycleState::Standby | LifecycleState::SteppingBack),
                "only spares stand by"
            );
        }
        assert_eq!(
            self.member,
            life.state() == LifecycleState::Ready,
            "who is ready, and only who is, is in the pool"
        );
        if !matches!(life.state(), LifecycleState::Booting { .. } | LifecycleState::Warming { .. }) {
            self.turn = false;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_events_gives_a_valid_lifecycle_that_ends(
        events in proptest::collection::vec((event(), 0..4_000_u64), 1..60),
        role in prop_oneof![Just(PoolRole::Regular), Just(PoolRole::Successor), Just(PoolRole::Spare)],
        checks_health in any::<bool>(),
        warms_up in any::<bool>(),
    ) {
        let path = || String::from("/");
        let health = checks_health.then(path);
        let warmup = warms_up.then(path).into_iter().collect();
        let settings = WorkerSettings { health, warmup, ..settings() };
        let mut life = Lifecycle::new(settings.into(), role, fastrand::Rng::with_seed(7));
        let (mut now, mut hands) = (Instant::now(), Hands::default());
        let mut step = |life: Lifecycle, event: LifecycleEvent, now: Instant| {
            // Only a spawned process can fail, listen or end.
            let needs_process = matches!(event, LifecycleEvent::Exited(_) | LifecycleEvent::SpawnFailed { .. } | LifecycleEvent::Listening | LifecycleEvent::Orphaned);
            if needs_process && !hands.process {
                return life;
            }
            let before = life.clone();
            let (life, actions) = life.step(event, now);
            hands.take(event, &before, &life, &actions);
            life
        };
        for (event, milliseconds) in events {
            now += Duration::from_millis(milliseconds);
            life = step(life, event, now);
        }
        life = step(life, LifecycleEvent::Retire, now);
        for _ in 0..9 {
            now = life.deadline().unwrap_or(now).max(now);
            life = step(life, LifecycleEvent::Tick, now);
        }
        prop_assert_eq!(life.state(), LifecycleState::Stopped);
    }
}
