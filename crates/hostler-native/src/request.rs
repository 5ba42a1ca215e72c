//! The parts of a request that the services read, and the query that one service sends to the other. Knows no routes.

use hostler_address::ClientAddress;
use hostler_wire::RequestHead;

use crate::form::AnswerFormat;
use crate::query::QueryString;

/// The parts of a request that these services read.
#[derive(Clone, Copy)]
pub struct LookupRequest<'a> {
    /// The head.
    pub head: &'a RequestHead,
    /// The address of its client.
    pub client: ClientAddress,
    /// The whole body. Empty if there is none.
    pub body: &'a [u8],
}

/// The lookup of the nearest postal code, for the service that knows the place of an address.
pub trait Nearest {
    /// The record nearest to a point (latitude and longitude in degrees), with the fields that a query names. `None` if
    /// there is no record at all.
    ///
    /// Errors: a sentence for the client.
    fn nearest(
        &self,
        at: (f64, f64),
        query: &QueryString,
        form: AnswerFormat,
    ) -> Result<Option<String>, String>;
}
