//! The flags of `hostler run` for the development of an app. Starts nothing.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use hostler_config::{Given, LoadContext, Setting};

use crate::server::{RunOptions, WatchOptions};

/// The port of Node's inspector.
const INSPECTOR_PORT: &str = "9229";
/// With one worker, a change needs one boot, and the inspected worker gets every request.
const ONE_WORKER: [(&str, &str); 1] = [("pools.app.workers", "1")];
/// A worker that a debugger has stopped does not answer, and is not hung.
const PATIENCE: [(&str, &str); 5] = [
    ("pools.app.request_timeout", "24h"),
    ("pools.app.hang_timeout", "24h"),
    ("pools.app.response_idle_timeout", "24h"),
    ("pools.app.queue.timeout", "24h"),
    ("pools.app.queue.policy", "fifo"),
];

/// The flags.
#[derive(Debug, clap::Args)]
pub struct DevelopmentArgs {
    /// Restart the workers when files change, and show errors in the browser; for development [default: 1 worker]
    #[arg(long)]
    watch: bool,
    /// Folder or file that --watch watches; can be repeated [default: the folder of the app]
    #[arg(long, value_name = "PATH")]
    watch_path: Vec<PathBuf>,
    /// Files and folders that --watch leaves out, as a line of a .gitignore; can be repeated
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    watch_ignore: Vec<String>,
    /// Endings of the files that --watch watches, such as `js,ts,sql` [default: code, templates and settings]
    #[arg(long, value_name = "ENDINGS", value_delimiter = ',')]
    watch_ext: Vec<String>,
    /// Open Node's inspector in the first worker, for a debugger [default: 1 worker, no time limits] [default address: 127.0.0.1:9229]
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, require_equals = true, default_missing_value = INSPECTOR_PORT)]
    inspect: Option<String>,
}

impl DevelopmentArgs {
    fn watches(&self) -> bool {
        self.watch
            || !(self.watch_path.is_empty() && self.watch_ignore.is_empty() && self.watch_ext.is_empty())
    }

    /// Defaults that differ. Flags of the keys come after them, and variables keep theirs.
    pub fn settings(&self, load_context: &LoadContext) -> Vec<Setting> {
        let name = if self.inspect.is_some() { "--inspect" } else { "--watch" };
        let one_worker = ONE_WORKER.iter().filter(|_| self.watches() || self.inspect.is_some());
        let patience = PATIENCE.iter().filter(|_| self.inspect.is_some());
        let is_free = |(key, _): &&(&str, &str)| {
            let variable = format!("HOSTLER_{key}").replace('.', "_").to_ascii_uppercase();
            !load_context.environment.contains_key(&variable)
        };
        let defaults = one_worker.chain(patience).filter(is_free);
        let setting = |&(key, value): &(&str, &str)| {
            let given = Given::Text(value.to_owned());
            Setting { key: key.to_owned(), given, name: name.to_owned() }
        };
        defaults.map(setting).collect()
    }

    /// What differs from `hostler start`.
    pub fn options(&self) -> Result<RunOptions, String> {
        let watch = self.watches().then(|| WatchOptions {
            paths: self.watch_path.clone(),
            ignored: self.watch_ignore.clone(),
            endings: self.watch_ext.clone(),
        });
        let inspector = self.inspect.as_deref().map(address).transpose()?;
        Ok(RunOptions { ends_if_never_ready: watch.is_none(), watch, inspector })
    }
}

/// An address as Node reads it: `PORT` or `HOST:PORT`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let named = text.replacen("localhost:", "127.0.0.1:", 1);
    let address = text.parse().map(|port| SocketAddr::new(local, port)).ok().or_else(|| named.parse().ok());
    address.ok_or_else(|| {
        format!("--inspect={text}: write a port such as 9229, or an address such as 127.0.0.1:9229")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inspector_takes_addresses_as_node_does() {
        let loopback = |port| Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        assert_eq!(address(INSPECTOR_PORT), loopback(9229));
        assert_eq!(address("localhost:9230"), loopback(9230));
        assert_eq!(address("0.0.0.0:1"), Ok("0.0.0.0:1".parse().unwrap()));
        for wrong in ["", "host:1", "99999", "127.0.0.1"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
