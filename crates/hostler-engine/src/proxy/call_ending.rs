//! The ways in which a call ends. Knows no connection.

/// How a call ends, and what follows from it in `Call::end`.
///
/// | ending | connection | slot | also |
/// |---|---|---|---|
/// | `Whole` | kept for the next call, if it is fit | returned | |
/// | `Unwanted`, `MarkedDown` | read in the background to its end, if that is near; then the member is told to stop | returned when the member has finished | |
/// | `TimedOut` | the same | the same | a strike against a member that is not a worker of ours, unless it waits for the client's body |
/// | `Unwanted` for an endless answer, `ClientFailed`, `Outrun` | the member is told to stop at once | the same | |
/// | `Unwanted`, `TimedOut` without an answer, with `hangs_up_at_once` or of an upgrade, or before the client has sent the whole body | the same | the same | |
/// | `HungUp` | closed | returned, and a worker of ours gets nothing for a moment | the worker's death is looked into |
/// | `BadAnswer`, `Released` | closed | returned | `Released` without an answer: its key in a fair pool and its buckets of worker time pay at least the average |
///
/// A connection in HTTP/2 that may be dead gets no new calls (`Call::avoid_dead_connection`).
///
/// A stream has returned its slot already, so each of these only ends it. The time for which a slot was held is recorded when it is returned. A call ends in two more ways: one without an answer may give its
/// lease back to its caller (`Call::without_answer`), and one whose answer is 101 becomes a tunnel (`Call::switch`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnding {
    /// The answer has come whole: the member has finished.
    Whole,
    /// The client has left, or the answer is not needed.
    Unwanted,
    /// The answer did not begin before the deadline.
    TimedOut,
    /// The answer is late, the member was marked down, and the request goes to another one.
    MarkedDown,
    /// The client's side failed while its body was being passed on, or while the member works: the member has a part of a request, or is to
    /// stop.
    ClientFailed,
    /// Another member has answered the same request before. That is no failure of this one.
    Outrun,
    /// The member hung up in the middle of its answer.
    HungUp,
    /// What came is not HTTP.
    BadAnswer,
    /// The member was told to stop, and has closed the connection or does not react.
    Released,
}
