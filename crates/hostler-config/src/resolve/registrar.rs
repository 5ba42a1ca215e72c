//! The meaning of `[registrar]`. Knows no connections: Hostler looks up servers and reads files when it connects to NATS.

use std::time::Duration;

use async_nats::ServerAddr;
use percent_encoding::percent_decode_str;

use super::Resolver;
use crate::client_tls::{ClientTls, TrustedAuthorities};
use crate::document::KeyPath;
use crate::file::{self, Sharding};
use crate::resolved::{Nats, NatsLogin, NatsTls, Registrar, Server};
use crate::tls::is_plain;
use crate::value::Secret;

/// A server that hangs is noticed after three tests at the latest. By then no member that registers in time may have become stale:
/// without a connection members stay, and a member could not register.
fn longest_ping_interval(written: &file::Registrar) -> Duration {
    if !written.suspend_pruning {
        return Duration::MAX;
    }
    let stale = written.stale_threshold.0;
    stale.saturating_sub(written.register_interval.0).max(stale / 2) / 4
}

impl Resolver<'_> {
    /// The meaning of `[registrar]`. `None` if it is not written.
    pub(super) fn registrar(&mut self, file: &file::File, server: &Server) -> Option<Registrar> {
        let announces = self.announces(file, server);
        let written = file.registrar.as_ref()?;
        let path = KeyPath::of("registrar");
        for (key, named) in
            [("register_interval", written.register_interval), ("stale_threshold", written.stale_threshold)]
        {
            // Clients read whole seconds, and some divide by the number.
            if named.0.subsec_nanos() > 0 {
                self.refuse(&path.key(key), "must be in whole seconds");
            }
        }
        if written.stale_threshold.0 < written.register_interval.0 {
            let why =
                "is shorter than register_interval, so every route would expire between two registrations";
            self.refuse(&path.key("stale_threshold"), why);
        }
        let accept = written.accept.unwrap_or(!announces);
        if accept {
            self.check_segments(&path, written);
        }
        let member_tls = self.tls_to_registered(&path, written.member_tls.as_ref());
        Some(Registrar {
            member_tls: member_tls?,
            nats: self.nats(&path, written),
            accept,
            advertise: written.advertise.as_ref().and_then(|at| self.advertise(&path.key("advertise"), at)),
            register_interval: written.register_interval.0,
            stale_threshold: written.stale_threshold.0,
            allow_longer_paths: written.allow_longer_paths,
            max_message_size: usize::try_from(written.max_message_size.0).unwrap_or(usize::MAX),
            max_uris: written.max_uris.get(),
            max_routes: written.max_routes.get(),
            max_memory: written.max_memory.0,
            prune_interval: written.prune_interval.0,
            suspend_pruning: written.suspend_pruning,
            start_delay: written.start_delay.0,
            keep_empty: written.keep_empty.0,
            sharding: written.sharding,
            isolation_segments: written.isolation_segments.clone(),
            choice: written.choice,
            concurrency: written.concurrency.get(),
            ejection: self.ejection(&path.key("ejection"), &written.ejection),
            queue: self.queue(&path.key("queue"), &written.queue, false),
            request_timeout: written.request_timeout.0,
            connect_timeout: written.connect_timeout.0,
            tunnel_idle_timeout: written.tunnel_idle_timeout.0,
            response_idle_timeout: written.response_idle_timeout.0,
            stream_idle_timeout: written.stream_idle_timeout.0,
            buffer: written.buffer,
            max_body_size: written.max_body_size.unwrap_or(file.server.max_body_size).0,
        })
    }

    /// As gorouter, which does not start then. A list with an error has been reported.
    fn check_segments(&mut self, path: &KeyPath, written: &file::Registrar) {
        let is_empty = written.isolation_segments.is_empty() && !self.report.has_errors();
        if written.sharding == Sharding::Segments && is_empty {
            let why = "\"segments\" needs at least one name in isolation_segments";
            self.refuse(&path.key("sharding"), why);
        }
    }

    fn nats(&mut self, path: &KeyPath, written: &file::Registrar) -> Nats {
        let servers: Vec<_> = written.nats.0.iter().map(|address| address.0.clone()).collect();
        if servers.is_empty() && !self.report.has_errors() {
            self.refuse(path, "nats is missing; write for example nats = [\"nats://127.0.0.1:4222\"]");
        }
        Nats {
            login: self.login(path, written, &servers),
            servers,
            tls: written.nats_tls.as_ref().map(|tls| self.nats_tls(&path.key("nats_tls"), tls)),
            ping_interval: written.ping_interval.0.min(longest_ping_interval(written)),
        }
    }

    fn login(&mut self, path: &KeyPath, written: &file::Registrar, servers: &[ServerAddr]) -> NatsLogin {
        match (&written.user, &written.password, &written.token) {
            (None, None, None) => self.login_in_addresses(path, servers),
            (None, None, Some(token)) => NatsLogin::Token(token.clone()),
            (Some(user), password, None) => {
                let password = password.clone().unwrap_or(Secret(String::new()));
                NatsLogin::User { user: user.clone(), password }
            }
            (None, Some(_), None) => {
                self.refuse(&path.key("password"), "needs user");
                NatsLogin::None
            }
            (_, _, Some(_)) => {
                self.refuse(
                    &path.key("token"),
                    "cannot be set together with user and password; remove one of them",
                );
                NatsLogin::None
            }
        }
    }

    /// The NATS library reads no login from an address, and has one login for all servers.
    fn login_in_addresses(&mut self, path: &KeyPath, servers: &[ServerAddr]) -> NatsLogin {
        let mut logins = servers.iter().filter_map(login_in);
        let Some(login) = logins.next() else { return NatsLogin::None };
        if logins.any(|other| other != login) {
            self.refuse(
                &path.key("nats"),
                "the addresses have different logins, and Hostler needs one for all servers",
            );
        }
        login
    }

    /// Reports errors of the files now. NATS reads them at each connection, so that new files work without a reload.
    fn nats_tls(&mut self, path: &KeyPath, written: &file::OutgoingTls) -> NatsTls {
        let made = self.member_tls(path, &written.as_for_members());
        if made.is_some_and(|tls| tls.shows_unread()) {
            let why = "must be of X.509 version 3, without unknown critical extensions, for the NATS library";
            self.refuse(&path.key("cert"), why);
        }
        for (key, name) in [("ca", &written.ca), ("cert", &written.cert), ("key", &written.key)] {
            if name.as_ref().is_some_and(|name| !is_plain(&self.folder.join(name))) {
                let why = "has a byte order mark, or a section that does not begin on a line of its own; the NATS library would leave that section out";
                self.refuse(&path.key(key), why);
            }
        }
        let at = |name: &String| self.folder.join(name);
        NatsTls {
            ca: written.ca.as_ref().map(at),
            own: written.cert.as_ref().zip(written.key.as_ref()).map(|(cert, key)| (at(cert), at(key))),
        }
    }

    /// Without settings, Hostler trusts the authorities of the system. There may be none.
    fn tls_to_registered(&mut self, path: &KeyPath, written: Option<&file::MemberTls>) -> Option<ClientTls> {
        let path = path.key("member_tls");
        let Some(written) = written else {
            let mut roots = rustls_native_certs::load_native_certs().certs;
            roots.retain(|root| rustls::RootCertStore::empty().add(root.clone()).is_ok());
            return ClientTls::new(TrustedAuthorities::Roots(roots), None, None).ok();
        };
        if written.server_name.is_some() {
            self.refuse(
                &path.key("server_name"),
                "not allowed here, because each member registers its own name",
            );
        }
        self.member_tls(&path, written)
    }
}

/// The login in an address. As in other NATS clients, a name without a password is a token.
fn login_in(server: &ServerAddr) -> Option<NatsLogin> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = decoded(server.username()?);
    Some(match server.password() {
        Some(password) => NatsLogin::User { user, password: Secret(decoded(password)) },
        None => NatsLogin::Token(Secret(user)),
    })
}
