use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use hostler_worker::{HeapUse, WorkerMemory, WorkerState};
use jiff::{SignedDuration, Timestamp};

use super::scene::{AdviceCase, Scene, found_at_start};
use super::*;
use crate::admin::LastReload;

const MIB: u64 = 1 << 20;

fn second() -> Duration {
    Duration::from_secs(1)
}

fn reload(ok: bool) -> Option<LastReload> {
    let text = vec!["hostler.toml:3: unknown key `worker`".to_owned()];
    Some(LastReload { at: Timestamp::UNIX_EPOCH, ok, text })
}

fn certificate(scene: &mut Scene, hours: i64) {
    let until = scene.now.time.checked_add(SignedDuration::from_hours(hours)).unwrap();
    scene.now.certificates = vec![("tls/shop.pem".into(), until)];
}

fn all_cpus_busy(scene: &mut Scene) {
    scene.now.machine.busy_ms = scene.before.machine.busy_ms.map(|busy| busy + 60_000 * 4);
}

fn not_ready(scene: &mut Scene) {
    for worker in scene.web().workers.as_mut().unwrap() {
        (worker.state, worker.last_error) =
            (WorkerState::BackingOff, Some("exit code 1: no database".into()));
    }
}

fn one_worker(scene: &mut Scene) {
    scene.web().workers.as_mut().unwrap().truncate(1);
    scene.died(&[30], None, false);
}

fn uneven_cache(scene: &mut Scene) {
    scene.route().cache = [("hit", 100), ("miss", 900)].into();
}

const QUEUES: &[AdviceCase] = &[
    AdviceCase {
        row: table::TOO_FEW_WORKERS,
        raised: |scene| scene.waited(0.5, 0.05),
        text: "web: queue wait p99 is 10 x the worker time (496 ms and 50 ms)",
        quiet: &[
            |scene| scene.waited(0.5, 0.4),
            |scene| scene.waited(0.05, 0.001),
            all_cpus_busy_and_waiting,
            |scene| {
                scene.waited(0.5, 0.05);
                scene.web().counters.queued = 19;
            },
            |scene| {
                scene.waited(0.5, 0.05);
                scene.web().deploying = true;
            },
            |scene| {
                scene.waited(0.5, 0.05);
                scene.first().slots_reason = Some("requests wait: use concurrency = \"auto\"".into());
            },
        ],
    },
    AdviceCase {
        row: table::CPU_EXHAUSTED,
        raised: all_cpus_busy_and_waiting,
        text: "web: queue wait p99 is 10 x the worker time (496 ms and 50 ms), and the CPUs are 100 % busy",
        quiet: &[all_cpus_busy, |scene| scene.waited(0.5, 0.05)],
    },
    AdviceCase {
        row: table::OVERLOADED,
        raised: |scene| scene.web().counters.refused_overload = 12,
        text: "web: 12 requests of the last minute were refused, because more work comes than the pool can do",
        quiet: &[
            |scene| scene.web().counters.refused_overload = 9,
            |scene| {
                scene.web().counters.refused_overload = 5000;
                scene.before.pools[0].counters.refused_overload = 5000;
            },
        ],
    },
    AdviceCase {
        row: table::QUEUE_FULL,
        raised: |scene| scene.web().counters.refused_full = 10,
        text: "web: 10 requests of the last minute found the queue full (limit 100)",
        quiet: &[|scene| scene.web().counters.refused_full = 9],
    },
    AdviceCase {
        row: table::QUEUE_TIMEOUT,
        raised: |scene| scene.web().counters.expired = 40,
        text: "web: 40 requests of the last minute waited for a slot until their time was over",
        quiet: &[|scene| scene.web().counters.expired = 9],
    },
    AdviceCase {
        row: table::TOO_MANY_TUNNELS,
        raised: |scene| scene.web().counters.refused_tunnels = 7,
        text: "web: 7 requests of the last minute were refused, because each worker has its most tunnels or streams",
        quiet: &[|scene| scene.web().counters.refused_streams = 4],
    },
    AdviceCase {
        row: table::POOL_PAUSED,
        raised: |scene| {
            let web = scene.web();
            (web.paused, web.queue_length, web.oldest_wait) = (true, 8, 90 * second());
        },
        text: "web: the pool is paused, and 8 requests wait, the oldest for 90 s",
        quiet: &[|scene| scene.web().paused = true, |scene| scene.web().queue_length = 8],
    },
    AdviceCase {
        row: table::NO_READY_WORKER,
        raised: not_ready,
        text: "web: no worker is ready: exit code 1: no database",
        quiet: &[
            |scene| scene.first().state = WorkerState::BackingOff,
            |scene| {
                not_ready(scene);
                scene.web().asleep = true;
            },
        ],
    },
    AdviceCase {
        row: table::MEMBERS_OUT,
        raised: |scene| scene.api().members[1].out = Some("unhealthy: status 503".into()),
        text: "api: 1 of 3 members get no requests: 10.0.0.2:80 (unhealthy: status 503)",
        quiet: &[|scene| scene.api().members.truncate(1)],
    },
];

fn all_cpus_busy_and_waiting(scene: &mut Scene) {
    scene.waited(0.5, 0.05);
    all_cpus_busy(scene);
}

const WORKERS: &[AdviceCase] = &[
    AdviceCase {
        row: table::WORKER_RESTARTS,
        raised: |scene| {
            scene.died(&[100, 60, 20], None, false);
            scene.first().last_exit = Some("exit code 1".into());
        },
        text: "web/1 died 3 times in 15 minutes, every 40 s (exit code 1)",
        quiet: &[
            |scene| scene.died(&[60, 20], None, false),
            |scene| scene.died(&[100, 60, 20], None, true),
            |scene| scene.died(&[100, 60, 20], Some(480 * MIB), false),
        ],
    },
    AdviceCase {
        row: table::WORKER_LEAKS,
        raised: |scene| scene.died(&[100, 60, 20], Some(480 * MIB), true),
        text: "web/1 restarts every 40 s after 480 MiB: a leak?",
        quiet: &[
            |scene| scene.died(&[60, 20], Some(480 * MIB), false),
            |scene| scene.died(&[100, 60, 20], None, false),
        ],
    },
    AdviceCase {
        row: table::BOOTS_FAIL,
        raised: |scene| {
            let first = scene.first();
            (first.state, first.crashes) = (WorkerState::BackingOff, 4);
            first.last_error = Some("not ready within 30s".into());
        },
        text: "web/1 did not stay up 4 times in a row: not ready within 30s",
        quiet: &[
            |scene| scene.first().crashes = 4,
            |scene| (scene.first().state, scene.first().crashes) = (WorkerState::BackingOff, 2),
        ],
    },
    AdviceCase {
        row: table::HEAP_FULL,
        raised: |scene| scene.first().heap = Some(HeapUse { used: 1900 * MIB, limit: 2048 * MIB }),
        text: "web/1 uses 92 % of its heap limit 2.0 GiB: at the limit it ends",
        quiet: &[|scene| scene.first().heap = Some(HeapUse { used: 1800 * MIB, limit: 2048 * MIB })],
    },
    AdviceCase {
        row: table::EVENT_LOOP_BLOCKED,
        raised: |scene| {
            (scene.first().loop_delay, scene.first().in_use) = (Some(second() / 2), 3);
        },
        text: "web/1 blocks its event loop: 1 of 100 answers takes 500 ms or longer",
        quiet: &[
            |scene| (scene.first().loop_delay, scene.first().in_use) = (Some(second() / 2), 1),
            |scene| (scene.first().loop_delay, scene.first().in_use) = (Some(second() / 6), 3),
        ],
    },
    AdviceCase {
        row: table::CONCURRENCY,
        raised: |scene| {
            let reason = "requests wait for one of 1 slots: use concurrency = \"auto\"";
            scene.first().slots_reason = Some(reason.into());
        },
        text: "web: requests wait for one of 1 slots",
        quiet: &[|scene| scene.first().slots_reason = Some("event loop observed, 3 % busy".into())],
    },
    AdviceCase {
        row: table::WORKERS_HANG,
        raised: |scene| {
            scene.past.hangs = [second(), second() * 60].into();
            scene.first().hung_ago = Some(second());
            scene.first().stack = Some("render (/app/page.js:10)".into());
        },
        text: "web: workers hung 2 times in 15 minutes, web/1 last in render (/app/page.js:10)",
        quiet: &[|scene| {
            scene.past.hangs = [second()].into();
            scene.first().hung_ago = Some(second());
        }],
    },
    AdviceCase {
        row: table::REQUESTS_KILL,
        raised: |scene| scene.web().kept_off = vec!["GET /report".into(), "GET /x".into()],
        text: "web: workers died of GET /report and 1 others, so Hostler refuses it",
        quiet: &[|scene| scene.web().kept_off.clear()],
    },
    AdviceCase {
        row: table::ONE_WORKER,
        raised: one_worker,
        text: "web: the only worker died, and requests waited until it had booted again",
        quiet: &[
            |scene| scene.died(&[30], None, false),
            |scene| {
                one_worker(scene);
                scene.web().spares = 1;
            },
        ],
    },
    AdviceCase {
        row: table::BOOTS_HELD_UP,
        raised: |scene| scene.web().boots.held_up = 3,
        text: "web: 3 boots of the last minute had to wait, because boots after deaths use up restart_cpu",
        quiet: &[|scene| scene.web().boots.held_up = 2],
    },
    AdviceCase {
        row: table::RESTART_FAILED,
        raised: |scene| scene.web().failed_restart = Some("worker 1: exit code 1".into()),
        text: "web: the last restart failed, and the old workers stay: worker 1: exit code 1",
        quiet: &[|scene| scene.web().deploying = true],
    },
];

const RESPONSES: &[AdviceCase] = &[
    AdviceCase {
        row: table::APP_ERRORS,
        raised: |scene| scene.route().failed = 600,
        text: "/shop/*: 10 % of the responses of the last minute were errors (5xx) of the app",
        quiet: &[
            |scene| scene.route().failed = 200,
            |scene| (scene.route().answers, scene.route().failed) = (9, 9),
            |scene| {
                scene.route().failed = 600;
                scene.route().refusals = [("overloaded", 600)].into();
            },
        ],
    },
    AdviceCase {
        row: table::REFUSALS,
        raised: |scene| {
            scene.route().failed = 600;
            scene.route().refusals = [("answer_timeout", 600)].into();
        },
        text: "/shop/*: 10 % of the responses of the last minute were refused: answer_timeout. Make the app faster, or raise `request_timeout` of the route or of the pool",
        quiet: &[
            |scene| scene.route().refusals = [("answer_timeout", 200)].into(),
            |scene| scene.route().refusals = [("bad_head", 3000)].into(),
            |scene| scene.route().refusals = [("overloaded", 3000)].into(),
            |scene| scene.route().refusals = [("stopping", 3000)].into(),
        ],
    },
    AdviceCase {
        row: table::FALLBACKS,
        raised: |scene| scene.route().fallbacks = [("queue_timeout", 900), ("unreachable", 1)].into(),
        text: "/shop/*: 15 % of the responses of the last minute were the fallback, mostly because of queue_timeout",
        quiet: &[|scene| scene.route().fallbacks = [("queue_timeout", 9)].into()],
    },
];

const HOST: &[AdviceCase] = &[
    AdviceCase {
        row: table::NOT_READY,
        raised: |scene| {
            (scene.now.health_failed, scene.now.not_ready) = (3, vec!["pool web has no ready member".into()]);
        },
        text: "health checks get 503: pool web has no ready member",
        quiet: &[
            |scene| scene.now.not_ready = vec!["pool web has no ready member".into()],
            |scene| scene.now.health_failed = 3,
        ],
    },
    AdviceCase {
        row: table::DESCRIPTORS_LOW,
        raised: |scene| scene.now.open_files = Some(60_000),
        text: "60000 of 65536 file descriptors are open",
        quiet: &[|scene| scene.now.open_files = Some(50_000), |scene| scene.now.max_files = None],
    },
    AdviceCase {
        row: table::LOG_DROPPED,
        raised: |scene| scene.now.log_dropped = 7,
        text: "7 lines of the log were lost in the last minute: its reader is too slow",
        quiet: &[
            |scene| (scene.before.log_dropped, scene.now.log_dropped) = (7, 7),
            |scene| scene.now.log_stuck = Some(second()),
        ],
    },
    AdviceCase {
        row: table::MEMORY_LOW,
        raised: |scene| scene.now.machine.memory_used = Some(7800 * MIB),
        text: "7.6 GiB of 8.0 GiB memory are in use",
        quiet: &[|scene| scene.now.machine.memory_used = Some(7000 * MIB)],
    },
    AdviceCase {
        row: table::WORKER_MEMORY_FULL,
        raised: |scene| scene.now.worker_memory = Some(WorkerMemory { limit: 1000 * MIB, used: 960 * MIB }),
        text: "workers use 960 MiB of 1000 MiB (server.worker_memory)",
        quiet: &[|scene| scene.now.worker_memory = Some(WorkerMemory { limit: 1000 * MIB, used: 940 * MIB })],
    },
    AdviceCase {
        row: table::DISK_LOW,
        raised: |scene| scene.now.machine.temp_free = Some(100 * MIB),
        text: "the disk of server.temp_dir has 100 MiB left",
        quiet: &[
            |scene| scene.now.machine.temp_free = Some(300 * MIB),
            |scene| (scene.now.machine.temp_free, scene.now.spool.limit) = (Some(100 * MIB), 50 * MIB),
        ],
    },
    AdviceCase {
        row: table::SPOOL_FULL,
        raised: |scene| scene.now.spool.full = 5,
        text: "the temporary files had no room 5 times in the last minute (server.spool_size 1.0 GiB)",
        quiet: &[|scene| scene.now.spool.full = 4],
    },
    AdviceCase {
        row: table::REQUEST_MEMORY_FULL,
        raised: |scene| scene.now.request_memory.refused = 10,
        text: "10 request bodies of the last minute found no room in memory (server.request_memory 64 MiB)",
        quiet: &[|scene| scene.now.request_memory.refused = 9],
    },
    AdviceCase {
        row: table::CERTIFICATE_EXPIRES,
        raised: |scene| certificate(scene, 13 * 24 + 1),
        text: "tls/shop.pem: the certificate expires in 13 days",
        quiet: &[|scene| certificate(scene, 14 * 24 + 1)],
    },
    AdviceCase {
        row: table::RELOAD_FAILED,
        raised: |scene| scene.now.last_reload = reload(false),
        text: "the last reload was not applied: hostler.toml:3: unknown key `worker`",
        quiet: &[|scene| scene.now.last_reload = reload(true)],
    },
];

const PEERS: &[AdviceCase] = &[
    AdviceCase {
        row: table::CONNECTIONS_FULL,
        raised: |scene| scene.now.connections_refused = 30,
        text: "30 connections of the last minute were refused (server.max_connections)",
        quiet: &[|scene| scene.now.connections_refused = 9],
    },
    AdviceCase {
        row: table::CLIENT_LIMITS,
        raised: |scene| (scene.now.clients.refused_connections, scene.now.clients.counted) = (50, 1),
        text: "50 connections or requests of the last minute were refused, because one client had too many. Only one client address is connected: is it a load balancer?",
        quiet: &[|scene| scene.now.clients.refused_requests = 9],
    },
    AdviceCase {
        row: table::FLOODS,
        raised: |scene| scene.now.flooded = 5,
        text: "5 HTTP/2 connections of the last minute were closed because of a flood of frames",
        quiet: &[|scene| scene.now.flooded = 4],
    },
    AdviceCase {
        row: table::SLOW_CLIENTS,
        raised: |scene| (scene.now.cut.stalled, scene.now.cut.too_slow) = (6, 6),
        text: "12 responses of the last minute were cut off, because the client was too slow",
        quiet: &[|scene| scene.now.cut.stalled = 9],
    },
    AdviceCase {
        row: table::HANDSHAKES_FAIL,
        raised: |scene| scene.now.handshakes_failed = [("refused_by_client", 400)].into(),
        text: "400 connections of the last minute failed before their first request: refused_by_client",
        quiet: &[
            |scene| scene.now.handshakes_failed = [("refused_by_client", 60)].into(),
            |scene| scene.now.handshakes_failed = [("malformed", 4000), ("silent", 4000)].into(),
        ],
    },
    AdviceCase {
        row: table::CACHE_TOO_SMALL,
        raised: |scene| {
            uneven_cache(scene);
            scene.cache().evicted = 500;
        },
        text: "the full cache removed 500 responses in the last minute, and serves 10 % of the requests",
        quiet: &[
            uneven_cache,
            |scene| scene.cache().evicted = 500,
            |scene| {
                uneven_cache(scene);
                (scene.cache().evicted, scene.cache().bytes) = (500, MIB);
            },
        ],
    },
    AdviceCase {
        row: table::MEMCACHED_AWAY,
        raised: |scene| scene.cache().memcached[0].away = Some("connection refused".into()),
        text: "memcached 10.0.0.9:11211: away (connection refused)",
        quiet: &[|scene| scene.cache().memcached.clear()],
    },
    AdviceCase {
        row: table::MEMCACHED_SLOW,
        raised: |scene| (scene.cache().memcached[0].slow, scene.cache().memcached[0].answered) = (20, 180),
        text: "memcached 10.0.0.9:11211: 10 % of the lookups took longer than cache.timeout",
        quiet: &[
            |scene| (scene.cache().memcached[0].slow, scene.cache().memcached[0].answered) = (20, 1800),
            |scene| scene.cache().memcached[0].slow = 9,
        ],
    },
    AdviceCase {
        row: table::REGISTRAR_DISCONNECTED,
        raised: |scene| (scene.now.registrar, scene.now.registered_routes) = (Some(false), 12),
        text: "no connection to NATS: 12 registered routes stay as they are",
        quiet: &[|scene| scene.now.registrar = None],
    },
];

fn cases() -> impl Iterator<Item = &'static AdviceCase> {
    [QUEUES, WORKERS, RESPONSES, HOST, PEERS].into_iter().flatten()
}

#[test]
fn a_calm_server_gets_no_advice() {
    assert_eq!(Scene::calm().found(), []);
}

#[test]
fn each_advice_is_raised_by_its_figures_and_only_this_one() {
    for case in cases() {
        let mut scene = Scene::calm();
        (case.raised)(&mut scene);
        let found = scene.found();
        assert!(found.contains(&(case.row.id, case.text.to_owned())), "{}: {found:?}", case.row.id);
        let others = found.iter().filter(|(id, _)| *id != case.row.id);
        assert_eq!(others.collect::<Vec<_>>(), Vec::<&(&str, String)>::new(), "{}", case.row.id);
    }
}

#[test]
fn no_advice_is_raised_by_figures_that_are_just_not_enough() {
    for case in cases() {
        assert!(!case.quiet.is_empty(), "{}", case.row.id);
        for (n, quiet) in case.quiet.iter().enumerate() {
            let mut scene = Scene::calm();
            quiet(&mut scene);
            let found = scene.found();
            assert!(found.iter().all(|(id, _)| *id != case.row.id), "{}, {n}: {found:?}", case.row.id);
        }
    }
}

#[test]
fn every_advice_has_a_case() {
    let all: BTreeSet<_> = ADVICE.iter().map(|row| row.id).collect();
    let shown: BTreeSet<_> = cases().map(|case| case.row.id).collect();
    assert_eq!(all, shown);
    assert_eq!(ADVICE.len(), all.len(), "an id is used twice");
}

#[test]
fn a_server_that_drains_or_has_just_started_gets_no_advice_about_rates() {
    let mut scene = Scene::calm();
    scene.web().counters.refused_overload = 5000;
    scene.now.draining = true;
    assert_eq!(scene.found(), []);
    let mut scene = Scene::calm();
    scene.web().counters.refused_overload = 5000;
    assert_eq!(found_at_start(scene), 0);
}

#[test]
fn each_page_of_an_advice_exists_with_its_heading() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let rules = std::fs::read_to_string(docs.join("monitoring/hostler.rules.yml")).unwrap();
    for row in ADVICE {
        let (page, anchor) = row.page.split_once('#').unwrap_or((row.page, ""));
        let text = std::fs::read_to_string(docs.join(page)).unwrap_or_else(|_| panic!("{}: {page}", row.id));
        let mut anchors = text.lines().filter(|line| line.starts_with('#')).map(anchor_of);
        assert!(anchor.is_empty() || anchors.any(|found| found == anchor), "{}: {}", row.id, row.page);
        let alert = format!("alert: {}\n", row.alert);
        assert!(row.alert.is_empty() || rules.contains(&alert), "{}: {}", row.id, row.alert);
    }
}

/// As GitHub and mdBook make it: lower case, spaces as hyphens, without punctuation.
fn anchor_of(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
