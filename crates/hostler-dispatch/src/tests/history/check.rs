//! The rules of ARCHITECTURE.md, checked after each step of a history. Knows the pool's state before and after the step.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::actors::count;
use super::look::{Look, Queued};
use super::shares::ShareCheck;
use super::world::World;
use crate::place::QueuePosition;
use crate::{AcquireError, LongLived, MemberId, Order, Pool, PoolCounters, Priority};

/// The most slots in a row that may go to other classes while one waits: eight, and one more if both other classes wait.
const MOST_PASSED_OVER: u32 = 9;

/// What the checks remember from step to step.
#[derive(Default)]
pub struct Checks {
    before: Option<Look>,
    holders: BTreeMap<MemberId, BTreeSet<u64>>,
    passed_over: [u32; Priority::COUNT],
    /// By how much each waiting request was delayed by others that overtook it, in nanoseconds.
    delayed: BTreeMap<u64, i128>,
    /// Requests that overtook others: whom, the expected cost, and the slots at that moment.
    overtook: BTreeMap<u64, (Vec<u64>, Duration, usize)>,
    shares: ShareCheck,
    pub seen: Coverage,
}

/// How often something happened in which a bug could show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    pub handed: u64,
    pub taken_back: u64,
    pub overtaken: u64,
    pub passed_over: u64,
    pub bound: u64,
    /// Requests that gave way to one of a higher class.
    pub gave_way: u64,
    /// Turns of a key whose share was compared with that of a key that always waited.
    pub compared: u64,
    /// Requests that ended before they had cost what their keys were charged.
    pub early: u64,
    pub counters: PoolCounters,
}

pub type Checked = Result<(), String>;

pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(what()) }
}

impl Checks {
    /// Checks everything after a step.
    pub fn after_step(&mut self, world: &mut World<'_>, is_thorough: bool) -> Checked {
        if let Some(error) = world.error.take() {
            return Err(error);
        }
        if is_thorough {
            crate::tests::free_index::check(&world.pool);
        }
        crate::tests::free_index::check_sums(&world.pool);
        world.pool.shared.lock().queue.check_order();
        let now = Look::take(&world.pool);
        let holders = holders(world, &now);
        self.slots(&now, &holders)?;
        requests(world, &now)?;
        counters(world, &now)?;
        if let Some(before) = self.before.take() {
            self.order(world, &before, &now)?;
            self.classes(&before, &now)?;
            self.seen.gave_way += full_queue(world, &before, &now)?;
            let ended = ended_slots(world, &before, &now);
            self.seen.taken_back += u64::from(ended.len() > world.ended.len());
            self.seen.compared += self.shares.after_step(world, (&before, &now), &ended)?;
            self.delays(&ended, &before, &now)?;
        }
        (world.at_once, world.ended, world.refused_full) = (vec![], vec![], vec![]);
        self.seen.early += std::mem::take(&mut world.early);
        self.seen.counters = now.counters;
        (self.before, self.holders) = (Some(now), holders);
        Ok(())
    }

    /// The requests that hold the slots of a member are those that we know, and no more than it has slots.
    fn slots(&self, now: &Look, holders: &BTreeMap<MemberId, BTreeSet<u64>>) -> Checked {
        let none = BTreeSet::new();
        for (id, member) in &now.members {
            let held = holders.get(id).unwrap_or(&none);
            ensure(member.in_use == held.len(), || {
                format!("member {id}: {} slots in use, but the requests {held:?} hold one", member.in_use)
            })?;
            let kept = self.holders.get(id).map_or(0, |before| before.intersection(held).count());
            ensure(held.len() <= member.slots.max(kept), || {
                format!("member {id} has {} slots, and {held:?} hold one", member.slots)
            })?;
            let is_new = |serial: &u64| self.holders.get(id).is_none_or(|before| !before.contains(serial));
            let bound = |serial: &u64| {
                now.ended.get(serial).is_some_and(|ended| ended.how.is_ok_and(|how| how.1.is_some()))
            };
            let was_gone =
                self.before.as_ref().is_some_and(|before| before.members.get(id).is_some_and(|one| one.left));
            let gained =
                held.iter().find(|serial| is_new(serial) && now.ended.contains_key(serial) && !bound(serial));
            ensure(!was_gone || gained.is_none(), || {
                format!("member {id} has left, and got request {gained:?}")
            })?;
        }
        ensure(holders.keys().all(|id| now.members.contains_key(id)), || {
            "a member is gone before its requests".into()
        })
    }

    /// Within a class no request overtakes another, except as the order of the pool says.
    fn order(&mut self, world: &World<'_>, before: &Look, now: &Look) -> Checked {
        let stayed = |place: &QueuePosition| {
            let then = before.queued.get(&place.serial)?;
            let still = now.queued.get(&place.serial)?;
            (then.bound == still.bound).then_some(*still)
        };
        let waiting: Vec<Queued> =
            before.queued.values().filter_map(|queued| stayed(&queued.place)).collect();
        for (place, bound) in &world.at_once {
            let mut in_its_way = waiting.iter().filter(|other| match bound {
                Some(member) => other.bound == Some(*member),
                None => other.bound.is_none(),
            });
            let in_its_way = in_its_way.next().map(|one| one.place.serial);
            ensure(in_its_way.is_none(), || {
                format!("request {} got a slot at once before {in_its_way:?}", place.serial)
            })?;
        }
        for (place, member, bound) in now.handed() {
            if before.end_of(place.serial).is_some_and(|end| end == Ok(member)) {
                continue;
            }
            self.seen.handed += 1;
            self.seen.bound += u64::from(bound.is_some());
            let was = before.queued.get(&place.serial);
            let older =
                waiting.iter().filter(|other| other.place.priority == place.priority && other.place < place);
            let mut older = older.filter(|other| is_violated((place, bound, was), other, now));
            let first = older.next().map(|one| one.place.serial);
            ensure(first.is_none(), || format!("request {} got a slot before {first:?}", place.serial))?;
        }
        Ok(())
    }

    /// A waiting class gets a slot after at most eight others.
    fn classes(&mut self, before: &Look, now: &Look) -> Checked {
        let handed = |class: Priority| {
            now.handed()
                .filter(|(place, member, bound)| {
                    place.priority == class
                        && bound.is_none()
                        && before.end_of(place.serial) != Some(Ok(*member))
                })
                .count()
        };
        let waits = |look: &Look, class: Priority| {
            look.queued.values().any(|one| one.place.priority == class && one.bound.is_none())
        };
        let by_class = Priority::ALL.map(handed);
        for class in Priority::ALL {
            let others = by_class.iter().sum::<usize>() - by_class[class.index()];
            let has_waited = waits(before, class) && waits(now, class) && by_class[class.index()] == 0;
            let passed_over = &mut self.passed_over[class.index()];
            *passed_over =
                if has_waited { *passed_over + u32::try_from(others).unwrap_or(u32::MAX) } else { 0 };
            self.seen.passed_over += u64::from(*passed_over >= 8);
            ensure(*passed_over <= MOST_PASSED_OVER, || {
                format!("class {class:?} was passed over {passed_over} times")
            })?;
        }
        Ok(())
    }

    /// In a pool that serves short requests first, no request is delayed by more than is allowed.
    fn delays(&mut self, ended: &[(u64, Duration)], before: &Look, now: &Look) -> Checked {
        let Order::ShortFirst { delay } = now.order else {
            (self.delayed, self.overtook) = Default::default();
            return Ok(());
        };
        for (serial, cost) in ended {
            if let Some((older, expected, slots)) = self.overtook.remove(serial) {
                let correction = (cost.as_nanos() as i128 - expected.as_nanos() as i128) / slots as i128;
                older.iter().for_each(|one| *self.delayed.entry(*one).or_default() += correction);
            }
        }
        self.delayed.retain(|serial, _| now.queued.contains_key(serial));
        let is_steady =
            before.working == now.working && before.order == now.order && now.observed == 0 && !now.fair;
        for (place, member, bound) in now.handed() {
            let was = before.queued.get(&place.serial);
            let Some(was) =
                was.filter(|_| before.end_of(place.serial) != Some(Ok(member)) && bound.is_none())
            else {
                continue;
            };
            let older: Vec<_> = now
                .queued
                .values()
                .filter(|one| {
                    one.place.priority == place.priority
                        && one.place < place
                        && one.bound.is_none()
                        && !one.place.returns()
                })
                .filter(|one| before.queued.get(&one.place.serial).is_some_and(|then| then.bound.is_none()))
                .map(|one| one.place.serial)
                .collect();
            let slots = now.working.max(1);
            for one in &older {
                let delayed = self.delayed.entry(*one).or_default();
                *delayed += (was.cost / u32::try_from(slots).unwrap_or(1)).as_nanos() as i128;
                self.seen.overtaken += 1;
                // A nanosecond for each division.
                let most = delay.as_nanos() as i128 + 64;
                ensure(!is_steady || place.returns() || *delayed <= most, || {
                    format!(
                        "request {one} is delayed by {delayed} ns, and request {} overtakes it",
                        place.serial
                    )
                })?;
            }
            self.overtook.insert(place.serial, (older, was.cost, slots));
        }
        Ok(())
    }
}

/// Whether a request that got a slot should have come after an older one of its class that waits on. Both waited before.
fn is_violated(
    (place, bound, was): (QueuePosition, Option<MemberId>, Option<&Queued>),
    older: &Queued,
    now: &Look,
) -> bool {
    match (bound, older.bound) {
        (Some(one), Some(other)) => one == other,
        // The slot of a member that has left is for those that are bound to it.
        (Some(member), None) => !now.fair && now.members.get(&member).is_some_and(|one| !one.left),
        (None, Some(_)) => false,
        (None, None) if now.fair => {
            let has_same_key = was.is_some_and(|was| was.key == older.key);
            !place.returns() && (older.place.returns() || has_same_key)
        }
        (None, None) if now.order != Order::Arrival => {
            !place.returns() && (older.place.returns() || was.is_some_and(|was| older.turn < was.turn))
        }
        (None, None) => true,
    }
}

/// No request is refused for a full queue while one of a lower class waits. Returns how many gave way to one of a higher class.
fn full_queue(world: &World<'_>, before: &Look, now: &Look) -> Result<u64, String> {
    let lowest = now.queued.values().map(|one| one.place).filter(|place| !place.returns()).max();
    let is_full = |how: Result<_, AcquireError>| matches!(how, Err(AcquireError::QueueFull { .. }));
    let new = now.ended.values().filter(|ended| is_full(ended.how.map(|_| ())));
    let gave_way = new.map(|ended| ended.place).filter(|place| before.end_of(place.serial).is_none());
    let gave_way: Vec<_> = gave_way.map(|place| place.priority).collect();
    for class in world.refused_full.iter().chain(&gave_way) {
        ensure(lowest.is_none_or(|lowest| lowest.priority <= *class), || {
            let waits = lowest.map(|lowest| lowest.serial);
            format!("a request of class {class:?} is refused for a full queue, and {waits:?} waits")
        })?;
    }
    let is_below = |class: &&Priority| now.queued.values().any(|one| one.place.priority < **class);
    Ok(gave_way.iter().filter(is_below).count() as u64)
}

/// The slots that came back in this step, and what they have cost. One that no request has used has cost nothing.
fn ended_slots(world: &World<'_>, before: &Look, now: &Look) -> Vec<(u64, Duration)> {
    let taken_back = before.handed().filter(|(place, member, _)| {
        let is_held = now.end_of(place.serial) == Some(Ok(*member));
        !is_held && !world.running.iter().any(|running| running.place.serial == place.serial)
    });
    let unused = taken_back.map(|(place, ..)| (place.serial, Duration::ZERO));
    world.ended.iter().copied().chain(unused).collect()
}

/// Who holds a slot of which member: requests with a lease, and those that were handed a slot.
fn holders(world: &World<'_>, now: &Look) -> BTreeMap<MemberId, BTreeSet<u64>> {
    let mut holders = BTreeMap::<_, BTreeSet<_>>::new();
    let running = world.running.iter().filter(|running| !running.lease.is_stream());
    let running = running.map(|running| (running.lease.member(), running.place.serial));
    for (member, serial) in running.chain(now.handed().map(|(place, member, _)| (member, place.serial))) {
        holders.entry(member).or_default().insert(serial);
    }
    holders
}

/// Each request that waits is known to the pool exactly once, and is woken when its wait ends.
fn requests(world: &World<'_>, now: &Look) -> Checked {
    ensure(now.queue_length == now.queued.len(), || {
        format!("the queue counts {} requests and has {}", now.queue_length, now.queued.len())
    })?;
    for waiting in &world.waiting {
        let serial = waiting.place.serial;
        let (waits, has_ended) = (now.queued.contains_key(&serial), now.ended.contains_key(&serial));
        let is_known = if world.is_closed { !waits } else { waits != has_ended };
        ensure(is_known, || format!("request {serial} is forgotten: waits {waits}, has ended {has_ended}"))?;
        let must_wake = has_ended || world.is_closed;
        ensure(!must_wake || waiting.is_woken(), || format!("request {serial} was not woken"))?;
    }
    let known = now.queued.len() + now.ended.len();
    ensure(known <= world.waiting.len(), || {
        format!("the pool knows {known} requests, and {} wait", world.waiting.len())
    })
}

/// What the pool has counted is what has happened. A refusal counts before its owner knows it.
fn counters(world: &World<'_>, now: &Look) -> Checked {
    let mut counted = world.counted;
    now.ended.values().filter_map(|ended| ended.how.err()).for_each(|error| count(&mut counted, error));
    let PoolCounters { overloads, member_timeouts, ejections, unhealthy, .. } = now.counters;
    let counted = PoolCounters { overloads, member_timeouts, ejections, unhealthy, ..counted };
    ensure(now.counters == counted, || format!("counted {:?}, happened {counted:?}", now.counters))
}

/// No request waits while a slot for it is free.
pub fn no_slot_is_idle(pool: &Pool<u8>, world: &World<'_>) -> Checked {
    let now = tokio::time::Instant::now();
    let state = pool.shared.lock();
    if state.pause.is_on() || world.is_closed {
        return Ok(());
    }
    let (lines, _) = state.queue.parts();
    let is_lost = |id: MemberId| crate::bound::is_lost(&state.roster, id, now);
    let lost = state.queue.awaited().into_iter().any(is_lost);
    let any_waits = lost || lines.iter().any(|line| !line.is_empty());
    for member in state.roster.states() {
        let id = member.member.id;
        let is_free =
            !member.left && member.may_have_free_slot(now) && member.can_begin(|| Duration::ZERO, now);
        ensure(!any_waits || !is_free, || format!("a request waits for any member, and {id} is free"))?;
        for kind in [LongLived::Tunnel, LongLived::Stream] {
            let waits = lines.iter().any(|line| !line.for_room[kind as usize].is_empty());
            ensure(!waits || !is_free || !member.has_room_for(kind, state.roster.settings()), || {
                format!("a request waits for room, and {id} has a slot and room")
            })?;
        }
        let is_awaited = lines.iter().any(|line| line.bound.has(id));
        ensure(!is_awaited || !member.has_bound_slot(now), || {
            format!("a request waits for {id}, and it is free")
        })?;
    }
    Ok(())
}

/// All clients have left, and all members.
pub fn nothing_is_left(pool: &Pool<u8>) -> Checked {
    let look = Look::take(pool);
    ensure(look.queued.is_empty() && look.ended.is_empty(), || "a request is left in the pool".into())?;
    ensure(look.members.is_empty(), || format!("members are left: {:?}", look.members))
}

impl Coverage {
    pub fn add(&mut self, other: &Self) {
        self.handed += other.handed;
        self.taken_back += other.taken_back;
        self.overtaken += other.overtaken;
        self.passed_over += other.passed_over;
        self.bound += other.bound;
        self.gave_way += other.gave_way;
        self.compared += other.compared;
        self.early += other.early;
        let (sum, one) = (&mut self.counters, &other.counters);
        for (sum, one) in [
            (&mut sum.refused_full, one.refused_full),
            (&mut sum.refused_overload, one.refused_overload),
            (&mut sum.refused_tunnels, one.refused_tunnels),
            (&mut sum.refused_streams, one.refused_streams),
            (&mut sum.refused_aim, one.refused_aim),
            (&mut sum.tunnels, one.tunnels),
            (&mut sum.streams, one.streams),
            (&mut sum.expired, one.expired),
            (&mut sum.left_queue, one.left_queue),
            (&mut sum.member_failures, one.member_failures),
            (&mut sum.ejections, one.ejections),
            (&mut sum.unhealthy, one.unhealthy),
            (&mut sum.granted, one.granted),
        ] {
            *sum += one;
        }
    }

    /// Everything has happened at least once. Otherwise the histories would show little.
    pub fn assert_complete(&self) {
        let PoolCounters { refused_full, refused_overload, refused_tunnels, refused_streams, .. } =
            self.counters;
        let PoolCounters { refused_aim, tunnels, streams, expired, left_queue, ejections, .. } =
            self.counters;
        let orders = [self.handed, self.taken_back, self.overtaken, self.passed_over, self.bound];
        let all = [&orders[..], &[self.compared, self.gave_way, self.early]].concat();
        let refused = [refused_full, refused_overload, refused_tunnels, refused_streams, refused_aim];
        let others = [tunnels, streams, expired, left_queue, ejections];
        assert!(all.iter().chain(&refused).chain(&others).all(|count| *count > 0), "{self:?}");
    }
}
