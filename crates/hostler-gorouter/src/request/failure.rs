//! Whether a request that failed at one member goes to another. Knows no members.

use std::io::{self, ErrorKind};

use hostler_engine::exchange::{Body, Exchange};
use hostler_engine::proxy::{self, Failure};
use hostler_wire::{CallError, HeadError};

use super::route::MemberFault;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RetryDecision {
    /// Another member may be asked.
    pub again: bool,
    /// Why the member may leave its route.
    pub fault: Option<MemberFault>,
}

/// Gorouter's table of retryable failures. Without `compat` more requests are repeated: all that RFC 9110 section 9.2.2 allows, however
/// the member closed the connection, because their bodies have been read whole.
pub(super) fn verdict(failure: &Failure, exchange: &Exchange, compat: bool) -> RetryDecision {
    let again = match failure {
        Failure::Unreachable(_) | Failure::Tls(..) => proxy::may_move(failure, exchange),
        Failure::Unprocessed(_) => proxy::may_repeat(failure, exchange),
        Failure::Unanswered(CallError::Closed) if compat => is_repeatable_by_gorouter(exchange),
        Failure::Unanswered(_) | Failure::Broken(_) | Failure::MarkedDown => {
            !compat && proxy::may_repeat(failure, exchange)
        }
        Failure::NoDescriptor(_)
        | Failure::BadAnswer(_)
        | Failure::NotExpressible
        | Failure::HeadTooLarge(_)
        | Failure::TimedOut
        | Failure::Body(_) => false,
    };
    let fault = match failure.leaves_open() {
        true => MemberFault::Unfound,
        false => MemberFault::Unfit,
    };
    let is_its_own = failure.was_never_sent() && !failure.is_by_hostler();
    RetryDecision { again, fault: is_its_own.then_some(fault) }
}

/// A request without a body that is GET, HEAD, OPTIONS or TRACE, or has an idempotency key.
fn is_repeatable_by_gorouter(exchange: &Exchange) -> bool {
    let fields = &exchange.head.fields;
    let has_key = || ["Idempotency-Key", "X-Idempotency-Key"].iter().any(|name| fields.get(name).is_some());
    let is_safe = matches!(exchange.head.method(), b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE");
    matches!(exchange.body, Body::None) && (is_safe || has_key())
}

/// The value of `X-Cf-RouterError` for a failure, in Go's words. The member's address is in it only with `compat`.
pub(super) fn error(failure: &Failure, member: &str, compat: bool) -> String {
    let what = match failure {
        Failure::Unreachable(error) if compat => format!("dial tcp {member}: {}", dial_error(error)),
        Failure::Unreachable(error) => cause(error),
        Failure::NoDescriptor(errno) => match io::Error::from(*errno).kind() {
            ErrorKind::AddrNotAvailable => "cannot assign requested address".into(),
            _ => "too many open files".into(),
        },
        Failure::Tls(fault, detail) if compat => format!("{fault}: {detail}"),
        Failure::Tls(fault, _) => fault.to_string(),
        Failure::Unanswered(CallError::Io(error)) | Failure::Broken(CallError::Io(error)) => {
            format!("read: {}", error.kind())
        }
        Failure::Unprocessed(why) => why.clone(),
        Failure::NotExpressible => "malformed HTTP request".into(),
        Failure::HeadTooLarge(_) => "http2: request header list larger than peer's advertised limit".into(),
        Failure::Unanswered(_) => "EOF".into(),
        Failure::Broken(_) => "unexpected EOF".into(),
        Failure::BadAnswer(CallError::Head(HeadError::TooManyFields(_))) => {
            "Too many response headers".into()
        }
        Failure::BadAnswer(_) => "malformed HTTP response".into(),
        Failure::TimedOut | Failure::MarkedDown => "context deadline exceeded".into(),
        Failure::Body(_) => "context canceled".into(),
    };
    // Part of the text may come from a member, and it becomes a header field.
    let what: String = what.chars().filter(|letter| (' '..='~').contains(letter)).collect();
    format!("endpoint_failure ({what})")
}

fn dial_error(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::TimedOut => "i/o timeout".into(),
        ErrorKind::HostUnreachable => "connect: no route to host".into(),
        _ => format!("connect: {}", cause(error)),
    }
}

/// The kind of an error in words. Some errors have none, above all a name that cannot be looked up: they say themselves what they are.
fn cause(error: &io::Error) -> String {
    match error.kind().to_string() {
        kind if kind.starts_with("uncategorized") => error.to_string(),
        kind => kind,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;

    use hostler_engine::exchange::{BodyError, Sweep};
    use hostler_engine::proxy::TlsFault;
    use hostler_wire::Limits;

    use super::*;

    fn exchange(head: &str, body: Body) -> Exchange {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let mut exchange = Exchange::new(address, address, Sweep::new().deadline());
        exchange.head.parse(format!("{head}\r\n\r\n").as_bytes(), &Limits::default()).unwrap();
        exchange.body = body;
        exchange
    }

    fn io(kind: ErrorKind) -> io::Error {
        kind.into()
    }

    /// Each failure, and whether it is repeated without and with `compat`: for a GET, a PUT with a body, a POST with a body, and a POST
    /// without a body but with an idempotency key.
    #[test]
    fn each_failure_is_retried_as_in_the_table() {
        let body = || Body::Memory(Arc::new(b"x".to_vec().into()));
        let requests = [
            exchange("GET / HTTP/1.1", Body::None),
            exchange("PUT / HTTP/1.1", body()),
            exchange("POST / HTTP/1.1", body()),
            exchange("POST / HTTP/1.1\r\nX-Idempotency-Key: 1", Body::None),
        ];
        let cases = [
            (Failure::Unreachable(io(ErrorKind::ConnectionRefused)), [true; 4], [true; 4]),
            (Failure::Tls(TlsFault::WrongName, String::new()), [true; 4], [true; 4]),
            (Failure::Unanswered(CallError::Closed), [true, true, false, false], [true, false, false, true]),
            (
                Failure::Unanswered(CallError::Io(io(ErrorKind::ConnectionReset))),
                [true, true, false, false],
                [false; 4],
            ),
            (Failure::Broken(CallError::Cut), [true, true, false, false], [false; 4]),
            (Failure::TimedOut, [false; 4], [false; 4]),
            (Failure::Body(BodyError::Left), [false; 4], [false; 4]),
        ];
        for (failure, usual, compat) in cases {
            for (at, request) in requests.iter().enumerate() {
                assert_eq!(verdict(&failure, request, false).again, usual[at], "{failure:?} {at}");
                assert_eq!(verdict(&failure, request, true).again, compat[at], "{failure:?} {at} compat");
            }
        }
    }

    #[test]
    fn the_members_address_is_shown_only_with_compat() {
        let refused = Failure::Unreachable(io(ErrorKind::ConnectionRefused));
        assert_eq!(
            error(&refused, "127.0.0.1:3999", true),
            "endpoint_failure (dial tcp 127.0.0.1:3999: connect: connection refused)"
        );
        assert_eq!(error(&refused, "127.0.0.1:3999", false), "endpoint_failure (connection refused)");
        assert_eq!(error(&Failure::Unanswered(CallError::Closed), "x", true), "endpoint_failure (EOF)");
        let unnamed = Failure::Unreachable(io::Error::from_raw_os_error(9999));
        assert_eq!(error(&unnamed, "x", false), "endpoint_failure (Unknown error 9999 (os error 9999))");
        let many = CallError::Head(HeadError::TooManyFields(100));
        assert_eq!(
            error(&Failure::BadAnswer(many), "x", true),
            "endpoint_failure (Too many response headers)"
        );
        let said = Failure::Unprocessed("a\r\nEvil: 1\u{e9}".into());
        assert_eq!(error(&said, "x", false), "endpoint_failure (aEvil: 1)");
        assert_eq!(error(&Failure::TimedOut, "x", true), "endpoint_failure (context deadline exceeded)");
    }
}
