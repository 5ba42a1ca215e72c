//! The meaning of `[postal]`. Knows no requests.

use super::Resolver;
use crate::document::KeyPath;
use crate::file;
use crate::resolved::Postal;

impl Resolver<'_> {
    /// The meaning of `[postal]`. `None` if it is not written.
    pub(super) fn postal(&mut self, written: Option<&file::Postal>) -> Option<Postal> {
        let written = written?;
        Some(Postal {
            data: self.data_files(&KeyPath::of("postal"), "data", &written.data),
            compat_strings: written.compat_strings,
            jsonp: written.jsonp,
            cors: written.cors.0.clone(),
        })
    }
}
