//! How `hostler run` differs from `hostler start`. Does nothing.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use hostler_worker::Development;

/// How long a worker that was replaced may finish its requests, so that the next change is not held up.
const RETIRE_TIMEOUT: Duration = Duration::from_secs(2);

/// What differs. The default is `hostler start`.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Hostler ends if no worker has ever worked, after some tries. A successor does not.
    pub ends_if_never_ready: bool,
    /// Workers restart when files change.
    pub watch: Option<WatchOptions>,
    /// Where the first worker opens Node's inspector.
    pub inspector: Option<SocketAddr>,
}

/// Which files `hostler run --watch` watches.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    /// Folders and files. Empty: the folder of the app.
    pub paths: Vec<PathBuf>,
    /// Patterns of a `.gitignore`.
    pub ignored: Vec<String>,
    /// The endings of names, without a dot. Empty: the usual ones.
    pub endings: Vec<String>,
}

impl RunOptions {
    /// What follows for workers.
    pub(super) fn development(&self) -> Development {
        let is_developed = self.watch.is_some() || self.inspector.is_some();
        Development {
            waits_for_changes: self.watch.is_some(),
            source_maps: self.watch.is_some(),
            inspector: self.inspector,
            retire_timeout: is_developed.then_some(RETIRE_TIMEOUT),
        }
    }
}
