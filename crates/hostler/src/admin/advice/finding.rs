//! What a rule finds, and how it is worded. Knows no rules.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hostler_engine::journal::on_one_line;

use super::table::AdviceRow;

/// One row of the table that holds now.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    pub row: &'static AdviceRow,
    pub pool: Option<Arc<str>>,
    pub worker: Option<usize>,
    /// What else it is about: a route, a file, a server.
    pub about: Option<String>,
    pub text: String,
}

impl Finding {
    pub fn new(row: &'static AdviceRow, text: String) -> Self {
        Self { row, pool: None, worker: None, about: None, text }
    }

    /// The text begins with the pool.
    pub fn of_pool(row: &'static AdviceRow, pool: &Arc<str>, text: &str) -> Self {
        Self { pool: Some(pool.clone()), ..Self::new(row, format!("{pool}: {text}")) }
    }

    /// The text begins with the worker.
    pub fn of_worker(row: &'static AdviceRow, pool: &Arc<str>, worker: usize, text: &str) -> Self {
        let text = format!("{pool}/{worker} {text}");
        Self { pool: Some(pool.clone()), worker: Some(worker), ..Self::new(row, text) }
    }

    /// The text begins with what it is about.
    pub fn about(row: &'static AdviceRow, about: &str, text: &str) -> Self {
        Self { about: Some(about.to_owned()), ..Self::new(row, format!("{about}: {text}")) }
    }

    /// What to do, with the names of this finding.
    pub fn action(&self) -> String {
        let worker = self.worker.map(|worker| worker.to_string());
        let action = self.row.action.replace("POOL", self.pool.as_deref().unwrap_or("NAME"));
        action.replace("WORKER", worker.as_deref().unwrap_or("N"))
    }
}

/// `1.5 s`, `480 ms`, `40 s`, `3 min`.
pub(super) fn time(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        millis @ 1000..10_000 => format!("{:.1} s", millis as f64 / 1e3),
        millis @ 10_000..120_000 => format!("{} s", millis / 1000),
        millis @ 120_000..7_200_000 => format!("{} min", millis / 60_000),
        millis @ 7_200_000..172_800_000 => format!("{} h", millis / 3_600_000),
        millis => format!("{} days", millis / 86_400_000),
    }
}

/// `480 MiB`, `1.5 GiB`.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes >> 20 {
        mib @ 0..1024 => format!("{mib} MiB"),
        _ => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}

/// A share in percent, of nothing: 0.
pub(super) fn percent(part: u64, whole: u64) -> u64 {
    if whole == 0 { 0 } else { (part.min(whole) as f64 * 100.0 / whole as f64) as u64 }
}

/// The most characters of a foreign text.
const LONGEST: usize = 120;

/// Foreign text on one line, of limited length. If it is longer, it ends after a word, with a mark.
pub(super) fn line(text: &str) -> String {
    let mut line: String = on_one_line(text).take(LONGEST + 1).collect();
    let Some((last, _)) = line.char_indices().nth(LONGEST) else { return line };
    let mut spaces = line.char_indices().filter(|(at, c)| *c == ' ' && *at <= last);
    // A text without spaces is cut where it is too long.
    let end = spaces.next_back().map(|(space, _)| space).filter(|space| *space > last / 2).unwrap_or(last);
    line.truncate(end);
    line.truncate(line.trim_end().len());
    line + "…"
}

/// The most parts of a text of Hostler.
const MOST_PARTS: usize = 8;

/// A text of Hostler with foreign text in it, such as a path or a line that the app has printed, on one line. Each part of it that is too
/// long is cut alone, so that the parts behind it stay: they say what to do.
pub(super) fn sentences(text: &str) -> String {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find("; ").into_iter().chain(rest.find(". ")).min() {
        let (part, behind) = rest.split_at(end + 2);
        parts.push(line(&part[..end]) + &part[end..]);
        rest = behind;
        if parts.len() == MOST_PARTS {
            return parts.concat().trim_end().to_owned() + "…";
        }
    }
    parts.push(line(rest));
    parts.concat()
}

pub(super) fn file(path: &Path) -> String {
    line(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_cut_and_what_follows_it_stays() {
        let path = "/srv/app".repeat(40);
        let text = format!(
            "Hostler found no HTTP server of the app within its start_timeout (30 s); the app listens on the path {path}; \
             let it listen on a port; it printed last: {}",
            "word ".repeat(60)
        );
        let told = sentences(&text);
        assert!(told.contains("the app listens on the path /srv/app/srv"), "{told}");
        assert!(told.contains("…; let it listen on a port; it printed last: word word"), "{told}");
        assert!(told.len() < 500 && told.ends_with(" word…"), "{told}");
        let many = sentences(&"a\nb; c. ".repeat(100));
        assert!(many.starts_with("a b; c. a b; c. ") && many.len() < 60 && many.ends_with('…'), "{many}");
        assert_eq!(sentences("exit code 1 before it was ready: 1.5"), "exit code 1 before it was ready: 1.5");
    }

    #[test]
    fn a_long_text_is_cut_after_a_word_and_marked() {
        assert_eq!(line("a\nb"), "a b");
        let exact = "x".repeat(LONGEST);
        assert_eq!(line(&exact), exact);
        assert_eq!(line(&format!("{exact}y")), format!("{exact}…"));
        let words = "ärger ".repeat(30);
        let cut = line(&words);
        assert!(cut.chars().count() <= LONGEST + 1 && cut.ends_with(" ärger…"), "{cut}");
    }
}
