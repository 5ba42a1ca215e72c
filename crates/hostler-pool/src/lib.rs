//! A queue with members, dispatch to free slots, and the supervisor of Node workers. Knows no HTTP.

pub mod dispatch;
pub mod worker;
