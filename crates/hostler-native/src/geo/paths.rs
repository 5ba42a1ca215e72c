//! The paths of the service. Knows no files.

use hostler_wire::Whole;

use super::Geo;
use super::about::{AskedAddress, address};
use super::shown::Shown;
use crate::form::AnswerFormat;
use crate::problem::{method, problem, repeated};
use crate::{LookupRequest, Nearest, cors};

/// The methods of paths that are read.
const READ: &[&str] = &["GET", "HEAD"];

impl Geo {
    /// The response. `None` if the path does not belong to the service.
    pub fn answer(
        &self,
        request: &LookupRequest<'_>,
        path: &[u8],
        near: Option<&dyn Nearest>,
    ) -> Option<Whole> {
        let whole = match path {
            b"/get_city" => method(request.head.method(), READ).unwrap_or_else(|| self.get_city(request)),
            b"/crossdomain.xml" => self.answer_original(request, &self.original.crossdomain),
            b"/status" => method(request.head.method(), READ).unwrap_or_else(|| {
                self.counters.status.add();
                self.original.status(&self.counters)
            }),
            _ => self.geo(request, path.strip_prefix(b"/geo")?, near)?,
        };
        Some(cors::allow(&self.settings.cors, request, whole))
    }

    fn answer_original(&self, request: &LookupRequest<'_>, whole: &Whole) -> Whole {
        method(request.head.method(), READ).unwrap_or_else(|| {
            self.counters.xmls.add();
            whole.clone()
        })
    }

    fn get_city(&self, request: &LookupRequest<'_>) -> Whole {
        self.counters.cities.add();
        self.counters.lookups.add();
        let client = request.client;
        let city = if client.doubtful { Ok(None) } else { self.dataset.load().city(client.ip) };
        let city = city.unwrap_or_else(|_| {
            self.counters.broken.add();
            None
        });
        if city.is_none() {
            self.counters.unknown.add();
        }
        self.original.city(city)
    }

    /// The paths below `/geo`.
    fn geo(&self, request: &LookupRequest<'_>, below: &[u8], near: Option<&dyn Nearest>) -> Option<Whole> {
        let (rest, form) = match below {
            b"" | b"/" => (&b""[..], None),
            // `/geology` is another path.
            _ if !matches!(below[0], b'/' | b'.') => return None,
            _ => AnswerFormat::split(below),
        };
        let rest = rest.strip_prefix(b"/").unwrap_or(rest);
        let rest = rest.strip_suffix(b"/").unwrap_or(rest);
        let mut segments = rest.split(|&byte| byte == b'/');
        let (first, second) = (segments.next().unwrap_or_default(), segments.next());
        if segments.next().is_some() {
            let path = repeated(below);
            return Some(problem(
                404,
                format_args!("there is no {path} below /geo; /openapi.json lists the paths"),
            ));
        }
        let allowed: &[&str] = if first == b"batch" { &["POST"] } else { READ };
        if let Some(other) = method(request.head.method(), allowed) {
            return Some(other);
        }
        Some(match (first, second) {
            (b"", None) => self.all(request, AskedAddress::Own, form),
            (b"batch", None) => self.batch(request, form),
            (b"meta", None) => self.meta(),
            (b"nearest-zip", None) => self.nearest(request, AskedAddress::Own, form, near),
            (field, None) if address(field).is_err() && Shown::named(field).is_some() => {
                self.field(request, AskedAddress::Own, field)
            }
            (ip, second) => match address(ip) {
                Err(why) => problem(400, why),
                Ok(ip) => match (self.refusal(request), second) {
                    (Some(refusal), _) => refusal,
                    (None, None) => self.all(request, AskedAddress::Named(ip), form),
                    (None, Some(b"nearest-zip")) => {
                        self.nearest(request, AskedAddress::Named(ip), form, near)
                    }
                    (None, Some(field)) => self.field(request, AskedAddress::Named(ip), field),
                },
            },
        })
    }
}
