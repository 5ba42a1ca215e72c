//! Recognises frameworks whose build may be an app or only pages: SvelteKit, Astro, Vite. Runs nothing.

use super::config_text::{ConfigText, TextSetting, joined};
use super::found::FoundFiles;
use super::package::NodePackage;
use super::recognised::{HASHED, Recognised, hashed};

pub(super) fn sveltekit(package: &NodePackage) -> Option<Recognised> {
    if !package.has("@sveltejs/kit") {
        return None;
    }
    // From version 2.60 on, the settings may be in the configuration of Vite.
    let config = ConfigText::read(&package.folder, &["svelte.config", "vite.config"]);
    let uses = |adapter: &str| config.contains(&format!("@sveltejs/adapter-{adapter}"));
    if uses("static") && package.has("@sveltejs/adapter-static") {
        return Some(static_kit(package, &config));
    }
    let build = config.folder("out", "build");
    let found = Recognised::app("a SvelteKit app", package.node(&build), &format!("{build}/index.js"));
    // Without these, the app takes its address for https://, and refuses forms that are sent to http://.
    let found = found.with_env(&[
        ("PROTOCOL_HEADER", "x-forwarded-proto"),
        ("HOST_HEADER", "x-forwarded-host"),
        ("ADDRESS_HEADER", "x-forwarded-for"),
    ]);
    let found = match uses("node") {
        true => found,
        false => found.open(
            "The configuration does not use @sveltejs/adapter-node, which makes the server. Install it with \
             npm i -D @sveltejs/adapter-node (version 5 for SvelteKit 2), import the adapter from it, and build.",
        ),
    };
    if config.contains("appDir") || config.contains("paths:") {
        return Some(found);
    }
    let files = hashed("/_app/immutable/*", &format!("{build}/client"), "/_app/immutable/*");
    Some(found.serves(FoundFiles { precompressed: true, ..files }))
}

/// Pages of SvelteKit. With a fallback they are a single-page app.
fn static_kit(package: &NodePackage, config: &ConfigText) -> Recognised {
    let page = match config.setting("fallback") {
        TextSetting::Text(page) => Some(page),
        _ => None,
    };
    let is_app = page.is_some();
    // The page of that name goes with the status 404.
    let (not_found, fallback) = if page.as_deref() == Some("404.html") { (page, None) } else { (None, page) };
    let why = "The pages of the build.".into();
    let files = FoundFiles { why, fallback, not_found, ..hashed("", "", "/_app/immutable/*") };
    let found =
        Recognised::pages("pages of SvelteKit (adapter-static)", &config.folder("pages", "build"), files);
    let found = found.built_for(&config.setting("base"));
    let layouts = ["src/routes/+layout", "src/routes/+layout.server"];
    match is_app || ConfigText::read(&package.folder, &layouts).contains("trailingSlash") {
        true => found,
        false => found.open(
            "Hostler serves /about only as about/index.html. Write export const trailingSlash = 'always' in src/routes/+layout.js, and build again.",
        ),
    }
}

pub(super) fn astro(package: &NodePackage) -> Option<Recognised> {
    if !package.has("astro") {
        return None;
    }
    let config = ConfigText::read(&package.folder, &["astro.config"]);
    let build = config.folder("outDir", "dist");
    if !config.contains("@astrojs/node") {
        let files = FoundFiles {
            why: "The pages of the build.".into(),
            // Hostler names only a page that is there.
            not_found: package.is_there(&format!("{build}/404.html")).then(|| "404.html".into()),
            ..hashed("", "", "/_astro/*")
        };
        let found = Recognised::pages("pages of Astro", &build, files).built_for(&config.setting("base"));
        let found = match config.setting("format") {
            TextSetting::Text(format) if ["file", "preserve"].contains(&format.as_str()) => found.open(
                "Hostler serves /about only as about/index.html. Leave build.format out of astro.config, and build again.",
            ),
            _ => found,
        };
        return Some(match config.contains("adapter") {
            true => found.open(
                "astro.config has an adapter for another platform. For pages that a server renders, use @astrojs/node with mode: \"standalone\".",
            ),
            false => found,
        });
    }
    let server = format!("{build}/server/entry.mjs");
    let found = Recognised::app("an Astro app", package.node(&server), &server);
    let found = match config.setting("mode") {
        TextSetting::Text(mode) if mode == "middleware" => found.open(
            "@astrojs/node has mode: \"middleware\": its build does not listen. Name the server that uses it in command, or set mode: \"standalone\".",
        ),
        _ => found,
    };
    if ["base:", "assetsPrefix", "assets:"].iter().any(|key| config.contains(key)) {
        return Some(found);
    }
    Some(found.serves(hashed("/_astro/*", &format!("{build}/client"), "/_astro/*")))
}

/// An app on Vite whose server Nitro builds, such as one with TanStack Start.
pub(super) fn nitro(package: &NodePackage) -> Option<Recognised> {
    let has_nitro = package.has("nitro") || package.has("nitro-nightly");
    if !has_nitro || !package.has("vite") {
        return None;
    }
    let server = ".output/server/index.mjs";
    Some(Recognised::app("an app with Nitro", package.node(server), server))
}

/// Frameworks on Vite whose build is a server, or not in the usual folder.
const NOT_ONLY_PAGES: [&str; 6] = [
    "@tanstack/react-start",
    "@tanstack/solid-start",
    "@solidjs/start",
    "@builder.io/qwik-city",
    "@qwik.dev/router",
    "vike",
];

/// A single-page app that only its build serves.
pub(super) fn pages_only(package: &NodePackage) -> Option<Recognised> {
    let start = package.script("start").map(|_| package.unwrapped("start"));
    // A script that needs a shell is a program of its own.
    let is_for_development = start.is_none_or(|line| {
        let program = line.and_then(|line| line.words.into_iter().next()).unwrap_or_default();
        ["vite", "react-scripts"].contains(&program.rsplit('/').next().unwrap_or_default())
    });
    if !is_for_development || NOT_ONLY_PAGES.iter().any(|framework| package.has(framework)) {
        return None;
    }
    let pages = |what, dir: &str, immutable| {
        let files = FoundFiles {
            why: format!("A single-page app. {HASHED}"),
            fallback: Some("index.html".into()),
            ..hashed("", "", immutable)
        };
        Recognised::pages(what, dir, files)
    };
    if package.has("react-scripts") {
        let found = pages("pages of Create React App", "build", "/static/*");
        return Some(found.built_for(&TextSetting::Text(package.homepage_path().to_owned())));
    }
    if !package.has("vite") {
        return None;
    }
    let config = ConfigText::read(&package.folder, &["vite.config"]);
    let dir = joined(&config.folder("root", ""), &config.folder("outDir", "dist"));
    let found = pages("pages of Vite", &dir, "/assets/*").built_for(&config.setting("base"));
    Some(match [config.setting("root"), config.setting("outDir")].contains(&TextSetting::Computed) {
        true => found.open("vite.config computes root or outDir: write the folder of the build in dir."),
        false => found,
    })
}
