//! What right configurations mean.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use expect_test::{expect, expect_file};
use hostler_worker::{Recycling, Slots};

use super::{site, workers};
use crate::file::File;
use crate::reference::EXAMPLE;
use crate::{
    Endpoint, FairBy, Fallback, HostPattern, LoadedFile, LowIf, MatchPattern, PathPattern, Poison, Policy,
    PoolMembers, Priority, Target,
};

#[test]
fn defaults_are_those_of_the_reference() {
    let site = site("pools.web.command = \"node server.js\"");
    let text = format!("{:#?}", site.config());
    expect_file!["defaults.txt"].assert_eq(&super::hide(&text, &site.folder()));
}

#[test]
fn sizes_are_exact() {
    for (written, bytes) in [
        ("\"64KiB\"", 65_536),
        ("\"1 MiB\"", 1_048_576),
        ("\"10 MB\"", 10_000_000),
        ("\"1.5 MiB\"", 1_572_864),
        ("\"100 kb\"", 100_000),
        ("\"9000\"", 9_000),
        ("\"4097 B\"", 4_097),
        ("4_097", 4_097),
    ] {
        let config = site(&format!("pools.web.command = \"x\"\nserver.answer_buffer = {written}\n")).config();
        assert_eq!(config.server.answer_buffer, bytes, "{written}");
    }
}

#[test]
fn durations_are_exact() {
    for (written, milliseconds) in
        [("5s", 5_000), ("250ms", 250), ("1m 30s", 90_000), ("2h", 7_200_000), ("1.5s", 1_500)]
    {
        let config =
            site(&format!("pools.web.command = \"x\"\nserver.idle_timeout = \"{written}\"\n")).config();
        assert_eq!(config.server.idle_timeout, Duration::from_millis(milliseconds), "{written}");
    }
}

#[test]
fn commands_are_split_like_a_shell_does_and_never_expanded() {
    for (written, words) in [
        (r#""node server.js""#, vec!["node", "server.js"]),
        (r#""npx next start -p 3000""#, vec!["npx", "next", "start", "-p", "3000"]),
        (r#"'node "my app.js" "$HOME" *.js'"#, vec!["node", "my app.js", "$HOME", "*.js"]),
        (r#"["node", "my app.js"]"#, vec!["node", "my app.js"]),
    ] {
        let config = site(&format!("pools.web.command = {written}\n")).config();
        assert_eq!(workers(&config).command, words, "{written}");
    }
}

#[test]
fn patterns_mean_host_and_path() {
    let exact = |host: &str| Some(HostPattern::Exact(host.into()));
    let prefix = |path: &str| PathPattern::Prefix(path.into());
    for (written, host, path, shown) in [
        ("*", None, prefix(""), "*"),
        ("/*", None, prefix(""), "*"),
        ("/", None, PathPattern::Exact("/".into()), "/"),
        ("/ping", None, PathPattern::Exact("/ping".into()), "/ping"),
        ("/a/b/*", None, prefix("/a/b"), "/a/b/*"),
        ("Example.com", exact("example.com"), prefix(""), "example.com"),
        ("example.com./", exact("example.com"), PathPattern::Exact("/".into()), "example.com/"),
        (
            "*.example.com/x/*",
            Some(HostPattern::Below("example.com".into())),
            prefix("/x"),
            "*.example.com/x/*",
        ),
        ("[::0001]/x", exact("[::1]"), PathPattern::Exact("/x".into()), "[::1]/x"),
        ("/caf\u{e9} 1", None, PathPattern::Exact("/caf\u{e9} 1".into()), "/caf%C3%A9%201"),
        ("/caf%c3%A9/*", None, prefix("/caf\u{e9}"), "/caf%C3%A9/*"),
        ("/%2A%2525", None, PathPattern::Exact("/*%25".into()), "/%2A%2525"),
        ("10.0.0.1/x", exact("10.0.0.1"), PathPattern::Exact("/x".into()), "10.0.0.1/x"),
    ] {
        let pattern: MatchPattern = written.parse().unwrap();
        assert_eq!(pattern, MatchPattern { host, path }, "{written}");
        assert_eq!(pattern.to_string(), shown);
        assert_eq!(shown.parse(), Ok(pattern), "{written}: what is shown means the same");
    }
}

#[test]
fn addresses_are_resolved() {
    let config = site(
        "pools.web.command = \"x\"\n[server]\nlisten = [\"localhost:1\", \":2\", \"[::1]:3\", \"127.0.0.1:4\"]\nadmin = \"off\"\n",
    )
    .config();
    let shown: Vec<_> = config.server.listen.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["127.0.0.1:1", "[::]:2", "[::1]:3", "127.0.0.1:4"]);
    assert_eq!(config.server.admin, None);
}

#[test]
fn trusted_networks_are_compared_as_ipv4_where_they_are() {
    let config = site(
        "pools.web.command = \"x\"\nserver.trusted_proxies = [\"10.0.0.7\", \"::ffff:10.1.0.0/112\", \"::ffff:1.2.3.4\", \"2001:db8::/32\"]\n",
    )
    .config();
    let shown: Vec<_> = config.server.trusted_proxies.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["10.0.0.7/32", "10.1.0.0/16", "1.2.3.4/32", "2001:db8::/32"]);
}

#[test]
fn trusted_hops_is_off_by_default() {
    let hops =
        |written: &str| site(&format!("pools.web.command = \"x\"\n{written}\n")).config().server.trusted_hops;
    assert_eq!((hops(""), hops("server.trusted_hops = 0")), (None, None));
    assert_eq!(hops("server.trusted_hops = 2").map(NonZeroUsize::get), Some(2));
}

#[test]
fn members_are_endpoints_with_more_slots() {
    let site =
        site("pools.web.members = [\"10.0.0.5:3000\", \"[::1]:3000\", \"app:80\", \"unix:run/app.sock\"]\n");
    let config = site.config();
    let PoolMembers::Members(members) = &config.pools[0].source else { panic!("not members") };
    let members = &members.endpoints;
    let shown: Vec<_> =
        members.iter().map(|member| super::hide(&member.to_string(), &site.folder())).collect();
    assert_eq!(shown, ["10.0.0.5:3000", "[::1]:3000", "app:80", "unix:FOLDER/run/app.sock"]);
    assert_eq!(members[1], Endpoint::Tcp { host: "::1".into(), port: 3000 });
    assert_eq!(config.pools[0].slots(), Slots::Fixed(64));
}

#[test]
fn a_route_overrides_the_limits_of_server_and_pool() {
    let config = site(
        "[server]\nmax_body_size = \"1 MiB\"\n[pools.web]\ncommand = \"x\"\nrequest_timeout = \"7s\"\n[[routes]]\nmatch = \"/a\"\npool = \"web\"\n[[routes]]\nmatch = \"/b\"\npool = \"web\"\nmax_body_size = \"2 MiB\"\nrequest_timeout = \"40s\"\n",
    )
    .config();
    let target = |seconds| Target::Pool { name: "web".into(), request_timeout: Duration::from_secs(seconds) };
    assert_eq!((&config.routes[0].target, config.routes[0].max_body_size), (&target(7), 1 << 20));
    assert_eq!((&config.routes[1].target, config.routes[1].max_body_size), (&target(40), 2 << 20));
    assert_eq!(workers(&config).hang_timeout, Duration::from_secs(80), "twice the longest");
}

#[test]
fn slots_are_a_number_or_auto() {
    let concurrency = |site: super::Site| site.flag("pools.web.command", "x").config().pools[0].slots();
    assert_eq!(concurrency(site("")), Slots::Auto { most: 1_000 });
    assert_eq!(concurrency(site("pools.web.concurrency = 4")), Slots::Fixed(4));
    assert_eq!(concurrency(site("pools.web.concurrency = \"auto\"")), Slots::Auto { most: 1_000 });
    assert_eq!(concurrency(site("pools.web.max_concurrency = 50")), Slots::Auto { most: 50 });
    assert_eq!(concurrency(site("").flag("pools.web.concurrency", "1024")), Slots::Fixed(1024));
    assert_eq!(concurrency(site("").flag("pools.web.concurrency", "auto")), Slots::Auto { most: 1_000 });
    assert_eq!(
        concurrency(site("pools.web.workers = 1").variable("HOSTLER_POOLS_WEB_CONCURRENCY", "8")),
        Slots::Fixed(8)
    );
}

#[test]
fn a_pool_has_its_own_overload_poison_and_recycling_settings() {
    let config = site(
        "server.upgrade_timeout = \"5m\"\n[pools.web]\ncommand = \"x\"\nmax_requests = 10_000\nmax_age = \"12h\"\nmax_memory = \"512 MiB\"\ngc = \"idle\"\nqueue.policy = \"fifo\"\npoison = { kills = 0, keep_off = \"5m\" }\n",
    )
    .config();
    assert_eq!(config.server.upgrade_timeout, Duration::from_secs(300));
    let pool = &config.pools[0];
    assert_eq!(pool.queue.policy, Policy::Fifo);
    assert_eq!(pool.poison, Poison { kills: 0, keep_off: Duration::from_secs(300) });
    let Recycling { max_requests, max_age, max_memory } = workers(&config).recycling;
    assert_eq!((max_requests, max_age), (Some(10_000), Some(Duration::from_secs(12 * 3600))));
    assert_eq!((max_memory, workers(&config).collect_when_idle), (Some(512 << 20), true));
}

#[test]
fn a_fallback_is_read_when_the_file_is_loaded() {
    let site = site(
        "pools.web.command = \"x\"\n[[routes]]\nmatch = \"*\"\npool = \"web\"\npriority = \"low\"\nfallback = \"pages/shell.html\"\n",
    );
    let path = site.folder().join("pages/shell.html");
    std::fs::create_dir(site.folder().join("pages")).unwrap();
    std::fs::write(&path, "<p>one").unwrap();
    let first = site.config();
    std::fs::write(&path, "<p>two").unwrap();
    let second = site.config();
    assert_ne!(first, second, "a reload sees that the file has changed");
    let route = &first.routes[0];
    assert_eq!(route.priority, Priority::Low);
    let content_type = "text/html; charset=utf-8".into();
    let file = LoadedFile { path, content_type, body: b"<p>one"[..].into() };
    assert_eq!(route.fallback, Some(Fallback::File(file.into())));
}

#[test]
fn the_extension_of_a_fallback_sets_its_content_type() {
    for (name, contents, content_type) in [
        ("a.html", &b"<p>\xc3\xa9"[..], "text/html; charset=utf-8"),
        ("a.htm", b"<p>\xe9", "text/html"),
        ("a.TXT", b"x", "text/plain; charset=utf-8"),
        ("a.json", b"{}", "application/json"),
        ("a.svg", b"<svg/>", "image/svg+xml"),
    ] {
        let site = site(&format!(
            "pools.web.command = \"x\"\n[[routes]]\nmatch = \"*\"\npool = \"web\"\nfallback = \"{name}\"\n"
        ));
        std::fs::write(site.folder().join(name), contents).unwrap();
        let Some(Fallback::File(file)) = site.config().routes[0].fallback.clone() else { panic!("{name}") };
        assert_eq!(file.content_type, content_type, "{name}");
    }
}

#[test]
fn fallback_hypernova_names_no_file() {
    let text = "pools.web.command = \"x\"\n[[routes]]\nmatch = \"/batch\"\npool = \"web\"\nfallback = \"hypernova\"\n";
    let site = site(text);
    std::fs::write(site.folder().join("hypernova"), "<p>").unwrap();
    assert_eq!(site.config().routes[0].fallback, Some(Fallback::Hypernova));
}

#[test]
fn a_short_answer_is_plain_text_with_status_200() {
    let config = site(
        "[[routes]]\nmatch = \"/ping\"\nrespond = \"PONG\\n\"\n[[routes]]\nmatch = \"/gone\"\nrespond = { status = 410, headers = { content-type = \"text/html\" }, body = \"<p>\" }\n",
    )
    .config();
    let expected = expect![[r#"
        [
            Respond(
                Respond {
                    status: 200,
                    headers: {
                        "content-type": "text/plain; charset=utf-8",
                    },
                    body: Text(
                        "PONG\n",
                    ),
                },
            ),
            Respond(
                Respond {
                    status: 410,
                    headers: {
                        "content-type": "text/html",
                    },
                    body: Text(
                        "<p>",
                    ),
                },
            ),
        ]"#]];
    expected
        .assert_eq(&format!("{:#?}", config.routes.iter().map(|route| &route.target).collect::<Vec<_>>()));
}

#[test]
fn the_extension_of_an_answers_file_sets_its_content_type_unless_configured() {
    let site = site(
        "[[routes]]\nmatch = \"/\"\nrespond = { file = \"front.html\" }\n[[routes]]\nmatch = \"/soon\"\nrespond = { status = 503, file = \"front.html\", headers = { Content-Type = \"text/plain\" } }\n",
    );
    std::fs::write(site.folder().join("front.html"), "<p>one").unwrap();
    let first = site.config();
    let answers = first.routes.iter().map(|route| match &route.target {
        Target::Respond(respond) => {
            let kind = respond.headers["content-type"].to_str().unwrap();
            (respond.status.as_u16(), kind, respond.body.bytes())
        }
        other => panic!("{other:?}"),
    });
    let answers = answers.collect::<Vec<_>>();
    assert_eq!(
        answers,
        [(200, "text/html; charset=utf-8", b"<p>one"[..].into()), (503, "text/plain", b"<p>one"[..].into())]
    );
    std::fs::write(site.folder().join("front.html"), "<p>two").unwrap();
    assert_ne!(first, site.config(), "a reload sees that the file has changed");
}

#[test]
fn relative_folders_are_relative_to_the_configuration_file() {
    let mut site = site("");
    std::fs::create_dir_all(site.folder().join("conf/app")).unwrap();
    std::fs::write(site.folder().join("conf/x.toml"), "pools.web = { command = \"x\", cwd = \"app\" }")
        .unwrap();
    site.invocation.file = Some(PathBuf::from("conf/x.toml"));
    assert_eq!(workers(&site.config()).cwd, site.folder().join("conf/app"));
}

#[test]
fn a_parsed_file_can_be_serialized_again() {
    let example: File = toml::from_str(EXAMPLE).unwrap();
    let written = toml::to_string(&example).unwrap();
    assert_eq!(toml::from_str::<File>(&written).unwrap(), example, "{written}");
}

#[test]
fn a_routes_compression_settings_override_those_of_the_server() {
    let routes = [
        ("", Some(500)),
        ("compress = true", Some(500)),
        ("compress = false", None),
        ("compress = { min_size = 7 }", Some(7)),
    ];
    let mut text = "[pools.web]\ncommand = \"x\"\n[server]\ncompress = { min_size = 500 }\n".to_owned();
    for (index, (compress, _)) in routes.iter().enumerate() {
        text.push_str(&format!("[[routes]]\nmatch = \"/{index}\"\npool = \"web\"\n{compress}\n"));
    }
    let config = site(&text).config();
    for ((compress, expected), route) in routes.iter().zip(&config.routes) {
        assert_eq!(route.compress.as_ref().map(|plan| plan.min_size), *expected, "{compress}");
    }
    let config = site("[pools.web]\ncommand = \"x\"\n").variable("HOSTLER_SERVER_COMPRESS", "true").config();
    assert_eq!(config.routes[0].compress.as_ref().map(|plan| plan.min_size), Some(1024));
}

#[test]
fn workers_are_a_number_or_a_range() {
    for (written, least, count, may_sleep) in [
        ("\"auto\"", None, 3, false),
        ("2", None, 2, false),
        ("{ min = 0 }", Some(0), 3, true),
        ("{ max = 8 }", Some(1), 8, false),
        ("{ min = 0, max = 4 }", Some(0), 4, true),
        ("{ min = 4, max = 4 }", None, 4, false),
    ] {
        let config = site(&format!("pools.web.command = \"x\"\npools.web.workers = {written}\n")).config();
        let settings = workers(&config);
        assert_eq!((settings.least, settings.count), (least, count), "{written}");
        assert_eq!(!config.pools[0].wake_timeout.is_zero(), may_sleep, "{written}");
    }
}

#[test]
fn requests_of_low_priority_are_one_kind_or_a_list_of_them() {
    let low = |written: &str| {
        site(&format!("[pools.web]\ncommand = \"x\"\nqueue.low = {written}\n")).config().pools[0]
            .queue
            .low
            .clone()
    };
    assert_eq!(low("\"prefetch\""), [LowIf::Prefetch]);
    let header = |value: Option<&str>| LowIf::Header("X-Plan".into(), value.map(Into::into));
    let list = low("[\"crawler\", \"header:X-Plan\", \"header:X-Plan=a=b\"]");
    assert_eq!(list, [LowIf::Crawler, header(None), header(Some("a=b"))]);
    site("[pools.web]\ncommand = \"x\"\nqueue.low = [\"bots\"]\n[[routes]]\nmatch = \"*\"\nrespond = \"\"\n")
        .says(expect![[r#"hostler.toml:3:14: pools.web.queue.low[0]: "bots" is not "prefetch", "crawler", "header:NAME" or "header:NAME=VALUE""#]]);
}

#[test]
fn a_fair_queue_has_one_key_or_a_list_of_them() {
    let fair = |written: &str| {
        site(&format!("[pools.web]\ncommand = \"x\"\nqueue.fair = {written}\n")).config().pools[0]
            .queue
            .fair
            .clone()
    };
    assert_eq!(fair("\"client\""), [FairBy::Client]);
    let list = fair("[\"crawler\", \"header:X-Api-Key\", \"cookie:session\"]");
    let (header, cookie) = (FairBy::Header("X-Api-Key".into()), FairBy::Cookie("session".into()));
    assert_eq!(list, [FairBy::Crawler, header, cookie]);
    site("[pools.web]\ncommand = \"x\"\nqueue.fair = [\"client\", \"header:\"]\n[[routes]]\nmatch = \"*\"\nrespond = \"\"\n").says(expect![[r#"hostler.toml:3:25: pools.web.queue.fair[1]: "header:" is not "client", "crawler", "header:NAME" or "cookie:NAME""#]]);
}

#[test]
fn short_requests_come_first_only_if_the_file_says_so_and_not_beside_a_fair_queue() {
    let queue = |written: &str| {
        format!(
            "[pools.web]\ncommand = \"x\"\n[pools.web.queue]\n{written}\n[[routes]]\nmatch = \"*\"\nrespond = \"\"\n"
        )
    };
    let delay = |written: &str| site(&queue(written)).config().pools[0].queue.short_first;
    assert_eq!(delay("order = \"arrival\""), None);
    assert_eq!(delay("order = \"short_first\""), Some(Duration::from_millis(500)));
    assert_eq!(delay("order = \"short_first\"\nmax_delay = \"2s\""), Some(Duration::from_secs(2)));
    site(&queue("order = \"short_first\"\nfair = \"client\"")).says(expect![[r#"hostler.toml:4:9: pools.web.queue.order: "short_first" is not allowed with fair, which decides the order by key"#]]);
    site(&queue("order = \"short_first\"\nmax_delay = \"5s\"")).says(expect![[
        r#"hostler.toml:5:13: pools.web.queue.max_delay: is not shorter than timeout, which is 5s"#
    ]]);
    site(&queue("order = \"short_first\"\ntimeout = \"400ms\"")).says(expect![[
        r#"hostler.toml:5:11: pools.web.queue.timeout: is not longer than max_delay, which is 500ms by default; write a shorter max_delay, too"#
    ]]);
    site(&queue("max_delay = \"1s\"")).says(expect![[
        r#"hostler.toml:4:13: pools.web.queue.max_delay: is for order = "short_first" only"#
    ]]);
}
