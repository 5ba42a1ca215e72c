//! Where values come from: flag > variable > file > default.

use std::time::Duration;

use expect_test::expect;

use super::{Given, Setting, site, workers};
use crate::{AccessLog, load_admin};

const POOL: &str = "pools.web.command = \"x\"\n";

#[test]
fn a_flag_wins_over_a_variable_over_the_file_over_the_default() {
    let idle = |seconds| Duration::from_secs(seconds);
    assert_eq!(site(POOL).config().server.idle_timeout, idle(75));
    let file = format!("{POOL}server.idle_timeout = \"1s\"");
    assert_eq!(site(&file).config().server.idle_timeout, idle(1));
    let with_variable = site(&file).variable("HOSTLER_SERVER_IDLE_TIMEOUT", "2s");
    assert_eq!(with_variable.config().server.idle_timeout, idle(2));
    let with_flag = with_variable.flag("server.idle-timeout", "3s");
    assert_eq!(with_flag.config().server.idle_timeout, idle(3));
    assert_eq!(with_flag.flag("server.idle_timeout", "4s").config().server.idle_timeout, idle(4));
}

#[test]
fn an_overridden_wrong_value_is_no_error() {
    let file = format!("{POOL}server.idle_timeout = \"never\"");
    assert_eq!(
        site(&file).flag("server.idle_timeout", "3s").config().server.idle_timeout,
        Duration::from_secs(3)
    );
}

#[test]
fn a_variable_is_parsed_by_the_type_of_its_key() {
    let config = site("[pools.my-web]\ncommand = \"x\"\nwarmup = [\"/old\"]\n")
        .variable("HOSTLER_SERVER_THREADS", "7")
        .variable("HOSTLER_SERVER_LISTEN", "127.0.0.1:1, 127.0.0.1:2")
        .variable("HOSTLER_SERVER_TRUSTED_PROXIES", r#"["10.0.0.0/8"]"#)
        .variable("HOSTLER_SERVER_ACCESS_LOG", "off")
        .variable("HOSTLER_SERVER_ANSWER_BUFFER", "65536")
        .variable("HOSTLER_POOLS_MY_WEB_COMMAND", "node 'a b.js', --x")
        .variable("HOSTLER_POOLS_MY_WEB_WARMUP", "")
        .variable("HOSTLER_POOLS_MY_WEB_ENV_NODE_ENV", "007")
        .variable("HOSTLER_POOLS_MY_WEB_QUEUE_LIMIT", "0")
        .variable("HOSTLER_ROUTES", r#"[{ match = "/x", pool = "my-web" }]"#)
        .config();
    assert_eq!(config.warnings, Vec::<String>::new());
    assert_eq!(config.server.threads, 7);
    assert_eq!(config.server.listen.iter().map(|address| address.port()).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(config.server.trusted_proxies.len(), 1);
    assert_eq!(config.server.access_log, AccessLog::Off);
    assert_eq!(config.server.answer_buffer, 65536);
    assert_eq!(workers(&config).command, ["node", "a b.js,", "--x"]);
    assert_eq!(workers(&config).warmup, Vec::<String>::new());
    assert_eq!(workers(&config).env["NODE_ENV"], "007");
    assert_eq!(config.pools[0].queue.limit, 0);
    assert_eq!(config.routes[0].pattern.to_string(), "/x");
}

#[test]
fn errors_name_the_variable_or_the_flag() {
    site(POOL)
        .variable("HOSTLER_SERVER_THREADS", "many")
        .variable("HOSTLER_ROUTES", "[")
        .flag("server.body-timeout", "5")
        .flag("server.bdy-timeout", "5s")
        .flag("routes.0.pool", "web")
        .flag("pools.wbe.workers", "2")
        .says(expect![[r#"
            --pools.wbe.workers: pools.wbe: a pool needs command (to start workers) or members; did you mean "web"?
            --routes.0.pool: routes: invalid type: map, expected a list; write [[routes]] for each route, with two brackets
            --server.bdy-timeout: unknown key "server.bdy_timeout"; did you mean "body_timeout"?
            --server.body-timeout: server.body_timeout: "5" has no unit; write "5s" for seconds or "5ms"
            HOSTLER_ROUTES: routes: not valid TOML: unclosed array, expected `]`
            HOSTLER_SERVER_THREADS: server.threads: invalid type: string "many", expected a whole number from 1 to 1024"#]]);
}

#[test]
fn a_switch_takes_true_and_false_and_says_so() {
    let with = |value: &str| site(POOL).variable("HOSTLER_SERVER_HTTP2", value);
    assert!(!with("false").config().server.http2);
    assert!(with("true").flag("server.http2", "true").config().server.http2);
    with("no").says(expect![[r#"HOSTLER_SERVER_HTTP2: server.http2: "no" is neither true nor false"#]]);
}

#[test]
fn a_key_inside_a_table_switches_its_feature_on_unless_the_feature_is_set_to_false() {
    let effort = |site: super::Site| site.variable("HOSTLER_SERVER_COMPRESS_EFFORT", "high");
    assert_eq!(site(POOL).config().routes[0].compress, None);
    let plain = effort(site(POOL)).config();
    let on = effort(site(POOL).variable("HOSTLER_SERVER_COMPRESS", "true")).config();
    assert!(plain.routes[0].compress.is_some());
    assert_eq!(plain.routes, on.routes);
    effort(site(POOL).variable("HOSTLER_SERVER_COMPRESS", "false")).says(expect!["HOSTLER_SERVER_COMPRESS_EFFORT: server.compress.effort: cannot be set alone, because the key above it is not a table; set that key as a whole, in TOML"]);
}

#[test]
fn an_unknown_variable_causes_a_warning() {
    site(POOL)
        .variable("HOSTLER_BIN", "/usr/bin/hostler")
        .variable("HOSTLER_CHAOS_SECONDS", "60")
        .variable("HOSTLER_BIND", "x")
        .variable("HOSTLER_SERVER_LISTN", ":80")
        .variable("HOSTLER_POOLS_API_WORKERS", "2")
        .variable("HOSTLER_FOO", "bar")
        .variable("HOSTLER_LISTEN", ":80")
        .says(expect![[r#"
            HOSTLER_BIND: unknown variable, ignored
            HOSTLER_FOO: unknown variable, ignored
            HOSTLER_LISTEN: unknown variable, ignored; did you mean HOSTLER_SERVER_LISTEN?
            HOSTLER_POOLS_API_WORKERS: unknown variable, ignored; did you mean HOSTLER_POOLS_WEB_WORKERS?
            HOSTLER_SERVER_LISTN: unknown variable, ignored; did you mean HOSTLER_SERVER_LISTEN?"#]]);
}

#[test]
fn variables_of_a_kubernetes_service_cause_no_warning() {
    let site = site(POOL)
        .variable("HOSTLER_SERVICE_HOST", "10.0.0.1")
        .variable("HOSTLER_SERVICE_PORT_HTTP", "80")
        .variable("HOSTLER_PORT", "tcp://10.0.0.1:80")
        .variable("HOSTLER_PORT_80_TCP", "tcp://10.0.0.1:80")
        .variable("HOSTLER_PORT_80_TCP_PROTO", "tcp")
        .variable("HOSTLER_ADMIN_SERVICE_PORT", "8081");
    assert_eq!(site.config().warnings, Vec::<String>::new());
    let warnings = site.variable("HOSTLER_PORT", "8080").config().warnings;
    assert!(warnings.len() == 1 && warnings[0].starts_with("HOSTLER_PORT: unknown variable"), "{warnings:?}");
}

#[test]
fn variables_that_hostler_gives_its_workers_are_no_configuration() {
    let names = ["POOL", "WORKER", "GENERATION", "LISTEN_FD", "LISTEN_PATH", "CONTROL_PATH", "APP_PORT"];
    let site = names.iter().fold(site(POOL), |site, name| site.variable(&format!("HOSTLER_{name}"), "1"));
    assert_eq!(site.config().warnings, Vec::<String>::new());
}

#[test]
fn a_variable_that_matches_two_pools_is_refused() {
    site("pools.a-b.command = \"x\"\npools.a_b.command = \"x\"\n")
        .variable("HOSTLER_POOLS_A_B_WORKERS", "2")
        .says(expect![[r#"
            hostler.toml: there are several pools and no [[routes]]; add routes that say which requests go to which pool (pools: a-b, a_b)
            HOSTLER_POOLS_A_B_WORKERS: ambiguous, it could mean pools.a-b.workers and pools.a_b.workers; set the key in the file or with a flag"#]]);
}

#[test]
fn without_a_file_flags_define_the_pool() {
    let mut site = site("").without_file().variable("HOSTLER_POOLS_APP_WORKERS", "2");
    let given = Given::List(vec!["node".into(), "a b.js".into()]);
    site.invocation.settings.push(Setting {
        key: "pools.app.command".into(),
        given,
        name: "-- COMMAND".into(),
    });
    let config = site.config();
    assert_eq!(workers(&config).command, ["node", "a b.js"]);
    assert_eq!(workers(&config).count, 2);
    assert_eq!(workers(&config).cwd, site.folder());
    assert_eq!(config.routes[0].pattern.to_string(), "*");
    assert_eq!(config.path, None);
}

#[test]
fn the_admin_address_can_be_read_although_the_rest_is_invalid() {
    for wrong in [
        "pools.a.command = \"x\"\npools.b.command = \"x\"",
        "server.thread = 1",
        "server.listen = \"nowhere\"",
        "server.listen = \"127.0.0.1:99\"",
        "pools.a.workers = \"many\"\nnonsense = 1",
    ] {
        let site = site(&format!(
            "{wrong}\nserver.admin = \"127.0.0.1:99\"\nserver.admin_token_file = \"a.token\"\n"
        ));
        assert!(site.load().is_err(), "{wrong}");
        let settings = load_admin(&site.invocation).unwrap();
        assert_eq!(settings.admin.unwrap().tcp().unwrap().port(), 99, "{wrong}");
        assert_eq!(settings.token_file, Some(site.folder().join("a.token")), "{wrong}");
        assert!(settings.unusable.is_none(), "{wrong}");
    }
}

#[test]
fn without_a_readable_admin_address_the_errors_and_the_default_are_known() {
    for wrong in
        ["server.admin = \"127.0.0.1:99\"\n[pools", "server.admin = 5", "server.admin = \"nowhere:\""]
    {
        let mut site = site(wrong);
        let settings = load_admin(&site.invocation).unwrap();
        assert_eq!(settings.admin.unwrap().tcp().unwrap().port(), 8081, "{wrong}");
        assert!(settings.unusable.is_some(), "{wrong}");
        site.invocation.load_context.environment.insert("HOSTLER_SERVER_ADMIN".into(), ":98".into());
        let settings = load_admin(&site.invocation).unwrap();
        assert_eq!(settings.admin.unwrap().tcp().unwrap().port(), 98, "{wrong}");
        site.invocation.load_context.environment.insert("HOSTLER_SERVER_ADMIN".into(), "nowhere:".into());
        assert!(load_admin(&site.invocation).is_err(), "{wrong}");
    }
}

#[test]
fn every_address_of_a_machine_without_ipv6_is_one_of_ipv4() {
    let mut site = site("server.listen = \":8080\"\n[[routes]]\nmatch = \"*\"\nrespond = \"\"\n");
    for (has_ipv6, expected) in [(true, "[::]:8080"), (false, "0.0.0.0:8080")] {
        site.invocation.load_context.has_ipv6 = has_ipv6;
        assert_eq!(site.config().server.listen[0].to_string(), expected);
    }
}

#[test]
fn only_the_default_limit_of_a_queue_grows_with_the_speed_of_workers() {
    let burst = |text: &str| site(&format!("{POOL}{text}")).config().pools[0].queue.burst;
    assert_eq!(burst(""), Duration::from_secs(1));
    assert_eq!(burst("pools.web.queue.timeout = \"20s\""), Duration::from_secs(4));
    assert_eq!(burst("pools.web.queue.limit = 1000"), Duration::ZERO);
    assert_eq!(burst("pools.web.concurrency = 4"), Duration::ZERO);
}

#[test]
fn a_list_or_a_table_by_flag_means_the_same_as_in_the_file() {
    let (routes, check) = (
        "[{match=\"*\",pool=\"web\",cache=\"standard\",rate_limit={requests=3,per=\"1h\"}}]",
        "{path=\"/health\"}",
    );
    let members = "[pools.web]\nmembers = [\"127.0.0.1:1\"]\n";
    let by_file = site(&format!("routes={routes}\n{members}health_check={check}")).config();
    assert!(by_file.routes[0].rate_limit.is_some());
    let by_flag = site(members).flag("routes", routes).flag("pools.web.health_check", check).config();
    assert_eq!(by_flag.routes, by_file.routes);
    assert_eq!(by_flag.pools, by_file.pools);
    let idle = site(members).flag("routes", "[{match=\"*\",pool=\"web\",rate_limit={per=\"1h\"}}]");
    idle.says(expect!["--routes: routes[0].rate_limit: limits nothing; add requests or worker_time"]);
}
