//! An open loop at a high rate: sends requests at random times (Poisson), whether or not responses have come, and prints
//! their latencies.
//!
//! `bench-pace 127.0.0.1:8080 /path RATE SECONDS CONNECTIONS SEED`. It never waits, so it needs its own core. The
//! generator in `bench/load` waits by timers and uses a goroutine per request; from some thousand requests per second on,
//! it is late by milliseconds. The latency counts from the intended start. The program also prints how late it was, and
//! when other processes had its core. It knows nothing of the server.

mod clock;
mod connection;
mod plan;
mod report;
mod run;

use std::error::Error;
use std::time::Duration;

use run::Run;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, path, rate, seconds, connections, seed] = args.as_slice() else {
        return Err("usage: bench-pace ADDRESS PATH RATE SECONDS CONNECTIONS SEED".into());
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: bench.test\r\nAccept: */*\r\n\r\n");
    let length = Duration::from_secs_f64(seconds.parse()?);
    let plan = plan::arrivals(rate.parse()?, length, seed.parse()?);
    let run = Run::prepare(address.parse()?, connections.parse()?, request.as_bytes(), &plan)?;
    let (records, stalls) = run.through()?;
    println!("{}", report::report(&records, &stalls, length));
    Ok(())
}
