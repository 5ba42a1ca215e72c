//! Answers that are streams: they are counted, and end when their members leave or Hostler stops. Does not know how they are sent.

use std::sync::Arc;

use hostler_engine::exchange::Connections;

use super::response_body::ResponseBody;
use super::tunnel;

/// Counts the answer if it is a stream, and lets it end with its member. Returns whether it is one.
pub(super) fn begin(body: &mut ResponseBody, is_repeatable: bool, connections: &Arc<Connections>) -> bool {
    let Some(call) = body.call().filter(|call| call.is_stream()) else { return false };
    call.count_stream(connections);
    // The client of a GET can send it again. The response to another request, such as a POST to a language model, comes only once: its
    // stream has the time of a request to end by itself.
    if is_repeatable {
        let all = connections.clone();
        call.end_stream_with_member(connections.is_ending(), move || tunnel::delay(&all));
    }
    true
}
