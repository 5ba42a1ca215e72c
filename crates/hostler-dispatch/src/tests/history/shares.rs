//! Fair shares, checked: a key that always waits is charged as much as any other. Knows the costs of requests, and not how a pool orders keys.
//!
//! The bound is that of start-time fair queueing (Goyal, Vin and Cheng, "Start-time Fair Queuing", SIGCOMM 1996): while two keys wait
//! without a pause, the worker time charged to them differs by no more than the largest request of each. A pool differs from their
//! scheduler in two ways, so the bound is derived here again for `fair.rs`:
//!
//! * A request is charged with an estimate when it gets its slot, and with the rest of its real cost at its end (a *correction*).
//! * Several slots serve at once.
//!
//! Let `V(k)` be the virtual time of key `k`, and `W(k)` what it was charged since some moment: the real cost of requests that have
//! ended, and the estimate of those that hold a slot. `V(k)` grows with `W(k)`. Besides that, it is only ever raised, to the pool's time
//! `P`, when `k` begins to wait or gets a slot. Let `L(k)` be the sum by which it was raised. It is only lowered while `k` has no request
//! (its debt goes). Let `D(k)` be the sum of that.
//!
//! 1. Key B gets its turn at a moment `s`, while A waits too. So `V(B) <= V(A)` at `s`.
//! 2. Key A gets its turn at a later moment `e`, while B waits. So `V(A) <= V(B)` at `e`.
//! 3. From both: `W(A) + L(A) - D(A) <= W(B) + L(B)` between `s` and `e`. As `L(A) >= 0`: **`W(A) - D(A) - W(B) <= L(B)`**.
//!
//! A need not wait between `s` and `e`, so this also holds for a key that goes idle and comes back. The same follows if A has no request
//! at all at `s`: when it comes, it is at `P` or above, and `P` is at least `V(B)` at `s`. `D(A)` is at most the work that was done while A
//! had no request, each cost divided by the number of keys that waited when its slot came back.
//!
//! How large is `L(B)` while B always waits? A turn of any key `k` sets `P` to at most `V(k) <= V(B)`. So `P > V(B)` only after a
//! correction has lowered `V(B)`: an estimate was too high, and the difference is lost to B at its next slot. `L(B)` is at most the sum of
//! such corrections. A correction loses nothing if no key had a turn while its request ran: then `P` is still the time at which that
//! request began. In a pool with one slot `L(B)` is 0, for any estimates.
//!
//! The check is step 3, for all `s` and `e`, to the nanosecond. It needs no largest request. The bound of the paper follows from it: an
//! interval in which both wait begins or ends at most one request of each key (and the corrections of those that run) away from such
//! moments.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::check::{Checked, ensure};
use super::look::{Look, Queued};
use super::world::World;
use crate::{FairKey, Priority};

/// The least charge, and the grain of a charge: see `fair.rs`. Written down again, so that a change there is noticed here.
const LEAST: Duration = Duration::from_micros(1);

/// What the check remembers from step to step. All times are in nanoseconds.
#[derive(Default)]
pub struct ShareCheck {
    /// The requests that hold a slot.
    charged: BTreeMap<u64, Charged>,
    keys: BTreeMap<FairKey, KeyCheck>,
    /// For a key that waits since then, and another key: by how much the other may be ahead of it (`W(A) - W(B) - L(B)` at the best `s`).
    most: BTreeMap<(FairKey, FairKey), i128>,
    /// The work for which there was time while no request waited, since debts last went because of that.
    rest: u128,
    /// The pool has begun or ended to share, so it knows the requests that run only in part.
    is_off: bool,
}

struct Charged {
    key: FairKey,
    estimate: i128,
    /// `P` may have grown while it held its slot.
    is_overtaken: bool,
}

#[derive(Default)]
struct KeyCheck {
    /// `W - D`.
    used: i128,
    /// `L` at most.
    lost: i128,
    /// By how much its virtual time may be less than that of the pool.
    behind: i128,
    /// `behind` is not known: a class in which it does not wait had a turn.
    is_unknown: bool,
}

/// The slots that the requests of one key have got in one step. Their order among those of other keys is not known.
#[derive(Default)]
struct Gains {
    all: i128,
    /// The turns in each class: how many, their sum, and the largest.
    turns: BTreeMap<Priority, (u64, i128, i128)>,
}

/// What is known of the keys in one step.
struct StepKeys {
    /// The classes in which a key has waited during the whole step.
    waits: BTreeSet<(FairKey, Priority)>,
    /// Keys with a request before the step.
    had: BTreeSet<FairKey>,
    /// Keys with a request before or after the step.
    present: BTreeSet<FairKey>,
    /// Keys with a waiting request after the step.
    queued: BTreeSet<FairKey>,
    gains: BTreeMap<FairKey, Gains>,
    /// The classes that had a turn.
    classes: BTreeSet<Priority>,
    /// Several slots came back, perhaps between turns.
    is_mixed: bool,
}

impl StepKeys {
    fn waits(&self, key: FairKey) -> bool {
        Priority::ALL.iter().any(|class| self.waits.contains(&(key, *class)))
    }

    /// It waits wherever a turn was given, so it was compared with the key of each turn.
    fn is_compared(&self, key: FairKey) -> bool {
        self.waits(key) && self.classes.iter().all(|class| self.waits.contains(&(key, *class)))
    }
}

fn charge(estimate: Duration) -> i128 {
    estimate.max(LEAST).as_micros() as i128 * 1000
}

impl ShareCheck {
    /// Checks a step. `ended`: the slots that came back, with their costs. Returns how many comparisons it made.
    pub fn after_step(
        &mut self,
        world: &World<'_>,
        (before, now): (&Look, &Look),
        ended: &[(u64, Duration)],
    ) -> Result<u64, String> {
        self.is_off |= before.fair != now.fair || world.is_closed;
        if self.is_off || !now.fair {
            return Ok(0);
        }
        charges(before, now, ended)?;
        self.rest(before, now)?;
        let is_mixed = ended.len() > 1;
        let was_charged: BTreeSet<_> = self.charged.values().map(|one| one.key).collect();
        self.end(ended, is_mixed);
        let mut step = StepKeys {
            waits: waiting(before, now),
            had: BTreeSet::new(),
            present: was_charged,
            queued: now.queued.values().map(|one| one.key).collect(),
            gains: BTreeMap::new(),
            classes: BTreeSet::new(),
            is_mixed,
        };
        step.present.extend(before.queued.values().map(|one| one.key));
        step.had.clone_from(&step.present);
        step.present.extend(step.queued.iter().copied());
        self.begin(world, before, now, &mut step);
        self.forgive((before, now), &step, ended);
        // From the moment in which a key begins to wait, also if it was never charged.
        for key in &step.queued {
            self.keys.entry(*key).or_default();
        }
        self.forget(&step);
        let compared = self.compare(&step)?;
        self.record(&step);
        self.settle(&step);
        // While no request waits, debts go.
        let rests = !now.queued.values().any(is_newcomer);
        self.charged.values_mut().for_each(|one| one.is_overtaken |= rests);
        Ok(compared)
    }

    /// While no request waits, debts go no faster than the slots could work.
    fn rest(&mut self, before: &Look, now: &Look) -> Checked {
        if !before.queued.values().any(is_newcomer) {
            let slots = before.parallel.max(now.parallel).max(1);
            self.rest += now.at.saturating_duration_since(before.at).as_nanos() * slots as u128;
        }
        let forgiven = now.forgiven - before.forgiven;
        ensure(forgiven <= self.rest, || {
            format!(
                "{forgiven} ns of debts have gone, and the pool could work {} ns while no request waited",
                self.rest
            )
        })?;
        if forgiven > 0 {
            self.rest = 0;
        }
        Ok(())
    }

    /// Slots came back.
    fn end(&mut self, ended: &[(u64, Duration)], is_mixed: bool) {
        for (serial, cost) in ended {
            let Some(charged) = self.charged.remove(serial) else { continue };
            let correction = cost.as_nanos() as i128 - charged.estimate;
            let key = self.keys.entry(charged.key).or_default();
            key.used += correction;
            if charged.is_overtaken || is_mixed {
                key.behind += (-correction).max(0);
            }
        }
    }

    /// Keys without a request before or after the step: their debts have gone as far as this, at most.
    fn forgive(&mut self, (before, now): (&Look, &Look), step: &StepKeys, ended: &[(u64, Duration)]) {
        let keys = waiting_keys(before).min(waiting_keys(now)).max(1);
        let gone: i128 = ended.iter().map(|(_, cost)| cost.as_nanos() as i128 / keys + 1).sum();
        let runs: BTreeSet<_> = self.charged.values().map(|one| one.key).collect();
        let has_request =
            |key: &FairKey| step.had.contains(key) && (step.queued.contains(key) || runs.contains(key));
        self.keys
            .iter_mut()
            .filter(|(key, _)| !has_request(key))
            .for_each(|(_, checked)| checked.used -= gone);
    }

    /// Requests got slots.
    fn begin(&mut self, world: &World<'_>, before: &Look, now: &Look, step: &mut StepKeys) {
        let mut new = vec![];
        for ended in now.ended.values() {
            let (Some((key, work)), Ok((_, bound))) = (ended.share, ended.how) else { continue };
            if !self.charged.contains_key(&ended.place.serial) {
                let turn = (bound.is_none() && !ended.place.returns()).then_some(ended.place.priority);
                new.push((ended.place.serial, key, charge(work), turn));
            }
        }
        for running in world.running.iter().filter(|one| !one.lease.is_stream()) {
            let serial = running.place.serial;
            if self.charged.contains_key(&serial) {
                continue;
            }
            // It got its slot at once, or it was handed one and polled in one step. Then it is not known when.
            let waited = before.queued.get(&serial);
            let work = waited.map_or_else(|| world.estimate(&running.claim), |queued| queued.work);
            new.push((serial, world.key(&running.claim), charge(work), None));
            if waited.is_some() {
                self.most.clear();
                self.keys.values_mut().for_each(|key| key.is_unknown = true);
            }
        }
        let turns = new.iter().filter(|(.., turn)| turn.is_some()).count();
        self.charged.values_mut().for_each(|one| one.is_overtaken |= turns > 0);
        for (serial, key, estimate, turn) in new {
            step.present.insert(key);
            let gains = step.gains.entry(key).or_default();
            gains.all += estimate;
            if let Some(class) = turn {
                let (count, sum, largest) = gains.turns.entry(class).or_default();
                (*count, *sum, *largest) = (*count + 1, *sum + estimate, estimate.max(*largest));
                step.classes.insert(class);
            }
            let is_overtaken = turns > usize::from(turn.is_some()) || turn.is_none();
            self.charged.insert(serial, Charged { key, estimate, is_overtaken });
            self.keys.entry(key).or_default();
        }
    }

    /// A key that has not waited during the whole step, or was passed by a class in which it does not wait.
    fn forget(&mut self, step: &StepKeys) {
        for (key, checked) in &mut self.keys {
            if !step.is_compared(*key) {
                self.most.retain(|(waits, _), _| waits != key);
                // When it begins to wait, it is raised to the pool's time.
                let begins_to_wait =
                    !step.waits(*key) && (!step.queued.contains(key) || step.classes.is_empty());
                checked.is_unknown = !begins_to_wait && (checked.is_unknown || !step.classes.is_empty());
            }
        }
    }

    /// The moments `e`: the other key had a turn.
    fn compare(&self, step: &StepKeys) -> Result<u64, String> {
        let mut compared = 0;
        let most = self.most.iter().filter(|_| !step.is_mixed);
        for (&(waits, other), most) in most {
            let Some(gains) = step.gains.get(&other) else { continue };
            let later = step.gains.get(&waits).map_or(0, |own| own.all + self.keys[&waits].behind);
            for (class, (_, sum, largest)) in &gains.turns {
                // The last of the turns, after all of the key that waits.
                let ahead = self.ahead(waits, other) + sum - largest - later;
                compared += u64::from(step.waits.contains(&(waits, *class)));
                self.is_within(step, (waits, *class), ahead, *most, other)?;
            }
        }
        Ok(compared)
    }

    fn is_within(
        &self,
        step: &StepKeys,
        (waits, class): (FairKey, Priority),
        ahead: i128,
        most: i128,
        other: FairKey,
    ) -> Checked {
        ensure(ahead <= most || !step.waits.contains(&(waits, class)), || {
            let more = ahead - most;
            format!("{other:?} gets a slot and was charged {more} ns more than {waits:?}, which waits")
        })
    }

    /// The moments `s`: the key that waits had a turn.
    fn record(&mut self, step: &StepKeys) {
        let waiting =
            self.keys.iter().filter(|(key, checked)| !checked.is_unknown && step.is_compared(**key));
        let waiting: Vec<_> = waiting.map(|(key, _)| *key).filter(|_| !step.is_mixed).collect();
        for waits in waiting {
            let Some(gains) = step.gains.get(&waits) else { continue };
            for (class, (_, sum, largest)) in &gains.turns {
                for &other in self.keys.keys().filter(|other| **other != waits) {
                    let is_absent = !step.present.contains(&other);
                    if is_absent || step.waits.contains(&(other, *class)) {
                        // The last of the turns, after all of the other key.
                        let before = step.gains.get(&other).map_or(0, |gains| gains.all);
                        let ahead = self.ahead(waits, other) + before - (sum - largest);
                        let most = self.most.entry((waits, other)).or_insert(i128::MAX);
                        *most = ahead.min(*most);
                    }
                }
            }
        }
    }

    /// What was charged in this step counts from now on.
    fn settle(&mut self, step: &StepKeys) {
        for (key, gains) in &step.gains {
            let checked = self.keys.entry(*key).or_default();
            checked.used += gains.all;
            checked.lost += checked.behind;
            if !step.is_mixed {
                checked.behind = 0;
            }
            if !gains.turns.is_empty() && step.is_compared(*key) {
                checked.is_unknown = false;
            }
        }
    }

    /// `W(A) - D(A) - W(B) - L(B)` for B that waits and another key A.
    fn ahead(&self, waits: FairKey, other: FairKey) -> i128 {
        let key = &self.keys[&waits];
        self.keys[&other].used - key.used - key.lost
    }
}

/// The keys have paid what the slots cost that came back, and nothing else.
fn charges(before: &Look, now: &Look, ended: &[(u64, Duration)]) -> Checked {
    let (settled, costs) = (now.settled - before.settled, ended.iter().map(|(_, cost)| cost.as_nanos()));
    let cost: u128 = costs.sum();
    ensure(settled == cost, || {
        format!("keys have paid {settled} ns for slots that cost {cost} ns: {ended:?}")
    })
}

fn is_newcomer(queued: &Queued) -> bool {
    queued.bound.is_none() && !queued.place.returns()
}

/// In how many places of the classes a key waits.
fn waiting_keys(look: &Look) -> i128 {
    let places = look.queued.values().filter(|one| is_newcomer(one)).map(|one| (one.key, one.place.priority));
    places.collect::<BTreeSet<_>>().len() as i128
}

/// The keys that have waited for any member during the whole step, and in which class.
fn waiting(before: &Look, now: &Look) -> BTreeSet<(FairKey, Priority)> {
    let still = now.queued.values().filter(|one| is_newcomer(one));
    let still = still.filter(|one| before.queued.get(&one.place.serial).is_some_and(is_newcomer));
    still.map(|one| (one.key, one.place.priority)).collect()
}
