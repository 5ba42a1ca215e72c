//! `hostler init` in folders with an ecosystem file of PM2 or a Procfile.

use expect_test::expect;
use hostler_testkit::run;

use super::init::{HOSTLER, SERVER, command, init, keys, package, writes};

const ECOSYSTEM: &str = "
console.log('loaded');
module.exports = {
  apps: [
    { name: 'web', script: './server.js', args: '--colour red', node_args: ['--max-old-space-size=512'], instances: 'max', exec_mode: 'cluster',
      env: { NODE_ENV: 'development', API: 'x', HOME: process.env.HOME }, env_production: { NODE_ENV: 'production', PORT: 4000 },
      max_memory_restart: '1G', kill_timeout: 3500, wait_ready: true, watch: false },
    { name: 'my api', script: 'npm', args: 'start', cwd: './api', instances: 2, env: { PATH: process.env.PATH, ...process.env } },
    { script: 'queue.py', interpreter: 'python3', env: { PORT: 1 } },
  ],
};";

#[tokio::test]
async fn the_apps_of_pm2_become_pools() {
    let api = r#"{ "scripts": { "start": "node api.js" } }"#;
    let files = [
        ("ecosystem.config.js", ECOSYSTEM),
        ("server.js", SERVER),
        ("api/package.json", api),
        ("api/api.js", SERVER),
        ("queue.py", ""),
    ];
    let text = keys(&files).await;
    expect![[r#"
        [pools.web]
        command = "node --max-old-space-size=512 server.js --colour red"
        env = { API = "x", NODE_ENV = "production", PORT = "4000" }
        max_memory = "1024 MiB"             # max_memory_restart: 1G. The successor is started first
        stop_timeout = "3500ms"             # kill_timeout: 3500

        [pools.my-api]
        command = "node api.js"
        cwd = "api"
        env = { NODE_ENV = "production" }
        workers = 2                         # instances: 2

        [pools.queue]
        command = "python3 queue.py"
        env = { NODE_ENV = "production" }
        bind = "port"                       # not Node: the app must listen on PORT
        workers = 1                         # PM2 runs one process without instances

        [[routes]]
        match = "*"
        pool = "web"

        [[routes]]
        match = "my-api.localhost/*"
        pool = "my-api"

        [[routes]]
        match = "queue.localhost/*"
        pool = "queue""#]]
    .assert_eq(&text);
}

#[tokio::test]
async fn an_ecosystem_file_may_be_json_or_yaml_or_a_module() {
    let expected = "node server.js A = \"1\"";
    let package = package(r#""type": "module""#);
    for (name, text) in [
        (
            "ecosystem.config.json",
            r#"{ "apps": [{ "name": "x", "script": "server.js", "env": { "A": 1 } }] }"#,
        ),
        (
            "ecosystem.config.json",
            "{ apps: [{ name: 'x', script: 'server.js', env: { A: 1 } }], /* more */ }",
        ),
        ("ecosystem.config.yaml", "apps:\n  - name: x\n    script: server.js\n    env:\n      A: 1\n"),
        (
            "ecosystem.config.mjs",
            "export default { apps: { name: 'x', script: 'server.js', env: { A: 1 } } }",
        ),
        ("process.yml", "apps:\n  - name: x\n    script: server.js\n    env: { A: 1 }\n"),
        ("process.json", r#"{ "apps": [{ "name": "x", "script": "server.js", "env": { "A": 1 } }] }"#),
        ("ecosystem.config.cjs", "module.exports = [{ name: 'x', script: 'server.js', env: { A: 1 } }]"),
    ] {
        let files = [(name, text), ("server.js", SERVER), ("package.json", &package)];
        assert_eq!(command(&files).await, expected, "{name}");
    }
    let (_folder, output) = init(&[("ecosystem.config.js", "throw new Error('no such stage')")], &[]).await;
    output
        .assert_exit(1)
        .assert_complains("ecosystem.config.js: node cannot read it")
        .assert_complains("no such stage");
    let (_folder, output) = init(&[("ecosystem.config.yml", "apps: [")], &[]).await;
    output.assert_exit(1).assert_complains("ecosystem.config.yml: not valid YAML");
    let (_folder, output) = init(&[("ecosystem.config.json", "{}")], &[]).await;
    output.assert_exit(1).assert_complains("has no apps with a script");
}

/// Next.js sends some Server Actions to itself. With a port of its own, nothing listens there, or PM2 still does.
#[tokio::test]
async fn a_port_for_next_js_in_a_file_of_pm2_or_in_a_script_is_left_to_hostler() {
    let start = |script: &str| {
        package(&format!(r#""scripts": {{ "start": "{script}" }}, "dependencies": {{ "next": "16" }}"#))
    };
    let app = |app: &str| {
        format!("module.exports = {{ apps: [{{ name: 'x', {app}, env: {{ A: 1, PORT: 3000 }} }}] }}")
    };
    let bin = "node_modules/next/dist/bin/next";
    for (app, expected) in [
        (app(&format!("script: '{bin}', args: 'start -p 3000 -H 0.0.0.0'")), format!("node {bin} start")),
        (app("script: 'npm', args: 'start'"), "node_modules/.bin/next start".to_owned()),
        (app("script: 'npx next start --port=3000'"), "node_modules/.bin/next start".to_owned()),
        (app("script: '.next/standalone/server.js'"), "node .next/standalone/server.js".to_owned()),
        (app("script: 'server.js', cwd: '.next/standalone'"), "node server.js".to_owned()),
    ] {
        let package = start("next start -p 3000");
        let files = [("ecosystem.config.js", app.as_str()), ("package.json", &package), (bin, "")];
        assert_eq!(command(&files).await, format!("{expected} A = \"1\""), "{app}");
    }
    // An app with a server of its own may need the port to be known by it.
    let own = app("script: 'server.js'");
    let files = [("ecosystem.config.js", own.as_str()), ("server.js", SERVER)];
    assert_eq!(command(&files).await, "node server.js A = \"1\", PORT = \"3000\"");
    let package = start("PORT=3000 A=1 next start");
    assert_eq!(command(&[("package.json", &package)]).await, "node_modules/.bin/next start A = \"1\"");
}

#[tokio::test]
async fn a_variable_in_the_script_that_pm2_starts_replaces_that_of_the_ecosystem_file() {
    let ecosystem =
        "module.exports = { apps: [{ name: 'x', script: 'npm', args: 'start', env: { A: 'pm2', B: 'b' } }] }";
    let package = package(r#""scripts": { "start": "cross-env A=script node server.js" }"#);
    let files = [("ecosystem.config.cjs", ecosystem), ("package.json", package.as_str())];
    assert_eq!(command(&files).await, "node server.js A = \"script\", B = \"b\"");
}

#[tokio::test]
async fn a_list_or_an_object_among_the_variables_of_pm2_becomes_json() {
    let ecosystem = "module.exports = [{ name: 'x', script: 'server.js', env: { A: { a: [1] }, B: [2] } }]";
    let files = [("ecosystem.config.cjs", ecosystem), ("server.js", SERVER)];
    assert_eq!(command(&files).await, r#"node server.js A = '{"a":[1]}', B = "[2]""#);
}

/// PM2 goes on with an app that is late, and Hostler kills it.
#[tokio::test]
async fn a_listen_timeout_of_pm2_over_the_default_becomes_start_timeout() {
    let most = Some("start_timeout = \"604800s\"");
    for (millis, expected) in
        [(60_000_u64, Some("start_timeout = \"60s\"")), (3000, None), (9_999_999_999_999, most)]
    {
        let app = format!("{{ name: 'x', script: 'server.js', listen_timeout: {millis} }}");
        let ecosystem = format!("module.exports = {{ apps: [{app}] }}");
        let text = keys(&[("ecosystem.config.js", ecosystem.as_str()), ("server.js", SERVER)]).await;
        let found = text.lines().find(|line| line.starts_with("start_timeout"));
        assert_eq!(found.and_then(|line| line.split('#').next()).map(str::trim_end), expected, "{text}");
    }
}

#[tokio::test]
async fn options_of_node_have_three_names() {
    for name in ["node_args", "interpreter_args", "interpreterArgs"] {
        let app =
            format!("{{ name: 'x', script: 'server.ts', interpreter: 'node', {name}: '--import tsx' }}");
        let ecosystem = format!("module.exports = {{ apps: [{app}] }}");
        let files = [("ecosystem.config.js", ecosystem.as_str()), ("server.ts", SERVER)];
        assert_eq!(command(&files).await, "node --import tsx server.ts", "{name}");
    }
}

/// It finds the other one only in the PATH that npx makes.
#[tokio::test]
async fn a_program_that_npx_starts_for_pm2_and_that_starts_another_one_stays_behind_npx() {
    let app = "{ name: 'x', script: 'npx', args: 'dotenv -e .env.production -- next start' }";
    let ecosystem = format!("module.exports = {{ apps: [{app}] }}");
    let package = package(r#""dependencies": { "next": "16", "dotenv-cli": "8" }"#);
    let files = [("ecosystem.config.js", ecosystem.as_str()), ("package.json", package.as_str())];
    assert_eq!(command(&files).await, "npx dotenv -e .env.production -- next start");
}

/// PM2 gives a script with a space to bash, and looks for others in the folder of the app.
#[tokio::test]
async fn a_script_of_pm2_may_be_a_command_line_or_a_program_of_the_folder() {
    for (app, expected) in [
        ("script: 'npm run serve'", "node server.js A = \"b\""),
        ("script: 'A=b node server.js --x \"1 2\"'", "[\"node\", \"server.js\", \"--x\", \"1 2\"] A = \"b\""),
        ("script: 'cd lib && node ../server.js'", "[\"bash\", \"-c\", \"cd lib && node ../server.js\"]"),
        ("cmd: 'node server.js', port: 4000", "node server.js PORT = \"4000\""),
        ("script: './start.sh', interpreter: 'none'", "./start.sh"),
        ("script: './start.sh'", "bash start.sh"),
        ("script: './start.sh --x'", "./start.sh --x"),
    ] {
        let ecosystem = format!("module.exports = {{ apps: [{{ name: 'x', {app} }}] }}");
        let package = package(r#""scripts": { "serve": "A=b node server.js" }"#);
        let files = [
            ("ecosystem.config.js", ecosystem.as_str()),
            ("package.json", &package),
            ("server.js", SERVER),
            ("start.sh", ""),
        ];
        assert_eq!(command(&files).await, expected, "{app}");
    }
}

#[tokio::test]
async fn files_that_pm2_serves_are_served_by_hostler() {
    let ecosystem = "module.exports = { apps: [
        { name: 'api', script: 'server.js', env: { PORT: 3000 } },
        { name: 'pages', script: 'serve', cwd: 'front', env: { PM2_SERVE_PATH: './build', PM2_SERVE_SPA: 'true', PM2_SERVE_HOMEPAGE: '/index.html' } },
    ] }";
    let text = keys(&[("ecosystem.config.js", ecosystem), ("server.js", SERVER)]).await;
    assert!(!text.contains("[pools.pages]"), "{text}");
    let route =
        "match = \"pages.localhost/*\"\nstatic = { dir = \"front/build\", fallback = \"index.html\" }\n";
    assert!(text.contains(route), "{text}");
}

/// The list often begins with a program that serves nothing.
#[tokio::test]
async fn the_first_app_of_pm2_that_serves_gets_the_requests() {
    let ecosystem = "module.exports = { apps: [
        { name: 'queue', script: 'queue.js' }, { name: 'web', script: 'server.js', env: { PORT: 3000 } },
    ] }";
    let files = [("ecosystem.config.js", ecosystem), ("server.js", SERVER), ("queue.js", "")];
    let (_folder, output) = init(&files, &["--print"]).await;
    let text = output.assert_exit(0).stdout.clone();
    assert!(text.contains("match = \"*\"\npool = \"web\"\n"), "{text}");
    assert!(text.contains("match = \"queue.localhost/*\"\npool = \"queue\"\n"), "{text}");
    assert!(text.contains("If queue serves no HTTP, remove this pool"), "{text}");
    // Several instances are a cluster, also without exec_mode.
    let ecosystem = "module.exports = { apps: [
        { name: 'queue', script: 'queue.js', instances: 1 }, { name: 'web', script: 'server.js', instances: 'max' },
    ] }";
    let files = [("ecosystem.config.js", ecosystem), ("server.js", SERVER), ("queue.js", "")];
    let text = keys(&files).await;
    assert!(text.contains("match = \"*\"\npool = \"web\""), "{text}");
}

/// Such as a cron job: Hostler would run it at once, and again after each end.
#[tokio::test]
async fn an_app_of_pm2_that_is_not_started_again_and_serves_nothing_is_left_out_and_named() {
    let job = "{ name: 'bills', script: 'bills.js', autorestart: false, cron_restart: '0 0 * * *' }";
    let with = |apps: &str| format!("module.exports = {{ apps: [{apps}] }}");
    let both = with(&format!("{job}, {{ name: 'web', script: 'server.js' }}"));
    let files = [("ecosystem.config.js", both.as_str()), ("server.js", SERVER), ("bills.js", "")];
    let text = keys(&files).await;
    assert!(text.ends_with("match = \"*\"\npool = \"web\"") && !text.contains("bills"), "{text}");
    let (_folder, output) = init(&files, &[]).await;
    let named = "Look at this: The app \"bills\" of ecosystem.config.js is not in this file";
    assert!(output.assert_exit(0).stdout.contains(named), "{output:?}");
    // It may be a server all the same.
    for app in [
        job.to_owned(),
        format!(
            "{{ name: 'web', script: 'server.js' }}, {}",
            job.replace("bills.js'", "bills.js', port: 4000")
        ),
    ] {
        let files = [
            ("ecosystem.config.js", &with(&app)),
            ("server.js", &SERVER.to_owned()),
            ("bills.js", &String::new()),
        ];
        let text = keys(&files.map(|(name, text)| (name, text.as_str()))).await;
        assert!(text.contains("[pools.bills]"), "{text}");
    }
}

#[tokio::test]
async fn each_key_of_pm2_without_a_counterpart_is_named() {
    let app = "name: 'x', script: 'server.ts', env_staging: { A: 1 }, namespace: 'n', ignore_watch: ['x'], treekill: false";
    let ecosystem = format!("module.exports = {{ apps: [{{ {app} }}] }}");
    let (_folder, output) = init(&[("ecosystem.config.js", &ecosystem), ("server.ts", SERVER)], &[]).await;
    let said = output.assert_exit(0).stdout.clone();
    for expected in [
        "env_staging of PM2: these variables are not in this file.",
        "namespace of PM2: Hostler has no such key.",
        "ignore_watch of PM2: hostler run --watch",
        "PM2 runs a .ts file with bun or ts-node.",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    assert!(!said.contains("treekill"), "{said}");
}

#[tokio::test]
async fn the_home_folder_and_a_version_of_node_are_written_out() {
    let app = "{ name: 'x', script: 'server.js', cwd: '~/no-such-app', interpreter: 'node@0.0.1' }";
    let ecosystem = format!("module.exports = {{ apps: [{app}] }}");
    let (_folder, output) =
        init(&[("ecosystem.config.js", &ecosystem), ("server.js", SERVER)], &["--print"]).await;
    let text = output.assert_exit(0).stdout.clone();
    let cwd = text.lines().find(|line| line.starts_with("cwd = ")).expect(&text);
    assert!(cwd.starts_with("cwd = \"/") && cwd.ends_with("/no-such-app\""), "{cwd}");
    assert!(text.contains("\ncommand = \"node server.js\"\n"), "{text}");
    assert!(text.contains("PM2 takes node@0.0.1 from nvm"), "{text}");
}

#[tokio::test]
async fn the_web_line_of_a_procfile_becomes_a_pool() {
    writes(
        &[
            ("Procfile", "web: A=b npx next start -p $PORT\nworker: node queue.js\n"),
            ("package.json", &package(r#""dependencies": { "next": "16" }"#)),
        ],
        expect![[r#"
            [pools.shop]
            command = "node_modules/.bin/next start"
            env = { A = "b", NODE_ENV = "production" }

            [[routes]]
            match = "*"
            pool = "shop"

            [[routes]]
            match = "/_next/static/*"
            static = { dir = ".next/static", immutable = ["/*"] }
            compress = true
            rewrite = { strip_prefix = "/_next/static" }"#]],
    )
    .await;
}

#[tokio::test]
async fn a_line_of_a_procfile_for_a_shell_finds_the_programs_of_dependencies() {
    let package = package(r#""dependencies": { "prisma": "6", "next": "16" }"#);
    for line in ["prisma migrate deploy && exec node server.js", "dotenv -e .env -- next start"] {
        let procfile = format!("web: {line}\n");
        let text = keys(&[("Procfile", &procfile), ("package.json", &package)]).await;
        let command = text.lines().find(|line| line.starts_with("command = [\"sh\", \"-c\", ")).expect(&text);
        assert!(command.contains("$PWD/node_modules/.bin:$PATH") && command.contains(line), "{command}");
    }
}

/// The command is the program itself, and the package manager would run these first. A migration would be missing without a word.
#[tokio::test]
async fn what_a_package_manager_runs_before_a_script_of_pm2_or_a_procfile_is_named() {
    let scripts = r#""prestart": "node migrate.js", "start": "npm run serve", "preserve": "node seed.js", "serve": "node server.js""#;
    let package = package(&format!(r#""scripts": {{ {scripts} }}"#));
    let app = |app: &str| format!("module.exports = {{ apps: [{{ name: 'x', {app} }}] }}");
    for (name, text) in [
        ("ecosystem.config.js", app("script: 'npm', args: 'start'")),
        ("ecosystem.config.js", app("script: 'npm start'")),
        ("Procfile", "web: npm start\n".to_owned()),
    ] {
        let files = [(name, text.as_str()), ("package.json", &package), ("server.js", SERVER)];
        let (_folder, output) = init(&files, &[]).await;
        let said = output.assert_exit(0).stdout.clone();
        for (script, line) in [("prestart", "node migrate.js"), ("preserve", "node seed.js")] {
            let start = format!("Look at this: The script \"{script}\" no longer runs before each start.");
            assert!(said.lines().any(|said| said.starts_with(&start) && said.ends_with(line)), "{said}");
        }
    }
    // The package manager stays, and runs them.
    let files =
        [("ecosystem.config.js", &app("script: 'npm', args: 'start -- --x'")), ("package.json", &package)];
    let (_folder, output) = init(&files.map(|(name, text)| (name, text.as_str())), &[]).await;
    let said = output.assert_exit(0).stdout.clone();
    assert!(!said.contains("no longer runs"), "{said}");
}

/// The same as for its `start` script.
#[tokio::test]
async fn a_socket_io_app_without_an_adapter_has_one_worker_with_a_procfile_too() {
    let package = package(r#""dependencies": { "socket.io": "4" }"#);
    let files = [("Procfile", "web: node server.js\n"), ("package.json", &package), ("server.js", SERVER)];
    let text = keys(&files).await;
    assert!(text.lines().any(|line| line.starts_with("workers = 1 ")), "{text}");
}

#[tokio::test]
async fn names_and_values_of_all_kinds_give_a_file_that_loads() {
    let hostile = r#"module.exports = { apps: [
        { name: 'a"b\n[x]\u0007ä', script: 'server.js', args: ['a b', 'c"d', "e'f", ''], env: { 'A-b.c': 'x"y\n', HOSTLER_POOL: 'x', 'D': '' } },
        { name: '---', script: 'server.js', instances: '3\n', max_memory_restart: '300M\n', kill_timeout: 0 },
        { name: '---', script: 'server.js', args: ['$HOME', '&', '<b>'], instances: -1000, max_memory_restart: 'much', kill_timeout: 99999999 },
        { name: 'A_B', script: 'server.js', kill_timeout: 604800001 }, { name: 'a-b', script: 'server.js', instances: 1e9 },
    ] }"#;
    let (folder, output) = init(&[("ecosystem.config.js", hostile), ("server.js", SERVER)], &[]).await;
    output.assert_exit(0);
    run(HOSTLER, &["check"], &folder.path().join("shop")).await.assert_exit(0);
}
