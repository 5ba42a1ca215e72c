//! Why a response is not stored. Knows no store.

/// Why a response is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotStored {
    /// The method is neither GET nor HEAD.
    Method,
    /// A cache does not store this status: it is interim, 206, 304, or excluded by `must-understand`.
    Status,
    /// The response or the request has `no-store`.
    NoStore,
    /// The response is for one user: `private`.
    Private,
    /// The request has `Authorization`, and the response does not allow other users.
    Authorized,
    /// The response or the request has cookies that make the response personal.
    Cookie,
    /// `Vary: *`: the response matches no other request.
    Vary,
    /// The response has no lifetime, or a lifetime of zero and no validator.
    Lifetime,
}
