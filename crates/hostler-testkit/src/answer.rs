//! An answer as a client reads it, with what a test says about it. Knows no sockets.

use std::fmt;

use serde_json::Value;

use crate::message::MessageHead;

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnding {
    /// As its framing says.
    Whole,
    /// The connection was closed before that.
    Cut,
    /// The connection was reset.
    Reset,
}

/// An answer.
#[derive(Clone)]
pub struct ReceivedAnswer {
    /// The status code.
    pub status: u16,
    /// The final head.
    pub head: MessageHead,
    /// Interim heads (1xx) that came before.
    pub interim: Vec<MessageHead>,
    /// What came of the body.
    pub body: Vec<u8>,
    /// The sizes of its chunks, the last one (0) included.
    pub chunks: Vec<usize>,
    /// Trailer field lines.
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
    /// If it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<String> {
        self.head.field(name)
    }

    /// Says that it is a complete answer with this status.
    #[track_caller]
    pub fn assert_status(&self, status: u16) -> &Self {
        assert!(
            self.status == status && self.ending == ConnectionEnding::Whole,
            "expected a whole {status}, got {self:?}"
        );
        self
    }

    /// Says that it is a complete 200 with this body.
    #[track_caller]
    pub fn assert_ok(&self, body: &str) -> &Self {
        self.assert_status(200);
        assert!(self.body == body.as_bytes(), "expected {body:?}, got {self:?}");
        self
    }

    /// Says that Hostler itself has answered: with this status, for this reason.
    #[track_caller]
    pub fn assert_refused(&self, status: u16, reason: &str) -> &Self {
        self.assert_status(status).assert_field("hostler-refusal", reason)
    }

    /// Says that a field has this value.
    #[track_caller]
    pub fn assert_field(&self, name: &str, value: &str) -> &Self {
        assert!(self.field(name).as_deref() == Some(value), "expected {name}: {value}, got {self:?}");
        self
    }

    /// Says that a field is missing.
    #[track_caller]
    pub fn assert_no_field(&self, name: &str) -> &Self {
        assert!(self.field(name).is_none(), "expected no {name}, got {self:?}");
        self
    }

    /// Says that the body tells of something.
    #[track_caller]
    pub fn assert_says(&self, part: &str) -> &Self {
        assert!(self.text().contains(part), "expected a word of {part:?}, got {self:?}");
        self
    }

    /// Says that nobody could take it for complete.
    #[track_caller]
    pub fn assert_broken(&self) -> &Self {
        assert!(self.ending != ConnectionEnding::Whole, "expected a broken transfer, got {self:?}");
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
