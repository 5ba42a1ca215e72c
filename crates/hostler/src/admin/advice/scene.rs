//! Figures for tests: a calm server a minute ago and now, which each case changes.

use std::time::Duration;

use hostler_worker::WorkerState;
use jiff::Timestamp;

use super::figures::{CacheFigures, Figures, MemcachedFigures, PoolFigures, RouteFigures, WorkerFigures};
use super::history::{History, View, WorkerEnds, WorkerHistory};
use super::table::AdviceRow;
use super::times::TimeFigures;

/// The figures of three moments, and what is remembered of worker 1 of pool `web`.
pub(super) struct Scene {
    pub before: Figures,
    /// Ten seconds ago.
    pub recent: Figures,
    pub now: Figures,
    pub past: WorkerHistory,
}

/// One advice, figures that must raise it with the text, and figures that must not.
pub(super) struct AdviceCase {
    pub row: &'static AdviceRow,
    pub raised: fn(&mut Scene),
    pub text: &'static str,
    pub quiet: &'static [fn(&mut Scene)],
}

impl Scene {
    /// A server with load and without trouble.
    pub fn calm() -> Self {
        let (before, recent, mut now) = (at_rest(1000), at_rest(1050), at_rest(1060));
        load(&mut now, 6000);
        Self { before, recent, now, past: WorkerHistory::default() }
    }

    pub fn web(&mut self) -> &mut PoolFigures {
        &mut self.now.pools[0]
    }

    pub fn first(&mut self) -> &mut WorkerFigures {
        &mut self.web().workers.as_mut().unwrap()[0]
    }

    pub fn api(&mut self) -> &mut PoolFigures {
        &mut self.now.pools[1]
    }

    pub fn route(&mut self) -> &mut RouteFigures {
        &mut self.now.routes[0]
    }

    pub fn cache(&mut self) -> &mut CacheFigures {
        self.now.cache.as_mut().unwrap()
    }

    /// Requests waited about this long, and took the worker this long.
    pub fn waited(&mut self, wait: f64, work: f64) {
        let web = self.web();
        web.counters.queued += 3000;
        web.queue_wait = spread(6000, wait);
        web.worker_time = spread(6000, work);
    }

    /// Worker 1 died at these seconds before now, after it had grown.
    pub fn died(&mut self, ago: &[u64], grown_to: Option<u64>, recycled: bool) {
        let now = self.now.uptime;
        self.past.was_ready = true;
        self.past.deaths = ago
            .iter()
            .map(|ago| WorkerEnds { at: now - Duration::from_secs(*ago), times: 1, recycled, grown_to })
            .collect();
    }

    /// What the rules find: id and text.
    pub fn found(&self) -> Vec<(&'static str, String)> {
        let workers = [(("web".into(), 1), self.past.clone())].into();
        let view = View { now: &self.now, before: &self.before, recent: &self.recent, workers: &workers };
        super::advise(view).into_iter().map(|found| (found.row.id, found.text)).collect()
    }
}

/// What is found right after the start.
pub(super) fn found_at_start(scene: Scene) -> usize {
    let mut history = History::default();
    history.observe(scene.now);
    super::advise(history.view().unwrap()).len()
}

/// A server with two pools and no requests so far.
pub(super) fn at_rest(second: u64) -> Figures {
    let time = Timestamp::from_second(1_800_000_000 + second as i64).unwrap();
    let mut figures = Figures { uptime: Duration::from_secs(second), time, ..Figures::default() };
    figures.machine.cpus = Some(4.0);
    figures.machine.busy_ms = Some(second * 1000);
    (figures.machine.memory_used, figures.machine.memory_limit) = (Some(1 << 30), Some(8 << 30));
    figures.machine.temp_free = Some(50 << 30);
    (figures.open_files, figures.max_files) = (Some(200), Some(65536));
    (figures.spool.limit, figures.request_memory.limit) = (1 << 30, 64 << 20);
    let workers = Some((1..=3).map(worker).collect());
    figures.pools = vec![
        PoolFigures { name: "web".into(), queue_limit: 100, workers, ..PoolFigures::default() },
        PoolFigures { name: "api".into(), members: vec![Default::default(); 3], ..PoolFigures::default() },
    ];
    for (member, name) in
        figures.pools[1].members.iter_mut().zip(["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"])
    {
        member.name = name.into();
    }
    figures.routes =
        vec![RouteFigures { pattern: "/shop/*".into(), has_app: true, ..RouteFigures::default() }];
    let memcached = vec![MemcachedFigures { server: "10.0.0.9:11211".into(), ..MemcachedFigures::default() }];
    figures.cache = Some(CacheFigures { bytes: 60 << 20, limit: 64 << 20, evicted: 0, memcached });
    figures.registrar = Some(true);
    figures
}

pub(super) fn worker(index: usize) -> WorkerFigures {
    WorkerFigures {
        index,
        generation: 1,
        state: WorkerState::Ready,
        crashes: 0,
        last_exit: None,
        last_error: None,
        recycled: None,
        memory: Some(80 << 20),
        stack: None,
        hung_ago: None,
        loop_delay: Some(Duration::from_millis(5)),
        heap: None,
        in_use: 0,
        long_lived: 0,
        slots_reason: None,
    }
}

/// So many requests were served well.
fn load(figures: &mut Figures, requests: u64) {
    let pool = &mut figures.pools[0];
    pool.counters.granted = requests;
    pool.queue_wait = spread(requests, 0.001);
    pool.worker_time = spread(requests, 0.05);
    figures.routes[0].answers = requests;
    figures.routes[0].cache = [("hit", requests * 9 / 10), ("miss", requests / 10)].into();
    figures.handshakes = requests / 10;
}

fn spread(count: u64, seconds: f64) -> TimeFigures {
    let bounds = [0.001, 0.05, 0.1, 0.5, 1.0, 5.0];
    let at = bounds.iter().position(|bound| seconds <= *bound).unwrap();
    let buckets = bounds.iter().enumerate().map(|(n, bound)| (*bound, if n == at { count } else { 0 }));
    TimeFigures { count, sum: seconds * count as f64, buckets: buckets.collect() }
}
