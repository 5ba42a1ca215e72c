//! Cases of advice about queues and workers.

use std::time::Duration;

use hostler_engine::exchange::{BusiestClient, ClientsView};
use hostler_worker::{HeapUse, HeavyStart, WorkerState};

use super::super::figures::KeyFigures;
use super::super::scene::{AdviceCase, Scene};
use super::super::table;

const MIB: u64 = 1 << 20;

fn second() -> Duration {
    Duration::from_secs(1)
}

fn all_cpus_busy(scene: &mut Scene) {
    scene.now.machine.busy_ms = scene.before.machine.busy_ms.map(|busy| busy + 60_000 * 4);
}

fn waiting_for_members_that_do_not_answer(scene: &mut Scene) {
    scene.waited(0.5, 0.05);
    let answered_before = scene.before.pools[0].worker_time.clone();
    scene.web().worker_time = answered_before;
}

fn not_ready(scene: &mut Scene) {
    for worker in scene.web().workers.as_mut().unwrap() {
        (worker.state, worker.last_error) =
            (WorkerState::BackingOff, Some("exit code 1: no database".into()));
    }
}

/// The last worker that is not out of order finishes its requests.
fn last_one_retires(scene: &mut Scene) {
    not_ready(scene);
    scene.first().crashes = 4;
    scene.web().workers.as_mut().unwrap()[1].state = WorkerState::Retiring;
}

fn one_worker(scene: &mut Scene) {
    scene.web().workers.as_mut().unwrap().truncate(1);
    scene.died(&[30], None, false);
}

/// One client has so many of a hundred requests, and a pool has a queue.
fn crowded(scene: &mut Scene, requests: usize) {
    let client = "203.0.113.7".parse().unwrap();
    let busiest = Some(BusiestClient { client, requests });
    scene.now.clients = ClientsView { counted: 12, requests: 100, busiest, ..ClientsView::default() };
    scene.web().queue_length = 30;
}

pub(super) const QUEUES: &[AdviceCase] = &[
    AdviceCase {
        row: table::TOO_FEW_WORKERS,
        raised: |scene| scene.waited(0.5, 0.05),
        text: "web: queue wait p99 is 10 x the worker time (496 ms and 50 ms)",
        quiet: &[
            |scene| scene.waited(0.5, 0.4),
            |scene| scene.waited(0.05, 0.001),
            all_cpus_busy_and_waiting,
            waiting_for_members_that_do_not_answer,
            |scene| {
                scene.waited(0.5, 0.05);
                scene.web().counters.queued = 19;
            },
            // After a pause: all that waited did so more than ten seconds ago.
            |scene| {
                scene.waited(0.5, 0.05);
                let waited = scene.web().queue_wait.clone();
                scene.recent.pools[0].queue_wait = waited;
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
        quiet: &[
            all_cpus_busy,
            |scene| scene.waited(0.5, 0.05),
            |scene| {
                all_cpus_busy(scene);
                waiting_for_members_that_do_not_answer(scene);
            },
        ],
    },
    AdviceCase {
        row: table::DEAR_KEY,
        raised: |scene| {
            scene.web().counters.queued = 40;
            scene.web().dearest = Some(KeyFigures { key: "crawler GPTBot".into(), share: 83.7 });
        },
        text: "web: crawler GPTBot took 83 % of the worker time of the last minute, and 40 requests had to wait",
        quiet: &[
            |scene| scene.web().dearest = Some(KeyFigures { key: "crawler GPTBot".into(), share: 99.0 }),
            |scene| {
                scene.web().counters.queued = 40;
                scene.web().dearest = Some(KeyFigures { key: "crawler GPTBot".into(), share: 59.0 });
            },
            |scene| scene.web().counters.queued = 40,
        ],
    },
    AdviceCase {
        row: table::ONE_CLIENT,
        raised: |scene| crowded(scene, 80),
        text: "web: client 203.0.113.7 has 80 of 100 requests under way, and 30 requests wait",
        quiet: &[
            |scene| crowded(scene, 59),
            |scene| {
                crowded(scene, 80);
                scene.web().queue_length = 19;
            },
            |scene| {
                crowded(scene, 80);
                scene.now.clients.counted = 1;
            },
            |scene| {
                crowded(scene, 80);
                scene.web().is_fair = true;
            },
            |scene| {
                crowded(scene, 19);
                scene.now.clients.requests = 20;
            },
        ],
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
        text: "web: 10 requests of the last minute were refused, because the queue was full (queue.limit 100)",
        quiet: &[|scene| scene.web().counters.refused_full = 9],
    },
    AdviceCase {
        row: table::QUEUE_TIMEOUT,
        raised: |scene| scene.web().counters.expired = 40,
        text: "web: 40 requests of the last minute were refused, because no slot became free in time (queue.timeout, request_timeout)",
        quiet: &[
            |scene| scene.web().counters.expired = 9,
            |scene| {
                not_ready(scene);
                scene.web().counters.expired = 40;
            },
        ],
    },
    AdviceCase {
        row: table::TOO_MANY_TUNNELS,
        raised: |scene| scene.web().counters.refused_tunnels = 7,
        text: "web: 7 requests of the last minute were refused, because each worker has max_tunnels tunnels or max_streams streams",
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
            |scene| {
                not_ready(scene);
                scene.web().spares = vec![WorkerState::Ready];
            },
            // Its successor boots.
            |scene| {
                not_ready(scene);
                scene.web().replaced = vec![WorkerState::Ready];
            },
        ],
    },
    AdviceCase {
        row: table::NO_READY_WORKER,
        raised: last_one_retires,
        text: "web: no worker is ready: exit code 1: no database",
        quiet: &[|scene| scene.first().state = WorkerState::Retiring],
    },
    AdviceCase {
        row: table::MEMBERS_OUT,
        raised: |scene| scene.api().members[1].out = Some("unhealthy: status 503".into()),
        text: "api: 1 of 3 members are down: 10.0.0.2:80 (unhealthy: status 503)",
        quiet: &[|scene| scene.api().members.truncate(1)],
    },
];

fn all_cpus_busy_and_waiting(scene: &mut Scene) {
    scene.waited(0.5, 0.05);
    all_cpus_busy(scene);
}

fn heavy(scene: &mut Scene) {
    scene.web().heavy_start = Some(HeavyStart { limit: 150 * MIB, memory: 212 * MIB });
}

pub(super) const WORKERS: &[AdviceCase] = &[
    AdviceCase {
        row: table::WORKER_RESTARTS,
        raised: |scene| {
            scene.died(&[100, 60, 20], None, false);
            scene.first().last_exit = Some("exit code 1".into());
        },
        text: "web/1 had to be started again 3 times in the last 15 minutes, about every 40 s (last: exit code 1)",
        quiet: &[
            |scene| scene.died(&[60, 20], None, false),
            |scene| scene.died(&[100, 60, 20], None, true),
            |scene| scene.died(&[100, 60, 20], Some(480 * MIB), false),
        ],
    },
    AdviceCase {
        row: table::WORKER_LEAKS,
        raised: |scene| scene.died(&[100, 60, 20], Some(480 * MIB), true),
        text: "web/1 restarts every 40 s, each time with about 480 MiB of memory: a leak?",
        quiet: &[
            |scene| scene.died(&[60, 20], Some(480 * MIB), false),
            |scene| scene.died(&[100, 60, 20], None, false),
        ],
    },
    AdviceCase {
        row: table::MAX_MEMORY_TOO_LOW,
        raised: heavy,
        text: "web: a worker takes 212 MiB from its start on, more than max_memory (150 MiB): replacing it does not help",
        quiet: &[
            |scene| {
                heavy(scene);
                scene.web().deploying = true;
            },
            // The worker has grown.
            |scene| scene.first().recycled = Some("212.0 MiB resident".into()),
        ],
    },
    AdviceCase {
        row: table::BOOTS_FAIL,
        raised: |scene| {
            let first = scene.first();
            (first.state, first.crashes) = (WorkerState::BackingOff, 4);
            first.last_error = Some("not ready within 30s".into());
        },
        text: "web/1 failed 4 times in a row: not ready within 30s",
        quiet: &[
            |scene| scene.first().crashes = 4,
            |scene| (scene.first().state, scene.first().crashes) = (WorkerState::BackingOff, 2),
        ],
    },
    AdviceCase {
        row: table::BOOTS_FAIL,
        raised: |scene| {
            not_ready(scene);
            scene.first().crashes = 4;
            scene.web().spares = vec![WorkerState::Ready];
        },
        text: "web/1 failed 4 times in a row: exit code 1: no database",
        quiet: &[
            |scene| {
                not_ready(scene);
                scene.first().crashes = 4;
            },
            last_one_retires,
        ],
    },
    AdviceCase {
        row: table::HEAP_FULL,
        raised: |scene| scene.first().heap = Some(HeapUse { used: 1900 * MIB, limit: 2048 * MIB }),
        text: "web/1 uses 92 % of its heap limit 2.0 GiB: at the limit V8 ends the process",
        quiet: &[|scene| scene.first().heap = Some(HeapUse { used: 1800 * MIB, limit: 2048 * MIB })],
    },
    AdviceCase {
        row: table::EVENT_LOOP_BLOCKED,
        raised: |scene| {
            (scene.first().loop_delay, scene.first().in_use) = (Some(second() / 2), 3);
        },
        text: "web/1 blocks its event loop: it sometimes needs 500 ms or longer to answer Hostler",
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
        quiet: &[|scene| {
            scene.first().slots_reason = Some("by the event loop (3 % busy), 1000 at most".into())
        }],
    },
    AdviceCase {
        row: table::CONCURRENCY,
        raised: |scene| {
            let reason = "requests wait for one of 2 slots: use a higher number in concurrency";
            scene.first().slots_reason = Some(reason.into());
        },
        text: "web: requests wait for one of 2 slots",
        quiet: &[|scene| scene.first().slots_reason = Some("set in concurrency".into())],
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
        text: "web: GET /report and 1 other made workers die, so Hostler refuses such requests",
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
                scene.web().spares = vec![WorkerState::Standby];
            },
            |scene| {
                one_worker(scene);
                scene.past.was_ready = false;
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
        text: "web: the last restart failed: worker 1: exit code 1",
        quiet: &[|scene| scene.web().deploying = true],
    },
];
