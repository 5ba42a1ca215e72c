//! An open loop at a high rate: asks for one thing at random instants (Poisson) whether or not answers have come, and says how long they took.
//!
//! `bench-pace 127.0.0.1:8080 /path RATE SECONDS CONNECTIONS SEED`. It waits for nothing: it wants a core for itself, where the generator in
//! `bench/load`, which waits by timers and takes a goroutine a request, is late by milliseconds from some thousand requests a second on.
//! Latency counts from the intended instant. How late it was itself, and when its core was taken from it, it says beside.
//! It knows nothing of who answers.

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
