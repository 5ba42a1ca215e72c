//! Keys that are right one by one, but not together.

use expect_test::expect;

use super::{check, site};

#[test]
fn a_pool_has_either_a_command_or_members() {
    check(
        "[pools.web]\ncommand = \"x\"\nmembers = [\"a:1\"]\n",
        expect!["hostler.toml:3:11: pools.web.members: a pool has either command or members, not both"],
    );
    check(
        "[pools.web]\nconcurrency = 2\n",
        expect!["hostler.toml:1:8: pools.web: a pool needs command (to start workers) or members"],
    );
    check(
        "[pools.web]\nmembers = []\n",
        expect![[
            r#"hostler.toml:2:11: pools.web.members: at least one member is needed, such as "10.0.0.5:3000""#
        ]],
    );
}

#[test]
fn keys_about_workers_are_refused_beside_members() {
    check(
        "[pools.web]\nmembers = [\"a:1\", \"a:1\"]\nworkers = 2\nenv = { A = 1 }\nhang_timeout = \"1m\"\nmax_requests = 5\nmax_age = \"1h\"\nmax_memory = \"1 GiB\"\ngc = \"idle\"\nconnect_timeout = \"1s\"\n[pools.web.poison]\nkills = 1\n",
        expect![[r#"
            hostler.toml:2:19: pools.web.members[1]: a:1 is in the list twice; raise concurrency instead
            hostler.toml:3:1: pools.web.workers: not allowed for members, because Hostler does not start them
            hostler.toml:4:1: pools.web.env: not allowed for members, because Hostler does not start them
            hostler.toml:5:1: pools.web.hang_timeout: not allowed for members, because Hostler does not start them
            hostler.toml:6:1: pools.web.max_requests: not allowed for members, because Hostler does not start them
            hostler.toml:7:1: pools.web.max_age: not allowed for members, because Hostler does not start them
            hostler.toml:8:1: pools.web.max_memory: not allowed for members, because Hostler does not start them
            hostler.toml:9:1: pools.web.gc: not allowed for members, because Hostler does not start them
            hostler.toml:11:12: pools.web.poison: not allowed for members, because Hostler does not start them"#]],
    );
}

#[test]
fn the_health_of_members_is_a_check_of_its_own() {
    check(
        "[pools.web]\nmembers = [\"a:1\"]\nhealth = \"/healthz\"\n",
        expect![
            "hostler.toml:3:1: pools.web.health: not allowed for members, because Hostler does not start them; for the path that shows whether they serve, use health_check"
        ],
    );
}

#[test]
fn a_route_to_an_unknown_pool_is_reported_with_the_nearest_name() {
    let route = "[[routes]]\nmatch = \"*\"\npool = \"wbe\"\n";
    check(
        &format!("[pools.web]\ncommand = \"x\"\n{route}"),
        expect![[r#"hostler.toml:5:8: routes[0].pool: there is no pool "wbe"; did you mean "web"?"#]],
    );
    check(
        &format!("[pools.other]\ncommand = \"x\"\n{route}"),
        expect![[r#"hostler.toml:5:8: routes[0].pool: there is no pool "wbe"; the pools are other"#]],
    );
    check(
        route,
        expect![[
            r#"hostler.toml:3:8: routes[0].pool: there is no pool "wbe"; the configuration has no [pools.NAME]"#
        ]],
    );
}

#[test]
fn a_route_leads_to_exactly_one_target() {
    check(
        "[pools.web]\ncommand = \"x\"\n[[routes]]\nmatch = \"/a\"\n[[routes]]\nmatch = \"/b\"\npool = \"web\"\nrespond = \"\"\n[[routes]]\npool = \"web\"\n",
        expect![[r#"
            hostler.toml:3:1: routes[0]: the route has no target; add pool, static, redirect, respond, geo or postal
            hostler.toml:8:11: routes[1].respond: a route has exactly one target: pool, static, redirect, respond, geo or postal (or pool and static, or geo and postal)
            hostler.toml:9:1: routes[2]: match is missing; for all requests write match = "*""#]],
    );
}

#[test]
fn two_routes_with_the_same_meaning_are_refused() {
    check(
        "[[routes]]\nmatch = \"Example.COM\"\nrespond = \"a\"\n[[routes]]\nmatch = \"example.com./*\"\nrespond = \"b\"\n",
        expect![[
            r#"hostler.toml:5:9: routes[1].match: routes[0] already matches "example.com" (hostler.toml:2:9)"#
        ]],
    );
}

#[test]
fn several_pools_need_routes() {
    check(
        "[pools.a]\ncommand = \"x\"\n[pools.b]\ncommand = \"x\"\n",
        expect![
            "hostler.toml: there are several pools and no [[routes]]; add routes that say which requests go to which pool (pools: a, b)"
        ],
    );
    check(
        "",
        expect!["hostler.toml: there is nothing to serve; add [pools.NAME], [[routes]] or [registrar]"],
    );
}

#[test]
fn a_pool_without_a_route_causes_a_warning() {
    check(
        "[pools.a]\ncommand = \"x\"\n[[routes]]\nmatch = \"*\"\nrespond = \"\"\n",
        expect!["hostler.toml:1:8: pools.a: no route leads to this pool"],
    );
}

#[test]
fn hang_timeout_must_exceed_request_timeout() {
    check(
        "[pools.a]\ncommand = \"x\"\nhang_timeout = \"1m\"\n[[routes]]\nmatch = \"/export\"\npool = \"a\"\nrequest_timeout = \"5m\"\n",
        expect!["hostler.toml:3:16: pools.a.hang_timeout: is less than the longest request_timeout, 5m"],
    );
}

#[test]
fn concurrency_auto_needs_workers() {
    check(
        "[pools.a]\nmembers = [\"a:1\"]\nconcurrency = \"auto\"\n",
        expect![[
            r#"hostler.toml:3:15: pools.a.concurrency: "auto" works for workers only, because Hostler cannot measure how busy a member is; write a number"#
        ]],
    );
    check("[pools.a]\ncommand = \"x\"\nbind = \"port\"\nconcurrency = \"auto\"\n", expect![""]);
    check(
        "[pools.a]\ncommand = \"x\"\nconcurrency = 2\nmax_concurrency = 9\n",
        expect![[r#"hostler.toml:4:19: pools.a.max_concurrency: is for concurrency = "auto" only"#]],
    );
}

#[test]
fn gc_idle_needs_workers_with_the_preload() {
    check(
        "[pools.a]\ncommand = \"x\"\nbind = \"port\"\ngc = \"idle\"\n",
        expect![[r#"
            hostler.toml:4:6: pools.a.gc: "idle" needs the preload inside the worker, which does not exist with bind = "port""#]],
    );
}

#[test]
fn a_fallback_must_be_a_file_that_can_be_sent() {
    let files = ["missing.html", "folder.html", "large.html", "empty.html", "page", "/dev/zero"];
    let routes = files.iter().enumerate().map(|(index, file)| {
        format!("[[routes]]\nmatch = \"/{index}\"\npool = \"a\"\nfallback = \"{file}\"\n")
    });
    let site = site(&format!("[pools.a]\ncommand = \"x\"\n{}", routes.collect::<String>()));
    std::fs::create_dir(site.folder().join("folder.html")).unwrap();
    std::fs::write(site.folder().join("large.html"), vec![b'x'; (1 << 20) + 1]).unwrap();
    std::fs::write(site.folder().join("empty.html"), "").unwrap();
    std::fs::write(site.folder().join("page"), "<p>").unwrap();
    site.says(expect![[r#"
        hostler.toml:6:12: routes[0].fallback: FOLDER/missing.html cannot be read: No such file or directory (os error 2)
        hostler.toml:10:12: routes[1].fallback: FOLDER/folder.html is a folder, not a file
        hostler.toml:14:12: routes[2].fallback: FOLDER/large.html is larger than 1 MiB
        hostler.toml:18:12: routes[3].fallback: FOLDER/empty.html is empty
        hostler.toml:22:12: routes[4].fallback: FOLDER/page has no extension with a known type, such as .html
        hostler.toml:26:12: routes[5].fallback: /dev/zero is not a regular file"#]]);
}

#[test]
fn a_fallback_that_would_come_late_causes_a_warning() {
    let text = |pool: &str, route: &str| {
        format!(
            "[pools.a]\ncommand = \"x\"\n{pool}[[routes]]\nmatch = \"*\"\npool = \"a\"\nfallback = \"hypernova\"\n{route}"
        )
    };
    check(
        &text("", ""),
        expect![[
            r#"hostler.toml:6:1: routes[0].fallback: if a worker is slow, the fallback comes only after 30s; set request_timeout of the route, such as "1s""#
        ]],
    );
    check(&text("request_timeout = \"30s\"\n", ""), expect![""]);
    check(&text("", "request_timeout = \"1m\"\n"), expect![""]);
}

#[test]
fn a_hypernova_fallback_needs_a_buffered_body() {
    check(
        "[pools.a]\ncommand = \"x\"\n[[routes]]\nmatch = \"/batch\"\npool = \"a\"\nbuffer = \"none\"\nfallback = \"hypernova\"\n",
        expect![[
            r#"hostler.toml:7:12: routes[0].fallback: "hypernova" needs the whole batch, and does not work with buffer = "none""#
        ]],
    );
    check(
        "[pools.a]\ncommand = \"x\"\n[[routes]]\nmatch = \"/batch\"\npool = \"a\"\nfallback = \"Hypernova\"\n",
        expect![[
            r#"hostler.toml:6:12: routes[0].fallback: FOLDER/Hypernova cannot be read: No such file or directory (os error 2); did you mean "hypernova"?"#
        ]],
    );
}

#[test]
fn an_answer_has_a_body_or_a_file_that_can_be_sent() {
    let site = site(
        "[[routes]]\nmatch = \"/a\"\nrespond = { body = \"\", file = \"page.html\" }\n[[routes]]\nmatch = \"/b\"\nrespond = { file = \"missing.html\" }\n[[routes]]\nmatch = \"/c\"\n[routes.respond]\nstatus = 204\nfile = \"page.html\"\n[[routes]]\nmatch = \"/d\"\nrespond = { file = \".\" }\n",
    );
    std::fs::write(site.folder().join("page.html"), "<p>").unwrap();
    site.says(expect![[r#"
        hostler.toml:3:31: routes[0].respond.file: cannot be set together with body; remove one of them
        hostler.toml:6:20: routes[1].respond.file: FOLDER/missing.html cannot be read: No such file or directory (os error 2)
        hostler.toml:11:8: routes[2].respond.file: a response with status 204 has no body
        hostler.toml:14:20: routes[3].respond.file: FOLDER/. is a folder, not a file"#]]);
}

#[test]
fn keys_for_pools_are_refused_beside_respond() {
    check(
        "[[routes]]\nmatch = \"*\"\nrespond = \"\"\npriority = \"high\"\nfallback = \"missing.html\"\n",
        expect![[r#"
            hostler.toml:4:12: routes[0].priority: cannot be set together with respond
            hostler.toml:5:12: routes[0].fallback: cannot be set together with respond"#]],
    );
}

#[test]
fn a_fixed_answer_cannot_set_framing_fields() {
    check(
        "[[routes]]\nmatch = \"/a\"\nrespond = { status = 204, body = \"x\" }\nbuffer = \"none\"\n[[routes]]\nmatch = \"/b\"\nrespond = { headers = { Content-Length = \"5\", \"a b\" = \"\", x = \"a\\nb\", y = \"1\", Y = \"2\" } }\n",
        expect![[r#"
            hostler.toml:3:34: routes[0].respond.body: a response with status 204 has no body
            hostler.toml:4:10: routes[0].buffer: cannot be set together with respond
            hostler.toml:7:42: routes[1].respond.headers.Content-Length: Hostler sets this field itself, because it frames the message
            hostler.toml:7:55: routes[1].respond.headers.a b: "a b" is not a valid name of a header field
            hostler.toml:7:63: routes[1].respond.headers.x: character 2 is '\n', which the value of a header field cannot have
            hostler.toml:7:75: routes[1].respond.headers.y: y is set twice ("1")"#]],
    );
}

#[test]
fn variables_that_hostler_sets_cannot_be_configured() {
    check(
        "[pools.a]\ncommand = \"x\"\nbind = \"port\"\nport = 3000\nenv = { PORT = 1, HOSTLER_POOL = \"a\", \"A=B\" = 1 }\n",
        expect![[r#"
            hostler.toml:4:8: pools.a.port: not allowed with bind = "port": each worker gets its port in PORT
            hostler.toml:5:16: pools.a.env.PORT: Hostler sets this variable itself
            hostler.toml:5:34: pools.a.env.HOSTLER_POOL: Hostler sets this variable itself
            hostler.toml:5:47: pools.a.env.A=B: "A=B" is not a valid name of a variable"#]],
    );
}

#[test]
fn folders_must_exist() {
    check(
        "server.temp_dir = \"tmp\"\n[pools.a]\ncommand = \"x\"\ncwd = \"app\"\n",
        expect![[r#"
        hostler.toml:1:19: server.temp_dir: FOLDER/tmp does not exist
        hostler.toml:4:7: pools.a.cwd: FOLDER/app does not exist"#]],
    );
}

#[test]
fn two_listeners_on_one_address_are_refused() {
    check(
        "pools.a.command = \"x\"\n[server]\nlisten = [\":80\", \"127.0.0.1:80\", \"127.0.0.1:0\", \"127.0.0.1:0\"]\nadmin = \"0.0.0.0:80\"\n",
        expect![[r#"
            hostler.toml:3:18: server.listen[1]: 127.0.0.1:80 and [::]:80 overlap; each listener needs its own address
            hostler.toml:4:9: server.admin: 0.0.0.0:80 and [::]:80 in server.listen overlap; use another port
            hostler.toml:4:9: server.admin: other machines can reach 0.0.0.0:80, so it needs a token: write one into a file (openssl rand -hex 32 > admin.token; chmod 600 admin.token) and set server.admin_token_file to it, or set the variable HOSTLER_ADMIN_TOKEN; without a token use "127.0.0.1:8081" or "unix:/run/hostler/admin.sock""#]],
    );
    check(
        "pools.a.command = \"x\"\nserver.listen = []\n",
        expect![[r#"hostler.toml:2:17: server.listen: at least one address is needed, such as ":8080""#]],
    );
}

#[test]
fn settings_that_open_hostler_to_all_cause_a_warning() {
    check(
        "pools.a.command = \"x\"\n[server]\ntrusted_proxies = [\"10.0.0.0/8\", \"::/0\"]\n",
        expect![[r#"
            hostler.toml:3:34: server.trusted_proxies: ::/0 contains every address, so any client can claim any address"#]],
    );
}

#[test]
fn a_pool_name_has_only_letters_digits_hyphens_and_underscores() {
    check(
        "pools.\"a b\".command = \"x\"\n",
        expect![[
            r#"hostler.toml:1:7: "a b" is not a valid name of a pool; use letters, digits, "-" and "_""#
        ]],
    );
}

#[test]
fn announcing_needs_nats_and_a_reachable_address() {
    check(
        "[pools.a]\ncommand = \"x\"\nannounce = \"a.test\"\n",
        expect![[r#"hostler.toml:3:12: pools.a.announce: needs [registrar] with nats = ["nats://..."]"#]],
    );
    check(
        "registrar = { nats = \"nats://a\", accept = true }\n[server]\nlisten = \":8080\"\n[pools.a]\ncommand = \"x\"\nannounce = \"a.test\"\n",
        expect![[r#"
            hostler.toml:1:43: registrar.accept: not allowed with announce: Hostler would get its own registrations, and send requests to itself
            hostler.toml:6:12: pools.a.announce: [::]:8080 is every address of the machine, and others need one address to connect to; set registrar.advertise = "10.0.0.5:8080""#]],
    );
    check(
        "[registrar]\nnats = \"nats://a\"\nadvertise = \"unix:a.sock\"\n[pools.a]\ncommand = \"x\"\nannounce = [\"a.test\", \"/x\"]\n",
        expect![[r#"
            hostler.toml:3:13: registrar.advertise: other machines cannot connect to a Unix socket; write a host and a port
            hostler.toml:6:23: pools.a.announce[1]: "/x" has no host; write for example "shop.example.com/cart""#]],
    );
    check(
        "registrar.nats = \"nats://a\"\n[pools.a]\ncommand = \"x\"\nannounce = \"a.test\"\n[pools.b]\ncommand = \"x\"\nannounce = [\"b.test\", \"A.test/\"]\n",
        expect![[r#"
            hostler.toml: there are several pools and no [[routes]]; add routes that say which requests go to which pool (pools: a, b)
            hostler.toml:7:23: pools.b.announce[1]: another pool announces "a.test", too"#]],
    );
}

#[test]
fn keys_of_health_checks_and_ejection_must_be_consistent() {
    check(
        "[pools.web]\nmembers = [\"a:1\"]\n[pools.web.health_check]\ninterval = \"1s\"\n[pools.web.ejection]\ntime = \"1m\"\nmax_time = \"10s\"\n",
        expect![[r#"
            hostler.toml:3:1: pools.web.health_check: path is missing; write for example path = "/healthz"
            hostler.toml:7:12: pools.web.ejection.max_time: is shorter than time (1m)"#]],
    );
    check(
        "[pools.web]\ncommand = \"x\"\n[pools.web.health_check]\npath = \"/\"\n[pools.web.ejection]\ntimeouts = 1\n",
        expect![[r#"
            hostler.toml:3:12: pools.web.health_check: not allowed for workers: Hostler watches them itself; for the path that shows when they are ready, use health
            hostler.toml:5:12: pools.web.ejection: not allowed for workers: Hostler replaces a worker that hangs, after hang_timeout"#]],
    );
    check(
        "[pools.web]\nmembers = [\"a:1\"]\nhealth_check = { path = \"/\", status = \"2xx\" }\n",
        expect![[
            r#"hostler.toml:3:39: pools.web.health_check.status: "2xx" is not a status from 200 to 599, such as "200" or "200-399""#
        ]],
    );
}

#[test]
fn a_member_with_hostlers_own_address_causes_a_warning() {
    let text = "server = { listen = [\":8080\"], admin = \"127.0.0.1:8081\" }\n\
        pools.web.members = [\"127.0.0.1:8080\", \"localhost:8081\", \"https://127.0.0.1:8080\", \"127.0.0.1:9\", \"192.0.2.1:8080\"]\n";
    let warnings = site(text).config().warnings;
    expect![[r#"
        hostler.toml:2:22: pools.web.members[0]: 127.0.0.1:8080 is an address of this Hostler; its requests would come back to this Hostler
        hostler.toml:2:40: pools.web.members[1]: localhost:8081 is an address of this Hostler; it is server.admin, so clients could read the status and send commands
        hostler.toml:2:58: pools.web.members[2]: https://127.0.0.1:8080 is an address of this Hostler; its requests would come back to this Hostler"#]].assert_eq(&warnings.join("\n"));
}

#[test]
fn the_compile_cache_is_a_word_or_a_folder() {
    check(
        "[pools.web]\ncommand = \"x\"\ncompile_cache = \"\"\n[pools.b]\nmembers = [\"a:1\"]\ncompile_cache = \"off\"\n",
        expect![[r#"
            hostler.toml: there are several pools and no [[routes]]; add routes that say which requests go to which pool (pools: b, web)
            hostler.toml:3:17: pools.web.compile_cache: must be "auto", "off" or a folder
            hostler.toml:6:1: pools.b.compile_cache: not allowed for members, because Hostler does not start them"#]],
    );
}

#[test]
fn a_range_of_workers_must_be_one() {
    let about = |workers: &str| format!("[pools.web]\ncommand = \"x\"\nworkers = {workers}\n");
    check(
        &about("{ min = 5, max = 4 }"),
        expect!["hostler.toml:3:19: pools.web.workers.min: is greater than max, which is 4"],
    );
    check(
        &about("0"),
        expect![[
            r#"hostler.toml:3:11: pools.web.workers: 0 is out of range; it must be from 1 to 1024, or "auto""#
        ]],
    );
    check(
        &about("{ min = 0 }\nqueue.limit = 0"),
        expect![
            "hostler.toml:4:15: pools.web.queue.limit: 0 is not allowed with workers = { min = 0 }: the request that wakes the app waits for its worker"
        ],
    );
    check(
        &about("{ min = 0, most = 4 }"),
        expect![[
            r#"hostler.toml:3:22: unknown key "pools.web.workers.most"; the keys of this table are min, max"#
        ]],
    );
    check(
        &about("\"many\""),
        expect![[
            r#"hostler.toml:3:11: pools.web.workers: "many" is not "auto" or a whole number from 1 to 1024 or a table such as { min = 0, max = 4 }"#
        ]],
    );
}
