//! Recognises frameworks whose build may be an app or only pages: SvelteKit, Astro, Vite. Runs nothing.

use super::config_text::{ConfigText, TextSetting};
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
        let files = FoundFiles {
            why: "The pages of the build.".into(),
            not_found: None,
            ..hashed("", "", "/_app/immutable/*")
        };
        return Some(Recognised::pages("pages of SvelteKit (adapter-static)", "build", files));
    }
    let build = match config.setting("out") {
        TextSetting::Text(out) => out,
        _ => "build".to_owned(),
    };
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

pub(super) fn astro(package: &NodePackage) -> Option<Recognised> {
    if !package.has("astro") {
        return None;
    }
    let config = ConfigText::read(&package.folder, &["astro.config"]);
    if !config.contains("@astrojs/node") {
        let files = FoundFiles {
            why: "The pages of the build.".into(),
            not_found: existing(package, "dist", "404.html"),
            ..hashed("", "", "/_astro/*")
        };
        let found = Recognised::pages("pages of Astro", "dist", files);
        return Some(match config.contains("adapter") {
            true => found.open(
                "astro.config has an adapter for another platform. For pages that a server renders, use @astrojs/node with mode: \"standalone\".",
            ),
            false => found,
        });
    }
    let server = "dist/server/entry.mjs";
    let found = Recognised::app("an Astro app", package.node(server), server);
    let found = match config.setting("mode") {
        TextSetting::Text(mode) if mode == "middleware" => found.open(
            "@astrojs/node has mode: \"middleware\": its build does not listen. Name the server that uses it in command, or set mode: \"standalone\".",
        ),
        _ => found,
    };
    if ["base:", "assetsPrefix", "assets:"].iter().any(|key| config.contains(key)) {
        return Some(found);
    }
    Some(found.serves(hashed("/_astro/*", "dist/client", "/_astro/*")))
}

/// A single-page app that only its build serves.
pub(super) fn pages_only(package: &NodePackage) -> Option<Recognised> {
    let start = package.script("start").map(|_| package.unwrapped("start"));
    // A script that needs a shell is a program of its own.
    let is_for_development = start.is_none_or(|line| {
        let program = line.and_then(|line| line.words.into_iter().next()).unwrap_or_default();
        ["vite", "react-scripts"].contains(&program.rsplit('/').next().unwrap_or_default())
    });
    let (what, dir, immutable) = match () {
        () if package.has("react-scripts") => ("pages of Create React App", "build", "/static/*"),
        () if package.has("vite") => ("pages of Vite", "dist", "/assets/*"),
        () => return None,
    };
    if !is_for_development {
        return None;
    }
    let files = FoundFiles {
        why: format!("A single-page app. {HASHED}"),
        fallback: Some("index.html".into()),
        ..hashed("", "", immutable)
    };
    Some(Recognised::pages(what, dir, files))
}

/// A page that Hostler can only name if it is there.
fn existing(package: &NodePackage, dir: &str, page: &str) -> Option<String> {
    package.is_there(&format!("{dir}/{page}")).then(|| page.to_owned())
}
