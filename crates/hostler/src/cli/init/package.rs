//! What `package.json` and the files beside it say about an app. Runs nothing.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::script_line::{ScriptLine, last_command};

/// How deep `npm run a`, which is `npm run b`, is followed.
pub(super) const DEEPEST: usize = 5;

/// Programs that are often in PATH without a package manager.
const OF_SYSTEM: [&str; 14] = [
    "node", "npm", "npx", "pnpm", "yarn", "bun", "bunx", "deno", "sh", "bash", "python", "python3", "tsx",
    "ts-node",
];

/// The program that installs packages and runs scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackageManager {
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

/// Lock files, and whose they are.
const LOCK_FILES: [(&str, PackageManager); 6] = [
    ("pnpm-lock.yaml", PackageManager::Pnpm),
    ("yarn.lock", PackageManager::Yarn),
    ("bun.lock", PackageManager::Bun),
    ("bun.lockb", PackageManager::Bun),
    ("package-lock.json", PackageManager::Npm),
    ("npm-shrinkwrap.json", PackageManager::Npm),
];

impl PackageManager {
    pub fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Bun => "bun",
        }
    }

    /// The command that runs a script.
    pub fn run(self, script: &str) -> Vec<String> {
        let words: &[&str] = match script {
            "start" if self != Self::Bun => &[self.name(), "start"],
            _ => &[self.name(), "run", script],
        };
        words.iter().map(|&word| word.into()).collect()
    }
}

/// A folder with a `package.json`.
#[derive(Clone, Debug)]
pub(super) struct NodePackage {
    pub folder: PathBuf,
    pub manager: PackageManager,
    /// What shows the package manager: a lock file, or the key of `package.json`.
    pub shown_by: Option<&'static str>,
    written: PackageJson,
}

/// The parts of `package.json` that matter here. A part of an unexpected type counts as missing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PackageJson {
    name: Value,
    main: Value,
    bin: Value,
    scripts: Value,
    dependencies: Value,
    dev_dependencies: Value,
    optional_dependencies: Value,
    package_manager: Value,
    workspaces: Value,
    homepage: Value,
}

impl NodePackage {
    /// `Ok(None)` without a `package.json`.
    pub fn read(folder: &Path) -> Result<Option<Self>, String> {
        let file = folder.join("package.json");
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{} cannot be read: {error}", file.display())),
        };
        // Some editors write a byte order mark.
        let written: PackageJson = serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .map_err(|error| format!("{} is not valid JSON: {error}", file.display()))?;
        // The lock file of a workspace is in the folder of the workspace.
        let places = folder.ancestors().take_while(|place| place.parent().is_some());
        let lock =
            places.flat_map(|place| LOCK_FILES.iter().filter(move |(name, _)| place.join(name).is_file()));
        let lock = lock.take(1).next();
        let named = written.package_manager.as_str().unwrap_or_default();
        let named = [PackageManager::Npm, PackageManager::Pnpm, PackageManager::Yarn, PackageManager::Bun]
            .into_iter()
            .find(|manager| named.split('@').next() == Some(manager.name()));
        let manager = named.or(lock.map(|(_, manager)| *manager)).unwrap_or(PackageManager::Npm);
        let shown_by = named.map(|_| "packageManager").or(lock.map(|(name, _)| *name));
        Ok(Some(Self { folder: folder.to_owned(), manager, shown_by, written }))
    }

    /// The path of `homepage`, which is a URL or only a path. Empty without one.
    pub fn homepage_path(&self) -> &str {
        let page = self.written.homepage.as_str().unwrap_or_default();
        let path = match page.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
            None => page,
        };
        path.split(['?', '#']).next().unwrap_or_default()
    }

    /// The name without its scope: `web` of `@acme/web`.
    pub fn name(&self) -> Option<&str> {
        self.written.name.as_str()?.rsplit('/').next()
    }

    /// The version range of a dependency.
    pub fn dependency(&self, name: &str) -> Option<&str> {
        let written = &self.written;
        [&written.dependencies, &written.dev_dependencies, &written.optional_dependencies]
            .iter()
            .find_map(|list| list.get(name)?.as_str())
    }

    pub fn has(&self, name: &str) -> bool {
        self.dependency(name).is_some()
    }

    pub fn script(&self, name: &str) -> Option<&str> {
        self.written.scripts.get(name)?.as_str().filter(|text| !text.trim().is_empty())
    }

    /// The text of a script. If it only calls another one (`npm run serve`), the text of that.
    pub fn called(&self, name: &str) -> Option<&str> {
        let mut text = self.script(name)?;
        for _ in 0..DEEPEST {
            let words: Vec<&str> = text.split_whitespace().collect();
            let ["npm" | "pnpm" | "yarn" | "bun", "run", next] = words[..] else { break };
            let Some(next) = self.script(next) else { break };
            text = next;
        }
        Some(text)
    }

    /// The first script whose name begins so, such as `serve:ssr:shop`.
    pub fn script_beginning_with(&self, prefix: &str) -> Option<&str> {
        let mut scripts = self.written.scripts.as_object()?.iter();
        scripts.find(|(name, _)| name.starts_with(prefix))?.1.as_str()
    }

    /// `main`, then the programs in `bin`.
    pub fn entries(&self) -> Vec<(&'static str, &str)> {
        let main = self.written.main.as_str().map(|file| ("main", file));
        let bins = match &self.written.bin {
            Value::String(file) => vec![file.as_str()],
            Value::Object(several) => several.values().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        main.into_iter().chain(bins.into_iter().map(|file| ("bin", file))).collect()
    }

    pub fn is_workspace(&self) -> bool {
        !self.written.workspaces.is_null() || self.folder.join("pnpm-workspace.yaml").is_file()
    }

    /// The folder of the outermost workspace around this one.
    pub fn workspace(&self) -> Option<PathBuf> {
        let is_root =
            |place: &&Path| Self::read(place).ok().flatten().is_some_and(|root| root.is_workspace());
        self.folder.ancestors().skip(1).filter(is_root).last().map(Path::to_owned)
    }

    /// Whether the `start` script starts apps in other folders, as `turbo run start` does.
    pub fn starts_workspace(&self) -> bool {
        let words: Vec<&str> = self.script("start").unwrap_or_default().split_whitespace().collect();
        match words[..] {
            ["turbo" | "lerna", ..] | ["npx" | "npm" | "pnpm" | "yarn", "turbo" | "lerna", ..] => true,
            ["pnpm", "-r" | "--recursive", ..] | ["yarn", "workspaces", ..] => true,
            ["npm", ref rest @ ..] => rest.iter().any(|word| ["-ws", "--workspaces"].contains(word)),
            _ => false,
        }
    }

    pub fn is_there(&self, path: &str) -> bool {
        self.folder.join(path).exists()
    }

    /// Yarn without `node_modules`.
    fn is_plug_and_play(&self) -> bool {
        self.is_there(".pnp.cjs")
    }

    pub fn is_installed(&self) -> bool {
        self.is_plug_and_play() || self.folder.ancestors().any(|place| place.join("node_modules").is_dir())
    }

    /// The command for a program of a dependency: the file itself, because `npx` and `npm` are processes more.
    pub fn program(&self, name: &str) -> Vec<String> {
        if self.is_plug_and_play() {
            return vec!["yarn".into(), name.into()];
        }
        let mut up = String::new();
        for place in self.folder.ancestors().take(4) {
            if place.join("node_modules/.bin").join(name).exists() {
                return vec![format!("{up}node_modules/.bin/{name}")];
            }
            up.push_str("../");
        }
        // Nothing is installed yet. npm will put the programs of a workspace into its root, and others into the folder of each app.
        let root = self.workspace().filter(|_| self.manager == PackageManager::Npm);
        let below = root.and_then(|root| Some(self.folder.strip_prefix(root).ok()?.components().count()));
        vec![format!("{}node_modules/.bin/{name}", "../".repeat(below.unwrap_or_default()))]
    }

    /// The command for a file that `node` runs.
    pub fn node(&self, file: &str) -> Vec<String> {
        let yarn = self.is_plug_and_play().then(|| "yarn".to_owned());
        yarn.into_iter().chain(["node".to_owned(), file.to_owned()]).collect()
    }

    /// What a script runs, without the package manager in between. `None` if it needs a shell, or the package manager.
    pub fn unwrapped(&self, script: &str) -> Option<ScriptLine> {
        self.of_script(script, DEEPEST)
    }

    /// The server that a script starts, also after other commands, as in `prisma migrate deploy && node server.js`.
    pub fn server_of(&self, script: &str) -> Option<ScriptLine> {
        self.unwrapped(script).or_else(|| {
            let line = ScriptLine::read(last_command(self.called(script)?)?)?;
            if self.starts_another(&line) { None } else { self.follow(line, DEEPEST) }
        })
    }

    fn of_script(&self, script: &str, depth: usize) -> Option<ScriptLine> {
        let line = ScriptLine::read(self.script(script)?)?;
        if self.starts_another(&line) { None } else { self.follow(line, depth) }
    }

    /// Whether the program starts one of a dependency, as in `dotenv -- next start`. It finds that only in the PATH that the package
    /// manager makes.
    pub fn starts_another(&self, line: &ScriptLine) -> bool {
        let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
        let rest: &[&str] = match words[..] {
            ["npx" | "bunx", _, ref rest @ ..] | ["npm" | "yarn" | "pnpm", "exec", _, ref rest @ ..] => rest,
            ["pm2" | "pm2-runtime" | "node" | "npm" | "yarn" | "pnpm" | "bun", ..] | [] => &[],
            [_, ref rest @ ..] => rest,
        };
        let is_name = |word: &str| !word.is_empty() && !word.starts_with(['-', '.']);
        !self.is_plug_and_play() && rest.iter().copied().any(|word| is_name(word) && self.brings(word))
    }

    /// Whether only the PATH of the package manager may have the program: nothing is installed yet, and no dependency has its name, as with
    /// `strapi` of `@strapi/strapi`.
    pub fn needs_path(&self, line: &ScriptLine) -> bool {
        let program = line.words.first().map_or("", String::as_str);
        !self.is_installed() && !program.contains('/') && !OF_SYSTEM.contains(&program)
    }

    /// The script that a command of the package manager runs. `None` for another command.
    pub fn script_run_by<'a>(&self, words: &[&'a str]) -> Option<&'a str> {
        match *words {
            ["bun", "run", file] if self.script(file).is_none() && self.is_there(file) => None,
            ["npm" | "pnpm" | "yarn" | "bun", "run", script] => Some(script),
            ["npm" | "pnpm" | "yarn", "start"] => Some("start"),
            ["pnpm" | "yarn", script] if self.script(script).is_some() => Some(script),
            _ => None,
        }
    }

    /// What a command line runs, without the package manager in between.
    pub fn follow(&self, mut line: ScriptLine, depth: usize) -> Option<ScriptLine> {
        let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
        if let Some(script) = self.script_run_by(&words) {
            let inner = self.of_script(script, depth.checked_sub(1)?)?;
            line.env.extend(inner.env);
            return Some(ScriptLine { env: line.env, words: inner.words });
        }
        let of_pm2 = match words[..] {
            ["pm2" | "pm2-runtime", ref rest @ ..] => script_of_pm2(rest),
            _ => None,
        };
        if let Some((file, arguments)) = of_pm2 {
            line.words = joined(self.node(file), arguments);
            return Some(line);
        }
        line.words = match words[..] {
            ["npx" | "bunx", name, ref rest @ ..] if !name.starts_with('-') => self.with(name, rest),
            ["npm" | "yarn" | "pnpm", "exec", name, ref rest @ ..] if !name.starts_with('-') => {
                self.with(name, rest)
            }
            // For development only: it restarts the app when a file changes.
            ["nodemon" | "node-dev" | "supervisor", file, ref rest @ ..]
                if !file.starts_with('-') && !file.ends_with(".ts") =>
            {
                joined(self.node(file), rest)
            }
            ["node", ref rest @ ..] => {
                let rest = without_watch(rest);
                joined(
                    if self.is_plug_and_play() {
                        vec!["yarn".into(), "node".into()]
                    } else {
                        vec!["node".into()]
                    },
                    &rest,
                )
            }
            [name, ref rest @ ..] if self.brings(name) => self.with(name, rest),
            _ => line.words,
        };
        Some(line)
    }

    fn with(&self, program: &str, rest: &[&str]) -> Vec<String> {
        joined(self.program(program), rest)
    }

    /// Whether a dependency installs a program of this name.
    fn brings(&self, program: &str) -> bool {
        let is_file = |place: &Path| place.join("node_modules/.bin").join(program).exists();
        !program.contains('/')
            && (self.folder.ancestors().any(is_file)
                || self.has(program)
                || (self.is_plug_and_play() && program != "node"))
    }
}

/// The file and its arguments in `[start] server.js [options] [-- arguments]`. `None` for another program, such as `npm`, and with options
/// for Node.
fn script_of_pm2<'a, 'b>(words: &'b [&'a str]) -> Option<(&'a str, &'b [&'a str])> {
    let words = if let ["start", rest @ ..] = words { rest } else { words };
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let options = &words[..end];
    let is_script = |word: &str| {
        let is_file = [".js", ".cjs", ".mjs"].iter().any(|ending| word.ends_with(ending));
        is_file && !word.starts_with('-') && !word.contains(".config.")
    };
    let for_node = |word: &str| ["--node-args", "--interpreter"].iter().any(|name| word.starts_with(name));
    if options.iter().any(|word| for_node(word)) {
        return None;
    }
    let file = options.iter().find(|word| is_script(word))?;
    Some((*file, words.get(end + 1..).unwrap_or_default()))
}

/// The arguments of `node` without `--watch` and the like, which are for development.
fn without_watch<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    let mut arguments = arguments.iter().copied();
    while let Some(word) = arguments.next() {
        match word {
            "--watch-path" => drop(arguments.next()),
            _ if word.starts_with("--watch") => {}
            _ => kept.push(word),
        }
    }
    kept
}

fn joined(mut command: Vec<String>, rest: &[&str]) -> Vec<String> {
    command.extend(rest.iter().map(|&word| word.to_owned()));
    command
}
