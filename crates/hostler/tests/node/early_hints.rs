//! Early Hints with a real Node app and Node's own HTTP/2 client: learnt, sent while the worker computes, forgotten after a deploy.

use hostler_testkit::{eventually, run};

use super::site::{Site, configured};

/// Each page names the assets of its release. `/held` keeps the worker busy until a file is there.
const APP: &str = r#"
const fs = require('node:fs');
const inFolder = (name) => process.env.TEST_FOLDER + '/' + name;
const release = fs.existsSync(inFolder('second')) ? 2 : 1;
require('node:http').createServer((req, res) => {
  if (req.url.startsWith('/held')) while (!fs.existsSync(inFolder(req.url.slice(6))));
  res.setHeader('content-type', 'text/html');
  res.setHeader('link', `</app.${release}.css>; rel=preload; as=style`);
  if (req.url === '/login') res.setHeader('set-cookie', 'session=1');
  res.end('release ' + release);
}).listen(3000);
"#;

/// Prints the links of interim answers and the status of the final one, each at its moment.
const BROWSER: &str = r#"
const session = require('node:http2').connect(process.argv[1]);
const request = session.request({ ':authority': 'site.test', ':path': process.argv[2], 'sec-fetch-mode': 'navigate' });
request.on('headers', (head) => console.log(head[':status'], head.link));
request.on('response', (head) => console.log(head[':status']));
request.on('headers', () => require('node:fs').writeFileSync(process.argv[3], ''));
request.resume();
request.on('end', () => session.close());
"#;

/// What a browser gets that opens a page while the worker is busy. `round` names the files of this round.
async fn opens_a_page_at_a_busy_worker(site: &Site, round: &str, is_hinted: bool) -> String {
    let busy = site.ask(&format!("/held/{round}"));
    site.settles_at(1, 0).await;
    let (origin, free) = (format!("http://{}", site.address()), site.file(round));
    let folder = site.folder().to_owned();
    let hinted = site.file(&format!("{round}-hinted"));
    let seen = hinted.display().to_string();
    let browser =
        tokio::spawn(async move { run("node", &["-e", BROWSER, &origin, "/page", &seen], &folder).await });
    site.settles_at(1, 1).await;
    if is_hinted {
        // The worker is still busy: it cannot have sent this.
        eventually("the browser has a 103", async || hinted.exists().then_some(())).await;
    }
    std::fs::write(free, "").unwrap();
    let output = browser.await.unwrap();
    output.assert_exit(0);
    busy.await.unwrap().assert_status(200);
    output.stdout
}

#[tokio::test]
async fn links_are_learnt_from_a_node_app_sent_to_its_http_2_client_and_forgotten_after_a_deploy() {
    let plan = configured("");
    let file = format!(
        "[pools.app]\ncommand = 'node app.cjs'\ncwd = {:?}\nworkers = 1\nconcurrency = 1\nqueue.timeout = '1h'\n\
         [[routes]]\nmatch = '*'\npool = 'app'\nearly_hints = 'learn'\n",
        plan.folder()
    );
    std::fs::write(plan.folder().join("app.cjs"), APP).unwrap();
    std::fs::write(plan.folder().join("configured.toml"), file).unwrap();
    let site = plan.started().await;
    for _ in 0..10 {
        site.get("/login").await.assert_status(200);
    }
    let said = opens_a_page_at_a_busy_worker(&site, "a", false).await;
    assert_eq!(said, "200\n", "answers that set a cookie teach nothing");
    for _ in 0..8 {
        site.get("/page").await.assert_ok("release 1");
    }
    let said = opens_a_page_at_a_busy_worker(&site, "b", true).await;
    assert_eq!(said, "103 </app.1.css>; rel=preload; as=style\n200\n");

    site.touch("second");
    site.command(&["restart"]).await.assert_exit(0);
    site.is_ready().await;
    let said = opens_a_page_at_a_busy_worker(&site, "c", false).await;
    assert_eq!(said, "200\n", "the old assets may be gone");
    for _ in 0..8 {
        site.get("/page").await.assert_ok("release 2");
    }
    let said = opens_a_page_at_a_busy_worker(&site, "d", true).await;
    assert_eq!(said, "103 </app.2.css>; rel=preload; as=style\n200\n");
    site.stop().await;
}
