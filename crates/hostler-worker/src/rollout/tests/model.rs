//! Random histories of a pool's workers, checked against the rules that hold at every moment.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Restart,
    Count(usize),
    Due(usize),
    /// A booting worker is ready.
    Ready(usize),
    /// A ready worker dies.
    Die(usize),
    /// A boot fails. A successor stops at the second failure.
    Fail(usize),
    /// A ready successor has passed its probation.
    TakeOver,
    /// A retiring worker has finished.
    Finish(usize),
    Wait,
    /// The event loop of a ready worker stands still.
    Block(usize),
    /// It turns again.
    Turn(usize),
    /// This many spares are wanted. 0: only while workers die often.
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
        4 => any.clone().prop_map(Step::Finish),
        1 => Just(Step::Wait),
        2 => any.clone().prop_map(Step::Block),
        2 => any.clone().prop_map(Step::Turn),
        1 => (0..3_usize).prop_map(Step::Spares),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Booting,
    Ready,
    Blocked,
    Retiring,
}

struct Worker {
    is: Is,
    role: WorkerRole,
    failed_boots: u32,
    index: usize,
}

impl Worker {
    fn is_successor(&self) -> bool {
        matches!(self.role, WorkerRole::Successor(_))
    }
}

/// The workers of a pool in which every command of the plan is carried out.
struct World {
    plan: Plan,
    now: Instant,
    workers: BTreeMap<WorkerTaskId, Worker>,
    /// Spares that have joined the pool.
    in_pool: BTreeSet<WorkerTaskId>,
    wanted: usize,
    spares: usize,
    /// Restarts with a caller that waits.
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
        world.on(RolloutEvent::Count(2));
        world
    }

    fn on(&mut self, event: RolloutEvent) {
        let taken_over = match &event {
            RolloutEvent::Heard(task, WorkerReport::TookOver) => Some(*task),
            _ => None,
        };
        let (plan, actions) = std::mem::take(&mut self.plan).step(event, self.now);
        self.plan = plan;
        for action in actions {
            self.perform(action, taken_over);
        }
        self.check();
    }

    fn perform(&mut self, action: RolloutAction, taken_over: Option<WorkerTaskId>) {
        match action {
            RolloutAction::Start { task, index, role } => {
                let worker = Worker { is: Is::Booting, role, failed_boots: 0, index };
                assert!(self.workers.insert(task, worker).is_none(), "{task:?} is started twice");
            }
            RolloutAction::StepIn(task) => {
                assert_eq!(self.workers[&task].is, Is::Ready, "{task:?} cannot step in");
                assert!(self.in_pool.insert(task), "{task:?} is in the pool");
            }
            RolloutAction::StepBack(task) => {
                assert!(self.in_pool.remove(&task), "{task:?} is not in the pool")
            }
            RolloutAction::Undrain(task) => panic!("{task:?} is not out of rotation"),
            RolloutAction::Retire { task, .. } => {
                let worker = &self.workers[&task];
                let has_successor = taken_over.is_some_and(|heir| self.workers[&heir].index == worker.index);
                let unneeded = worker.index > self.wanted || worker.role != WorkerRole::Regular;
                assert!(has_successor || unneeded, "{task:?} retires without a successor");
                self.workers.get_mut(&task).unwrap().is = Is::Retiring;
                self.in_pool.remove(&task);
            }
            RolloutAction::Reached(release) => {
                assert!(release > self.answered && release <= self.ordered);
                self.answered = release;
            }
            RolloutAction::Fail(_) => self.answered = self.ordered,
            RolloutAction::KeepOld { .. } => {}
        }
    }

    fn check(&self) {
        let stays = |worker: &&Worker| worker.is != Is::Retiring;
        let regulars =
            self.workers.values().filter(stays).filter(|worker| worker.role == WorkerRole::Regular);
        let mut places: Vec<usize> = regulars.map(|worker| worker.index).collect();
        places.sort_unstable();
        assert_eq!(places, (1..=self.wanted).collect::<Vec<_>>(), "each place has one worker");
        let successors = self.workers.values().filter(stays).filter(|worker| worker.is_successor());
        assert!(successors.count() <= 1, "one successor at a time");
        let spares = self.workers.values().filter(stays).filter(|worker| worker.role == WorkerRole::Spare);
        assert!(spares.count() <= self.spares, "more spares than are wanted");
        let missing = self.workers.values().filter(stays);
        let missing =
            missing.filter(|worker| worker.role == WorkerRole::Regular && worker.is != Is::Ready).count();
        assert!(self.in_pool.len() <= missing, "more spares in the pool than workers are missing");
        assert_eq!(
            self.plan.is_restarting(),
            self.answered < self.ordered,
            "a restart goes on exactly while a caller waits"
        );
    }

    fn pick(&self, index: usize, is: Is) -> Option<WorkerTaskId> {
        let all: Vec<_> = self.workers.iter().filter(|(_, worker)| worker.is == is).collect();
        (!all.is_empty()).then(|| *all[index % all.len()].0)
    }

    fn hear(&mut self, task: WorkerTaskId, heard: WorkerReport) {
        self.on(RolloutEvent::Heard(task, heard));
    }

    /// A regular worker boots again after every death. A successor with failed boots does not.
    fn lose(&mut self, task: WorkerTaskId) {
        let how = String::new();
        let worker = self.workers.get_mut(&task).unwrap();
        worker.failed_boots =
            if matches!(worker.is, Is::Ready | Is::Blocked) { 0 } else { worker.failed_boots + 1 };
        worker.is = Is::Booting;
        self.in_pool.remove(&task);
        let failed_boots = worker.failed_boots;
        self.hear(task, WorkerReport::Died { failed_boots, how: how.clone() });
        // The plan may have retired it at that moment.
        let is_over = |worker: &Worker| worker.is_successor() && worker.is == Is::Booting;
        if failed_boots > 1 && self.workers.get(&task).is_some_and(is_over) {
            self.workers.remove(&task);
            self.hear(task, WorkerReport::Ended { how });
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Restart => {
                self.ordered += 1;
                self.on(RolloutEvent::Restart);
            }
            Step::Count(count) => {
                self.wanted = count;
                self.on(RolloutEvent::Count(count));
            }
            Step::Due(index) => {
                if let Some(task) =
                    self.pick(index, Is::Ready).filter(|task| !self.workers[task].is_successor())
                {
                    self.on(RolloutEvent::Due(task, OLD));
                }
            }
            Step::Ready(index) => {
                if let Some(task) = self.pick(index, Is::Booting) {
                    self.workers.get_mut(&task).unwrap().is = Is::Ready;
                    self.hear(task, WorkerReport::Ready);
                }
            }
            Step::Die(index) => {
                if let Some(task) = self.pick(index, Is::Blocked).or_else(|| self.pick(index, Is::Ready)) {
                    self.lose(task);
                }
            }
            Step::Fail(index) => {
                if let Some(task) = self.pick(index, Is::Booting) {
                    self.lose(task);
                }
            }
            Step::TakeOver => {
                let ready = self
                    .workers
                    .iter_mut()
                    .find(|(_, worker)| worker.is_successor() && worker.is == Is::Ready);
                if let Some((&task, worker)) = ready {
                    worker.role = WorkerRole::Regular;
                    self.heir(task);
                }
            }
            Step::Finish(index) => {
                if let Some(task) = self.pick(index, Is::Retiring) {
                    self.workers.remove(&task);
                    self.hear(task, WorkerReport::Ended { how: String::new() });
                }
            }
            Step::Block(index) => self.turns(index, Is::Ready, Is::Blocked),
            Step::Turn(index) => self.turns(index, Is::Blocked, Is::Ready),
            Step::Wait => {
                self.now += 20 * SECOND;
                self.on(RolloutEvent::Tick);
            }
            Step::Spares(count) => {
                self.spares = count.max(1);
                self.on(RolloutEvent::Spares(if count == 0 { Spares::Auto } else { Spares::Fixed(count) }));
            }
        }
    }

    fn turns(&mut self, index: usize, before: Is, after: Is) {
        let regular = |task: &WorkerTaskId| self.workers[task].role == WorkerRole::Regular;
        if let Some(task) = self.pick(index, before).filter(regular) {
            self.workers.get_mut(&task).unwrap().is = after;
            self.hear(task, WorkerReport::Blocked(after == Is::Blocked));
        }
    }

    fn heir(&mut self, task: WorkerTaskId) {
        self.hear(task, WorkerReport::TookOver);
    }

    /// From now on every booting worker gets ready.
    fn settle(&mut self) {
        for _ in 0..60 {
            for step in [Step::Ready(0), Step::Turn(0), Step::TakeOver, Step::Finish(0)] {
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
    fn after_any_events_each_place_has_a_worker_and_each_restart_ends(
        steps in proptest::collection::vec(step(), 1..80)
    ) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
        }
        world.settle();
        prop_assert!(!world.plan.is_restarting(), "a restart without an end");
        prop_assert_eq!(world.workers.len(), world.wanted, "no worker is left over");
    }

    #[test]
    fn after_a_stop_no_worker_is_started(steps in proptest::collection::vec(step(), 1..40), at in 0..40_usize) {
        let mut world = World::new();
        for step in steps.iter().take(at) {
            world.take(step);
        }
        let (plan, actions) = std::mem::take(&mut world.plan).step(RolloutEvent::Stop, world.now);
        prop_assert!(actions.iter().all(|action| *action == RolloutAction::Fail(RestartError::Stopping)));
        let tasks: Vec<WorkerTaskId> = world.workers.keys().copied().collect();
        tasks.into_iter().fold(plan, |plan, task| {
            let (plan, actions) = plan.step(RolloutEvent::Heard(task, WorkerReport::Ended { how: String::new() }), world.now);
            assert_eq!(actions, []);
            plan
        });
    }
}
