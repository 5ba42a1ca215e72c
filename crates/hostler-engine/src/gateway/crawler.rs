//! The name of a crawler, as its `User-Agent` says it. Does not find crawlers that call themselves browsers.

use hostler_wire::{Fields, Name};

/// Parts of the names of crawlers, in lower case.
const WORDS: [&str; 4] = ["bot", "crawl", "spider", "slurp"];
/// Programs whose names have such a part by chance.
const NO_CRAWLERS: [&str; 1] = ["cubot"];

/// The name of the crawler that the request says it comes from.
pub(super) fn of(fields: &Fields) -> Option<&str> {
    name(std::str::from_utf8(fields.first(Name::UserAgent)?).ok()?)
}

/// The name without its version: `Googlebot` of `Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)`.
/// `None` for a browser or another program.
fn name(user_agent: &str) -> Option<&str> {
    let is_separator = |character: char| " ;,()[]".contains(character);
    let products = || user_agent.split(is_separator).filter(|part| !part.is_empty() && !part.contains("//"));
    let own = products().map(|product| product.split('/').next().unwrap_or_default()).find(|name| {
        let name = name.to_ascii_lowercase();
        let has_one_of = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        has_one_of(&WORDS) && !has_one_of(&NO_CRAWLERS)
    });
    // Others name a page that explains them: `facebookexternalhit/1.1 (+http://...)`.
    own.or_else(|| {
        let explains = user_agent.contains("+http://") || user_agent.contains("+https://");
        let compatible = user_agent.split_once("compatible;").map_or(user_agent, |(_, rest)| rest);
        let first = compatible.split(is_separator).find(|part| !part.is_empty() && !part.contains("//"));
        first.filter(|_| explains).and_then(|product| product.split('/').next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
                "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
                Some("facebookexternalhit"),
            ),
            ("Mozilla/5.0 (compatible; Example/3.0; +https://example.org/about)", Some("Example")),
            ("CCBot/2.0 (https://commoncrawl.org/faq/)", Some("CCBot")),
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", None),
            (
                "Mozilla/5.0 (Linux; Android 9; CUBOT_X19) AppleWebKit/537.36 Chrome/99.0 Mobile Safari/537.36",
                None,
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.0 Safari/605.1.15",
                None,
            ),
            ("curl/8.5.0", None),
            ("", None),
        ] {
            assert_eq!(name(user_agent), expected, "{user_agent}");
        }
    }
}
