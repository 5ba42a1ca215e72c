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

/// The last command of `migrate && node server.js`: the server, because a server does not end. `None` if a command before it changes for the
/// next ones where or how they run.
pub(super) fn last_command(text: &str) -> Option<&str> {
    let mut commands = commands(text);
    let last = commands.pop()?;
    commands.into_iter().all(is_for_itself).then_some(last)
}

/// Whether a script has a command before its server that does some work, such as a migration.
pub(super) fn works_before_server(text: &str) -> bool {
    let mut commands = commands(text);
    commands.pop();
    commands.into_iter().any(|command| is_for_itself(command) && !is(command, &["echo", "true", ":"]))
}

/// The commands between `&&` and `;` outside quotes.
fn commands(text: &str) -> Vec<&str> {
    let (mut commands, mut begin, mut quote) = (Vec::new(), 0, None);
    for (at, char) in text.char_indices() {
        match (quote, char) {
            (Some(open), _) if open == char => quote = None,
            (None, '\'' | '"') => quote = Some(char),
            (None, ';') => {
                commands.push(&text[begin..at]);
                begin = at + 1;
            }
            (None, '&') if at >= begin && text[at..].starts_with("&&") => {
                commands.push(&text[begin..at]);
                begin = at + 2;
            }
            _ => {}
        }
    }
    commands.push(&text[begin..]);
    commands.into_iter().map(str::trim).filter(|command| !command.is_empty()).collect()
}

/// Whether the commands after this one run as they would without it.
fn is_for_itself(command: &str) -> bool {
    let is_variable = |word: &str| word.split_once('=').is_some_and(|(name, _)| !name.contains(['-', '/']));
    let only_variables = command.split_whitespace().all(is_variable);
    !only_variables && !is(command, &["cd", "export", "source", ".", "set", "unset", "ulimit", "umask"])
}

fn is(command: &str, programs: &[&str]) -> bool {
    command.split_whitespace().next().is_some_and(|first| programs.contains(&first))
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

    #[test]
    fn the_last_command_of_a_script_is_its_server() {
        for (text, last, works_before) in [
            ("node server.js", Some("node server.js"), false),
            ("prisma migrate deploy && A=b next start", Some("A=b next start"), true),
            ("a --x='1 && 2;3' ; node server.js;", Some("node server.js"), true),
            ("cd app && node server.js", None, false),
            ("export A=b; a && node server.js", None, true),
            ("A=b; node server.js", None, false),
            ("echo hi && node server.js", Some("node server.js"), false),
            (" ", None, false),
        ] {
            assert_eq!(last_command(text), last, "{text}");
            assert_eq!(works_before_server(text), works_before, "{text}");
        }
    }
}
