//! Keys that operators bring along from other programs, and keys of other sections: the error names what stands for them.

use expect_test::expect;

use super::check;

#[test]
fn a_key_of_another_program_is_reported_with_its_counterpart() {
    check(
        "[server]\nclient_max_body_size = \"20m\"\n[pools.web]\ncommand = \"node a.js\"\ninstances = 4\nkill_timeout = 5000\nmax_restarts = 10\n[[routes]]\npath = \"/\"\nmatch = \"*\"\npool = \"web\"\n",
        expect![[r#"
            hostler.toml:2:1: unknown key "server.client_max_body_size"; did you mean "max_body_size"?
            hostler.toml:5:1: unknown key "pools.web.instances"; did you mean "workers"?
            hostler.toml:6:1: unknown key "pools.web.kill_timeout"; did you mean "stop_timeout"?
            hostler.toml:7:1: unknown key "pools.web.max_restarts"; leave it out: Hostler starts a worker again without a limit
            hostler.toml:9:1: unknown key "routes[0].path"; did you mean "match"?"#]],
    );
}

#[test]
fn a_key_of_another_section_is_not_taken_for_one_with_similar_letters_or_for_that_of_a_far_section() {
    check(
        "[server]\nhost = \"0.0.0.0\"\nrequest_timeout = \"5s\"\nuser = \"www\"\n[server.tls]\ncert = \"a\"\n[pools.web]\ncommand = \"node a.js\"\nargs = \"-x\"\ntimeout = 30\nuser = \"www\"\n[[routes]]\nmatch = \"*\"\npool = \"web\"\ntimeout = 30\n",
        expect![[r#"
            hostler.toml:2:1: unknown key "server.host"; did you mean "listen"?
            hostler.toml:3:1: unknown key "server.request_timeout"; it is a key of [pools.NAME] and [[routes]] and [registrar]
            hostler.toml:4:1: unknown key "server.user"; leave it out: Hostler has the user that starts it
            hostler.toml:5:9: unknown key "server.tls"; it is a section of its own: [tls]
            hostler.toml:9:1: unknown key "pools.web.args"; the arguments are part of command
            hostler.toml:10:1: unknown key "pools.web.timeout"; did you mean "request_timeout"?
            hostler.toml:11:1: unknown key "pools.web.user"; leave it out: workers have the user of Hostler
            hostler.toml:15:1: unknown key "routes[0].timeout"; did you mean "request_timeout"?"#]],
    );
}

/// What is missing because of it would be told first, and send the operator to another place.
#[test]
fn a_misspelt_section_is_the_only_error() {
    check(
        "[pool.web]\ncommand = \"node a.js\"\n",
        expect![[r#"hostler.toml:1:2: unknown key "pool"; did you mean "pools"?"#]],
    );
    check(
        "[pools.a]\ncommand = \"x\"\n[pools.b]\ncommand = \"x\"\n[[route]]\nmatch = \"*\"\npool = \"a\"\n",
        expect![[r#"hostler.toml:5:3: unknown key "route"; did you mean "routes"?"#]],
    );
}
