//! What differs for workers in development. Knows no process and no files.

use std::net::SocketAddr;
use std::time::Duration;

/// The settings of `hostler run` with `--watch` or `--inspect`. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Development {
    /// A worker whose boot has failed does not boot again by itself: a restart follows when a file changes.
    pub waits_for_changes: bool,
    /// Node shows the lines of the source files in stack traces (`--enable-source-maps`).
    pub source_maps: bool,
    /// Where the first worker opens Node's inspector.
    pub inspector: Option<SocketAddr>,
    /// How long a worker that was replaced may finish its requests. `None`: for the pool's `hang_timeout`.
    pub retire_timeout: Option<Duration>,
}

impl Development {
    /// The options for Node, for `NODE_OPTIONS`. Each begins with a space.
    pub(super) fn node_options(&self) -> String {
        let maps = if self.source_maps { " --enable-source-maps" } else { "" };
        // This only chooses the address. All Node processes of the worker get it, such as npm; the app opens the inspector later.
        let port = self.inspector.map_or(String::new(), |address| format!(" --inspect-port={address}"));
        format!("{maps}{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_gets_options_only_for_what_is_on() {
        assert_eq!(Development::default().node_options(), "");
        let inspector = "127.0.0.1:9229".parse().ok();
        let both = Development { source_maps: true, inspector, ..Development::default() };
        assert_eq!(both.node_options(), " --enable-source-maps --inspect-port=127.0.0.1:9229");
    }
}
