//! What follows from a response whose client has left, or has got a refusal in its place. Knows no members and no cache.

use std::sync::Arc;

use hostler_wire::ResponseHead;

/// Takes the head of a response that comes when no client waits for it any more.
pub type LateAnswer = Arc<dyn Fn(&ResponseHead) + Send + Sync>;
