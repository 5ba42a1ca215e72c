//! The meaning of `announce` of pools, and of `advertise`. Knows no messages.

use std::net::IpAddr;

use super::Resolver;
use crate::document::KeyPath;
use crate::file::File;
use crate::resolved::{Advertise, Server};
use crate::value::{Announced, MemberAddress};

/// What is wrong with an address such as `0.0.0.0`.
const EVERY: &str = "is every address of the machine, and others need one address to connect to";

impl Resolver<'_> {
    /// Whether any pool has `announce`. Refuses combinations that cannot work.
    pub(super) fn announces(&mut self, file: &File, server: &Server) -> bool {
        let announcing = file.pools.iter().filter(|(_, pool)| !pool.announce.0.is_empty());
        let announcing: Vec<_> = announcing.map(|(name, pool)| (name, &pool.announce.0)).collect();
        let Some((first, _)) = announcing.first() else { return false };
        let path = KeyPath::of("pools").key(first).key("announce");
        match &file.registrar {
            None => self.refuse(&path, "needs [registrar] with nats = [\"nats://...\"]"),
            Some(registrar) if registrar.advertise.is_none() => match server.listen.first() {
                Some(listen) if listen.ip().is_unspecified() => {
                    let why =
                        format!("{listen} {EVERY}; set registrar.advertise = \"10.0.0.5:{}\"", listen.port());
                    self.refuse(&path, why);
                }
                // An address that could not be looked up has an error already.
                None if file.server.listen.0.is_empty() => {
                    let why = "server.listen has no address that others could be told; set registrar.advertise = \
                               \"https://app1.internal:8443\"";
                    self.refuse(&path, why);
                }
                _ => {}
            },
            Some(_) => {}
        }
        if file.registrar.as_ref().is_some_and(|registrar| registrar.accept == Some(true)) {
            let why = "not allowed with announce: Hostler would get its own registrations, and send requests to itself";
            self.refuse(&KeyPath::of("registrar").key("accept"), why);
        }
        self.refuse_names_of_two(&announcing);
        true
    }

    /// Requests for a name arrive at one address, where the routes of this Hostler decide. So two pools cannot have the same name.
    fn refuse_names_of_two(&mut self, announcing: &[(&String, &Vec<Announced>)]) {
        let all = || announcing.iter().flat_map(|(pool, names)| names.iter().map(move |name| (*pool, name)));
        for (pool, names) in announcing {
            for (index, name) in names.iter().enumerate() {
                if all().any(|(other, same)| other < *pool && same == name) {
                    let path = KeyPath::of("pools").key(pool).key("announce").index(index);
                    self.refuse(&path, format!("another pool announces \"{name}\", too"));
                }
            }
        }
    }

    pub(super) fn advertise(&mut self, path: &KeyPath, written: &MemberAddress) -> Option<Advertise> {
        if let MemberAddress::Tcp(host, _) | MemberAddress::Tls(host, _) = written
            && host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_unspecified())
        {
            self.refuse(path, format!("{host} {EVERY}"));
        }
        match written {
            MemberAddress::Tcp(host, port) => Some(Advertise { host: host.clone(), port: *port, tls: false }),
            MemberAddress::Tls(host, port) => Some(Advertise { host: host.clone(), port: *port, tls: true }),
            MemberAddress::Unix(_) => {
                self.refuse(path, "other machines cannot connect to a Unix socket; write a host and a port");
                None
            }
        }
    }
}
