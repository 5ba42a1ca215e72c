//! A response as a client reads it, with the assertions of tests. Knows no sockets.

use std::fmt;

use serde_json::Value;

use crate::message::MessageHead;

/// How a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnding {
    /// Complete, as its framing says.
    Whole,
    /// The connection was closed before the end.
    Cut,
    /// The connection was reset before the end.
    Reset,
}

/// A response.
#[derive(Clone)]
pub struct ReceivedAnswer {
    /// The status code.
    pub status: u16,
    /// The final head.
    pub head: MessageHead,
    /// The interim heads (1xx) before it.
    pub interim: Vec<MessageHead>,
    /// The body, or the part of it that came.
    pub body: Vec<u8>,
    /// The sizes of its chunks, with the last one (0).
    pub chunks: Vec<usize>,
    /// The trailer field lines.
    pub trailers: Vec<String>,
    /// How it ended.
    pub ending: ConnectionEnding,
}

impl ReceivedAnswer {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<String> {
        self.head.field(name)
    }

    /// Asserts that the response is complete and has this status.
    #[track_caller]
    pub fn assert_status(&self, status: u16) -> &Self {
        assert!(
            self.status == status && self.ending == ConnectionEnding::Whole,
            "expected a complete {status}, got {self:?}"
        );
        self
    }

    /// Asserts that the response is a complete 200 with this body.
    #[track_caller]
    pub fn assert_ok(&self, body: &str) -> &Self {
        self.assert_status(200);
        assert!(self.body == body.as_bytes(), "expected {body:?}, got {self:?}");
        self
    }

    /// Asserts that Hostler itself has refused the request, with this status and reason.
    #[track_caller]
    pub fn assert_refused(&self, status: u16, reason: &str) -> &Self {
        self.assert_status(status).assert_field("hostler-refusal", reason)
    }

    /// Asserts that a field has this value.
    #[track_caller]
    pub fn assert_field(&self, name: &str, value: &str) -> &Self {
        assert!(self.field(name).as_deref() == Some(value), "expected {name}: {value}, got {self:?}");
        self
    }

    /// Asserts that a field is missing.
    #[track_caller]
    pub fn assert_no_field(&self, name: &str) -> &Self {
        assert!(self.field(name).is_none(), "expected no {name}, got {self:?}");
        self
    }

    /// Asserts that the body contains this text.
    #[track_caller]
    pub fn assert_says(&self, part: &str) -> &Self {
        assert!(self.text().contains(part), "expected {part:?} in the body, got {self:?}");
        self
    }

    /// Asserts that the response is not complete.
    #[track_caller]
    pub fn assert_broken(&self) -> &Self {
        assert!(self.ending != ConnectionEnding::Whole, "expected an incomplete response, got {self:?}");
        self
    }
}

impl fmt::Debug for ReceivedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for head in self.interim.iter().chain([&self.head]) {
            write!(f, "\n{}", head.text())?;
        }
        let body = self.text();
        let shown: String = body.chars().take(400).collect();
        write!(f, "{shown}\n({} bytes, {:?})", self.body.len(), self.ending)?;
        if !self.trailers.is_empty() {
            write!(f, "\n{:?}", self.trailers)?;
        }
        Ok(())
    }
}
