//! Notifications to systemd for services of `Type=notify` and `Type=notify-reload` (sd_notify(3)). Knows only the datagrams.

use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::{MissedTickBehavior, interval};

use super::environment::Environment;

/// How long a service manager that does not read may block this process.
const TIME_LIMIT: Duration = Duration::from_millis(200);

/// The socket of the service manager, if there is one.
#[derive(Clone, Debug)]
pub(super) struct Notify {
    /// Our socket, and the address of the manager's. Ours is made once: later no descriptor may be left, and a manager that hears nothing ends the process.
    socket: Option<Arc<(UnixDatagram, SocketAddr)>>,
    /// The manager takes the service for hung if it hears nothing for so long.
    watchdog: Option<Duration>,
}

impl Notify {
    /// From NOTIFY_SOCKET: a path, or an abstract name after an `@`.
    pub fn of(environment: &Environment) -> Self {
        let address = environment.get("NOTIFY_SOCKET").and_then(|name| match name.strip_prefix('@') {
            Some(name) => abstract_address(name),
            None => SocketAddr::from_pathname(name).ok(),
        });
        // WATCHDOG_PID is not looked at: after an upgrade it names the process before.
        let watchdog = environment.get("WATCHDOG_USEC").and_then(|usec| usec.parse().ok());
        let watchdog = watchdog.filter(|usec| *usec > 0).map(Duration::from_micros);
        let socket = address.and_then(|address| Some(Arc::new((own_end().ok()?, address))));
        Self { watchdog: watchdog.filter(|_| socket.is_some()), socket }
    }

    /// Tells the manager regularly, for the life of the program, that the runtime runs its tasks. Begins at once.
    pub async fn keep_alive(self) {
        let Some(limit) = self.watchdog else { return };
        // sd_watchdog_enabled(3) asks for half of the limit.
        let mut ticks = interval((limit / 2).max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.send("WATCHDOG=1");
        }
    }

    /// Requests are served.
    pub fn ready(&self) {
        self.send(&format!("READY=1\nMAINPID={}", std::process::id()));
    }

    /// Tells the manager that process `pid` is the main process now, and serves. The manager has ignored the earlier messages of that process. So READY
    /// is sent again, for which a start or a reload may still wait. WATCHDOG is sent again because that process sends its next one only after half of
    /// the limit, and the last one of this process may be as old.
    pub fn succeeded_by(&self, pid: u32) {
        if self.watchdog.is_some() {
            self.send("WATCHDOG=1");
        }
        self.send(&format!("READY=1\nMAINPID={pid}"));
    }

    /// Tells the manager that a reload begins. The time in the message shows that this reload began after the manager's own signal.
    pub fn reloading(&self) {
        let now = Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default();
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_micros()));
    }

    /// The reload has ended, well or badly: the manager has no word for the difference.
    pub fn reloaded(&self) {
        self.send("READY=1");
    }

    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Errors are ignored: nothing could be done about them. A manager with a full queue is waited for up to the limit.
    fn send(&self, text: &str) {
        if let Some((own, manager)) = self.socket.as_deref() {
            let _ = own.send_to_addr(text.as_bytes(), manager);
        }
    }
}

fn own_end() -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(TIME_LIMIT))?;
    Ok(socket)
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &str) -> Option<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    SocketAddr::from_abstract_name(name).ok()
}

/// Only Linux has such names.
#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &str) -> Option<SocketAddr> {
    None
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;

    use super::*;

    #[test]
    fn the_service_manager_is_notified_of_start_upgrade_and_stop() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("hostler-test-{}", std::process::id());
        let sockets = [
            (path.display().to_string(), UnixDatagram::bind(&path).unwrap()),
            (
                format!("@{name}"),
                UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
            ),
        ];
        for (variable, socket) in sockets {
            let notify = Notify::of(&[("NOTIFY_SOCKET".to_owned(), variable)].into());
            notify.ready();
            notify.succeeded_by(7);
            notify.stopping();
            let next = || {
                let mut text = [0; 100];
                let length = socket.recv(&mut text).unwrap();
                String::from_utf8_lossy(&text[..length]).into_owned()
            };
            assert_eq!(next(), format!("READY=1\nMAINPID={}", std::process::id()));
            assert_eq!(next(), "READY=1\nMAINPID=7");
            assert_eq!(next(), "STOPPING=1");
        }
        Notify::of(&Environment::new()).ready();
    }

    #[tokio::test(start_paused = true)]
    async fn a_watchdog_hears_twice_within_its_limit_that_the_program_lives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let with = |usec: &str| {
            let variables = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", usec)];
            Notify::of(&variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
        };
        let beats = |usec: &'static str| {
            let alive = tokio::time::timeout(Duration::from_secs(59), with(usec).keep_alive());
            let socket = &socket;
            async move {
                let _ = alive.await;
                let mut text = [0; 100];
                std::iter::from_fn(|| socket.recv(&mut text).ok().map(|length| text[..length].to_vec()))
                    .inspect(|text| assert_eq!(text, b"WATCHDOG=1"))
                    .count()
            }
        };
        assert_eq!(beats("30000000").await, 4);
        for off in ["0", "no number"] {
            assert_eq!(beats(off).await, 0, "{off}");
        }
        with("30000000").succeeded_by(7);
        let mut text = [0; 100];
        let told = std::iter::from_fn(|| socket.recv(&mut text).ok().map(|length| text[..length].to_vec()));
        assert_eq!(told.collect::<Vec<_>>(), [b"WATCHDOG=1".as_slice(), b"READY=1\nMAINPID=7"]);
    }
}
