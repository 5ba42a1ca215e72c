//! A route without members in the export for a successor. Knows no registry's state.

use std::time::Duration;

use serde::Deserialize;

use super::key::RouteKey;
use super::message::Options;
use super::registry::RouteOptions;
use super::words;

#[derive(Debug, Deserialize)]
pub(super) struct EmptyRoute {
    empty_route: String,
    empty_for_ms: u64,
    route_service_url: Box<str>,
    options: Options,
}

impl EmptyRoute {
    /// Those in an export: the key, the options, and for how long they have had no member. A predecessor has written them itself, so none
    /// is malformed.
    pub fn exported(lines: &[u8]) -> impl Iterator<Item = (RouteKey, RouteOptions, Duration)> {
        let routes = lines.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        routes.filter_map(|route: Self| {
            // The name is that of the key, so its letters are folded already.
            let key = RouteKey::parse(&route.empty_route, false).ok()?;
            let balancing = words::balancing(&route.options.loadbalancing).ok().flatten();
            let options = RouteOptions { balancing, service_url: route.route_service_url };
            Some((key, options, Duration::from_millis(route.empty_for_ms)))
        })
    }
}
