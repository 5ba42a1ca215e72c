//! Which lines the log has, and which values it must not show: level, sampling, redaction. Knows no formats and no files.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::time::Duration;

use super::line::{Access, Level};

/// Names of query parameters whose values are secrets, sorted. Upper case, `-` and `_` do not count: `accessToken` is `access_token`.
const SECRET: [&str; 39] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "assertion",
    "auth",
    "authorization",
    "authtoken",
    "bearer",
    "clientsecret",
    "confirmpassword",
    "cookie",
    "credentials",
    "csrftoken",
    "currentpassword",
    "idtoken",
    "jwt",
    "newpassword",
    "oldpassword",
    "otp",
    "passphrase",
    "passwd",
    "password",
    "passwordconfirmation",
    "privatekey",
    "pwd",
    "refreshtoken",
    "resettoken",
    "secret",
    "sessionid",
    "sessiontoken",
    "sig",
    "signature",
    "token",
    "xamzcredential",
    "xamzsecuritytoken",
    "xamzsignature",
    "xgoogcredential",
    "xgoogsignature",
];
/// What the log shows in place of a value.
const REDACTED: &str = "[redacted]";

/// The rules of `[log]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRules {
    /// Events below this level are not written.
    pub level: Level,
    /// The log has one of so many ordinary requests. 1: all.
    pub sample: u32,
    /// A request that takes as long as this is always written.
    pub slow: Duration,
    /// More names of secret parameters.
    pub redact: Vec<String>,
}

impl Default for LogRules {
    fn default() -> Self {
        Self { level: Level::Info, sample: 1, slow: Duration::from_secs(1), redact: Vec::new() }
    }
}

impl LogRules {
    pub(super) fn has_event(&self, level: Level) -> bool {
        level as u8 >= self.level as u8
    }

    /// Whether the line is written. An ordinary line that is written gets the number of requests for which it stands.
    pub(super) fn choose(&self, line: &mut Access<'_>) -> bool {
        let is_ordinary = line.status < 400
            && line.refusal.is_none()
            && line.aborted.is_none()
            && line.total_ms < self.slow;
        if self.sample <= 1 || !is_ordinary {
            return true;
        }
        line.sample = Some(self.sample);
        fastrand::u32(..self.sample) == 0
    }

    /// The URL, or the end of one, without the values of secret parameters and without `user:password@`. Allocates only if there is one.
    pub fn redacted<'a>(&self, url: &'a str) -> Cow<'a, str> {
        self.without_secrets(without_users(url))
    }

    /// A URL without users, also without the values of secret parameters.
    fn without_secrets<'a>(&self, url: Cow<'a, str>) -> Cow<'a, str> {
        match url {
            Cow::Borrowed(url) => redacted(url, &self.redact),
            Cow::Owned(url) => Cow::Owned(redacted(&url, &self.redact).into_owned()),
        }
    }

    /// The target of a request, redacted in the same way. If it is not a path, it may be a broken URL: all before its last `@` may be a
    /// password.
    pub fn redacted_target<'a>(&self, target: &'a str) -> Cow<'a, str> {
        if target.starts_with('/') {
            return self.redacted(target);
        }
        let begin = target.find("://").map_or(0, |at| at + 3);
        match Self::redacted_host(&target[begin..]) {
            Cow::Borrowed(_) => self.redacted(target),
            Cow::Owned(shown) => self.without_secrets(Cow::Owned(format!("{}{shown}", &target[..begin]))),
        }
    }

    /// A `Host` field or an authority without `user:password@`. Neither may have it (RFC 9110 section 4.2.4), but clients send it.
    pub fn redacted_host(host: &str) -> Cow<'_, str> {
        match host.rfind('@') {
            None => Cow::Borrowed(host),
            Some(at) => Cow::Owned(format!("{REDACTED}{}", &host[at..])),
        }
    }
}

/// Names are looked for after each of these, because frameworks differ in what they take for a separator.
const BEFORE_NAMES: [char; 4] = ['?', '#', '&', ';'];
/// Only these end a value: to most frameworks the `;` in `?password=a;b` is a part of the password.
const AFTER_VALUES: [char; 2] = ['&', '#'];
/// Each of these ends the host of a URL. In a query, `&` ends the whole URL.
const AFTER_AUTHORITY: [char; 5] = ['/', '?', '#', '&', '\\'];
/// How many times a value is decoded to find a URL in it.
const NESTED: usize = 3;

/// Without the users and passwords of all URLs in the text.
fn without_users(url: &str) -> Cow<'_, str> {
    let mut shown: Option<String> = None;
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = url[at..].find("://") {
        at += found + 3;
        let authority = &url[at..];
        let authority = &authority[..authority.find(AFTER_AUTHORITY).unwrap_or(authority.len())];
        if let Some(user) = authority.rfind('@').filter(|user| *user > 0) {
            let shown = shown.get_or_insert_with(|| String::with_capacity(url.len()));
            shown.push_str(&url[copied..at]);
            shown.push_str(REDACTED);
            at += user;
            copied = at;
        }
    }
    shown.map_or(Cow::Borrowed(url), |shown| Cow::Owned(shown + &url[copied..]))
}

fn redacted<'a>(url: &'a str, more: &[String]) -> Cow<'a, str> {
    redacted_by(|text, ends| text.find(ends), url, more)
}

/// As [`redacted`]. `find` returns the position of the first of these characters; a test counts how many characters it looks at.
fn redacted_by<'a>(
    mut find: impl FnMut(&str, &[char]) -> Option<usize>,
    url: &'a str,
    more: &[String],
) -> Cow<'a, str> {
    let Some(begin) = url.find(['?', '#']) else { return Cow::Borrowed(url) };
    let mut shown: Option<String> = None;
    // The end of what is copied to `shown`.
    let mut copied = 0;
    let mut at = begin;
    while at < url.len() {
        let from = at + 1;
        let mut until = |ends: &[char]| find(&url[from..], ends).map_or(url.len(), |length| from + length);
        at = until(&BEFORE_NAMES);
        if let Some((name, _)) = url[from..at].split_once('=') {
            let value = from + name.len() + 1;
            let mut end = || until(&AFTER_VALUES);
            let hides = match is_secret(name, more) {
                true => value < end(),
                // Nested URLs are percent-encoded, so they end before `at`. Reading on for each name would take time proportional to the
                // square of the length.
                false => has_nested_secret(&url[value..at], more, NESTED),
            };
            if hides {
                // The end is looked for only here: it may be far, and looking for it at each name would take time proportional to the
                // square of the length.
                let end = end();
                let shown = shown.get_or_insert_with(|| String::with_capacity(url.len()));
                shown.push_str(&url[copied..value]);
                shown.push_str(REDACTED);
                (copied, at) = (end, end);
            }
        }
    }
    match shown {
        None => Cow::Borrowed(url),
        Some(mut shown) => {
            shown.push_str(&url[copied..]);
            Cow::Owned(shown)
        }
    }
}

/// Whether the value is a URL or a query with a secret, percent-encoded: `next=%2Flogin%3Ftoken%3Dabc`.
fn has_nested_secret(value: &str, more: &[String], depth: usize) -> bool {
    if depth == 0 || !value.contains('%') {
        return false;
    }
    let decoded = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
    let mut parts = decoded.split(BEFORE_NAMES);
    let has_secret = parts.any(|part| {
        part.split_once('=').is_some_and(|(name, value)| !value.is_empty() && is_secret(name, more))
    });
    let has_user = matches!(without_users(&decoded), Cow::Owned(_));
    has_secret || has_user || has_nested_secret(&decoded, more, depth - 1)
}

/// An app reads `user[password]` and `user.password` as a nested value, and `acc%65ss_token` as `access_token`.
fn is_secret(name: &str, more: &[String]) -> bool {
    is_secret_by(cmp_known, name, more)
}

/// `cmp` orders a known name and a part of this one. The test of the cost counts how often it is asked: a name may have tens of thousands of
/// parts, and a client that sends it over HTTP/2 again sends a byte of it.
fn is_secret_by(mut cmp: impl FnMut(&str, &str) -> Ordering, name: &str, more: &[String]) -> bool {
    let decoded = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    decoded.split(['[', ']', '.']).filter(|part| !part.is_empty()).any(|part| {
        SECRET.binary_search_by(|known| cmp(known, part)).is_ok()
            || more.iter().any(|secret| letters(secret).eq(letters(part)))
    })
}

fn cmp_known(known: &str, part: &str) -> Ordering {
    known.bytes().cmp(letters(part))
}

/// The letters that count, in lower case. Copies nothing.
fn letters(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(|byte| !b"-_ +".contains(byte)).map(|byte| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_url_grows_with_its_length_and_not_with_the_square_of_it() {
        for (parameter, times) in [("z=;", 1), ("z=%;", 1), ("token=x&", 3)] {
            let url = format!("/?{}", parameter.repeat(20_000));
            let mut looked_at = 0;
            let find = |text: &str, ends: &[char]| {
                let found = text.find(ends);
                looked_at += found.map_or(text.len(), |at| at + 1);
                found
            };
            redacted_by(find, &url, &[]);
            assert!(looked_at <= times * url.len(), "{parameter}: {looked_at} of {} bytes", url.len());
        }
    }

    #[test]
    fn values_of_secret_parameters_are_redacted_in_every_spelling() {
        let more = ["invite".to_owned()];
        for (url, shown) in [
            ("/a", "/a"),
            ("/a?b=c&d=", "/a?b=c&d="),
            ("/a?token=x", "/a?token=[redacted]"),
            ("/a?b=c&access_token=x&d=e", "/a?b=c&access_token=[redacted]&d=e"),
            ("/a?accessToken=x;API-Key=y#id_token=z", "/a?accessToken=[redacted]#id_token=[redacted]"),
            ("/a?password=abc;def", "/a?password=[redacted]"),
            ("/a?password=abc;def&b=c", "/a?password=[redacted]&b=c"),
            ("/a?token=ab?cd#e", "/a?token=[redacted]#e"),
            ("/a?b=c;token=d;e=f&g=h", "/a?b=c;token=[redacted]&g=h"),
            (
                "/a?password_confirmation=x&X-Goog-Signature=y",
                "/a?password_confirmation=[redacted]&X-Goog-Signature=[redacted]",
            ),
            ("/a?next=%2Flogin%3Ftoken%3Dabc&b=c", "/a?next=[redacted]&b=c"),
            ("/a?next=%252Flogin%253Fa%253Db%2526token%253Dabc", "/a?next=[redacted]"),
            ("/a?next=%2Flogin%3Fpage%3D2", "/a?next=%2Flogin%3Fpage%3D2"),
            ("/a?code=x&state=y", "/a?code=x&state=y"),
            ("/a?acc%65ss%5Ftoken=x", "/a?acc%65ss%5Ftoken=[redacted]"),
            ("/a?user[password]=x&user.pwd=y", "/a?user[password]=[redacted]&user.pwd=[redacted]"),
            ("/a?x=1?token=b=c&token=d", "/a?x=1?token=[redacted]&token=[redacted]"),
            ("/a?tokens=x&mytoken=y&token", "/a?tokens=x&mytoken=y&token"),
            ("https://b.example/c?Invite=x", "https://b.example/c?Invite=[redacted]"),
            ("/token=x/é?é=ü&secret=ü", "/token=x/é?é=ü&secret=[redacted]"),
        ] {
            assert_eq!(redacted(url, &more), shown);
        }
        assert!(matches!(LogRules::default().redacted("/a?b=c&invite=x"), Cow::Borrowed(_)));
    }

    #[test]
    fn users_and_passwords_of_urls_are_redacted() {
        let rules = LogRules::default();
        for (target, shown) in [
            ("http://me:pw@a.test/x?token=y", "http://[redacted]@a.test/x?token=[redacted]"),
            ("http://me:p/w@a.test/x", "http://[redacted]@a.test/x"),
            ("http://me:p@w?b#c@a.test/x", "http://[redacted]@a.test/x"),
            ("me:pw@a.test:443", "[redacted]@a.test:443"),
            ("http:/me:pw@a.test/", "[redacted]@a.test/"),
            ("ftp://me@a.test", "ftp://[redacted]@a.test"),
            ("/@me/x?to=a@b.test", "/@me/x?to=a@b.test"),
            ("/x?next=https://me:pw@b.test/y&z=@", "/x?next=https://[redacted]@b.test/y&z=@"),
            ("/x?next=https%3A%2F%2Fme:pw%40b.test&z=1", "/x?next=[redacted]&z=1"),
            ("/x?next=https%3A%2F%2Fb.test&z=a@b", "/x?next=https%3A%2F%2Fb.test&z=a@b"),
            ("http://a.test/x", "http://a.test/x"),
        ] {
            assert_eq!(rules.redacted_target(target), shown);
        }
        assert_eq!(rules.redacted("https://me:pw@b.test/@you?a"), "https://[redacted]@b.test/@you?a");
        assert_eq!(rules.redacted("https://b.test/@you?a=c@d"), "https://b.test/@you?a=c@d");
        assert!(matches!(rules.redacted("https://b.test/@you"), Cow::Borrowed(_)));
        assert_eq!(LogRules::redacted_host("me:p@w@a.test:80"), "[redacted]@a.test:80");
        assert_eq!(LogRules::redacted_host("a.test"), "a.test");
    }

    #[test]
    fn every_known_secret_name_is_in_the_form_that_is_compared() {
        for name in SECRET {
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase()), "{name}");
            assert!(is_secret(name, &[]), "{name}");
        }
        assert!(SECRET.is_sorted());
    }

    #[test]
    fn a_part_of_a_name_is_compared_with_few_of_the_known_names() {
        let (name, parts) = ("a.".repeat(20_000), 20_000);
        let mut compared = 0;
        let cmp = |known: &str, part: &str| {
            compared += 1;
            cmp_known(known, part)
        };
        assert!(!is_secret_by(cmp, &name, &[]));
        assert!(compared <= 8 * parts, "{compared} comparisons of {parts} parts");
    }

    #[test]
    fn a_level_holds_for_itself_and_all_above() {
        let rules = LogRules { level: Level::Warn, ..LogRules::default() };
        let has = [Level::Info, Level::Warn, Level::Error].map(|level| rules.has_event(level));
        assert_eq!(has, [false, true, true]);
    }
}
