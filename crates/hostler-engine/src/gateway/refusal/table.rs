//! The table of refusals: the status of each, what follows from it, and the text of the reference. Knows no errors.

/// Whose fault a refusal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalCause {
    /// The client sent something wrong, too much or too slowly.
    Client,
    /// The application failed, or the member that runs it.
    App,
    /// The configuration or the machine is at fault.
    Operator,
    /// More requests come than can be served.
    Overload,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusalFacts {
    /// The status code. 499 is never sent; nginx writes it into its log too.
    pub status: u16,
    /// Its name in logs, counters and the `Hostler-Refusal` field.
    pub reason: &'static str,
    /// Seconds for `Retry-After`, if another try makes sense.
    pub retry_after: Option<u32>,
    /// The connection is closed after the answer.
    pub closes: bool,
    /// The route's fallback may stand in, because the client is not at fault.
    pub may_fall_back: bool,
    pub cause: RefusalCause,
    /// When it happens, for the reference.
    pub when: &'static str,
    /// What the operator can do, for the reference.
    pub remedy: &'static str,
}

impl RefusalFacts {
    /// With the cause and the texts of the reference.
    pub const fn told(self, cause: RefusalCause, when: &'static str, remedy: &'static str) -> Self {
        Self { cause, when, remedy, ..self }
    }

    /// Where its description begins on the page of refusals: the name of the heading there, without `#`.
    pub fn anchor(&self) -> String {
        format!("{}-{}", self.reason, self.status)
    }

    const fn for_a_moment(self) -> Self {
        Self { retry_after: Some(1), ..self }
    }

    const fn closed(self) -> Self {
        Self { closes: true, ..self }
    }

    const fn without_fallback(self) -> Self {
        Self { may_fall_back: false, ..self }
    }
}

/// The client is at fault, or there is no room for what it sends.
pub const fn plain(status: u16, reason: &'static str) -> RefusalFacts {
    RefusalFacts {
        status,
        reason,
        retry_after: None,
        closes: false,
        may_fall_back: false,
        cause: RefusalCause::Client,
        when: "",
        remedy: "",
    }
}

/// As [`plain`], and the connection is closed.
const fn closing(status: u16, reason: &'static str) -> RefusalFacts {
    plain(status, reason).closed()
}

/// The client is not at fault.
const fn ours(status: u16, reason: &'static str) -> RefusalFacts {
    RefusalFacts { may_fall_back: true, ..plain(status, reason) }
}

/// The client is not at fault, and may try again later.
const fn later(reason: &'static str) -> RefusalFacts {
    ours(503, reason).for_a_moment()
}

/// Makes one constant per row, and `ALL` in the order of the rows.
macro_rules! rows {
    ($($name:ident: $facts:expr, $cause:ident, $when:literal, $remedy:literal;)*) => {
        $(pub(in crate::gateway) const $name: RefusalFacts = $facts.told(RefusalCause::$cause, $when, $remedy);)*

        pub const ALL: &[RefusalFacts] = &[$($name),*];
    };
}

// A row: name, status and reason, cause, when it happens, what the operator can do.
rows! {
    BAD_HEAD: closing(400, "bad_head"), Client,
        "The request line or a header field breaks RFC 9112: for example a line that ends in a bare LF, or a folded line.",
        "Nothing. `detail` in the log says which line is wrong.";
    BAD_FRAMING: closing(400, "bad_framing"), Client,
        "The length of the body is in doubt: for example `Content-Length` and `Transfer-Encoding` in one request.",
        "Nothing. Such requests are used for request smuggling; `detail` says which rule is broken.";
    BAD_HOST: closing(400, "bad_host"), Client,
        "`Host` is missing, repeated, empty or malformed, or, in HTTP/2, it contradicts `:authority`.",
        "Nothing. `detail` says which of these it is.";
    BAD_TARGET: closing(400, "bad_target"), Client,
        "The request target is malformed, or the app could read its path as the path of another route.",
        "Look at `detail`, then at the routes of that host (`hostler routes`).";
    BAD_BODY: closing(400, "bad_body"), Client,
        "The body breaks the chunked transfer coding.",
        "Nothing. `detail` says what is wrong.";
    CONNECT: closing(400, "connect"), Client,
        "The method is CONNECT, and the request is not a WebSocket over HTTP/2. Hostler is no forward proxy.",
        "Nothing.";
    NO_WEBSOCKET: plain(400, "no_websocket"), Client,
        "A client asked for a WebSocket over HTTP/2, and the app answered the handshake with an ordinary 2xx.",
        "Check the path: does the app accept WebSockets there?";
    PLAIN_HTTP: closing(400, "plain_http"), Client,
        "The client speaks HTTP without TLS to an address of `tls.listen`.",
        "Give clients the `https://` URL. Plain HTTP belongs to `server.listen`, with `tls.redirect_http` to send browsers on.";
    NO_ROUTE: plain(404, "no_route"), Client,
        "No route matches the host and the path.",
        "Add a route to `[[routes]]`, or `match = \"*\"` for all others. `hostler routes` shows the table.";
    NO_FILE: plain(404, "no_file"), Client,
        "The folder of the route has no such file, or none that may be served.",
        "If the file exists, `detail` says why it is not served: a permission, or a link that leads out of the folder.";
    METHOD: plain(405, "method"), Client,
        "A request for a file has another method than GET or HEAD. The response has `Allow`.",
        "Route the path to a pool if the app takes other methods there.";
    TRACE: plain(405, "trace"), Client,
        "The method is TRACE and the route has no `trace = true`, or `Max-Forwards` is 0. The response has `Allow`.",
        "Set `trace = true` on the route, only where a TRACE cannot show fields that proxies add.";
    HEADER_TIMEOUT: closing(408, "header_timeout"), Client,
        "The head of the request did not arrive in `server.header_timeout`.",
        "Raise `server.header_timeout` if honest clients are this slow.";
    BODY_TIMEOUT: closing(408, "body_timeout"), Client,
        "The client paused for longer than `server.body_timeout` while it sent the body.",
        "Raise `server.body_timeout` if honest clients pause that long.";
    MIN_RECEIVE_RATE: closing(408, "min_receive_rate"), Client,
        "The client sent the body more slowly than `server.min_receive_rate`.",
        "Lower `server.min_receive_rate` if honest clients are this slow.";
    PRECONDITION: plain(412, "precondition"), Client,
        "`If-Match` or `If-Unmodified-Since` of the request does not hold for the file.",
        "Nothing.";
    BODY_TOO_LARGE: closing(413, "body_too_large"), Client,
        "The body is larger than `max_body_size`.",
        "Raise `max_body_size` of the route or of `[server]`.";
    START_LINE_TOO_LARGE: closing(414, "start_line_too_large"), Client,
        "The request line alone is larger than `server.max_header_size`.",
        "Raise `server.max_header_size` if honest clients have such URLs.";
    RANGE: plain(416, "range"), Client,
        "The client asked for a part of a file, or of a stored response, that begins after its end. The response has `Content-Range`.",
        "Nothing.";
    EXPECTATION: closing(417, "expectation"), Client,
        "`Expect` asks for something other than `100-continue`.",
        "Nothing.";
    CLIENT_CONNECTIONS: closing(429, "client_connections").for_a_moment(), Client,
        "One client address has more connections than `server.client_connections`. With TLS, Hostler closes the connection without a response.",
        "If the address is a proxy or a balancer, add it to `server.trusted_proxies`. Else raise `server.client_connections`.";
    CLIENT_REQUESTS: plain(429, "client_requests").for_a_moment(), Client,
        "One client has more requests in progress than `server.client_requests`.",
        "If the address is a proxy or a balancer, add it to `server.trusted_proxies`. Else raise `server.client_requests`.";
    RATE_LIMITED: plain(429, "rate_limited").for_a_moment(), Client,
        "The client, or what `rate_limit.key` names, has used up what the `rate_limit` of the route or of the pool gives it. The response has `RateLimit` and `RateLimit-Policy` if the limit is one of requests.",
        "`detail` says which limit it was, and for which key. If honest clients reach it, raise it; with `dry_run = true` Hostler only counts.";
    HEADER_TOO_LARGE: closing(431, "header_too_large"), Client,
        "The request line and all header fields together are larger than `server.max_header_size`.",
        "Raise `server.max_header_size`. Often the cookies of the app have grown too large.";
    TOO_MANY_FIELDS: closing(431, "too_many_fields"), Client,
        "The request has more header fields than `server.max_header_fields`.",
        "Raise `server.max_header_fields`.";
    MEMBER_HEAD_LIMIT: plain(431, "member_head_limit"), Client,
        "The app speaks HTTP/2, and says that it accepts no head as large as that of the request (`SETTINGS_MAX_HEADER_LIST_SIZE`, RFC 9113 section 6.5.2). It did not get the request.",
        "Raise the limit of the app's server, such as `maxHeaderListSize` in Node.js. Often the cookies of the app have grown too large.";
    CLIENT_LEFT: closing(499, "client_left"), Client,
        "The client closed the connection before its response began. 499 is in the log only; it is never sent.",
        "Compare `queue_wait_ms` and `worker_time_ms` in the log: clients often leave because responses are slow.";
    TRANSFER_CODING: closing(501, "transfer_coding"), Client,
        "The body has a transfer coding besides `chunked`, such as `Transfer-Encoding: gzip, chunked` (RFC 9112 section 6.1).",
        "Nothing. A client says with `Content-Encoding` that it has compressed a body.";
    ONLY_IF_CACHED: plain(504, "only_if_cached"), Client,
        "The request says `Cache-Control: only-if-cached`, and no stored response fits.",
        "Nothing.";
    VERSION: closing(505, "version"), Client,
        "The protocol version in the request line is neither HTTP/1.0 nor HTTP/1.1.",
        "Nothing.";

    NO_MEMBER: later("no_member"), App,
        "A registered route has no member at the moment: all have unregistered, or have not registered again in `registrar.stale_threshold`.",
        "Start an instance of the app. `registrar.keep_empty` says for how long the route stays. After that, requests get `no_route`.";
    MEMBER_BUSY: later("member_busy"), Overload,
        "The request is for one instance of a registered route, and that instance has no free slot.",
        "Raise `registrar.concurrency`.";

    LOOP: plain(508, "loop"), Operator,
        "The request has come to this Hostler before: `Via` has its name.",
        "Find the proxy or the member that sends requests back here.";
    FILE_SYSTEM: plain(500, "file_system"), Operator,
        "The folder of a `static` route is missing, or the disk does not give the file.",
        "Look at `detail`, at `static.dir` and at the disk.";
    STORAGE: closing(500, "storage"), Operator,
        "Hostler could not write the body to a temporary file.",
        "Look at `detail` and at `server.temp_dir`: does the folder exist, and may Hostler write there?";
    SPOOL_SIZE: closing(507, "spool_size"), Operator,
        "The body is larger than the part of `server.spool_size` that one connection may have, which is a half.",
        "Raise `server.spool_size` to at least twice the largest `max_body_size`.";
    STOPPING: later("stopping").closed(), Operator,
        "Hostler is stopping, or a reload has removed the pool.",
        "Nothing. To stop without refusals, take Hostler out of the balancer first (`server.drain_wait`), or use `hostler upgrade`.";
    MEMBER_NOT_TLS: ours(502, "member_not_tls"), Operator,
        "A member that should speak TLS does not, and no other member was reached in time.",
        "Leave `https://` out of `members`, or switch on TLS at the member.";
    MEMBER_WRONG_NAME: ours(502, "member_wrong_name"), Operator,
        "The certificate of a member is for another name, and no other member was reached in time.",
        "Set `server_name` in `[pools.NAME.tls]`, or give the member a certificate with its name. A registered route says the name itself (`server_cert_domain_san`).";
    MEMBER_UNTRUSTED: ours(502, "member_untrusted"), Operator,
        "The certificate of a member has expired or is from an unknown authority, and no other member was reached in time.",
        "Renew the certificate, or name its authority: `ca` in `[pools.NAME.tls]` or `[registrar.member_tls]`.";
    MEMBER_WANTS_CERTIFICATE: ours(502, "member_wants_certificate"), Operator,
        "A member asks for a client certificate and does not accept what Hostler shows, and no other member was reached in time.",
        "Set `cert` and `key` in `[pools.NAME.tls]` or `[registrar.member_tls]`.";
    MEMBER_HANDSHAKE: ours(502, "member_handshake"), Operator,
        "The TLS handshake with a member failed in another way, and no other member was reached in time.",
        "Look at `detail`: often the two have no TLS version in common, or the member did not answer in `connect_timeout`.";

    UNREACHABLE: ours(502, "unreachable"), App,
        "Hostler could not connect to any member until `queue.timeout`.",
        "Look at `detail` and at `hostler status`: are the members running, and are the addresses in `members` right?";
    WORKER_LOST: ours(502, "worker_lost"), App,
        "The worker ended, or closed the connection, before its response was complete, and the request must not be sent again.",
        "Look at the worker's last lines in the log. Hostler itself repeats the requests that may be repeated.";
    BAD_ANSWER: ours(502, "bad_answer"), App,
        "The response of the worker is not HTTP, or its head is over `server.max_header_fields` or `server.max_header_size`.",
        "Look at `detail`. Is it the right port, and does it speak the pool's `protocol`?";
    INTERIM_ANSWERS: ours(502, "interim_answers"), App,
        "The worker sent more interim responses (1xx) than `server.max_interim_answers`, or more bytes of them than `server.max_header_size`.",
        "Correct the app, or raise `server.max_interim_answers`.";
    POISON: ours(502, "poison"), App,
        "This request, or others with the same method, host and URL, made workers die.",
        "Correct the app. `pools[].kept_off` in the status shows what is refused; `poison.kills` and `poison.keep_off` set the limits.";
    SUSPECT: later("suspect"), App,
        "Requests like this one made workers die or hang, so Hostler tries them one at a time. The turn of this request did not come in time.",
        "Correct the app. `stack` in the status shows where a worker hung the last time.";
    ANSWER_TIMEOUT: ours(504, "answer_timeout"), App,
        "The response did not begin in `request_timeout`. With `buffer = \"none\"` the time counts in which the client sends the body. With a fixed `concurrency` the slot stays taken until the worker has finished; with `\"auto\"` the app sees that the connection is closed.",
        "Make the app faster, or raise `request_timeout` of the route or of the pool.";

    QUEUE_FULL: later("queue_full"), Overload,
        "The queue of the pool has `queue.limit` requests already. While this request waited, one of a higher priority may have taken its place; with `queue.fair`, also one of a cheaper key.",
        "Add workers or members, or raise `concurrency` if the workers wait more than they compute. Raise `queue.limit` only for short bursts.";
    QUEUE_TIMEOUT: later("queue_timeout"), Overload,
        "No slot became free in `queue.timeout`, or `request_timeout` was over while the request waited in the queue.",
        "Add workers or members, or raise `concurrency` if the workers wait more than they compute.";
    NOT_STARTED: later("not_started"), App,
        "No worker of the pool has been ready yet, and none became ready in `queue.timeout`: the app boots slowly, or its boots fail.",
        "Look at the worker's last lines in the log. Raise `queue.timeout` if the app boots that slowly.";
    WAKE_TIMEOUT: later("wake_timeout"), App,
        "The pool was asleep (`workers.min = 0`), and no worker became ready in `wake_timeout`: the app boots slowly, or the workers of other pools use up `server.worker_memory`.",
        "Look at the worker's last lines in the log, and at `scaling` in the status. Raise `wake_timeout` if the app boots that slowly.";
    OVERLOADED: later("overloaded"), Overload,
        "More work has come to the pool than it can do in time, and this request would have waited long.",
        "Add workers or members. `priority` of a route says which requests come first; `queue.policy = \"fifo\"` switches early refusals off.";
    TOO_MANY_TUNNELS: later("too_many_tunnels"), Overload,
        "Each worker or member has `max_tunnels` tunnels.",
        "Raise `max_tunnels`, or add workers.";
    TOO_MANY_STREAMS: later("too_many_streams"), Overload,
        "Each worker or member has `max_streams` streams, or the one that answered with a stream has that many.",
        "Raise `max_streams`, or add workers.";
    TOO_MANY_CONNECTIONS: later("too_many_connections").closed().without_fallback(), Overload,
        "Hostler has `server.max_connections` client connections. With TLS, it closes the new one without a response.",
        "Raise `server.max_connections` and the limit of open files (`ulimit -n`).";
    NO_DESCRIPTOR: later("no_descriptor"), Overload,
        "Hostler had no free file descriptor, or no free local port, for a connection to a worker or member in `connect_timeout`. A part of the descriptors is kept for clients and files.",
        "Raise the limit of open files: `ulimit -n`, or `LimitNOFILE` of the systemd unit. If `detail` in the access log says `Cannot assign requested address`, raise `net.ipv4.ip_local_port_range`. Fewer slots (`concurrency`) need fewer connections.";
    REQUEST_MEMORY: later("request_memory").closed().without_fallback(), Overload,
        "`server.request_memory` has no room for the header fields of an HTTP/2 request, if they take more than 8 KiB, or for the body of a request to a `geo` or `postal` route.",
        "Raise `server.request_memory`.";
    SPOOL_FULL: later("spool_full").closed().without_fallback(), Overload,
        "The temporary files have no room for the body: the connection has its share of `server.spool_size`, or the disk is full.",
        "Look at `spool` in the status. Raise `server.spool_size`, or make room on the disk of `server.temp_dir`.";
}
