//! Every kind of mistake, and the line that tells it.

use expect_test::{Expect, expect};

use super::site;

fn check(text: &str, expected: Expect) {
    site(text).says(expected);
}

#[test]
fn a_typo_is_told_with_the_nearest_key() {
    check(
        "[pools.web]\ncommand = \"node a.js\"\nconcurency = 2\n",
        expect![[r#"hostler.toml:3:1: unknown key "pools.web.concurency", did you mean "concurrency"?"#]],
    );
    check(
        "[pools.web]\ncommand = \"node a.js\"\n[pools.web.queue]\n  lenght = 2\n",
        expect![[r#"hostler.toml:4:3: unknown key "pools.web.queue.lenght"; known here: limit, timeout"#]],
    );
    check(
        "[sever]\nlisten = \":80\"\n[pools.web]\ncommand = \"node a.js\"\n",
        expect![[r#"hostler.toml:1:2: unknown key "sever", did you mean "server"?"#]],
    );
    check(
        "[[routes]]\nmatch=\"*\"\nrespond={ stauts = 200 }\n",
        expect![[r#"hostler.toml:3:11: unknown key "routes[0].respond.stauts", did you mean "status"?"#]],
    );
}

#[test]
fn a_key_that_is_near_to_nothing_is_told_with_all_that_are_known() {
    check(
        "[pools.web]\ncommand = \"node a.js\"\nqueue = { frobnicate = 1 }\n",
        expect![[
            r#"hostler.toml:3:11: unknown key "pools.web.queue.frobnicate"; known here: limit, timeout"#
        ]],
    );
}

#[test]
fn a_value_of_the_wrong_type_is_told_with_what_is_expected() {
    check(
        "[server]\nthreads = \"two\"\n[pools.web]\ncommand = 5\nmembers = \"x\"\nqueue = 3\n",
        expect![[r#"
        hostler.toml:2:11: server.threads: invalid type: string "two", expected a whole number from 1 to 1024
        hostler.toml:4:11: pools.web.command: invalid type: integer `5`, expected a command such as "node server.js" or ["node", "server.js"]
        hostler.toml:5:11: pools.web.members: invalid type: string "x", expected a list
        hostler.toml:6:9: pools.web.queue: invalid type: integer `3`, expected a table"#]],
    );
    check(
        "server = 1\npools = 2\nroutes = 3\n",
        expect![[r#"
        hostler.toml:1:10: server: invalid type: integer `1`, expected a table
        hostler.toml:2:9: pools: invalid type: integer `2`, expected a table
        hostler.toml:3:10: routes: invalid type: integer `3`, expected a list"#]],
    );
    check(
        "[[routes]]\nmatch = 5\nrespond = 5\n",
        expect![[r#"
        hostler.toml:2:9: routes[0].match: invalid type: integer `5`, expected a host, a path or both, such as "example.com/cart/*"
        hostler.toml:3:11: routes[0].respond: invalid type: integer `5`, expected a string or a table"#]],
    );
}

#[test]
fn a_bad_duration_is_told_with_how_to_write_one() {
    check(
        "pools.web.command = \"node a.js\"\n[server]\nheader_timeout = 10\nbody_timeout = \"10\"\nsend_timeout = \"5 parsecs\"\nidle_timeout = \"0s\"\ndrain_timeout = \"1year\"\n",
        expect![[r#"
            hostler.toml:3:18: server.header_timeout: invalid type: integer `10`, expected a duration with its unit, such as "30s"
            hostler.toml:4:16: server.body_timeout: "10" has no unit; write "10s" for seconds or "10ms"
            hostler.toml:5:16: server.send_timeout: "5 parsecs" is not a duration such as "30s", "250ms" or "1m 30s" (unknown time unit "parsecs", supported units: ns, us/µs, ms, sec, min, hours, days, weeks, months, years (and few variations))
            hostler.toml:6:16: server.idle_timeout: "0s" is out of range; durations go from 1ms to 7days
            hostler.toml:7:17: server.drain_timeout: "1year" is out of range; durations go from 1ms to 7days"#]],
    );
}

#[test]
fn a_bad_size_is_told_with_how_to_write_one() {
    check(
        "pools.web.command = \"node a.js\"\n[server]\nmax_body_size = 0\nbody_memory = \"12 elephants\"\nmax_header_size = \"1 KiB\"\nanswer_buffer = -1\n",
        expect![[r#"
            hostler.toml:3:17: server.max_body_size: 0 B is out of range; from 1 B to 1 TiB
            hostler.toml:4:15: server.body_memory: "12 elephants" is not a size such as "64 KiB", "10 MB" or a number of bytes
            hostler.toml:5:19: server.max_header_size: 1 KiB is out of range; from 8 KiB to 1 MiB
            hostler.toml:6:17: server.answer_buffer: -1 is negative"#]],
    );
}

#[test]
fn a_bad_network_stops_the_start() {
    check(
        "pools.web.command = \"node a.js\"\n[server]\ntrusted_proxies = [\"10.0.0.0/8\", \"10.0.0.0/33\", \"localhost\", \"10.1.2.3/8\"]\n",
        expect![[r#"
            hostler.toml:3:34: server.trusted_proxies[1]: "10.0.0.0/33" is not a network such as "10.0.0.0/8", an IP address, or "unix:"
            hostler.toml:3:49: server.trusted_proxies[2]: "localhost" is not a network such as "10.0.0.0/8", an IP address, or "unix:"
            hostler.toml:3:62: server.trusted_proxies[3]: "10.1.2.3/8" has host bits set; write "10.0.0.0/8" for the network or "10.1.2.3" for one host"#]],
    );
}
