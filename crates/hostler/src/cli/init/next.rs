//! Recognises a Next.js app: `next start`, the standalone build or exported pages. Runs nothing.

use super::config_text::{ConfigText, TextSetting, joined};
use super::found::{FoundFiles, FoundPool};
use super::package::NodePackage;
use super::recognised::{HASHED, Recognised};
use super::script_line::{ScriptLine, last_command};

/// The files whose code sees requests before the app.
const MIDDLEWARE: [&str; 8] = [
    "middleware.ts",
    "middleware.js",
    "proxy.ts",
    "proxy.js",
    "src/middleware.ts",
    "src/middleware.js",
    "src/proxy.ts",
    "src/proxy.js",
];

pub(super) fn next(package: &NodePackage) -> Option<Recognised> {
    if !package.has("next") {
        return None;
    }
    let config = ConfigText::read(&package.folder, &["next.config"]);
    let (dist, base) = (config.setting("distDir"), config.setting("basePath"));
    let build = match &dist {
        TextSetting::Text(dist) => dist.trim_start_matches("./").trim_end_matches('/').to_owned(),
        _ => ".next".to_owned(),
    };
    let output = config.setting("output");
    let mut found = match &output {
        TextSetting::Text(output) if output == "export" => {
            let dir = if let TextSetting::Text(dist) = &dist { dist } else { "out" };
            return Some(exported(dir, &config));
        }
        TextSetting::Text(output) if output == "standalone" => standalone(package, &build),
        _ => start(package, &build),
    };
    if output == TextSetting::Computed {
        found = found.open("next.config computes output. With \"standalone\", the command is: node .next/standalone/server.js");
    }
    match (dist, base) {
        // Without these names it is not known where the files are.
        (TextSetting::Computed, _) | (_, TextSetting::Computed) => Some(found),
        (_, base) => {
            let base = if let TextSetting::Text(base) = base { base } else { String::new() };
            let prefix = format!("{base}/_next/static");
            let files = FoundFiles {
                why: HASHED.into(),
                paths: format!("{prefix}/*"),
                dir: format!("{build}/static"),
                strip_prefix: Some(prefix),
                immutable: Some("/*".into()),
                ..FoundFiles::default()
            };
            found.pool.files.insert(0, files);
            Some(found)
        }
    }
}

/// `next start` with the variables and options of the `start` script, or the server that the script starts.
fn start(package: &NodePackage, build: &str) -> Recognised {
    let built = format!("{build}/BUILD_ID");
    let what = "a Next.js app";
    let text = package.called("start");
    let last = text.and_then(last_command);
    let script = last.and_then(ScriptLine::read);
    let server = package.server_of("start");
    // Options with `$PORT` are about the address, which Hostler gives. Any other script for a shell may start a server of its own, or in another folder.
    let is_for_shell =
        text.is_some() && server.is_none() && !last.is_some_and(|last| last.contains("next start"));
    if is_for_shell || script.is_some_and(|line| package.starts_another(&line)) {
        return Recognised::app(what, package.manager.run("start"), &built);
    }
    let line = server.unwrap_or_default();
    let mut words = line.words.iter().skip_while(|word| ["yarn", "pnpm"].contains(&word.as_str()));
    let program = words.next().map_or("", |program| program.rsplit('/').next().unwrap_or_default());
    if ["node", "tsx", "ts-node"].contains(&program) {
        let mut found = Recognised::app("a Next.js app with a server of its own", line.words, &built);
        found.pool.env = line.env;
        return found;
    }
    let mut command = package.program("next");
    command.push("start".into());
    // Any other script, such as `next dev`, says nothing about production.
    if program != "next" || words.next().is_none_or(|word| word != "start") {
        return Recognised::app(what, command, &built);
    }
    // Options of the script stay, except those about the address, which Hostler gives.
    command.extend(without_address(words.cloned()));
    let mut found = Recognised::app(what, command, &built);
    found.pool.env = line.env;
    found
}

/// Next.js sends some Server Actions to itself at its own port. They arrive only at the `PORT` that Hostler chooses.
pub(super) fn leave_port_to_hostler(pool: &mut FoundPool) {
    let is_next = |words: &[String]| words[0].rsplit('/').next() == Some("next") && words[1] == "start";
    let cwd = pool.cwd.as_deref().unwrap_or_default();
    let is_standalone = |word: &String| {
        let server = joined(cwd, word);
        server.ends_with("/server.js") && server.split('/').any(|part| part == "standalone")
    };
    let before = pool.command.len();
    if let Some(at) = pool.command.windows(2).position(is_next) {
        let options = pool.command.split_off(at + 2);
        pool.command.extend(without_address(options.into_iter()));
    } else if !pool.command.iter().any(is_standalone) {
        return;
    }
    if pool.env.remove("PORT").is_some() || pool.command.len() < before {
        pool.found.push("An address is left out: with a port of its own, Next.js does not reach itself, which some Server Actions need.".into());
    }
}

fn without_address(options: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut options = options.peekable();
    while let Some(option) = options.next() {
        let is_address = |name: &str| option == name || option.starts_with(&format!("{name}="));
        if ["-p", "--port", "-H", "--hostname"].iter().any(|name| is_address(name)) {
            if !option.contains('=') {
                options.next();
            }
            continue;
        }
        kept.push(option);
    }
    kept
}

/// `output: "standalone"`: a server without `node_modules`. The build does not copy the two folders of files to it.
fn standalone(package: &NodePackage, build: &str) -> Recognised {
    let root = format!("{build}/standalone");
    let server = server_below(package, &root).unwrap_or_else(|| format!("{root}/server.js"));
    let mut found = Recognised::app("a Next.js app (output: \"standalone\")", package.node(&server), &server);
    if package.is_there("public") {
        let has_middleware = MIDDLEWARE.iter().any(|file| package.is_there(file));
        let care = if has_middleware { " The app's middleware does not see requests for them." } else { "" };
        found = found.serves(FoundFiles {
            why: format!("The build does not copy public/ to the standalone folder: files of it come first, then the app.{care}"),
            paths: "*".into(),
            dir: "public".into(),
            ..FoundFiles::default()
        });
    }
    let folder = server.trim_end_matches("/server.js");
    found.open(format!(
        "If the app uses next/image with own pictures, the standalone server needs the files, too: \
         cp -r public {folder}/ && cp -r {build}/static {folder}/{build}/"
    ))
}

/// In a workspace the server lies deeper: `standalone/apps/web/server.js`.
fn server_below(package: &NodePackage, root: &str) -> Option<String> {
    let direct = format!("{root}/server.js");
    if package.is_there(&direct) {
        return None;
    }
    if !package.is_there(root) {
        // Before the build. Next.js keeps the folders below the root of the workspace.
        let below = package.folder.strip_prefix(package.workspace()?).ok()?;
        return Some(format!("{root}/{}server.js", slashed(below)));
    }
    let mut below = std::path::PathBuf::new();
    let parts: Vec<_> = package.folder.components().collect();
    for part in parts.into_iter().rev().take(4) {
        below = std::path::Path::new(part.as_os_str()).join(&below);
        let server = format!("{root}/{}server.js", slashed(&below));
        if package.is_there(&server) {
            return Some(server);
        }
    }
    None
}

fn slashed(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    format!("{}/", text.trim_end_matches('/'))
}

fn exported(dir: &str, config: &ConfigText) -> Recognised {
    let files = FoundFiles {
        why: "The exported pages.".into(),
        not_found: Some("404.html".into()),
        immutable: Some("/_next/static/*".into()),
        ..FoundFiles::default()
    };
    let found = Recognised::pages("exported pages of Next.js (output: \"export\")", dir, files);
    let found = found.built_for(&config.setting("basePath"));
    match config.contains("trailingSlash: true") {
        true => found,
        false => found.open(
            "Hostler serves /about only as about/index.html. Set trailingSlash: true in next.config, and build again.",
        ),
    }
}
