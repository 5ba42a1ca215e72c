//! All advice: when each is raised, how severe it is, and what to do. Knows no figures.

use serde::Serialize;

/// How urgent an advice is, as in the alert rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Clients get errors.
    Critical,
    /// Clients wait, or will get errors.
    Warning,
    /// Something could be better.
    Info,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// One advice.
#[derive(Debug, PartialEq, Eq)]
pub struct AdviceRow {
    pub id: &'static str,
    pub severity: Severity,
    /// For how many seconds the figures must show it.
    pub holds: u64,
    /// When it is raised, for the reference.
    pub when: &'static str,
    /// What to do. POOL and WORKER stand for names.
    pub action: &'static str,
    /// The page about it, from `docs/`.
    pub page: &'static str,
    /// The alert rule for the same trouble in `docs/monitoring/hostler.rules.yml`. Empty: there is none.
    pub alert: &'static str,
}

macro_rules! advice {
    ($($name:ident: $id:literal $severity:ident $holds:literal $alert:literal $when:literal, $action:literal, $page:literal;)*) => {
        $(pub(super) const $name: &AdviceRow = &AdviceRow {
            id: $id, severity: Severity::$severity, holds: $holds, when: $when, action: $action, page: $page, alert: $alert,
        };)*
        /// Every advice.
        pub const ADVICE: &[&AdviceRow] = &[$($name),*];
    };
}

// A row: id, severity, seconds, alert rule; when, what to do, page.
advice! {
    TOO_FEW_WORKERS: "too_few_workers" Warning 15 "HostlerQueueStands"
        "In the last minute the 99th percentile of the queue wait was at least 3 times the mean worker time, and at least 100 ms. At least 20 requests waited, and the CPUs are not all busy. Not during a restart, not if the last ten seconds had no such wait, as after a pause, and not if `concurrency` does not fit.",
        "Add workers (pools.POOL.workers) or members.", "guide/troubleshooting.md#slow";
    CPU_EXHAUSTED: "cpu_exhausted" Warning 15 "HostlerQueueStands"
        "The same queue wait as for `too_few_workers`, and the CPUs were at least 90 % busy in the last minute.",
        "Add CPUs or machines, or make requests cheaper. More workers do not help.", "guide/troubleshooting.md#slow";
    DEAR_KEY: "dear_key" Info 30 ""
        "In a pool with `queue.fair`, one key took at least 60 % of the worker time of the last minute, there are other keys, and at least 20 requests had to wait.",
        "The pool is fair, so requests of other keys do not wait behind it. If this work is not wanted, give it low priority (pools.POOL.queue.low), cache its routes, or limit it (pools.POOL.rate_limit).", "concepts/fair.md#how-to-see-it";
    ONE_CLIENT: "one_client" Warning 10 ""
        "One client has at least 20 requests under way and at least 60 % of all, there are other clients, and at least 20 requests wait in a pool without `queue.fair`. Only requests that `client_requests` limits count: by default not those of loopback and private addresses.",
        "Set pools.POOL.queue.fair = \"client\", so that other clients do not wait behind this one. If it is a load balancer, name it in server.trusted_proxies.", "concepts/fair.md";
    OVERLOADED: "overloaded" Critical 10 "HostlerOverloaded"
        "The pool refused at least 10 requests of the last minute, because they would have waited long.",
        "If CPUs are free, add workers (pools.POOL.workers), otherwise add machines or make requests cheaper.", "concepts/overload.md#how-to-see-overload";
    QUEUE_FULL: "queue_full" Critical 10 ""
        "At least 10 requests of the last minute were refused, because the queue was full.",
        "Add workers or members. Raise pools.POOL.queue.limit only for short bursts.", "guide/failures.md#the-queue-is-full-queue_full";
    QUEUE_TIMEOUT: "queue_timeout" Critical 10 ""
        "At least 10 requests of the last minute were refused, because no slot became free in `queue.timeout` or `request_timeout`.",
        "Look at the oldest requests: they hold the slots. Add workers or members.", "guide/failures.md#a-request-waits-too-long-queue_timeout";
    POOL_PAUSED: "pool_paused" Warning 60 ""
        "A pool is paused for a minute, and requests wait.",
        "Run `hostler resume POOL` when the work behind the pause is done.", "guide/deploys.md#pause-a-pool-for-a-migration";
    NO_READY_WORKER: "no_ready_worker" Critical 30 "HostlerNoReadyWorker"
        "No worker of a pool is ready for 30 seconds. Not while the pool is asleep.",
        "Look at the last lines of the workers in the log.", "guide/troubleshooting.md#the-app-does-not-start";
    BOOTS_FAIL: "boots_fail" Warning 5 ""
        "A worker has failed 3 times in a row: it died, or was not ready in time. Other workers are ready.",
        "Look at the last lines of worker POOL/WORKER in the log. If it was not ready in time, raise pools.POOL.start_timeout.", "guide/failures.md#a-worker-does-not-boot";
    WORKER_RESTARTS: "worker_restarts" Warning 0 "HostlerWorkerRestarts"
        "A worker has died or did not start, at least 3 times in 15 minutes. Restarts and recycling do not count.",
        "Look at the last lines of the worker in the log, and at its last exit in the status.", "guide/troubleshooting.md#restarts";
    WORKER_LEAKS: "worker_leaks" Warning 0 "HostlerWorkerRestarts"
        "A worker has died, or was recycled because of its memory, at least 3 times in 15 minutes. Each time its memory had grown to at least 2 times its least memory, by 64 MiB or more.",
        "Compare two heap snapshots: `hostler heap POOL/WORKER`.", "guide/troubleshooting.md#memory";
    MAX_MEMORY_TOO_LOW: "max_memory_too_low" Warning 15 ""
        "A worker takes more than `max_memory` from its start on, so replacing it does not help. Hostler replaces it less and less often. Not during a restart and in the minute after it.",
        "Set pools.POOL.max_memory well above that memory, or let the app load less at its start: `hostler heap POOL/1` shows what takes the memory.", "guide/troubleshooting.md#memory";
    HEAP_FULL: "heap_full" Warning 15 ""
        "The heap of V8 in a worker uses at least 90 % of its limit, and the worker has had requests in the last minute. At the limit the process ends.",
        "Look for a leak: `hostler heap POOL/WORKER`. If the app needs the memory, raise `--max-old-space-size`.", "guide/troubleshooting.md#memory";
    EVENT_LOOP_BLOCKED: "event_loop_blocked" Warning 30 ""
        "The 99th percentile of the event loop delay of a worker is at least 200 ms, while it has several requests at once or has tunnels or streams. With fewer than 100 answers of the event loop, the 90th percentile counts.",
        "Look for the function that computes: `hostler profile POOL/WORKER`. A synchronous call blocks all other requests of the worker.", "guide/troubleshooting.md#slow";
    CONCURRENCY: "concurrency_does_not_fit" Warning 0 ""
        "A pool has a number in `concurrency`, and its workers could do more requests at once, or have too many.",
        "Set pools.POOL.concurrency = \"auto\". With `queue.fair`, set a higher number.", "concepts/concurrency.md#a-number-of-your-own";
    WORKERS_HANG: "workers_hang" Warning 0 ""
        "Workers of a pool hung at least 2 times in 15 minutes.",
        "Correct the function at the top of the stack. `hostler status --json` has the whole stack.", "guide/failures.md#a-worker-hangs";
    REQUESTS_KILL: "requests_kill_workers" Warning 0 "HostlerRequestsKillWorkers"
        "Hostler refuses requests that made workers die.",
        "Correct the app. The status names the requests (`kept_off`).", "guide/failures.md#the-same-request-kills-workers-again-and-again";
    ONE_WORKER: "one_worker" Info 0 ""
        "A pool has one worker and no spare, and the worker has died in the last 15 minutes. While it boots, all requests wait.",
        "If two processes of the app may run at the same time, set pools.POOL.workers = 2, or pools.POOL.spares = 1. An app that itself runs jobs, workflows or checks may have one process only.", "concepts/boots.md#spares";
    BOOTS_HELD_UP: "boots_held_up" Warning 0 ""
        "In the last minute at least 3 boots after deaths had to wait, because boots use more CPU than `restart_cpu` allows.",
        "Find out why workers die. Their last exits are in the status.", "guide/failures.md#a-worker-crashes-again-and-again";
    RESTART_FAILED: "restart_failed" Warning 0 ""
        "The last restart of a pool failed. Old workers that are ready stay.",
        "Correct the new version, then run `hostler restart POOL`.", "guide/failures.md#a-restart-fails-because-the-new-version-does-not-boot";
    TOO_MANY_TUNNELS: "too_many_tunnels" Warning 10 ""
        "At least 5 tunnels or streams of the last minute were refused because of `max_tunnels` or `max_streams`.",
        "Raise pools.POOL.max_tunnels or max_streams, or add workers.", "guide/websockets.md#settings";
    MEMBERS_OUT: "members_out" Warning 15 "HostlerMembersOut"
        "Members of a pool are unreachable, ejected or unhealthy for 15 seconds.",
        "Look whether the member runs, and whether its address in pools.POOL.members is right.", "guide/members.md";

    APP_ERRORS: "app_errors" Critical 30 "HostlerErrors"
        "At least 5 % of the responses of a route in the last minute, and at least 10, were errors (5xx) of the app.",
        "Look at the log of the app. Hostler passed these responses on.", "guide/troubleshooting.md#502";
    REFUSALS: "refusals" Critical 30 "HostlerErrors"
        "At least 5 % of the responses of a route in the last minute, and at least 10, were refusals that are the fault of the app or of the configuration.",
        "The reference of refusals says what to do for each reason.", "reference/refusals.md";
    FALLBACKS: "fallbacks" Warning 30 ""
        "At least 5 % of the responses of a route in the last minute, and at least 10, were its fallback.",
        "The reference of refusals says what to do for each reason.", "reference/refusals.md";

    NOT_READY: "not_ready" Critical 15 "HostlerNotReady"
        "A load balancer or another program asks for a health check, and gets 503. Not if Hostler was told to drain (SIGUSR1) or to stop.",
        "Load balancers send no clients here. Look at the pool that is named.", "guide/health.md";
    DESCRIPTORS_LOW: "descriptors_low" Warning 15 "HostlerDescriptorsLow"
        "At least 80 % of the file descriptors are open.",
        "Raise LimitNOFILE (systemd) or `ulimit -n`, or lower server.max_connections.", "guide/failures.md#file-descriptors-run-out";
    MEMORY_LOW: "memory_low" Warning 15 ""
        "At least 90 % of the memory of the machine or of the control group is in use. Beyond it the kernel kills processes.",
        "Give more memory, or run fewer workers. pools.NAME.max_memory recycles workers that grow.", "guide/troubleshooting.md#memory";
    WORKER_MEMORY_FULL: "worker_memory_full" Warning 15 ""
        "Workers use at least 95 % of `server.worker_memory`, so pools with a range get no more workers. Only if there is such a pool.",
        "Raise server.worker_memory if the machine has more, or run fewer workers.", "guide/many-apps.md#memory";
    DISK_LOW: "disk_low" Warning 15 ""
        "The disk of `server.temp_dir` has less room than 256 MiB and less than the temporary files may still take.",
        "Make room, set server.temp_dir to another disk, or lower server.spool_size.", "guide/failures.md#the-disk-has-no-room-for-a-request-body";
    SPOOL_FULL: "spool_full" Warning 10 ""
        "At least 5 times in the last minute, a connection got no room in the temporary files.",
        "Raise server.spool_size, or server.min_send_rate against slow clients.", "guide/one-client.md#full-temporary-files";
    REQUEST_MEMORY_FULL: "request_memory_full" Info 10 ""
        "At least 10 times in the last minute, a request found no room in memory: its body went to a file, or its long HTTP/2 header fields were refused.",
        "Raise server.request_memory.", "guide/one-client.md#memory-and-temporary-files-for-bodies";
    SLOW_CLIENTS: "slow_clients" Info 10 ""
        "At least 10 responses of the last minute were cut off because the client was too slow.",
        "If honest clients are this slow, lower server.min_send_rate or raise server.send_timeout.", "guide/one-client.md#clients-that-read-slowly";
    CONNECTIONS_FULL: "connections_full" Critical 10 ""
        "At least 10 connections of the last minute were refused because of `server.max_connections`.",
        "Raise server.max_connections and the limit of open files.", "guide/one-client.md#too-many-connections-of-all-clients-max_connections";
    CLIENT_LIMITS: "client_limits" Warning 10 ""
        "At least 10 connections or requests of the last minute were refused because one client had too many.",
        "If the clients come through a load balancer, name it in server.trusted_proxies. Otherwise look for the client in the log.", "guide/one-client.md#too-many-connections-of-one-client-client_connections";
    FLOODS: "floods" Info 0 ""
        "At least 5 HTTP/2 connections of the last minute were closed because of a flood of frames.",
        "Look for the clients in the log, and block them in front of Hostler.", "guide/one-client.md#http2";
    HANDSHAKES_FAIL: "handshakes_fail" Warning 15 ""
        "At least 20 % of the connections of the last minute, and at least 10, failed in the TLS handshake or because of the PROXY header. Only reasons that the configuration can change count.",
        "Look up the reason in the table of failed handshakes.", "guide/seeing.md#failed-handshakes";
    CERTIFICATE_EXPIRES: "certificate_expires" Warning 0 "HostlerCertificateExpires"
        "A certificate expires in less than 14 days and in less than a third of its life, or has expired.",
        "Renew it. Hostler reads the new file by itself.", "guide/tls.md#certificate-renewal";
    CACHE_TOO_SMALL: "cache_too_small" Info 60 ""
        "In the last minute the full cache removed at least 100 responses, and served less than half of the requests of routes with a cache.",
        "Raise cache.memory, or store fewer variants (query_only, Vary).", "guide/caching.md#memory";
    MEMCACHED_AWAY: "memcached_away" Warning 15 ""
        "Hostler has not used a memcached server for 15 seconds, because the server does not answer correctly and in time.",
        "Look at the server. Until it answers again, Hostler stores the keys of this server in its own memory only.", "guide/caching.md#when-memcached-is-slow-or-down";
    MEMCACHED_SLOW: "memcached_slow" Warning 15 ""
        "At least 5 % of the lookups at a memcached server in the last minute, and at least 10, took longer than `cache.timeout`.",
        "Look at the server and the network. Raise cache.timeout if this is normal.", "guide/caching.md#when-memcached-is-slow-or-down";
    REGISTRAR_DISCONNECTED: "registrar_disconnected" Warning 15 "HostlerRegistrarDisconnected"
        "Hostler has no connection to NATS for 15 seconds. It keeps the routes that it knows, and gets no new ones.",
        "Look at the NATS servers.", "guide/router.md";
    RELOAD_FAILED: "reload_failed" Warning 0 "HostlerReloadFailed"
        "The last reload was not applied, so the old configuration is in force.",
        "Correct the file (`hostler check`), then run `hostler reload`.", "guide/failures.md#a-reload-has-a-bad-configuration";
    LOG_DROPPED: "log_dropped" Warning 0 "HostlerLogDropped"
        "Lines of the log were lost in the last minute, or the reader of the log has read nothing for 10 seconds.",
        "Look at the program that reads Hostler's standard output, or at the disk of log.file.", "guide/failures.md#hostler-writes-its-log-to-a-pipe-that-is-full";
}
