//! The first bytes of a body that were read before the body is sent on. Knows no connection.

/// Bytes that come before those of the connection.
pub(super) struct ReadAhead {
    bytes: Vec<u8>,
    /// They are the whole body.
    complete: bool,
}

impl ReadAhead {
    pub fn new(bytes: Vec<u8>, complete: bool) -> Self {
        Self { bytes, complete }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends at most `max` bytes. None: nothing is left here, and more comes from the connection. True: the body is complete.
    pub fn take(&mut self, into: &mut Vec<u8>, max: usize) -> Option<bool> {
        if self.bytes.is_empty() && !self.complete {
            return None;
        }
        let some = self.bytes.len().min(max.max(1));
        into.extend(self.bytes.drain(..some));
        Some(self.complete && self.bytes.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_in_pieces_and_then_the_end_or_the_connection() {
        for complete in [true, false] {
            let (mut ahead, mut into) = (ReadAhead::new(b"abcde".to_vec(), complete), Vec::new());
            assert_eq!(ahead.take(&mut into, 3), Some(false));
            assert_eq!(ahead.take(&mut into, 3), Some(complete));
            assert_eq!(into, b"abcde");
            assert_eq!(ahead.take(&mut into, 3), complete.then_some(true));
        }
    }
}
