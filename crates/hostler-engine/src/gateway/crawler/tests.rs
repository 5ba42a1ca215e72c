//! Which programs count as crawlers, and under which name. The package crawler-user-agents has most of the `User-Agent`s.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;

use hostler_wire::{Limits, RequestHead};
use serde::Deserialize;

use super::*;

/// What people have in their hands. None of them may wait behind crawlers.
const PEOPLE: &str = include_str!("people.txt");
/// Crawlers that no list may have, because their names are also those of other things, and that say nothing else about themselves.
const UNKNOWN: &[&str] = &[
    "AP3A\\.240617\\.008",
    "Adventurer",
    "Bluesky\\/",
    "Charlotte",
    "Dlc\\/",
    "Fetch\\/",
    "Hello World",
    "Magellan",
    "MetaIAB Facebook",
    "Optimizer\\)",
    "Readable\\/",
    "Sonic",
    "Tumblr\\/",
    "coccoc",
    "mail\\.ru",
    "upday\\/",
];

/// One entry of the package.
#[derive(Deserialize)]
struct PackageEntry {
    pattern: String,
    instances: Vec<String>,
    tags: Vec<String>,
}

/// The entries of the package. `None` if it is missing; the test then prints that it is skipped.
fn entries() -> Option<Vec<PackageEntry>> {
    let package = "../../node_modules/crawler-user-agents/crawler-user-agents.json";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(package);
    let Ok(text) = std::fs::read_to_string(&file) else {
        // Not eprintln!, because the test harness captures its output when a test passes, and a skip must be visible.
        let line = format!("!!! SKIPPED: {} is missing (npm install)\n", file.display());
        let _ = std::io::stderr().write_all(line.as_bytes());
        return None;
    };
    Some(serde_json::from_str(&text).unwrap())
}

impl PackageEntry {
    fn is_crawler(&self) -> bool {
        !self.tags.iter().any(|tag| ["http-library", "browser-automation", "monitoring"].contains(&&**tag))
    }
}

#[test]
fn crawlers_are_known_by_the_name_that_they_give() {
    for (user_agent, expected) in [
        ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", Some("Googlebot")),
        (
            "Mozilla/5.0 (Linux; Android 6.0.1) Chrome/130.0 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            Some("Googlebot"),
        ),
        ("Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", Some("bingbot")),
        (
            "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
            Some("GPTBot"),
        ),
        ("Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)", Some("ClaudeBot")),
        ("Mozilla/5.0 (compatible; Baiduspider/2.0)", Some("Baiduspider")),
        (
            "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
            Some("Slurp"),
        ),
        ("Mozilla/5.0 (compatible; YandexImages/3.0; +http://yandex.com/bots)", Some("YandexImages")),
        ("CCBot/2.0 (https://commoncrawl.org/faq/)", Some("CCBot")),
        ("Mozilla/5.0 (compatible; Example/3.0; +https://example.org/about)", Some("Example")),
        (
            "Mozilla/5.0 (X11) Chrome/130.0 Safari/537.36 (+https://www.example.org/about)",
            Some("example.org"),
        ),
        ("Mozilla/5.0 (compatible; +http://)", None),
        ("curl/8.5.0", None),
        ("", None),
    ] {
        assert_eq!(name(user_agent), expected, "{user_agent}");
    }
}

fn of_lines(user_agent: &[u8]) -> Option<String> {
    let mut head = RequestHead::default();
    let lines = [b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: ", user_agent, b"\r\n\r\n"].concat();
    head.parse(&lines, &Limits::default()).unwrap();
    of(&head.fields).map(Cow::into_owned)
}

#[test]
fn a_byte_that_is_no_utf_8_hides_no_crawler() {
    assert_eq!(of_lines(b"Mozilla/5.0 (compatible; GPTBot/1.2) \xff").as_deref(), Some("GPTBot"));
    assert_eq!(of_lines(b"facebookexternalhit/1.1 \xe9").as_deref(), Some("facebookexternalhit"));
    assert_eq!(of_lines(b"Mozilla/5.0 (X11) \xff Firefox/140.0"), None);
}

#[test]
fn a_long_name_is_cut() {
    let name = format!("bot{}", "é".repeat(4000));
    let cut = of_lines(format!("{name}/1.0").as_bytes()).unwrap();
    assert!(cut.chars().count() == LONGEST && name.starts_with(&cut), "{cut}");
}

#[test]
fn a_crawler_is_found_behind_words_that_name_none() {
    for before in [
        "x/botbot",
        "http://example.com/bot",
        "x/bot http://example.com/bot CUBOT_X19 Better Uptime Bot",
        "Watchbot monitoring robot",
    ] {
        assert_eq!(name(&format!("{before} ExampleBot/1.0 CUBOT")), Some("ExampleBot"), "{before}");
    }
}

#[test]
fn the_cost_of_a_user_agent_grows_with_its_length_and_not_with_the_square_of_it() {
    prepare(true);
    for piece in ["bot", "//bot", "CUBOT ", "x/bot ", "CUBOT http://bot "] {
        let user_agent = format!("x/{}", piece.repeat(64_000 / piece.len()));
        let mut looked_at = 0;
        let found = by_part_of(
            |user_agent, at| {
                let word = word(user_agent, at);
                looked_at += word.len();
                word
            },
            &user_agent,
        );
        assert_eq!((found, name(&user_agent)), (None, None), "{piece}");
        assert!(looked_at <= user_agent.len(), "{piece:?}: {looked_at} of {} bytes", user_agent.len());
    }
}

#[test]
fn crawlers_whose_names_do_not_say_it_are_in_the_list() {
    for (user_agent, expected) in [
        ("facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", "facebookexternalhit"),
        ("facebookexternalhit/1.1", "facebookexternalhit"),
        ("meta-externalagent/1.1", "meta-externalagent"),
        ("Mozilla/5.0 (compatible; Netcraft Web Server Survey)", "Netcraft Web Server Survey"),
        ("Mozilla/5.0 (compatible; heritrix/3.4.0 +http://example.org)", "heritrix"),
        ("findlinks/2.6 (+http://wortschatz.uni-leipzig.de/findlinks/)", "findlinks"),
        ("binlar_2.6.3 binlar2.6.3@unspecified.mail", "binlar"),
        ("Mozilla/5.0 (X11) Chrome/49.0 Safari/537.36 GOOGLE FAVICON", "Google Favicon"),
        ("GoogleOther", "GoogleOther"),
        (
            "Mozilla/5.0 (Linux; Android 6.0.1) Chrome/144.0 Mobile Safari/537.36 (compatible; GoogleOther)",
            "GoogleOther",
        ),
        (
            "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GoogleOther) Chrome/144.0",
            "GoogleOther",
        ),
    ] {
        assert_eq!(name(user_agent), Some(expected), "{user_agent}");
    }
}

#[test]
fn clients_of_apis_webhooks_and_monitors_are_no_crawlers() {
    for user_agent in [
        "axios/1.7.9",
        "okhttp/4.12.0",
        "Go-http-client/2.0",
        "python-requests/2.32.3",
        "node-fetch/1.0 (+https://github.com/bitinn/node-fetch)",
        "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
        "Slack-ImgProxy (+https://api.slack.com/robots)",
        "Mozilla/5.0 (compatible; Let's Encrypt validation server; +https://www.letsencrypt.org)",
        "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/143.0.0.0 Safari/537.36",
        "Pingdom.com_bot_version_1.4_(http://www.pingdom.com/)",
        "Prometheus/3.0.1",
        "Uptime-Kuma/1.23.16",
        "kube-probe/1.31",
    ] {
        assert_eq!(name(user_agent), None, "{user_agent}");
    }
    let renders = "Mozilla/5.0 (X11) HeadlessChrome/143.0.0.0 Safari/537.36 (compatible; ExampleBot/1.0)";
    assert_eq!(name(renders), Some("ExampleBot"), "a crawler in a browser without a window is one");
}

#[test]
fn no_browser_of_people_is_a_crawler() {
    let people = || PEOPLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert!(people().count() > 60);
    for user_agent in people() {
        assert_eq!(name(user_agent), None, "{user_agent}");
    }
}

#[test]
fn every_crawler_of_the_package_is_known() {
    let Some(entries) = entries() else { return };
    let mut by_tag: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut unknown = BTreeSet::new();
    for entry in entries.iter().filter(|entry| entry.is_crawler()) {
        for user_agent in &entry.instances {
            if KNOWN.others.find_whole(user_agent).next().is_some() {
                continue;
            }
            let (known, all) = by_tag.entry(&entry.tags[0]).or_default();
            *known += usize::from(name(user_agent).is_some());
            *all += 1;
            if name(user_agent).is_none() {
                unknown.insert(&*entry.pattern);
            }
        }
    }
    println!("{by_tag:?}");
    assert_eq!(by_tag.len(), 9, "{by_tag:?}");
    assert_eq!(unknown, UNKNOWN.iter().copied().collect());
}

#[test]
fn no_other_program_of_the_package_is_a_crawler_unless_its_name_says_it() {
    let Some(entries) = entries() else { return };
    let others = entries.iter().filter(|entry| !entry.is_crawler()).flat_map(|entry| &entry.instances);
    let named: Vec<_> = others.filter_map(|user_agent| Some((name(user_agent)?, user_agent))).collect();
    let has_a_part = |name: &str| PARTS.iter().any(|part| name.to_ascii_lowercase().contains(part));
    let wrong: Vec<_> = named.iter().filter(|(name, _)| !has_a_part(name)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_versions_of_a_crawler_have_one_name() {
    let Some(entries) = entries() else { return };
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for user_agent in entries.iter().flat_map(|entry| &entry.instances) {
        let Some(name) = by_list(user_agent) else { continue };
        let is_version = |character: char| character.is_ascii_digit() || character == '.';
        let without_versions = user_agent.replace(is_version, "");
        names.entry(without_versions).or_default().insert(name.to_ascii_lowercase());
    }
    let several: Vec<_> = names.values().filter(|names| names.len() > 1).collect();
    assert!(names.len() > 400 && several.is_empty(), "{} {several:?}", names.len());
}
