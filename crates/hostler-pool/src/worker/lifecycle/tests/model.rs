//! Random lives against what must hold at every moment, whatever a keeper hears and in whichever order.

use proptest::prelude::*;

use super::*;

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => Just(Event::Turn),
        4 => Just(Event::Listening),
        2 => Just(Event::Healthy),
        2 => Just(Event::Warmed),
        1 => any::<bool>().prop_map(|proven| Event::SpawnFailed { proven }),
        1 => Just(Event::Hears),
        1 => Just(Event::Orphaned),
        1 => Just(Event::Hung),
        1 => Just(Event::Diagnosed),
        2 => death().prop_map(Event::Exited),
        3 => Just(Event::StepIn),
        2 => Just(Event::StepBack),
        1 => Just(Event::Stop),
        1 => Just(Event::Retire),
        1 => Just(Event::Finished),
        1 => Just(Event::Kill),
        6 => Just(Event::Tick),
    ]
}

fn death() -> impl Strategy<Value = Death> {
    let facts = (any::<bool>(), any::<bool>(), any::<bool>(), 0..2_u32);
    facts.prop_map(|(killed, served, proven, owed)| Death { killed, served, proven, owed: owed * SECOND })
}

/// What a keeper would have at hand.
#[derive(Default)]
struct Hands {
    process: bool,
    member: bool,
    turn: bool,
    dismissed: bool,
}

impl Hands {
    fn take(&mut self, event: Event, before: &Lifecycle, life: &Lifecycle, actions: &[Action]) {
        self.dismissed |= matches!(event, Event::Stop | Event::Retire | Event::Kill);
        self.turn |= event == Event::Turn && before.state() == State::Queued;
        // Also one that cannot be killed is given up at last.
        if matches!(life.state(), State::Queued | State::BackingOff { .. } | State::Stopped) {
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
                Action::TakeOver => assert!(self.member && life.standing() == Standing::Regular),
                Action::Terminate | Action::SayShutdown | Action::Kill(_) | Action::Diagnose => {
                    assert!(!self.member, "members are not signalled");
                }
                Action::AskTurn => assert!(!self.dismissed, "comes back although nobody wants it"),
                Action::CheckHealth | Action::WarmUp => {}
            }
        }
        if life.standing() != Standing::Spare {
            assert!(!matches!(life.state(), State::Standby | State::SteppingBack), "only spares stand by");
        }
        assert_eq!(
            self.member,
            life.state() == State::Ready,
            "who is ready, and only who is, is in the pool"
        );
        if !matches!(life.state(), State::Booting { .. } | State::Warming { .. }) {
            self.turn = false;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_a_life_makes_sense_and_comes_to_its_end(
        events in proptest::collection::vec((event(), 0..4_000_u64), 1..60),
        standing in prop_oneof![Just(Standing::Regular), Just(Standing::Successor), Just(Standing::Spare)],
        checks_health in any::<bool>(),
        warms_up in any::<bool>(),
    ) {
        let rules = Rules { checks_health, warms_up, ..rules() };
        let mut life = Lifecycle::new(rules, standing, fastrand::Rng::with_seed(7));
        let (mut now, mut hands) = (Instant::now(), Hands::default());
        let mut step = |life: Lifecycle, event: Event, now: Instant| {
            // Only what has been spawned can fail, listen or end.
            let needs_process = matches!(event, Event::Exited(_) | Event::SpawnFailed { .. } | Event::Listening | Event::Orphaned);
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
        life = step(life, Event::Retire, now);
        for _ in 0..9 {
            now = life.deadline().unwrap_or(now).max(now);
            life = step(life, Event::Tick, now);
        }
        prop_assert_eq!(life.state(), State::Stopped);
    }
}
