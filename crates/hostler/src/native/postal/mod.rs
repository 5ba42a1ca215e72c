//! Where postal codes are, over HTTP. Knows no data.

use hostler_wire::ResponseHead;

use crate::exchange::{Exchange, Whole};
use crate::native::Nearest;

impl Nearest for Postal {
    fn nearest(&self, _: f64, _: f64) -> Option<String> {
        None
    }
}

/// The service.
#[derive(Default)]
pub struct Postal {}

impl Postal {
    /// The answer; none where the path is none of the service's.
    pub fn answer(&self, _exchange: &Exchange, _path: &[u8]) -> Option<Whole> {
        None
    }

    /// The answer to what is no path of any service here.
    pub fn not_found(&self) -> Whole {
        Whole::new(ResponseHead::new(404, "Not Found"), "")
    }
}
