//! The keys of an app of PM2, and what to do in place of those without a counterpart. Does not know pools.

use serde_json::Value;

/// The key of the program, and its other names.
pub(super) const SCRIPT: [&str; 4] = ["script", "exec", "cmd", "command"];

/// Keys without a counterpart, and what to do instead.
const OTHERS: [(&[&str], &str); 7] = [
    (
        &["watch", "ignore_watch", "watch_delay", "watch_options"],
        "hostler run --watch restarts the app when files change, for development. Here, hostler restart applies changes.",
    ),
    (&["cron_restart", "cron"], "Run hostler restart by cron or a systemd timer."),
    (
        &["wait_ready", "listen_timeout"],
        "Hostler ignores process.send('ready'). If the app listens before it can serve, name a path in health.",
    ),
    (
        &[
            "out_file",
            "output",
            "out_log",
            "out",
            "error_file",
            "error",
            "err_file",
            "err_log",
            "err",
            "log_file",
            "log",
            "log_date_format",
            "log_type",
            "time",
            "merge_logs",
            "combine_logs",
        ],
        "Hostler has one log for all apps: on its standard output, or in log.file of [log].",
    ),
    (
        &["max_restarts", "min_uptime", "restart_delay", "exp_backoff_restart_delay", "stop_exit_codes"],
        "Hostler starts a worker again by rules of its own, with growing pauses.",
    ),
    (&["instance_var", "increment_var"], "A worker has its number in NODE_APP_INSTANCE."),
    (&["uid", "gid", "user", "group"], "Workers run as the user of Hostler."),
];

/// Keys that become part of the pool, or that mean nothing without PM2.
const READ: [&str; 22] = [
    "name",
    "cwd",
    "args",
    "interpreter",
    "exec_interpreter",
    "interpreter_args",
    "interpreterArgs",
    "node_args",
    "env",
    "env_production",
    "port",
    "instances",
    "exec_mode",
    "max_memory_restart",
    "kill_timeout",
    "shutdown_with_message",
    "source_map_support",
    "autorestart",
    "vizion",
    "pmx",
    "automation",
    "windowsHide",
];

/// A sentence for each group of keys of this app that a pool has not.
pub(super) fn without_counterpart(app: &Value) -> Vec<String> {
    let mut sentences = Vec::new();
    let entries = app.as_object().into_iter().flatten();
    let entries = entries.filter(|(_, value)| !matches!(value, Value::Bool(false) | Value::Null));
    let set: Vec<&str> = entries.map(|(key, _)| key.as_str()).collect();
    for (keys, instead) in OTHERS {
        let set: Vec<&str> = keys.iter().copied().filter(|key| set.contains(key)).collect();
        if !set.is_empty() {
            sentences.push(format!("{} of PM2: {instead}", set.join(", ")));
        }
    }
    let is_known = |key: &&str| {
        READ.contains(key) || SCRIPT.contains(key) || OTHERS.iter().any(|(keys, _)| keys.contains(key))
    };
    let rest = set.into_iter().filter(|key| !is_known(key));
    let (stages, rest): (Vec<&str>, Vec<&str>) = rest.partition(|key| key.starts_with("env_"));
    if !stages.is_empty() {
        let stages = stages.join(", ");
        sentences.push(format!(
            "{stages} of PM2: these variables are not in this file. Write one file for each stage."
        ));
    }
    if !rest.is_empty() {
        sentences.push(format!("{} of PM2: Hostler has no such key.", rest.join(", ")));
    }
    sentences
}
