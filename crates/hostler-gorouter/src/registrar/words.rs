//! The parsers of single values in a registration, and their errors. Knows no registry.

use super::key::RouteKey;
use super::message::{Nullable, Registration};

/// How a route chooses the member for the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balancing {
    RoundRobin,
    LeastConnection,
}

impl Balancing {
    /// As in `options.loadbalancing`.
    pub fn word(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::LeastConnection => "least-connection",
        }
    }
}

/// A part of a message that is ignored, and why.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IgnoredPart {
    #[error("the URI {0:?} is ignored: {1}")]
    Uri(String, String),
    #[error("further routes are refused: there are {0} already (registrar.max_routes)")]
    MostRoutes(usize),
    #[error("further members are refused: routes and members take {0} bytes already (registrar.max_memory)")]
    MostMemory(u64),
    #[error("the load balancing algorithm {0:?} is unknown; the route keeps its algorithm")]
    Balancing(String),
}

/// `options.loadbalancing`.
pub(super) fn balancing(written: &str) -> Result<Option<Balancing>, IgnoredPart> {
    match written {
        "" => Ok(None),
        "round-robin" => Ok(Some(Balancing::RoundRobin)),
        "least-connection" => Ok(Some(Balancing::LeastConnection)),
        other => Err(IgnoredPart::Balancing(other.into())),
    }
}

/// The keys of the URIs. Malformed URIs are added to `odd`.
pub(super) fn keys(message: &Registration, folds: bool, odd: &mut Vec<IgnoredPart>) -> Vec<RouteKey> {
    let uris = message.uris.iter().map(|Nullable(uri)| uri).filter(|uri| !uri.is_empty());
    let parsed = uris.filter_map(|uri| match RouteKey::parse(uri, folds) {
        Ok(key) => Some(key),
        Err(why) => {
            odd.push(IgnoredPart::Uri(uri.clone(), why));
            None
        }
    });
    parsed.collect()
}
