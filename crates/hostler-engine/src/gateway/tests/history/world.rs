//! A gateway with one pool of simulated members, and the course of a history.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use hostler_config::{Hedge, HedgeAfter, Share};
use hostler_dispatch::{BackoffSettings, EjectSettings, Membership, Policy, Pool, PoolSettings};
use hostler_wire::Limits;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, interval, sleep_until, timeout};

use super::client::{self, End};
use super::member::{IdleOrder, Member};
use super::record::{Checked, Facts, SharedRecord, ensure, lock};
use super::script::MOST_INTERIMS;
use super::steps::{Ask, History, Settings, Step, plain};
use crate::exchange::{Clocked, Sweep};
use crate::gateway::tests::{gateway, route, table};
use crate::gateway::{Gateway, Hedging, Poison, PoisonSettings, PoolTarget, PoolTargetSettings, Route};
use crate::journal::Journal;
use crate::proxy::tests::{SimulatedMember, listen, simulated_address};
use crate::proxy::{Endpoint, Meter};
use crate::route::Table;

/// All requests of a history end within this time.
const LONGEST: Duration = Duration::from_secs(300);
/// After this time members that hang have been given up, and members that failed get requests again.
const REST: Duration = Duration::from_secs(60);
/// The program looks for connections that are closed about as often.
const PRUNES: Duration = Duration::from_secs(1);

/// The time limits of the requests at the end of a history.
const AT_REST: u64 = 20_000;
/// Their first number.
const FIRST_AT_REST: u64 = 5_000;

pub struct World {
    settings: Settings,
    record: SharedRecord,
    gateway: Arc<Gateway>,
    pool: Pool<Endpoint>,
    meter: Arc<Meter>,
    poison: Arc<Poison>,
    members: Vec<Arc<Member>>,
    _memberships: Vec<Membership<Endpoint>>,
    sweep: Sweep,
    clients: Vec<(u64, JoinHandle<()>)>,
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn pool_settings(settings: &Settings) -> PoolSettings {
    PoolSettings {
        queue_limit: settings.queue_limit,
        policy: if settings.is_tame { Policy::Fifo } else { Policy::Adaptive },
        backoff: BackoffSettings { min: millis(10), max: millis(300) },
        eject: EjectSettings { failures: settings.failures, min: millis(200), max: millis(800), share: 50 },
        fair: settings.hangs_up,
        ..PoolSettings::default()
    }
}

impl World {
    pub fn new(history: &History, record: SharedRecord, journal: Journal) -> Self {
        let settings = history.settings.clone();
        let (pool, meter) = (Pool::new("app", pool_settings(&settings)), Arc::new(Meter::new(1)));
        let poison = PoisonSettings {
            kills: 0,
            keep_off: millis(1_000),
            crowded: false,
            suspect_after: millis(1_000),
            request_timeout: millis(1_000),
        };
        let poison = Arc::new(Poison::new("app".into(), poison, journal, None));
        let new = |number| Member::new(number, history.seed, &settings, record.clone());
        let members: Vec<_> = (0..settings.slots.len()).map(new).collect();
        listen(members.iter().map(|member| member.clone() as Arc<dyn SimulatedMember>).collect());
        let join = |(number, slots): (usize, &usize)| {
            let connector = simulated_address(number).into();
            let label = number.to_string().into();
            pool.join(Endpoint::new(connector, label, meter.clone(), 1, None), *slots)
        };
        let memberships = settings.slots.iter().enumerate().map(join).collect();
        let gateway = Arc::new(gateway(Table::default(), 1 << 20, 1 << 30));
        let sweep = Sweep::new();
        tokio::spawn(sweep.clone().run());
        let (world_pool, clients) = (pool.clone(), vec![]);
        let world = Self {
            settings,
            record,
            gateway,
            pool: world_pool,
            meter,
            poison,
            members,
            _memberships: memberships,
            sweep,
            clients,
        };
        spawn_local(async move {
            let mut ticks = interval(PRUNES);
            loop {
                ticks.tick().await;
                pool.each_endpoint(|endpoint| endpoint.prune(0));
            }
        });
        world.route_by(&world.settings);
        world
    }

    /// From now on all requests follow these settings.
    fn route_by(&self, settings: &Settings) {
        let target = PoolTargetSettings {
            queue_timeout: millis(settings.queue_timeout),
            request_timeout: millis(settings.request_timeout),
            connect_timeout: millis(settings.connect_timeout),
            hang_timeout: None,
            hangs_up_at_once: settings.hangs_up,
            tunnel_idle_timeout: REST,
            response_idle_timeout: REST,
            stream_idle_timeout: REST,
            limits: Limits::default(),
            max_interim_answers: MOST_INTERIMS,
        };
        let (pool, meter, poison) = (self.pool.clone(), self.meter.clone(), self.poison.clone());
        let mut target = PoolTarget::new(pool, meter, poison, target);
        let hedge =
            settings.hedge.map(|after| Hedge { after: HedgeAfter::Time(millis(after)), budget: Share(500) });
        target.hedge = Hedging::new(hedge.as_ref(), None).map(|hedging| hedging.of_route("*"));
        let route = Route { streams_body: settings.streams_body, ..route(target) };
        self.gateway.routes.store(Arc::new(table(Arc::new(route))));
        self.pool.update(pool_settings(settings));
    }

    /// Carries out the steps. Returns the first rule that was broken.
    pub async fn play(mut self, history: &History, at: &Cell<usize>) -> Checked {
        for (index, step) in history.steps.iter().enumerate() {
            at.set(index);
            lock(&self.record).tell(|| format!("step {index}: {step:?}"));
            self.take(step).await;
            self.so_far()?;
        }
        at.set(history.steps.len());
        self.end().await?;
        self.come_to_rest().await
    }

    fn so_far(&self) -> Checked {
        lock(&self.record).error.take().map_or(Ok(()), Err)
    }

    async fn take(&mut self, step: &Step) {
        let now = Instant::now();
        match step {
            Step::Ask(ask) => self.ask(ask),
            Step::Outage { member, long, is_silent } => {
                self.members[*member].fail_until(now + millis(*long), *is_silent);
            }
            Step::CloseIdle { member, after } => {
                self.members[*member].order(IdleOrder::Close(millis(*after)));
            }
            Step::Unasked { member } => self.members[*member].order(IdleOrder::Unasked),
            Step::Pass(long) => sleep_until(now + millis(*long)).await,
        }
    }

    fn ask(&mut self, ask: &Ask) {
        let facts = Facts { ask: ask.clone(), attempts: vec![], lost: 0 };
        lock(&self.record).facts.insert(ask.id, facts);
        let (record, settings) = (self.record.clone(), self.settings.clone());
        let (ask, gateway, sweep) = (ask.clone(), self.gateway.clone(), self.sweep.clone());
        let id = ask.id;
        let client = spawn_local(Clocked::new(async move {
            let ended = client::send(ask.clone(), gateway, sweep).await;
            let is_whole = matches!(ended.end, End::Whole(_));
            let mut record = lock(&record);
            record.judge(&ask, &ended, &settings);
            record.note(ensure(is_whole || ask.id < FIRST_AT_REST, || {
                format!("at rest, a plain request has no answer: {:?}", ended.end)
            }));
        }));
        self.clients.push((id, client));
    }

    /// Waits for the ends of all requests.
    async fn end(&mut self) -> Checked {
        let until = Instant::now() + LONGEST;
        for (id, client) in self.clients.drain(..) {
            let left = until.saturating_duration_since(Instant::now());
            match timeout(left, client).await {
                Ok(Ok(())) => {}
                Ok(Err(panic)) => return Err(format!("the task of request {id} ends: {panic}")),
                Err(_) => return Err(format!("request {id} has no end in {LONGEST:?}")),
            }
        }
        self.so_far()
    }

    /// Nothing is left, and all slots of all members work.
    async fn come_to_rest(&mut self) -> Checked {
        sleep_until(Instant::now() + REST).await;
        self.nothing_is_left()?;
        let at_rest = Settings {
            queue_timeout: AT_REST,
            request_timeout: AT_REST,
            hedge: None,
            queue_limit: 100,
            is_tame: true,
            ..self.settings.clone()
        };
        self.route_by(&at_rest);
        self.settings = at_rest;
        let slots: usize = self.settings.slots.iter().sum();
        // A member that was ejected gets one request first.
        for round in 0..2 {
            lock(&self.record).peaks.fill(0);
            for number in 0..slots {
                self.ask(&plain(FIRST_AT_REST + (round * slots + number) as u64));
            }
            self.end().await?;
            sleep_until(Instant::now() + millis(100)).await;
        }
        let peaks = lock(&self.record).peaks.clone();
        ensure(peaks == self.settings.slots, || {
            format!("members with {:?} slots get {peaks:?} requests at once", self.settings.slots)
        })?;
        self.nothing_is_left()
    }

    fn nothing_is_left(&self) -> Checked {
        let snapshot = self.pool.snapshot();
        ensure(snapshot.in_use == 0 && snapshot.queue_length == 0, || {
            format!(
                "at rest {} slots are taken, and {} requests wait",
                snapshot.in_use, snapshot.queue_length
            )
        })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        listen(vec![]);
    }
}
