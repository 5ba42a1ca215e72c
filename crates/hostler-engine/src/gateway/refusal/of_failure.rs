//! What the client gets after a failed call. Knows no retries.

use hostler_wire::CallError;

use super::{Refusal, limit_of};
use crate::proxy::Failure;

/// The refusal for a failed call that is not tried again.
impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unreachable(error) => Self::Unreachable(error),
            Failure::NoDescriptor(error) => Self::NoDescriptor(error),
            Failure::Tls(fault, detail) => Self::MemberTls(fault, detail),
            Failure::Unprocessed(detail) => Self::WorkerLost(detail),
            Failure::NotExpressible => {
                Self::Target("HTTP/2, which the application speaks, cannot express it")
            }
            Failure::HeadTooLarge(most) => Self::MemberHeadLimit(most),
            Failure::Unanswered(error) | Failure::Broken(error) => Self::WorkerLost(error.to_string()),
            Failure::BadAnswer(error @ CallError::Interim { .. }) => Self::InterimAnswers(error.to_string()),
            Failure::BadAnswer(error) => Self::BadAnswer(bad_answer(&error)),
            Failure::TimedOut | Failure::MarkedDown => Self::AnswerTimeout,
            Failure::Body(error) => Self::Body(error),
        }
    }
}

/// What is wrong with an answer. A head that is only too large comes with the setting that allows it.
fn bad_answer(error: &CallError) -> String {
    let limit = if let CallError::Head(head) = error { limit_of(head) } else { None };
    limit.map_or_else(|| error.to_string(), |limit| format!("{error} ({limit})"))
}
