//! Draws the pictures of the rows in ARCHITECTURE.md, and fails when they are stale. Knows no sources.

use crate::inside::INSIDE;
use crate::sources::root;
use crate::{LIBRARIES, ROWS};

const BEGIN: &str = "<!-- Generated from crates/hostler/tests/tidy/picture.rs; refresh with: UPDATE=1 cargo test --workspace --test tidy -->\n";
const END: &str = "<!-- End of what is generated. -->\n";

#[test]
fn the_pictures_in_the_architecture_are_those_of_the_rows() {
    let path = root().join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) =
        text.split_once(BEGIN).unwrap_or_else(|| panic!("ARCHITECTURE.md has no line {BEGIN}"));
    let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("ARCHITECTURE.md has no line {END}"));
    let fresh = format!("{before}{BEGIN}{}{END}{after}", pictures());
    if std::env::vars_os().any(|(name, _)| name == "UPDATE") {
        std::fs::write(&path, fresh).unwrap();
    } else {
        let help = "refresh it with: UPDATE=1 cargo test --workspace --test tidy";
        assert!(text == fresh, "the picture of the rows in ARCHITECTURE.md is stale; {help}");
    }
}

/// The picture of the program and its libraries, then one picture for each module with rows inside.
fn pictures() -> String {
    let between = |rows: &[&[&str]]| rows.iter().map(|row| vec![row.join("   ")]).collect::<Vec<_>>();
    let program = [
        boxed("hostler, hostler-gorouter and hostler-engine", &between(ROWS)),
        boxed("libraries, and which others each may use", &libraries()),
    ]
    .concat();
    let inside = INSIDE.iter().map(|(library, module, rows)| {
        let (title, top) = match *module {
            "" => ((*library).to_owned(), "lib"),
            module => (format!("{library}: {module}"), "mod"),
        };
        let top = [top];
        let rows: Vec<_> = std::iter::once(&top[..]).chain(rows.iter().copied()).collect();
        boxed(&title, &between(&rows))
    });
    let blocks = std::iter::once(program).chain(inside);
    blocks.map(|block| format!("\n```text\n{block}```\n")).collect::<String>() + "\n"
}

/// One line for each library that uses others, then one line with the libraries that use none.
fn libraries() -> Vec<Vec<String>> {
    let name = |library: &str| library.replace('_', "-");
    let short = |library: &&str| name(library).replace("hostler-", "-");
    let (using, alone): (Vec<_>, Vec<_>) = LIBRARIES.iter().partition(|(_, used)| !used.is_empty());
    let using = using.iter().map(|(library, used)| {
        let used: Vec<_> = used.iter().map(short).collect();
        format!("{:16} uses {}", name(library), used.join(", "))
    });
    let alone: Vec<_> = alone.iter().map(|(library, _)| short(library)).collect();
    vec![using.collect(), vec![format!("hostler{}", alone.join(", "))]]
}

/// The rows in a frame, from top to bottom. A row has one or more lines.
fn boxed(title: &str, rows: &[Vec<String>]) -> String {
    let width = rows.iter().flatten().map(String::len).max().unwrap_or(0).max(70);
    let title = format!(" {title} ");
    let top = format!("┌─{title}{}┐\n", "─".repeat(width + 1 - title.len()));
    let between = format!("├{}┤\n", "─".repeat(width + 2));
    let row =
        |lines: &Vec<String>| lines.iter().map(|line| format!("│ {line:width$} │\n")).collect::<String>();
    let rows: Vec<_> = rows.iter().map(row).collect();
    format!("{top}{}└{}┘\n", rows.join(&between), "─".repeat(width + 2))
}
