//! Reads the command line of a script of `package.json` or of a Procfile. Runs nothing.

use std::collections::BTreeMap;

use hostler_config::SHELL_OPERATORS;

/// Characters that a shell may replace by something else.
const REPLACED_BY_SHELL: &[char] = &['*', '?', '~', '#', '{', '}', '!'];

/// A command line that needs no shell: the variables before it, and its words.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ScriptLine {
    pub env: BTreeMap<String, String>,
    pub words: Vec<String>,
}

impl ScriptLine {
    /// `None` if only a shell can run it.
    pub fn read(text: &str) -> Option<Self> {
        if text.contains(SHELL_OPERATORS) || text.contains(REPLACED_BY_SHELL) {
            return None;
        }
        let mut words = shell_words::split(text).ok()?;
        let mut env = assignments(&mut words);
        while let Some("cross-env" | "cross-env-shell" | "env" | "exec") = words.first().map(String::as_str) {
            words.remove(0);
            env.extend(assignments(&mut words));
        }
        // An option of one of these programs, or nothing to run.
        if words.first().is_none_or(|first| first.starts_with('-')) {
            return None;
        }
        Some(Self { env, words })
    }
}

/// `NODE_ENV=production` and the like at the beginning.
fn assignments(words: &mut Vec<String>) -> BTreeMap<String, String> {
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
    };
    let parts = |word: &String| {
        let (name, value) = word.split_once('=')?;
        is_name(name).then(|| (name.to_owned(), value.to_owned()))
    };
    let found: Vec<_> = words.iter().map_while(parts).collect();
    words.drain(..found.len());
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, Vec<String>)> {
        let line = ScriptLine::read(text)?;
        let env = line.env.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        Some((env.join(" "), line.words))
    }

    #[test]
    fn variables_before_a_command_are_read_with_and_without_cross_env() {
        let words = || vec!["node".to_owned(), "server.js".to_owned()];
        assert_eq!(read("node server.js"), Some((String::new(), words())));
        assert_eq!(read("NODE_ENV=production node server.js"), Some(("NODE_ENV=production".into(), words())));
        assert_eq!(read("cross-env A='1 2' B=x exec node server.js"), Some(("A=1 2 B=x".into(), words())));
    }

    #[test]
    fn a_command_line_for_a_shell_is_not_read() {
        for text in
            ["npm run build && node .", "node $FILE", "node a.js > log", "cross-env-shell -x", "", "A=1"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
