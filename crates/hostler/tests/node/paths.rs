//! Paths that frameworks read in other ways than routes do: none of them bypasses a route.

use std::path::Path;

use super::apps::next_app;
use super::site::{Plan, Site, app, configured, repository};

const READERS: [&str; 12] = [
    "express.test",
    "koa.test",
    "fastify.test",
    "fastify4.test",
    "hono.test",
    "url.test",
    "request-url.test",
    "decoded-url.test",
    "decoded.test",
    "normalised.test",
    "windows.test",
    "merged.test",
];

/// Other notations of `/admin/x`, or of paths that a framework takes for it. `@` is the guarded segment.
const HOSTILE: &[&str] = &[
    "/x\\..\\@/x",
    "/\\@/x",
    "\\@/x",
    "/@\\x",
    "//@/x",
    "///@/x",
    "//host/@/x",
    "http://site.test/@/x",
    "http://site.test//@/x",
    "http://site.test/\\@/x",
    "/x/../@/x",
    "/x/..//@/x",
    "/x/..;/@/x",
    "/x;/../@/x",
    "/x/%2e%2e/@/x",
    "/x/.%2E/@/x",
    "/x/%2e%2e%2f@/x",
    "/./@/x",
    "/.//@/x",
    "/%2e/@/x",
    "/..%2f@/x",
    "/..%5c@/x",
    "/%2F@/x",
    "/%5C@/x",
    "/x%2F..%2F@/x",
    "/x%2f%2e%2e%2f@%2fx",
    "/x%5c..%5c@%5cx",
    "/@%2Fx",
    "/@%5cx",
    "/@;a/x",
    "/@;a=b",
    "/@/;/x",
    "/@/../x",
    "/@/..",
    "/@/%2e%2e/x",
    "/@/%2e%2e%2fx",
    "/@/%2e%2e%2fx/..",
    "/@/..%2f",
    "/@/..%5cx",
    "/@/x/../../y",
    "/@//../../y",
    "/@//..",
    "/x//@/../@/x",
    "/x/../@/../y",
    "/x/../@/..%2fy",
    "/@%00/x",
    "/@%20/x",
    "/@%09/x",
    "/@%3Bx",
    "/@%3Fx",
    "/@%23x",
    "/@#x",
    "/@?x",
    "/@/x?y=/../z",
    "/@.",
    "/@/.",
    "/@|x",
    "/@^/x",
    "/{@}/x",
    "/@\t/x",
    "/\t/@/x",
    "/\u{a0}/@/x",
    "/\u{ff0f}@/x",
    "/%c0%af@/x",
    "/%ef%bc%8f@/x",
];

/// The body of the answer, which may be a refusal.
async fn read(site: &Site, reader: &str, target: &str) -> String {
    let mut client = site.connect().await;
    client
        .send(format!(
            "GET {target} HTTP/1.1\r\nHost: site.test\r\nX-Reader: {reader}\r\nConnection: close\r\n\r\n"
        ))
        .await;
    client.answer().await.text()
}

/// A site with this command below a folder, and a route that guards the paths below a segment.
fn guarded(command: &str, cwd: &Path, segment: &str) -> Plan {
    configured(&format!(
        "[pools.app]\ncommand = '{command}'\nworkers = 1\ncwd = '{}'\n[[routes]]\nmatch = '/{segment}/*'\n\
        respond = {{ status = 403, body = 'no' }}\n[[routes]]\nmatch = '*'\npool = 'app'\n",
        cwd.display()
    ))
}

/// How many of the hostile paths lead a framework to the guarded pages.
async fn led(site: &Site, reader: &str, segment: &str, sign: &str) -> Vec<String> {
    let mut led = Vec::new();
    // Express and others ignore the case of letters.
    let capital = format!("{}{}", segment[..1].to_uppercase(), &segment[1..]);
    for hostile in HOSTILE.iter().chain(&["/@/x", "/@"]) {
        for segment in [segment, &capital] {
            let target = hostile.replace('@', segment);
            if read(site, reader, &target).await.contains(sign) {
                led.push(target);
            }
        }
    }
    led
}

#[tokio::test]
async fn no_frameworks_path_parsing_bypasses_a_route() {
    let open = app("readers.cjs").started().await;
    let apps = repository().join("crates/hostler/tests/node/apps");
    let site = guarded("node readers.cjs", &apps, "admin").started().await;
    for reader in READERS {
        assert!(read(&open, reader, "/admin/x").await.contains("ADMIN"), "{reader}");
        assert!(!read(&open, reader, "/x/admin").await.contains("ADMIN"), "{reader}");
        assert!(read(&site, reader, "/admin/x").await.contains("no"), "{reader}");
        let open_to = led(&open, reader, "admin", "ADMIN").await;
        assert!(open_to.len() > 5, "without a route to guard it, {reader} is led to it by some: {open_to:?}");
        assert_eq!(led(&site, reader, "admin", "ADMIN").await, Vec::<String>::new(), "{reader}");
        assert!(read(&site, reader, "/a%20b/c%2Fd;e").await.contains("/c"), "{reader} gets what is harmless");
    }
}

#[tokio::test]
async fn nexts_path_parsing_bypasses_no_route() {
    let plan = guarded("npx next start -p 3000", next_app(), "api");
    let site = plan.env("NODE_ENV", "production").started().await;
    assert!(read(&site, "", "/").await.contains("Hello from Next.js"));
    for hostile in HOSTILE {
        let target = hostile.replace('@', "api").replace("api/x", "api/who").replace("api%2fx", "api%2fwho");
        let answer = read(&site, "", &target).await;
        assert!(!answer.contains("\"app\":\"next\""), "{target}: {answer}");
    }
}
