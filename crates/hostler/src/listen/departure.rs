//! What the log says about a client that has left before its answer began. Knows no connections.

use hostler_engine::exchange::Exchange;
use hostler_engine::gateway::Refusal;

/// Notes for the log that the client has left before its answer began, with any answer.
pub(super) fn note_departure(exchange: &mut Exchange) {
    let Exchange { log_facts, .. } = exchange;
    let left = Refusal::ClientLeft.facts();
    if let Some(missed) = log_facts.refusal.filter(|missed| *missed != left.reason) {
        log_facts.detail =
            Some(format!("the client left before Hostler could send it a {} ({missed})", log_facts.status));
    }
    (log_facts.status, log_facts.refusal) = (left.status, Some(left.reason));
    (log_facts.aborted, log_facts.bytes_out) = (Some("client"), 0);
}
