//! Which stored responses an unsafe request makes void (RFC 9111 section 4.4). Knows no store.

use url::Url;

use super::Method;
use crate::Head;

/// The targets on `host` (path and query, as in a request line) whose stored responses are void after this response: the
/// request's own target, and those in `Location` and `Content-Location` on the same host. Empty after safe methods and
/// after failures.
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
        let other = std::str::from_utf8(reference).ok().and_then(|reference| target_of(&base, reference));
        if let Some(other) = other.filter(|other| !targets.contains(other)) {
            targets.push(other);
        }
    }
    targets
}

fn base(host: &[u8], target: &[u8]) -> Option<Url> {
    let (host, target) = (std::str::from_utf8(host).ok()?, std::str::from_utf8(target).ok()?);
    Url::parse(&format!("http://{host}{target}")).ok()
}

/// The path and query of a reference. `None` if it names another host: a response must not void what belongs to another
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
