//! Checks that the pages are whole and that their links lead somewhere. Knows no page's text.

use super::*;

fn text(path: &str) -> String {
    let file = file(path).unwrap_or_else(|| panic!("there is no page {path:?}"));
    String::from_utf8(file.content()).unwrap()
}

/// The values of an attribute. In text, `<` is written as `&lt;`, so code that shows HTML has none.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let begin = format!(" {attribute}=\"");
    let tags = html.split('<').filter_map(|part| part.split('>').next());
    tags.filter_map(|tag| tag.split(&*begin).nth(1)?.split('"').next()).collect()
}

/// Where a link of a page leads, below `docs/`.
fn resolved(page: &str, target: &str) -> String {
    let mut parts: Vec<_> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." => {}
            ".." => assert!(parts.pop().is_some(), "{page}: {target}"),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn every_link_of_a_page_leads_to_a_page_and_to_a_heading_of_it() {
    let (mut dead, mut checked) = (Vec::new(), 0);
    for page in FILES.iter().filter(|file| file.media_type().starts_with("text/html")) {
        let html = text(page.path);
        let targets = values(&html, "href").into_iter().chain(values(&html, "src"));
        for target in targets.filter(|target| !target.contains(':')) {
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let top = "../".repeat(page.path.matches('/').count() + 1);
            // The live page is above the documentation.
            if path == top || path == "./../" {
                continue;
            }
            let path = if path.is_empty() { page.path.to_owned() } else { resolved(page.path, path) };
            let leads = file(&path)
                .is_some_and(|_| heading.is_empty() || values(&text(&path), "id").contains(&heading));
            if !leads {
                dead.push(format!("{}: {target}", page.path));
            }
            checked += 1;
        }
    }
    assert!(dead.is_empty(), "these links lead nowhere:\n{}", dead.join("\n"));
    assert!(checked > 1000, "only {checked} links were found");
}

#[test]
fn the_list_of_pages_has_each_page_and_no_empty_part() {
    let contents = text("");
    let listed = values(&contents, "href");
    for page in FILES.iter().filter(|file| file.path.ends_with(".md")) {
        assert!(listed.contains(&page.path), "{}", page.path);
    }
    let after_headings: Vec<_> = contents.split("<h2>").skip(1).map(|part| part.contains("href")).collect();
    assert!(after_headings.len() > 3 && after_headings.iter().all(|has_pages| *has_pages), "{contents}");
}

#[test]
fn headings_tables_and_code_of_a_page_are_html() {
    let html = text("guide/live.md");
    assert!(html.starts_with("<!DOCTYPE html>"), "{html}");
    for part in [
        "<title>Live page - Hostler</title>",
        "<h2 id=\"last-15-minutes\">Last 15 minutes</h2>",
        "<div class=\"scroll\" tabindex=\"0\"><table>",
        "<a href=\"../concepts/concurrency.md\">",
        "href=\"../style.css\"",
    ] {
        assert!(html.contains(part), "{part} is not in {html}");
    }
}

#[test]
fn pages_for_developers_of_hostler_are_left_out_and_links_to_them_are_text() {
    let found: Vec<_> = FILES.iter().map(|file| file.path).collect();
    let left_out = ["decisions/", "stages/", "benchmarks"];
    assert!(!found.iter().any(|path| left_out.iter().any(|prefix| path.starts_with(prefix))), "{found:?}");
    let index = text("index.md");
    assert!(index.contains("The benchmarks say") && !index.contains("href=\"benchmarks"), "{index}");
    assert!(index.contains("href=\"guide/"), "{index}");
}

#[test]
fn an_unknown_path_is_no_file() {
    for path in ["guide", "guide/", "../Cargo.toml", "guide/live", "GUIDE/live.md"] {
        assert!(file(path).is_none(), "{path}");
    }
}
