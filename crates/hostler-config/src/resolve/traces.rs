//! The meaning of `[traces]`. Opens no connection.

use http::Uri;

use super::Resolver;
use crate::document::KeyPath;
use crate::file;
use crate::resolved::Traces;

impl Resolver<'_> {
    /// The meaning of `[traces]`, also if the section is not written.
    pub(super) fn traces(&mut self, written: &file::Traces) -> Traces {
        let endpoint = written.endpoint.as_deref().and_then(|text| {
            collector(text).map_err(|why| self.refuse(&KeyPath::of("traces.endpoint"), why)).ok()
        });
        Traces {
            endpoint,
            sample: u32::try_from(written.sample.get()).unwrap_or(u32::MAX),
            slow: written.slow.0,
            parent_based: written.parent_based,
        }
    }
}

/// The address with its path. OTLP says which path an address without one means.
fn collector(text: &str) -> Result<Uri, String> {
    let wrong = || format!("{text:?} is not an address such as \"http://127.0.0.1:4318\"");
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => {
            return Err(
                "Hostler sends spans without TLS; use an http:// address of a collector nearby".into()
            );
        }
        _ => return Err(wrong()),
    }
    let has_user = uri.authority().is_none_or(|authority| authority.as_str().contains('@'));
    if has_user || uri.query().is_some() {
        return Err(wrong());
    }
    if uri.path() != "/" {
        return Ok(uri);
    }
    format!("{}/v1/traces", text.trim_end_matches('/')).parse().map_err(|_| wrong())
}
