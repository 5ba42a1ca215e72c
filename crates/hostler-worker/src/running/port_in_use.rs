//! A worker that died because a port was in use: which of its ports that is, and what the operator can do. Writes no log.

use super::RunningProcess;
use crate::lifecycle::PoolRole;
use crate::spawn::AppBinding;

/// The port that a worker could not have.
#[derive(Clone, Copy, Debug)]
pub struct PortInUse {
    port: u16,
    purpose: PortPurpose,
}

#[derive(Clone, Copy, Debug)]
enum PortPurpose {
    /// The app had another server, which is for Hostler.
    Second,
    /// It may be the app's only port.
    Unknown { has_socket: bool },
}

impl RunningProcess {
    /// After its end: the port that was in use, if its last error says so.
    pub fn port_in_use(&self) -> Option<PortInUse> {
        let port = self.tail.port_in_use()?;
        // An app that dies at once has not told its address yet, but its claim is a file.
        let (has_socket, has_claimed) = match &self.binding {
            AppBinding::Port(_) => (false, false),
            AppBinding::Socket { own, .. } => (true, own.with_added_extension("1.claim").exists()),
        };
        let purpose = match self.address.is_some() || has_claimed {
            true => PortPurpose::Second,
            false => PortPurpose::Unknown { has_socket },
        };
        Some(PortInUse { port, purpose })
    }
}

impl PortInUse {
    /// Says which program has the port, and what the operator can do. In an upgrade, the workers of the Hostler before this one still
    /// run, and this one does not see them.
    pub fn told(self, role: PoolRole, others: bool) -> String {
        let Self { port, purpose } = self;
        let holder = match role {
            PoolRole::Successor => ", probably by the worker that it replaces",
            _ if others => ", probably by another worker of this app",
            _ => " by another process, perhaps an older worker of this app",
        };
        let remedy = match (purpose, role) {
            (PortPurpose::Unknown { has_socket: true }, _) => format!(
                ". If it is the app's port: let the app listen on the PORT of its environment, or set port = {port} of the pool (--port {port})"
            ),
            (PortPurpose::Unknown { has_socket: false }, _) => {
                ". If it is the app's port: the app must listen on the PORT of its environment".to_owned()
            }
            (PortPurpose::Second, PoolRole::Successor) => {
                ". It is a second port of the app, and a new worker starts before the old one ends: let the app go on without this port".to_owned()
            }
            (PortPurpose::Second, _) if others => {
                ". It is a second port of the app: set workers = 1, or let each worker listen on the port + NODE_APP_INSTANCE. In an \
                 upgrade, the workers of the old Hostler still have their ports: let the app go on without this port".to_owned()
            }
            (PortPurpose::Second, _) => String::new(),
        };
        format!("the port {port} is in use{holder}{remedy}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_app_with_another_server_is_said_to_have_a_second_port() {
        let told = |purpose, role, others| PortInUse { port: 9090, purpose }.told(role, others);
        for role in [PoolRole::Regular, PoolRole::Successor] {
            for others in [true, false] {
                let ignores = |has_socket| told(PortPurpose::Unknown { has_socket }, role, others);
                assert!(
                    ignores(true).ends_with(
                        "the PORT of its environment, or set port = 9090 of the pool (--port 9090)"
                    )
                );
                assert!(ignores(false).ends_with("the app must listen on the PORT of its environment"));
                assert!(!ignores(true).contains("second") && !ignores(false).contains("second"));
            }
        }
        assert!(
            told(PortPurpose::Second, PoolRole::Successor, true)
                .contains("by the worker that it replaces. It is a second port")
        );
        assert_eq!(
            told(PortPurpose::Second, PoolRole::Regular, false),
            "the port 9090 is in use by another process, perhaps an older worker of this app"
        );
    }
}
