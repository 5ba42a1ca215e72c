//! The meaning of PM2's apps: each becomes a pool. Runs nothing. Of files it reads `package.json`, and the beginning of a script.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use hostler_config::Period;
use hostler_config::file::Pool;
use serde_json::Value;

use super::found::{FoundKey, FoundPool};
use super::next;
use super::node_app;
use super::package::{DEEPEST, NodePackage};
use super::pm2_keys::{self, SCRIPT};
use super::pm2_serve;
use super::script_line::ScriptLine;

/// What an operator should know about a `.ts` file without an interpreter.
const TYPESCRIPT: &str = "PM2 runs a .ts file with bun or ts-node. The command uses node, which needs Node.js 22.18 or newer, or a loader: node --import tsx.";

/// What the pools need from the environment of Hostler.
pub(super) struct Pm2Context<'a> {
    /// The folder of the ecosystem file.
    pub folder: &'a Path,
    pub file: &'a str,
    pub environment: &'a BTreeMap<String, String>,
    pub cores: usize,
}

impl Pm2Context<'_> {
    /// PM2 takes `~` at the beginning of `cwd` for the home folder.
    fn at_home(&self, path: &str) -> String {
        match (path.strip_prefix('~'), self.environment.get("HOME")) {
            (Some(below), Some(home)) => {
                Path::new(home).join(below.trim_start_matches('/')).display().to_string()
            }
            _ => path.to_owned(),
        }
    }

    /// The program of this version of Node, which PM2 takes from nvm.
    fn of_nvm(&self, version: &str) -> Option<String> {
        let node = format!("{}/versions/node/v{version}/bin/node", self.environment.get("NVM_DIR")?);
        Path::new(&node).is_file().then_some(node)
    }
}

/// One pool for each app. The first one that seems to serve HTTP gets the requests without a route of their own.
pub(super) fn pools(apps: &[Value], context: &Pm2Context<'_>) -> Vec<FoundPool> {
    let is_server = |app: &&Value| seems_to_serve(app) || is_started_again(app);
    let apps = apps.iter().filter(|app| script(app).is_some());
    let (apps, jobs) = match apps.partition::<Vec<_>, _>(is_server) {
        // The only ones: the operator knows more of them.
        (servers, jobs) if servers.is_empty() => (jobs, Vec::new()),
        parts => parts,
    };
    let main = apps.iter().position(|app| seems_to_serve(app));
    let main = main.or_else(|| apps.iter().position(|app| has_instances(app))).unwrap_or_default();
    let pools = apps.into_iter().enumerate().filter_map(|(index, app)| {
        let mut pool = pool(app, context)?;
        pool.is_further = index != main;
        if pool.is_further && !seems_to_serve(app) {
            let name = &pool.name;
            pool.open.push(format!(
                "If {name} serves no HTTP, remove this pool: Hostler would kill it, because it does not listen."
            ));
        }
        Some(pool)
    });
    let mut pools: Vec<_> = pools.collect();
    if let Some(main) = pools.get_mut(main) {
        main.open.extend(jobs.into_iter().map(|job| {
            format!(
                "The app \"{}\" of {} is not in this file: its autorestart is false, and Hostler would start it again and again. Give it a service or a cron job of its own.",
                name(job),
                context.file
            )
        }));
    }
    pools
}

fn is_started_again(app: &Value) -> bool {
    app.get("autorestart") != Some(&Value::Bool(false))
}

/// PM2 runs several instances as a cluster, also without `exec_mode`.
fn has_instances(app: &Value) -> bool {
    app.get("instances").and_then(plain).is_some_and(|count| count != "1")
}

/// A program without HTTP has no PORT, and needs no cluster.
fn seems_to_serve(app: &Value) -> bool {
    let has_port = |key| app.get(key).is_some_and(|env: &Value| env.get("PORT").is_some());
    let is_cluster = text(app, "exec_mode").is_some_and(|mode| mode.starts_with("cluster"));
    let is_served = is_cluster || has_port("env") || has_port("env_production") || app.get("port").is_some();
    is_served || script(app).as_deref() == Some(pm2_serve::SERVE)
}

fn script(app: &Value) -> Option<String> {
    SCRIPT.iter().find_map(|key| text(app, key))
}

fn name(app: &Value) -> String {
    let script = script(app).unwrap_or_default();
    let base = script.rsplit('/').next().unwrap_or_default();
    text(app, "name").unwrap_or_else(|| base.split('.').next().unwrap_or("app").to_owned())
}

fn pool(app: &Value, context: &Pm2Context<'_>) -> Option<FoundPool> {
    let script = script(app)?;
    let name = name(app);
    let mut pool = FoundPool {
        what: format!("the app \"{name}\" of {}", context.file),
        name,
        found: vec![format!("{}, script: {script}", context.file)],
        cwd: text(app, "cwd").map(|cwd| relative(&context.at_home(&cwd), context.folder)),
        ..FoundPool::default()
    };
    if pool.cwd.as_deref() == Some(".") {
        pool.cwd = None;
    }
    environment(app, context, &mut pool);
    if script == pm2_serve::SERVE {
        let cwd = pool.cwd.as_deref().unwrap_or_default();
        pool.files.push(pm2_serve::files(&pool.env, &list(app, &["args"]), cwd));
        pool.open.extend(pm2_serve::missing(&pool.env));
        return Some(pool);
    }
    command(app, &script, context, &mut pool);
    processes(app, context, &mut pool);
    limits(app, &mut pool);
    pool.open.extend(pm2_keys::without_counterpart(app));
    if !is_started_again(app) {
        pool.open.push(
            "autorestart is false: if this program does not listen for HTTP, give it a service of its own."
                .into(),
        );
    }
    Some(pool)
}

/// `env`, then `env_production`. A value that only repeats the environment of this command is not written into a file: it may be a
/// password.
fn environment(app: &Value, context: &Pm2Context<'_>, pool: &mut FoundPool) {
    let mut left_out = Vec::new();
    for key in ["env", "env_production"] {
        for (name, value) in app.get(key).and_then(Value::as_object).into_iter().flatten() {
            if !is_variable(name) {
                continue;
            }
            // PM2 gives apps a list or an object as JSON.
            let value = plain(value).unwrap_or_else(|| value.to_string());
            // Without NODE_ENV in the file it would be "production".
            if name != "NODE_ENV" && context.environment.get(name) == Some(&value) {
                left_out.push(name.clone());
                continue;
            }
            pool.env.insert(name.clone(), value);
        }
        if key == "env_production" && app.get(key).is_some() {
            pool.found.push("The variables are those of env, and then of env_production.".into());
        }
    }
    // PM2 gives it precedence over env.
    if let Some(port) = app.get("port").and_then(plain) {
        pool.env.insert("PORT".into(), port);
    }
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        pool.open.push(format!("Workers get these variables from the environment of hostler start: {names}"));
    }
    if app.get("source_map_support") == Some(&Value::Bool(true)) {
        let options = pool.env.entry("NODE_OPTIONS".into()).or_default();
        *options = format!("{options} --enable-source-maps").trim().to_owned();
    }
}

/// Whether a pool may have a variable of this name: not one that Hostler sets itself.
fn is_variable(name: &str) -> bool {
    let is_ours = name.starts_with("HOSTLER_") || name.starts_with("NODE_CHANNEL_");
    !name.is_empty() && !name.contains(['=', '\0']) && !is_ours
}

fn command(app: &Value, script: &str, context: &Pm2Context<'_>, pool: &mut FoundPool) {
    let cwd = context.folder.join(pool.cwd.as_deref().unwrap_or("."));
    let package = NodePackage::read(&cwd).ok().flatten();
    pool.open.extend(package.as_ref().and_then(node_app::of_cluster));
    // PM2 looks for the script in cwd. A folder of its own is written relative to it.
    let written = script;
    let script = relative(script, &cwd);
    let ending =
        script.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, ending)| ending);
    let is_file = cwd.join(&script).is_file();
    if written.contains(' ') && !is_file {
        return command_line(written, package.as_ref(), pool);
    }
    let options = list(app, &["interpreter_args", "interpreterArgs", "node_args"]);
    let interpreter = text(app, "exec_interpreter").or_else(|| text(app, "interpreter"));
    if interpreter.is_none() && options.is_empty() && ["ts", "tsx"].contains(&ending) {
        pool.open.push(TYPESCRIPT.into());
    }
    let is_binary = is_file && is_binary(&cwd.join(&script));
    let interpreter = interpreter.unwrap_or_else(|| match ending {
        "sh" => "bash".into(),
        "py" => "python3".into(),
        "rb" => "ruby".into(),
        "php" => "php".into(),
        "pl" => "perl".into(),
        "js" | "cjs" | "mjs" | "ts" | "tsx" => "node".into(),
        // A text without an ending: PM2 runs it with node.
        _ if is_file && !is_binary => "node".into(),
        // `npm`, or a compiled program.
        _ => "none".into(),
    });
    let interpreter = match interpreter.split_once("node@") {
        Some((_, version)) => context.of_nvm(version).unwrap_or_else(|| {
            pool.open.push(format!(
                "PM2 takes {interpreter} from nvm, which does not have it here. The command uses the node of PATH."
            ));
            "node".into()
        }),
        None => interpreter,
    };
    let mut words = Vec::new();
    if interpreter != "none" {
        words.push(interpreter.clone());
        words.extend(options);
    }
    // Without a `/` it would be a program of PATH.
    let is_program_here = interpreter == "none" && is_file && !script.contains('/');
    words.push(if is_program_here { format!("./{script}") } else { script });
    words.extend(list(app, &["args"]));
    follow(&ScriptLine { env: BTreeMap::new(), words }, package.as_ref(), pool);
    match interpreter == "none" && is_binary {
        true => pool.listens_on_port(),
        false => pool.consider_runtime(),
    }
}

/// Whether a file is no text, so that PM2 runs it by itself: a program of Go, for example.
fn is_binary(file: &Path) -> bool {
    let mut beginning = [0; 512];
    let read = std::fs::File::open(file).and_then(|mut file| file.read(&mut beginning));
    read.is_ok_and(|length| beginning[..length].contains(&0))
}

/// Makes what a line runs, without the package manager in between, the command of the pool.
fn follow(line: &ScriptLine, package: Option<&NodePackage>, pool: &mut FoundPool) {
    let alone = package.filter(|package| !package.starts_another(line));
    let inner = alone.and_then(|package| package.follow(line.clone(), DEEPEST));
    let inner = inner.unwrap_or_else(|| line.clone());
    pool.env.extend(inner.env);
    pool.command = inner.words;
    next::leave_port_to_hostler(pool);
    if let Some(package) = package {
        pool.open.extend(node_app::scripts_before(package, line, &pool.command));
    }
}

/// PM2 gives a script with a space to bash, and ignores `args`.
fn command_line(line: &str, package: Option<&NodePackage>, pool: &mut FoundPool) {
    let is_alone = |script: &ScriptLine| !package.is_some_and(|package| package.starts_another(script));
    match ScriptLine::read(line).filter(is_alone) {
        Some(script) => follow(&script, package, pool),
        None => {
            pool.command = ["bash", "-c", line].map(String::from).into();
            pool.open.extend(node_app::done_by_each_shell(line));
        }
    }
    pool.consider_runtime();
}

/// The number of workers.
fn processes(app: &Value, context: &Pm2Context<'_>, pool: &mut FoundPool) {
    let written = app.get("instances").and_then(plain);
    let is_fork = text(app, "exec_mode").is_none_or(|mode| !mode.starts_with("cluster"));
    let count = match written.as_deref() {
        Some("max" | "0") => {
            pool.found
                .push("instances is \"max\": one worker for each core, which is Hostler's default.".into());
            return;
        }
        None if !is_fork => 1,
        None => 1,
        Some(number) => match number.parse::<i64>() {
            Ok(less) if less < 0 => {
                let why = format!("instances: {less}, on this machine with {} cores", context.cores);
                let left = i64::try_from(context.cores).unwrap_or(1) + less;
                pool.keys.push(FoundKey::number("workers", left.max(1), &why));
                return;
            }
            Ok(number) => number,
            Err(_) => {
                pool.open.push(format!("instances is {number:?}, which is not known here: set workers."));
                return;
            }
        },
    };
    let why = match written {
        Some(number) => format!("instances: {number}"),
        None => "PM2 runs one process without instances".into(),
    };
    pool.keys.push(FoundKey::number("workers", count.clamp(1, 1024), &why));
}

fn limits(app: &Value, pool: &mut FoundPool) {
    if let Some(limit) = app.get("max_memory_restart").and_then(plain) {
        match mebibytes(&limit) {
            Some(size) => {
                let why = format!("max_memory_restart: {limit}. The successor is started first");
                pool.keys.push(FoundKey::text(
                    "max_memory",
                    &format!("{} MiB", size.clamp(32, 1 << 20)),
                    &why,
                ));
            }
            None => pool
                .open
                .push(format!("max_memory_restart is {limit:?}, which is not a size: set max_memory.")),
        }
    }
    if let Some(millis) = milliseconds(app, "kill_timeout") {
        let why = format!("kill_timeout: {millis}");
        pool.keys.push(FoundKey::text("stop_timeout", &duration(millis), &why));
    }
    // PM2 goes on with an app that is late. Hostler kills it, so a time below the default would be too short.
    let is_longer = |millis: &u64| Duration::from_millis(*millis) > Pool::default().start_timeout.0;
    if let Some(millis) = milliseconds(app, "listen_timeout").filter(is_longer) {
        let why = format!("listen_timeout: {millis}");
        pool.keys.push(FoundKey::text("start_timeout", &duration(millis), &why));
    }
}

fn milliseconds(app: &Value, key: &str) -> Option<u64> {
    let written = app.get(key).and_then(plain)?;
    written.parse::<u64>().ok().filter(|millis| *millis > 0)
}

/// PM2 has no longest time.
fn duration(millis: u64) -> String {
    let millis = Duration::from_millis(millis).min(Period::MOST).as_millis();
    if millis.is_multiple_of(1000) { format!("{}s", millis / 1000) } else { format!("{millis}ms") }
}

/// `300M`, `1G` or bytes.
fn mebibytes(text: &str) -> Option<u64> {
    let text = text.trim().trim_end_matches(['b', 'B']);
    let (number, factor) = match text.chars().last()? {
        'g' | 'G' => (&text[..text.len() - 1], 1024.0),
        'm' | 'M' => (&text[..text.len() - 1], 1.0),
        'k' | 'K' => (&text[..text.len() - 1], 1.0 / 1024.0),
        _ => (text, 1.0 / 1024.0 / 1024.0),
    };
    let size = number.trim().parse::<f64>().ok().filter(|size| size.is_finite() && *size > 0.0)?;
    Some((size * factor).ceil() as u64)
}

/// A path as it is written in the configuration: relative if it is below the folder.
fn relative(path: &str, folder: &Path) -> String {
    let below = Path::new(path).strip_prefix(folder).map(|below| below.display().to_string());
    let path = below.unwrap_or_else(|_| path.to_owned());
    let path = path.trim_start_matches("./").trim_end_matches('/');
    if path.is_empty() { ".".into() } else { path.into() }
}

fn text(app: &Value, key: &str) -> Option<String> {
    app.get(key)?.as_str().map(str::trim).filter(|text| !text.is_empty()).map(Into::into)
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// Words of a list, or of one text.
fn list(app: &Value, keys: &[&str]) -> Vec<String> {
    let value = keys.iter().find_map(|key| app.get(*key));
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(plain).collect(),
        Some(Value::String(text)) => shell_words::split(text).unwrap_or_else(|_| vec![text.clone()]),
        _ => Vec::new(),
    }
}
