//! Recognises the framework of an app by its dependencies: how it starts, and which files of its build Hostler can serve.
//! Runs nothing.

use super::config_text::{ConfigText, TextSetting};
use super::found::{FoundFiles, FoundPool};
use super::package::NodePackage;
use super::recognised::{HASHED, Recognised, hashed};
use super::script_line::ScriptLine;
use super::{angular, next, sites};

type Recogniser = fn(&NodePackage) -> Option<Recognised>;

/// The first that answers counts: a framework often brings others as its dependencies.
const KNOWN: [Recogniser; 11] = [
    next::next,
    nuxt,
    sites::sveltekit,
    sites::astro,
    react_router,
    remix,
    nest,
    angular::angular,
    sites::nitro,
    plain,
    sites::pages_only,
];

/// The framework, or `None` for a program that says nothing about itself.
pub(super) fn recognise(package: &NodePackage) -> Option<Recognised> {
    KNOWN.iter().find_map(|known| known(package)).map(|found| found.with_script(package))
}

fn nuxt(package: &NodePackage) -> Option<Recognised> {
    if !package.has("nuxt") && !package.has("nuxt-nightly") {
        return None;
    }
    let config = ConfigText::read(&package.folder, &["nuxt.config", "nitro.config"]);
    let preset = config.setting("preset");
    let build = package.script("build").unwrap_or_default();
    let generates = ["nuxt generate", "nuxi generate"].iter().any(|command| build.contains(command));
    if generates || preset == TextSetting::Text("static".into()) {
        // No path is immutable: among those with a hash is the list of builds.
        let files = FoundFiles {
            why: "The pages of the build.".into(),
            fallback: Some("200.html".into()),
            ..FoundFiles::default()
        };
        let found = Recognised::pages("pages of Nuxt (nuxt generate)", ".output/public", files);
        return Some(found.built_for(&config.object("app").setting("baseURL")));
    }
    let server = ".output/server/index.mjs";
    let found = Recognised::app("a Nuxt app", package.node(server), server);
    let found = match preset {
        TextSetting::Text(preset) if !preset.starts_with("node") => found.open(format!(
            "nitro.preset is \"{preset}\". Hostler needs the preset \"node-server\", which is Nuxt's default."
        )),
        _ => found,
    };
    if ["buildAssetsDir", "baseURL", "cdnURL"].iter().any(|key| config.contains(key)) {
        return Some(found);
    }
    Some(found.serves(FoundFiles {
        why: HASHED.into(),
        paths: "/_nuxt/*".into(),
        dir: ".output/public".into(),
        immutable: Some("/_nuxt/*".into()),
        precompressed: true,
        // The list of builds changes without a new name.
        except: Some("/_nuxt/builds/*".into()),
        ..FoundFiles::default()
    }))
}

fn react_router(package: &NodePackage) -> Option<Recognised> {
    if !package.has("@react-router/dev") && !package.has("@react-router/serve") {
        return None;
    }
    let config = ConfigText::read(&package.folder, &["react-router.config"]);
    let build = config.folder("buildDirectory", "build");
    let client = format!("{build}/client");
    if config.contains("ssr: false") {
        let files = FoundFiles { fallback: Some("index.html".into()), ..hashed("", "", "/assets/*") };
        let what = "a React Router app without a server (ssr: false)";
        let found = Recognised::pages(what, &client, files);
        return Some(match config.contains("prerender") {
            true => found.open(
                "react-router.config prerenders pages. If / is one of them, the page for all other paths is __spa-fallback.html: write it in fallback.",
            ),
            false => found,
        });
    }
    let server = match config.setting("serverBuildFile") {
        TextSetting::Text(file) => format!("{build}/server/{file}"),
        _ => format!("{build}/server/index.js"),
    };
    let mut found = Recognised::app("a React Router app", Vec::new(), &server);
    if package.has("@react-router/serve") {
        found.pool.command = package.program("react-router-serve");
        found.pool.command.push(format!("./{server}"));
    }
    Some(found.serves(hashed("/assets/*", &client, "/assets/*")))
}

fn remix(package: &NodePackage) -> Option<Recognised> {
    if !package.has("@remix-run/serve") && !package.has("@remix-run/dev") {
        return None;
    }
    let config = ConfigText::read(&package.folder, &["vite.config"]);
    let build = config.folder("buildDirectory", "build");
    let (server, files) = match config.contains("remix") {
        false => ("build/index.js".to_owned(), hashed("/build/*", "public", "/build/*")),
        true => {
            let files = hashed("/assets/*", &format!("{build}/client"), "/assets/*");
            (format!("{build}/server/index.js"), files)
        }
    };
    let mut found = Recognised::app("a Remix app", Vec::new(), &server);
    if package.has("@remix-run/serve") {
        found.pool.command = package.program("remix-serve");
        found.pool.command.push(format!("./{server}"));
    }
    Some(found.serves(files))
}

fn nest(package: &NodePackage) -> Option<Recognised> {
    if !package.has("@nestjs/core") {
        return None;
    }
    // The script says which app of a workspace it is, and where the build lies. `nest start` is for development.
    let is_server = |line: &ScriptLine| {
        line.words.iter().any(|word| word == "node") && !line.words.iter().any(|word| word.ends_with(".ts"))
    };
    let scripts = ["start:prod", "start:production", "start"];
    let production = scripts.iter().filter_map(|script| package.server_of(script)).find(is_server);
    let line = production
        .unwrap_or_else(|| ScriptLine { words: package.node("dist/main"), ..ScriptLine::default() });
    let command: Vec<_> = line.words.iter().map(|word| with_ending(word)).collect();
    let built = command.iter().find(|word| word.ends_with(".js")).cloned().unwrap_or_default();
    let mut found = Recognised::app("a NestJS app", command, &built);
    found.pool.env = line.env;
    if package.has("@nestjs/terminus") {
        found = found.open("@nestjs/terminus is a dependency: name the path of its health check in health.");
    }
    Some(found)
}

/// `dist/main` means `dist/main.js` to Node. The whole name shows an operator which file must exist.
fn with_ending(word: &str) -> String {
    let is_file =
        word.starts_with("dist/") && !word.rsplit('/').next().is_some_and(|name| name.contains('.'));
    if is_file { format!("{word}.js") } else { word.to_owned() }
}

/// Servers that the `start` script starts.
fn plain(package: &NodePackage) -> Option<Recognised> {
    let servers = [
        ("fastify", "a Fastify app"),
        ("express", "an Express app"),
        ("koa", "a Koa app"),
        ("@hapi/hapi", "a hapi app"),
        ("hono", "a Hono app"),
        ("restify", "a Restify app"),
        ("polka", "a Polka app"),
        ("socket.io", "a Socket.IO app"),
        ("ws", "an app with WebSockets"),
    ];
    let (_, what) = servers.iter().find(|(dependency, _)| package.has(dependency))?;
    let pool = FoundPool { what: (*what).into(), ..FoundPool::default() };
    Some(Recognised { pool, built: None })
}
