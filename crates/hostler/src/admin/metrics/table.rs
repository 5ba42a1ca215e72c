//! The metrics: their names, kinds and meanings. Knows no values.

/// What the values of a metric are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows while what it counts exists. In the text its name ends in `_total`.
    Counter,
    /// It grows and falls.
    Gauge,
    /// The number of values up to each bound, their sum and their number.
    Histogram,
    /// Always 1. Its labels are the information.
    Info,
}

/// A metric. The names of metrics that OpenTelemetry's conventions or Prometheus's client libraries define are theirs.
#[derive(Debug)]
pub struct Metric {
    /// Without the suffix of its kind.
    pub name: &'static str,
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// A sentence without its full stop: the text format adds it.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($id:ident: $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub(super) const $id: &Metric =
            &Metric { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help };)*
        /// All metrics.
        pub const METRICS: &[&Metric] = &[$($id),*];
    };
}

metrics! {
    BUILD: Info "hostler_build" ["version"] "The version of Hostler";
    START_TIME: Gauge "process_start_time_seconds" [] "When Hostler began to serve, in seconds since 1970";
    CPU: Counter "process_cpu_seconds" [] "CPU time of Hostler itself, without its workers, in seconds";
    RESIDENT: Gauge "process_resident_memory_bytes" [] "Resident memory of Hostler itself, in bytes";
    OPEN_FDS: Gauge "process_open_fds" [] "Open file descriptors of Hostler";
    MAX_FDS: Gauge "process_max_fds" [] "How many file descriptors Hostler may have";
    READY: Gauge "hostler_ready" [] "1 if the health check answers 200";
    DRAINING: Gauge "hostler_draining" [] "1 while Hostler stops, from SIGUSR1 on, or hands over to a successor";
    LAST_RELOAD: Gauge "hostler_last_reload_successful" [] "1 if the last reload was applied, otherwise 0. Absent before the first one";

    REQUEST_DURATION: Histogram "http_server_request_duration_seconds"
        ["http_request_method", "http_response_status_code", "http_route", "url_scheme"]
        "Time from the head of a request to the end of its response, in seconds. A tunnel or a stream counts until it is open";
    REFUSALS: Counter "hostler_refusals" ["http_route", "reason"] "Requests that Hostler answered itself with an error";
    FALLBACKS: Counter "hostler_fallbacks" ["http_route", "reason"] "Fallbacks that were sent in place of a refusal";
    RETRIES: Counter "hostler_retries" ["http_route"] "Further members that requests were sent to after the first one";
    EARLY_HINTS: Counter "hostler_early_hints" ["http_route"] "Requests whose client got links in a 103 while the request waited";
    ABORTED: Counter "hostler_aborted_responses" ["http_route"] "Responses that were broken off";
    RATE_LIMITED: Counter "hostler_rate_limited_requests" ["scope", "name", "dry_run"] "Requests beyond the rate limit of a route or pool";
    WORKER_CPU: Counter "hostler_worker_cpu_seconds" ["pool", "http_route"] "CPU time that workers used for the requests of a route, in seconds. Absent for pools whose members Hostler does not run";
    CACHE_RESULTS: Counter "hostler_cache_results" ["http_route", "result"] "Requests by the result of the route's cache";

    QUEUE_WAIT: Histogram "hostler_queue_wait_seconds" ["pool"] "Time from the request's arrival, with its body, to its slot, in seconds";
    SLOT_HOLD: Histogram "hostler_slot_hold_seconds" ["pool"] "Time from the slot's grant to its return, in seconds. Not of tries whose connection failed before a response";
    WORKER_TIME: Histogram "hostler_worker_seconds" ["pool"] "Time from the first byte to the worker to the head of its response, in seconds";
    UNOWNED_CPU: Counter "hostler_worker_unowned_cpu_seconds" ["pool"] "CPU time that workers used while they had no request, in seconds";
    HEDGES: Counter "hostler_hedges" ["pool"] "Requests that were sent to a second member because the first one was slow";
    HEDGES_WON: Counter "hostler_hedges_won" ["pool"] "Requests that the second member answered first";
    QUEUE_LENGTH: Gauge "hostler_queue_length" ["pool", "priority"] "Requests that wait for a slot";
    QUEUE_LIMIT: Gauge "hostler_queue_limit" ["pool"] "How many requests may wait";
    OLDEST_WAIT: Gauge "hostler_queue_oldest_wait_seconds" ["pool"] "How long the oldest request has waited, in seconds";
    SLOTS: Gauge "hostler_slots" ["pool"] "Slots of all members. A member that leaves has those that its last requests hold";
    SLOTS_IN_USE: Gauge "hostler_slots_in_use" ["pool"] "Slots that have a request";
    POOL_TUNNELS: Gauge "hostler_pool_tunnels" ["pool"] "Open tunnels, such as WebSockets";
    POOL_STREAMS: Gauge "hostler_pool_streams" ["pool"] "Open streams, such as server-sent events";
    OVERLOADED: Gauge "hostler_pool_overloaded" ["pool"] "1 while more work comes than the pool can do";
    PAUSED: Gauge "hostler_pool_paused" ["pool"] "1 while the pool is paused";
    GRANTED: Counter "hostler_slots_granted" ["pool"] "Slots that requests got";
    QUEUED: Counter "hostler_queued_requests" ["pool"] "Requests that had to wait for a slot";
    OVERLOADS: Counter "hostler_overloads" ["pool"] "Overloads that have begun";
    MEMBER_FAILURES: Counter "hostler_member_failures" ["pool", "kind"] "Failures of members: unreachable, timeout, ejected, unhealthy";
    KEPT_OFF: Gauge "hostler_kept_off_requests" ["pool"] "Different requests that Hostler refuses because they made workers die";
    SUSPECTS_CONVICTED: Counter "hostler_convicted_requests" ["pool"] "Requests that were found to kill workers";
    MEMBERS: Gauge "hostler_members" ["pool", "state"] "Members by state";

    WORKERS: Gauge "hostler_workers" ["pool", "state"] "Workers by state";
    WORKERS_WANTED: Gauge "hostler_workers_wanted" ["pool"] "How many workers there should be, if Hostler finds the number";
    WORKER_DEATHS: Counter "hostler_worker_deaths" ["pool"] "Workers that ended although Hostler had not asked them to, and hung workers that it killed";
    RESTARTS: Counter "hostler_worker_restarts" ["pool", "worker"] "Starts of a worker after the first one, for any reason: deploys and recycling count";
    WORKER_CRASHES: Gauge "hostler_worker_crashes_in_a_row" ["pool", "worker"] "Crashes of a worker without ten seconds of work between them";
    WORKER_MEMORY: Gauge "hostler_worker_resident_memory_bytes" ["pool", "worker"] "Resident memory of a worker, in bytes";
    WORKER_REQUESTS: Counter "hostler_worker_requests" ["pool", "worker"] "Requests that the process of a worker got";
    WORKER_SLOTS: Gauge "hostler_worker_slots" ["pool", "worker"] "How many requests a worker may have at once";
    WORKER_IN_USE: Gauge "hostler_worker_slots_in_use" ["pool", "worker"] "How many requests a worker has";
    WORKER_BLOCKED: Gauge "hostler_worker_blocked_seconds" ["pool", "worker"] "How long the event loop of a worker has not turned although it has requests, in seconds. 0 if it is less than 3 s";
    EVENT_LOOP: Gauge "nodejs_eventloop_utilization_ratio" ["pool", "worker"] "Share of time that a worker's event loop works. Measured while the worker has requests";
    LOOP_MIN: Gauge "nodejs_eventloop_delay_min_seconds" ["pool", "worker"] "Shortest time in which a worker's event loop answered Hostler, over the last 120 answers, in seconds";
    LOOP_MEAN: Gauge "nodejs_eventloop_delay_mean_seconds" ["pool", "worker"] "Mean time in which a worker's event loop answered Hostler, over the last 120 answers, in seconds";
    LOOP_STDDEV: Gauge "nodejs_eventloop_delay_stddev_seconds" ["pool", "worker"] "Standard deviation of the time in which a worker's event loop answered Hostler, over the last 120 answers, in seconds";
    LOOP_P50: Gauge "nodejs_eventloop_delay_p50_seconds" ["pool", "worker"] "50th percentile of the time in which a worker's event loop answered Hostler, over the last 120 answers, in seconds";
    LOOP_P90: Gauge "nodejs_eventloop_delay_p90_seconds" ["pool", "worker"] "90th percentile of the time in which a worker's event loop answered Hostler, over the last 120 answers, in seconds";
    LOOP_P99: Gauge "nodejs_eventloop_delay_p99_seconds" ["pool", "worker"] "99th percentile of the time in which a worker's event loop answered Hostler, over the last 120 answers, in seconds";
    LOOP_MAX: Gauge "nodejs_eventloop_delay_max_seconds" ["pool", "worker"] "Longest time in which a worker's event loop answered Hostler, over the last 120 answers, in seconds";
    HEAP_USED: Gauge "v8js_memory_heap_used_bytes" ["pool", "worker"] "Bytes that the heap of V8 uses";
    HEAP_LIMIT: Gauge "v8js_memory_heap_limit_bytes" ["pool", "worker"] "How many bytes the heap of V8 may use";
    GC_DURATION: Histogram "v8js_gc_duration_seconds" ["pool", "worker", "v8js_gc_type"] "Time of garbage collections in a worker, in seconds";
    COLLECTIONS: Counter "hostler_worker_collections" ["pool", "worker"] "Garbage collections that Hostler asked for between requests";

    CONNECTIONS: Gauge "hostler_connections" [] "Open connections of clients";
    TUNNELS: Gauge "hostler_tunnels" [] "Open tunnels of all pools";
    STREAMS: Gauge "hostler_streams" [] "Open streams of all pools";
    CONNECTIONS_REFUSED: Counter "hostler_connections_refused" ["reason"] "Connections that were refused";
    CONNECTIONS_CUT: Counter "hostler_connections_cut" ["reason"] "Connections that were cut off because the client was too slow";
    HANDSHAKES: Counter "hostler_tls_handshakes" ["resumed"] "Completed TLS handshakes";
    HANDSHAKES_FAILED: Counter "hostler_connections_failed" ["reason"] "Connections that ended before their first request";
    CERTIFICATE_BEGIN: Gauge "hostler_certificate_not_before_seconds" ["file"] "From when on a certificate is valid, in seconds since 1970";
    CERTIFICATE_END: Gauge "hostler_certificate_not_after_seconds" ["file"] "When a certificate expires, in seconds since 1970";

    BUFFER_USED: Gauge "hostler_buffer_bytes" ["buffer"] "Bytes in use of a limited buffer: request_memory, answer_memory, spool";
    BUFFER_LIMIT: Gauge "hostler_buffer_limit_bytes" ["buffer"] "The limit of the buffer, in bytes";
    BUFFER_REFUSALS: Counter "hostler_buffer_refusals" ["buffer"] "How many times a connection asked for more than its share of the buffer";
    LOG_DROPPED: Counter "hostler_log_dropped_lines" [] "Log lines that were dropped because the reader of the log was too slow or a write failed";
    TRACES_EXPORTED: Counter "hostler_traces_exported" [] "Requests whose spans the collector has taken";
    TRACES_DROPPED: Counter "hostler_traces_dropped" [] "Requests whose spans were dropped because the collector did not take them in time";
    TRACES_REJECTED: Counter "hostler_traces_rejected_spans" [] "Spans that the collector has taken and thrown away";
    CACHE_KEYS: Gauge "hostler_cache_keys" [] "Responses in the cache";
    CACHE_BYTES: Gauge "hostler_cache_bytes" [] "Bytes of the responses in the cache";
    CACHE_LIMIT: Gauge "hostler_cache_limit_bytes" [] "How many bytes the cache may have";
    CACHE_EVICTED: Counter "hostler_cache_evicted" [] "Responses that left the cache because it was full";
    REGISTRAR_CONNECTED: Gauge "hostler_registrar_connected" [] "1 while Hostler is connected to NATS";
    REGISTERED_ROUTES: Gauge "hostler_registered_routes" [] "Routes that were registered over NATS";
    REGISTERED_MEMBERS: Gauge "hostler_registered_members" [] "Members of these routes";
}
