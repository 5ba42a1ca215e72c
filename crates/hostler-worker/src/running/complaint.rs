//! Why a worker's process is killed, as text for the operator. Decides nothing.

use super::RunningProcess;
use crate::inspector::Diagnosis;
use crate::lifecycle::KillReason;
use crate::settings::WorkerSettings;
use crate::spawn::AppBinding;

/// What may be the matter with an app that opens no server at all.
const NO_SERVER: &str = "if it needs longer, for example for a migration of its database, raise start_timeout; if it is not a Node program, \
                         use bind = \"port\"";

impl RunningProcess {
    /// The warning about a server of the app that Hostler does not use. A process without a channel to Hostler has printed it.
    pub fn obstacle(&self) -> Option<String> {
        let printed = || self.tail.last_warning_of_preload();
        self.unused_server.clone().or_else(printed).filter(|_| self.address.is_none())
    }

    /// Why the process is killed, as text for the operator.
    pub fn complaint(&self, why: KillReason, settings: &WorkerSettings) -> String {
        let start = settings.start_timeout.as_secs_f64();
        match (why, &self.address, &self.binding) {
            (KillReason::StartTimeout, None, AppBinding::Socket { .. }) => format!(
                "Hostler found no HTTP server of the app within its start_timeout ({start} s); {}",
                self.obstacle().as_deref().unwrap_or(NO_SERVER)
            ),
            (KillReason::StartTimeout, None, AppBinding::Port(port)) => format!(
                "nothing accepted connections on {} within its start_timeout ({start} s); \
                 the app must listen on the PORT of its environment",
                port.address
            ),
            (KillReason::StartTimeout, Some(_), _) => format!(
                "its health path {} has not answered 2xx within its start_timeout ({start} s); its last result: {}",
                settings.health.as_deref().unwrap_or_default(),
                self.health.as_deref().unwrap_or("did not answer")
            ),
            (KillReason::StopTimeout, ..) => {
                format!(
                    "it has not stopped within its stop_timeout ({} s)",
                    settings.stop_timeout.as_secs_f64()
                )
            }
            (KillReason::Orphaned, ..) => format!(
                "the app (pid {}) is gone, but the process that started it (pid {}) still runs",
                self.pid(),
                self.process.pid()
            ),
            (KillReason::Hung, ..) if self.stands_still => {
                "it neither writes nor computes any more while a heap snapshot of it is taken: it is stopped, or stuck in the kernel".to_owned()
            }
            (KillReason::Hung, ..) => self.hung(settings),
            (KillReason::Ordered, ..) => "there was no time for a graceful stop".to_owned(),
        }
    }

    fn hung(&self, settings: &WorkerSettings) -> String {
        let (unfinished, tunnels) = (self.exit_notifier.unfinished(), self.exit_notifier.tunnels());
        // If one request has taken too long, the tunnels are not the cause.
        let tunnels = tunnels.filter(|_| self.silent);
        let what = match (self.silent, &tunnels) {
            (true, None) => "it has requests, and its event loop has not turned for",
            (true, Some(_)) => "it has requests or tunnels, and its event loop has not turned for",
            (false, _) => "a request has taken longer than",
        };
        let named = |kind: &str, names: Option<String>| {
            names.map_or(String::new(), |names| format!("{kind}: {names}; "))
        };
        format!(
            "hung: {what} its hang_timeout ({} s); {}{}it is {}",
            settings.hang_timeout.as_secs_f64(),
            named("unfinished", unfinished),
            named("tunnels", tunnels),
            self.diagnosis.as_ref().unwrap_or(&Diagnosis::Unasked)
        )
    }
}
