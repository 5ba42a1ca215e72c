//! An item of a JSON list that a client has sent. Knows no service.

use serde_json::Value;
use serde_json::value::RawValue;

/// A longer item is read only if it is a text. Another value can take many times the memory of what the client sends: an empty object
/// with its three bytes takes some 70 bytes, and one with a key hundreds.
const LONGEST: usize = 4096;

/// The value of an item. `None`: it is not a text and too long, or nested too deeply.
pub fn value(item: &RawValue) -> Option<Value> {
    let json = item.get();
    let is_read = json.starts_with('"') || json.len() <= LONGEST;
    if is_read { serde_json::from_str(json).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_item_is_read_only_if_it_is_a_text() {
        let value = |json: &str| value(serde_json::from_str(json).unwrap());
        assert_eq!(value(" 5 "), Some(5.into()));
        assert_eq!(value("{\"code\": \"1\"}"), Some(serde_json::json!({ "code": "1" })));
        let long = "x".repeat(10_000);
        assert_eq!(value(&format!("\"{long}\"")), Some(long.as_str().into()));
        assert_eq!(value(&format!("{{\"code\":\"{long}\"}}")), None);
        assert_eq!(value(&format!("[{}1]", "1,".repeat(10_000))), None);
    }
}
