//! A service manager such as systemd: it starts Hostler with a socket for notifications, and reads them.

use std::io::ErrorKind;

use hostler_testkit::within;
use tempfile::TempDir;
use tokio::net::UnixDatagram;

use super::site::Plan;

pub struct ServiceManager {
    folder: TempDir,
    socket: UnixDatagram,
}

pub fn service_manager() -> ServiceManager {
    let folder = tempfile::tempdir().unwrap();
    let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    ServiceManager { folder, socket }
}

impl ServiceManager {
    /// The plan of a Hostler that is started by this manager.
    pub fn above(&self, plan: Plan) -> Plan {
        plan.env("NOTIFY_SOCKET", self.folder.path().join("notify").to_str().unwrap())
    }

    /// What Hostler tells next.
    pub async fn told(&self) -> String {
        let mut text = [0; 200];
        let length = within("a notification", self.socket.recv(&mut text)).await.unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    }

    pub fn assert_told_nothing(&self) {
        assert_eq!(self.socket.try_recv(&mut [0; 200]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
