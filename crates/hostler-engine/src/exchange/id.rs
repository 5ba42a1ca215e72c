//! The request id, which all logs use. Knows nothing else.

use std::cell::RefCell;
use std::fmt;

use hostler_wire::{Fields, Name};

const LONGEST: usize = 128;

/// The value of `X-Request-Id`: the client's if it is safe to log, else a new one.
#[derive(Clone, Default)]
pub struct RequestId(Text);

#[derive(Clone, Default)]
enum Text {
    #[default]
    None,
    Made([u8; 24]),
    Given(Box<str>),
}

struct IdSource {
    prefix: u32,
    counter: u64,
}

thread_local! {
    /// A random start per thread and a counter: unique without a system call for each id, and hard to guess.
    static SOURCE: RefCell<IdSource> = RefCell::new(IdSource { prefix: fastrand::u32(..), counter: fastrand::u64(..) });
}

impl RequestId {
    /// The state before the first request.
    pub fn none() -> Self {
        Self::default()
    }

    /// The client's id, or a new one.
    pub fn of(fields: &Fields) -> Self {
        match fields.first(Name::XRequestId).and_then(|value| std::str::from_utf8(value).ok()) {
            Some(given) if is_fit(given) => Self(Text::Given(given.into())),
            _ => Self::made(),
        }
    }

    /// A new id.
    pub fn made() -> Self {
        let (prefix, counter) = SOURCE.with_borrow_mut(|source| {
            // An odd step visits every number once before one repeats.
            source.counter = source.counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
            (source.prefix, source.counter)
        });
        let mut text = [0; 24];
        for (at, digit) in text.iter_mut().enumerate() {
            let nibble = match at {
                0..8 => u64::from(prefix) >> (28 - 4 * at),
                _ => counter >> (60 - 4 * (at - 8)),
            };
            *digit = b"0123456789abcdef"[(nibble & 15) as usize];
        }
        Self(Text::Made(text))
    }

    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Text::None => b"",
            Text::Made(text) => text,
            Text::Given(text) => text.as_bytes(),
        }
    }

    /// Empty before the first request.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::None => "",
            Text::Made(text) => std::str::from_utf8(text).unwrap_or_default(),
            Text::Given(text) => text,
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn is_fit(given: &str) -> bool {
    (1..=LONGEST).contains(&given.len())
        && given
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':' | b'/' | b'+' | b'='))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use hostler_wire::{Limits, RequestHead};

    use super::*;

    fn of(line: &str) -> String {
        let mut head = RequestHead::default();
        head.parse(format!("GET / HTTP/1.1\r\nHost: a\r\n{line}\r\n").as_bytes(), &Limits::default())
            .unwrap();
        RequestId::of(&head.fields).to_string()
    }

    #[test]
    fn ids_are_unique_and_a_fit_one_is_kept() {
        let made: HashSet<_> = (0..10_000).map(|_| of("")).collect();
        assert_eq!(made.len(), 10_000);
        assert!(made.iter().all(|id| id.len() == 24));
        assert_eq!(of("X-Request-Id: 7f-A_1.b\r\n"), "7f-A_1.b");
    }

    #[test]
    fn what_could_forge_a_log_line_is_replaced() {
        for bad in ["a b", "a\"b", "", &"x".repeat(129), "é"] {
            assert_eq!(of(&format!("X-Request-Id: {bad}\r\n")).len(), 24, "{bad:?}");
        }
    }
}
