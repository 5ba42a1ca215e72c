//! Checks the values of `[platform]`. Knows no registered routes.

use super::Resolver;
use crate::document::KeyPath;
use crate::file::{Platform, ZonePreference};

pub fn resolve(resolver: &mut Resolver<'_>, written: &Platform) -> Platform {
    let section = KeyPath::of("platform");
    let names = section.key("sticky_session_cookie_names");
    for (index, name) in written.sticky_session_cookie_names.iter().enumerate() {
        if !hostler_wire::is_token(name.as_bytes()) {
            resolver.refuse(&names.index(index), format!("{name:?} is not a valid name of a cookie"));
        }
    }
    if written.zone_preference == ZonePreference::LocallyOptimistic && written.zone.is_none() {
        resolver.refuse(&section.key("zone_preference"), "needs zone, the zone of this machine");
    }
    written.clone()
}
