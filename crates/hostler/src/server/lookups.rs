//! The data that Hostler answers out of itself: opened at the start, and again where the configuration says otherwise. Knows no
//! requests.

use std::sync::Arc;

use crate::config::{Config, MatchPattern, PathPattern};
use crate::native::Native;
use crate::native::geo::Geo;
use crate::native::postal::Postal;

/// What there is.
#[derive(Clone, Default)]
pub(super) struct Lookups {
    pub geo: Option<Arc<Geo>>,
    pub postal: Option<Arc<Postal>>,
}

impl Lookups {
    /// What the configuration names. What it named before, in the same words, stays open.
    pub fn open(newer: &Config, before: Option<(&Config, &Self)>) -> Result<Self, String> {
        let geo = match (&newer.geo, before) {
            (Some(written), Some((older, data))) if older.geo.as_ref() == Some(written) => data.geo.clone(),
            (Some(written), before) => {
                let before = before.and_then(|(_, data)| data.geo.as_deref());
                let opened = Geo::open(written, before).map_err(|error| format!("geo.databases: {error}"));
                Some(Arc::new(opened?))
            }
            (None, _) => None,
        };
        let postal = match (&newer.postal, before) {
            (Some(written), Some((older, data))) if older.postal.as_ref() == Some(written) => {
                data.postal.clone()
            }
            (Some(_), _) => Some(Arc::new(Postal::default())),
            (None, _) => None,
        };
        Ok(Self { geo, postal })
    }

    /// What a route answers.
    pub fn native(&self, pattern: &MatchPattern, geo: bool, postal: bool) -> Native {
        let prefix = match &pattern.path {
            PathPattern::Prefix(prefix) => prefix.as_str(),
            PathPattern::Exact(_) => "",
        };
        Native {
            geo: self.geo.clone().filter(|_| geo),
            postal: self.postal.clone().filter(|_| postal),
            prefix: prefix.into(),
        }
    }
}

/// What a route answers, in words.
pub(super) fn names(native: &Native) -> String {
    let names = [native.geo.as_ref().map(|_| "geo"), native.postal.as_ref().map(|_| "postal")];
    names.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
