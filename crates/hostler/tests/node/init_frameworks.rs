//! `hostler init` for Angular, whose scripts start no server of the app, and for programs that work by themselves.

use expect_test::expect;

use super::init::{SERVER, command, keys, package, writes};

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
