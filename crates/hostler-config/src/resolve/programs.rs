//! Checks that workers can start: program, script and folder are there, and this process may use them. Starts nothing.

use hostler_worker::WorkerSettings;

use super::Resolver;
use crate::access;
use crate::document::KeyPath;
use crate::resolved::{Config, PoolMembers};

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

impl Resolver<'_> {
    /// Refuses commands whose program or script is not there.
    pub fn check_programs(&mut self, config: &Config) {
        self.warn_of_lost_node_options(config);
        for pool in &config.pools {
            let PoolMembers::Workers(workers) = &pool.source else { continue };
            // A missing folder is already reported.
            let Some((name, arguments)) = workers.command.split_first().filter(|_| workers.cwd.is_dir())
            else {
                continue;
            };
            let outcome = access::program(name, &workers.cwd, self.search_path(workers)).and_then(|()| {
                let script = script(name, arguments);
                script.map_or(Ok(()), |script| access::script(&workers.cwd.join(script)))
            });
            if let Err(why) = outcome {
                self.refuse(&KeyPath::of("pools").key(&pool.name).key("command"), why);
            }
        }
    }

    /// The PATH of the pool's workers.
    fn search_path<'a>(&'a self, workers: &'a WorkerSettings) -> Option<&'a str> {
        let own = self.load_context.environment.get("PATH");
        workers.env.get("PATH").or(own).map(String::as_str)
    }
}

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
