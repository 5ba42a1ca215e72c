//! An origin (RFC 6454) whose pages may read a response, or all origins, and the host and port in it. Knows no requests.

use std::fmt;
use std::str::FromStr;

use http::uri::Authority;

use super::one_string;

/// An origin as a browser writes it into `Origin`. `*` means every origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(pub String);

impl Origin {
    /// Whether it means every origin.
    pub fn is_any(&self) -> bool {
        self.0 == "*"
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an origin such as \"https://www.example.com\", or \"*\"");
        if text == "*" {
            return Ok(Self(text.into()));
        }
        let uri: http::Uri = text.parse().map_err(|_| wrong())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(wrong());
        };
        // A browser sends no path, no upper case and no usual port, so another form would never match.
        let origin = format!("{scheme}://{authority}").to_ascii_lowercase();
        if text != origin || authority.as_str().contains(['@', '*']) || !has_port_or_none(authority) {
            return Err(wrong());
        }
        match (scheme, authority.port_u16()) {
            ("http", Some(port @ 80)) | ("https", Some(port @ 443)) => {
                let sent = origin.strip_suffix(&format!(":{port}")).unwrap_or(&origin);
                Err(format!("{text:?} never matches, because browsers leave out this port; write {sent:?}"))
            }
            _ => Ok(Self(origin)),
        }
    }
}

/// Whether a text is what `Host` contains (RFC 9110 section 7.2): a host, with or without a port.
pub fn is_host(text: &str) -> bool {
    let authority = text.parse::<Authority>();
    let is_place = |authority: &Authority| !authority.host().is_empty() && has_port_or_none(authority);
    authority.is_ok_and(|authority| !text.contains('@') && is_place(&authority))
}

/// Whether an authority has no port, or one that a server can have. `http` takes any text for a port, and says that there is none.
pub fn has_port_or_none(authority: &Authority) -> bool {
    match hostler_wire::split_host(authority.as_str().as_bytes()) {
        (_, b"") => true,
        (_, port) => {
            authority.port_u16().is_some_and(|known| known > 0 && port == format!(":{known}").as_bytes())
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

one_string!(Origin, kind: "origin", expects: "an origin such as \"https://www.example.com\", or \"*\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_no_scheme_no_path_and_no_blank() {
        for text in ["internal", "a_b.test:8080", "[::1]:80", "10.0.0.1"] {
            assert!(is_host(text), "{text}");
        }
        for text in
            ["", ":80", "a b", "http://a.test", "a.test/x", "me@a.test", "a.test:x", "a:1:2", "\u{e9}.test"]
        {
            assert!(!is_host(text), "{text}");
        }
    }

    #[test]
    fn an_origin_that_no_browser_sends_is_refused() {
        for text in ["*", "https://a.test", "http://a.test:8080", "https://a.test:80", "http://[::1]:3000"] {
            assert_eq!(text.parse::<Origin>().map(|origin| origin.0), Ok(text.into()));
        }
        for text in [
            "https://*.a.test",
            "https://A.test",
            "https://a.test/",
            "https://me@a.test",
            "https://a.test:99999",
            "https://a.test:0",
            "https://a.test:08080",
            "https://a.test:",
        ] {
            let why = format!("{text:?} is not an origin such as \"https://www.example.com\", or \"*\"");
            assert_eq!(text.parse::<Origin>(), Err(why));
        }
        for (text, sent) in [("https://a.test:443", "https://a.test"), ("http://[::1]:80", "http://[::1]")] {
            let why = text.parse::<Origin>().unwrap_err();
            assert!(why.ends_with(&format!("write {sent:?}")), "{why}");
        }
    }
}
