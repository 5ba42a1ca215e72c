//! The loop: starts each request when it is due, reads responses as they come, and never waits. Knows no figures.

use std::io::Result;
use std::net::SocketAddr;
use std::time::Duration;

use mio::{Events, Poll, Token};

use crate::clock::{Clock, Stall};
use crate::connection::Connection;

/// A response that has not come within this time never comes.
const LIMIT: Duration = Duration::from_secs(10);
/// The pause between two spans of work. A process with real-time priority that uses a core for 0.95 s of a second loses
/// it for the rest, 50 ms at once (`sched_rt_runtime_us`). So the loop gives up the core for a moment regularly, and is
/// late by that moment at most.
const SPIN: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_micros(80);

/// The result of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    pub meant: Duration,
    /// How late the start was, without the time in which all connections were busy.
    pub lag: Duration,
    /// All connections were busy at its time.
    pub held: bool,
    pub status: Option<u16>,
    /// From its intended start.
    pub took: Duration,
}

pub struct Run<'a> {
    request: &'a [u8],
    poll: Poll,
    connections: Vec<Connection>,
    /// The current request of each connection.
    asked: Vec<usize>,
    idle: Vec<usize>,
    records: Vec<Record>,
    /// The next request to start.
    next: usize,
    /// The next request whose time has not come.
    unseen: usize,
    open: usize,
}

impl<'a> Run<'a> {
    /// Everything that needs memory or time is done here.
    pub fn prepare(address: SocketAddr, count: usize, request: &'a [u8], plan: &[Duration]) -> Result<Self> {
        let poll = Poll::new()?;
        let connections = (0..count)
            .map(|i| Connection::open(address, poll.registry(), Token(i)))
            .collect::<Result<_>>()?;
        Ok(Self {
            request,
            poll,
            connections,
            asked: vec![0; count],
            idle: (0..count).collect(),
            records: plan.iter().map(|meant| Record { meant: *meant, ..Record::default() }).collect(),
            next: 0,
            unseen: 0,
            open: plan.len(),
        })
    }

    /// Runs the loop. Returns the result of each request, and the times in which other processes had the core.
    pub fn through(mut self) -> Result<(Vec<Record>, Vec<Stall>)> {
        let mut events = Events::with_capacity(self.connections.len());
        let end = self.records.last().map_or(Duration::ZERO, |last| last.meant) + LIMIT;
        let mut clock = Clock::start();
        let mut pause = SPIN;
        while self.open > 0 && clock.now() < end {
            if clock.now() >= pause {
                leave_the_core();
                pause = clock.now() + SPIN;
            }
            self.start_due(&mut clock)?;
            if self.idle.len() == self.connections.len() {
                continue;
            }
            self.poll.poll(&mut events, Some(Duration::ZERO))?;
            for event in &events {
                self.finish(event.token().0, &mut clock)?;
                self.start_due(&mut clock)?;
            }
        }
        Ok((self.records, clock.stalls()))
    }

    fn start_due(&mut self, clock: &mut Clock) -> Result<()> {
        let mut now = clock.now();
        while self.records.get(self.next).is_some_and(|record| record.meant <= now) {
            let Some(connection) = self.idle.pop() else {
                self.hold(now);
                return Ok(());
            };
            let record = &mut self.records[self.next];
            if !record.held {
                record.lag = now - record.meant;
            }
            self.asked[connection] = self.next;
            self.next += 1;
            self.connections[connection].ask(self.request)?;
            now = clock.now();
        }
        Ok(())
    }

    /// Counts requests that should start now and find no free connection.
    fn hold(&mut self, now: Duration) {
        self.unseen = self.unseen.max(self.next);
        while let Some(record) = self.records.get_mut(self.unseen).filter(|record| record.meant <= now) {
            (record.held, record.lag) = (true, now - record.meant);
            self.unseen += 1;
        }
    }

    fn finish(&mut self, connection: usize, clock: &mut Clock) -> Result<()> {
        let status = self.connections[connection].answer()?;
        let now = clock.now();
        if status.is_some() {
            let record = &mut self.records[self.asked[connection]];
            (record.status, record.took) = (status, now - record.meant);
            self.idle.push(connection);
            self.open -= 1;
        }
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "this thread is the program")]
fn leave_the_core() {
    std::thread::sleep(PAUSE);
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    /// Serves one connection. The first response is late by `late`.
    #[expect(clippy::disallowed_methods, reason = "a thread with no other work")]
    fn server(late: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut wait = late;
            while stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {
                std::thread::sleep(std::mem::take(&mut wait));
                stream.write_all(ANSWER).unwrap();
            }
        });
        address
    }

    #[test]
    fn a_request_that_is_due_during_a_late_answer_waits_from_its_planned_start() {
        let plan = [0, 10, 20].map(Duration::from_millis);
        let address = server(Duration::from_millis(200));
        let run = Run::prepare(address, 1, b"GET / HTTP/1.1\r\n\r\n", &plan).unwrap();
        let (records, _) = run.through().unwrap();
        assert!(records.iter().all(|record| record.status == Some(200)));
        assert!(!records[0].held && records[1].held && records[2].held, "{records:?}");
        let least = [200, 190, 180].map(Duration::from_millis);
        assert!(records.iter().zip(least).all(|(record, least)| record.took >= least), "{records:?}");
    }
}
