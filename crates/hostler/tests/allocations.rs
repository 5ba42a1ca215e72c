//! Counts what a plain request over a kept connection allocates, also beside a route with conditions and under a rate limit: nothing, once
//! its connections and buffers exist. The whole program runs in
//! this process, with a client and a member that allocate nothing.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::Duration;

use hostler::cli;
use hostler::server::RunOptions;
use hostler_config::{Invocation, LoadContext};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const REQUEST: &[u8] = b"GET /rooms/1 HTTP/1.1\r\nHost: shop.test\r\nUser-Agent: test\r\nAccept: text/html\r\nCookie: a=b\r\n\r\n";
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nETag: \"1\"\r\nConnection: keep-alive\r\n\r\nhello";
/// The conditions of the first route hold, except the last one.
const ROUTES: &str = "
[[routes]]
match = '*'
when = { method = 'GET', client = '127.0.0.0/8', header = { Accept = 'text/*', X-Beta = false }, query = { a = false }, cookie = { a = 'c' } }
respond = 'other'

[[routes]]
match = '*'
pool = 'app'
rate_limit = { requests = 1_000_000, per = '1s' }
";
/// How many connections send a request at the same time.
const CLIENTS: usize = 10;
/// Timers of the program allocate now and then, so several groups of requests are counted.
const GROUPS: usize = 10;
const ROUNDS: usize = 100 / CLIENTS;

/// A member that answers each request of a connection, which comes in one piece.
fn member(listener: UnixListener) {
    for stream in listener.incoming() {
        thread::spawn(move || {
            let (mut stream, mut buffer) = (stream.unwrap(), [0; 4096]);
            while stream.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {
                stream.write_all(ANSWER).unwrap();
            }
        });
    }
}

fn connect(port: u16) -> TcpStream {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => return stream,
            Err(error) if Instant::now() > until => panic!("no connection: {error}"),
            Err(_) => thread::yield_now(),
        }
    }
}

fn read_answer(stream: &mut TcpStream, buffer: &mut [u8]) {
    let mut bytes = 0;
    while !buffer[..bytes].ends_with(b"\r\n\r\nhello") {
        let more = stream.read(&mut buffer[bytes..]).unwrap();
        assert!(more > 0, "the answer ends early");
        bytes += more;
    }
    assert!(buffer.starts_with(b"HTTP/1.1 200 OK\r\n"));
}

/// One request on each connection at the same time.
fn round(clients: &mut [TcpStream], buffer: &mut [u8]) {
    clients.iter_mut().for_each(|client| client.write_all(REQUEST).unwrap());
    clients.iter_mut().for_each(|client| read_answer(client, buffer));
}

#[test]
fn a_plain_request_over_kept_connections_allocates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("member.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(|| member(listener));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let file = folder.path().join("hostler.toml");
    let config = format!(
        "[server]\nlisten = [\"127.0.0.1:{port}\"]\nadmin = \"off\"\nthreads = 1\naccess_log = \"off\"\n\n\
         [pools.app]\nmembers = [\"unix:{}\"]\nconcurrency = 64\n{ROUTES}",
        socket.display()
    );
    std::fs::write(&file, config).unwrap();
    let invocation =
        Invocation { file: Some(file), settings: Vec::new(), load_context: LoadContext::of_process() };
    thread::spawn(|| cli::start(invocation, RunOptions::default()));

    let mut buffer = [0; 4096];
    let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| connect(port)).collect();
    (0..ROUNDS).for_each(|_| round(&mut clients, &mut buffer));
    let fewest = (0..GROUPS)
        .map(|_| {
            let region = Region::new(ALLOCATOR);
            (0..ROUNDS).for_each(|_| round(&mut clients, &mut buffer));
            let change = region.change();
            change.allocations + change.reallocations
        })
        .min();
    assert_eq!(fewest, Some(0), "allocations in {} requests", ROUNDS * CLIENTS);
}
