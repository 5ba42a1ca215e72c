//! A profile as a page with a flame graph: one file without requests to other files. Knows no worker.

use serde_json::json;

use super::cpu_profile::{CpuProfile, percent};
use crate::html::escaped;

const PAGE: &str = include_str!("page.html");

/// The page. `name` is the title, such as `web/2 (pid 4711)`.
pub(super) fn page(name: &str, profile: &CpuProfile, hottest: usize) -> String {
    let rows: String = profile
        .hottest(hottest)
        .iter()
        .map(|function| {
            format!(
                "<tr><td>{:.1} ms<td>{}<td>{}<td>{}\n",
                function.own as f64 / 1000.0,
                percent(function.own, profile.busy()),
                escaped(&function.name),
                escaped(&function.place)
            )
        })
        .collect();
    let functions: Vec<_> =
        profile.functions.iter().map(|function| [&function.name, &function.place]).collect();
    let nodes: Vec<_> =
        profile.nodes.iter().map(|node| json!([node.parent, node.function, node.own])).collect();
    // A function may be named "</script>".
    let data = json!({ "functions": functions, "nodes": nodes }).to_string().replace('<', "\\u003c");
    let parts =
        [("{{NAME}}", escaped(name)), ("{{SUMMARY}}", escaped(&profile.summary())), ("{{ROWS}}", rows)];
    let page = parts.iter().fold(PAGE.to_owned(), |page, (mark, text)| page.replace(mark, text));
    // Last, because it may contain a mark.
    page.replace("{{DATA}}", &data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_app_cannot_leave_their_place_in_the_page() {
        let frame =
            json!({ "functionName": "</script><b>{{ROWS}}", "url": "file:///<i>.js", "lineNumber": 0 });
        let profile = json!({ "nodes": [{ "id": 1, "callFrame": frame }], "startTime": 0, "endTime": 5000,
                              "samples": [1], "timeDeltas": [0] });
        let profile = CpuProfile::parse(profile.to_string().as_bytes()).unwrap();
        let page = page("web/1", &profile, 10);
        assert!(!page.contains("</script><b>") && !page.contains("<i>.js"), "{page}");
        assert!(page.contains("&lt;/script&gt;") && page.contains("\\u003c/script>"), "{page}");
        assert!(
            ["src=", "http:", "https:", "url("].iter().all(|way| !page.contains(way)),
            "it asks for nothing else"
        );
    }
}
