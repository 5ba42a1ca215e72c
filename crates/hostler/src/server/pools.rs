//! Running pools: started from their settings, and changed while they run. Knows no routes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use hostler_config::{self as config, Config, LowIf, PoolMembers};
use hostler_dispatch::{Membership, Pool};
use hostler_engine::gateway::{
    ExpectedCosts, FairKeys, Hedging, LimitScope, Poison, RateLimiter, Stickiness, low_requests,
};
use hostler_engine::journal::Journal;
use hostler_engine::proxy::{CheckSettings, Checking, Endpoint, MemberNews, Meter, OnHang, OwnWorker};
use hostler_worker::{Supervisor, SupervisorContext, WorkerSettings};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::pool_context::PoolContext;
use super::probe::{HttpProbe, wire_address};
use super::settings;
use super::start_error::StartError;
use crate::admin::PoolSource;

/// A running pool. The parts in an `Arc` are shared with the version of the pool after a reload.
#[derive(Clone)]
pub(super) struct RunningPool {
    pub name: Arc<str>,
    pub pool: Pool<Endpoint>,
    pub meter: Arc<Meter>,
    pub poison: Arc<Poison>,
    /// None if `sticky` is off.
    pub sticky: Option<Arc<Stickiness>>,
    /// None if the pool serves in order of arrival.
    pub fair: Option<Arc<FairKeys>>,
    /// None if the pool does not serve short requests first.
    pub costs: Option<Arc<ExpectedCosts>>,
    /// Which requests get low priority.
    pub low: Arc<[LowIf]>,
    /// The limit that all its configured routes share.
    pub rate_limit: Option<Arc<RateLimiter>>,
    /// None if no request is sent to a second member.
    pub hedging: Option<Arc<Hedging>>,
    /// The newest release of which a worker has joined. 0 without workers.
    pub newest_release: Arc<AtomicU64>,
    pub settings: config::Pool,
    pub supervisor: Option<Arc<Supervisor>>,
    /// Members that Hostler does not run. Removing one from the map makes it leave the pool.
    members: Arc<Mutex<BTreeMap<config::Endpoint, Joined>>>,
    /// Ends a pause that is not ended by a command.
    pause_timer: Arc<Mutex<Option<JoinHandle<()>>>>,
    threads: usize,
    journal: Journal,
}

/// A member that Hostler does not run.
struct Joined {
    membership: Membership<Endpoint>,
    checking: Option<Checking>,
}

pub(super) fn start_all(config: &Config, pool_context: &PoolContext) -> Result<Vec<RunningPool>, StartError> {
    config.pools.iter().map(|pool| RunningPool::start(config, pool, pool_context, None)).collect()
}

/// Fails if a paused pool has a `fate` that ends the pause, such as `would be removed`. None: the pool stays. The error is a part of a sentence.
pub(super) fn keep_pauses(
    pools: &[RunningPool],
    fate: impl Fn(&RunningPool) -> Option<&'static str>,
) -> Result<(), String> {
    let mut paused = pools.iter().filter(|pool| pool.pool.is_paused());
    match paused.find_map(|pool| Some((&pool.name, fate(pool)?))) {
        Some((name, fate)) => Err(format!("pool {name} is paused and {fate}: resume it first")),
        None => Ok(()),
    }
}

impl RunningPool {
    /// Starts a pool. Its workers are booting when this returns. `before`: the pool that it replaces. What is known of clients stays: how much
    /// of their limits they have used, and where their sessions are. If both have members, what requests have cost stays, too.
    pub fn start(
        config: &Config,
        written: &config::Pool,
        pool_context: &PoolContext,
        before: Option<&Self>,
    ) -> Result<Self, StartError> {
        let limit = before.and_then(|pool| pool.rate_limit.as_ref());
        let hedging = before.and_then(|pool| pool.hedging.as_ref());
        let stickiness = before.and_then(|pool| pool.sticky.as_deref());
        // The ledger of a pool of workers has CPU times, which members do not have.
        let has_members = |source: &PoolMembers| matches!(source, PoolMembers::Members(_));
        let same = before.filter(|pool| has_members(&pool.settings.source) && has_members(&written.source));
        let meter = same.map(|pool| pool.meter.clone());
        let name: Arc<str> = written.name.as_str().into();
        let mut new = Self {
            pool: Pool::new(name.clone(), settings::pool(written)),
            poison: Arc::new(poison(&name, (config, written), pool_context, None)),
            sticky: sticky(&name, written, pool_context, stickiness),
            fair: FairKeys::new(&written.queue.fair, same.and_then(|pool| pool.fair.as_ref())),
            costs: ExpectedCosts::new(written.queue.short_first, same.and_then(|pool| pool.costs.as_ref())),
            low: low_requests(&written.queue.low),
            rate_limit: RateLimiter::new(LimitScope::Pool, &name, written.rate_limit.as_ref(), limit),
            hedging: Hedging::new(written.hedge.as_ref(), hedging),
            name,
            meter: meter.unwrap_or_else(|| Arc::new(Meter::new(pool_context.threads))),
            newest_release: Arc::default(),
            settings: written.clone(),
            supervisor: None,
            members: Arc::default(),
            pause_timer: Arc::default(),
            threads: pool_context.threads,
            journal: pool_context.journal.clone(),
        };
        new.pool.charge_idle_to(new.meter.ledger.clone());
        match &written.source {
            PoolMembers::Members(members) => new.set_members(members),
            PoolMembers::Workers(workers) => {
                let context = pool_context.context(&config.server)?;
                let wanted = settings::workers(config, workers, pool_context);
                new.supervisor = Some(new.supervise(wanted, context, &pool_context.instance));
            }
        }
        Ok(new)
    }

    /// The same pool with other settings, if they can change while it runs. [`Self::settle`] applies them.
    pub fn take(&self, config: &Config, written: &config::Pool, pool_context: &PoolContext) -> Option<Self> {
        let can = match (&self.settings.source, &written.source) {
            // Existing connections to a member are useless if the way to connect has changed.
            (PoolMembers::Members(old), PoolMembers::Members(new)) => {
                (old.protocol, &old.tls) == (new.protocol, &new.tls)
            }
            (PoolMembers::Workers(_), PoolMembers::Workers(_)) => true,
            _ => false,
        };
        let before = &self.settings;
        let same_poison = (&before.poison, settings::is_crowded(before))
            == (&written.poison, settings::is_crowded(written));
        can.then(|| Self {
            poison: match same_poison {
                true => self.poison.clone(),
                false => Arc::new(poison(&self.name, (config, written), pool_context, Some(&self.poison))),
            },
            sticky: match before.sticky == written.sticky {
                true => self.sticky.clone(),
                false => sticky(&self.name, written, pool_context, self.sticky.as_deref()),
            },
            fair: FairKeys::new(&written.queue.fair, self.fair.as_ref()),
            costs: ExpectedCosts::new(written.queue.short_first, self.costs.as_ref()),
            low: low_requests(&written.queue.low),
            rate_limit: RateLimiter::new(
                LimitScope::Pool,
                &self.name,
                written.rate_limit.as_ref(),
                self.rate_limit.as_ref(),
            ),
            hedging: Hedging::new(written.hedge.as_ref(), self.hedging.as_ref()),
            settings: written.clone(),
            ..self.clone()
        })
    }

    /// Applies the settings, except those of workers.
    pub fn settle(&self, config: &Config) {
        self.pool.update(settings::pool(&self.settings));
        // What is suspected stays suspected.
        self.poison.follow(settings::poison(config, &self.settings));
        if let PoolMembers::Members(members) = &self.settings.source {
            self.set_members(members);
        }
    }

    /// Whether running workers must be replaced for the settings. Changes nothing.
    pub fn must_replace_workers(&self, config: &Config, pool_context: &PoolContext) -> bool {
        let wanted = self.wanted_workers(config, pool_context);
        wanted.is_some_and(|(supervisor, wanted)| supervisor.must_restart_for(&wanted))
    }

    /// Applies the settings of workers, as far as that is possible without replacing them.
    pub fn settle_workers(&self, config: &Config, pool_context: &PoolContext) {
        if let Some((supervisor, wanted)) = self.wanted_workers(config, pool_context) {
            supervisor.update(wanted);
        }
    }

    /// None for a pool whose members Hostler does not run.
    fn wanted_workers(
        &self,
        config: &Config,
        pool_context: &PoolContext,
    ) -> Option<(&Arc<Supervisor>, WorkerSettings)> {
        let (Some(supervisor), PoolMembers::Workers(workers)) = (&self.supervisor, &self.settings.source)
        else {
            return None;
        };
        Some((supervisor, settings::workers(config, workers, pool_context)))
    }

    /// Holds requests until [`Self::resume`], or for `longest` at most; then `told` is called.
    pub fn pause(&self, longest: Duration, told: impl FnOnce() + Send + 'static) {
        self.pool.pause();
        let pool = self.pool.clone();
        let timer = tokio::spawn(async move {
            sleep(longest).await;
            pool.resume();
            told();
        });
        self.set_timer(Some(timer));
    }

    pub fn resume(&self) {
        self.set_timer(None);
        self.pool.resume();
    }

    /// The pool or Hostler ends: what an operator has held up goes on. Requests would wait for it until their time limit.
    pub fn let_go(&self) {
        self.resume();
        self.supervisor.iter().for_each(|supervisor| supervisor.end_drains());
    }

    fn set_timer(&self, timer: Option<JoinHandle<()>>) {
        let mut current = self.pause_timer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *current, timer) {
            before.abort();
        }
    }

    pub fn source(&self) -> PoolSource {
        PoolSource {
            name: self.name.clone(),
            pool: self.pool.clone(),
            meter: self.meter.clone(),
            poison: self.poison.clone(),
            sticky: self.sticky.clone(),
            fair: self.fair.clone(),
            rate_limit: self.rate_limit.clone(),
            hedging: self.hedging.clone(),
            costs: self.costs.clone(),
            supervisor: self.supervisor.clone(),
        }
    }

    /// Joins those that are new, drops those that are gone; the others stay as they are.
    fn set_members(&self, wanted: &config::Members) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.retain(|member, _| wanted.endpoints.contains(member));
        for member in &wanted.endpoints {
            let joined = members.entry(member.clone()).or_insert_with(|| Joined {
                membership: self.pool.join(self.endpoint(member, wanted), wanted.slots),
                checking: None,
            });
            joined.membership.set_slots(wanted.slots);
            joined.check(settings::health_check(member, wanted));
        }
    }

    fn endpoint(&self, member: &config::Endpoint, all: &config::Members) -> Endpoint {
        let (connector, label) = (settings::connector(member, all), member.to_string().into());
        let mut endpoint = Endpoint::new(connector, label, self.meter.clone(), self.threads, None);
        endpoint.news = Some(MemberNews { journal: self.journal.clone(), pool: self.name.clone() });
        endpoint
    }

    fn supervise(
        &self,
        wanted: WorkerSettings,
        context: SupervisorContext,
        instance: &Arc<str>,
    ) -> Arc<Supervisor> {
        let (meter, threads, instance) = (self.meter.clone(), self.threads, instance.clone());
        let newest_release = self.newest_release.clone();
        Arc::new_cyclic(|supervisor: &Weak<Supervisor>| {
            let supervisor = supervisor.clone();
            let on_hang: OnHang = Arc::new(move |member| {
                if let Some(supervisor) = supervisor.upgrade() {
                    supervisor.hung(member);
                }
            });
            let endpoint = move |address: hostler_worker::WorkerAddress,
                                 facts: hostler_worker::WorkerFacts| {
                let label = facts.index.to_string().into();
                // A spare that joins again is the same process.
                let process = format!("{instance} {} {}", facts.index, facts.generation).into();
                let ours = OwnWorker { on_hang: on_hang.clone(), exit_watch: facts.exit_watch };
                let mut endpoint =
                    Endpoint::new(wire_address(&address).into(), label, meter.clone(), threads, Some(ours));
                endpoint.process = Some(process);
                endpoint.release = facts.release;
                newest_release.fetch_max(facts.release, Ordering::Relaxed);
                endpoint
            };
            Supervisor::start(wanted, self.pool.clone(), endpoint, Arc::new(HttpProbe), context)
        })
    }
}

impl Joined {
    /// Changes the health check. Without one, the member counts as healthy.
    fn check(&mut self, wanted: Option<CheckSettings>) {
        if self.checking.as_ref().map(|checking| &checking.settings) == wanted.as_ref() {
            return;
        }
        // The old check ends before the new one starts.
        self.checking = None;
        match wanted {
            Some(settings) => self.checking = Some(Checking::begin(&self.membership, settings)),
            None => Checking::forget(&self.membership),
        }
    }
}

fn poison(
    name: &Arc<str>,
    (config, written): (&Config, &config::Pool),
    pool_context: &PoolContext,
    before: Option<&Poison>,
) -> Poison {
    Poison::new(name.clone(), settings::poison(config, written), pool_context.journal.clone(), before)
}

fn sticky(
    name: &Arc<str>,
    written: &config::Pool,
    pool_context: &PoolContext,
    before: Option<&Stickiness>,
) -> Option<Arc<Stickiness>> {
    Stickiness::new(name, &written.sticky, &pool_context.sticky_key, before).map(Arc::new)
}
