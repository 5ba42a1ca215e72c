//! Keys of the configuration as flags: `--server.idle-timeout 2m` is `--set server.idle-timeout=2m`. Knows no keys.

use std::ffi::OsString;

use hostler_config::{Given, Setting};

/// The only key whose name has no dot. All other keys are in a section.
const ROUTES: &str = "--routes";
/// The flag that takes a key with its value.
pub(super) const SET: &str = "--set";

/// The value of `--set`.
pub(super) fn setting(text: &str) -> Result<Setting, String> {
    let (key, value) = text.split_once('=').ok_or_else(|| match text.strip_prefix("--") {
        Some(_) => format!("{text} needs a value"),
        None => "write KEY=VALUE".to_string(),
    })?;
    let (key, name) = match key.strip_prefix("--") {
        Some(bare) => (bare, key.to_string()),
        None => (key, format!("--set {key}")),
    };
    Ok(Setting { key: key.into(), given: Given::Text(value.into()), name })
}

/// Rewrites `--server.idle-timeout 2m` to `--set --server.idle-timeout=2m`. Keys contain the names of pools, so clap cannot know them.
/// Flags of keys have a dot, except `--routes`; clap's own flags have none.
pub(super) fn key_flags(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args = args.peekable();
    let mut rewritten = Vec::new();
    while let Some(arg) = args.next() {
        let Some(text) = arg.to_str().filter(|text| *text != "--") else {
            // After a bare `--` comes the command line of the app.
            let ends = arg == "--";
            rewritten.push(arg);
            if ends {
                break;
            }
            continue;
        };
        let name = text.split('=').next().unwrap_or_default();
        if name != ROUTES && !(name.starts_with("--") && name.contains('.')) {
            rewritten.push(arg);
            continue;
        }
        let mut whole = arg.clone();
        if !text.contains('=')
            && let Some(value) = args.next_if(|next| !next.to_string_lossy().starts_with("--"))
        {
            whole.push("=");
            whole.push(value);
        }
        rewritten.extend([SET.into(), whole]);
    }
    rewritten.extend(args);
    rewritten
}
