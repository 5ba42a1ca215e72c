//! The meaning of a pool's members: their addresses, and TLS. Knows no workers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hostler_address::OwnAddresses;

use super::Resolver;
use crate::document::KeyPath;
use crate::file::{Hedge, HedgeAfter, HedgeSwitch, Pool};
use crate::resolved::{self, Endpoint, Members, PoolMembers, Server, Tls};
use crate::schema;
use crate::value::{Auto, ListenAddress, MemberAddress, Period, Slots};

/// The default slots of a member. A member has its own scheduling; this is only an upper limit.
const DEFAULT_SLOTS: usize = 64;

/// The keys of a pool that members can have. All other keys are for workers only.
const FOR_MEMBERS: [&str; 20] = [
    "command",
    "members",
    "announce",
    "protocol",
    "tls",
    "health_check",
    "ejection",
    "hedge",
    "concurrency",
    "choice",
    "sticky",
    "request_timeout",
    "response_idle_timeout",
    "max_tunnels",
    "tunnel_idle_timeout",
    "max_streams",
    "stream_idle_timeout",
    "connect_timeout",
    "queue",
    "rate_limit",
];

impl Resolver<'_> {
    /// The meaning of a pool's `members`, and of the keys about them.
    pub(super) fn members(&mut self, path: &KeyPath, pool: &Pool, written: &[MemberAddress]) -> Members {
        let keys = schema::at(schema::of_file(), path).map(schema::known_keys).unwrap_or_default();
        for key in keys.into_iter().filter(|key| !FOR_MEMBERS.contains(key)) {
            let here = path.key(key);
            if self.document.is_written(&here) {
                let place = self.document.place_of_key(&here);
                let instead = match key {
                    "health" => "; for the path that shows whether they serve, use health_check",
                    _ => "",
                };
                let why = "not allowed for members, because Hostler does not start them";
                self.report.error(place, format!("{here}: {why}{instead}"));
            }
        }
        let endpoints = self.endpoints(&path.key("members"), written);
        let here = path.key("tls");
        let has_tls = endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Tls { .. }));
        if !has_tls && self.document.is_written(&here) {
            let place = self.document.place_of_key(&here);
            self.report.error(place, format!("{here}: not allowed, because no member begins with https://"));
        }
        let tls = if has_tls { self.member_tls(&here, &pool.tls) } else { None };
        let health_check = self.health_check(&path.key("health_check"), &pool.health_check);
        let slots = self.member_slots(&path.key("concurrency"), pool.concurrency);
        Members { endpoints, slots, protocol: pool.protocol, tls, health_check }
    }

    /// When requests are sent to a second member. Together with the source of the pool comes the longest time of its requests.
    pub(super) fn hedge(
        &mut self,
        path: &KeyPath,
        written: &HedgeSwitch,
        (source, longest): (&PoolMembers, Duration),
    ) -> Option<Hedge> {
        let hedge = match written {
            HedgeSwitch::Word(false) => return None,
            HedgeSwitch::Word(true) => Hedge::default(),
            HedgeSwitch::Value(table) => table.clone(),
        };
        let PoolMembers::Members(members) = source else { return None };
        if members.endpoints.len() == 1 {
            let place = self.document.place_of_value(path);
            self.report.warn(place, format!("{path}: changes nothing, because the pool has one member"));
        } else if let HedgeAfter::Time(after) = hedge.after
            && after >= longest
        {
            let here = path.key("after");
            let place = self.document.place_of_value(&here);
            let longest = Period(longest);
            self.report.warn(
                place,
                format!("{here}: must be shorter than the longest request_timeout, {longest}; otherwise Hostler sends no request to a second member"),
            );
        }
        Some(hedge)
    }

    fn member_slots(&mut self, path: &KeyPath, written: Option<Slots>) -> usize {
        match written {
            None => DEFAULT_SLOTS,
            Some(Slots::Value(slots)) => slots.get(),
            Some(Slots::Word(Auto)) => {
                self.refuse(
                    path,
                    "\"auto\" works for workers only, because Hostler cannot measure how busy a member is; write a number",
                );
                DEFAULT_SLOTS
            }
        }
    }

    /// Warns about members that are addresses of this Hostler: requests would come back.
    pub(super) fn warn_of_own_members(
        &mut self,
        pools: &[resolved::Pool],
        server: &Server,
        tls: Option<&Tls>,
    ) {
        let listening = server.listen.iter().chain(tls.iter().flat_map(|tls| &tls.listen)).copied();
        let admin = server.admin.as_ref().and_then(ListenAddress::tcp);
        let own = OwnAddresses::new(listening.chain(admin));
        for pool in pools {
            let PoolMembers::Members(members) = &pool.source else { continue };
            for (index, member) in members.endpoints.iter().enumerate() {
                let (Endpoint::Tcp { host, port } | Endpoint::Tls { host, port }) = member else { continue };
                let addresses: Vec<IpAddr> = match host.as_str() {
                    "localhost" => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
                    host => host.parse().into_iter().collect(),
                };
                let mut found = addresses.iter().filter_map(|ip| own.find(SocketAddr::new(*ip, *port)));
                let Some(found) = found.next() else { continue };
                let path = KeyPath::of("pools").key(&pool.name).key("members").index(index);
                let what = match admin == Some(found) {
                    true => "it is server.admin, so clients could read the status and send commands",
                    false => "its requests would come back to this Hostler",
                };
                let place = self.document.place_of_value(&path);
                self.report.warn(place, format!("{path}: {member} is an address of this Hostler; {what}"));
            }
        }
    }

    fn endpoints(&mut self, list: &KeyPath, written: &[MemberAddress]) -> Vec<Endpoint> {
        if written.is_empty() && !self.report.has_errors() {
            self.refuse(list, "at least one member is needed, such as \"10.0.0.5:3000\"");
        }
        let mut found: Vec<Endpoint> = Vec::new();
        for (index, member) in written.iter().enumerate() {
            let endpoint = self.endpoint(&list.index(index), member);
            if found.contains(&endpoint) {
                self.refuse(
                    &list.index(index),
                    format!("{endpoint} is in the list twice; raise concurrency instead"),
                );
            }
            found.push(endpoint);
        }
        found
    }

    fn endpoint(&mut self, path: &KeyPath, written: &MemberAddress) -> Endpoint {
        match written {
            MemberAddress::Tcp(host, port) => Endpoint::Tcp { host: host.clone(), port: *port },
            MemberAddress::Tls(host, port) => {
                if rustls::pki_types::ServerName::try_from(host.as_str()).is_err() {
                    self.refuse(path, format!("\"{host}\" is not a name that a certificate can have"));
                }
                Endpoint::Tls { host: host.clone(), port: *port }
            }
            MemberAddress::Unix(socket) => Endpoint::Unix(self.socket_at(path, socket)),
        }
    }
}
