//! `hostler init` and the scripts of `package.json` and of PM2: which program they run, and what they give to it.

use hostler_testkit::run;

use super::init::{HOSTLER, SERVER, command, init, keys, package};

#[tokio::test]
async fn the_command_is_what_a_script_runs_or_npm_start_where_only_npm_can_run_it() {
    let cases = [
        (
            r#""scripts": { "start": "nodemon src/x.ts" }, "dependencies": { "nodemon": "3" }"#,
            "",
            "node_modules/.bin/nodemon src/x.ts",
        ),
        (
            r#""scripts": { "start": "dotenv -e .env -- tsx src/x.ts" }, "dependencies": { "tsx": "4" }"#,
            "",
            "npm start",
        ),
        (
            r#""scripts": { "start": "npm run serve", "serve": "npx env-cmd tsx src/x.ts" }"#,
            "node_modules/.bin/tsx",
            "npm start",
        ),
        (
            r#""scripts": { "start": "pm2-runtime start dist/x.js -i max --name api -- --port 80" }"#,
            "",
            "node dist/x.js --port 80",
        ),
        (
            r#""scripts": { "start": "node --watch-path ./src --watch --import tsx src/x.ts" }"#,
            "",
            "node --import tsx src/x.ts",
        ),
        (
            r#""scripts": { "start": "pm2 start ecosystem.config.js" }, "dependencies": { "pm2": "7" }"#,
            "",
            "node_modules/.bin/pm2 start ecosystem.config.js",
        ),
        // The name of the program is not that of the package, so it is not known before the installation where it will lie.
        (
            r#""scripts": { "start": "strapi start" }, "dependencies": { "@strapi/strapi": "5" }"#,
            "",
            "npm start",
        ),
        (
            r#""scripts": { "start": "strapi start" }, "dependencies": { "@strapi/strapi": "5" }"#,
            "node_modules/.bin/strapi",
            "node_modules/.bin/strapi start",
        ),
    ];
    for (rest, other, expected) in cases {
        let package = package(rest);
        let files = [("package.json", package.as_str()), (other, "x")];
        let files = if other.is_empty() { &files[..1] } else { &files[..] };
        assert_eq!(command(files).await, expected, "{rest}");
    }
}

#[tokio::test]
async fn the_start_script_of_a_next_app_keeps_its_variables_and_its_server() {
    let cases = [
        (
            "NODE_OPTIONS=--max-old-space-size=4096 next start -p 3001 --keepAliveTimeout 70000",
            "node_modules/.bin/next start --keepAliveTimeout 70000 NODE_OPTIONS = \"--max-old-space-size=4096\"",
        ),
        ("yarn next start -H 0.0.0.0", "node_modules/.bin/next start"),
        ("dotenv -e ../../.env -- next start -p 3001", "npm start"),
        ("tsx server.ts", "node_modules/.bin/tsx server.ts"),
        ("cross-env A=b node server.js", "node server.js A = \"b\""),
        ("next build && next start -p $PORT", "node_modules/.bin/next start"),
        (
            "prisma migrate deploy && A=b next start -p 3001 --keepAliveTimeout 70000",
            "node_modules/.bin/next start --keepAliveTimeout 70000 A = \"b\"",
        ),
        ("prisma migrate deploy && A=b node server.js", "node server.js A = \"b\""),
        ("prisma migrate deploy && dotenv -- next start", "npm start"),
        ("cd web && next start -p 3001", "npm start"),
        ("export A=b && node server.js", "npm start"),
        ("node server.js | pino-pretty", "npm start"),
        ("cat banner.txt | head -1; next start -p $PORT", "node_modules/.bin/next start"),
        ("A=b next dev", "node_modules/.bin/next start"),
        ("vercel start --debug", "node_modules/.bin/next start"),
    ];
    for (script, expected) in cases {
        let dependencies = r#""dependencies": { "next": "16", "tsx": "4", "dotenv-cli": "8" }"#;
        let package = package(&format!(r#""scripts": {{ "start": "{script}" }}, {dependencies}"#));
        assert_eq!(command(&[("package.json", &package)]).await, expected, "{script}");
    }
}

#[tokio::test]
async fn a_script_that_starts_the_server_of_a_build_gives_its_variables_and_options() {
    let kit = "import adapter from '@sveltejs/adapter-node'";
    let cases = [
        (
            "nuxt",
            "x",
            "node --env-file=.env .output/server/index.mjs",
            "node --env-file=.env .output/server/index.mjs",
        ),
        ("nuxt", "x", "A=b nuxt preview", "node .output/server/index.mjs"),
        ("@sveltejs/kit", kit, "node -r dotenv/config ./build/", "node -r dotenv/config ./build/"),
        ("@sveltejs/kit", kit, "node own.js", "node own.js"),
        ("@sveltejs/kit", kit, "node missing.js", "node build"),
        (
            "@react-router/serve",
            "x",
            "NODE_OPTIONS=--import=./instrument.mjs react-router-serve ./build/server/index.js",
            "node_modules/.bin/react-router-serve ./build/server/index.js NODE_OPTIONS = \"--import=./instrument.mjs\"",
        ),
        (
            "@nestjs/core",
            "x",
            "node --enable-source-maps dist/main.js",
            "node --enable-source-maps dist/main.js",
        ),
        (
            "@nestjs/core",
            "x",
            "NODE_OPTIONS=--max-old-space-size=4096 node dist/src/main",
            "node dist/src/main.js NODE_OPTIONS = \"--max-old-space-size=4096\"",
        ),
        ("@nestjs/core", "x", "nest start", "node dist/main.js"),
        (
            "@nestjs/core",
            "x",
            "typeorm migration:run && node dist/apps/api/main",
            "node dist/apps/api/main.js",
        ),
        ("nuxt", "x", "prisma migrate deploy && node own.js", "node own.js"),
    ];
    for (dependency, config, script, expected) in cases {
        let rest =
            format!(r#""scripts": {{ "start": "{script}" }}, "dependencies": {{ "{dependency}": "1" }}"#);
        let files = [
            ("package.json", package(&rest)),
            ("svelte.config.js", config.to_owned()),
            ("node_modules/.bin/react-router-serve", "x".to_owned()),
            ("own.js", "x".to_owned()),
        ];
        let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
        let written = command(&files).await;
        assert_eq!(written.split(" ADDRESS").next().unwrap(), expected, "{dependency}: {script}");
    }
}

/// The command of a framework is only its server. A migration in the script would be missing without a word.
#[tokio::test]
async fn what_a_start_script_does_besides_its_server_is_named() {
    let next = r#""dependencies": { "next": "16" }"#;
    let cases = [
        (
            r#""start": "prisma migrate deploy && next start""#,
            next,
            Some("prisma migrate deploy && next start"),
        ),
        (
            r#""prestart": "prisma migrate deploy", "start": "next start""#,
            next,
            Some("prisma migrate deploy"),
        ),
        (
            r#""start:prod": "npm run up", "up": "typeorm migration:run; node dist/main""#,
            r#""workspaces": ["libs/*"], "dependencies": { "@nestjs/core": "11" }"#,
            Some("typeorm migration:run; node dist/main"),
        ),
        (r#""start": "next start -p $PORT""#, next, None),
        // The package manager runs all of it.
        (r#""prestart": "a", "start": "b && node server.js""#, r#""main": "server.js""#, None),
    ];
    for (scripts, rest, named) in cases {
        let package = package(&format!(r#""scripts": {{ {scripts} }}, {rest}"#));
        let (_folder, output) = init(&[("package.json", &package)], &[]).await;
        let said = output.assert_exit(0).stdout.clone();
        let look: Vec<_> = said.lines().filter(|line| line.starts_with("Look at this: The ")).collect();
        match named {
            Some(text) => assert!(look.len() == 1 && look[0].ends_with(&format!(": {text}")), "{said}"),
            None => assert!(look.is_empty(), "{said}"),
        }
    }
}

/// Under npm alone there was one process. Each worker would migrate the database, several of them at a time.
#[tokio::test]
async fn what_each_worker_does_again_because_the_package_manager_stays_is_named() {
    let pm2 = "module.exports = { apps: [{ name: 'x', script: 'npm', args: 'start' }] }";
    for (scripts, named) in [
        (
            r#""start": "prisma migrate deploy && node server.js""#,
            Some("prisma migrate deploy && node server.js"),
        ),
        (r#""prestart": "node up.js", "start": "a; node server.js""#, Some("node up.js; a; node server.js")),
        (r#""start": "cd lib && node ../server.js""#, None),
        (r#""start": "node $FILE""#, None),
    ] {
        let package = package(&format!(r#""scripts": {{ {scripts} }}"#));
        for more in [("README.md", ""), ("ecosystem.config.js", pm2), ("Procfile", "web: npm start\n")] {
            let files = [("package.json", package.as_str()), ("server.js", ""), more];
            let (_folder, output) = init(&files, &[]).await;
            let said = output.assert_exit(0).stdout.clone();
            let look = said.lines().find(|line| line.starts_with("Look at this: Each worker does this"));
            match named {
                Some(text) => {
                    assert!(look.is_some_and(|look| look.ends_with(&format!(": {text}"))), "{said}")
                }
                None => assert_eq!(look, None, "{said}"),
            }
        }
    }
}

/// PM2 runs it by itself, and gives a text without an ending to node.
#[tokio::test]
async fn a_compiled_program_of_pm2_is_not_given_to_node() {
    for (content, expected, bind) in
        [("\u{7f}ELF\0\0", "./api", true), ("#!/usr/bin/env node\n", "node api PORT = \"4000\"", false)]
    {
        let ecosystem = "module.exports = [{ name: 'x', script: './api', env: { PORT: 4000 } }]";
        let files = [("ecosystem.config.cjs", ecosystem), ("api", content)];
        assert_eq!(command(&files).await, expected);
        let text = keys(&files).await;
        assert_eq!(text.lines().any(|line| line.starts_with("bind = \"port\"")), bind, "{text}");
    }
    let ecosystem = "module.exports = [{ name: 'x', script: 'app.rb' }]";
    assert_eq!(command(&[("ecosystem.config.cjs", ecosystem), ("app.rb", "")]).await, "ruby app.rb");
}

/// The stage in which init runs is often the value in the file of PM2, too.
#[tokio::test]
async fn node_env_of_a_file_of_pm2_stays_also_if_init_has_the_same() {
    let ecosystem =
        "module.exports = [{ name: 'x', script: 'server.js', env: { NODE_ENV: process.env.NODE_ENV } }]";
    let (folder, _) = init(&[("ecosystem.config.cjs", ecosystem), ("server.js", SERVER)], &["--print"]).await;
    let command = "NODE_ENV=staging exec \"$0\" init --print";
    let output = run("sh", &["-c", command, HOSTLER], &folder.path().join("shop")).await;
    let text = output.assert_exit(0).stdout.clone();
    assert!(text.contains("env = { NODE_ENV = \"staging\" }"), "{text}");
}

#[tokio::test]
async fn what_each_worker_does_again_in_a_command_line_of_pm2_is_named() {
    for (line, is_named) in [("node up.js && node server.js", true), ("cd lib && node ../server.js", false)] {
        let ecosystem = format!("module.exports = [{{ name: 'x', script: '{line}' }}]");
        let (_folder, output) = init(&[("ecosystem.config.cjs", &ecosystem), ("server.js", "")], &[]).await;
        let said = output.assert_exit(0).stdout.clone();
        assert_eq!(said.contains("Look at this: Each worker does this"), is_named, "{said}");
    }
}

#[tokio::test]
async fn the_package_manager_is_that_of_package_json_or_of_the_lock_file() {
    let named = r#""packageManager": "pnpm@10.4.1""#;
    for (rest, lock, expected) in [
        (named, "README.md", "pnpm is the package manager (packageManager)"),
        (named, "package-lock.json", "pnpm is the package manager (packageManager)"),
        (r#""main": "a.js""#, "bun.lock", "bun is the package manager (bun.lock)"),
        (r#""main": "a.js""#, "README.md", "there is no lock file, so npm is the package manager"),
    ] {
        let (_folder, output) = init(&[("package.json", &package(rest)), (lock, "")], &["--print"]).await;
        let text = output.assert_exit(0).stdout.clone();
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn an_app_is_built_before_its_first_start_unless_that_is_done_or_not_needed() {
    let cases = [
        ("strapi start", "src/index.ts", true),
        ("node dist/x.js", "src/x.ts", true),
        ("node dist/x.js", "dist/x.js", false),
        ("tsx src/x.ts", "src/x.ts", false),
        ("node -r dotenv/config dist/x.js", "dist/x.js", false),
        ("node -r dotenv/config dist/x.js", "src/x.ts", true),
        ("node --import tsx src/x.ts", "src/x.ts", false),
    ];
    for (start, file, is_named) in cases {
        let scripts = format!(r#""scripts": {{ "start": "{start}", "build": "tsc" }}"#);
        let files = [("package.json", package(&scripts)), (file, "x".to_owned())];
        let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
        let (_folder, output) = init(&files, &[]).await;
        let said = output.assert_exit(0).stdout.clone();
        assert_eq!(said.contains("\n  npm run build\n"), is_named, "{start}: {said}");
    }
}

/// init runs before the installation, and the file must be right after it.
#[tokio::test]
async fn the_program_of_a_dependency_will_lie_where_the_package_manager_puts_it() {
    let app = package(r#""scripts": { "start": "next start" }, "dependencies": { "next": "16" }"#);
    let root = r#"{ "workspaces": ["apps/*"] }"#;
    for (root, lock, folder) in
        [(root, "package-lock.json", "../../"), (root, "yarn.lock", ""), ("{}", "package-lock.json", "")]
    {
        let files = [("package.json", root), (lock, ""), ("apps/web/package.json", app.as_str())];
        let (_folder, output) = init(&files, &["apps/web", "--print"]).await;
        let command = format!("\ncommand = \"{folder}node_modules/.bin/next start\"\n");
        assert!(output.assert_exit(0).stdout.contains(&command), "{output:?}");
    }
}
