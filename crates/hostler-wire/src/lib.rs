//! HTTP/1.1 on the wire: strict heads, body framing, one kept-alive connection to a member. Knows no pools, routes or
//! queues.
//!
//! Both sides of a proxy use the same rules, so what is accepted in front is read in the same way behind. `head` and
//! `scan` read heads, `compose` makes them from parts, `write` writes them. `body` decides where a body ends and reads
//! it, `bulk` reads long bodies without a copy, `chunked` reads the chunked coding, `trailer` decides which trailers are allowed. `link` reads the links of a `Link` field. `connection` is a connection to a
//! member, `direct` sends files inside the kernel, `held` tells what TLS holds, `turn` bounds what a task moves in one turn. Of WebSockets, only the bounds of frames are known (`websocket`).

pub mod body;
pub mod bulk;
mod call_error;
pub mod chunked;
pub mod compose;
pub mod connection;
pub mod date;
mod dial;
pub mod direct;
pub mod field;
pub mod grammar;
pub mod head;
mod held;
pub mod link;
mod preference;
pub mod scan;
mod spare;
pub mod stream;
pub mod trailer;
pub mod turn;
pub mod websocket;
mod whole;
pub mod write;

pub use body::{BodyLength, BodyReader, FramingError, request_body, response_body};
pub use bulk::Bulk;
pub use call_error::CallError;
pub use chunked::{Chunk, ChunkStart, ChunkedDecoder, ChunkedError, write_end};
pub use compose::BadLine;
pub use connection::MemberConnection;
pub use date::parse_http_date;
pub use dial::look_up;
pub use direct::FilePart;
pub use field::{Field, Fields, Name, Span};
pub use grammar::{
    TOKEN, byte_set, hex, is_token, media_type, name_ends_with, parse_digits, split_host, starts_in_any_case,
    tokens, write_hex,
};
pub use head::{HeadError, RequestHead, ResponseHead, Version};
pub use link::{BadLink, WebLink, links};
pub use preference::{by_weight, weight};
pub use scan::{HeadScan, Limits, ScanError};
pub use stream::{Address, Duplex, Metered, Stream, keep_alive, read_some, read_then};
pub use trailer::may_trail;
pub use websocket::{Frames, going_away};
pub use whole::Whole;
pub use write::{
    content_range, reason_phrase, write_body_length, write_field, write_head_end, write_number_field,
    write_request_line, write_status_line,
};
