//! Lines of the screen of `hostler top`, written into a buffer. Knows no figures.

use hostler_engine::journal::on_one_line;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

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
        while width > 20 && fitting(rest, width) < rest.len() {
            // After the indent of two.
            let indent = rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at);
            let end = fitting(rest, width);
            let at = rest.get(indent..end).and_then(|line| line.rfind(' ')).map_or(end, |at| at + indent);
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

/// How many cells of the screen a text takes: a character of Chinese or Japanese takes two.
fn cells(text: &str) -> usize {
    Span::raw(text).width()
}

/// Where the part of a text ends that has room in so many cells.
fn fitting(text: &str, room: usize) -> usize {
    let mut taken = 0;
    let is_over = |(at, c): &(usize, char)| {
        taken += cells(&text[*at..*at + c.len_utf8()]);
        taken > room
    };
    text.char_indices().find(is_over).map_or(text.len(), |(at, _)| at)
}

/// A row of the screen as text. The cells behind a wide character belong to it.
pub(super) fn row_text(screen: &Buffer, y: u16) -> String {
    let (mut text, mut covered) = (String::new(), 0);
    for x in screen.area.left()..screen.area.right() {
        if covered > 0 {
            covered -= 1;
            continue;
        }
        let symbol = screen[(x, y)].symbol();
        covered = cells(symbol).saturating_sub(1);
        text.push_str(symbol);
    }
    text.truncate(text.trim_end().len());
    text
}

/// The first characters of a text, without control characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    on_one_line(text).take(most).collect()
}
