//! What `[registrar]` means, and what is said where something is wrong with it.

use expect_test::{Expect, expect};

use super::site;
use crate::{NatsLogin, Secret};

fn check(keys: &str, expected: Expect) {
    site(&format!("[registrar]\n{keys}")).says(expected);
}

#[test]
fn a_configuration_with_only_a_registrar_is_valid() {
    let config = site("[registrar]\nnats = [\"a\", \"tls://b:4333\"]\nuser = \"u\"\n").config();
    let registrar = config.registrar.unwrap();
    let servers: Vec<_> =
        registrar.nats.servers.iter().map(|server| (server.host(), server.port())).collect();
    assert_eq!(servers, [("a", 4222), ("b", 4333)]);
    assert!(matches!(registrar.nats.login, NatsLogin::User { user, .. } if user == "u"));
    assert!(config.platform.is_some());
    assert!(site("pools.a.members = ['a:1']").config().registrar.is_none());
}

#[test]
fn nats_is_tested_often_enough_that_no_member_expires_while_it_hangs() {
    for (keys, milliseconds) in [
        ("", 20_000),
        ("register_interval = '5s'\nstale_threshold = '15s'", 2_500),
        ("register_interval = '5s'\nstale_threshold = '15s'\nping_interval = '1s'", 1_000),
        ("register_interval = '20s'\nstale_threshold = '20s'", 2_500),
        ("register_interval = '5s'\nstale_threshold = '15s'\nsuspend_pruning = false", 20_000),
    ] {
        let registrar = site(&format!("[registrar]\nnats = 'a'\n{keys}")).config().registrar.unwrap();
        assert_eq!(registrar.nats.ping_interval.as_millis(), milliseconds, "{keys}");
    }
}

#[test]
fn a_secret_in_a_variable_is_used_and_never_printed() {
    let site = site("registrar.nats = 'a:1'").variable("HOSTLER_REGISTRAR_TOKEN", "s3cret");
    let config = site.config();
    assert!(!format!("{config:?}").contains("s3cret"));
    assert!(matches!(config.registrar.unwrap().nats.login, NatsLogin::Token(token) if token.0 == "s3cret"));
}

#[test]
fn the_login_in_an_address_counts_unless_a_key_has_one() {
    let login = |keys: &str| site(&format!("[registrar]\n{keys}")).config().registrar.unwrap().nats.login;
    let user =
        |user: &str, password: &str| NatsLogin::User { user: user.into(), password: Secret(password.into()) };
    let in_both = "nats = ['nats://app:s3cr%3Aet@a', 'tls://app:s3cr%3Aet@b']";
    assert_eq!(login(in_both), user("app", "s3cr:et"));
    assert_eq!(login("nats = ['a', 'nats://app:p@b']"), user("app", "p"));
    assert_eq!(login("nats = 'nats://t0ken@a'"), NatsLogin::Token(Secret("t0ken".into())));
    assert_eq!(login("nats = 'nats://app:p@a'\nuser = 'u'\npassword = 'q'"), user("u", "q"));
    assert_eq!(login("nats = 'nats://app:p@a'\ntoken = 't'"), NatsLogin::Token(Secret("t".into())));
    check(
        "nats = ['nats://app:s3cret@a', 'nats://app:0ther@b']",
        expect![
            "hostler.toml:2:8: registrar.nats: the addresses have different logins, and Hostler needs one for all servers"
        ],
    );
}

#[test]
fn temporary_files_have_room_for_the_bodies_of_registered_routes() {
    let spool = |keys: &str| site(&format!("[registrar]\nnats = 'a'\n{keys}")).config().server.spool_size;
    assert_eq!((spool(""), spool("max_body_size = '1 GiB'")), (1 << 30, 4 << 30));
    check(
        "nats = 'a'\nmax_body_size = '1 GiB'\n[server]\nspool_size = '1 GiB'",
        expect![
            "hostler.toml:5:14: server.spool_size: one connection can take half of it, 512 MiB, and max_body_size allows 1 GiB: longer bodies are refused"
        ],
    );
}

#[test]
fn contradictory_keys_are_reported() {
    check(
        "",
        expect![[
            r#"hostler.toml:1:1: registrar: nats is missing; write for example nats = ["nats://127.0.0.1:4222"]"#
        ]],
    );
    check(
        "nats = []",
        expect![[
            r#"hostler.toml:1:1: registrar: nats is missing; write for example nats = ["nats://127.0.0.1:4222"]"#
        ]],
    );
    check(
        "nats = 'http://u:s3cret@a'",
        expect![[
            r#"hostler.toml:2:8: registrar.nats: not an address such as "nats://10.0.0.4:4222": invalid scheme for NATS server URL: http"#
        ]],
    );
    check(
        "nats = 'a'\ntoken = 4711",
        expect!["hostler.toml:3:9: registrar.token: must be a string, in quotes"],
    );
    check("nats = 'a'\npassword = 'p'", expect!["hostler.toml:3:12: registrar.password: needs user"]);
    check(
        "nats = 'a'\nuser = 'u'\ntoken = 't'",
        expect![
            "hostler.toml:4:9: registrar.token: cannot be set together with user and password; remove one of them"
        ],
    );
    check(
        "nats = 'a'\nregister_interval = '1500ms'",
        expect!["hostler.toml:3:21: registrar.register_interval: must be in whole seconds"],
    );
    check(
        "nats = 'a'\nstale_threshold = '10s'",
        expect![
            "hostler.toml:3:19: registrar.stale_threshold: is shorter than register_interval, so every route would expire between two registrations"
        ],
    );
    check(
        "nats = 'a'\nnats_tls = { ca = 'none.pem', cert = 'x' }",
        expect![[r#"
            hostler.toml:3:19: registrar.nats_tls.ca: FOLDER/none.pem: No such file or directory (os error 2)
            hostler.toml:3:38: registrar.nats_tls.cert: needs key"#]],
    );
    check(
        "nats = 'a'\nmember_tls = { server_name = 'x', verify = false }",
        expect![
            "hostler.toml:3:30: registrar.member_tls.server_name: not allowed here, because each member registers its own name"
        ],
    );
    check(
        "nats = 'a'\nsharding = 'segment'",
        expect![[
            r#"hostler.toml:3:12: registrar.sharding: "segment" is not one of "all", "shared_and_segments", "segments"; did you mean "segments"?"#
        ]],
    );
    check("nats = 'a'\nstart_delay = '0'", expect![]);
}

#[test]
fn segments_and_sharding_belong_together() {
    check(
        "nats = 'a'\nsharding = 'segments'",
        expect![[
            r#"hostler.toml:3:12: registrar.sharding: "segments" needs at least one name in isolation_segments"#
        ]],
    );
    check("nats = 'a'\nsharding = 'segments'\naccept = false", expect![]);
    check("nats = 'a'\nsharding = 'segments'\nisolation_segments = ['blue']", expect![]);
    check("nats = 'a'\nsharding = 'shared_and_segments'", expect![]);
    check(
        "nats = 'a'\nisolation_segments = ['blue']",
        expect![[
            r#"hostler.toml:3:1: registrar.isolation_segments: changes nothing, because registrar.sharding is "all""#
        ]],
    );
}

#[test]
fn an_address_that_means_every_machine_is_not_advertised() {
    check(
        "nats = 'a'\nadvertise = '0.0.0.0:8080'",
        expect![
            "hostler.toml:3:13: registrar.advertise: 0.0.0.0 is every address of the machine, and others need one address to connect to"
        ],
    );
    check(
        "nats = 'a'\nadvertise = 'https://[::]:8443'",
        expect![
            "hostler.toml:3:13: registrar.advertise: :: is every address of the machine, and others need one address to connect to"
        ],
    );
}
