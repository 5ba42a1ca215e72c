//! Which word of a command is the script that Node, Bun or Deno runs. Reads no file.

/// Options of `node` that the next word belongs to.
const WITH_VALUE: [&str; 19] = [
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "-C",
    "--conditions",
    "--env-file",
    "--env-file-if-exists",
    "--title",
    "--icu-data-dir",
    "--openssl-config",
    "--input-type",
    "--trace-event-categories",
    "--trace-event-file-pattern",
    "--experimental-default-type",
    "--experimental-specifier-resolution",
    "--experimental-policy",
    "--experimental-config-file",
];

/// Options after which `node` runs no file.
const WITHOUT_FILE: [&str; 9] =
    ["-e", "--eval", "-p", "--print", "-pe", "-i", "--interactive", "--test", "--run"];

/// The file that a JavaScript runtime runs. `None` if it is not known: an option of another version may take a value.
pub(super) fn script<'a>(program: &str, arguments: &'a [String]) -> Option<&'a str> {
    let runtime = program.rsplit('/').next().unwrap_or_default();
    let mut words = arguments.iter().map(String::as_str);
    match runtime {
        "node" | "nodejs" => {
            while let Some(word) = words.next() {
                match word {
                    "--" => return words.next(),
                    // `node inspect server.js`, and standard input.
                    "-" | "inspect" => return None,
                    _ if WITHOUT_FILE.contains(&word) => return None,
                    _ if WITH_VALUE.contains(&word) => drop(words.next()),
                    _ if word.contains('=') && word.starts_with('-') => {}
                    _ if is_switch(word) => {}
                    _ if word.starts_with('-') => return None,
                    _ => return Some(word),
                }
            }
            None
        }
        // The other words are names of scripts, or addresses of modules.
        "bun" | "deno" => {
            let words: Vec<_> = words.filter(|word| !["run", "serve"].contains(word)).collect();
            let first = words.into_iter().find(|word| !word.starts_with('-'))?;
            let is_file =
                [".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".jsx"].iter().any(|end| first.ends_with(end));
            (is_file && !first.contains(':')).then_some(first)
        }
        _ => None,
    }
}

/// Options of `node` without a value.
fn is_switch(word: &str) -> bool {
    let plain = [
        "--enable-source-maps",
        "--expose-gc",
        "--expose_gc",
        "--inspect",
        "--inspect-brk",
        "--watch",
        "--preserve-symlinks",
        "--preserve-symlinks-main",
        "--abort-on-uncaught-exception",
        "--use-openssl-ca",
        "--use-system-ca",
        "--insecure-http-parser",
    ];
    plain.contains(&word)
        || ["--no-", "--trace-", "--experimental-"].iter().any(|beginning| word.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_the_first_word_that_is_no_option() {
        let cases = [
            ("node server.js --port 3", Some("server.js")),
            (
                "/usr/bin/node --enable-source-maps --max-old-space-size=512 -r ./a.cjs dist/main 7",
                Some("dist/main"),
            ),
            ("node --import tsx --no-warnings src/x.ts", Some("src/x.ts")),
            ("node --trace-event-categories v8,node server.js", Some("server.js")),
            (
                "node --experimental-specifier-resolution node --trace-warnings dist/index.js",
                Some("dist/index.js"),
            ),
            ("node -e 1+1", None),
            ("node --unheard-of value server.js", None),
            ("node", None),
            ("npm start", None),
            ("bun run server.ts", Some("server.ts")),
            ("bun run start", None),
            ("deno run -A main.ts", Some("main.ts")),
            ("deno run https://example.com/main.ts", None),
        ];
        for (line, expected) in cases {
            let words: Vec<String> = line.split(' ').map(Into::into).collect();
            assert_eq!(script(&words[0], &words[1..]), expected, "{line}");
        }
    }
}
