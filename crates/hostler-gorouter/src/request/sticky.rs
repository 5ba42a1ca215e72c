//! Sticky sessions: reads and writes the cookie that names an instance. Knows no pools.

use std::fmt::Write as _;

use hostler_wire::{Fields, Name};

/// The cookie that names an instance.
const VCAP_ID: &str = "__VCAP_ID__";

/// The instance of the request's session. The request must have one of the `sessions` cookies or negotiate its authentication, and have our
/// cookie.
pub(super) fn instance(fields: &Fields, sessions: &[String], negotiates: bool) -> Option<Box<str>> {
    let mut is_sticky = negotiates;
    let mut instance = None;
    for (name, value) in cookies(fields) {
        is_sticky |= is_session(name, sessions);
        if name == VCAP_ID && instance.is_none() {
            instance = Some(value);
        }
    }
    instance.filter(|value| is_sticky && !value.is_empty()).map(Into::into)
}

/// Whether the request is a step of a negotiated authentication (RFC 4559).
pub(super) fn negotiates(fields: &Fields) -> bool {
    fields.get("Authorization").is_some_and(is_negotiate)
}

/// The value of the `Set-Cookie` field that brings the client back to `instance`. None if the answer needs none. `stale`: the request named
/// another instance.
pub(super) fn cookie(
    answer: &Fields,
    instance: &str,
    stale: bool,
    place: &StickyCookie<'_>,
) -> Option<String> {
    let mut attributes = None;
    for line in answer.iter().filter(|(_, name, _)| name.eq_ignore_ascii_case(b"Set-Cookie")) {
        // A line that is not UTF-8 is not one of the session cookies.
        let Some(set) = std::str::from_utf8(line.2).ok().and_then(StickyHeader::parse) else { continue };
        if set.name == VCAP_ID {
            return None;
        }
        if attributes.is_none() && is_session(set.name, place.sessions) {
            attributes = Some(set);
        }
    }
    let asked_to_negotiate = || {
        let mut asked = answer.iter().filter(|(_, name, _)| name.eq_ignore_ascii_case(b"WWW-Authenticate"));
        place.negotiates && asked.any(|(_, _, value)| is_negotiate(value))
    };
    let attributes = match attributes {
        Some(attributes) => attributes,
        None if asked_to_negotiate() => StickyHeader::for_negotiation(),
        None if stale => StickyHeader::default(),
        None => return None,
    };
    Some(attributes.for_instance(instance, place))
}

/// The settings of the sticky cookie.
pub(super) struct StickyCookie<'a> {
    pub path: &'a str,
    /// The names of the cookies that begin a session.
    pub sessions: &'a [String],
    /// Our cookie is always `Secure`.
    pub secure: bool,
    /// A negotiated authentication is a session as well.
    pub negotiates: bool,
}

/// The attributes of an app's `Set-Cookie` that our cookie copies (RFC 6265 section 4.1.1).
#[derive(Default)]
struct StickyHeader<'a> {
    name: &'a str,
    expires: Option<&'a str>,
    max_age: Option<&'a str>,
    secure: bool,
    same_site: Option<&'a str>,
    partitioned: bool,
}

impl<'a> StickyHeader<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut parts = line.split(';');
        let (name, _) = parts.next()?.split_once('=')?;
        let mut cookie = Self { name: name.trim(), ..Self::default() };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (key, value) = (key.trim(), Some(value.trim()).filter(|value| !value.is_empty()));
            match key.to_ascii_lowercase().as_str() {
                "expires" => cookie.expires = value,
                "max-age" => cookie.max_age = value,
                "secure" => cookie.secure = true,
                "samesite" => cookie.same_site = value,
                "partitioned" => cookie.partitioned = true,
                _ => {}
            }
        }
        Some(cookie)
    }

    fn for_negotiation() -> Self {
        Self { max_age: Some("60"), same_site: Some("Strict"), ..Self::default() }
    }

    fn for_instance(&self, instance: &str, place: &StickyCookie<'_>) -> String {
        let mut line = format!("{VCAP_ID}={instance}; Path={}", place.path);
        for (key, value) in [("Expires", self.expires), ("Max-Age", self.max_age)] {
            if let Some(value) = value {
                // Writing to a String cannot fail.
                let _ = write!(line, "; {key}={value}");
            }
        }
        line.push_str("; HttpOnly");
        if self.secure || place.secure {
            line.push_str("; Secure");
        }
        if let Some(same_site) = self.same_site {
            let _ = write!(line, "; SameSite={same_site}");
        }
        if self.partitioned {
            line.push_str("; Partitioned");
        }
        line
    }
}

fn cookies(fields: &Fields) -> impl Iterator<Item = (&str, &str)> {
    let texts = fields.all(Name::Cookie).filter_map(|line| std::str::from_utf8(line).ok());
    let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.trim(), value.trim().trim_matches('"')))
}

fn is_session(name: &str, sessions: &[String]) -> bool {
    sessions.iter().any(|session| name == session || name.strip_prefix("__Host-") == Some(session))
}

fn is_negotiate(value: &[u8]) -> bool {
    let scheme = value.split(|byte| *byte == b' ').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case(b"Negotiate")
}

#[cfg(test)]
mod tests {
    use hostler_wire::{Limits, RequestHead, ResponseHead};

    use super::*;

    fn sessions() -> Vec<String> {
        vec!["JSESSIONID".into()]
    }

    fn asked(cookie: &str, negotiates: bool) -> Option<Box<str>> {
        let mut head = RequestHead::default();
        let text = format!("GET / HTTP/1.1\r\nCookie: {cookie}\r\n\r\n");
        head.parse(text.as_bytes(), &Limits::default()).unwrap();
        instance(&head.fields, &sessions(), negotiates)
    }

    #[test]
    fn a_request_is_sticky_with_a_session_and_an_instance() {
        let cases = [
            ("JSESSIONID=x; __VCAP_ID__=inst-A", Some("inst-A")),
            ("__VCAP_ID__=inst-A; a=b; JSESSIONID=", Some("inst-A")),
            ("__Host-JSESSIONID=x;__VCAP_ID__=\"inst-A\"", Some("inst-A")),
            ("__VCAP_ID__=inst-A", None),
            ("JSESSIONID=x", None),
            ("jsessionid=x; __VCAP_ID__=inst-A", None),
            ("XJSESSIONID=x; __VCAP_ID__=inst-A", None),
            ("JSESSIONID=x; __VCAP_ID__=", None),
            ("JSESSIONID; __VCAP_ID__", None),
        ];
        for (cookie, expected) in cases {
            assert_eq!(asked(cookie, false).as_deref(), expected, "{cookie}");
        }
        assert_eq!(asked("__VCAP_ID__=inst-A", true).as_deref(), Some("inst-A"));
    }

    fn given(fields: &str, stale: bool, secure: bool) -> Option<String> {
        let mut head = ResponseHead::default();
        head.parse(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes(), &Limits::default()).unwrap();
        let place = StickyCookie { path: "/api", sessions: &sessions(), secure, negotiates: true };
        cookie(&head.fields, "inst-A", stale, &place)
    }

    #[test]
    fn a_session_that_begins_gets_an_instance_with_the_same_attributes() {
        let ours = |rest: &str| Some(format!("__VCAP_ID__=inst-A; Path=/api{rest}"));
        let cases = [
            ("Set-Cookie: JSESSIONID=1; Path=/; SameSite=Lax\r\n", ours("; HttpOnly; SameSite=Lax")),
            ("Set-Cookie: JSESSIONID=1; secure; Partitioned\r\n", ours("; HttpOnly; Secure; Partitioned")),
            (
                "Set-Cookie: a=b\r\nset-cookie: __Host-JSESSIONID=1; expires=Wed, 21 Oct 2026 07:28:00 GMT; max-age=0\r\n",
                ours("; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Max-Age=0; HttpOnly"),
            ),
            ("Set-Cookie: JSESSIONID=1\r\nSet-Cookie: __VCAP_ID__=theirs\r\n", None),
            ("Set-Cookie: other=1\r\n", None),
            ("WWW-Authenticate: Negotiate\r\n", ours("; Max-Age=60; HttpOnly; SameSite=Strict")),
            (
                "WWW-Authenticate: Basic\r\nWWW-Authenticate: negotiate abc\r\n",
                ours("; Max-Age=60; HttpOnly; SameSite=Strict"),
            ),
            ("WWW-Authenticate: Basic realm=\"Negotiate\"\r\n", None),
        ];
        for (fields, expected) in cases {
            assert_eq!(given(fields, false, false), expected, "{fields}");
        }
    }

    #[test]
    fn a_moved_session_gets_a_cookie_of_its_new_instance() {
        assert_eq!(given("", true, false).unwrap(), "__VCAP_ID__=inst-A; Path=/api; HttpOnly");
        assert_eq!(given("", true, true).unwrap(), "__VCAP_ID__=inst-A; Path=/api; HttpOnly; Secure");
        assert_eq!(given("Set-Cookie: __VCAP_ID__=x\r\n", true, false), None);
    }
}
