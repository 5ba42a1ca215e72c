//! Reads a `.cpuprofile` of V8: how long each function ran. Knows no worker.

use std::collections::HashMap;
use std::fmt::Write;

use hostler_engine::journal::on_one_line;
use serde::{Deserialize, Serialize};

/// V8's names for time that belongs to no function.
const IDLE: &str = "(idle)";
const GARBAGE: &str = "(garbage collector)";
const NATIVE: &str = "(program)";
const ROOT: &str = "(root)";
/// The most characters of a name.
const NAME_LIMIT: usize = 200;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProfileFile {
    nodes: Vec<WrittenNode>,
    start_time: f64,
    end_time: f64,
    #[serde(default)]
    samples: Vec<u64>,
    #[serde(default)]
    time_deltas: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenNode {
    id: u64,
    call_frame: WrittenFrame,
    #[serde(default)]
    children: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenFrame {
    function_name: String,
    url: String,
    line_number: i64,
}

/// One node of the call tree.
#[derive(Debug, Serialize)]
pub(super) struct CallNode {
    /// The function, an index into [`CpuProfile::functions`].
    pub function: usize,
    /// The index of the caller's node. `None`: the root.
    pub parent: Option<usize>,
    /// Microseconds in the function itself.
    pub own: u64,
}

/// A function, with its own time in all nodes of the tree.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ProfiledFunction {
    pub name: String,
    /// File and line. Empty for V8's own entries.
    pub place: String,
    /// Microseconds in the function itself.
    pub own: u64,
}

/// A profile as sums of time.
#[derive(Debug)]
pub(super) struct CpuProfile {
    pub functions: Vec<ProfiledFunction>,
    pub nodes: Vec<CallNode>,
    pub samples: usize,
    /// Microseconds.
    pub length: u64,
}

impl CpuProfile {
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let written: ProfileFile = serde_json::from_slice(json)
            .map_err(|error| format!("the profile of the worker is not valid: {error}"))?;
        let places: HashMap<u64, usize> =
            written.nodes.iter().enumerate().map(|(index, node)| (node.id, index)).collect();
        let mut own = vec![0.0; written.nodes.len()];
        let mut begins = written.start_time;
        for (index, id) in written.samples.iter().enumerate() {
            begins += written.time_deltas.get(index).copied().unwrap_or(0.0);
            // A sample stands for the time until the next one.
            let next = written.time_deltas.get(index + 1).copied();
            let lasts = next.unwrap_or(written.end_time - begins);
            if let Some(&place) = places.get(id) {
                own[place] += lasts.max(0.0);
            }
        }
        let (mut functions, mut known) = (Vec::new(), HashMap::new());
        let mut nodes: Vec<CallNode> = Vec::with_capacity(written.nodes.len());
        for (node, own) in written.nodes.iter().zip(own) {
            let key = describe(&node.call_frame);
            let function = *known.entry(key).or_insert_with_key(|(name, place)| {
                functions.push(ProfiledFunction { name: name.clone(), place: place.clone(), own: 0 });
                functions.len() - 1
            });
            let own = own as u64;
            functions[function].own += own;
            nodes.push(CallNode { function, parent: None, own });
        }
        for (index, node) in written.nodes.iter().enumerate() {
            for child in node.children.iter().filter_map(|child| places.get(child)) {
                nodes[*child].parent = Some(index);
            }
        }
        let length = (written.end_time - written.start_time).max(0.0) as u64;
        Ok(Self { functions, nodes, samples: written.samples.len(), length })
    }

    /// Microseconds of V8's entry with this name.
    fn entry(&self, name: &str) -> u64 {
        let is_it = |function: &&ProfiledFunction| function.place.is_empty() && function.name == name;
        self.functions.iter().filter(is_it).map(|function| function.own).sum()
    }

    /// Microseconds in which the main thread did not wait.
    pub fn busy(&self) -> u64 {
        let all: u64 = self.functions.iter().map(|function| function.own).sum();
        all - self.entry(IDLE)
    }

    /// The functions with the most time of their own, the hottest first. Without V8's own entries.
    pub fn hottest(&self, count: usize) -> Vec<&ProfiledFunction> {
        let is_function = |function: &&ProfiledFunction| {
            function.own > 0
                && !(function.place.is_empty() && [IDLE, GARBAGE, NATIVE, ROOT].contains(&&*function.name))
        };
        let mut all: Vec<_> = self.functions.iter().filter(is_function).collect();
        all.sort_by_key(|function| std::cmp::Reverse(function.own));
        all.truncate(count);
        all
    }

    /// How the time is divided, in one sentence.
    pub fn summary(&self) -> String {
        let share = |micros| percent(micros, self.busy() + self.entry(IDLE));
        format!(
            "{:.1} s, {} samples: idle {}, garbage collection {}, native code {}, JavaScript {}",
            self.length as f64 / 1e6,
            self.samples,
            share(self.entry(IDLE)),
            share(self.entry(GARBAGE)),
            share(self.entry(NATIVE)),
            share(self.busy() - self.entry(GARBAGE) - self.entry(NATIVE)),
        )
    }

    /// What the command prints.
    pub fn report(&self, name: &str, count: usize) -> String {
        let mut out = format!("{name}: {}\n", self.summary());
        let hottest = self.hottest(count);
        if hottest.is_empty() {
            out.push_str("no JavaScript ran\n");
            return out;
        }
        let width =
            hottest.iter().map(|function| function.name.chars().count()).max().unwrap_or(0).clamp(8, 40);
        let _ = writeln!(out, "\n      self  of busy  {:width$}  where", "function");
        for function in hottest {
            let own = function.own as f64 / 1000.0;
            let share = percent(function.own, self.busy());
            let _ = writeln!(out, "{own:>7.1} ms  {share:>7}  {:width$}  {}", function.name, function.place);
        }
        out.push('\n');
        out
    }
}

/// The share as text, such as `12.5 %`.
pub(super) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Name and place. The app chooses both, so control characters are replaced.
fn describe(frame: &WrittenFrame) -> (String, String) {
    let plain = |text: &str| -> String { on_one_line(text).take(NAME_LIMIT).collect() };
    let name =
        if frame.function_name.is_empty() { "(anonymous)".to_owned() } else { plain(&frame.function_name) };
    let file = plain(frame.url.strip_prefix("file://").unwrap_or(&frame.url));
    // V8 counts lines from 0, and has -1 for its own entries.
    let place = match (file.is_empty(), frame.line_number) {
        (true, ..0) => String::new(),
        (true, line) => format!("(eval):{}", line + 1),
        (false, ..0) => file,
        (false, line) => format!("{file}:{}", line + 1),
    };
    (name, place)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(id: u64, name: &str, line: i64, children: &[u64]) -> serde_json::Value {
        let url = if line < 0 { "" } else { "file:///app/a.js" };
        json!({ "id": id, "callFrame": { "functionName": name, "scriptId": "1", "url": url, "lineNumber": line, "columnNumber": 0 },
                "hitCount": 0, "children": children })
    }

    fn sample() -> CpuProfile {
        let profile = json!({
            "nodes": [node(1, "(root)", -1, &[2, 3, 4]), node(2, "(idle)", -1, &[]), node(3, "cold", 4, &[5]),
                      node(4, "hot\u{1b}", 9, &[]), node(5, "hot\u{1b}", 9, &[])],
            "startTime": 1000, "endTime": 11_000,
            "samples": [2, 3, 4, 5], "timeDeltas": [0, 4000, 1000, 2000],
        });
        CpuProfile::parse(profile.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_sample_counts_until_the_next_one_and_functions_are_summed_over_the_tree() {
        let profile = sample();
        assert_eq!((profile.length, profile.samples, profile.busy()), (10_000, 4, 6000));
        let hottest = profile.hottest(10);
        assert_eq!(
            hottest[0],
            &ProfiledFunction { name: "hot ".into(), place: "/app/a.js:10".into(), own: 5000 }
        );
        assert_eq!((hottest[1].name.as_str(), hottest[1].own, hottest.len()), ("cold", 1000, 2));
        assert_eq!(profile.nodes[4].parent, Some(2));
        let report = profile.report("web/1", 10);
        assert!(report.contains("idle 40.0 %") && report.contains("83.3 %  hot "), "{report}");
    }

    #[test]
    fn text_that_is_no_profile_is_an_error() {
        for text in ["", "{}", "null", "{\"nodes\":[]}"] {
            assert!(CpuProfile::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
