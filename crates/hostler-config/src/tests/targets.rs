//! Routes to files and elsewhere, and what they change: what they mean, and every mistake with the line that tells it.

use expect_test::{Expect, expect};
use hostler_testkit::mmdb;

use super::{Site, site};
use crate::{EarlyHintLinks, HeaderChange, HostPattern, MatchPattern, PathPattern, Piece, Rewrite, Target};

/// A folder with a `public/index.html` and a `places.mmdb`.
fn with_files(text: &str) -> Site {
    let site = site(text);
    std::fs::create_dir_all(site.folder().join("public/docs")).unwrap();
    std::fs::write(site.folder().join("public/index.html"), "<p>").unwrap();
    mmdb("City").flat("81.2.69.0/24", "London", "GB", (51.5, -0.1)).write(&site.folder(), "places.mmdb");
    site
}

fn check(text: &str, expected: Expect) {
    with_files(text).says(expected);
}

#[test]
fn files_are_a_folder_or_a_table() {
    let site = with_files(
        "[[routes]]\nmatch = \"*\"\nstatic = \"public\"\n[[routes]]\nmatch = \"/docs/*\"\nstatic = { dir = \"public\", index = \"\", fallback = \"index.html\", immutable = [\"/a/*\", \"/b.js\"], precompressed = true }\n",
    );
    let config = site.config();
    assert_eq!(config.warnings, [""; 0]);
    let files: Vec<_> = config
        .routes
        .iter()
        .map(|route| match &route.target {
            Target::Static(files) => files,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(files[0].dir, site.folder().join("public"));
    assert_eq!((files[0].index.as_deref(), &*files[0].cache_control), (Some("index.html"), "no-cache"));
    assert_eq!((files[1].index.as_deref(), files[1].precompressed), (None, true));
    assert_eq!(files[1].immutable, [PathPattern::Prefix("/a".into()), PathPattern::Exact("/b.js".into())]);
    for (file, immutable) in [("a/x", true), ("a", true), ("ab", false), ("b.js", true), ("b.js/x", false)] {
        assert_eq!(files[1].is_immutable(file.as_ref()), immutable, "{file}");
    }
}

#[test]
fn a_folder_whose_files_are_on_no_local_disk_is_told_from_others() {
    let site = with_files("[[routes]]\nmatch = \"*\"\nstatic = \"/proc\"\n");
    assert!(matches!(&site.config().routes[0].target, Target::Static(files) if !files.is_local));
}

#[test]
fn geo_headers_needs_geo_data() {
    let route = |target: &str| {
        format!("pools.app.members = [\"a:1\"]\n[[routes]]\nmatch = \"*\"\n{target}\ngeo_headers = true\n")
    };
    check(
        &route("pool = \"app\""),
        expect!["hostler.toml:5:15: routes[0].geo_headers: needs data; add [geo] with databases"],
    );
    let geo = "[geo]\ndatabases = \"places.mmdb\"\n";
    check(
        &format!("{}{geo}", route("static = \"public\"")),
        expect!["hostler.toml:5:15: routes[0].geo_headers: cannot be set together with static"],
    );
    let config = with_files(&format!("{}{geo}", route("pool = \"app\"\nstatic = \"public\""))).config();
    assert_eq!((config.routes[0].changes.geo_headers, config.warnings), (true, vec![]));
}

#[test]
fn a_path_without_its_first_slash_causes_a_warning() {
    let routes = |patterns: &[&str]| -> String {
        let route = |pattern: &&str| format!("[[routes]]\nmatch = \"{pattern}\"\nrespond = \"\"\n");
        patterns.iter().map(route).collect()
    };
    check(
        &routes(&["api/*", "api/users/*", "/api/*"]),
        expect![[r#"
            hostler.toml:2:9: routes[0].match: matches the host "api" only; for this path on every host write "/api/*", for the host write "api./*"
            hostler.toml:5:9: routes[1].match: matches the host "api" only; for this path on every host write "/api/users/*", for the host write "api./users/*""#]],
    );
    check(
        &routes(&["api", "Localhost/*", "[::1]/x", "example.com/*", "*.example.com/*", "web./x"]),
        expect![""],
    );
    let pattern: MatchPattern = "api./*".parse().unwrap();
    assert_eq!(pattern.host, Some(HostPattern::Exact("api".into())));
}

#[test]
fn a_placeholder_in_a_path_causes_a_warning() {
    let route = |pattern: &str| format!("[[routes]]\nmatch = \"{pattern}\"\nrespond = \"\"\n");
    let routes = |patterns: &[&str]| patterns.iter().map(|pattern| route(pattern)).collect::<String>();
    check(
        &routes(&["/users/:id", "a.test/teams/{team}/*"]),
        expect![[r#"
            hostler.toml:2:9: routes[0].match: ":id" matches this text alone, because match has no placeholders; for all paths below "/users/" write "/users/*"
            hostler.toml:5:9: routes[1].match: "{team}" matches this text alone, because match has no placeholders; for all paths below "/teams/" write "a.test/teams/*""#]],
    );
    check(&routes(&["/v1/users:search", "/at/12:30", "/:", "/{}/x"]), expect![""]);
}

#[test]
fn a_path_that_looks_like_a_folder_and_matches_alone_causes_a_warning() {
    let routes = |pairs: &[(&str, &str)]| -> String {
        let route =
            |(pattern, target): &(&str, &str)| format!("[[routes]]\nmatch = \"{pattern}\"\n{target}\n");
        let pools = "pools.app.members = [\"a:1\"]\npools.api.members = [\"a:2\"]\n";
        pairs.iter().map(route).fold(pools.into(), |text, route| text + &route)
    };
    let (app, api) = ("pool = \"app\"", "pool = \"api\"");
    check(
        &routes(&[("/", app), ("/api/", api)]),
        expect![[r#"
            hostler.toml:4:9: routes[0].match: matches the path "/" alone; for the paths below it, too, write "/*"
            hostler.toml:7:9: routes[1].match: matches the path "/api/" alone; for the paths below it, too, write "/api/*""#]],
    );
    check(
        &routes(&[("a.test/", app), ("b.test", app), ("/x/", api), ("*", api), ("c.test/y/", app)]),
        expect![[
            r#"hostler.toml:16:9: routes[4].match: matches the path "/y/" alone; for the paths below it, too, write "c.test/y/*""#
        ]],
    );
    check(
        &routes(&[("/", app), ("*", api), ("/news/", api), ("/old/", "redirect = \"/new\""), ("/a", app)]),
        expect![""],
    );
    check(&routes(&[("*", app), ("/api/", app), ("/api/*", api), ("c.test/api/", app)]), expect![""]);
}

#[test]
fn missing_folders_and_files_are_reported() {
    check(
        "[[routes]]\nmatch = \"/a\"\nstatic = \"dist\"\n[[routes]]\nmatch = \"/b\"\nstatic = { dir = \"public\", index = \"a/b\", fallback = \"app.html\", not_found = \"../hostler.toml\", cache_control = \"a\\nb\", immutable = [\"assets\", \"a.com/b\", \"/x?y\"] }\n[[routes]]\nmatch = \"/c\"\nstatic = { index = \"\" }\n[[routes]]\nmatch = \"/d\"\nstatic = 5\n",
        expect![[r#"
            hostler.toml:3:10: routes[0].static: FOLDER/dist does not exist
            hostler.toml:6:36: routes[1].static.index: is not the name of a file, such as "index.html"
            hostler.toml:6:54: routes[1].static.fallback: FOLDER/public/app.html does not exist
            hostler.toml:6:78: routes[1].static.not_found: FOLDER/public/../hostler.toml is not a file in dir
            hostler.toml:6:113: routes[1].static.cache_control: is not a valid value of a header field
            hostler.toml:6:134: routes[1].static.immutable[0]: "assets" is not a path in dir, such as "/assets/*"
            hostler.toml:6:144: routes[1].static.immutable[1]: "a.com/b" is not a path in dir, such as "/assets/*"
            hostler.toml:6:155: routes[1].static.immutable[2]: the path "/x?y" contains '?'; a route matches the path only, not the query
            hostler.toml:9:10: routes[2].static: dir is missing; write for example dir = "public"
            hostler.toml:12:10: routes[3].static: invalid type: integer `5`, expected a string or a table"#]],
    );
}

#[test]
fn a_root_that_looks_like_an_alias_causes_a_warning() {
    check("[[routes]]\nmatch = \"/docs/*\"\nstatic = \"public\"\n", expect![""]);
    check(
        "[[routes]]\nmatch = \"/files/*\"\nstatic = \"public\"\n",
        expect![[
            r#"hostler.toml:3:10: routes[0].static: Hostler looks for /files/x at FOLDER/public/files/x, and that folder does not exist; rewrite = { strip_prefix = "/files" } removes the prefix"#
        ]],
    );
    check(
        "[[routes]]\nmatch = \"/files/*\"\nstatic = \"public\"\nrewrite = { strip_prefix = \"/files\" }\n",
        expect![""],
    );
}

#[test]
fn keys_for_pools_are_refused_beside_files_and_redirects() {
    check(
        "[[routes]]\nmatch = \"/a\"\nstatic = \"public\"\nbuffer = \"none\"\nfallback = \"public/index.html\"\nrequest_headers = { remove = [\"Cookie\"] }\nresponse_headers = { set = { A = \"b\" } }\n[[routes]]\nmatch = \"/b\"\nredirect = \"/c\"\nrewrite = { add_prefix = \"/d\" }\npriority = \"low\"\n",
        expect![[r#"
            hostler.toml:4:10: routes[0].buffer: cannot be set together with static
            hostler.toml:5:12: routes[0].fallback: cannot be set together with static; write static = { dir = ..., fallback = ... }
            hostler.toml:6:19: routes[0].request_headers: cannot be set together with static
            hostler.toml:11:11: routes[1].rewrite: cannot be set together with redirect
            hostler.toml:12:12: routes[1].priority: cannot be set together with redirect"#]],
    );
}

#[test]
fn files_may_precede_a_pool_and_no_other_target() {
    let pool = "pools.app.members = [\"a:1\"]\n";
    let config =
        with_files(&format!("{pool}[[routes]]\nmatch = \"*\"\npool = \"app\"\nstatic = \"public\"\n"))
            .config();
    assert!(matches!(&config.routes[0].target, Target::Pool { name, .. } if name == "app"));
    assert!(config.routes[0].files_first.is_some());
    check(
        &format!(
            "{pool}[[routes]]\nmatch = \"/a\"\npool = \"app\"\nstatic = {{ dir = \"public\", fallback = \"index.html\" }}\n[[routes]]\nmatch = \"/b\"\npool = \"app\"\nstatic = \"public\"\nrespond = \"x\"\n[[routes]]\nmatch = \"/c\"\nstatic = \"public\"\nrespond = \"x\"\n"
        ),
        expect![[r#"
            hostler.toml:5:39: routes[0].static.fallback: cannot be set together with pool: requests for which there is no file go to the pool
            hostler.toml:10:11: routes[1].respond: a route has exactly one target: pool, static, redirect, respond, geo or postal (or pool and static, or geo and postal)
            hostler.toml:14:11: routes[2].respond: a route has exactly one target: pool, static, redirect, respond, geo or postal (or pool and static, or geo and postal)"#]],
    );
}

#[test]
fn a_redirect_is_a_url_with_placeholders() {
    let config = site(
        "[[routes]]\nmatch = \"/old/*\"\nredirect = { to = \"https://{host}/new/{rest}\", status = 301 }\n",
    )
    .config();
    let Target::Redirect(redirect) = &config.routes[0].target else { panic!("{:?}", config.routes[0]) };
    assert_eq!((redirect.status.as_u16(), &*redirect.prefix), (301, "/old"));
    assert_eq!(redirect.to[1..], [Piece::Host, Piece::Text("/new/".into()), Piece::Rest]);
    assert_eq!(redirect.to_string(), "301 to https://{host}/new/{rest}");
}

#[test]
fn a_redirect_with_a_bad_url_is_reported() {
    check(
        "[[routes]]\nmatch = \"/a\"\nredirect = \"example.com\"\n[[routes]]\nmatch = \"/b/*\"\nredirect = \"https://example.com{rest}\"\n[[routes]]\nmatch = \"/c\"\nredirect = { to = \"/x/{rest}\", status = 304 }\n[[routes]]\nmatch = \"/d\"\nredirect = \"/x{pth}\"\n[[routes]]\nmatch = \"/e\"\nredirect = { status = 301 }\n[[routes]]\nmatch = \"/f\"\nredirect = \"/a b\"\n",
        expect![[r#"
            hostler.toml:3:12: routes[0].redirect: "example.com" is neither a URL (https://...) nor a path (/...)
            hostler.toml:6:12: routes[1].redirect: in "https://example.com{rest}" {rest} would be part of the host; write /{rest}
            hostler.toml:9:19: routes[2].redirect.to: {rest} has no value, because "/c" has no *
            hostler.toml:9:41: routes[2].redirect.status: 304 is not one of [301, 302, 303, 307, 308]
            hostler.toml:12:12: routes[3].redirect: unknown placeholder {pth}; did you mean {path}?
            hostler.toml:15:12: routes[4].redirect: to is missing; write for example to = "/new"
            hostler.toml:18:12: routes[5].redirect: "/a b" contains ' ', which must be percent-encoded (%XX) in a URL"#]],
    );
}

#[test]
fn strip_prefix_must_be_a_prefix_of_every_path_of_the_route() {
    let text = |rewrite: &str| {
        format!(
            "pools.app.members = [\"a:1\"]\n[[routes]]\nmatch = \"/caf\u{e9}/x/*\"\npool = \"app\"\nrewrite = {rewrite}\n"
        )
    };
    let meaning = |rewrite: &str| site(&text(rewrite)).config().routes[0].changes.rewrite.clone().unwrap();
    let expected = |strip: &str, add: &str| Rewrite { strip: strip.into(), add: add.into() };
    assert_eq!(meaning("{ strip_prefix = \"/caf%C3%A9/\" }"), expected("/caf\u{e9}", ""));
    assert_eq!(meaning("{ add_prefix = \"/a%20b/\" }"), expected("", "/a%20b"));
    for rewrite in [
        "{}",
        "{ strip_prefix = \"/other\" }",
        "{ strip_prefix = \"/ca\" }",
        "{ add_prefix = \"/a?b\" }",
        "{ strip_prefix = \"x\" }",
    ] {
        assert!(site(&text(rewrite)).load().is_err(), "{rewrite}");
    }
    check(
        &text("{ strip_prefix = \"/api\" }").replace("/caf\u{e9}/x/*", "*"),
        expect![[
            r#"hostler.toml:5:28: routes[0].rewrite.strip_prefix: not every path of "*" begins with /api"#
        ]],
    );
}

#[test]
fn header_changes_are_parsed_and_checked() {
    let config = site(
        "pools.app.members = [\"a:1\"]\n[[routes]]\nmatch = \"*\"\npool = \"app\"\nrequest_headers = { set = { Host = \"in\" }, remove = [\"cookie\"] }\nresponse_headers = { add = { Link = \"<a>\" }, default = { X-A = \"b\" } }\n",
    )
    .config();
    let changes = &config.routes[0].changes;
    assert_eq!(
        changes.request,
        [HeaderChange::Set("Host".into(), "in".into()), HeaderChange::Remove("cookie".into())]
    );
    assert_eq!(
        changes.answer,
        [HeaderChange::Add("Link".into(), "<a>".into()), HeaderChange::Default("X-A".into(), "b".into())]
    );
    check(
        "pools.app.members = [\"a:1\"]\n[[routes]]\nmatch = \"*\"\npool = \"app\"\n[routes.request_headers]\nset = { Content-Length = \"5\", X-Forwarded-For = \"me\", \"a b\" = \"c\" }\nadd = { Host = \"x\" }\nremove = [\"Connection\", \"x-a\", \"Via\"]\ndefault = { X-A = \"1\" }\n[routes.response_headers]\nset = { Date = \"now\", X-B = \"a\\r\\nSet-Cookie: b\" }\nremove = [\"Transfer-Encoding\", \"X-B\"]\n",
        expect![[r#"
            hostler.toml:6:26: routes[0].request_headers.set.Content-Length: Hostler sets this field itself, because it frames the message
            hostler.toml:6:49: routes[0].request_headers.set.X-Forwarded-For: Hostler sets this field itself; see server.trusted_proxies
            hostler.toml:6:63: routes[0].request_headers.set.a b: "a b" is not a valid name of a header field
            hostler.toml:7:16: routes[0].request_headers.add.Host: every request has exactly one; use set
            hostler.toml:8:11: routes[0].request_headers.remove[0]: Hostler sets this field itself, because it frames the message
            hostler.toml:8:25: routes[0].request_headers.remove[1]: x-a is changed twice
            hostler.toml:8:32: routes[0].request_headers.remove[2]: Hostler sets this field itself; see server.trusted_proxies
            hostler.toml:11:16: routes[0].response_headers.set.Date: the server that makes the response sets this field
            hostler.toml:11:29: routes[0].response_headers.set.X-B: character 2 is '\r', which the value of a header field cannot have
            hostler.toml:12:11: routes[0].response_headers.remove[0]: Hostler sets this field itself, because it frames the message"#]],
    );
}

/// A route with this `early_hints`, on line 4.
fn hinted(early_hints: &str) -> String {
    format!(
        "pools.app.members = [\"a:1\"]\n[[routes]]\nmatch = \"*\"\nearly_hints = {early_hints}\npool = \"app\"\n"
    )
}

#[test]
fn early_hints_are_learnt_or_named_in_short_or_in_a_table() {
    let meaning = |text: &str| {
        let hints = with_files(&hinted(text)).config().routes[0].early_hints.clone().unwrap();
        let links = match hints.links {
            EarlyHintLinks::Learn => "learn".to_owned(),
            EarlyHintLinks::List(links) => {
                links.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
            }
        };
        (links, hints.http1)
    };
    assert_eq!(meaning("\"learn\""), ("learn".into(), false));
    assert_eq!(meaning("{ links = \"learn\", http1 = true }"), ("learn".into(), true));
    let list = "[\"</a.css>; rel=preload; as=style\", \" <https://b.test>; rel=preconnect \"]";
    let links = "</a.css>; rel=preload; as=style | <https://b.test>; rel=preconnect";
    assert_eq!(meaning(list), (links.into(), false));
    assert_eq!(meaning(&format!("{{ links = {list} }}")), (links.into(), false));
    assert_eq!(with_files("pools.app.members = [\"a:1\"]").config().routes[0].early_hints, None);
}

#[test]
fn links_that_the_route_replaces_are_not_learnt_which_causes_a_warning() {
    let changed = |hints: &str, changes: &str| format!("{}response_headers.{changes}\n", hinted(hints));
    with_files(&changed("\"learn\"", "set = { link = \"</a>; rel=preload\" }")).says(expect![
        "hostler.toml:4:15: routes[0].early_hints: learns nothing, because response_headers sets or removes Link; write a list of links"
    ]);
    with_files(&changed("{ links = \"learn\" }", "remove = [\"Link\"]")).says(expect![
        "hostler.toml:4:15: routes[0].early_hints: learns nothing, because response_headers sets or removes Link; write a list of links"
    ]);
    with_files(&changed("\"learn\"", "add = { Link = \"</a>; rel=preload\" }")).says(expect![""]);
    with_files(&changed("[\"</a>; rel=preload\"]", "remove = [\"Link\"]")).says(expect![""]);
}

#[test]
fn each_mistake_in_early_hints_is_told_with_its_line() {
    let says = |text: &str, expected| check(&hinted(text), expected);
    says(
        "\"lern\"",
        expect![[r#"hostler.toml:4:15: routes[0].early_hints: "lern" is not "learn" or a list of links"#]],
    );
    says(
        "true",
        expect![[
            r#"hostler.toml:4:15: routes[0].early_hints: invalid type: boolean `true`, expected "learn" or a list of links, or a table"#
        ]],
    );
    says("[]", expect!["hostler.toml:4:15: routes[0].early_hints: the list has no link"]);
    says(
        "[\"/app.css\"]",
        expect![[
            r#"hostler.toml:4:16: routes[0].early_hints[0]: "/app.css" is not one link such as "</app.css>; rel=preload; as=style""#
        ]],
    );
    says(
        "[\"</a>; rel=preload\", \"</a>; rel=next\"]",
        expect![[
            r#"hostler.toml:4:37: routes[0].early_hints[1]: "</a>; rel=next" has no rel of preload, modulepreload, preconnect or dns-prefetch"#
        ]],
    );
    says(
        "[\"</a>; rel=preload, </b>; rel=preload\"]",
        expect![[
            r#"hostler.toml:4:16: routes[0].early_hints[0]: "</a>; rel=preload, </b>; rel=preload" is not one link such as "</app.css>; rel=preload; as=style""#
        ]],
    );
    says(
        "[\"</a>; rel=preload\\r\\nX: 1\"]",
        expect![[
            r#"hostler.toml:4:16: routes[0].early_hints[0]: "</a>; rel=preload\r\nX: 1" is not one link such as "</app.css>; rel=preload; as=style""#
        ]],
    );
    says(
        "{ http1 = true }",
        expect![[
            r#"hostler.toml:4:15: routes[0].early_hints: links is missing; write links = "learn" or a list of links"#
        ]],
    );
    says(
        "{ links = \"lern\" }",
        expect![[
            r#"hostler.toml:4:25: routes[0].early_hints.links: "lern" is not "learn" or a list of links"#
        ]],
    );
    says(
        "{ links = \"learn\", http2 = true }",
        expect![[r#"hostler.toml:4:34: unknown key "routes[0].early_hints.http2"; did you mean "http1"?"#]],
    );
    check(
        "[[routes]]\nmatch = \"*\"\nrespond = \"a\"\nearly_hints = \"learn\"\n",
        expect!["hostler.toml:4:15: routes[0].early_hints: cannot be set together with respond"],
    );
}
