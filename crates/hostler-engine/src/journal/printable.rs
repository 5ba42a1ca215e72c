//! Text from clients and apps, made safe for a terminal: control characters are escaped. Knows no entries of the log.

use std::borrow::Cow;
use std::fmt::Write;

use super::colour::errors_are_coloured;

/// What may pass to the terminal besides text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// Nothing.
    Text,
    /// Colours and other attributes of characters (SGR, `ESC [ ... m`).
    Colours,
}

impl Allowed {
    /// What may pass to standard error.
    pub fn on_standard_error() -> Self {
        if errors_are_coloured() { Self::Colours } else { Self::Text }
    }
}

/// Resets all attributes of characters.
const RESET: &str = "\u{1b}[0m";
/// A longer sequence is no colour.
const MOST_PARAMETERS: usize = 32;

/// Escapes control characters, for example `\x1b`: a text must not move the cursor, start a line, or reorder the characters around it.
/// If colours pass, they end with the text.
pub fn printable(text: &str, allowed: Allowed) -> Cow<'_, str> {
    let Some(first) = text.find(is_unsafe) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut at = Some(first);
    let mut is_coloured = false;
    while let Some(unsafe_at) = at {
        out.push_str(&rest[..unsafe_at]);
        rest = &rest[unsafe_at..];
        let colour = if allowed == Allowed::Colours { colour_at_start(rest) } else { None };
        if let Some(colour) = colour {
            out.push_str(colour);
            rest = &rest[colour.len()..];
            is_coloured = true;
        } else if let Some(escaped) = rest.chars().next() {
            escape(&mut out, escaped);
            rest = &rest[escaped.len_utf8()..];
        }
        at = rest.find(is_unsafe);
    }
    out.push_str(rest);
    if is_coloured {
        out.push_str(RESET);
    }
    Cow::Owned(out)
}

/// As [`printable`], for a text of several lines.
pub fn printable_lines(text: &str, allowed: Allowed) -> String {
    text.split('\n').map(|line| printable(line, allowed)).collect::<Vec<_>>().join("\n")
}

/// The text on one line: for each control character, and each that changes the direction of the text around it, a space.
pub fn on_one_line(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|c| if c == '\t' || is_unsafe(c) { ' ' } else { c })
}

/// Control characters but for the tab, separators of lines, and characters that change the direction of the text around them.
pub fn is_unsafe(c: char) -> bool {
    matches!(c,
        '\0'..='\x08' | '\x0a'..='\x1f' | '\x7f'..='\u{9f}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape(out: &mut String, c: char) {
    let code = u32::from(c);
    // Writing to a string does not fail.
    let _ = if code < 0x100 { write!(out, "\\x{code:02x}") } else { write!(out, "\\u{{{code:x}}}") };
}

/// The SGR sequence with which the text begins.
fn colour_at_start(text: &str) -> Option<&str> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':')?;
    let is_colour = end <= MOST_PARAMETERS && parameters[end..].starts_with('m');
    is_colour.then(|| &text[..end + 3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_visibly() {
        let cases = [
            ("plain é €\ttab", "plain é €\ttab"),
            ("a\u{1b}[2Jb", "a\\x1b[2Jb"),
            ("\u{1b}[31mred", "\\x1b[31mred"),
            ("\u{9b}31m", "\\x9b31m"),
            ("a\r\nb\0\u{7f}", "a\\x0d\\x0ab\\x00\\x7f"),
            ("\u{202e}fdp.exe\u{2069}\u{2028}", "\\u{202e}fdp.exe\\u{2069}\\u{2028}"),
        ];
        for (text, expected) in cases {
            assert_eq!(printable(text, Allowed::Text), expected, "{text:?}");
        }
    }

    #[test]
    fn on_one_line_each_unsafe_character_is_a_space() {
        let line: String = on_one_line("a\tb\r\nc\u{9b}31m\u{202e}d é €").collect();
        assert_eq!(line, "a b  c 31m d é €");
    }

    #[test]
    fn the_lines_of_a_text_stay_lines() {
        let text = "one\u{1b}[2J\n\ntwo\r\n";
        assert_eq!(printable_lines(text, Allowed::Text), "one\\x1b[2J\n\ntwo\\x0d\n");
    }

    #[test]
    fn colours_pass_where_they_are_allowed_and_end_with_the_text() {
        let cases = [
            ("\u{1b}[1;38:5:8mhi\u{1b}[m there", "\u{1b}[1;38:5:8mhi\u{1b}[m there\u{1b}[0m"),
            ("\u{1b}[31", "\\x1b[31"),
            ("\u{1b}[31K\u{1b}[?25lm", "\\x1b[31K\\x1b[?25lm"),
            ("\u{1b}]0;title\u{7}", "\\x1b]0;title\\x07"),
            ("\u{1b}", "\\x1b"),
        ];
        for (text, expected) in cases {
            assert_eq!(printable(text, Allowed::Colours), expected, "{text:?}");
        }
        let long = format!("\u{1b}[{}m", "1;".repeat(40));
        assert!(printable(&long, Allowed::Colours).starts_with("\\x1b["));
    }
}
