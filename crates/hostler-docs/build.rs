//! Makes HTML pages of the pages of `docs/` that `SUMMARY.md` names, compressed, with a page of contents. Knows no page by name.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// What operators do not need: how Hostler is made and measured. Links to these pages become plain text.
const LEFT_OUT: [&str; 4] = ["../", "benchmarks", "decisions/", "stages/"];
const STYLE: &str = "style.css";

/// A line of `SUMMARY.md`.
enum Line {
    Part(String),
    Group { depth: usize, title: String },
    Page { depth: usize, title: String, path: String },
}

/// What the links of the pages may lead to.
struct Known {
    pages: BTreeSet<String>,
    pictures: BTreeSet<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    println!("cargo:rerun-if-changed={}", docs.join("SUMMARY.md").display());
    println!("cargo:rerun-if-changed=style.css");
    let menu = menu(&std::fs::read_to_string(docs.join("SUMMARY.md"))?);
    let pages = menu.iter().filter_map(|line| match line {
        Line::Page { path, .. } => Some(path.clone()),
        _ => None,
    });
    let known = Known { pages: pages.collect(), pictures: pictures(&docs)? };
    let mut files = BTreeMap::new();
    files.insert(String::new(), whole_page("Documentation", "", &contents(&menu)));
    files.insert(STYLE.to_owned(), std::fs::read_to_string(STYLE)?);
    for line in &menu {
        let Line::Page { title, path, .. } = line else { continue };
        let file = docs.join(path);
        println!("cargo:rerun-if-changed={}", file.display());
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        files.insert(path.clone(), whole_page(title, path, &body(&text, path, &known)));
    }
    for picture in &known.pictures {
        let file = docs.join(picture);
        println!("cargo:rerun-if-changed={}", file.display());
        files.insert(picture.clone(), std::fs::read_to_string(file)?);
    }
    write_index(&files)
}

/// The compressed files, and the source of the table with them.
fn write_index(files: &BTreeMap<String, String>) -> Result<(), Box<dyn Error>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "cargo tells a build script by a variable where its files go"
    )]
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo has set no OUT_DIR")?);
    let mut index = String::from("&[\n");
    for (at, (path, content)) in files.iter().enumerate() {
        let name = format!("{at}.gz");
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content.as_bytes())?;
        std::fs::write(folder.join(&name), encoder.finish()?)?;
        writeln!(
            index,
            "DocsFile {{ path: {path:?}, gzip: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\")) }},"
        )?;
    }
    index.push(']');
    Ok(std::fs::write(folder.join("index.rs"), index)?)
}

/// The pictures of the pages that are small: SVG files beside them.
fn pictures(docs: &Path) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(docs)? {
        let name = entry?.file_name();
        if let Some(name) = name.to_str().filter(|name| name.ends_with(".svg")) {
            found.insert(name.to_owned());
        }
    }
    Ok(found)
}

/// The lines of `SUMMARY.md`, without parts and groups that have no page.
fn menu(summary: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for line in summary.lines() {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let Some((title, path)) = line.trim_start().trim_start_matches("- ").split_once("](") else {
            if let Some(part) = line.strip_prefix("# ").filter(|part| *part != "Summary") {
                lines.push(Line::Part(part.to_owned()));
            }
            continue;
        };
        let (title, path) = (title.trim_start_matches('[').to_owned(), path.trim_end_matches(')'));
        if path.is_empty() {
            lines.push(Line::Group { depth, title });
        } else if !LEFT_OUT.iter().any(|prefix| path.starts_with(prefix)) {
            lines.push(Line::Page { depth, title, path: path.to_owned() });
        }
    }
    // From the end, so that a part whose groups are all empty goes too.
    let mut kept: Vec<Line> = Vec::new();
    for line in lines.into_iter().rev() {
        let has_page = match (&line, kept.last()) {
            (Line::Page { .. }, _) => true,
            (
                Line::Group { depth, .. },
                Some(Line::Page { depth: inner, .. } | Line::Group { depth: inner, .. }),
            ) => inner > depth,
            (Line::Part(_), Some(next)) => !matches!(next, Line::Part(_)),
            _ => false,
        };
        if has_page {
            kept.push(line);
        }
    }
    kept.reverse();
    kept
}

/// The list of all pages.
fn contents(menu: &[Line]) -> String {
    let mut list = String::from("<h1>Documentation</h1>\n");
    for line in menu {
        let (depth, content) = match line {
            Line::Part(title) => {
                let _ = writeln!(list, "<h2>{}</h2>", markdown(title));
                continue;
            }
            Line::Group { depth, title } => (depth, markdown(title)),
            Line::Page { depth, title, path } => {
                (depth, format!("<a href=\"{path}\">{}</a>", markdown(title)))
            }
        };
        let _ = writeln!(list, "<p class=\"depth{depth}\">{content}</p>");
    }
    list
}

/// A title, which may have code inside, without a paragraph around it.
fn markdown(title: &str) -> String {
    let inside =
        |event: &Event<'_>| !matches!(event, Event::Start(Tag::Paragraph) | Event::End(TagEnd::Paragraph));
    let mut out = String::new();
    html::push_html(&mut out, Parser::new(title).filter(inside));
    out
}

/// The HTML of a page's Markdown.
fn body(text: &str, page: &str, known: &Known) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
    let mut events: Vec<_> = Parser::new_ext(text, options).collect();
    name_headings(&mut events);
    let mut out = String::new();
    html::push_html(&mut out, without_dead_links(events, page, known).into_iter());
    // What is wider than the screen scrolls by itself, also with the keyboard.
    out.replace("<pre>", "<pre tabindex=\"0\">")
        .replace("<table>", "<div class=\"scroll\" tabindex=\"0\"><table>")
        .replace("</table>", "</table></div>")
}

/// Gives each heading the name that GitHub gives it: lower case, hyphens in place of spaces, no punctuation.
fn name_headings(events: &mut [Event<'_>]) {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for at in 0..events.len() {
        if !matches!(events[at], Event::Start(Tag::Heading { .. })) {
            continue;
        }
        let inside =
            events[at + 1..].iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
        let title: String = inside
            .filter_map(|event| match event {
                Event::Text(text) | Event::Code(text) => Some(&**text),
                _ => None,
            })
            .collect();
        let kept = title.to_lowercase();
        let kept = kept.chars().filter(|&c| c.is_alphanumeric() || " -_".contains(c));
        let mut name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let times = taken.entry(name.clone()).or_default();
        if *times > 0 {
            let _ = write!(name, "-{times}");
        }
        *times += 1;
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[at] {
            *id = Some(CowStr::from(name));
        }
    }
}

/// Links to what is left out become plain text, and such pictures go.
fn without_dead_links<'a>(events: Vec<Event<'a>>, page: &str, known: &Known) -> Vec<Event<'a>> {
    let (mut is_dead_link, mut is_dead_picture) = (false, false);
    let mut kept = Vec::with_capacity(events.len());
    for event in events {
        match &event {
            Event::Start(Tag::Link { dest_url, .. }) if !leads(dest_url, page, &known.pages) => {
                is_dead_link = true;
                continue;
            }
            Event::End(TagEnd::Link) if std::mem::take(&mut is_dead_link) => continue,
            Event::Start(Tag::Image { dest_url, .. }) if !leads(dest_url, page, &known.pictures) => {
                is_dead_picture = true;
            }
            Event::End(TagEnd::Image) if std::mem::take(&mut is_dead_picture) => continue,
            _ => {}
        }
        if !is_dead_picture {
            kept.push(event);
        }
    }
    kept
}

/// Whether a link of a page leads somewhere: to another site, to a heading of the page, or to a file that is there.
fn leads(target: &str, page: &str, known: &BTreeSet<String>) -> bool {
    let path = target.split('#').next().unwrap_or_default();
    if path.is_empty() || target.contains(':') {
        return true;
    }
    let mut parts: Vec<_> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.pop().is_none() => return false,
            ".." => {}
            part => parts.push(part),
        }
    }
    known.contains(&parts.join("/"))
}

/// A page with its frame. `path` is relative to the page of contents.
fn whole_page(title: &str, path: &str, body: &str) -> String {
    let top = "../".repeat(path.matches('/').count());
    let top = if top.is_empty() { "./" } else { &top };
    let title = escaped(&title.replace('`', ""));
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title} - Hostler</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"{top}{STYLE}\">\n</head>\n<body>\n\
         <header><nav aria-label=\"Pages\"><a href=\"{top}\">All pages</a> <a href=\"{top}../\">Live page</a></nav>\
         <p>Hostler {version}</p></header>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
