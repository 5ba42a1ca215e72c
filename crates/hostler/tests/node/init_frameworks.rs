//! `hostler init` for Angular, whose scripts start no server of the app, for builds in other folders, and for programs that work by themselves.

use expect_test::expect;

use super::init::{SERVER, command, init, keys, package, writes};

#[tokio::test]
async fn an_angular_app_is_its_build_and_not_the_development_server() {
    let scripts = r#""scripts": { "start": "ng serve", "build": "ng build", "serve:ssr:shop": "node dist/shop/server/server.mjs" }"#;
    let with_server = package(&format!(
        r#"{scripts}, "dependencies": {{ "@angular/core": "21", "@angular/ssr": "21", "express": "5" }}"#
    ));
    writes(
        &[("package.json", &with_server), ("node_modules/.bin/ng", "")],
        expect![[r#"
            [pools.shop]
            command = "node dist/shop/server/server.mjs"
            env.NG_TRUST_PROXY_HEADERS = "x-forwarded-for,x-forwarded-host,x-forwarded-proto"
            env.NODE_ENV = "production"

            [[routes]]
            match = "*"
            pool = "shop""#]],
    )
    .await;
    let pages = package(r#""scripts": { "start": "ng serve" }, "dependencies": { "@angular/core": "21" }"#);
    let builds = [
        (
            r#"{ "projects": { "ui": { "architect": { "build": { "builder": "@angular/build:application" } } } } }"#,
            "dist/ui/browser",
        ),
        (
            r#"{ "projects": { "ui": { "architect": { "build": { "builder": "@angular-devkit/build-angular:browser", "options": { "outputPath": "made/" } } } } } }"#,
            "made",
        ),
        ("{ // no JSON", "dist/shop/browser"),
    ];
    for (angular, dir) in builds {
        let text = keys(&[("package.json", &pages), ("angular.json", angular)]).await;
        assert!(
            text.contains(&format!(r#"static = {{ dir = "{dir}", fallback = "index.html" }}"#)),
            "{text}"
        );
        assert!(!text.contains("command"), "{text}");
    }
    let own =
        package(r#""scripts": { "start": "node server.js" }, "dependencies": { "@angular/core": "21" }"#);
    assert_eq!(command(&[("package.json", &own), ("server.js", SERVER)]).await, "node server.js");
}

#[tokio::test]
async fn an_angular_app_that_only_prerenders_has_no_server() {
    let package = package(r#""dependencies": { "@angular/core": "21", "@angular/ssr": "21" }"#);
    let angular = r#"{ "projects": { "ui": { "architect": { "build": { "options": { "outputMode": "static" } } } } } }"#;
    let files = [("package.json", package.as_str()), ("angular.json", angular)];
    let text = keys(&files).await;
    assert!(text.contains(r#"static = { dir = "dist/ui/browser", fallback = "index.html" }"#), "{text}");
    assert!(!text.contains("command"), "{text}");
    let built = [&files[..], &[("dist/ui/browser/index.csr.html", "")]].concat();
    let text = keys(&built).await;
    assert!(text.contains(r#"fallback = "index.csr.html""#), "{text}");
}

#[tokio::test]
async fn a_program_that_works_by_itself_gets_one_worker() {
    let n8n = package(r#""scripts": { "start": "n8n start" }, "dependencies": { "n8n": "2" }"#);
    writes(
        &[("package.json", &n8n), ("node_modules/.bin/n8n", "")],
        expect![[r##"
            [pools.shop]
            command = "node_modules/.bin/n8n start"
            env = { NODE_ENV = "production" }
            workers = 1                         # each worker would run the triggers of all workflows
            port = 5678                         # n8n opens the port of its task broker before its own

            [[routes]]
            match = "*"
            pool = "shop""##]],
    )
    .await;
    let uptime = r#"{ "name": "uptime-kuma", "scripts": { "start": "node server/server.js" }, "dependencies": { "socket.io": "4" } }"#;
    let text = keys(&[("package.json", uptime), ("server/server.js", SERVER)]).await;
    assert_eq!(text.matches("\nworkers = 1 ").count(), 1, "{text}");
}

/// Workers of Hostler are no cluster of Node.
#[tokio::test]
async fn the_adapter_of_a_cluster_does_not_connect_the_workers_of_a_socket_io_app() {
    let dependencies = r#""dependencies": { "socket.io": "4", "@socket.io/cluster-adapter": "0.3" }"#;
    let package = package(&format!(r#""scripts": {{ "start": "node server.js" }}, {dependencies}"#));
    let files = [("package.json", package.as_str()), ("server.js", SERVER)];
    let text = keys(&files).await;
    assert!(text.contains("\nworkers = 1 "), "{text}");
    let pm2 = "module.exports = { apps: [{ name: 'x', script: 'server.js', instances: 4 }] }";
    for more in [("README.md", ""), ("ecosystem.config.js", pm2)] {
        let (_folder, output) = init(&[files[0], files[1], more], &[]).await;
        let said = output.assert_exit(0).stdout.clone();
        assert!(said.contains("Look at this: @socket.io/cluster-adapter carries messages only"), "{said}");
    }
}

#[tokio::test]
async fn the_files_are_in_the_folder_that_the_configuration_of_the_framework_names() {
    let kit = |options: &str| {
        format!("import adapter from '@sveltejs/adapter-static'; x({{ adapter: adapter({{ {options} }}) }})")
    };
    let cases = [
        ("vite", "vite.config.ts", "x({ build: { outDir: './made/' } })".to_owned(), "dir = \"made\""),
        (
            "vite",
            "vite.config.ts",
            "x({ root: 'ui', build: { outDir: '../made' } })".to_owned(),
            "dir = \"made\"",
        ),
        ("vite", "vite.config.ts", "x({ root: './ui' })".to_owned(), "dir = \"ui/dist\""),
        ("astro", "astro.config.mjs", "x({ outDir: './made' })".to_owned(), "dir = \"made\""),
        (
            "@react-router/dev",
            "react-router.config.ts",
            "x({ ssr: false, buildDirectory: 'made' })".to_owned(),
            "dir = \"made/client\", fallback = \"index.html\"",
        ),
        (
            "@sveltejs/adapter-static",
            "svelte.config.js",
            kit("pages: 'made', fallback: '200.html'"),
            "dir = \"made\", fallback = \"200.html\"",
        ),
        (
            "@sveltejs/adapter-static",
            "svelte.config.js",
            kit("fallback: '404.html'"),
            "dir = \"build\", not_found = \"404.html\"",
        ),
    ];
    for (dependency, file, text, expected) in cases {
        let package = package(&format!(r#""dependencies": {{ "{dependency}": "1", "@sveltejs/kit": "2" }}"#));
        let package = match dependency {
            "@sveltejs/adapter-static" => package,
            _ => package.replace(r#", "@sveltejs/kit": "2""#, ""),
        };
        let keys = keys(&[("package.json", &package), (file, &text)]).await;
        assert!(keys.contains(expected), "{text}: {keys}");
    }
    let router = package(r#""dependencies": { "@react-router/serve": "7" }"#);
    let config = "x({ buildDirectory: './made', serverBuildFile: 'app.js' })";
    let keys = keys(&[("package.json", &router), ("react-router.config.ts", config)]).await;
    for expected in ["react-router-serve ./made/server/app.js\"", "dir = \"made/client\""] {
        assert!(keys.contains(expected), "{keys}");
    }
}

/// Whether init says that Hostler would not find the pages.
async fn warns_of_paths(files: &[(&str, &str)]) -> bool {
    let (_folder, output) = init(files, &[]).await;
    output.assert_exit(0);
    output.stdout.contains("Look at this: Hostler serves /about only as about/index.html.")
}

#[tokio::test]
async fn pages_that_hostler_would_not_find_are_named() {
    let kit = package(r#""dependencies": { "@sveltejs/kit": "2", "@sveltejs/adapter-static": "3" }"#);
    let config =
        ("svelte.config.js", "import adapter from '@sveltejs/adapter-static'; x({ adapter: adapter() })");
    assert!(warns_of_paths(&[("package.json", &kit), config]).await);
    let layout = ("src/routes/+layout.ts", "export const trailingSlash = 'always';");
    assert!(!warns_of_paths(&[("package.json", &kit), config, layout]).await);
    let astro = package(r#""dependencies": { "astro": "5" }"#);
    assert!(
        warns_of_paths(&[("package.json", &astro), ("astro.config.mjs", "x({ build: { format: 'file' } })")])
            .await
    );
    assert!(!warns_of_paths(&[("package.json", &astro), ("astro.config.mjs", "x({})")]).await);
}

#[tokio::test]
async fn the_path_for_which_pages_are_built_is_named() {
    for (dependency, file, text) in [
        ("vite", "vite.config.ts", "x({ base: '/docs/' })"),
        ("astro", "astro.config.mjs", "x({ base: 'docs' })"),
        ("next", "next.config.js", "module.exports = { output: 'export', basePath: '/docs' }"),
    ] {
        let package = package(&format!(r#""dependencies": {{ "{dependency}": "1" }}"#));
        for (text, is_named) in [(text.to_owned(), true), (text.replace("docs", ""), false)] {
            let (_folder, output) = init(&[("package.json", &package), (file, &text)], &[]).await;
            let said = output.assert_exit(0).stdout.clone();
            let named =
                r#"write match = "/docs/*" in their route, and rewrite = { strip_prefix = "/docs" }."#;
            assert_eq!(said.contains(named), is_named, "{text}: {said}");
            assert_eq!(said.contains("The pages are built for"), is_named, "{text}: {said}");
        }
    }
}

#[tokio::test]
async fn the_path_of_pages_of_nuxt_and_of_create_react_app_is_named() {
    let nuxt = package(r#""scripts": { "build": "nuxt generate" }, "dependencies": { "nuxt": "4" }"#);
    let react = |homepage: &str| {
        package(&format!(r#""homepage": "{homepage}", "dependencies": {{ "react-scripts": "5" }}"#))
    };
    for (package, config, is_named) in [
        (nuxt.clone(), "x({ app: { baseURL: '/docs/' } })", true),
        (nuxt.clone(), "x({ app: { head: {} }, runtimeConfig: { public: { baseURL: '/docs' } } })", false),
        (nuxt, "", false),
        (react("https://example.com/docs"), "", true),
        (react("/docs/"), "", true),
        (react("https://example.com"), "", false),
        (react("."), "", false),
    ] {
        let (_folder, output) = init(&[("package.json", &package), ("nuxt.config.ts", config)], &[]).await;
        let said = output.assert_exit(0).stdout.clone();
        let named = r#"write match = "/docs/*" in their route, and rewrite = { strip_prefix = "/docs" }."#;
        assert_eq!(said.contains(named), is_named, "{package} {config}: {said}");
        assert_eq!(said.contains("The pages are built for"), is_named, "{package} {config}: {said}");
    }
}

#[tokio::test]
async fn a_framework_on_vite_with_a_server_is_not_taken_for_pages() {
    let scripts = r#""scripts": { "dev": "vite dev", "build": "vite build" }"#;
    let of = |dependencies: &str| {
        package(&format!(r#"{scripts}, "devDependencies": {{ "vite": "7", {dependencies} }}"#))
    };
    let nitro = of(r#""@tanstack/react-start": "1", "nitro": "3""#);
    assert_eq!(command(&[("package.json", &nitro)]).await, "node .output/server/index.mjs");
    let (_folder, output) = init(&[("package.json", &of(r#""@tanstack/react-start": "1""#))], &[]).await;
    let said = output.assert_exit(0).stdout.clone();
    assert!(said.contains("Look at this: The program is not known"), "{said}");
    let qwik = of(r#""@qwik.dev/router": "2""#).replace("\"dev\"", "\"start\"");
    let (_folder, output) = init(&[("package.json", &qwik)], &[]).await;
    let said = output.assert_exit(0).stdout.clone();
    assert!(said.contains("Look at this: The server of Vite is for development."), "{said}");
}

/// `output: "standalone"` of Next.js has the folders of the workspace, and init runs before the build.
#[tokio::test]
async fn the_standalone_server_of_an_app_in_a_workspace_lies_below_its_folder() {
    let next = package(r#""dependencies": { "next": "16" }"#);
    let config = ("apps/web/next.config.js", "module.exports = { output: 'standalone' }");
    let app = [("apps/web/package.json", next.as_str()), config];
    for text in [r#"{ "workspaces": ["apps/*"] }"#, "{}"] {
        let files = [&app[..], &[("package.json", text)]].concat();
        let (_folder, output) = init(&files, &["apps/web", "--print"]).await;
        let below = if text == "{}" { "" } else { "apps/web/" };
        let command = format!("\ncommand = \"node .next/standalone/{below}server.js\"\n");
        assert!(output.assert_exit(0).stdout.contains(&command), "{output:?}");
    }
}

#[tokio::test]
async fn an_app_of_nuxt_that_only_generates_pages_has_no_server() {
    let of = |build: &str| {
        package(&format!(r#""scripts": {{ "build": "{build}" }}, "dependencies": {{ "nuxt": "4" }}"#))
    };
    writes(
        &[("package.json", &of("nuxt generate"))],
        expect![[r#"
            [[routes]]
            match = "*"
            static = { dir = ".output/public", fallback = "200.html" }
            compress = true"#]],
    )
    .await;
    let config = ("nuxt.config.ts", "x({ nitro: { preset: 'static' } })");
    assert_eq!(command(&[("package.json", &of("nuxt build")), config]).await, "");
    let app = of("prisma generate && nuxt build");
    assert_eq!(command(&[("package.json", &app)]).await, "node .output/server/index.mjs");
}
