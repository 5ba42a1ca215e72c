//! The colours of the log, and whether standard output and standard error show them. Knows no lines.

use std::fmt::{self, Display};
use std::io;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use super::line::Level;

pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const BOLD: Style = Style::new().bold();
pub(super) const RED: Style = AnsiColor::Red.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// Workers with consecutive numbers get different colours.
const WORKERS: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Magenta,
    AnsiColor::Green,
    AnsiColor::Blue,
    AnsiColor::BrightCyan,
    AnsiColor::BrightMagenta,
];

/// Whether text on standard output is coloured. The order: `NO_COLOR`, `FORCE_COLOR` (given here), `CLICOLOR_FORCE`, `CLICOLOR`, and then
/// whether it is a terminal whose `TERM` is not `dumb`.
pub fn is_coloured(force_color: Option<&str>) -> bool {
    match force_color {
        _ if anstyle_query::no_color() => false,
        Some("0" | "false") => false,
        Some(_) => true,
        None => AutoStream::choice(&io::stdout()) != ColorChoice::Never,
    }
}

/// Whether text on standard error is coloured, by the same variables except `FORCE_COLOR`.
pub(super) fn errors_are_coloured() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// Something in a style.
pub(super) struct Styled<T>(pub Style, pub T);

impl<T: Display> Display for Styled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(style, text) = self;
        write!(f, "{style}{text}{style:#}")
    }
}

/// Makes texts coloured, or leaves them as they are.
#[derive(Clone, Copy)]
pub(super) struct Styler {
    pub coloured: bool,
}

impl Styler {
    pub fn style<T>(self, style: Style, text: T) -> Styled<T> {
        Styled(if self.coloured { style } else { Style::new() }, text)
    }
}

pub(super) fn of_status(status: u16) -> Style {
    match status {
        500.. => RED.bold(),
        400.. => YELLOW,
        300.. => CYAN,
        _ => AnsiColor::Green.on_default(),
    }
}

pub(super) fn of_level(level: Level) -> Style {
    match level {
        Level::Trace | Level::Debug => DIM,
        Level::Info => AnsiColor::Green.on_default(),
        Level::Warn => YELLOW.bold(),
        Level::Error | Level::Fatal => RED.bold(),
    }
}

pub(super) fn of_worker(number: usize) -> Style {
    WORKERS[number % WORKERS.len()].on_default()
}
