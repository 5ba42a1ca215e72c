//! Looks for settings in the text of a framework's configuration, such as `next.config.js`. Does not run it.

use std::path::{Component, Path, PathBuf};

/// The endings of configuration files.
const ENDINGS: [&str; 6] = ["js", "mjs", "cjs", "ts", "mts", "cts"];

/// The text of a configuration file, without comments. Empty if there is none.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfigText(String);

/// A setting in the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TextSetting {
    Missing,
    Text(String),
    /// The text does not show the value: it is a variable or a call.
    Computed,
}

impl ConfigText {
    /// The first file of these names that exists, or the texts of all of them together.
    pub fn read(folder: &Path, stems: &[&str]) -> Self {
        let files =
            stems.iter().flat_map(|stem| ENDINGS.map(|ending| folder.join(format!("{stem}.{ending}"))));
        let texts: Vec<_> = files.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
        Self(without_comments(&texts.join("\n")))
    }

    pub fn contains(&self, word: &str) -> bool {
        self.0.contains(word)
    }

    /// The value of `key: "value"`.
    pub fn setting(&self, key: &str) -> TextSetting {
        let Some(value) = self.after(key) else { return TextSetting::Missing };
        let quote = value.chars().next().filter(|char| ['"', '\'', '`'].contains(char));
        let text = quote.and_then(|quote| value[1..].split_once(quote)).map(|(text, _)| text);
        match text {
            Some(text) if !text.contains('$') => TextSetting::Text(text.to_owned()),
            _ => TextSetting::Computed,
        }
    }

    /// What stands in the braces of `key: { ... }`. Empty if there are none.
    pub fn object(&self, key: &str) -> Self {
        let text = self.after(key).filter(|value| value.starts_with('{')).unwrap_or_default();
        let mut depth = 0_i32;
        let end = text.find(|char: char| {
            depth += i32::from(char == '{') - i32::from(char == '}');
            depth == 0
        });
        Self(text[..end.unwrap_or(text.len())].to_owned())
    }

    /// The text from the value of this key on.
    fn after(&self, key: &str) -> Option<&str> {
        let is_part = |char: char| char.is_alphanumeric() || char == '_' || char == '$';
        self.0.match_indices(key).find_map(|(at, _)| {
            let rest = self.0[at + key.len()..].trim_start_matches(['"', '\'']).trim_start();
            let value = rest.strip_prefix(':').filter(|_| !self.0[..at].ends_with(is_part))?;
            Some(value.trim_start())
        })
    }

    /// The folder in `key: "./folder/"` as it is written in hostler.toml, or else `default`.
    pub fn folder(&self, key: &str, default: &str) -> String {
        match self.setting(key) {
            TextSetting::Text(folder) => joined("", &folder),
            _ => default.to_owned(),
        }
    }
}

/// The path from a folder on, without `.` and without needless `..`.
pub(super) fn joined(folder: &str, path: &str) -> String {
    let mut whole = PathBuf::new();
    for part in Path::new(folder).join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if whole.file_name().is_some() => _ = whole.pop(),
            part => whole.push(part),
        }
    }
    if whole.as_os_str().is_empty() { ".".to_owned() } else { whole.display().to_string() }
}

/// Removes comments. A `//` in a URL stays, because `:` is before it.
fn without_comments(text: &str) -> String {
    let mut blocks = text.split("/*");
    let mut kept = blocks.next().unwrap_or_default().to_owned();
    for block in blocks {
        match block.split_once("*/") {
            Some((_, after)) => kept.push_str(after),
            // A pattern such as "src/*", not a comment.
            None => {
                kept.push_str("/*");
                kept.push_str(block);
            }
        }
    }
    let code = |line: &str| {
        let comment = line.match_indices("//").find(|(at, _)| !line[..*at].ends_with(':'));
        line[..comment.map_or(line.len(), |(at, _)| at)].to_owned()
    };
    kept.lines().map(code).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(text: &str) -> TextSetting {
        ConfigText(without_comments(text)).setting("output")
    }

    #[test]
    fn a_setting_is_found_in_the_text_of_a_configuration() {
        let text = |text: &str| TextSetting::Text(text.to_owned());
        assert_eq!(setting("module.exports = { output: 'standalone' }"), text("standalone"));
        assert_eq!(setting("{ \"output\" : \"export\", x: 1 }"), text("export"));
        assert_eq!(setting("{ url: 'http://x', output: `standalone` }"), text("standalone"));
        assert_eq!(setting("{ output: process.env.OUT }"), TextSetting::Computed);
        assert_eq!(setting("{ outputFileTracingRoot: '/x', myoutput: 'y' }"), TextSetting::Missing);
    }

    #[test]
    fn a_folder_is_written_in_the_shortest_way() {
        let paths = [("", "./made/", "made"), ("src", "../dist", "dist"), ("", "../../a/./b", "../../a/b")];
        for (folder, path, expected) in paths.into_iter().chain([("x", "/srv/y", "/srv/y"), ("", "./", ".")])
        {
            assert_eq!(joined(folder, path), expected);
        }
    }

    #[test]
    fn a_setting_in_a_comment_does_not_count() {
        assert_eq!(setting("{\n // output: 'standalone'\n}"), TextSetting::Missing);
        assert_eq!(setting("/* output: 'standalone' */ module.exports = {}"), TextSetting::Missing);
    }
}
