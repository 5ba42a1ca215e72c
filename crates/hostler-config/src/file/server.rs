//! The keys of `[server]`, as written: listeners, limits and trusted proxies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Compress;
use super::client_ip_header::ClientIpHeader;
use super::workers::MemoryOfWorkers;
use crate::value::{
    Address, AdminAddress, AutoOrOff, ClientLimit, Count, Delay, OneOrMany, Period, Proxy, RequestPath, Size,
    Switch,
};

/// The `[server]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Server {
    /// The addresses on which Hostler accepts connections without TLS.
    ///
    /// - `":8080"`: every address of the machine, IPv4 and IPv6.
    /// - `"localhost:8080"`: Hostler looks the name up once, at the start, and uses its first IPv4 address if it
    ///   has one.
    /// - `["10.0.0.5:8080", "[::1]:8080"]`: two addresses.
    /// - Port 0: a free port, which the system chooses.
    ///
    /// The list may be empty if `tls.listen` has an address.
    pub listen: OneOrMany<Address>,
    /// The address of the admin listener: for `hostler status`, `hostler reload` and the other commands, for `GET /status`
    /// and for metrics. `"off"` disables it.
    ///
    /// - `"127.0.0.1:8081"`: each user of this machine can connect.
    /// - `"unix:/run/hostler/admin.sock"`: a Unix socket with mode 0600. Only root and the user of Hostler can connect.
    /// - Any address that other machines can reach: needs a token (`admin_token_file`); without one Hostler does not start.
    pub admin: AdminAddress,
    /// The file with the admin token: one line of at least 16 characters. `openssl rand -hex 32` makes one.
    ///
    /// With a token, a request that changes something (restart, reload, pause, purge, upgrade) needs
    /// `Authorization: Bearer TOKEN`. If `admin` is an address that other machines can reach, reading the status needs the token,
    /// too; only health checks do not. The commands of `hostler` read the token from this file. The variable
    /// `HOSTLER_ADMIN_TOKEN` takes precedence over the file. `hostler reload` reads the file again. Set it if other users of
    /// the machine, or other machines, can reach the admin address.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub admin_token_file: Option<String>,
    /// The names that a request to the admin listener may have as its `Host`, without a port. Example:
    /// `["hostler-admin.internal"]`.
    ///
    /// IP addresses, `localhost` and the name in `admin` are always allowed. Hostler refuses other names, because a web page
    /// could use one to reach the admin listener through an operator's browser (DNS rebinding). Set it if Prometheus, a probe
    /// or a browser uses a name.
    pub admin_hosts: Vec<String>,
    /// The number of data-plane threads. Each thread serves its own share of the connections.
    ///
    /// Lower it if other programs on the machine need the CPU.
    #[schemars(with = "Count<1, 1024>", extend("x-default" = "one for each core"))]
    pub threads: Option<Count<1, 1024>>,
    /// The time for a client to send the head of a request, from its first byte to its last.
    ///
    /// Over it, Hostler answers 408 (`header_timeout`) and closes the connection. The same time holds for a TLS
    /// handshake and for a PROXY header; over it, Hostler closes the connection without a response. Lower it to free
    /// connections of slow or hostile clients sooner. Raise it for clients on very slow networks.
    pub header_timeout: Period,
    /// The longest pause while a client sends a request body. Every byte starts the time again.
    ///
    /// Over it, Hostler answers 408 (`body_timeout`) and closes the connection. Raise it for clients that stop for
    /// a long time during an upload.
    /// A client whose response has begun may pause in a body without a length on a route with `buffer = "none"`, such
    /// as a gRPC stream: `response_idle_timeout` limits the time in which neither side sends anything.
    pub body_timeout: Period,
    /// The lowest average speed, in bytes a second, at which a client must send a request body.
    ///
    /// A client that falls behind by ten seconds' worth gets 408 (`min_receive_rate`), and Hostler closes the
    /// connection. Example: with `"240 B"` a client may be 2,400 bytes behind. So a client that sends a byte now
    /// and then cannot keep a body open for ever.
    ///
    /// One pause counts for five seconds at most; `body_timeout` limits longer pauses. In HTTP/2 the bodies of a
    /// connection count together. `"0 B"` disables the limit.
    pub min_receive_rate: Size<0, 1_048_576>,
    /// The longest time in which a client may read nothing of its response.
    ///
    /// Over it, Hostler closes the connection. In HTTP/2 Hostler resets the stream (CANCEL), unless the connection
    /// takes the data of other streams and cannot take all data at once. The access log has `"aborted":"client
    /// stalled"`.
    ///
    /// Hostler counts what the network has taken, not what waits in the kernel. The system of a slow client makes
    /// room in steps, often of 64 KB. After a step the limit is longer: by 1 s for each KB of the step, and at most
    /// by one and a half times the limit. Raise it for clients that stop reading for a long time, such as paused
    /// downloads.
    pub send_timeout: Period,
    /// The lowest average speed, in bytes a second, at which a client must read its responses while there is data
    /// for it.
    ///
    /// Hostler cuts off a client that falls behind by ten seconds' worth. So a client that reads a byte now and
    /// then cannot keep a response open for ever. The access log has `"aborted":"client too slow"`.
    ///
    /// One pause counts for five seconds at most; `send_timeout` limits longer pauses. In HTTP/2 the responses of a
    /// connection count together. `"0 B"` disables the limit. Lower it for clients on very slow networks.
    pub min_send_rate: Size<0, 1_048_576>,
    /// The lowest average speed, in bytes a second, at which a client must read a response while a worker waits for
    /// it.
    ///
    /// A worker waits for a client if neither `answer_memory` nor `spool_size` has room for more of its response.
    /// Hostler then cuts off a client that is slower, or that reads nothing for ten seconds. So a slot waits only
    /// for clients that read on. `"0 B"`: a worker waits for every client.
    pub min_slot_rate: Size<0, 1_073_741_824>,
    /// The time for which a kept-alive connection may be without a request.
    ///
    /// Over it, Hostler closes the connection. It does so between requests, so that no request is lost. If a load
    /// balancer is in front of Hostler, use a longer time than the idle timeout of the load balancer.
    pub idle_timeout: Period,
    /// The time for accepted requests to finish after a stop (SIGTERM, SIGINT, SIGQUIT).
    ///
    /// Over it, or at a second signal, Hostler cuts off the requests that are left. Raise it if requests take
    /// longer, such as large downloads.
    pub drain_timeout: Period,
    /// The time after SIGUSR1 in which health checks get 503 and Hostler still serves all clients. Then Hostler
    /// stops.
    ///
    /// Set it to the time that the load balancer in front of Hostler needs to choose another server.
    pub drain_wait: Delay,
    /// The path under which Hostler answers health checks on `listen` and `tls.listen`, for every host. Example:
    /// `"/healthz"`.
    ///
    /// - `/healthz` and `/healthz/ready`: 200 while Hostler accepts clients and each pool that counts
    ///   (`health_pools`) has a ready member; otherwise 503 with the reason.
    /// - `/healthz/ready/NAME`: the same for one pool.
    /// - `/healthz/startup`: 200 after all pools that count have been ready at the same time; before that 503.
    /// - `/healthz/live`: 200 while the Hostler process works.
    ///
    /// Hostler answers GET and HEAD. Other methods and other paths go to the routes.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub health_path: Option<RequestPath>,
    /// The pools that must have a ready member, so that health checks get 200.
    ///
    /// A pool that is not in the list may be without members. Set it if some pools are not essential.
    #[schemars(extend("x-default" = "all pools of routes"))]
    pub health_pools: Vec<String>,
    /// Whether the access log has a line for each health check.
    ///
    /// Health checks never count as requests of a route.
    #[schemars(with = "bool", extend("x-default" = "`true` with `access_log = \"gorouter\"`, otherwise `false`"))]
    pub log_health_checks: Option<bool>,
    /// The time for the new process of `hostler upgrade` (SIGUSR2) to get its workers ready.
    ///
    /// Over it, Hostler ends the new process, and the running process continues as before. The same time holds at
    /// `hostler reload` for reading the files, and for the first worker of a new pool. Raise it if the workers boot slowly.
    pub upgrade_timeout: Period,
    /// The memory for the workers of all pools together. It limits pools with `workers = { min, max }`.
    ///
    /// Hostler counts what each worker has for itself, without the program file that all share. If there is no room, no
    /// pool grows. If an app that is asleep needs a worker then, Hostler stops the workers of the app that has been
    /// without a request for the longest time. Workers of a pool with a fixed number count, too, but Hostler does not stop
    /// them. Lower it if other programs on the machine need the memory.
    #[schemars(with = "MemoryOfWorkers", extend("x-default" = "80 % of the memory of the machine or the control group"))]
    pub worker_memory: Option<MemoryOfWorkers>,
    /// The size of the head of a request: its request line and all its header fields together.
    ///
    /// Over it, Hostler answers 431 (`header_too_large`; RFC 6585, section 5). If the request line alone is too long, it
    /// answers 414 (`start_line_too_large`; RFC 9110, section 15.5.15). Raise it
    /// if clients send large cookies.
    ///
    /// Node alone accepts 16 KiB. Hostler tells its workers to accept as much as this limit, unless `NODE_OPTIONS`
    /// already has `--max-http-header-size`.
    pub max_header_size: Size<8192, 1_048_576>,
    /// The number of header fields in one request.
    ///
    /// Over it, Hostler answers 431 (`too_many_fields`; RFC 6585, section 5). The limit also holds for the response
    /// of a member; over it, the client gets 502. Raise it if proxies in front of Hostler add many fields.
    pub max_header_fields: Count<1, 1000>,
    /// The number of interim responses (1xx, such as 103 Early Hints) that a member may send before one response.
    ///
    /// Their heads together may have `max_header_size` bytes. Over either limit, Hostler closes the connection to
    /// the member, and the client gets 502 (`interim_answers`).
    pub max_interim_answers: Count<0, 10_000>,
    /// The size of a request body. A route can have its own limit (`routes.max_body_size`).
    ///
    /// Over it, Hostler answers 413 (`body_too_large`; RFC 9110, section 15.5.14), at once if `Content-Length` is
    /// over the limit. Raise it on the routes that take uploads.
    pub max_body_size: Size<1, 1_099_511_627_776>,
    /// The part of a request body that Hostler keeps in memory. What is beyond it goes to a temporary file
    /// (`temp_dir`).
    ///
    /// Raise it if most bodies are larger and the disk is slow.
    pub body_memory: Size<0, 1_073_741_824>,
    /// The memory for the request bodies of all connections together, and for long header fields of HTTP/2 requests.
    ///
    /// A client may hold as much of it as is free after that: one client alone gets half of it, and a few clients leave
    /// room for others. Each connection of a trusted proxy, or from a private address, counts as a client.
    ///
    /// Over it, bodies of more than 4 KiB go to temporary files, for any value of `body_memory`. `geo` and `postal`
    /// routes read bodies in memory only; there the client gets 503 (`request_memory`) with `Retry-After`. Raise it
    /// if many clients upload at the same time and the disk is slow.
    ///
    /// HTTP/2 compresses header fields: a few bytes can stand for 64 KiB. So what the header fields of an HTTP/2 request
    /// take over 8 KiB counts here until its response or WebSocket ends. Without room the client gets 503 (`request_memory`).
    pub request_memory: Size<0, 1_099_511_627_776>,
    /// The folder for temporary files: request bodies over `body_memory`, responses to slow clients, and copies of the
    /// files of `[geo]` and `[postal]`.
    ///
    /// The folder must exist. A relative path starts at the folder of the configuration file. In a folder that is in
    /// memory (tmpfs), the files take memory. Set it to a folder on a fast disk with at least `spool_size` of room, and
    /// twice the size of the data files.
    #[schemars(with = "String", extend("x-default" = "TMPDIR, or /tmp"))]
    pub temp_dir: Option<String>,
    /// The size of all temporary files together.
    ///
    /// The files hold request bodies over `body_memory`, and responses that do not fit into memory while their
    /// clients read slowly. The clients share the size: one client alone can take half of it, many clients take
    /// equal parts. Each connection of a trusted proxy, or from a private address, counts as a client.
    ///
    /// If there is no room for a request body, the client gets 503 (`spool_full`). A body that is larger than half of
    /// the size gets 507 (`spool_size`). If there is no room for a response, the worker waits for its client; see
    /// `min_slot_rate`. Raise it if clients get 503 (`spool_full`) or 507, and the disk has room.
    #[schemars(
        with = "Size<0, 1_125_899_906_842_624>",
        extend("x-default" = "`\"1 GiB\"`, or four times the longest body that a route takes, if that is more")
    )]
    pub spool_size: Option<Size<0, 1_125_899_906_842_624>>,
    /// The memory for the responses of all connections together, as far as clients are slower than workers.
    ///
    /// A connection may hold as much of it as is free after that, and 16 KiB in any case. So a few connections leave
    /// room for others. Over it, more of a response goes to a temporary file, for any value of `answer_buffer`.
    /// Raise it if many slow clients read large responses and the disk is slow.
    /// What waits in a tunnel for a client or a worker that does not read counts here, too: at most 64 KiB in each
    /// direction, and 4 KiB while more than half of the memory is in use.
    pub answer_memory: Size<0, 1_099_511_627_776>,
    /// The part of one response that Hostler keeps in memory for a client that is slower than its worker.
    ///
    /// If the buffer is full and the client reads less than 1 MiB in 0.2 s, the rest goes to a temporary file
    /// (`spool_size`). So the worker does not wait.
    ///
    /// Endless responses do not go to a file, and their workers wait for the client: `text/event-stream`, responses
    /// with `X-Accel-Buffering: no`, and responses of routes with `buffer = "none"`. Raise it if most responses are
    /// larger, so that they stay in memory.
    pub answer_buffer: Size<4096, 1_073_741_824>,
    /// Whether Hostler compresses responses: `true`, `false`, or a table with the keys of this section. A route can
    /// have its own setting.
    ///
    /// It is off by default for two reasons. Many apps compress their responses themselves. And a page that
    /// contains both a secret and text that an attacker chooses reveals the secret by its compressed length
    /// (BREACH). `docs/concepts/compression.md` explains which responses Hostler compresses.
    #[schemars(extend("x-default" = "`false`"))]
    pub compress: Switch<Compress>,
    /// The memory for all encoders together. Over it, Hostler sends new responses uncompressed.
    pub compress_memory: Size<0, 1_099_511_627_776>,
    /// The number of concurrent client connections.
    ///
    /// Over it, Hostler answers 503 (`too_many_connections`) with `Retry-After` and closes the connection. With TLS
    /// it closes the connection before the handshake. If the process may open too few files, Hostler lowers the
    /// limit and warns. Raise it together with the limit on open files (`LimitNOFILE` of systemd): a request can
    /// need two descriptors.
    pub max_connections: Count<1, 1_000_000>,
    /// The number of concurrent connections from one client: one IPv4 address, or one /64 network of IPv6. `"off"`
    /// disables the limit.
    ///
    /// Over it, Hostler answers 429 (`client_connections`) with `Retry-After` and closes the connection. With TLS
    /// it closes the connection before the handshake.
    ///
    /// - `"auto"`, public address: a quarter of `max_connections`, and at least 100.
    /// - `"auto"`, loopback or private address: all but the last 64 of `max_connections` if that is 1000 or more,
    ///   otherwise no limit. Such an address is more likely a proxy, a load balancer or a load test than one
    ///   client. Link-local addresses and `100.64.0.0/10` count as private here.
    /// - A number holds for every address.
    ///
    /// Hostler does not count the connections of `trusted_proxies`. With `trusted_hops` it counts no connections.
    /// With `proxy_protocol` it counts for the client that the PROXY header names.
    pub client_connections: ClientLimit,
    /// The number of concurrent requests of one client, open tunnels included. `"off"` disables the limit.
    ///
    /// Requests that wait in a queue count, too. Over it, Hostler answers 429 (`client_requests`) with
    /// `Retry-After`. Hostler finds the client by `trusted_proxies`, `trusted_hops` and `proxy_protocol`.
    ///
    /// - `"auto"`, public address: a tenth of `max_connections`, and at least 100.
    /// - `"auto"`, loopback or private address: no limit.
    /// - A number holds for every address that is not a trusted proxy.
    pub client_requests: ClientLimit,
    /// Whether clients may use HTTP/2.
    ///
    /// With TLS, client and Hostler negotiate it (ALPN). Without TLS, the client begins with it (prior knowledge).
    /// Set it to `false` if a client or a proxy in front of Hostler has problems with HTTP/2.
    pub http2: bool,
    /// The number of concurrent requests and tunnels of one HTTP/2 connection.
    ///
    /// Hostler announces the limit to each client (SETTINGS). Over it, Hostler refuses the stream (REFUSED_STREAM),
    /// and the client can safely send the request again. Lower it to limit what one connection can do. Raise it for
    /// a proxy that sends the requests of many clients over one connection.
    pub http2_max_streams: Count<1, 100_000>,
    /// The flow-control window of an HTTP/2 stream: the bytes of one request body that a client may send before
    /// Hostler has read them.
    ///
    /// Raise it for large uploads from clients that are far away.
    pub http2_stream_window: Size<65_536, 1_073_741_824>,
    /// The flow-control window of an HTTP/2 connection: the same limit for all request bodies of the connection together.
    ///
    /// Bytes that cannot be passed on yet, because their request waits for a slot or their worker reads slowly (`buffer = "none"`,
    /// WebSockets), make the window larger. This memory counts as `request_memory`. If half of that is used, the window grows only a little.
    pub http2_connection_window: Size<65_536, 1_073_741_824>,
    /// The format of the log on standard output. Hostler writes one line for each request, for each event of its own, and for
    /// each line that a worker prints.
    ///
    /// Set `"json"` if standard output is a terminal and you want JSON; set `"pretty"` if it is not a terminal and people read it.
    pub access_log: AccessLog,
    /// The proxies whose forwarding header fields (`X-Forwarded-*`, `Forwarded` and others) Hostler trusts:
    /// networks or addresses. Example: `["10.0.0.0/8"]`.
    ///
    /// Hostler removes these fields from the requests of all other peers. Set the key if a load balancer or a CDN
    /// is in front of Hostler; otherwise its address counts as the client's.
    ///
    /// A malformed entry stops the start. A missing proxy breaks apps, and a network that is too large lets clients
    /// claim any address.
    pub trusted_proxies: Vec<Proxy>,
    /// The number of proxies that every request passes. Use it in place of `trusted_proxies` if their addresses are
    /// not known. `0`: off.
    ///
    /// Example: `2` for a CDN and a load balancer behind it. Hostler counts that many entries of `client_ip_header`
    /// from the right. A field that holds one address is used as it is. A request with fewer entries has not passed
    /// all proxies: its client is the other end of its connection.
    ///
    /// Hostler passes on the forwarding fields of all clients. A client that reaches Hostler without the proxies
    /// can claim any address, so block every other way to Hostler.
    pub trusted_hops: Count<0, 32>,
    /// The load balancers that send a PROXY header (version 1 or 2) before the first byte: networks or addresses.
    ///
    /// A connection from one of them must begin with the header, within `header_timeout` and before TLS. The header
    /// names the client's address. Hostler compares that address with `trusted_proxies`. A connection from any
    /// other address must not begin with a PROXY header.
    pub proxy_protocol: Vec<Proxy>,
    /// The one header field in which a trusted proxy names the client.
    ///
    /// Hostler reads the field from right to left, skips trusted proxies, and uses the first other address. It passes on
    /// the other fields of this kind from a trusted proxy, but replaces `X-Forwarded-For` by the address that it has
    /// found. It removes them from all other peers, and never reads the address from them.
    pub client_ip_header: ClientIpHeader,
}

impl Default for Server {
    fn default() -> Self {
        let local = |port| Address { host: Some("127.0.0.1".into()), port };
        Self {
            listen: OneOrMany(vec![local(8080)]),
            admin: AdminAddress::At(local(8081)),
            admin_token_file: None,
            admin_hosts: Vec::new(),
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
            worker_memory: None,
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
            compress: Switch::Word(false),
            compress_memory: Size(64 << 20),
            max_connections: Count(10_000),
            client_connections: ClientLimit::Word(AutoOrOff::Auto),
            client_requests: ClientLimit::Word(AutoOrOff::Auto),
            http2: true,
            http2_max_streams: Count(128),
            http2_stream_window: Size(256 << 10),
            http2_connection_window: Size(1 << 20),
            access_log: AccessLog::Auto,
            trusted_proxies: Vec::new(),
            trusted_hops: Count(0),
            proxy_protocol: Vec::new(),
            client_ip_header: ClientIpHeader::XForwardedFor,
        }
    }
}

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessLog {
    /// `"pretty"` if standard output is a terminal, otherwise `"json"`.
    Auto,
    /// One JSON object a line.
    Json,
    /// Short lines for people to read, with colours on a terminal. `NO_COLOR`, `FORCE_COLOR`, `CLICOLOR` and `TERM=dumb` are respected.
    Pretty,
    /// One line in the format of Cloud Foundry's gorouter. All other log lines are the same as with `"json"`.
    Gorouter,
    /// No access log. All other log lines are the same as with `"pretty"`.
    Off,
}
