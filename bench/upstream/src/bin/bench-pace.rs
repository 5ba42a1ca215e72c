//! An open loop at a high rate: asks for one thing at random instants (Poisson) whether or not answers have come, and says how long they took.
//!
//! `bench-pace 127.0.0.1:8080 /path RATE SECONDS CONNECTIONS SEED`. It never sleeps: it wants a core for itself, where the generator in
//! `bench/load`, which waits by timers and takes a goroutine a request, is late by milliseconds from some thousand requests a second on.
//! Latency counts from the intended instant; beside it, from the instant at which the request did start: where the two differ, it is we who
//! were late. It knows HTTP/1.1 answers with `Content-Length`, and nothing else of who answers.

#![expect(clippy::disallowed_types, reason = "it measures real time: there is no clock to pause")]

use std::collections::VecDeque;
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use memchr::memmem;

/// What has not come by then never does.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, path, rate, seconds, connections, seed] = args.as_slice() else {
        return Err("usage: bench-pace ADDRESS PATH RATE SECONDS CONNECTIONS SEED".into());
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: bench.test\r\nAccept: */*\r\n\r\n");
    let plan = arrivals(rate.parse()?, Duration::from_secs_f64(seconds.parse()?), seed.parse()?);
    let connections =
        (0..connections.parse()?).map(|_| Connection::open(address)).collect::<Result<_, _>>()?;
    let run = Run {
        request: request.as_bytes(),
        connections,
        waiting: VecDeque::new(),
        hits: Vec::new(),
        served: Vec::new(),
        lags: Vec::new(),
        refused: 0,
    };
    println!("{}", run.through(&plan)?);
    Ok(())
}

/// The instants of a Poisson process, from its beginning; the same seed gives the same.
fn arrivals(rate: f64, length: Duration, seed: u64) -> Vec<Duration> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut at = 0.0;
    let mut plan = Vec::new();
    loop {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Between 0 and 1, and neither.
        let random = ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        at -= random.ln() / rate;
        if at >= length.as_secs_f64() {
            return plan;
        }
        plan.push(Duration::from_secs_f64(at));
    }
}

struct Connection {
    stream: TcpStream,
    /// When the request that is on its way was meant to start, and when it did.
    asked: Option<(Instant, Instant)>,
    input: Vec<u8>,
}

impl Connection {
    fn open(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, asked: None, input: Vec::with_capacity(4096) })
    }

    /// The status of the answer, once it has come whole.
    fn answer(&mut self) -> std::io::Result<Option<u16>> {
        let mut chunk = [0; 16 * 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.input.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
        let Some(end) = memmem::find(&self.input, b"\r\n\r\n") else { return Ok(None) };
        let head = String::from_utf8_lossy(&self.input[..end]).to_ascii_lowercase();
        let length = head.split("\r\n").find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.and_then(|text| text.trim().parse().ok()).ok_or(ErrorKind::InvalidData)?;
        if self.input.len() < end + 4 + length {
            return Ok(None);
        }
        self.input.clear();
        Ok(head.get(9..12).and_then(|status| status.parse().ok()))
    }
}

struct Run<'a> {
    request: &'a [u8],
    connections: Vec<Connection>,
    /// Meant to have started, while all connections were busy.
    waiting: VecDeque<Instant>,
    hits: Vec<u64>,
    /// The same from the instants at which they did start.
    served: Vec<u64>,
    lags: Vec<u64>,
    refused: usize,
}

impl Run<'_> {
    fn through(mut self, plan: &[Duration]) -> std::io::Result<String> {
        let began = Instant::now();
        let mut next = 0;
        let mut busy = Vec::new();
        let mut idle: Vec<usize> = (0..self.connections.len()).collect();
        while (next < plan.len() || !busy.is_empty() || !self.waiting.is_empty())
            && began.elapsed() < plan.last().copied().unwrap_or_default() + PATIENCE
        {
            while plan.get(next).is_some_and(|at| began.elapsed() >= *at) {
                self.waiting.push_back(began + plan[next]);
                next += 1;
            }
            while let (Some(connection), Some(meant)) = (idle.last().copied(), self.waiting.front().copied())
            {
                self.start(connection, meant)?;
                self.waiting.pop_front();
                idle.pop();
                busy.push(connection);
            }
            let mut at = 0;
            while at < busy.len() {
                if self.finish(busy[at])? {
                    idle.push(busy.swap_remove(at));
                } else {
                    at += 1;
                }
            }
        }
        Ok(self.report(plan.len()))
    }

    fn start(&mut self, connection: usize, meant: Instant) -> std::io::Result<()> {
        let started = Instant::now();
        self.lags.push(micros(started - meant));
        let connection = &mut self.connections[connection];
        connection.asked = Some((meant, started));
        connection.stream.write_all(self.request)
    }

    fn finish(&mut self, connection: usize) -> std::io::Result<bool> {
        let connection = &mut self.connections[connection];
        let Some(status) = connection.answer()? else { return Ok(false) };
        match connection.asked.take() {
            Some((meant, started)) if status == 200 => {
                self.hits.push(micros(meant.elapsed()));
                self.served.push(micros(started.elapsed()));
            }
            _ => self.refused += 1,
        }
        Ok(true)
    }

    /// What never came counts as endless, as in the generator of `bench/load`: JSON has `null` for that.
    fn report(mut self, planned: usize) -> String {
        let ok = self.hits.len();
        self.hits.resize(planned.max(ok), u64::MAX);
        let mut at = |percent: f64| match percentile(&mut self.hits, percent) {
            u64::MAX => "null".to_owned(),
            value => value.to_string(),
        };
        let (p50, p99, longest) = (at(50.0), at(99.0), at(100.0));
        let (refused, failed) = (self.refused, planned - ok - self.refused);
        let (served, lag) = (percentile(&mut self.served, 99.0), percentile(&mut self.lags, 99.0));
        format!(
            r#"{{"planned":{planned},"ok":{ok},"refused":{refused},"failed":{failed},"p50_us":{p50},"p99_us":{p99},"longest_us":{longest},"served_p99_us":{served},"start_lag_p99_us":{lag}}}"#
        )
    }
}

/// Nearest rank.
fn percentile(values: &mut [u64], percent: f64) -> u64 {
    values.sort_unstable();
    let rank = (percent / 100.0 * values.len() as f64 - 1e-9).ceil().max(1.0) as usize;
    values.get(rank - 1).copied().unwrap_or(u64::MAX)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_come_at_the_rate_and_are_the_same_for_the_same_seed() {
        let plan = arrivals(1000.0, Duration::from_secs(10), 1);
        assert!((9_500..10_500).contains(&plan.len()), "{}", plan.len());
        assert!(plan.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(plan, arrivals(1000.0, Duration::from_secs(10), 1));
        assert_ne!(plan, arrivals(1000.0, Duration::from_secs(10), 2));
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut values: Vec<u64> = (1..=100).rev().collect();
        assert_eq!([50.0, 99.0, 100.0].map(|percent| percentile(&mut values, percent)), [50, 99, 100]);
    }
}
