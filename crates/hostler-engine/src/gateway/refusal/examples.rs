//! One refusal of each kind, for the reference and its tests. Knows no page.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use hostler_wire::{ChunkedError, FramingError, HeadError, ScanError};
use rustix::io::Errno;

use super::Refusal;
use crate::exchange::{BodyError, SpoolFull};
use crate::gateway::Convicted;
use crate::proxy::TlsFault;

/// Without the objections of registered routes: their kind has its own table.
pub fn examples() -> Vec<Refusal> {
    let mut all = of_clients();
    all.extend(of_bodies().into_iter().map(Refusal::Body));
    all.extend(of_queues());
    all.extend(of_members());
    all
}

fn of_clients() -> Vec<Refusal> {
    vec![
        Refusal::Head(HeadError::RequestLine),
        Refusal::Head(ScanError::StartLineTooLarge(65_536).into()),
        Refusal::Head(ScanError::TooLarge(65_536).into()),
        Refusal::Head(HeadError::TooManyFields(100)),
        Refusal::Head(HeadError::Version),
        Refusal::MemberHeadLimit(16_384),
        Refusal::Framing(FramingError::SeveralLengths),
        Refusal::Framing(FramingError::UnknownCoding),
        Refusal::Host("it is missing"),
        Refusal::Target("neither a path nor an http URL"),
        Refusal::Connect,
        Refusal::Trace,
        Refusal::NoWebSocket,
        Refusal::Expectation,
        Refusal::HeaderTimeout,
        Refusal::HeadMemory,
        Refusal::PlainHttp,
        Refusal::TooManyConnections,
        Refusal::ClientConnections,
        Refusal::ClientRequests,
        Refusal::RateLimited("route *: 100 requests in 1m for each client (client 192.0.2.7)".into()),
        Refusal::Loop,
        Refusal::NoRoute,
        Refusal::NoFile(None),
        Refusal::FileMethod,
        Refusal::Precondition,
        Refusal::Range(1000),
        Refusal::FileSystem(Error::from(ErrorKind::NotFound)),
        Refusal::OnlyIfCached,
        Refusal::ClientLeft,
    ]
}

fn of_bodies() -> Vec<BodyError> {
    vec![
        BodyError::Stalled,
        BodyError::TooSlow,
        BodyError::Left,
        BodyError::Malformed(ChunkedError::Size),
        BodyError::TooLarge(10 << 20),
        BodyError::DiskFull(ErrorKind::StorageFull),
        BodyError::NoMemory,
        BodyError::Storage(ErrorKind::NotFound),
        BodyError::SpoolFull(SpoolFull),
        BodyError::LargerThanSpool(512 << 20),
    ]
}

fn of_queues() -> Vec<Refusal> {
    let kept_off = Some(("GET example.com/".into(), Duration::from_secs(60)));
    vec![
        Refusal::QueueFull { limit: 100 },
        Refusal::Overloaded,
        Refusal::TooManyTunnels,
        Refusal::TooManyStreams,
        Refusal::NoMember,
        Refusal::MemberBusy,
        Refusal::QueueTimeout,
        Refusal::NotStarted,
        Refusal::WakeTimeout,
        Refusal::Stopping,
        Refusal::Suspect,
        Refusal::Poison(Convicted { killed: vec![4711, 4712], kept_off }),
    ]
}

fn of_members() -> Vec<Refusal> {
    use TlsFault::{ClientCertificate, Handshake, NotTls, Untrusted, WrongName};
    let mut all = vec![
        Refusal::Unreachable(Error::from(ErrorKind::ConnectionRefused)),
        Refusal::NoDescriptor(Errno::MFILE),
        Refusal::WorkerLost("connection closed before a response".into()),
        Refusal::BadAnswer("malformed response".into()),
        Refusal::InterimAnswers("more than 100 interim responses (1xx)".into()),
        Refusal::AnswerTimeout,
    ];
    let faults = [NotTls, WrongName, Untrusted, ClientCertificate, Handshake];
    all.extend(faults.map(|fault| Refusal::MemberTls(fault, "handshake failed".into())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::refusal::ALL;

    #[test]
    fn every_row_of_the_table_has_an_example() {
        let shown: Vec<_> = examples().iter().map(Refusal::facts).collect();
        let missing: Vec<_> = ALL.iter().filter(|row| !shown.contains(row)).map(|row| row.reason).collect();
        assert!(missing.is_empty(), "gateway/refusal/examples.rs has no example of {missing:?}");
    }

    #[test]
    fn every_row_says_when_it_happens_and_what_to_do_in_sentences() {
        for row in ALL {
            for text in [row.when, row.remedy] {
                let is_sentence = text.ends_with('.') || text.ends_with('?');
                assert!(is_sentence && !text.contains("  "), "{}: {text}", row.reason);
            }
        }
    }
}
