//! The meaning of pools' `announce`, and of the address that goes with it. Knows no message.

use super::Resolver;
use crate::document::KeyPath;
use crate::file::File;
use crate::resolved::{Advertise, Server};
use crate::value::{Announced, MemberAddress};

impl Resolver<'_> {
    /// Whether any pool is announced; refuses what nobody would hear, or could not follow.
    pub(super) fn announces(&mut self, file: &File, server: &Server) -> bool {
        let announcing = file.pools.iter().filter(|(_, pool)| !pool.announce.0.is_empty());
        let announcing: Vec<_> = announcing.map(|(name, pool)| (name, &pool.announce.0)).collect();
        let Some((first, _)) = announcing.first() else { return false };
        let path = KeyPath::of("pools").key(first).key("announce");
        match &file.registrar {
            None => self.refuse(&path, "to whom? It needs [registrar] with nats = [\"nats://...\"]"),
            Some(registrar) if registrar.advertise.is_none() => {
                if let Some(listen) = server.listen.first().filter(|listen| listen.ip().is_unspecified()) {
                    let why = format!(
                        "others cannot be told {listen}, which is every address of the machine; write the one that they \
                         reach us at: registrar.advertise = \"10.0.0.5:{}\"",
                        listen.port()
                    );
                    self.refuse(&path, why);
                }
            }
            Some(_) => {}
        }
        if file.registrar.as_ref().is_some_and(|registrar| registrar.accept == Some(true)) {
            let why = "a Hostler that announces pools would hear of itself, and send requests to itself";
            self.refuse(&KeyPath::of("registrar").key("accept"), why);
        }
        self.refuse_names_of_two(&announcing);
        true
    }

    /// One address cannot lead to two pools: what arrives at it goes by our own routes.
    fn refuse_names_of_two(&mut self, announcing: &[(&String, &Vec<Announced>)]) {
        let all = || announcing.iter().flat_map(|(pool, names)| names.iter().map(move |name| (*pool, name)));
        for (pool, names) in announcing {
            for (index, name) in names.iter().enumerate() {
                if all().any(|(other, same)| other < *pool && same == name) {
                    let path = KeyPath::of("pools").key(pool).key("announce").index(index);
                    self.refuse(&path, format!("\"{name}\" is announced by another pool, too"));
                }
            }
        }
    }

    pub(super) fn advertise(&mut self, path: &KeyPath, written: &MemberAddress) -> Option<Advertise> {
        match written {
            MemberAddress::Tcp(host, port) => Some(Advertise { host: host.clone(), port: *port, tls: false }),
            MemberAddress::Tls(host, port) => Some(Advertise { host: host.clone(), port: *port, tls: true }),
            MemberAddress::Unix(_) => {
                self.refuse(path, "others are on other machines: a host and a port");
                None
            }
        }
    }
}
