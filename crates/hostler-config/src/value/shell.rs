//! Finds what only a shell understands in a command that no shell runs. Splits and runs nothing.

/// Characters that a shell takes out of a command: operators, redirections, and the beginning of variables.
pub const SHELL_OPERATORS: &[char] = &['&', '|', ';', '<', '>', '(', ')', '$', '`'];

/// Refuses a command with operators that are not quoted, or with variables before the program.
pub(super) fn refuse_shell(text: &str) -> Result<(), String> {
    let instead = |variable: &str| {
        let list = format!("[\"sh\", \"-c\", {text:?}]");
        format!("no shell runs the command; set {variable} in env and the folder in cwd, or write {list}")
    };
    if let Some(word) = text.split_whitespace().next().filter(|word| is_assignment(word)) {
        let name = word.split('=').next().unwrap_or_default();
        return Err(format!("{word:?} is not a program: {}", instead(name)));
    }
    match unquoted_operator(text.trim()) {
        Some(operator) => Err(format!("{operator:?} is for a shell, and {}", instead("variables"))),
        None => Ok(()),
    }
}

/// `NODE_ENV=production` and the like.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
    })
}

/// An operator inside a word, such as in a URL or in `exit(3)`, is taken for a part of it.
fn unquoted_operator(text: &str) -> Option<char> {
    let (mut quote, mut escaped, mut before) = (None, false, None);
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        let around = (before.replace(char), rest.clone().next());
        match (quote, char) {
            _ if escaped => escaped = false,
            (Some('"') | None, '\\') => escaped = true,
            (Some(open), _) if open == char => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(char),
            // A comment, to the end of its line.
            (None, '#') if is_end(around.0) => before = rest.find(|char| *char == '\n'),
            (None, _) if SHELL_OPERATORS.contains(&char) && is_operator(char, around) => return Some(char),
            (None, _) => {}
        }
    }
    None
}

/// Whether a word ends on this side.
fn is_end(side: Option<char>) -> bool {
    side.is_none_or(char::is_whitespace)
}

/// Whether the character between these two is an operator.
fn is_operator(char: char, (before, after): (Option<char>, Option<char>)) -> bool {
    match char {
        '$' => {
            let begins =
                is_end(before) || before.is_some_and(|before| matches!(before, '=' | ':' | '/' | ','));
            begins
                && after.is_some_and(|after| after.is_ascii_alphabetic() || matches!(after, '_' | '{' | '('))
        }
        '`' => true,
        '<' | '>' => is_end(before) || is_end(after) || before.is_some_and(|before| before.is_ascii_digit()),
        '(' => is_end(before),
        ')' => false,
        ';' => is_end(after),
        // `a && b`, `a | b`, `a &`; not `--sep=|`.
        _ => is_end(before) && (is_end(after) || after == Some(char)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_count_unless_they_are_quoted() {
        let cases = [
            ("node server.js && echo hi", Some('&')),
            ("node server.js --port $PORT > out.log", Some('$')),
            ("node server.js &", Some('&')),
            ("cd app; node .", Some(';')),
            ("node a 2>&1", Some('>')),
            ("node a | pino-pretty", Some('|')),
            ("node -e 'a && b; `c`'", None),
            ("sh -c \"exec node $SCRIPT\"", None),
            ("node a\\&b '\\' c", None),
            ("node a '\\' & c", Some('&')),
            ("node server.js --color=#fff --routes=a*?{b}", None),
            ("node -e process.exit(3)", None),
            ("node server.js --url=http://a/?b=1&c=2;d", None),
            ("node server.js --price=5$ --port=${PORT}", Some('$')),
            ("node server.js --price=5$", None),
            ("(cd app)", Some('(')),
            ("node server.js >out.log", Some('>')),
            ("node server.js || exit 1", Some('|')),
            ("node server.js\n  --port 3000", None),
            ("node server.js # a && b\n --sep=| --filter={$set:1} --word=pa$word http://a/?b&", None),
            ("node server.js # a\n & b", Some('&')),
        ];
        for (text, expected) in cases {
            assert_eq!(unquoted_operator(text), expected, "{text}");
        }
    }

    #[test]
    fn variables_before_the_program_are_refused() {
        let why = refuse_shell("NODE_ENV=production node server.js").unwrap_err();
        assert_eq!(
            why,
            "\"NODE_ENV=production\" is not a program: no shell runs the command; set NODE_ENV in env and the folder in cwd, or write \
             [\"sh\", \"-c\", \"NODE_ENV=production node server.js\"]"
        );
        assert_eq!(refuse_shell("node --port=3 a=b"), Ok(()));
        assert_eq!(refuse_shell("./a=b"), Ok(()));
    }
}
