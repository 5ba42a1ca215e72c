//! `hostler init`: what it writes for the apps that people have, and that the result starts and serves.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use expect_test::{Expect, expect};
use hostler_config::{self as config, Invocation, LoadContext};
use hostler_testkit::{Output, run};

use super::site::configured_by;
use super::watching::{WITHOUT_RIGHTS, is_allowed};

pub const HOSTLER: &str = env!("CARGO_BIN_EXE_hostler");
/// An app that answers with one of its variables. It listens where Node's own examples do.
pub const SERVER: &str = "require('http').createServer((req, res) => res.end(process.env.NODE_ENV + ' ' + process.argv.slice(2))).listen(3000);";

/// A folder named `shop` with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let outer = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = outer.path().join("shop").join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    outer
}

pub async fn init(files: &[(&str, &str)], arguments: &[&str]) -> (tempfile::TempDir, Output) {
    let outer = folder(files);
    let output = run(HOSTLER, &[&["init"], arguments].concat(), &outer.path().join("shop")).await;
    (outer, output)
}

/// The file for these files, whole.
async fn written(files: &[(&str, &str)]) -> String {
    let (_folder, output) = init(files, &["--print"]).await;
    output.assert_exit(0);
    output.stdout
}

/// The keys without the comments and without `[server]`.
pub async fn keys(files: &[(&str, &str)]) -> String {
    let text = written(files).await;
    let keys = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    let pools = keys.find("[pools").or_else(|| keys.find("[[routes]]")).unwrap();
    keys[pools..].trim_end().replace("\n\n\n", "\n\n")
}

pub async fn writes(files: &[(&str, &str)], expected: Expect) {
    expected.assert_eq(&keys(files).await);
}

/// The command of the pool, and its variables except NODE_ENV=production.
pub async fn command(files: &[(&str, &str)]) -> String {
    let text = keys(files).await;
    let key = |name: &str| text.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")));
    let env = key("env").unwrap_or_default().replace("NODE_ENV = \"production\"", "");
    let env = env.replace(", ,", ",");
    let env = env.trim_matches(|char: char| "{}, ".contains(char)).to_owned();
    [key("command").unwrap_or_default().trim_matches('"'), &env].join(" ").trim().to_owned()
}

pub fn package(rest: &str) -> String {
    format!(r#"{{ "name": "@acme/shop", {rest} }}"#)
}

#[tokio::test]
async fn init_writes_a_commented_file_for_an_express_app() {
    let package =
        package(r#""scripts": { "start": "node ./bin/www" }, "dependencies": { "express": "^5.0.0" }"#);
    let text = written(&[("package.json", &package), ("yarn.lock", ""), ("bin/www", SERVER)]).await;
    expect![[r##"
        # Written by hostler init. Lines with a # before a key are examples; remove the # to use one.
        # hostler check looks for mistakes in this file, and hostler start runs it.
        # So that an editor completes and explains all keys: hostler schema > hostler.schema.json,
        # and make this the first line of the file: #:schema ./hostler.schema.json

        [server]
        listen = "127.0.0.1:8080"           # for clients; ":8080" is every address of this machine
        admin = "127.0.0.1:8081"            # for hostler status and the other commands; clients must not reach it
        # access_log = "pretty"             # log lines for people; "json" for programs; "off" for none
        # trusted_proxies = ["10.0.0.0/8"]  # the load balancer in front of Hostler: its X-Forwarded-For counts
        # health_path = "/healthz"          # Hostler answers health checks of a load balancer here

        # An Express app
        # Found: express ^5.0.0 in package.json; yarn is the package manager (yarn.lock).
        # Found: The command is the script "start": node ./bin/www
        [pools.shop]
        command = "node ./bin/www"
        env = { NODE_ENV = "production" }
        # workers = 2                       # processes; the default is one for each core
        # concurrency = "auto"              # requests of one worker at a time; 1 for an app that must not begin a second one
        # health = "/healthz"               # a path that answers 2xx when the app can serve; without it, listening is enough
        # warmup = ["/"]                    # paths that each new worker gets before the requests of clients
        # start_timeout = "30s"             # the time for a worker to become ready
        # stop_timeout = "10s"              # the time for a worker to end after SIGTERM
        # request_timeout = "30s"           # the time until a response begins
        # max_memory = "1 GiB"              # Hostler replaces a worker that has more, for an app that leaks memory

        [[routes]]
        match = "*"
        pool = "shop"
        # compress = true                   # Hostler compresses what the app has not compressed
        # max_body_size = "10 MiB"          # the longest body of a request
    "##]]
    .assert_eq(&text);
}

#[tokio::test]
async fn every_key_that_init_shows_as_a_comment_is_valid() {
    let text = written(&[("server.js", SERVER)]).await;
    let uncommented = text.lines().map(|line| match line.strip_prefix("# ") {
        Some(key) if key.split(' ').nth(1) == Some("=") => key,
        _ => line,
    });
    let uncommented = uncommented.collect::<Vec<_>>().join("\n");
    assert!(uncommented.contains("\nhealth_path = "), "{uncommented}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hostler.toml"), uncommented).unwrap();
    let load_context = LoadContext { folder: folder.path().into(), ..LoadContext::of_process() };
    let invocation = Invocation { file: Some("hostler.toml".into()), settings: Vec::new(), load_context };
    let config = config::load(&invocation).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.warnings, Vec::<String>::new());
}

#[tokio::test]
async fn the_command_comes_from_scripts_then_main_and_bin_then_a_server_file() {
    let cases = [
        (r#""scripts": { "start": "node server.js" }"#, "", "node server.js"),
        (
            r#""scripts": { "start": "PORT=80 cross-env A=b node --watch app.js" }"#,
            "",
            "node app.js A = \"b\", PORT = \"80\"",
        ),
        (r#""scripts": { "start": "npm run serve", "serve": "nodemon app.js" }"#, "", "node app.js"),
        (r#""scripts": { "start": "npm run build && node ." }"#, "", "npm start"),
        (r#""scripts": { "start": "npm run build && node ." }"#, "pnpm-lock.yaml", "pnpm start"),
        (r#""scripts": { "start": "a && b" }, "packageManager": "yarn@4.1.0""#, "", "yarn start"),
        (
            r#""scripts": { "start": "ts-node-dev x.ts", "start:prod": "node dist/x.js" }"#,
            "",
            "node dist/x.js",
        ),
        (
            r#""scripts": { "start": "fastify start -l info app.js" }"#,
            "node_modules/.bin/fastify",
            "node_modules/.bin/fastify start -l info app.js",
        ),
        (
            r#""scripts": { "start": "npx tsx src/x.ts" }"#,
            "../node_modules/.bin/tsx",
            "../node_modules/.bin/tsx src/x.ts",
        ),
        (r#""scripts": { "start": "bun run src/x.ts" }"#, "src/x.ts", "bun run src/x.ts"),
        (r#""main": "lib/main.js""#, "lib/main.js", "node lib/main.js"),
        (r#""main": "index.js", "bin": { "shop": "cli.js" }"#, "cli.js", "node cli.js"),
        (r#""main": "index.js""#, "app.mjs", "node app.mjs"),
        (r#""main": 7, "scripts": [], "bin": null, "dependencies": "none""#, "server.js", "node server.js"),
    ];
    for (rest, other, expected) in cases {
        let package = package(rest);
        let files = [("package.json", package.as_str()), (other, "x")];
        let files = if other.is_empty() { &files[..1] } else { &files[..] };
        assert_eq!(command(files).await, expected, "{rest}");
    }
    assert_eq!(command(&[("index.js", SERVER)]).await, "node index.js");
}

#[tokio::test]
async fn each_framework_has_its_own_server_and_files() {
    let with = |dependency: &str| {
        package(&format!(
            r#""scripts": {{ "build": "x", "start": "x" }}, "dependencies": {{ "{dependency}": "1" }}"#
        ))
    };
    let cases = [
        ("nuxt", "nuxt.config.ts", "", "node .output/server/index.mjs"),
        (
            "@sveltejs/kit",
            "svelte.config.js",
            "import adapter from '@sveltejs/adapter-node'; x({ out: 'made' })",
            "node made",
        ),
        (
            "astro",
            "astro.config.mjs",
            "import node from '@astrojs/node'; x({ mode: 'standalone' })",
            "node dist/server/entry.mjs",
        ),
        ("@react-router/serve", "x", "", "node_modules/.bin/react-router-serve ./build/server/index.js"),
        (
            "@remix-run/serve",
            "vite.config.ts",
            "remix()",
            "node_modules/.bin/remix-serve ./build/server/index.js",
        ),
        ("@nestjs/core", "x", "", "node dist/main.js"),
        ("next", "next.config.js", "// output: 'standalone'", "node_modules/.bin/next start"),
        (
            "next",
            "next.config.mjs",
            "export default { output: 'standalone' }",
            "node .next/standalone/server.js",
        ),
    ];
    for (dependency, file, text, expected) in cases {
        let files = [("package.json", with(dependency)), (file, text.to_owned())];
        let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
        assert_eq!(command(&files).await.split(" ADDRESS").next().unwrap(), expected, "{dependency}");
    }
    writes(
        &[
            ("package.json", &package(r#""dependencies": { "next": "16.0.0" }"#)),
            (
                "next.config.js",
                "module.exports = { output: 'standalone', basePath: '/docs', distDir: 'made' }",
            ),
            ("public/a.txt", "a"),
        ],
        expect![[r#"
            [pools.shop]
            command = "node made/standalone/server.js"
            env = { NODE_ENV = "production" }

            [[routes]]
            match = "*"
            pool = "shop"
            static = { dir = "public", index = "" }
            compress = true

            [[routes]]
            match = "/docs/_next/static/*"
            static = { dir = "made/static", immutable = ["/*"] }
            compress = true
            rewrite = { strip_prefix = "/docs/_next/static" }"#]],
    )
    .await;
    writes(
        &[(
            "package.json",
            &package(r#""scripts": { "start": "vite" }, "devDependencies": { "vite": "7" }"#),
        )],
        expect![[r#"
            [[routes]]
            match = "*"
            static = { dir = "dist", fallback = "index.html", immutable = ["/assets/*"] }
            compress = true"#]],
    )
    .await;
}

#[tokio::test]
async fn init_replaces_a_file_only_by_force() {
    let files = [("server.js", SERVER), ("hostler.toml", "mine")];
    let (folder, output) = init(&files, &[]).await;
    output.assert_exit(1).assert_complains("hostler.toml exists: --force replaces it");
    let file = folder.path().join("shop/hostler.toml");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    run(HOSTLER, &["init", "-o", "-"], file.parent().unwrap()).await.assert_exit(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    let output = run(HOSTLER, &["init", "--force"], file.parent().unwrap()).await;
    output.assert_exit(0);
    assert!(output.stdout.contains("hostler check\n  hostler start\n"), "{}", output.stdout);
    assert!(std::fs::read_to_string(&file).unwrap().contains("command = \"node server.js\""));
}

#[tokio::test]
async fn a_full_disk_costs_no_old_file_and_leaves_no_part_of_a_new_one() {
    for old in [Some("mine"), None] {
        let (folder, output) = init(&[("server.js", SERVER)], &["--print"]).await;
        output.assert_exit(0);
        let folder = folder.path().join("shop");
        if let Some(text) = old {
            std::fs::write(folder.join("hostler.toml"), text).unwrap();
        }
        // One block of a file may be written, as on a full disk.
        let full = "trap '' XFSZ; ulimit -f 1; exec \"$0\" init --force";
        let output = run("sh", &["-c", full, HOSTLER], &folder).await;
        output.assert_exit(1).assert_complains("hostler.toml cannot be written");
        assert_eq!(std::fs::read_to_string(folder.join("hostler.toml")).ok().as_deref(), old);
        let files = std::fs::read_dir(&folder).unwrap().count();
        assert_eq!(files, 1 + old.iter().count(), "a part of the file is left");
    }
}

#[tokio::test]
async fn a_file_that_is_replaced_keeps_its_permissions_and_the_link_to_it() {
    let (folder, output) = init(&[("server.js", SERVER), ("real.toml", "mine")], &["--print"]).await;
    output.assert_exit(0);
    let folder = folder.path().join("shop");
    std::os::unix::fs::symlink("real.toml", folder.join("hostler.toml")).unwrap();
    std::fs::set_permissions(folder.join("real.toml"), Permissions::from_mode(0o604)).unwrap();
    run(HOSTLER, &["init", "--force"], &folder).await.assert_exit(0);
    assert!(folder.join("hostler.toml").is_symlink());
    assert!(std::fs::read_to_string(folder.join("real.toml")).unwrap().contains("node server.js"));
    assert_eq!(folder.join("real.toml").metadata().unwrap().permissions().mode() & 0o777, 0o604);
}

#[tokio::test]
async fn a_file_in_a_folder_that_may_not_be_written_is_replaced_too() {
    if !is_allowed(&format!("{WITHOUT_RIGHTS} true")) {
        return;
    }
    let (folder, _) = init(&[("server.js", SERVER), ("hostler.toml", "mine")], &["--print"]).await;
    let folder = folder.path().join("shop");
    std::fs::set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
    let command = format!("exec {WITHOUT_RIGHTS} \"$0\" init --force");
    run("sh", &["-c", &command, HOSTLER], &folder).await.assert_exit(0);
    assert!(std::fs::read_to_string(folder.join("hostler.toml")).unwrap().contains("node server.js"));
    std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn the_next_steps_are_for_a_shell() {
    let outer = folder(&[("my app/package.json", &package(r#""main": "server.js""#))]);
    let said =
        run(HOSTLER, &["init", "my app"], &outer.path().join("shop")).await.assert_exit(0).stdout.clone();
    for step in ["(cd 'my app' && npm install)", "hostler check -c 'my app/hostler.toml'"] {
        assert!(said.contains(&format!("\n  {step}\n")), "{step} in {said}");
    }
}

#[tokio::test]
async fn a_script_of_the_app_cannot_write_control_sequences_to_the_terminal() {
    let scripts = r#""scripts": { "prestart": "echo \u001b[2J", "start": "node server.js" }"#;
    let (outer, output) = init(&[("package.json", &package(scripts)), ("server.js", SERVER)], &[]).await;
    output.assert_exit(0);
    assert!(output.stdout.contains("echo \\x1b[2J") && !output.stdout.contains('\u{1b}'), "{output:?}");
    let check = "[pools.web]\ncommand = [\"node\", \"server.js\", \"\\u001b[2J\"]\n";
    std::fs::write(outer.path().join("shop/hostler.toml"), check).unwrap();
    let checked = run(HOSTLER, &["check"], &outer.path().join("shop")).await;
    checked.assert_exit(0);
    assert!(checked.stdout.contains("\\x1b[2J") && !checked.stdout.contains('\u{1b}'), "{checked:?}");
}

#[tokio::test]
async fn init_names_what_is_wrong_with_a_folder() {
    let workspace = r#"{ "workspaces": ["apps/*"] }"#;
    let turbo = r#"{ "workspaces": ["apps/*"], "scripts": { "start": "turbo run start" } }"#;
    let all = r#"{ "workspaces": ["apps/*"], "scripts": { "start": "npm start --workspaces" } }"#;
    for (name, text, argument, expected) in [
        ("README.md", "", ".", "has no app that init knows"),
        ("package.json", "{", ".", "package.json is not valid JSON"),
        ("package.json", workspace, ".", "is a workspace without a start script"),
        ("package.json", turbo, ".", "is a workspace without a start script of its own"),
        ("package.json", all, ".", "is a workspace without a start script of its own"),
        ("server.js", SERVER, "nowhere", "nowhere: No such file"),
        ("server.js", SERVER, "server.js", "server.js is not a folder"),
    ] {
        let (_folder, output) = init(&[(name, text)], &[argument]).await;
        output.assert_exit(1).assert_complains(expected);
    }
}

/// Writes the file, checks it, starts it, and gets `/`.
async fn serves(files: &[(&str, &str)], arguments: &[&str], file: &str, expected: &str) {
    let (folder, output) = init(files, arguments).await;
    output.assert_exit(0);
    let file = folder.path().join("shop").join(file);
    run(HOSTLER, &["check", "-c", file.to_str().unwrap()], Path::new("/")).await.assert_exit(0);
    let site = configured_by(&file).started().await;
    site.get("/").await.assert_ok(expected);
    site.stop().await;
}

#[tokio::test]
async fn what_init_writes_passes_the_check_and_serves() {
    let package = package(r#""scripts": { "start": "node server.js a" }"#);
    serves(&[("package.json", &package), ("server.js", SERVER)], &[], "hostler.toml", "production a").await;
    let procfile = "web: npm --version >/dev/null && NODE_ENV=test exec node server.js $PORT\n";
    serves(&[("Procfile", procfile), ("server.js", SERVER)], &[], "hostler.toml", "test 3000").await;
    let ecosystem = "module.exports = { apps: [{ script: 'server.js', args: 'x y', cwd: __dirname + '/app', instances: 1 }] }";
    serves(
        &[("ecosystem.config.js", ecosystem), ("app/server.js", SERVER)],
        &[],
        "hostler.toml",
        "production x,y",
    )
    .await;
    // The file of another folder names the app by its whole path.
    let files = [("app/server.js", SERVER), ("conf/x", "")];
    serves(&files, &["app", "-o", "conf/site.toml"], "conf/site.toml", "production ").await;
}

#[tokio::test]
async fn the_schema_is_that_of_the_reference() {
    let output = run(HOSTLER, &["schema"], Path::new("/")).await;
    output.assert_exit(0);
    let schema: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert!(schema["properties"]["pools"].is_object());
    let text = written(&[("server.js", SERVER), ("hostler.schema.json", &output.stdout)]).await;
    assert!(text.starts_with("#:schema ./hostler.schema.json\n"), "{text}");
}
