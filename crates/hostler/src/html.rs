//! Text inside HTML. Knows no page.

/// The text with the characters escaped that have a meaning in HTML, also inside a quoted attribute.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
