//! The environment of workers: Hostler's own, the pool's variables, and an option that makes Node accept heads as large as Hostler does.
//! Knows no process.

use std::collections::BTreeMap;

use hostler_config::ADMIN_TOKEN_VARIABLE;

/// Variables and their values.
pub type Environment = BTreeMap<String, String>;

/// How many workers each pool of the predecessor has, as `web=2,api=1`. Only pools whose number is not fixed: a pool that was awake
/// must not fall asleep by an upgrade.
pub(super) const WORKERS_BEFORE: &str = "HOSTLER_PREDECESSOR_WORKERS";

/// Takes that variable out of the environment.
pub(super) fn take_workers_before(environment: &mut Environment) -> BTreeMap<String, usize> {
    let text = environment.remove(WORKERS_BEFORE).unwrap_or_default();
    let pools = text.split(',').filter_map(|pool| pool.split_once('='));
    pools.filter_map(|(name, count)| Some((name.to_owned(), count.parse().ok()?))).collect()
}

/// What is for Hostler alone: its admin token, with which an app could give orders; the secrets of its configuration; and the variables with which
/// systemd talks to the service. An app that used those would say that Hostler is ready, stops, or lives.
const OURS: [&str; 11] = [
    ADMIN_TOKEN_VARIABLE,
    // A variable may have a whole table with its secrets.
    "HOSTLER_POOLS",
    "HOSTLER_REGISTRAR",
    "HOSTLER_TRACES",
    // An address may have a password.
    "HOSTLER_REGISTRAR_NATS",
    "HOSTLER_REGISTRAR_PASSWORD",
    "HOSTLER_REGISTRAR_TOKEN",
    "HOSTLER_TRACES_HEADERS",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

/// Hostler's own environment without what is for Hostler alone.
pub(super) fn for_apps(own: &Environment) -> Environment {
    let has_secret = |name: &str, value: &str| name.ends_with("_SECRET") || value.contains("secret");
    let is_ours = |name: &str, value: &str| {
        OURS.contains(&name) || name.starts_with("HOSTLER_POOLS_") && has_secret(name, value)
    };
    let others = own.iter().filter(|(name, value)| !is_ours(name, value));
    others.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// How many bytes Hostler adds to a request's head: forwarding fields, `Via`, a request id.
const OUR_FIELDS: usize = 8 * 1024;

/// Each worker has its own number in this variable, as under PM2, unless the pool sets it.
const INSTANCE: &str = "NODE_APP_INSTANCE";

/// For workers of a pool with these variables; heads may have so many bytes.
pub(super) fn for_workers(inherited: &Environment, own: &Environment, max_header_size: usize) -> Environment {
    let mut all = inherited.clone();
    // A PM2 around Hostler sets it, and then all workers would have one number.
    all.remove(INSTANCE);
    all.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
    allow_heads(all.entry("NODE_OPTIONS".into()).or_default(), max_header_size + OUR_FIELDS);
    all
}

/// Without the option Node refuses heads over 16 KiB. A value that the operator has set stays.
fn allow_heads(node_options: &mut String, size: usize) {
    // Node accepts underscores in place of hyphens.
    if node_options.replace('_', "-").contains("--max-http-header-size") {
        return;
    }
    if !node_options.is_empty() {
        node_options.push(' ');
    }
    node_options.push_str(&format!("--max-http-header-size={size}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_gets_hostlers_head_limit_unless_the_operator_set_one() {
        let cases = [
            ("", "--max-http-header-size=100"),
            ("--no-deprecation", "--no-deprecation --max-http-header-size=100"),
            ("--max-http-header-size=5", "--max-http-header-size=5"),
            ("--max_http_header_size=5 -r a", "--max_http_header_size=5 -r a"),
        ];
        for (before, after) in cases {
            let mut options = before.to_owned();
            allow_heads(&mut options, 100);
            assert_eq!(options, after);
        }
    }

    #[test]
    fn apps_do_not_get_what_is_for_hostler_alone() {
        let others = ["HOSTLER_POOLS_WEB_WORKERS", "HOSTLER_TRACES_ENDPOINT", "NOTIFY_SOCKET_OF_APP", "PATH"];
        let names = OURS.into_iter().chain(["HOSTLER_POOLS_WEB_STICKY_SECRET"]).chain(others);
        let mut own: Environment = names.map(|name| (name.to_owned(), "value".to_owned())).collect();
        let sticky = r#"{ by = "cookie", secret = "0123456789abcdef" }"#;
        own.insert("HOSTLER_POOLS_WEB_STICKY".into(), sticky.into());
        let names: Vec<_> = for_apps(&own).into_keys().collect();
        assert_eq!(names, others);
    }

    #[test]
    fn variables_of_the_pool_win() {
        let variables = |value: &str| [("A".into(), value.into())].into();
        let workers = for_workers(&variables("inherited"), &variables("own"), 0);
        assert_eq!(workers["A"], "own");
    }

    #[test]
    fn only_the_pool_sets_the_number_of_an_instance() {
        let number = |value: &str| [(INSTANCE.to_owned(), value.to_owned())].into();
        let none = Environment::new();
        assert_eq!(for_workers(&number("3"), &none, 0).get(INSTANCE), None);
        assert_eq!(for_workers(&number("3"), &number(""), 0)[INSTANCE], "");
    }
}
