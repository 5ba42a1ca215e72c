//! Every kind of mistake, and the line that tells it.

use expect_test::expect;

use super::{check, site};

#[test]
fn a_typo_is_reported_with_the_nearest_key() {
    check(
        "[pools.web]\ncommand = \"node a.js\"\nconcurency = 2\n",
        expect![[r#"hostler.toml:3:1: unknown key "pools.web.concurency"; did you mean "concurrency"?"#]],
    );
    check(
        "[pools.web]\ncommand = \"node a.js\"\n[pools.web.queue]\n  lenght = 2\n",
        expect![[
            r#"hostler.toml:4:3: unknown key "pools.web.queue.lenght"; the keys of this table are limit, timeout, policy, order, max_delay, fair, low"#
        ]],
    );
    check(
        "[sever]\nlisten = \":80\"\n[pools.web]\ncommand = \"node a.js\"\n",
        expect![[r#"hostler.toml:1:2: unknown key "sever"; did you mean "server"?"#]],
    );
    check(
        "[[routes]]\nmatch=\"*\"\nrespond={ stauts = 200 }\n",
        expect![[r#"hostler.toml:3:11: unknown key "routes[0].respond.stauts"; did you mean "status"?"#]],
    );
}

#[test]
fn an_unknown_key_is_reported_with_all_known_keys() {
    check(
        "[pools.web]\ncommand = \"node a.js\"\nqueue = { frobnicate = 1 }\n",
        expect![[
            r#"hostler.toml:3:11: unknown key "pools.web.queue.frobnicate"; the keys of this table are limit, timeout, policy, order, max_delay, fair, low"#
        ]],
    );
}

#[test]
fn a_key_in_another_section_is_reported_with_its_section() {
    check(
        "max_age = \"1h\"\n[server]\nport = 80\nworkers = 2\n[pools.web]\ncommand = \"node a.js\"\nmax_body_size = \"1MB\"\nmatch = \"*\"\n",
        expect![[r#"
            hostler.toml:1:1: unknown key "max_age"; did you mean "geo.max_age"?
            hostler.toml:3:1: unknown key "server.port"; did you mean "listen"?
            hostler.toml:4:1: unknown key "server.workers"; it is a key of [pools.NAME]
            hostler.toml:7:1: unknown key "pools.web.max_body_size"; it is a key of [server] and [[routes]] and [registrar]
            hostler.toml:8:1: unknown key "pools.web.match"; it is a key of [[routes]]"#]],
    );
}

#[test]
fn a_secret_in_the_wrong_place_is_not_repeated() {
    check(
        "registrar = \"nats://user:hunter2@host\"\n",
        expect!["hostler.toml:1:13: registrar: invalid type: string, expected a table"],
    );
    check(
        "[registrar]\nnats = \"nats://host\"\npassword = 99999999999999999999\n",
        expect![
            "hostler.toml:3:12: registrar.password: the number is too large, the largest is 9223372036854775807"
        ],
    );
}

#[test]
fn a_section_with_the_wrong_brackets_is_reported_with_the_right_ones() {
    check(
        "[routes]\nmatch = \"*\"\n",
        expect![
            "hostler.toml:1:1: routes: invalid type: map, expected a list; write [[routes]] for each route, with two brackets"
        ],
    );
    check(
        "[[pools]]\nname = \"web\"\n",
        expect![
            "hostler.toml:1:1: pools: invalid type: sequence, expected a table; write [pools.NAME] for each pool, for example [pools.web]"
        ],
    );
    check(
        "[pools]\ncommand = \"node a.js\"\n",
        expect![[
            r#"hostler.toml:2:11: pools.command: invalid type: string "node a.js", expected a table; a pool has a name: write [pools.NAME] above its keys, for example [pools.web]"#
        ]],
    );
}

#[test]
fn a_value_of_the_wrong_type_is_reported_with_the_expected_type() {
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
fn a_bad_duration_is_reported_with_an_example() {
    check(
        "pools.web.command = \"node a.js\"\n[server]\nheader_timeout = 10\nbody_timeout = \"10\"\nsend_timeout = \"5 parsecs\"\nidle_timeout = \"0s\"\ndrain_timeout = \"1year\"\n",
        expect![[r#"
            hostler.toml:3:18: server.header_timeout: invalid type: integer `10`, expected a duration with its unit, such as "30s"
            hostler.toml:4:16: server.body_timeout: "10" has no unit; write "10s" for seconds or "10ms"
            hostler.toml:5:16: server.send_timeout: "5 parsecs" is not a duration such as "30s", "250ms" or "1m 30s"
            hostler.toml:6:16: server.idle_timeout: "0s" is out of range; a duration is from 1ms to 7days
            hostler.toml:7:17: server.drain_timeout: "1year" is out of range; a duration is from 1ms to 7days"#]],
    );
}

#[test]
fn a_bad_size_is_reported_with_an_example() {
    check(
        "pools.web.command = \"node a.js\"\n[server]\nmax_body_size = 0\nbody_memory = \"12 elephants\"\nmax_header_size = \"1 KiB\"\nanswer_buffer = -1\n",
        expect![[r#"
            hostler.toml:3:17: server.max_body_size: 0 B is out of range; it must be from 1 B to 1 TiB
            hostler.toml:4:15: server.body_memory: "12 elephants" is not a size such as "64 KiB", "10 MB" or a number of bytes
            hostler.toml:5:19: server.max_header_size: 1 KiB is out of range; it must be from 8 KiB to 1 MiB
            hostler.toml:6:17: server.answer_buffer: -1 is negative"#]],
    );
}

#[test]
fn bad_slots_are_reported_with_the_valid_values() {
    check(
        "[pools.a]\ncommand = \"x\"\nconcurrency = \"many\"\n[pools.b]\ncommand = \"x\"\nconcurrency = 0\n[pools.c]\ncommand = \"x\"\nconcurrency = true\n[[routes]]\nmatch = \"*\"\nrespond = \"\"\n",
        expect![[r#"
            hostler.toml:3:15: pools.a.concurrency: "many" is not "auto" or a whole number from 1 to 1024
            hostler.toml:6:15: pools.b.concurrency: 0 is out of range; it must be from 1 to 1024, or "auto"
            hostler.toml:9:15: pools.c.concurrency: invalid type: boolean `true`, expected "auto" or a whole number from 1 to 1024"#]],
    );
}

#[test]
fn a_limit_that_no_worker_can_meet_is_refused() {
    check(
        "[pools.a]\ncommand = \"x\"\nmax_requests = 0\nmax_age = \"soon\"\nmax_memory = \"16 MiB\"\ngc = \"full\"\n",
        expect![[r#"
            hostler.toml:3:16: pools.a.max_requests: 0 is out of range; it must be from 1 to 1000000000
            hostler.toml:4:11: pools.a.max_age: "soon" is not a duration such as "30s", "250ms" or "1m 30s"
            hostler.toml:5:14: pools.a.max_memory: 16 MiB is out of range; it must be from 32 MiB to 1 TiB
            hostler.toml:6:6: pools.a.gc: "full" is not one of "off", "idle""#]],
    );
}

#[test]
fn a_bad_network_stops_the_start() {
    check(
        "pools.web.command = \"node a.js\"\n[server]\ntrusted_proxies = [\"10.0.0.0/8\", \"10.0.0.0/33\", \"localhost\", \"10.1.2.3/8\"]\n",
        expect![[r#"
            hostler.toml:3:34: server.trusted_proxies[1]: "10.0.0.0/33" is neither a network such as "10.0.0.0/8" nor an IP address
            hostler.toml:3:49: server.trusted_proxies[2]: "localhost" is neither a network such as "10.0.0.0/8" nor an IP address
            hostler.toml:3:62: server.trusted_proxies[3]: "10.1.2.3/8" has host bits set; write "10.0.0.0/8" for the network or "10.1.2.3" for one host"#]],
    );
}

#[test]
fn proxies_are_trusted_by_network_or_by_number_of_hops() {
    let server = |keys: &str| format!("pools.web.command = \"node a.js\"\n[server]\n{keys}\n");
    check(
        &server("trusted_hops = 2\ntrusted_proxies = [\"10.0.0.0/8\"]"),
        expect![
            "hostler.toml:3:16: server.trusted_hops: cannot be set together with server.trusted_proxies; remove one of them"
        ],
    );
    check(
        &server("trusted_hops = 33"),
        expect!["hostler.toml:3:16: server.trusted_hops: 33 is out of range; it must be from 0 to 32"],
    );
}

#[test]
fn every_syntax_error_is_reported_with_its_line() {
    check(
        "[server]\nlisten = \nthreads = = 2\n[pools.web\n",
        expect![[r#"
        hostler.toml:2:10: not valid TOML: string values must be quoted, expected literal string
        hostler.toml:3:11: not valid TOML: extra `=`, expected nothing
        hostler.toml:3:13: not valid TOML: unexpected key or value, expected newline, `#`
        hostler.toml:4:11: not valid TOML: unclosed table, expected `]`"#]],
    );
    check(
        "[server]\nthreads = 1\nthreads = 2\n",
        expect![[r#"hostler.toml:3:1: not valid TOML: duplicate key "threads""#]],
    );
    check(
        "[server]\nthreads = 1\n[server]\nthreads = 2\n[log]\nsample = 1\nsample = 2\n",
        expect![[r#"
            hostler.toml:3:2: not valid TOML: duplicate key "server"
            hostler.toml:7:1: not valid TOML: duplicate key "sample""#]],
    );
    check(
        "listen = 1\nsample = 2\n[[routes]]\nmatch = \"*\"\nrespond = \"a\"\n",
        expect![[r#"
            hostler.toml:1:1: unknown key "listen"; did you mean "server.listen"?
            hostler.toml:2:1: unknown key "sample"; did you mean "log.sample"?"#]],
    );
    check(
        "[server]\nthreads = 99999999999999999999\n",
        expect![
            "hostler.toml:2:11: server.threads: the number 99999999999999999999 is too large, the largest is 9223372036854775807"
        ],
    );
    check(
        "[[routes]]\nmatch = \"*\"\nrespond = { status = -99_999_999_999_999_999_999 }\n",
        expect![
            "hostler.toml:3:22: routes[0].respond.status: the number -99_999_999_999_999_999_999 is too small, the smallest is -9223372036854775808"
        ],
    );
}

#[test]
fn a_file_that_is_not_utf_8_is_refused_at_its_place() {
    let site = site("");
    std::fs::write(site.folder.path().join("hostler.toml"), b"[server]\n# gr\xfcn\nthreads = 1\n").unwrap();
    site.says(expect!["hostler.toml:2:5: this is not UTF-8; save the file in this encoding"]);
}

#[test]
fn an_invalid_choice_is_reported_with_the_valid_ones() {
    check(
        "[[routes]]\nmatch=\"*\"\npool=\"web\"\npriority=\"hi\"\n[pools.web.queue]\npolicy=\"lifo\"\n[pools.web.poison]\nkill=1",
        expect![[r#"
            hostler.toml:4:10: routes[0].priority: "hi" is not one of "high", "normal", "low"
            hostler.toml:5:8: pools.web: a pool needs command (to start workers) or members
            hostler.toml:6:8: pools.web.queue.policy: "lifo" is not one of "adaptive", "fifo"; did you mean "fifo"?
            hostler.toml:8:1: unknown key "pools.web.poison.kill"; did you mean "kills"?"#]],
    );
    check(
        "[server]\naccess_log = \"jsn\"\nclient_ip_header = \"Client\"\n[pools.web]\ncommand = \"x\"\nchoice = \"warmest\"\n",
        expect![[r#"
            hostler.toml:2:14: server.access_log: "jsn" is not one of "auto", "json", "pretty", "gorouter", "off"; did you mean "json"?
            hostler.toml:3:20: server.client_ip_header: "Client" is not one of "X-Forwarded-For", "X-Real-IP", "Forwarded", "CF-Connecting-IP", "True-Client-IP"
            hostler.toml:6:10: pools.web.choice: "warmest" is not one of "warm", "round_robin", "least_busy""#]],
    );
}

#[test]
fn an_invalid_address_is_reported_with_an_example() {
    check(
        "pools.web.members = [\"app\", \"http://app:3000\", \"unix:\", \"[::1:3000\", \"::1:3000\", \":3000\", \"app:0\"]\n[server]\nlisten = 8080\nadmin = \"8081\"\n",
        expect![[r#"
            hostler.toml:1:22: pools.web.members[0]: "app" is not an address such as "127.0.0.1:8080": the port is missing
            hostler.toml:1:29: pools.web.members[1]: "http://app:3000" is a URL; write "host:port", "https://host:port" or "unix:/path"
            hostler.toml:1:48: pools.web.members[2]: "unix:" has no path; write for example "unix:/run/app.sock"
            hostler.toml:1:57: pools.web.members[3]: "[::1:3000" is not an address such as "127.0.0.1:8080": an IPv6 address must be in brackets
            hostler.toml:1:70: pools.web.members[4]: "::1:3000" is not an address such as "127.0.0.1:8080": an IPv6 address must be in brackets, as in "[::1]:8080"
            hostler.toml:1:82: pools.web.members[5]: ":3000" is not a host and a port, such as "10.0.0.5:3000"
            hostler.toml:1:91: pools.web.members[6]: "app:0" is not a host and a port, such as "10.0.0.5:3000"
            hostler.toml:3:10: server.listen: invalid type: integer `8080`, expected an address such as "127.0.0.1:8080", or a list of them
            hostler.toml:4:9: server.admin: "8081" is not an address such as "127.0.0.1:8080": write ":8081" for every address of the machine"#]],
    );
}

#[test]
fn a_url_in_place_of_an_address_is_named_as_such() {
    check(
        "pools.web.command = \"x\"\n[server]\nlisten = \"http://127.0.0.1:8080\"\nadmin = \"http://[::1]:8081/\"\n",
        expect![[r#"
            hostler.toml:3:10: server.listen: "http://127.0.0.1:8080" is a URL; write the host and the port, such as "127.0.0.1:8080"
            hostler.toml:4:9: server.admin: "http://[::1]:8081/" is a URL; write the host and the port, such as "127.0.0.1:8080""#]],
    );
}

#[test]
fn an_unknown_host_name_is_reported() {
    let errors = site("pools.web.command = \"x\"\nserver.listen = \"nowhere.invalid:80\"\n")
        .load()
        .unwrap_err()
        .to_string();
    let expected = "hostler.toml:2:17: server.listen[0]: \"nowhere.invalid\" is not an IP address, and its lookup failed: ";
    assert!(errors.starts_with(expected), "{errors}");
}

#[test]
fn a_pattern_that_can_match_no_request_is_refused() {
    let patterns = [
        "",
        "*/x",
        "a.com:80/x",
        "/a/*/b",
        "*.*.com",
        "/x?y=1",
        "/a\\tb",
        "/%2e%2E/x",
        "/%ff",
        "a..com",
        "[::1/x",
        "é.com",
        "http://a.com/x",
    ];
    let routes: String = patterns
        .iter()
        .map(|pattern| format!("[[routes]]\nmatch = \"{pattern}\"\nrespond = \"\"\n"))
        .collect();
    check(
        &routes,
        expect![[r#"
            hostler.toml:2:9: routes[0].match: is empty; for all requests write "*"
            hostler.toml:5:9: routes[1].match: for every host, write only the path: "/x"
            hostler.toml:8:9: routes[2].match: a host has no port here; write "a.com"
            hostler.toml:11:9: routes[3].match: in the path "/a/*/b" a wildcard must be the last segment, as in "/cart/*"
            hostler.toml:14:9: routes[4].match: in the host "*.*.com" a wildcard must be the first label, as in "*.example.com"
            hostler.toml:17:9: routes[5].match: the path "/x?y=1" contains '?'; a route matches the path only, not the query
            hostler.toml:20:9: routes[6].match: the path "/a\tb" contains a control character
            hostler.toml:23:9: routes[7].match: the path "/%2e%2E/x" has a "." or ".." segment; write the path it means
            hostler.toml:26:9: routes[8].match: the path "/%ff" is not UTF-8 when decoded
            hostler.toml:29:9: routes[9].match: "a..com" is not a host name
            hostler.toml:32:9: routes[10].match: "[::1" is not an IPv6 address in brackets
            hostler.toml:35:9: routes[11].match: the host "é.com" must be written in its ASCII form (xn--...)
            hostler.toml:38:9: routes[12].match: leave out "http://": write "a.com/x""#]],
    );
}

#[test]
fn errors_in_later_list_items_have_the_right_line() {
    check(
        "[[routes]]\nmatch = \"/a\"\nrespond = \"\"\n[[routes]]\nmatch = \"/b\"\nrespond = { status = 99, headers = { a = 1 } }\n[[routes]]\nmatch = \"/c\"\npool = \"web\"\nbufer = 1\n",
        expect![[r#"
            hostler.toml:6:22: routes[1].respond.status: 99 is out of range; it must be from 200 to 599
            hostler.toml:6:42: routes[1].respond.headers.a: invalid type: integer `1`, expected a string
            hostler.toml:9:8: routes[2].pool: there is no pool "web"; the configuration has no [pools.NAME]
            hostler.toml:10:1: unknown key "routes[2].bufer"; did you mean "buffer"?"#]],
    );
    check(
        "routes = [1, { match = \"/x\", pool = \"web\" }]\n",
        expect![[r#"
            hostler.toml:1:11: routes[0]: invalid type: integer `1`, expected a table
            hostler.toml:1:37: routes[1].pool: there is no pool "web"; the configuration has no [pools.NAME]"#]],
    );
}

#[test]
fn a_missing_file_is_reported_with_a_remedy() {
    let mut site = site("");
    site.invocation.file = Some("other.toml".into());
    site.says(expect!["other.toml: cannot be read: No such file or directory (os error 2); `hostler init` writes one, -c names another file, and `hostler run -- node server.js` needs none"]);
}

#[test]
fn columns_count_characters_and_both_line_endings_work() {
    check(
        "# é\r\npools.web = { command = \"é\", wörkers = 2 }\r\n",
        expect![
            "hostler.toml:2:31: not valid TOML: invalid unquoted key, expected letters, numbers, `-`, `_`"
        ],
    );
}

#[test]
fn invalid_values_of_compress_are_reported() {
    let check = |compress: &str, expected| {
        check(&format!("[pools.web]\ncommand = \"x\"\n[server]\ncompress = {compress}\n"), expected);
    };
    check("true", expect![[""]]);
    check("\"yes\"", expect![[r#"hostler.toml:4:12: server.compress: "yes" is not true, false or a table"#]]);
    check(
        "{ encodings = [] }",
        expect![
            "hostler.toml:4:26: server.compress.encodings: at least one encoding is needed; to disable compression, write compress = false"
        ],
    );
    check(
        "{ encodings = [\"gzip\", \"br\", \"gzip\"] }",
        expect!["hostler.toml:4:41: server.compress.encodings[2]: is in the list twice"],
    );
    check(
        "{ encodings = [\"deflate\"] }",
        expect![[
            r#"hostler.toml:4:27: server.compress.encodings[0]: "deflate" is not one of "zstd", "br", "gzip""#
        ]],
    );
    check(
        "{ types = [\"text/*\", \"html\"] }",
        expect![[
            r#"hostler.toml:4:33: server.compress.types[1]: expected a media type such as "text/html", "text/*" or "application/*+json""#
        ]],
    );
    check(
        "{ level = 5 }",
        expect![[
            r#"hostler.toml:4:14: unknown key "server.compress.level"; the keys of this table are encodings, types, min_size, effort, event_streams"#
        ]],
    );
}
