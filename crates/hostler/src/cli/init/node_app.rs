//! The app that `package.json` describes, or a server file beside it: one pool. Runs nothing.

use super::found::{FoundKey, FoundPool};
use super::framework::recognise;
use super::next;
use super::package::{DEEPEST, NodePackage};
use super::script_line::{ScriptLine, works_before_server};

/// Files that are servers by custom, the most usual first.
const SERVER_FILES: [&str; 12] = [
    "server.js",
    "server.mjs",
    "server.cjs",
    "app.js",
    "app.mjs",
    "app.cjs",
    "index.js",
    "index.mjs",
    "index.cjs",
    "main.js",
    "src/server.js",
    "src/index.js",
];

/// The pool for this package.
pub(super) fn of_package(package: &NodePackage) -> FoundPool {
    let recognised = recognise(package).unwrap_or_default();
    let mut pool = recognised.pool;
    pool.name = package.name().unwrap_or("app").to_owned();
    if pool.what.is_empty() {
        pool.what = "a Node app".into();
    }
    describe(package, &mut pool);
    let serves_pages = pool.files.iter().any(|files| files.paths == "*") && pool.command.is_empty();
    if !serves_pages {
        if pool.command.is_empty() {
            start(package, &mut pool);
        } else {
            pool.found.push(format!("The command is what {} runs after its build.", pool.what));
            next::leave_port_to_hostler(&mut pool);
        }
        left_out(package, &mut pool);
        remark(package, &mut pool);
    }
    let built = recognised.built.or_else(|| script_of(&pool.command).map(Into::into));
    build(package, &mut pool, built.as_deref());
    pool
}

/// The pool for a folder without `package.json`. `None` without a server file.
pub(super) fn of_file(package_less: &std::path::Path) -> Option<FoundPool> {
    let file = SERVER_FILES.iter().find(|file| package_less.join(file).is_file())?;
    let name = package_less.file_name().map_or("app".into(), |name| name.to_string_lossy().into_owned());
    Some(FoundPool {
        name,
        what: "a Node app".into(),
        command: vec!["node".into(), (*file).into()],
        found: vec![format!("{file}. There is no package.json.")],
        ..FoundPool::default()
    })
}

fn describe(package: &NodePackage, pool: &mut FoundPool) {
    let framework = [
        "next",
        "nuxt",
        "@sveltejs/kit",
        "astro",
        "@react-router/serve",
        "@react-router/dev",
        "@angular/core",
    ];
    let more =
        ["@remix-run/serve", "@nestjs/core", "fastify", "express", "koa", "@hapi/hapi", "hono", "socket.io"];
    let known = framework.iter().chain(&more).filter_map(|name| Some((name, package.dependency(name)?)));
    let known: Vec<_> = known.map(|(name, version)| format!("{name} {version}")).take(3).collect();
    let dependencies = match known.is_empty() {
        true => "package.json".to_owned(),
        false => format!("{} in package.json", known.join(", ")),
    };
    pool.found.push(match package.shown_by {
        Some(how) => format!("{dependencies}; {} is the package manager ({how}).", package.manager.name()),
        None => format!("{dependencies}; there is no lock file, so npm is the package manager."),
    });
}

/// The script that starts the app: its name and its text. `start` is often for development if there is a script for production.
pub(super) fn start_script(package: &NodePackage) -> Option<(&'static str, &str)> {
    ["start:prod", "start:production", "start"]
        .into_iter()
        .find_map(|name| Some((name, package.script(name)?)))
}

/// What the script that starts the app does besides, such as a migration, and the command does not.
fn left_out(package: &NodePackage, pool: &mut FoundPool) {
    let Some((script, text)) = start_script(package) else { return };
    if pool.command == package.manager.run(script) {
        pool.open.extend(done_by_each_worker(package, script));
        return;
    }
    let line = ScriptLine { words: package.manager.run(script), ..ScriptLine::default() };
    pool.open.extend(scripts_before(package, &line, &pool.command));
    let whole = package.called(script).unwrap_or(text);
    if package.unwrapped(script).is_none() && (whole.contains("&&") || whole.contains(';')) {
        pool.open.push(format!(
            "The command is only the server of the script \"{script}\". Run the rest before each start: {whole}"
        ));
    }
}

/// What each worker does before its server, because the package manager runs the whole script. `None` if there is no such thing.
fn done_by_each_worker(package: &NodePackage, script: &str) -> Option<String> {
    let before = package.script(&format!("pre{script}"));
    let whole = package.called(script).filter(|text| works_before_server(text));
    let texts: Vec<&str> = before.into_iter().chain(whole).collect();
    (!texts.is_empty()).then(|| again_and_again(&texts.join("; ")))
}

/// The same for a command line that a shell runs.
pub(super) fn done_by_each_shell(line: &str) -> Option<String> {
    works_before_server(line).then(|| again_and_again(line))
}

fn again_and_again(text: &str) -> String {
    format!(
        "Each worker does this whenever it starts, also beside others. Run a migration or a build before hostler start and hostler restart, \
         and write only the server in command: {text}"
    )
}

/// What the package manager runs before the scripts of a command line, such as `prestart`, and `command` does not.
pub(super) fn scripts_before(package: &NodePackage, line: &ScriptLine, command: &[String]) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut line = line.clone();
    // Two scripts may call each other.
    for _ in 0..DEEPEST {
        let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
        let Some(script) = package.script_run_by(&words) else { break };
        if line.words == command {
            sentences.extend(done_by_each_worker(package, script));
            break;
        }
        let before = format!("pre{script}");
        if let Some(text) = package.script(&before) {
            sentences.push(format!(
                "The script \"{before}\" no longer runs before each start. Run it before the first one: {text}"
            ));
        }
        let Some(inner) = package.script(script).and_then(ScriptLine::read) else { break };
        line = inner;
    }
    sentences
}

/// The command, from the scripts, `main`, `bin` or a server file.
fn start(package: &NodePackage, pool: &mut FoundPool) {
    if let Some((script, text)) = start_script(package) {
        match package.unwrapped(script).filter(|line| !package.needs_path(line)) {
            Some(line) => {
                pool.env.extend(line.env);
                pool.command = line.words;
                pool.found.push(format!("The command is the script \"{script}\": {text}"));
                pool.consider_runtime();
            }
            None => {
                pool.command = package.manager.run(script);
                pool.found.push(format!(
                    "The script \"{script}\" needs a shell, or programs of dependencies in PATH: {text}"
                ));
            }
        }
        return;
    }
    let entry = package.entries().into_iter().find(|(_, file)| package.folder.join(file).is_file());
    if let Some((key, file)) = entry {
        pool.command = package.node(file);
        pool.found.push(format!("There is no script \"start\". The command is {key} of package.json."));
        return;
    }
    match SERVER_FILES.iter().find(|file| package.is_there(file)) {
        Some(file) => {
            pool.command = package.node(file);
            pool.found.push(format!("There is no script \"start\". The command is the file {file}."));
        }
        None => {
            // The entry may be the result of a build.
            let entry = package.entries().first().map(|(_, file)| (*file).to_owned());
            pool.command = package.node(entry.as_deref().unwrap_or("server.js"));
            pool.open.push(
                "The program is not known: there is no script \"start\" and no server file. Write the command that starts the app.".into(),
            );
        }
    }
}

/// Packages that carry the messages of Socket.IO from one process to another.
const ADAPTERS: [&str; 8] = [
    "@socket.io/redis-adapter",
    "@socket.io/redis-streams-adapter",
    "@socket.io/mongo-adapter",
    "@socket.io/postgres-adapter",
    "@socket.io/gcp-pubsub-adapter",
    "@socket.io/aws-sqs-adapter",
    "@socket.io/azure-service-bus-adapter",
    "socket.io-redis",
];

/// What to know about an adapter of Socket.IO that needs Node's cluster. `None` if the app does not have it.
pub(super) fn of_cluster(package: &NodePackage) -> Option<String> {
    package.has("@socket.io/cluster-adapter").then(|| {
        "@socket.io/cluster-adapter carries messages only between processes of Node's cluster. For several workers, use another adapter, such as @socket.io/redis-adapter.".into()
    })
}

/// Programs of which there must be one, and what each further worker would do.
const ALONE: [(&str, &str); 3] = [
    ("n8n", "each worker would run the triggers of all workflows"),
    ("node-red", "each worker would run all flows"),
    ("uptime-kuma", "each worker would run all checks"),
];

/// What an operator should know about this app.
pub(super) fn remark(package: &NodePackage, pool: &mut FoundPool) {
    let is = |program: &str| package.has(program) || package.name() == Some(program);
    let alone = ALONE.iter().find(|(program, _)| is(program));
    if let Some((_, why)) = alone {
        pool.keys.push(FoundKey::number("workers", 1, why));
    }
    if is("n8n") {
        let port: u16 = pool.env.get("N8N_PORT").and_then(|port| port.parse().ok()).unwrap_or(5678);
        let why = "n8n opens the port of its task broker before its own";
        pool.keys.push(FoundKey::number("port", port, why));
    }
    let has_adapter = ADAPTERS.iter().any(|adapter| package.has(adapter));
    if alone.is_none() && package.has("socket.io") && !has_adapter {
        // Hostler keeps each client with one worker, but messages for clients of other workers need an adapter.
        let why = "more workers need an adapter of Socket.IO, or messages miss the clients of other workers";
        pool.keys.push(FoundKey::number("workers", 1, why));
    }
    pool.open.extend(of_cluster(package));
    let program = pool.command.first().and_then(|program| program.rsplit('/').next());
    if program == Some("vite") {
        let why =
            "The server of Vite is for development. Write the command that starts the server of the build.";
        pool.open.push(why.into());
    }
    let reads_env = package.has("next") || package.has("dotenv") || package.has("@nestjs/config");
    let is_given = pool.command.iter().any(|word| word.starts_with("--env-file"));
    if package.is_there(".env")
        && !reads_env
        && !is_given
        && pool.command.first().is_some_and(|word| word == "node")
    {
        let rest = pool.command[1..].join(" ");
        pool.open.push(format!(
            "Hostler does not read .env. If the app needs it: command = \"node --env-file=.env {rest}\""
        ));
    }
}

/// The commands before the first start.
fn build(package: &NodePackage, pool: &mut FoundPool, built: Option<&str>) {
    if !package.is_installed() {
        pool.steps.push(format!("{} install", package.manager.name()));
    }
    let is_built = match built {
        Some(file) => package.is_there(file) || package.is_there(&format!("{file}.js")),
        // It is not known what a program such as `strapi start` needs, unless it gets a file of the app.
        None => pool.command.iter().skip(1).any(|word| package.folder.join(word).is_file()),
    };
    if !is_built && package.script("build").is_some() {
        pool.steps.push(package.manager.run("build").join(" "));
    }
}

/// Options of `node` that the next word belongs to.
const WITH_VALUE: [&str; 9] = [
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "--env-file",
    "--env-file-if-exists",
    "-C",
    "--conditions",
];

/// The file that `node` runs.
fn script_of(command: &[String]) -> Option<&str> {
    let at = command.iter().position(|word| word == "node")?;
    let mut words = command[at + 1..].iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            _ if WITH_VALUE.contains(&word) => drop(words.next()),
            _ if word.starts_with('-') => {}
            _ => return Some(word),
        }
    }
    None
}
