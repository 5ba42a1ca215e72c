//! Lines of the screen of `hostler top`, written into a buffer. Knows no figures.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// Writes lines from the top until the area is full.
pub(super) struct TopPage<'a> {
    pub buffer: &'a mut Buffer,
    pub area: Rect,
    pub row: u16,
    pub is_coloured: bool,
}

impl TopPage<'_> {
    pub fn left(&self) -> usize {
        usize::from(self.area.height.saturating_sub(self.row))
    }

    pub fn line(&mut self, text: &str, style: Style) {
        if self.left() > 0 && self.area.width > 0 {
            let (x, y) = (self.area.x, self.area.y + self.row);
            self.buffer.set_stringn(x, y, text, usize::from(self.area.width), style);
            self.row += 1;
        }
    }

    /// The width of a column of names, with a space: `least`, and as much more as the longest name needs and the row has. The whole row has the
    /// width `row` with `least`.
    pub fn column<'a>(&self, least: usize, row: usize, names: impl Iterator<Item = &'a str>) -> usize {
        let most = least + usize::from(self.area.width).saturating_sub(row);
        names.map(|name| name.chars().count() + 1).max().unwrap_or_default().clamp(least, most)
    }

    /// On as many lines as it needs, broken between words.
    pub fn words(&mut self, text: &str, style: Style) {
        let width = usize::from(self.area.width);
        let mut rest = text;
        while rest.chars().count() > width && width > 20 {
            let place = |nth| rest.char_indices().nth(nth).map_or(rest.len(), |(at, _)| at);
            // After the indent of two.
            let (indent, end) = (place(2), place(width));
            let at = rest[indent..end].rfind(' ').map_or(end, |at| at + indent);
            self.line(&rest[..at], style);
            rest = rest[at..].trim_start();
        }
        self.line(rest, style);
    }

    pub fn heading(&mut self, text: &str) {
        self.line(text, Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED));
    }

    pub fn colour(&self, colour: Color) -> Style {
        if self.is_coloured { Style::new().fg(colour) } else { Style::new().add_modifier(Modifier::BOLD) }
    }
}

/// The first characters of a text, without control characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(most).collect()
}
