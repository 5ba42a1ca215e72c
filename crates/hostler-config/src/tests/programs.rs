//! Programs, scripts and folders of workers: what is missing is an error of the key that names it.

use std::os::unix::fs::PermissionsExt;

use expect_test::{Expect, expect};

use super::{Site, hide, site};
use crate::{load_to_check, load_to_run};

/// A folder with an app, a build, and programs that may and may not be executed.
fn app(text: &str) -> Site {
    let site = site(text);
    let folder = site.folder();
    std::fs::create_dir_all(folder.join("dist")).unwrap();
    std::fs::create_dir_all(folder.join("bin")).unwrap();
    for (name, mode) in
        [("server.js", 0o644), ("dist/main.js", 0o644), ("bin/good", 0o755), ("bin/plain", 0o644)]
    {
        std::fs::write(folder.join(name), "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(folder.join(name), PermissionsExt::from_mode(mode)).unwrap();
    }
    let node = folder.join("bin/node");
    std::os::unix::fs::symlink("good", node).unwrap();
    let path = format!("/nowhere:{}", folder.join("bin").display());
    site.variable("PATH", &path)
}

fn check(text: &str, expected: Expect) {
    let site = app(text);
    let said = load_to_run(&site.invocation).map_or_else(|errors| errors.to_string(), |_| "valid".into());
    expected.assert_eq(&hide(&said, &site.folder()));
}

fn command(command: &str) -> String {
    format!("[pools.web]\nworkers = 1\ncommand = {command}\n")
}

#[test]
fn a_program_and_a_script_that_are_there_are_valid() {
    for line in [
        "'node server.js'",
        "'node --enable-source-maps dist/main'",
        "['node', '-e', 'nothing']",
        "'bin/good anything'",
        "'good'",
        "'node dist/../server.js'",
        // The app is in --import or NODE_OPTIONS.
        "'node /dev/null'",
    ] {
        check(&command(line), expect!["valid"]);
    }
    check("[pools.web]\ncommand = 'node main.js'\ncwd = 'dist'\n", expect!["valid"]);
    check(
        "[pools.web]\ncommand = 'plain'\nenv = { PATH = '/bin:/usr/bin' }\n",
        expect![[r#"hostler.toml:2:11: pools.web.command: there is no program "plain" in PATH"#]],
    );
}

#[test]
fn a_missing_node_is_an_error_that_names_what_a_service_needs() {
    check(
        "[pools.web]\ncommand = 'node server.js'\nenv = { PATH = '/nowhere' }\n",
        expect![[
            r#"hostler.toml:2:11: pools.web.command: there is no program "node" in PATH; if only your shell has it in PATH, as with nvm: set PATH in env of the pool, or install it for the whole machine"#
        ]],
    );
}

#[test]
fn shell_syntax_in_a_string_is_refused() {
    check(
        &command("'node server.js && good'"),
        expect![[
            r#"hostler.toml:3:11: pools.web.command: '&' is for a shell, and no shell runs the command; set variables in env and the folder in cwd, or write ["sh", "-c", "node server.js && good"]"#
        ]],
    );
    check(&command("['good', '-c', 'node server.js && good']"), expect!["valid"]);
}

#[test]
fn a_missing_program_or_script_is_named_with_its_line() {
    check(
        &command("'nod server.js'"),
        expect![[r#"hostler.toml:3:11: pools.web.command: there is no program "nod" in PATH"#]],
    );
    check(
        &command("'server.js'"),
        expect![[
            r#"hostler.toml:3:11: pools.web.command: there is no program "server.js" in PATH; to run a script, write node server.js"#
        ]],
    );
    check(
        &command("['nod server.js']"),
        expect![[
            r#"hostler.toml:3:11: pools.web.command: there is no program "nod server.js" in PATH; in a list, the program and each argument are items of their own"#
        ]],
    );
    check(
        &command("'node sever.js'"),
        expect!["hostler.toml:3:11: pools.web.command: FOLDER/sever.js does not exist"],
    );
    check(
        &command("'node build/index.js'"),
        expect![
            "hostler.toml:3:11: pools.web.command: FOLDER/build/index.js does not exist; if a build makes it, run the build first"
        ],
    );
    check(
        &command("'node dist'"),
        expect![
            "hostler.toml:3:11: pools.web.command: FOLDER/dist is a folder without index.js and package.json"
        ],
    );
    check(
        &command("'node_modules/.bin/next start'"),
        expect![
            "hostler.toml:3:11: pools.web.command: FOLDER/node_modules/.bin/next does not exist; npm install makes it"
        ],
    );
    check(
        &command("'bin/plain'"),
        expect![
            "hostler.toml:3:11: pools.web.command: FOLDER/bin/plain may not be executed (permission denied)"
        ],
    );
    check(
        &command("'plain'"),
        expect![
            "hostler.toml:3:11: pools.web.command: FOLDER/bin/plain may not be executed (permission denied)"
        ],
    );
}

#[test]
fn a_missing_folder_is_reported_once() {
    check(
        "[pools.web]\ncommand = 'node server.js'\ncwd = 'nowhere'\n[pools.file]\ncommand = 'node server.js'\ncwd = 'server.js'\n[[routes]]\nmatch = '/a'\npool = 'web'\n[[routes]]\nmatch = '/b'\npool = 'file'\n",
        expect![[r#"
            hostler.toml:3:7: pools.web.cwd: FOLDER/nowhere does not exist
            hostler.toml:6:7: pools.file.cwd: FOLDER/server.js is not a folder"#]],
    );
}

#[test]
fn the_command_of_run_is_named_as_such() {
    let site = app("").without_file().flag("pools.app.command", "node sever.js");
    let said = load_to_run(&site.invocation).unwrap_err().to_string();
    assert_eq!(
        hide(&said, &site.folder()),
        "--pools.app.command: pools.app.command: FOLDER/sever.js does not exist"
    );
}

#[test]
fn a_place_where_no_file_can_be_made_is_named_with_its_line() {
    let said = |text: &str| {
        let site = app(text);
        let said =
            load_to_check(&site.invocation).map_or_else(|errors| errors.to_string(), |_| "valid".into());
        hide(&said, &site.folder())
    };
    let pool = "[pools.web]\ncommand = 'node server.js'\n[[routes]]\nmatch = '*'\npool = 'web'\n";
    let log = |file: &str| said(&format!("{pool}[log]\nfile = '{file}'\n"));
    assert_eq!(log("dist"), "hostler.toml:7:8: log.file: FOLDER/dist is a folder, not a file");
    assert_eq!(log("absent/a.log"), "hostler.toml:7:8: log.file: FOLDER/absent does not exist");
    assert_eq!(log("new.log"), "valid");
    let admin = |socket: &str| said(&format!("[server]\nadmin = 'unix:{socket}'\n{pool}"));
    assert_eq!(
        admin("dist"),
        "hostler.toml:2:9: server.admin: FOLDER/dist is not a socket; remove it, or use another path"
    );
    assert_eq!(admin("absent/admin.sock"), "hostler.toml:2:9: server.admin: FOLDER/absent does not exist");
    assert_eq!(admin("admin.sock"), "valid");
}

#[test]
fn a_folder_for_temporary_files_that_is_not_there_is_told_by_check() {
    let pool = "[pools.web]\ncommand = 'node server.js'\n";
    let said = |text: &str, variables: &[(&str, &str)]| {
        let mut site = app(text);
        let absent = site.folder().join("absent");
        site.invocation.load_context.temp_dir = absent;
        for (name, value) in variables {
            let value = value.replace("FOLDER", &site.folder().display().to_string());
            site = site.variable(name, &value);
        }
        let said = load_to_check(&site.invocation);
        let said = said.map_or_else(|errors| errors.to_string(), |config| config.warnings.join("\n"));
        hide(&said, &site.folder())
    };
    let refused = "hostler.toml: server.temp_dir: FOLDER/absent does not exist";
    let later = format!("{refused}; a request with a body over server.body_memory will get 500 (storage)");
    assert_eq!(said(pool, &[]), refused);
    assert_eq!(said(pool, &[("XDG_RUNTIME_DIR", "FOLDER/nowhere")]), refused);
    assert_eq!(said(pool, &[("XDG_RUNTIME_DIR", "FOLDER")]), later);
    assert_eq!(said("[pools.web]\nmembers = ['a:1']\n", &[]), later);
    assert_eq!(said(&format!("{pool}[server]\ntemp_dir = '.'\n"), &[]), "");
    assert_eq!(
        said(&format!("{pool}[server]\ntemp_dir = 'absent'\n"), &[]),
        "hostler.toml:4:12: server.temp_dir: FOLDER/absent does not exist"
    );
}

#[test]
fn a_folder_whose_path_is_too_long_for_the_sockets_of_workers_is_told_by_check() {
    let long = "x".repeat(60);
    let said = |pool: &str, runtime: &str| {
        let site = app(&format!("{pool}[server]\ntemp_dir = '{long}'\n"));
        std::fs::create_dir(site.folder().join(&long)).unwrap();
        let runtime = runtime.replace("FOLDER", &site.folder().display().to_string());
        let site = site.variable("XDG_RUNTIME_DIR", &runtime);
        let said = load_to_check(&site.invocation);
        let said = said.map_or_else(|errors| errors.to_string(), |config| config.warnings.join("\n"));
        hide(&said, &site.folder())
    };
    let pool = "[pools.web]\ncommand = 'node server.js'\n";
    let refused = format!(
        "hostler.toml:4:12: server.temp_dir: FOLDER/{long} is too long for the path of a socket of a worker"
    );
    assert_eq!(said(pool, "FOLDER/nowhere"), refused);
    assert_eq!(said(pool, &format!("FOLDER/{long}")), refused);
    assert_eq!(said(pool, "/tmp"), "");
    assert_eq!(said("[pools.web]\nmembers = ['a:1']\n", "FOLDER/nowhere"), "");
}

#[test]
fn node_options_in_a_file_of_variables_are_named_because_they_have_no_effect() {
    let warnings = |text: &str| {
        let site = app(text);
        let folder = site.folder();
        std::fs::write(folder.join(".env"), "A=1\nexport NODE_OPTIONS = --max-old-space-size=4096\n")
            .unwrap();
        std::fs::write(folder.join("none.env"), "# NODE_OPTIONS=--no-warnings\nNODE_OPTIONS=\n").unwrap();
        load_to_run(&site.invocation).unwrap_or_else(|errors| panic!("{errors}")).warnings.join("\n")
    };
    for line in ["'node --env-file=.env server.js'", "'node --env-file-if-exists .env server.js'"] {
        expect![
            "hostler.toml:3:11: pools.web.command: NODE_OPTIONS in .env has no effect, because Hostler sets this variable, and Node prefers that; write it in pools.web.env, and Hostler adds its own options"
        ]
        .assert_eq(&about_options(&warnings(&command(line))));
    }
    for line in [
        "'node --env-file=none.env server.js'",
        "'node --env-file=missing.env server.js'",
        "'node server.js --env-file=.env'",
        "'good --env-file=.env server.js'",
    ] {
        assert_eq!(about_options(&warnings(&command(line))), "", "{line}");
    }
    let set = command("'node --env-file=.env server.js'") + "env = { NODE_OPTIONS = '--no-warnings' }\n";
    assert_eq!(about_options(&warnings(&set)), "");
}

/// Without other warnings, such as that no route leads to the pool.
fn about_options(warnings: &str) -> String {
    warnings.lines().filter(|line| line.contains("NODE_OPTIONS")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_wrong_command_is_not_reported_as_missing_too() {
    site("[pools.web]\ncommand = \"node 'server.js\"\n[[routes]]\nmatch = \"*\"\npool = \"web\"\n").says(expect![[
            r#"hostler.toml:2:11: pools.web.command: "node 'server.js" cannot be split into words: missing closing quote"#
        ]]);
    site("[pools.web]\ncommand = []\n[pools.api]\ncommand = [\"node\", 5]\n[pools.c]\ncommand = \"\"\n").says(expect![[r#"
            hostler.toml: there are several pools and no [[routes]]; add routes that say which requests go to which pool (pools: api, c, web)
            hostler.toml:2:11: pools.web.command: the program is missing; write for example "node server.js"
            hostler.toml:4:20: pools.api.command[1]: invalid type: integer `5`, expected a string
            hostler.toml:6:11: pools.c.command: the program is missing; write for example "node server.js""#]]);
}
