//! Which stored responses an unsafe request makes void (RFC 9111 section 4.4). Knows no store.

use url::Url;

use super::Method;
use crate::Head;

/// The targets on `host` (path and query, as in a request line) whose stored responses are void after this response: the
/// request's own target, and those in `Location` and `Content-Location` on the same host: as they are written there, and as
/// a browser would write them. Empty after safe methods and after failures.
pub fn invalidated(
    method: Method,
    status: u16,
    answer: &impl Head,
    host: &[u8],
    target: &[u8],
) -> Vec<Vec<u8>> {
    if method != Method::Unsafe || !(200..400).contains(&status) {
        return Vec::new();
    }
    let mut targets = vec![target.to_vec()];
    let Some(base) = base(host, target) else { return targets };
    for reference in answer.lines("location").chain(answer.lines("content-location")) {
        let reference = std::str::from_utf8(reference).unwrap_or_default().trim();
        let Some(other) = target_of(&base, reference) else { continue };
        for other in [as_written(reference, target), Some(other)].into_iter().flatten() {
            if !targets.contains(&other) {
                targets.push(other);
            }
        }
    }
    targets
}

fn base(host: &[u8], target: &[u8]) -> Option<Url> {
    let (host, target) = (std::str::from_utf8(host).ok()?, std::str::from_utf8(target).ok()?);
    Url::parse(&format!("http://{host}{target}")).ok()
}

/// The path and query of a reference, as a browser writes them (`'` in a query becomes `%27`). `None` if it names another host: a response must not void what belongs to another
/// site.
fn target_of(base: &Url, reference: &str) -> Option<Vec<u8>> {
    let url = base.join(reference).ok()?;
    let has_no_own_port = |url: &Url| matches!(url.port(), None | Some(80 | 443));
    let is_same_port = url.port() == base.port() || has_no_own_port(&url) && has_no_own_port(base);
    // The scheme is not compared, as it is not part of the key and the member may not know its own.
    let is_ours =
        matches!(url.scheme(), "http" | "https") && url.host_str() == base.host_str() && is_same_port;
    is_ours.then(|| {
        let mut target = url.path().as_bytes().to_vec();
        if let Some(query) = url.query() {
            target.push(b'?');
            target.extend_from_slice(query.as_bytes());
        }
        target
    })
}

/// The path and query of a reference that [`target_of`] accepts, with the encoding in which it is written: clients that are
/// no browsers request it so. `target`: that of the request.
fn as_written(reference: &str, target: &[u8]) -> Option<Vec<u8>> {
    let reference = reference.split('#').next().filter(|reference| !reference.is_empty())?;
    let scheme = ["http:", "https:"]
        .into_iter()
        .find(|scheme| reference.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let rest = &reference[scheme.map_or(0, str::len)..];
    let base = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    let folder = base.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let (start, rest): (&[u8], _) = match rest.strip_prefix("//") {
        Some(rest) => {
            let rest = &rest[rest.find(['/', '?']).unwrap_or(rest.len())..];
            (if rest.starts_with('/') { b"" } else { b"/" }, rest)
        }
        // `http:path` has no meaning that all clients agree on.
        None if scheme.is_some() => return None,
        None if rest.starts_with('/') => (b"", rest),
        None if rest.starts_with('?') => (base, rest),
        None => (&base[..folder], rest),
    };
    let (path, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
    let mut written = without_dots(&[start, path.as_bytes()].concat());
    written.extend_from_slice(query.as_bytes());
    Some(written)
}

/// A path without `.` and `..` (RFC 3986 section 5.2.4).
fn without_dots(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut parts = path.split(|&byte| byte == b'/').skip(1).peekable();
    while let Some(part) = parts.next() {
        if part == b".." {
            segments.pop();
        }
        match part {
            b"." | b".." if parts.peek().is_none() => segments.push(b""),
            b"." | b".." => {}
            part => segments.push(part),
        }
    }
    segments.into_iter().flat_map(|segment| [b"/", segment].concat()).collect()
}
