//! The file in which each path ends that Rust sources name. Knows no rule.

use std::collections::{BTreeMap, BTreeSet};

use crate::GOROUTER;
use crate::names::{Method, Methods, Named, methods, named, words};
use crate::sources::Source;

/// A module by its path, the crate first: `["hostler", "gateway", "refusal"]`.
pub type Module = Vec<String>;

/// The sources of all crates, and where paths lead among them.
pub struct Code {
    files: BTreeMap<Module, File>,
    /// The files with the methods of each type, by its crate.
    methods: BTreeMap<(String, Method), Module>,
}

struct File {
    path: String,
    named: Vec<Named>,
    /// The names that stand outside of any `use`, alone or at the beginning of a path.
    words: BTreeSet<String>,
    /// The methods in its `impl` blocks.
    methods: Methods,
}

impl File {
    fn read(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), named: named(text), words: words(text), methods: methods(text) }
    }

    /// Whether the file uses a path that it names, and does not only re-export it.
    fn uses(&self, named: &Named) -> bool {
        !named.exported || named.imported_as.as_ref().is_some_and(|name| self.words.contains(name))
    }
}

impl Code {
    /// Reads the sources in `src` folders, without their tests.
    pub fn read(sources: &[Source]) -> Self {
        let of_program = sources.iter().filter(|source| source.path.contains("/src/") && !source.is_test());
        let file = |source: &Source| File::read(&source.path, source.text_without_tests());
        let files: BTreeMap<_, _> = of_program.map(|source| (module(&source.path), file(source))).collect();
        let defined = |(module, file): (&Module, &File)| {
            let place = |method: &Method| ((module[0].clone(), method.clone()), module.clone());
            file.methods.defined.iter().map(place).collect::<Vec<_>>()
        };
        let methods = files.iter().flat_map(defined).collect();
        Self { files, methods }
    }

    /// All files, each with its module.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Module)> {
        self.files.iter().map(|(module, file)| (file.path.as_str(), module))
    }

    /// The files of the same crate that a file uses, each with the first path that leads there. A re-export (`pub use`) is a
    /// use only if the file itself uses what it re-exports. A method that an `impl` block calls on `self` leads to the file
    /// that defines it.
    pub fn used_by(&self, module: &Module) -> BTreeMap<&str, &Named> {
        let mut used = BTreeMap::new();
        let file = &self.files[module];
        for named in file.named.iter().filter(|named| file.uses(named)) {
            let Some(end) = self.absolute(module, &named.segments).and_then(|path| self.end(path, 0)) else {
                continue;
            };
            if end != *module && end[0] == module[0] {
                used.entry(self.files[&end].path.as_str()).or_insert(named);
            }
        }
        for call in &file.methods.called {
            let method = (call.segments[0].clone(), call.segments[1].clone());
            let end = self.methods.get(&(module[0].clone(), method));
            if let Some(end) = end.filter(|end| *end != module) {
                used.entry(self.files[end].path.as_str()).or_insert(call);
            }
        }
        used
    }

    /// The paths that a file uses, each from the root of its crate as far as that is known, with its line.
    pub fn named_by(&self, module: &Module) -> impl Iterator<Item = (Module, usize)> {
        let file = &self.files[module];
        let named = file.named.iter().filter(|named| file.uses(named));
        named.map(|named| {
            let path = self.absolute(module, &named.segments).unwrap_or_else(|| named.segments.clone());
            (path, named.line)
        })
    }

    /// A path from the root of its crate. `None` if it belongs to another crate or its first name is unknown.
    fn absolute(&self, module: &Module, segments: &[String]) -> Option<Module> {
        let is_child = |name: &String| self.files.contains_key(&below(module, std::slice::from_ref(name)));
        let is_binary = module.last().is_some_and(|last| last == "main");
        match segments.first()?.as_str() {
            "crate" => Some(below(&module[..1], &segments[1..])),
            "self" => Some(below(module, &segments[1..])),
            "super" => {
                let up = segments.iter().take_while(|segment| *segment == "super").count();
                Some(below(&module[..module.len().checked_sub(up)?], &segments[up..]))
            }
            name if is_binary && name == module[0] => Some(segments.to_vec()),
            _ if is_child(&segments[0]) => Some(below(module, segments)),
            _ => None,
        }
    }

    /// The file with the definition that an absolute path names. Follows imports to their source.
    fn end(&self, path: Module, depth: usize) -> Option<Module> {
        let known = (1..=path.len()).rev().find(|length| self.files.contains_key(&path[..*length]))?;
        let (module, rest) = (path[..known].to_vec(), &path[known..]);
        let Some(name) = rest.first() else { return Some(module) };
        let import = self.files[&module].named.iter().find(|named| named.imported_as.as_ref() == Some(name));
        match import {
            Some(_) if depth > 8 => None,
            Some(import) => {
                let target = self.absolute(&module, &import.segments)?;
                self.end(below(&target, &rest[1..]), depth + 1)
            }
            None => Some(module),
        }
    }
}

fn below(module: &[String], rest: &[String]) -> Module {
    [module, rest].concat()
}

/// The module of a file. Example: `crates/hostler-engine/src/gateway/mod.rs` is `hostler_engine::gateway`.
fn module(path: &str) -> Module {
    let (folder, inside) = path.split_once("/src/").unwrap_or_default();
    let name = folder.rsplit('/').next().unwrap_or_default().replace('-', "_");
    let inside = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    let segments = inside.split('/').filter(|segment| *segment != "lib").map(String::from);
    std::iter::once(name).chain(segments).collect()
}

/// The top modules that a file of the program or its engine uses, its tests included: as `crate::x`, as `hostler::x` or
/// `hostler_engine::x`, or as `super::x`. All of `hostler_gorouter` is one module, [`GOROUTER`].
pub fn used_modules(source: &Source) -> Vec<(String, usize)> {
    let own = module(&source.path);
    let top = |named: Named| {
        let first = named.segments[0].as_str();
        if first == "hostler_gorouter" || (own[0] == "hostler_gorouter" && matches!(first, "crate" | "super"))
        {
            return Some((GOROUTER.to_owned(), named.line));
        }
        let up = named.segments.iter().take_while(|segment| *segment == "super").count();
        let from_root =
            matches!(first, "crate" | "hostler" | "hostler_engine") || (up > 0 && up + 1 == own.len());
        Some((named.segments.get(up.max(1)).filter(|_| from_root)?.clone(), named.line))
    };
    // In a module of tests `super` is the file itself.
    let relative =
        named(source.text_without_tests()).into_iter().filter(|named| named.segments[0] == "super");
    let absolute = named(&source.text).into_iter().filter(|named| named.segments[0] != "super");
    absolute.chain(relative).filter_map(top).collect()
}

#[test]
fn the_modules_that_a_file_uses_are_seen() {
    let used = |text: &str| {
        let source = Source { path: "crates/hostler/src/gateway/mod.rs".into(), text: text.into() };
        used_modules(&source).into_iter().map(|(module, _)| module).collect::<Vec<_>>()
    };
    assert_eq!(used("use crate::{\n    exchange::Exchange,\n    gateway,\n};"), ["exchange", "gateway"]);
    assert_eq!(used("    let x = crate::proxy::ask(1);"), ["proxy"]);
    assert_eq!(used("use hostler_engine::files::Files;"), ["files"]);
    assert_eq!(used("use hostler_gorouter::nats::Message;"), [GOROUTER]);
    assert_eq!(used("use super::server;\n#[cfg(test)]\nmod tests {\n    use super::cached;\n}"), ["server"]);
}

#[test]
fn a_re_export_is_a_use_in_a_file_that_uses_it_too() {
    let file =
        |path: &str, text: &str| Source { path: format!("crates/x/src/{path}"), text: text.to_owned() };
    let uses = |text: &str| {
        let code = Code::read(&[file("lib.rs", text), file("a.rs", "")]);
        !code.used_by(&vec!["x".to_owned()]).is_empty()
    };
    assert!(!uses("mod a;\npub use a::A;"));
    assert!(!uses("mod a;\npub use a::A;\npub use b::{c::A as B};\nfn f() { x.A(); c::A(); }"));
    assert!(uses("mod a;\npub use a::A;\nstruct B(A);"));
    assert!(uses("mod a;\npub use a::A as C;\nfn f() -> u8 { C::new() }"));
}

#[test]
fn paths_lead_to_the_file_that_defines_what_they_name() {
    let file =
        |path: &str, text: &str| Source { path: format!("crates/x-y/src/{path}"), text: text.to_owned() };
    let code = Code::read(&[
        file("lib.rs", "mod a;\nmod b;"),
        file("a/mod.rs", "mod c;\npub use c::C;\nuse super::b;\nfn f() { c::g(); }"),
        file("a/c.rs", "use crate::a::C;\nuse super::b::B;\nuse super::A;"),
        file("b.rs", "use x_y::a::C;"),
    ]);
    let used = |name: &str| {
        let (_, module) = code.files().find(|(path, _)| path.ends_with(name)).unwrap();
        code.used_by(module).into_keys().map(|path| &path["crates/x-y/src/".len()..]).collect::<BTreeSet<_>>()
    };
    assert_eq!(used("a/mod.rs"), BTreeSet::from(["a/c.rs", "b.rs"]));
    assert_eq!(used("a/c.rs"), BTreeSet::from(["a/mod.rs", "b.rs"]));
    assert_eq!(used("src/b.rs"), BTreeSet::new());
}

#[test]
fn a_method_is_used_in_the_file_of_its_definition() {
    let file =
        |path: &str, text: &str| Source { path: format!("crates/x/src/{path}"), text: text.to_owned() };
    let code = Code::read(&[
        file("a.rs", "impl T { fn f(&self) { self.g(); self.f(); } }"),
        file("b.rs", "impl super::a::T { fn g(&self) {} }"),
    ]);
    let used =
        |name: &str| code.used_by(&vec!["x".to_owned(), name.to_owned()]).into_keys().collect::<Vec<_>>();
    assert_eq!(used("a"), ["crates/x/src/b.rs"]);
    assert_eq!(used("b"), ["crates/x/src/a.rs"]);
}
