//! The `[server]` section: listeners, limits and trust.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Compress;
use crate::value::{
    Address, AdminAddress, ClientLimit, Count, Delay, OneOrMany, Period, Proxy, RequestPath, Size, Switch,
};

/// The `[server]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Server {
    /// Where clients connect. `":8080"` is every address of the machine, IPv4 and IPv6; a name such as
    /// `localhost` is looked up once, at the start, and means its first IPv4 address if it has one; port 0 is
    /// a free port.
    pub listen: OneOrMany<Address>,
    /// Where `hostler status` and `GET /status` are answered, without any password: never a public address.
    /// `"off"` for none.
    pub admin: AdminAddress,
    /// Data-plane runtimes, each a thread with its own share of the connections.
    #[schemars(with = "Count<1, 1024>", extend("x-default" = "one a core"))]
    pub threads: Option<Count<1, 1024>>,
    /// The time a client has to send the head of a request, from its first byte to its last. Over it: 408 and
    /// the connection is closed.
    pub header_timeout: Period,
    /// The longest pause a client may make while it sends a body; any byte starts it anew. Over it: 408 and
    /// the connection is closed.
    pub body_timeout: Period,
    /// Bytes a second that a client must send of a body, on average. A client that has fallen behind by ten seconds' worth gets 408, and the
    /// connection is closed: a byte now and then keeps no body waiting for ever. One pause counts for five seconds at most, `body_timeout`
    /// is the limit for that. In HTTP/2 the bodies of a connection count together. `"0 B"`: any byte is enough.
    pub min_receive_rate: Size<0, 1_048_576>,
    /// The longest time in which a client may take nothing of its answer. Over it: the connection is closed; in HTTP/2 the stream is reset
    /// (CANCEL), unless its connection takes what other streams have for it and cannot take all at once. What the network is given counts, not
    /// what waits in the kernel. A slow client's system makes room in steps, often of 64 KB: after a step the limit is longer, by 1 s for each
    /// KB of the step and at most by one and a half times itself.
    pub send_timeout: Period,
    /// Bytes a second that a client must take of its answers, on average, while there is more for it. A client that has fallen behind by ten
    /// seconds' worth is cut off: a byte now and then keeps no answer waiting for ever. One pause counts for five seconds at most,
    /// `send_timeout` is the limit for that. In HTTP/2 the answers of a connection count together. `"0 B"`: any byte is enough.
    pub min_send_rate: Size<0, 1_048_576>,
    /// Bytes a second that a client must take, as with `min_send_rate`, while a worker has to wait for it: neither `answer_memory` nor
    /// `spool_size` has room for more of its answer. A client that is slower, or takes nothing for ten seconds, is cut off, so that a slot
    /// waits only for clients that read on. `"0 B"`: a worker waits for any client.
    pub min_slot_rate: Size<0, 1_073_741_824>,
    /// How long a kept-alive connection may be without a request. Over it: it is closed, between requests, so
    /// nothing is lost.
    pub idle_timeout: Period,
    /// How long a stop (SIGTERM, SIGINT) waits for accepted requests to finish. Over it, or at a second
    /// signal: what is left is cut off.
    pub drain_timeout: Period,
    /// How long SIGUSR1 lets all go on while health checks fail already (503), so that a balancer in front looks elsewhere;
    /// then it is a stop.
    pub drain_wait: Delay,
    /// A path under which health checks are answered on `listen` and `tls.listen`, whatever their host: `/healthz` and
    /// `/healthz/ready` say 200 while clients are welcome and the pools that count (`health_pools`) have a ready member each, and 503
    /// with the reason otherwise; `/healthz/ready/NAME` says so of one pool, `/healthz/startup` whether all of them could serve once,
    /// `/healthz/live` whether the process works. Other methods than GET and HEAD, and other paths, go to the routes.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub health_path: Option<RequestPath>,
    /// The pools without which Hostler is not ready. A pool that is not in the list may be without members, and health checks say 200.
    #[schemars(extend("x-default" = "all that a route leads to"))]
    pub health_pools: Vec<String>,
    /// Whether health checks have lines in the access log. They are never counted as requests of a route.
    #[schemars(with = "bool", extend("x-default" = "`true` with `access_log = \"gorouter\"`, which has them; else `false`"))]
    pub log_health_checks: Option<bool>,
    /// How long a new program that takes over (`hostler upgrade`, SIGUSR2) may need until its workers are ready.
    /// Over it: it is ended, and the running one goes on as before. A pool that is new at `hostler reload` has as long for
    /// its first worker.
    pub upgrade_timeout: Period,
    /// Bytes of the request line and all header fields together. Over it: 431 (RFC 6585, section 5). Workers are told to
    /// take as much, unless `NODE_OPTIONS` has a `--max-http-header-size`: Node by itself stops at 16 KiB.
    pub max_header_size: Size<8192, 1_048_576>,
    /// Header fields in one request. Over it: 431 (RFC 6585, section 5). In an answer of a member: 502.
    pub max_header_fields: Count<1, 1000>,
    /// Interim answers (1xx, such as 103 Early Hints) that a member may send before one answer; all their heads together
    /// have at most `max_header_size` bytes. Over it: the connection to the member is closed, and the client gets 502.
    pub max_interim_answers: Count<0, 10_000>,
    /// Bytes of a request's body. Over it: 413 (RFC 9110, section 15.5.14), at once if Content-Length says
    /// so. A route can have its own.
    pub max_body_size: Size<1, 1_099_511_627_776>,
    /// Bytes of a request's body that are held in memory while it is read; a longer body goes to a temporary
    /// file.
    pub body_memory: Size<0, 1_073_741_824>,
    /// Bytes of memory for the bodies of all requests together. A connection may hold as much of it as is free after that, so that a few
    /// cannot use up what others need. Over it: bodies of more than 4 KiB go to temporary files, whatever `body_memory` says; on
    /// `geo` and `postal` routes, which read bodies in memory only, 503 with Retry-After.
    pub request_memory: Size<0, 1_099_511_627_776>,
    /// The folder for bodies over `body_memory` and for answers to slow clients; relative to the file's folder. It must exist.
    #[schemars(with = "String", extend("x-default" = "the system's: TMPDIR or /tmp"))]
    pub temp_dir: Option<String>,
    /// Bytes of all files in `temp_dir` together: bodies over `body_memory`, and answers that are more than memory holds of them while
    /// their clients read slowly. Connections share it: one alone can take half of it, many take equal parts. Over it: a body is refused
    /// (503), and the answer of a client that does not read on is cut off. Where `temp_dir` is itself in memory (tmpfs), so is this.
    #[schemars(
        with = "Size<0, 1_125_899_906_842_624>",
        extend("x-default" = "`\"1 GiB\"`, or four times the longest body that a route takes, if that is more")
    )]
    pub spool_size: Option<Size<0, 1_125_899_906_842_624>>,
    /// Bytes of memory for the answers of all connections together, as far as their clients are slower than their workers. A connection
    /// may hold as much of it as is free after that, and 16 KiB in any case, so that a few cannot use up what others need. Over it: more
    /// goes to a temporary file, whatever `answer_buffer` says.
    pub answer_memory: Size<0, 1_099_511_627_776>,
    /// Bytes of one answer that are held in memory for a client slower than its worker. Once it is full and the client takes less than 1 MiB
    /// in 0.2 s, the rest goes to a temporary file (`spool_size`), and the worker need not wait. Answers without an end are not put there:
    /// `text/event-stream`, those with `X-Accel-Buffering: no`, and those of routes with `buffer = "none"`. Their workers wait for
    /// the client.
    pub answer_buffer: Size<4096, 1_073_741_824>,
    /// Whether answers are compressed on their way to clients that take it: `true`, or a table that says which and how. A route
    /// can have its own. Off by default: many apps compress by themselves, and a page with both a secret and what a
    /// stranger makes it repeat gives the secret away by its length (BREACH). `docs/concepts/compression.md` says what becomes of
    /// an answer.
    #[schemars(extend("x-default" = "`false`"))]
    pub compress: Switch<Compress>,
    /// Bytes of memory for all encoders together. Over it: answers go out as they are.
    pub compress_memory: Size<0, 1_099_511_627_776>,
    /// Client connections at once. Over it: 503 with Retry-After, and the connection is closed; with TLS it is just
    /// closed, before the handshake.
    pub max_connections: Count<1, 1_000_000>,
    /// Connections at once from one client: one IPv4 address, or one /64 of IPv6. Over it: 429 with Retry-After, and the connection is
    /// closed; with TLS it is closed before the handshake. `"auto"`: a quarter of `max_connections`, at least 100, for public addresses;
    /// for loopback and private ones, where a proxy, a balancer or a load test is more likely than a client, all but the last 64
    /// of `max_connections` if that is 1000 or more, else no limit. A number holds for every address. The connections of
    /// `trusted_proxies` are not counted, nor, with `trusted_hops`, any; with `proxy_protocol` the client that the header names is counted.
    pub client_connections: ClientLimit,
    /// Requests under way for one client, tunnels included, wherever they wait or are served. Over it: 429 with Retry-After. The client is whom
    /// `trusted_proxies`, `trusted_hops` and `proxy_protocol` make it. `"auto"`: a tenth of `max_connections`, at least 100, for
    /// public addresses; no limit for loopback and private ones. A number holds for every address that is not a trusted proxy.
    pub client_requests: ClientLimit,
    /// Clients may speak HTTP/2: over TLS those that ask for it, without it those that begin with it (prior knowledge).
    pub http2: bool,
    /// Requests and tunnels that one HTTP/2 connection may have under way at once. A client is told; a stream over it is
    /// refused, and can safely be tried again.
    pub http2_max_streams: Count<1, 100_000>,
    /// Bytes of one request's body that an HTTP/2 client may send before Hostler has taken them. More of it makes a large
    /// upload over a long way faster.
    pub http2_stream_window: Size<65_536, 1_073_741_824>,
    /// The same, for all bodies of a connection together: the most memory that they can take before they are taken.
    pub http2_connection_window: Size<65_536, 1_073_741_824>,
    /// One line an exchange on standard output, as JSON or for people.
    pub access_log: AccessLog,
    /// Whose forwarding headers (`X-Forwarded-*`, `Forwarded`, ...) are believed: networks or single
    /// addresses. From anybody else they are removed. A malformed entry stops
    /// the start: trusting too few breaks an app, trusting too many opens it.
    pub trusted_proxies: Vec<Proxy>,
    /// Instead of `trusted_proxies`, for proxies whose addresses nobody can list (some CDNs): how many of them each request has come
    /// through. So many entries of `client_ip_header` are counted from the right, or its one address is taken; a request with fewer
    /// has come round one of them, and its client is the other end of its connection. Everybody's forwarding headers are passed on, and whoever
    /// reaches Hostler round a proxy can claim any address: allow it no other way in. 0: not by number.
    pub trusted_hops: Count<0, 32>,
    /// Load balancers that send a PROXY header (version 1 or 2) before anything else: networks or single addresses. A connection
    /// from one of them must begin with it, within `header_timeout`, before TLS if that is spoken; the client's address is
    /// then the one it names. Anybody else's connection must begin without. Whoever is named is in turn compared with
    /// `trusted_proxies`.
    pub proxy_protocol: Vec<Proxy>,
    /// The one header in which a trusted proxy names the client; it is read from the right, past trusted
    /// proxies, to the first address that is not trusted. The other fields of its kind are passed on from
    /// a trusted proxy and removed from anybody else; they name nobody.
    pub client_ip_header: ClientIpHeader,
}

impl Default for Server {
    fn default() -> Self {
        let local = |port| Address { host: Some("127.0.0.1".into()), port };
        Self {
            listen: OneOrMany(vec![local(8080)]),
            admin: AdminAddress::At(local(8081)),
            threads: None,
            header_timeout: Period::seconds(10),
            body_timeout: Period::seconds(30),
            min_receive_rate: Size(240),
            send_timeout: Period::seconds(30),
            min_send_rate: Size(240),
            min_slot_rate: Size(64 << 10),
            idle_timeout: Period::seconds(75),
            drain_timeout: Period::seconds(30),
            drain_wait: Delay::seconds(20),
            health_path: None,
            health_pools: Vec::new(),
            log_health_checks: None,
            upgrade_timeout: Period::seconds(60),
            max_header_size: Size(64 << 10),
            max_header_fields: Count(100),
            max_interim_answers: Count(100),
            max_body_size: Size(10 << 20),
            body_memory: Size(256 << 10),
            request_memory: Size(64 << 20),
            temp_dir: None,
            spool_size: None,
            answer_memory: Size(64 << 20),
            answer_buffer: Size(1 << 20),
            compress: Switch::Plain(false),
            compress_memory: Size(64 << 20),
            max_connections: Count(10_000),
            client_connections: ClientLimit::Auto,
            client_requests: ClientLimit::Auto,
            http2: true,
            http2_max_streams: Count(128),
            http2_stream_window: Size(256 << 10),
            http2_connection_window: Size(1 << 20),
            access_log: AccessLog::Json,
            trusted_proxies: Vec::new(),
            trusted_hops: Count(0),
            proxy_protocol: Vec::new(),
            client_ip_header: ClientIpHeader::XForwardedFor,
        }
    }
}

/// Form of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessLog {
    /// One JSON object a line.
    Json,
    /// One short line for people.
    Pretty,
    /// One line as Cloud Foundry's gorouter writes it; everything else is as with `"json"`.
    Gorouter,
    /// No access log.
    Off,
}

/// The header in which a trusted proxy names the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClientIpHeader {
    /// What most proxies append to.
    #[serde(rename = "X-Forwarded-For")]
    XForwardedFor,
    /// One address; nginx's habit.
    #[serde(rename = "X-Real-IP")]
    XRealIp,
    /// RFC 7239.
    #[serde(rename = "Forwarded")]
    Forwarded,
    /// Cloudflare.
    #[serde(rename = "CF-Connecting-IP")]
    CfConnectingIp,
    /// Akamai, and Cloudflare Enterprise.
    #[serde(rename = "True-Client-IP")]
    TrueClientIp,
}

impl ClientIpHeader {
    /// The field's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::XForwardedFor => "X-Forwarded-For",
            Self::XRealIp => "X-Real-IP",
            Self::Forwarded => "Forwarded",
            Self::CfConnectingIp => "CF-Connecting-IP",
            Self::TrueClientIp => "True-Client-IP",
        }
    }
}
