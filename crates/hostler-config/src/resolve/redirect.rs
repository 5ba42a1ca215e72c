//! The meaning of `redirect`: a URL with placeholders, which can never change its host. Knows no requests.

use http::StatusCode;

use super::Resolver;
use crate::document::KeyPath;
use crate::error::nearest;
use crate::file;
use crate::pattern::{MatchPattern, PathPattern};
use crate::resolved::{Piece, Redirect};
use crate::value::{TextOr, is_host};

const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];
const PLACES: [(&str, Piece); 4] =
    [("host", Piece::Host), ("path", Piece::Path), ("rest", Piece::Rest), ("query", Piece::Query)];

impl Resolver<'_> {
    /// The meaning of a route's `redirect`. Reports errors.
    pub(super) fn redirect(
        &mut self,
        path: &KeyPath,
        written: &TextOr<file::Redirect>,
        pattern: &MatchPattern,
    ) -> Option<Redirect> {
        let (at, written) = match written {
            TextOr::Word(to) => {
                (path.clone(), &file::Redirect { to: Some(to.clone()), ..file::Redirect::default() })
            }
            TextOr::Value(table) => (path.key("to"), table),
        };
        let status = u16::try_from(written.status.0).ok().filter(|status| STATUSES.contains(status));
        if status.is_none() {
            self.refuse(&path.key("status"), format!("{} is not one of {STATUSES:?}", written.status.0));
        }
        let Some(to) = &written.to else {
            if !self.document.is_written(&at) {
                self.refuse(path, "to is missing; write for example to = \"/new\"");
            }
            return None;
        };
        let pieces = parse(to).map_err(|why| self.refuse(&at, why)).ok()?;
        let prefix = match &pattern.path {
            PathPattern::Prefix(prefix) => prefix.clone(),
            PathPattern::Exact(_) if pieces.contains(&Piece::Rest) => {
                self.refuse(&at, format!("{{rest}} has no value, because \"{pattern}\" has no *"));
                return None;
            }
            PathPattern::Exact(_) => String::new(),
        };
        let status = StatusCode::from_u16(status?).ok()?;
        Some(Redirect { status, to: pieces, prefix })
    }
}

/// Text and placeholders. An error says what is wrong.
fn parse(to: &str) -> Result<Vec<Piece>, String> {
    let path_start = path_start(to)?;
    let mut pieces = Vec::new();
    let mut rest = to;
    while let Some((text, after)) = rest.split_once('{') {
        let at = to.len() - rest.len() + text.len();
        let (name, behind) = after.split_once('}').ok_or_else(|| format!("{to:?} has a {{ without a }}"))?;
        let known = PLACES.iter().find(|(place, _)| *place == name);
        let Some((_, piece)) = known else {
            let near = nearest(name, PLACES.iter().map(|(place, _)| *place));
            let help = near
                .map_or("the placeholders are {host}, {path}, {rest} and {query}".into(), |near| {
                    format!("did you mean {{{near}}}?")
                });
            return Err(format!("unknown placeholder {{{name}}}; {help}"));
        };
        let in_path = at > path_start || pieces.iter().any(|piece| matches!(piece, Piece::Path));
        match piece {
            // `https://a.com{rest}` could lead to https://a.com.evil.org.
            Piece::Rest if !in_path => {
                return Err(format!("in {to:?} {{rest}} would be part of the host; write /{{rest}}"));
            }
            Piece::Host if in_path => {}
            Piece::Path | Piece::Query if at < path_start => {
                return Err(format!("in {to:?} {{{name}}} would be part of the host"));
            }
            _ => {}
        }
        pieces.extend(Some(Piece::Text(text.into())).filter(|_| !text.is_empty()));
        pieces.push(piece.clone());
        rest = behind;
    }
    if rest.contains('}') {
        return Err(format!("{to:?} has a }} without a {{"));
    }
    check_host(to, path_start)?;
    pieces.extend(Some(Piece::Text(rest.into())).filter(|_| !rest.is_empty()));
    Ok(pieces)
}

/// A URL with another text in the place of its host leads nowhere. Of the placeholders only `{host}` can be in it.
fn check_host(to: &str, path_start: usize) -> Result<(), String> {
    let Some((_, authority)) = to[..path_start].split_once("://") else { return Ok(()) };
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    // A browser decodes a name.
    match is_host(&place.replace("{host}", "host").replace('%', "")) {
        true => Ok(()),
        false => Err(format!("in {to:?} {place:?} is not a host, or a host and a port")),
    }
}

/// The offset at which scheme and host end.
fn path_start(to: &str) -> Result<usize, String> {
    if let Some(odd) =
        to.chars().find(|char| !char.is_ascii_graphic() || matches!(char, '"' | '<' | '>' | '\\'))
    {
        return Err(format!("{to:?} contains {odd:?}, which must be percent-encoded (%XX) in a URL"));
    }
    let host_start = ["http://", "https://"].into_iter().find(|scheme| to.starts_with(scheme)).map(str::len);
    match host_start {
        Some(start) => {
            let host = to[start..].split(['/', '?', '#']).next().unwrap_or_default();
            // A placeholder right after the host begins with a slash or a question mark of its own.
            let text = host.strip_suffix("{query}").unwrap_or(host);
            let text = text.strip_suffix("{path}").unwrap_or(text);
            match text.is_empty() {
                true => Err(format!("{to:?} has no host")),
                false => Ok(start + text.len()),
            }
        }
        None if to.starts_with('/') && !to.starts_with("//") => Ok(0),
        None => Err(format!("{to:?} is neither a URL (https://...) nor a path (/...)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found_between_text() {
        let text = |text: &str| Piece::Text(text.into());
        let cases = [
            ("/new", vec![text("/new")]),
            ("/new/{rest}{query}", vec![text("/new/"), Piece::Rest, Piece::Query]),
            (
                "https://example.com{path}{query}",
                vec![text("https://example.com"), Piece::Path, Piece::Query],
            ),
            ("https://{host}{path}", vec![text("https://"), Piece::Host, Piece::Path]),
            (
                "https://www.{host}:8443/{rest}",
                vec![text("https://www."), Piece::Host, text(":8443/"), Piece::Rest],
            ),
            ("https://me@[::1]:8443/", vec![text("https://me@[::1]:8443/")]),
            ("https://a.b?from={host}", vec![text("https://a.b?from="), Piece::Host]),
        ];
        for (to, expected) in cases {
            assert_eq!(parse(to), Ok(expected), "{to}");
        }
    }

    #[test]
    fn a_request_cannot_choose_the_host_of_a_redirect() {
        for to in [
            "https://example.com{rest}",
            "https://{rest}",
            "https://{path}",
            "https://{rest}.example.com/",
            "https://{path}.example.com/",
            "https://a{query}.b/",
            "//{host}/",
            "{path}",
            "example.com",
            "javascript:alert(1)",
            "/a b",
            "/\\evil",
            "/{nothing}",
            "/{rest",
            "/rest}",
            "https:///x",
            "https://a.test:99999/",
            "https://{host}:8443x{path}",
            "https://:8443{path}",
            "https://a[b/",
        ] {
            assert!(parse(to).is_err(), "{to}");
        }
    }
}
