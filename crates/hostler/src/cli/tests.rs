//! Command lines and what they are taken for.

mod every_key;

use std::path::PathBuf;

use expect_test::{Expect, expect};
use hostler_config::{self as config, Config, Invocation, LoadContext};

use super::{Args, Command, summary};

fn load_context() -> LoadContext {
    let folder = PathBuf::from("/");
    LoadContext {
        environment: [].into(),
        temp_dir: folder.clone(),
        folder,
        cores: 3,
        cpus: None,
        open_files: None,
        soft_open_files: None,
        memory: None,
        has_ipv6: true,
        workers_before: Default::default(),
    }
}

/// The words of a command line; a `'` at both ends keeps blanks together.
fn invocation(line: &str) -> Result<Invocation, String> {
    let words = shell_words::split(line).unwrap();
    let args = Args::parse_given(words).map_err(|error| error.to_string())?;
    Ok(match args.command {
        Command::Run(run) => run.invocation(load_context()),
        Command::Start(args) | Command::Check(args) => args.invocation(load_context()),
        Command::Status(status) => status.ask.invocation(load_context()),
        other => panic!("{other:?}"),
    })
}

fn config(line: &str) -> Config {
    config::load(&invocation(line).unwrap()).unwrap_or_else(|errors| panic!("{errors}"))
}

fn check(line: &str, expected: Expect) {
    match invocation(line) {
        Err(usage) => expected.assert_eq(&usage),
        Ok(invocation) => {
            expected.assert_eq(&config::load(&invocation).map_or_else(|e| e.to_string(), |c| summary(&c)))
        }
    }
}

#[test]
fn run_needs_no_file() {
    check(
        "hostler run --listen :80 --listen :81 --admin off --workers 2 --concurrency 4 --bind port --log pretty -- node 'a b.js' --x.y=1",
        expect![[r#"

            listen   [::]:80, [::]:81, threads 3
            admin    off
            trusted proxies  none

            pool app
              workers  2 x `node 'a b.js' '--x.y=1'` in /
              slots    4 each; queue of 100 requests, up to 5s; response within 30s

            routes
              *  pool app (response within 30s, body up to 10 MiB)
        "#]],
    );
}

#[test]
fn unusual_settings_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let shell = folder.path().join("shell.html");
    std::fs::write(&shell, "<p>").unwrap();
    let route = format!(
        "routes=[{{ match = '*', pool = 'app', priority = 'low', fallback = '{}' }}]",
        shell.display()
    );
    let line = format!(
        "hostler run --concurrency auto --workers 1 --set \"{route}\" --pools.app.queue.policy fifo \
         --pools.app.max_requests 5000 --pools.app.max_age 1h --pools.app.max_memory '1 GiB' -- x"
    );
    let text = summary(&config(&line)).replace(&folder.path().display().to_string(), "FOLDER");
    expect![[r#"

        listen   127.0.0.1:8080, threads 3
        admin    127.0.0.1:8081
        trusted proxies  none

        pool app
          workers  1 x `x` in /
          replaced after 5000 requests, after 1h, over 1 GiB
          slots    auto, at most 1000 each; queue of 1000 requests, up to 5s, without early refusals (fifo); response within 30s

        routes
          *  pool app (response within 30s, body up to 10 MiB, low priority, fallback FOLDER/shell.html)
    "#]].assert_eq(&text);
}

#[test]
fn a_fallback_without_a_file_is_shown_by_its_keyword() {
    let line =
        "hostler run --set \"routes=[{ match = '/batch', pool = 'app', fallback = 'hypernova' }]\" -- x";
    let text = summary(&config(line));
    assert!(
        text.contains("/batch  pool app (response within 30s, body up to 10 MiB, fallback hypernova)"),
        "{text}"
    );
}

#[test]
fn run_takes_any_key_as_a_flag() {
    let config =
        config("hostler run --pools.app.queue.limit 3 --server.idle-timeout=2m --set server.threads=9 -- x");
    assert_eq!(config.pools[0].queue.limit, 3);
    assert_eq!(config.server.idle_timeout.as_secs(), 120);
    assert_eq!(config.server.threads, 9);
}

#[test]
fn wrong_values_are_reported_with_their_flag() {
    check(
        "hostler run --workers 0 --concurrency many --bind sockt --port 3000 --log jsn --listen nowhere -- x",
        expect![[r#"
            --bind: pools.app.bind: "sockt" is not one of "socket", "port"; did you mean "socket"?
            --concurrency: pools.app.concurrency: "many" is not "auto" or a whole number from 1 to 1024
            --listen: server.listen[0]: "nowhere" is not an address such as "127.0.0.1:8080": the port is missing
            --log: server.access_log: "jsn" is not one of "auto", "json", "pretty", "gorouter", "off"; did you mean "json"?
            --workers: pools.app.workers: 0 is out of range; it must be from 1 to 1024, or "auto""#]],
    );
    check(
        "hostler run --server.haeder-timeout 5s --set server.threads=x -- x",
        expect![[r#"
            --server.haeder-timeout: unknown key "server.haeder_timeout"; did you mean "header_timeout"?
            --set server.threads: server.threads: invalid type: string "x", expected a whole number from 1 to 1024"#]],
    );
    check(
        "hostler run -- ''",
        expect![[
            r#"-- COMMAND: pools.app.command: the program is missing; write for example "node server.js""#
        ]],
    );
}

#[test]
fn a_flag_without_its_value_is_a_usage_error() {
    check(
        "hostler run --server.idle-timeout -- x",
        expect![[r#"
        error: invalid value '--server.idle-timeout' for '--set <KEY=VALUE>': --server.idle-timeout needs a value

        For more information, try '--help'.
    "#]],
    );
    check(
        "hostler start --set server.threads",
        expect![[r#"
            error: invalid value 'server.threads' for '--set <KEY=VALUE>': write KEY=VALUE

            For more information, try '--help'.
        "#]],
    );
    check(
        "hostler run node server.js",
        expect![[r#"
            error: unexpected argument 'node' found

              tip: the app follows `--`: hostler run -- node server.js

            Usage: hostler run [OPTIONS] -- <COMMAND>...

            For more information, try '--help'.
        "#]],
    );
    check(
        "hostler run",
        expect![[r#"
        error: the following required arguments were not provided:
          <COMMAND>...

        Usage: hostler run -- <COMMAND>...

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn start_reads_hostler_toml_by_default() {
    assert_eq!(invocation("hostler start").unwrap().file, Some("hostler.toml".into()));
    assert_eq!(invocation("hostler start -c a/b.toml").unwrap().file, Some("a/b.toml".into()));
    assert_eq!(invocation("hostler check --config x").unwrap().file, Some("x".into()));
}

#[test]
fn status_finds_the_admin_address_without_a_file() {
    let admin =
        |line: &str| config::load_admin(&invocation(line).unwrap()).unwrap().admin.unwrap().to_string();
    assert_eq!(admin("hostler status"), "127.0.0.1:8081");
    assert_eq!(admin("hostler status --json --admin :99 -c nowhere.toml"), "[::]:99");
    let missing = config::load_admin(&invocation("hostler status -c nowhere.toml").unwrap()).unwrap_err();
    assert!(missing.to_string().starts_with("nowhere.toml: cannot be read"), "{missing}");
}

#[test]
fn a_token_file_on_the_command_line_starts_where_the_operator_is() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hostler.toml"), "[server]\nadmin_token_file = 'own'\n").unwrap();
    let file = |more: &str| {
        let line = format!("hostler status -c {}/hostler.toml {more}", folder.path().display());
        config::load_admin(&invocation(&line).unwrap()).unwrap().token_file.unwrap()
    };
    assert_eq!(file(""), folder.path().join("own"));
    assert_eq!(file("--admin-token-file given"), PathBuf::from("/given"));
}

#[test]
fn orders_find_the_admin_address_as_status_does() {
    let parse = |line: &str| Args::parse_given(shell_words::split(line).unwrap()).map(|args| args.command);
    match parse("hostler pause web --admin :99").unwrap() {
        Command::Pause(pause) => {
            assert_eq!((pause.pool.as_str(), pause.timeout.as_secs()), ("web", 60));
            let server = config::load_admin(&pause.ask.invocation(load_context())).unwrap();
            assert_eq!(server.admin.unwrap().tcp().unwrap().port(), 99);
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(parse("hostler restart").unwrap(), Command::Restart(all) if all.pool.is_none()));
    assert!(matches!(parse("hostler restart web").unwrap(), Command::Restart(one) if one.pool.is_some()));
    assert!(
        matches!(parse("hostler drain web/2 --for 10m").unwrap(), Command::Drain(one) if one.length.unwrap().as_secs() == 600)
    );
    assert!(
        matches!(parse("hostler undrain web/2").unwrap(), Command::Undrain(one) if one.worker == "web/2")
    );
    assert!(parse("hostler resume").is_err());
    assert!(parse("hostler pause web --timeout soon").is_err());
}

#[test]
fn a_key_for_a_command_that_takes_none_is_named_as_it_was_written() {
    for (line, named) in [
        ("hostler status --server.admin :99", "unexpected argument '--server.admin' found"),
        ("hostler restart web --pools.web.workers=3", "unexpected argument '--pools.web.workers' found"),
        ("hostler profile web --set server.admin=:99", "unexpected argument '--set' found"),
    ] {
        let error = Args::parse_given(shell_words::split(line).unwrap()).unwrap_err().to_string();
        assert!(error.contains(named) && error.contains("find a running Hostler by --admin"), "{error}");
    }
    // A command that takes keys says what is wrong with the key.
    let error = Args::parse_given(["hostler", "check", "--set", "server.admin"]).unwrap_err().to_string();
    assert!(error.contains("write KEY=VALUE") && !error.contains("--admin"), "{error}");
}

#[test]
fn commands_of_other_process_managers_have_a_tip() {
    for (name, tip) in [
        ("logs", "journalctl -u hostler"),
        ("stop", "SIGTERM"),
        ("ls", "hostler status"),
        ("list", "hostler status"),
        ("monit", "tip: hostler top"),
        ("scale", "hostler reload"),
        ("delete", "SIGTERM"),
        ("describe", "hostler status"),
        ("configtest", "hostler check"),
        ("startup", "systemctl enable hostler"),
        ("-t", "hostler check"),
    ] {
        let error = Args::parse_given(["hostler", name]).unwrap_err().to_string();
        assert!(error.contains(tip) && !error.contains("similar"), "{error}");
    }
    let error = |line: &str| Args::parse_given(shell_words::split(line).unwrap()).unwrap_err().to_string();
    assert!(error("hostler reload web").contains("hostler restart POOL"), "{}", error("hostler reload web"));
    assert!(!error("hostler reload --force").contains("restart"), "{}", error("hostler reload --force"));
    assert!(error("hostler -s reload").contains("hostler reload applies"), "{}", error("hostler -s reload"));
}

#[test]
fn an_argument_that_other_programs_take_has_a_tip() {
    for (line, tip) in [
        ("hostler start ecosystem.config.js", "hostler init writes"),
        ("hostler check sites/shop.toml", "hostler start -c FILE"),
        ("hostler start --listen :80", "--server.listen"),
        ("hostler start --workers 4", "--pools.web.workers"),
        ("hostler run node server.js", "the app follows `--`"),
        ("hostler run -c hostler.toml", "hostler start -c FILE"),
        ("hostler run -i 4 -- node server.js", "hostler run --help"),
    ] {
        let error = Args::parse_given(shell_words::split(line).unwrap()).unwrap_err().to_string();
        assert!(error.contains(tip) && !error.contains("as a value"), "{line}: {error}");
    }
}

#[test]
fn hidden_commands_are_there() {
    let guard = Args::parse_given(["hostler", "__guard", "--fd", "3"]).unwrap();
    assert!(matches!(guard.command, Command::Guard { args } if args == ["--fd", "3"]));
    assert!(matches!(
        Args::parse_given(["hostler", "__reference", "x"]).unwrap().command,
        Command::Reference { .. }
    ));
}

#[test]
fn a_debugger_has_time_and_flags_and_variables_of_the_operator_count_more() {
    let pool = |line: &str| config(line).pools.remove(0);
    let plain = pool("hostler run -- node a.js");
    let watched = pool("hostler run --watch -- node a.js");
    assert_eq!(workers(&watched), 1);
    assert_eq!(watched.request_timeout, plain.request_timeout);
    let inspected = pool("hostler run --inspect -- node a.js");
    let day = std::time::Duration::from_secs(24 * 3600);
    assert_eq!((workers(&inspected), inspected.request_timeout, inspected.queue.timeout), (1, day, day));
    let own = pool("hostler run --inspect=0 --workers 2 --pools.app.request-timeout 1s -- node a.js");
    assert_eq!((workers(&own), own.request_timeout.as_secs()), (2, 1));
}

fn workers(pool: &config::Pool) -> usize {
    match &pool.source {
        config::PoolMembers::Workers(workers) => workers.count,
        config::PoolMembers::Members(_) => panic!("the pool has members"),
    }
}
