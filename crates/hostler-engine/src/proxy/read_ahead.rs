//! The first bytes of a body that were read before the body is sent on. Knows no connection.

use hostler_wire::CallError;

/// Bytes that come before those of the connection.
pub(super) struct ReadAhead {
    bytes: Vec<u8>,
    /// What came after these bytes: the end of the body, or an error. None: more bytes come from the connection.
    end: Option<Result<(), CallError>>,
}

impl ReadAhead {
    /// `came`: the result that the connection gave with these bytes, if any. An error must be kept: after it the connection is out of step,
    /// and a second read may give no error.
    pub fn new(bytes: Vec<u8>, came: Option<Result<bool, CallError>>) -> Self {
        let end = came.and_then(|came| match came {
            Ok(false) => None,
            end => Some(end.map(drop)),
        });
        Self { bytes, end }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends at most `max` bytes. None: nothing is left here, and more comes from the connection. True: the body is complete.
    pub fn take(&mut self, into: &mut Vec<u8>, max: usize) -> Option<Result<bool, CallError>> {
        if self.bytes.is_empty() {
            return self.end.take().map(|end| end.map(|()| true));
        }
        let some = self.bytes.len().min(max.max(1));
        into.extend(self.bytes.drain(..some));
        Some(Ok(self.bytes.is_empty() && matches!(self.end, Some(Ok(())))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_in_pieces_and_then_the_end_or_the_connection() {
        for complete in [true, false] {
            let (mut ahead, mut into) = (ReadAhead::new(b"abcde".to_vec(), Some(Ok(complete))), Vec::new());
            let mut take = |max| ahead.take(&mut into, max).map(Result::unwrap);
            assert_eq!((take(3), take(3), take(3)), (Some(false), Some(complete), complete.then_some(true)));
            assert_eq!(into, b"abcde");
        }
        assert!(ReadAhead::new(Vec::new(), None).take(&mut Vec::new(), 3).is_none());
    }

    #[test]
    fn a_break_comes_after_the_bytes_before_it() {
        for bytes in [&b"abc"[..], b""] {
            let mut ahead = ReadAhead::new(bytes.to_vec(), Some(Err(CallError::Cut)));
            let mut into = Vec::new();
            if !bytes.is_empty() {
                assert!(matches!(ahead.take(&mut into, 9), Some(Ok(false))));
            }
            assert!(matches!(ahead.take(&mut into, 9), Some(Err(CallError::Cut))));
            assert_eq!(into, bytes);
        }
    }
}
