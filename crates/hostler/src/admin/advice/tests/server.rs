//! Cases of advice about responses, the host, clients and services.

use hostler_worker::WorkerMemory;
use jiff::{SignedDuration, Timestamp};

use super::super::figures::CertificateFigures;
use super::super::scene::{AdviceCase, Scene};
use super::super::table;
use crate::admin::LastReload;

const MIB: u64 = 1 << 20;

fn reload(ok: bool) -> Option<LastReload> {
    let text = vec!["hostler.toml:3: unknown key `worker`".to_owned()];
    Some(LastReload { at: Timestamp::UNIX_EPOCH, ok, text })
}

/// One that is valid for so many hours in all.
fn valid_for(scene: &mut Scene, life: i64, left: SignedDuration) {
    let until = scene.now.time.checked_add(left).unwrap();
    let from = until.checked_sub(SignedDuration::from_hours(life)).unwrap();
    scene.now.certificates = vec![CertificateFigures { file: "tls/shop.pem".into(), from, until }];
}

fn certificate(scene: &mut Scene, hours: i64) {
    valid_for(scene, 90 * 24, SignedDuration::from_hours(hours));
}

fn uneven_cache(scene: &mut Scene) {
    scene.route().cache = [("hit", 100), ("miss", 900)].into();
}

pub(super) const RESPONSES: &[AdviceCase] = &[
    AdviceCase {
        row: table::APP_ERRORS,
        raised: |scene| scene.route().failed = 600,
        text: "/shop/*: 10 % of the responses of the last minute were errors (5xx) of the app",
        quiet: &[
            |scene| scene.route().failed = 200,
            |scene| (scene.route().answers, scene.route().failed) = (9, 9),
            // As of a maintenance page: `respond = { status = 503 }`.
            |scene| (scene.route().has_app, scene.route().failed) = (false, 6000),
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

pub(super) const HOST: &[AdviceCase] = &[
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
        raised: |scene| {
            (scene.now.log_dropped, scene.now.log_error) = (7, Some("No space left on device".into()));
        },
        text: "7 lines of the log were lost in the last minute: No space left on device",
        quiet: &[|scene| scene.now.log_error = Some("No space left on device".into())],
    },
    AdviceCase {
        row: table::LOG_DROPPED,
        raised: |scene| scene.now.log_dropped = 7,
        text: "7 lines of the log were lost in the last minute: the reader of the log is too slow",
        quiet: &[
            |scene| (scene.before.log_dropped, scene.now.log_dropped) = (7, 7),
            |scene| scene.now.log_stuck = Some(std::time::Duration::from_secs(1)),
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
        raised: |scene| {
            scene.now.worker_memory = Some(WorkerMemory { limit: 1000 * MIB, used: 960 * MIB });
            scene.now.has_ranges = true;
        },
        text: "workers use 960 MiB of 1000 MiB (server.worker_memory)",
        quiet: &[
            |scene| {
                scene.now.worker_memory = Some(WorkerMemory { limit: 1000 * MIB, used: 940 * MIB });
                scene.now.has_ranges = true;
            },
            |scene| scene.now.worker_memory = Some(WorkerMemory { limit: 1000 * MIB, used: 960 * MIB }),
        ],
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
        text: "10 requests of the last minute found no room in memory (server.request_memory 64 MiB)",
        quiet: &[|scene| scene.now.request_memory.refused = 9],
    },
    AdviceCase {
        row: table::CERTIFICATE_EXPIRES,
        raised: |scene| certificate(scene, 13 * 24 + 1),
        text: "tls/shop.pem: the certificate expires in 13 days",
        quiet: &[|scene| certificate(scene, 14 * 24 + 1)],
    },
    AdviceCase {
        row: table::CERTIFICATE_EXPIRES,
        raised: |scene| valid_for(scene, 90 * 24, SignedDuration::from_mins(59)),
        text: "tls/shop.pem: the certificate expires in less than an hour",
        quiet: &[|scene| certificate(scene, 14 * 24 + 1)],
    },
    AdviceCase {
        row: table::CERTIFICATE_EXPIRES,
        raised: |scene| valid_for(scene, 160, SignedDuration::from_hours(53)),
        text: "tls/shop.pem: the certificate expires in 2 days",
        quiet: &[
            |scene| valid_for(scene, 160, SignedDuration::from_hours(54)),
            |scene| valid_for(scene, 160, SignedDuration::from_hours(160)),
        ],
    },
    AdviceCase {
        row: table::CERTIFICATE_EXPIRES,
        raised: |scene| valid_for(scene, 160, SignedDuration::from_hours(-1)),
        text: "tls/shop.pem: the certificate has expired",
        quiet: &[|scene| certificate(scene, 14 * 24)],
    },
    AdviceCase {
        row: table::RELOAD_FAILED,
        raised: |scene| scene.now.last_reload = reload(false),
        text: "the last reload was not applied: hostler.toml:3: unknown key `worker`",
        quiet: &[|scene| scene.now.last_reload = reload(true)],
    },
];

pub(super) const PEERS: &[AdviceCase] = &[
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
        text: "memcached 10.0.0.9:11211: not in use (connection refused)",
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
