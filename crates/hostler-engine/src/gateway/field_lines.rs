//! A field that has several lines, as one value. Knows no requests.

use hostler_wire::{Fields, Name};

/// Appends the lines of a field to `value`. Several lines are one value, with commas between them (RFC 9110 section 5.2). Cookies have
/// semicolons (RFC 9113 section 8.2.3).
pub(super) fn join(fields: &Fields, name: &str, value: &mut Vec<u8>) {
    let between: &[u8] = if Name::of(name.as_bytes()) == Name::Cookie { b"; " } else { b", " };
    for (at, line) in fields.values(name).enumerate() {
        value.extend_from_slice(if at > 0 { between } else { b"" });
        value.extend_from_slice(line);
    }
}
