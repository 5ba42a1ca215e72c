//! The meaning of the keys of the admin listener: its address, its names and its token. Knows no requests.

use std::net::{IpAddr, SocketAddr};

use super::Resolver;
use super::server::{look_up, overlap};
use crate::admin_token::{AdminToken, VARIABLE};
use crate::document::KeyPath;
use crate::file;
use crate::resolved::Server;
use crate::value::{AdminAddress, ListenAddress};

impl Resolver<'_> {
    /// The address of the admin listener, which none of the other listeners may have. The default of `hostler run` gives way to them.
    pub(crate) fn admin_address(
        &mut self,
        path: &KeyPath,
        written: &AdminAddress,
        listen: &[SocketAddr],
    ) -> Option<ListenAddress> {
        let address = match written {
            AdminAddress::Off => return None,
            AdminAddress::At(address) => look_up(self, path, address)?,
            AdminAddress::Unix(socket) => return Some(ListenAddress::Unix(self.socket_at(path, socket))),
        };
        if let Some(other) = listen.iter().find(|other| overlap(address, **other))
            && !self.may_move_admin
        {
            self.refuse(path, format!("{address} and {other} in server.listen overlap; use another port"));
        }
        Some(address.into())
    }

    /// The names in `admin_hosts`, and the name in `admin`.
    pub(super) fn admin_hosts(&mut self, path: &KeyPath, written: &file::Server) -> Vec<String> {
        for (index, name) in written.admin_hosts.iter().enumerate().filter(|(_, name)| !is_name(name)) {
            let why = match name.as_str() {
                "*" => {
                    "would allow every web page to reach the admin listener (DNS rebinding); write each name"
                }
                _ => {
                    "is not a host name; write it without scheme, port and path, as in \"hostler-admin.internal\""
                }
            };
            self.refuse(&path.index(index), format!("{name:?} {why}"));
        }
        let named = match &written.admin {
            AdminAddress::At(address) => address.host.as_ref().filter(|host| host.parse::<IpAddr>().is_err()),
            AdminAddress::Off | AdminAddress::Unix(_) => None,
        };
        written.admin_hosts.iter().chain(named).map(|name| name.to_ascii_lowercase()).collect()
    }

    /// Reads the token, and refuses an address that other machines can reach without one.
    pub(super) fn admin_token(&mut self, server: &mut Server) {
        let key = KeyPath::of("server.admin_token_file");
        let environment = &self.load_context.environment;
        match AdminToken::read(server.admin_token_file.as_deref(), environment) {
            Err(why) if environment.contains_key(VARIABLE) => {
                self.report.error(crate::error::SourcePlace::Named(VARIABLE.into()), why);
                return;
            }
            Err(why) => return self.refuse(&key, why),
            Ok(None) => {}
            Ok(Some(AdminToken { token, warning, .. })) => {
                if let Some(warning) = warning {
                    self.report.warn(self.document.place_of_value(&key), format!("{key}: {warning}"));
                }
                server.admin_token = Some(token);
            }
        }
        if let Some(admin) = server.admin.as_ref().filter(|admin| !admin.is_local())
            && server.admin_token.is_none()
        {
            let why = format!(
                "other machines can reach {admin}, so it needs a token: write one into a file (openssl rand -hex 32 > admin.token; \
                 chmod 600 admin.token) and set server.admin_token_file to it, or set the variable {VARIABLE}; without a token \
                 use \"127.0.0.1:8081\" or \"unix:/run/hostler/admin.sock\""
            );
            self.refuse(&KeyPath::of("server.admin"), why);
        }
    }
}

/// Whether `Host` can have it.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    name.split('.').all(is_label)
}
