//! Files as the target of a route: turns their results into answers and refusals. Knows no file system.

use super::answer::{Answer, Streamed};
use super::refusal::Refusal;
use super::target::{Route, Target};
use crate::exchange::Exchange;
use crate::files::{Files, NotServed, ServedFile};

/// Runs before the body is read, because a 405 does not need the body.
pub(super) fn check_method(route: &Route, exchange: &Exchange) -> Result<(), Refusal> {
    match route.target {
        Target::Files(_) if !reads(exchange) => Err(Refusal::FileMethod),
        _ => Ok(()),
    }
}

fn reads(exchange: &Exchange) -> bool {
    matches!(exchange.head.method(), b"GET" | b"HEAD")
}

/// The answer with the file, or the refusal.
pub(super) async fn answer(files: &Files, exchange: &mut Exchange) -> Result<Answer, Refusal> {
    let ServedFile { head, length, body } = files.answer(exchange).await?;
    exchange.to_client.has_forms = files.settings.precompressed;
    // A `Cache-Control: max-age=...` that the route sets is not for the page of a missing file.
    exchange.to_client.yields = head.status == 404;
    Ok(Answer::Streamed(Box::new(Streamed { head, length, body })))
}

/// The file from the folder that the route looks into before its target, if there is one.
pub(super) async fn first(route: &Route, exchange: &mut Exchange) -> Result<Option<Answer>, Refusal> {
    let Some(files) = &route.files_first else { return Ok(None) };
    if !reads(exchange) || exchange.offer.is_some() {
        return Ok(None);
    }
    match answer(files, exchange).await {
        Ok(answer) => Ok(Some(answer)),
        Err(Refusal::NoFile(_)) => Ok(None),
        Err(other) => Err(other),
    }
}

impl From<NotServed> for Refusal {
    fn from(why: NotServed) -> Self {
        match why {
            NotServed::Missing(detail) => Self::NoFile(detail),
            NotServed::Precondition => Self::Precondition,
            NotServed::Range(length) => Self::Range(length),
            NotServed::Unreadable(error) => Self::FileSystem(error),
        }
    }
}
