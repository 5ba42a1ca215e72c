//! Values that could be read, and would break something later: each is refused at its place.

use expect_test::expect;

use super::{check, site};

/// The library panics at the last one.
#[test]
fn a_text_that_no_unit_makes_a_duration_is_refused() {
    check(
        "pools.web.command = \"node a.js\"\n[server]\nbody_timeout = \"1e3\"\nsend_timeout = \"-5\"\nidle_timeout = \"inf\"\ndrain_timeout = \"18446744073709551615s 1000ms\"\n",
        expect![[r#"
            hostler.toml:3:16: server.body_timeout: "1e3" is not a duration such as "30s", "250ms" or "1m 30s"
            hostler.toml:4:16: server.send_timeout: "-5" is not a duration such as "30s", "250ms" or "1m 30s"
            hostler.toml:5:16: server.idle_timeout: "inf" is not a duration such as "30s", "250ms" or "1m 30s"
            hostler.toml:6:17: server.drain_timeout: "18446744073709551615s 1000ms" is not a duration such as "30s", "250ms" or "1m 30s""#]],
    );
}

/// A client of HTTP/2 takes the whole response for malformed.
#[test]
fn a_field_that_http2_cannot_carry_is_refused() {
    check(
        "[[routes]]\nmatch = \"/a\"\nrespond = { headers = { Date = \"now\", Proxy-Connection = \"close\", x = \"a \" } }\n",
        expect![[r#"
            hostler.toml:3:32: routes[0].respond.headers.Date: the server that makes the response sets this field
            hostler.toml:3:58: routes[0].respond.headers.Proxy-Connection: Hostler sets this field itself, because it frames the message
            hostler.toml:3:71: routes[0].respond.headers.x: begins or ends with a blank, which the value of a header field cannot have"#]],
    );
    check(
        "[[routes]]\nmatch = \"/a\"\nstatic = { dir = \".\", cache_control = \"no-cache \" }\n",
        expect!["hostler.toml:3:39: routes[0].static.cache_control: is not a valid value of a header field"],
    );
}

#[test]
fn an_empty_name_is_not_the_folder_of_the_configuration() {
    check(
        "[[routes]]\nmatch = \"/a\"\nstatic = \"\"\n[[routes]]\nmatch = \"/b\"\nstatic = { dir = \"\" }\n[pools.a]\ncommand = \"x\"\ncwd = \"\"\n",
        expect![[r#"
            hostler.toml:3:10: routes[0].static: is empty; for the folder of the configuration file write "."
            hostler.toml:6:18: routes[1].static.dir: is empty; for the folder of the configuration file write "."
            hostler.toml:9:7: pools.a.cwd: is empty; for the folder of the configuration file write ".""#]],
    );
    let variable = "HOSTLER_SERVER_TEMP_DIR";
    let said = site("pools.a.command = \"x\"\n").variable(variable, "").load().unwrap_err().to_string();
    assert!(said.starts_with("HOSTLER_SERVER_TEMP_DIR: server.temp_dir: is empty"), "{said}");
}

#[test]
fn listeners_overlap_only_within_their_families() {
    let server = |listen: &str| site(&format!("pools.a.command = \"x\"\nserver.listen = [{listen}]\n"));
    for fine in ["\"0.0.0.0:80\", \"[::1]:80\"", "\"127.0.0.1:80\", \"[::1]:80\""] {
        assert_eq!(server(fine).config().server.listen.len(), 2, "{fine}");
    }
    for both in
        ["\"0.0.0.0:80\", \"[::]:80\"", "\"[::]:80\", \"127.0.0.1:80\"", "\"0.0.0.0:80\", \"127.0.0.1:80\""]
    {
        assert!(server(both).load().is_err(), "{both}");
    }
    server("\"127.0.0.1:80\", \"[::ffff:127.0.0.1]:80\"").says(expect![
        "hostler.toml:2:34: server.listen[1]: [::ffff:127.0.0.1]:80 and 127.0.0.1:80 overlap; each listener needs its own address"
    ]);
}

/// Over HTTP/2 no request and no check could be made with it, and most servers refuse it over HTTP/1.1.
#[test]
fn a_host_that_is_none_is_refused() {
    check(
        "[pools.a]\nmembers = [\"a:1\"]\nhealth_check = { path = \"/\", host = \"a/b\" }\n[[routes]]\nmatch = \"*\"\npool = \"a\"\nrequest_headers = { set = { Host = \"http://in\" } }\n",
        expect![[r#"
            hostler.toml:3:37: pools.a.health_check.host: "a/b" is not a valid Host
            hostler.toml:7:36: routes[0].request_headers.set.Host: "http://in" is not a valid Host"#]],
    );
}

#[test]
fn a_folder_with_the_configuration_file_is_none_for_clients() {
    let said = |keys: &str| {
        let site = site(&format!("[[routes]]\n{keys}\n"));
        std::fs::create_dir(site.folder().join("public")).unwrap();
        site.config()
            .warnings
            .join("\n")
            .replace(&site.folder().canonicalize().unwrap().display().to_string(), "FOLDER")
    };
    let why = "routes[0].static: clients can read FOLDER/hostler.toml, which is in this folder; serve a folder that has only files for them, such as \"public\"";
    let whole = "match = \"*\"\nstatic = \".\"";
    assert_eq!(said(whole), format!("hostler.toml:3:10: {why}"));
    let below = "match = \"/a/*\"\nstatic = { dir = \"public/..\" }\nrewrite.strip_prefix = \"/a\"";
    assert_eq!(said(below), format!("hostler.toml:3:10: {why}"));
    for fine in ["match = \"*\"\nstatic = \"public\"", "match = \"/public/*\"\nstatic = \".\""] {
        assert_eq!(said(fine), "", "{fine}");
    }
}
