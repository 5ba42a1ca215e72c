//! The answers that gorouter itself gives, word for word. Knows no connection.

use std::any::Any;
use std::borrow::Cow;

use hostler_engine::exchange::Exchange;
use hostler_engine::gateway::Refusal;
use hostler_engine::proxy::TlsFault;
use hostler_wire::{ResponseHead, Whole, reason_phrase};

use super::facts::Registered;
use super::objection::RouterObjection;

/// The words that gorouter has for a refusal. None if gorouter has no such answer.
pub(super) fn answer(registered: &mut Registered, exchange: &Exchange, refusal: &Refusal) -> Option<Whole> {
    let host = String::from_utf8_lossy(exchange.host());
    let wording = Wording::of(refusal, &host, registered)?;
    let later = refusal.facts().retry_after.filter(|_| !registered.compat);
    let later = later.map(|seconds| seconds.max(exchange.log_facts.retry_after));
    registered.error = Some(wording.error.as_ref().into());
    Some(wording.put(later))
}

/// The answer to a refusal by a registered route, for the reference. Shows `WHY` where the reason of a member's failure would stand.
pub(super) fn shown(refusal: &Refusal, host: &str, compat: bool) -> Option<Whole> {
    let mut registered = Registered::new(compat);
    registered.error = Some("endpoint_failure (WHY)".into());
    let later = refusal.facts().retry_after.filter(|_| !compat);
    Wording::of(refusal, host, &registered).map(|wording| wording.put(later))
}

/// A registration may create the route at any moment, so the answer must not be stored.
const NO_STORE: Option<&str> = Some("no-cache, no-store");
/// The answer may be stored for two seconds.
const TWO_SECONDS: Option<&str> = Some("public,max-age=2");

struct Wording {
    status: u16,
    /// The value of `X-Cf-RouterError`.
    error: Cow<'static, str>,
    /// The body without its last line break.
    body: String,
    cache: Option<&'static str>,
}

impl Wording {
    fn of(refusal: &Refusal, host: &str, registered: &Registered) -> Option<Self> {
        let status = refusal.facts().status;
        let named = |error: &'static str, cache, message: String| Self {
            status,
            error: error.into(),
            body: format!("{status} {}: {message}", reason_phrase(status)),
            cache,
        };
        let route = |what| format!("Requested route ('{host}') {what}.");
        Some(match refusal {
            Refusal::NoRoute => named("unknown_route", NO_STORE, route("does not exist")),
            Refusal::NoMember => named("no_endpoints", TWO_SECONDS, route("has no available endpoints")),
            Refusal::QueueFull { .. }
            | Refusal::Overloaded
            | Refusal::QueueTimeout
            | Refusal::NotStarted
            | Refusal::WakeTimeout
            | Refusal::TooManyTunnels
            | Refusal::TooManyStreams
            | Refusal::MemberBusy => {
                named("Connection Limit Reached", None, route("has reached the connection limit"))
            }
            Refusal::Objection(objection) => {
                let objection: &dyn Any = &**objection;
                objection.downcast_ref::<RouterObjection>()?.wording(host, named)
            }
            // gorouter has one status for a long request line and for a long head.
            Refusal::Head(_) if matches!(status, 414 | 431) => Self {
                status: if registered.compat { 431 } else { status },
                body: String::new(),
                ..named("max-request-size-exceeded", None, String::new())
            },
            // There was no attempt: an earlier one has failed.
            Refusal::Unreachable(why) if registered.error.is_none() => {
                Self { error: format!("endpoint_failure ({why})").into(), ..Self::failed(status, registered) }
            }
            Refusal::Unreachable(_)
            | Refusal::NoDescriptor(_)
            | Refusal::WorkerLost(_)
            | Refusal::BadAnswer(_) => Self::failed(status, registered),
            Refusal::MemberTls(fault, _) => Self::tls_failed(*fault, registered),
            Refusal::AnswerTimeout if registered.compat => Self::failed(502, registered),
            Refusal::AnswerTimeout => Self::failed(status, registered),
            _ => return None,
        })
    }

    /// The endpoint failed. The error is that of the last attempt.
    fn failed(status: u16, registered: &Registered) -> Self {
        let error = match &registered.error {
            Some(error) => error.clone().into_string().into(),
            None => "endpoint_failure (EOF)".into(),
        };
        let message = "Registered endpoint failed to handle the request.";
        Self { status, error, body: format!("{status} {}: {message}", reason_phrase(status)), cache: None }
    }

    /// TLS to the endpoint failed, so it never got the request.
    fn tls_failed(fault: TlsFault, registered: &Registered) -> Self {
        let (status, body) = match fault {
            TlsFault::NotTls | TlsFault::NoHttp2 | TlsFault::Handshake => (525, "525 SSL Handshake Failed"),
            TlsFault::WrongName => (503, "503 Service Unavailable"),
            TlsFault::Untrusted => (526, "526 Invalid SSL Certificate"),
            TlsFault::ClientCertificate => (496, "496 SSL Certificate Required"),
        };
        Self { body: body.into(), ..Self::failed(status, registered) }
    }

    fn put(self, retry_after: Option<u32>) -> Whole {
        let Self { status, error, body, cache } = self;
        let mut head = ResponseHead::with_status(status);
        if let Some(cache) = cache {
            head.fields.add(b"Cache-Control", cache.as_bytes());
        }
        if let Some(seconds) = retry_after {
            head.fields.add(b"Retry-After", itoa::Buffer::new().format(seconds).as_bytes());
        }
        // Spelled as Go writes it.
        head.fields.add(b"X-Cf-Routererror", error.as_bytes());
        if body.is_empty() {
            return Whole::new(head, body);
        }
        head.fields.add(b"Content-Type", b"text/plain; charset=utf-8");
        head.fields.add(b"X-Content-Type-Options", b"nosniff");
        Whole::new(head, body + "\n")
    }
}

impl RouterObjection {
    fn wording(
        &self,
        host: &str,
        named: impl Fn(&'static str, Option<&'static str>, String) -> Wording,
    ) -> Wording {
        let said = |text: &str| text.to_owned();
        match self {
            Self::EmptyHost => named("empty_host", TWO_SECONDS, said("Request had empty Host header")),
            Self::AppInstance => {
                named("invalid_cf_app_instance_header", NO_STORE, said("Invalid X-CF-App-Instance Header"))
            }
            Self::ProcessInstance => {
                let message = said("Invalid X-CF-Process-Instance Header");
                named("invalid_cf_process_instance_header", NO_STORE, message)
            }
            Self::UnknownInstance { guid, index, process } => {
                let instance =
                    if index.is_empty() { "instance".to_owned() } else { format!("instance ('{index}')") };
                let id = if *process { "process guid" } else { "guid" };
                let message =
                    format!("Requested {instance} with {id} ('{guid}') does not exist for route ('{host}')");
                named("unknown_route", NO_STORE, message)
            }
            Self::RouteService => {
                named("route_service_unsupported", None, said("Support for route services is disabled."))
            }
            Self::RouteServiceTunnel => {
                let message = "Websocket requests are not supported for routes bound to Route Services.";
                named("route_service_unsupported", None, said(message))
            }
            Self::NoNegotiator => {
                let message = "Registered endpoint failed to handle the request.";
                named("endpoint_failure (No endpoints available)", None, said(message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hostler_wire::{HeadError, ScanError};

    use hostler_engine::proxy::Failure;

    use super::*;

    fn words(host: &str, refusal: Refusal, compat: bool) -> String {
        let mut registered = Registered::new(compat);
        let facts = refusal.facts();
        registered.error = Some("endpoint_failure (EOF)".into());
        let words = Wording::of(&refusal, host, &registered).unwrap();
        assert!(words.status == facts.status || compat, "{refusal:?}");
        let cache = words.cache.unwrap_or("-");
        let (error, Whole { head, body }) = (words.error.to_string(), words.put(None));
        format!("{} {error} {cache} {}", head.status, String::from_utf8_lossy(&body))
    }

    fn unknown(index: &str, process: bool) -> Refusal {
        let guid = "11111111-2222-3333-4444-555555555555".into();
        RouterObjection::UnknownInstance { guid, index: index.into(), process }.into()
    }

    /// Host, refusal, length of the body, and the expected text. The lengths come from captured log lines, where there are any.
    fn known() -> Vec<(&'static str, Refusal, usize, &'static str)> {
        let lost = || Refusal::WorkerLost(String::new());
        vec![
            (
                "path.example.test",
                Refusal::NoRoute,
                69,
                "404 unknown_route no-cache, no-store 404 Not Found: Requested route ('path.example.test') does not exist.\n",
            ),
            (
                "dead.example.test",
                Refusal::NoMember,
                91,
                "503 no_endpoints public,max-age=2 503 Service Unavailable: Requested route ('dead.example.test') has no available endpoints.\n",
            ),
            (
                "",
                RouterObjection::EmptyHost.into(),
                47,
                "400 empty_host public,max-age=2 400 Bad Request: Request had empty Host header\n",
            ),
            (
                "a",
                RouterObjection::AppInstance.into(),
                50,
                "400 invalid_cf_app_instance_header no-cache, no-store 400 Bad Request: Invalid X-CF-App-Instance Header\n",
            ),
            (
                "app.example.test",
                unknown("7", false),
                139,
                "400 unknown_route no-cache, no-store 400 Bad Request: Requested instance ('7') with guid ('11111111-2222-3333-4444-555555555555') does not exist for route ('app.example.test')\n",
            ),
            (
                "a",
                lost(),
                67,
                "502 endpoint_failure (EOF) - 502 Bad Gateway: Registered endpoint failed to handle the request.\n",
            ),
            (
                "a",
                RouterObjection::RouteService.into(),
                57,
                "502 route_service_unsupported - 502 Bad Gateway: Support for route services is disabled.\n",
            ),
            (
                "a",
                RouterObjection::RouteServiceTunnel.into(),
                98,
                "503 route_service_unsupported - 503 Service Unavailable: Websocket requests are not supported for routes bound to Route Services.\n",
            ),
            (
                "app.test",
                Refusal::QueueFull { limit: 0 },
                88,
                "503 Connection Limit Reached - 503 Service Unavailable: Requested route ('app.test') has reached the connection limit.\n",
            ),
        ]
    }

    #[test]
    fn an_instance_of_a_process_is_named_as_such() {
        assert_eq!(
            words("a", RouterObjection::ProcessInstance.into(), false),
            "400 invalid_cf_process_instance_header no-cache, no-store 400 Bad Request: Invalid X-CF-Process-Instance Header\n"
        );
        for (index, instance) in [("7", "instance ('7')"), ("", "instance")] {
            assert_eq!(
                words("a.test", unknown(index, true), false),
                format!(
                    "400 unknown_route no-cache, no-store 400 Bad Request: Requested {instance} with process guid \
                     ('11111111-2222-3333-4444-555555555555') does not exist for route ('a.test')\n"
                )
            );
        }
    }

    #[test]
    fn refusals_have_gorouters_texts() {
        for (host, refusal, length, expected) in known() {
            let said = words(host, refusal, false);
            assert_eq!(said, expected);
            let body = &said[said.find(&format!(" {} ", &said[..3])).unwrap() + 1..];
            assert_eq!(body.len(), length, "{body}");
        }
    }

    #[test]
    fn a_too_large_head_gets_an_empty_answer() {
        let long_line = HeadError::Scan(ScanError::StartLineTooLarge(1));
        for error in [HeadError::TooManyFields(1), long_line] {
            assert_eq!(words("a", Refusal::Head(error), true), "431 max-request-size-exceeded - ");
        }
    }

    #[test]
    fn a_tls_failure_at_a_member_has_its_own_status() {
        for (fault, status) in [
            (TlsFault::NotTls, 525),
            (TlsFault::Handshake, 525),
            (TlsFault::WrongName, 503),
            (TlsFault::Untrusted, 526),
            (TlsFault::ClientCertificate, 496),
        ] {
            let said = words("a", Refusal::MemberTls(fault, String::new()), true);
            assert!(said.starts_with(&format!("{status} endpoint_failure")), "{said}");
            assert!(said.ends_with("\n"), "{said}");
        }
    }

    #[test]
    fn a_late_answer_is_a_504_and_with_compat_a_502() {
        let late = || Refusal::from(Failure::TimedOut);
        assert!(words("a", late(), false).starts_with("504 "));
        let said = words("a", late(), true);
        assert!(
            said.ends_with("502 Bad Gateway: Registered endpoint failed to handle the request.\n"),
            "{said}"
        );
    }

    #[test]
    fn refusals_without_a_gorouter_text_keep_hostlers() {
        assert!(Wording::of(&Refusal::Connect, "a", &Registered::new(true)).is_none());
    }
}
