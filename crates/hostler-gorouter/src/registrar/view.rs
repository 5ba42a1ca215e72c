//! The registrations in two forms: gorouter's `/routes`, and rows for operators. Knows no listener.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::registry::{RegisteredMember, RouteEntry};
use super::words::Balancing;

/// A member in gorouter's `/routes`.
#[derive(Debug, Serialize)]
pub(super) struct MemberView<'a> {
    address: &'a str,
    availability_zone: &'a str,
    protocol: &'static str,
    tls: bool,
    ttl: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    route_service_url: &'a str,
    tags: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    isolation_segment: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    private_instance_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    server_cert_domain_san: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    load_balancing_algorithm: &'a str,
}

impl<'a> MemberView<'a> {
    pub fn of(member: &'a RegisteredMember) -> Self {
        let facts = &member.facts;
        let instance = &facts.instance;
        Self {
            address: &facts.address,
            availability_zone: &instance.zone,
            protocol: protocol(member),
            tls: facts.tls,
            ttl: member.ttl.as_secs(),
            route_service_url: &member.service_url,
            tags: Some(&instance.tags).filter(|tags| !tags.is_empty()),
            isolation_segment: &facts.segment,
            private_instance_id: &instance.id,
            server_cert_domain_san: &facts.san,
            load_balancing_algorithm: &member.balancing,
        }
    }
}

/// A member in a row for operators.
#[derive(Debug, Serialize)]
pub(super) struct MemberRow {
    address: Box<str>,
    tls: bool,
    protocol: &'static str,
    zone: String,
    instance: String,
    age_ms: u64,
    /// None if the member does not become stale.
    ttl_ms: Option<u64>,
}

pub(super) fn rows(entry: &RouteEntry, now: Instant) -> Vec<MemberRow> {
    let row = |member: &RegisteredMember| MemberRow {
        address: member.facts.address.clone(),
        tls: member.facts.tls,
        protocol: protocol(member),
        zone: member.facts.instance.zone.clone(),
        instance: member.facts.instance.id.clone(),
        age_ms: now.saturating_duration_since(member.updated).as_millis() as u64,
        ttl_ms: (!member.facts.tls).then_some(member.ttl.as_millis() as u64),
    };
    entry.members.iter().map(row).collect()
}

/// The registration of a member, for a successor.
pub(super) fn registration(uri: &str, member: &RegisteredMember) -> Value {
    let facts = &member.facts;
    let instance = &facts.instance;
    json!({
        "host": facts.host,
        (if facts.tls { "tls_port" } else { "port" }): facts.port,
        "uris": [uri],
        "app": instance.app,
        "private_instance_id": instance.id,
        "private_instance_index": instance.index,
        "availability_zone": instance.zone,
        "isolation_segment": facts.segment,
        "protocol": protocol(member),
        "route_service_url": member.service_url,
        "server_cert_domain_san": facts.san,
        "stale_threshold_in_seconds": member.ttl.as_secs(),
        "tags": instance.tags,
        "options": { "loadbalancing": member.balancing },
    })
}

/// A route without members, for a successor. An older one ignores it, because it has no address.
pub(super) fn empty_route(uri: &str, entry: &RouteEntry, now: Instant) -> Value {
    let empty_for = now.saturating_duration_since(entry.touched).as_millis();
    json!({
        "empty_route": uri,
        "empty_for_ms": u64::try_from(empty_for).unwrap_or(u64::MAX),
        "route_service_url": entry.options.service_url,
        "options": { "loadbalancing": entry.options.balancing.map_or("", Balancing::word) },
    })
}

fn protocol(member: &RegisteredMember) -> &'static str {
    if member.facts.http2 { "http2" } else { "http1" }
}
