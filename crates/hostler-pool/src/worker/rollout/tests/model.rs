//! Random histories of a pool's workers against what must hold at every moment.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Restart,
    Count(usize),
    Due(usize),
    /// One that boots is ready.
    Ready(usize),
    /// One that is ready dies.
    Die(usize),
    /// One that boots fails; a successor stops with the second time.
    Fail(usize),
    /// A successor that is ready has stood the test.
    TakeOver,
    /// One that retires has finished.
    Finish(usize),
    Wait,
    /// So many spares are wanted; 0: while workers die often.
    Spares(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let any = 0..9_usize;
    prop_oneof![
        1 => Just(Step::Restart),
        1 => (1..5_usize).prop_map(Step::Count),
        2 => any.clone().prop_map(Step::Due),
        6 => any.clone().prop_map(Step::Ready),
        3 => any.clone().prop_map(Step::Die),
        1 => any.clone().prop_map(Step::Fail),
        4 => Just(Step::TakeOver),
        4 => any.prop_map(Step::Finish),
        1 => Just(Step::Wait),
        1 => (0..3_usize).prop_map(Step::Spares),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Booting,
    Ready,
    Retiring,
}

struct Worker {
    is: Is,
    role: Role,
    failed_boots: u32,
    index: usize,
}

impl Worker {
    fn is_successor(&self) -> bool {
        matches!(self.role, Role::Successor(_))
    }
}

/// Workers as they would be if everybody did what the plan says.
struct World {
    plan: Plan,
    now: Instant,
    workers: BTreeMap<KeeperId, Worker>,
    /// Spares that have stepped in.
    in_pool: BTreeSet<KeeperId>,
    wanted: usize,
    spares: usize,
    /// Restarts that somebody waits for.
    ordered: u64,
    answered: u64,
}

impl World {
    fn new() -> Self {
        let plan = Plan::default();
        let mut world = Self {
            plan,
            now: Instant::now(),
            workers: BTreeMap::new(),
            in_pool: BTreeSet::new(),
            wanted: 2,
            spares: 1,
            ordered: 0,
            answered: 0,
        };
        world.on(Event::Count(2));
        world
    }

    fn on(&mut self, event: Event) {
        let taken_over = match &event {
            Event::Heard(keeper, Heard::TookOver) => Some(*keeper),
            _ => None,
        };
        let (plan, actions) = std::mem::take(&mut self.plan).step(event, self.now);
        self.plan = plan;
        for action in actions {
            self.perform(action, taken_over);
        }
        self.check();
    }

    fn perform(&mut self, action: Action, taken_over: Option<KeeperId>) {
        match action {
            Action::Hire { keeper, index, role } => {
                let worker = Worker { is: Is::Booting, role, failed_boots: 0, index };
                assert!(self.workers.insert(keeper, worker).is_none(), "{keeper:?} is hired twice");
            }
            Action::StepIn(keeper) => {
                assert_eq!(self.workers[&keeper].is, Is::Ready, "{keeper:?} cannot step in");
                assert!(self.in_pool.insert(keeper), "{keeper:?} is in the pool");
            }
            Action::StepBack(keeper) => {
                assert!(self.in_pool.remove(&keeper), "{keeper:?} is not in the pool")
            }
            Action::Retire { keeper, .. } => {
                let worker = &self.workers[&keeper];
                let has_heir = taken_over.is_some_and(|heir| self.workers[&heir].index == worker.index);
                let unneeded = worker.index > self.wanted || worker.role != Role::Regular;
                assert!(has_heir || unneeded, "{keeper:?} retires and nobody takes its place");
                self.workers.get_mut(&keeper).unwrap().is = Is::Retiring;
                self.in_pool.remove(&keeper);
            }
            Action::Reached(release) => {
                assert!(release > self.answered && release <= self.ordered);
                self.answered = release;
            }
            Action::Fail(_) => self.answered = self.ordered,
            Action::KeepOld { .. } => {}
        }
    }

    fn check(&self) {
        let stays = |worker: &&Worker| worker.is != Is::Retiring;
        let regulars = self.workers.values().filter(stays).filter(|worker| worker.role == Role::Regular);
        let mut seats: Vec<usize> = regulars.map(|worker| worker.index).collect();
        seats.sort_unstable();
        assert_eq!(seats, (1..=self.wanted).collect::<Vec<_>>(), "each seat has one worker");
        let successors = self.workers.values().filter(stays).filter(|worker| worker.is_successor());
        assert!(successors.count() <= 1, "one successor at a time");
        let spares = self.workers.values().filter(stays).filter(|worker| worker.role == Role::Spare);
        assert!(spares.count() <= self.spares, "more spares than are wanted");
        let missing = self.workers.values().filter(stays);
        let missing = missing.filter(|worker| worker.role == Role::Regular && worker.is != Is::Ready).count();
        assert!(self.in_pool.len() <= missing, "more spares in the pool than workers are missing");
        assert_eq!(self.plan.is_restarting(), self.answered < self.ordered, "nobody waits for nothing");
    }

    fn pick(&self, index: usize, is: Is) -> Option<KeeperId> {
        let all: Vec<_> = self.workers.iter().filter(|(_, worker)| worker.is == is).collect();
        (!all.is_empty()).then(|| *all[index % all.len()].0)
    }

    fn hear(&mut self, keeper: KeeperId, heard: Heard) {
        self.on(Event::Heard(keeper, heard));
    }

    /// A regular one comes back, whatever happens; a successor whose boot has failed does not.
    fn lose(&mut self, keeper: KeeperId) {
        let how = String::new();
        let worker = self.workers.get_mut(&keeper).unwrap();
        worker.failed_boots = if worker.is == Is::Ready { 0 } else { worker.failed_boots + 1 };
        worker.is = Is::Booting;
        self.in_pool.remove(&keeper);
        let failed_boots = worker.failed_boots;
        self.hear(keeper, Heard::Died { failed_boots, how: how.clone() });
        // The plan may have retired it at that.
        let is_over = |worker: &Worker| worker.is_successor() && worker.is == Is::Booting;
        if failed_boots > 1 && self.workers.get(&keeper).is_some_and(is_over) {
            self.workers.remove(&keeper);
            self.hear(keeper, Heard::Ended { how });
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Restart => {
                self.ordered += 1;
                self.on(Event::Restart);
            }
            Step::Count(count) => {
                self.wanted = count;
                self.on(Event::Count(count));
            }
            Step::Due(index) => {
                if let Some(keeper) =
                    self.pick(index, Is::Ready).filter(|keeper| !self.workers[keeper].is_successor())
                {
                    self.on(Event::Due(keeper, OLD));
                }
            }
            Step::Ready(index) => {
                if let Some(keeper) = self.pick(index, Is::Booting) {
                    self.workers.get_mut(&keeper).unwrap().is = Is::Ready;
                    self.hear(keeper, Heard::Ready);
                }
            }
            Step::Die(index) => {
                if let Some(keeper) = self.pick(index, Is::Ready) {
                    self.lose(keeper);
                }
            }
            Step::Fail(index) => {
                if let Some(keeper) = self.pick(index, Is::Booting) {
                    self.lose(keeper);
                }
            }
            Step::TakeOver => {
                let ready = self
                    .workers
                    .iter_mut()
                    .find(|(_, worker)| worker.is_successor() && worker.is == Is::Ready);
                if let Some((&keeper, worker)) = ready {
                    worker.role = Role::Regular;
                    self.heir(keeper);
                }
            }
            Step::Finish(index) => {
                if let Some(keeper) = self.pick(index, Is::Retiring) {
                    self.workers.remove(&keeper);
                    self.hear(keeper, Heard::Ended { how: String::new() });
                }
            }
            Step::Wait => {
                self.now += 20 * SECOND;
                self.on(Event::Tick);
            }
            Step::Spares(count) => {
                self.spares = count.max(1);
                self.on(Event::Spares(if count == 0 { Spares::Auto } else { Spares::Fixed(count) }));
            }
        }
    }

    fn heir(&mut self, keeper: KeeperId) {
        self.hear(keeper, Heard::TookOver);
    }

    /// Whatever boots gets ready from now on.
    fn settle(&mut self) {
        for _ in 0..60 {
            for step in [Step::Ready(0), Step::TakeOver, Step::Finish(0)] {
                self.take(&step);
            }
        }
        assert_eq!(self.in_pool.len(), 0, "no spare is in the pool where no worker is missing");
        self.take(&Step::Spares(0));
        (0..4).for_each(|_| self.take(&Step::Wait));
        (0..3).for_each(|_| self.take(&Step::Finish(0)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_each_seat_has_a_worker_and_each_restart_an_end(
        steps in proptest::collection::vec(step(), 1..80)
    ) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
        }
        world.settle();
        prop_assert!(!world.plan.is_restarting(), "a restart without an end");
        prop_assert_eq!(world.workers.len(), world.wanted, "nobody is left over");
    }

    #[test]
    fn after_a_stop_nobody_is_hired(steps in proptest::collection::vec(step(), 1..40), at in 0..40_usize) {
        let mut world = World::new();
        for step in steps.iter().take(at) {
            world.take(step);
        }
        let (plan, actions) = std::mem::take(&mut world.plan).step(Event::Stop, world.now);
        prop_assert!(actions.iter().all(|action| *action == Action::Fail(RestartError::Stopping)));
        let keepers: Vec<KeeperId> = world.workers.keys().copied().collect();
        keepers.into_iter().fold(plan, |plan, keeper| {
            let (plan, actions) = plan.step(Event::Heard(keeper, Heard::Ended { how: String::new() }), world.now);
            assert_eq!(actions, []);
            plan
        });
    }
}
