//! Checks that the generated reference is up to date and that its example is valid.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::path::{Path, PathBuf};

use hostler::cli::reference;
use hostler_config::{self as config, Invocation, LoadContext};
use hostler_testkit::{authority, mmdb, mmdb_v4};

#[test]
fn the_committed_reference_is_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    if std::env::vars_os().any(|(name, _)| name == "UPDATE") {
        reference::write(&folder).unwrap();
    }
    for (name, fresh) in reference::files() {
        let committed = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(
            committed == fresh,
            "docs/reference/{name} is stale; refresh it with: UPDATE=1 cargo test --workspace --test reference"
        );
    }
}

#[test]
fn the_schema_takes_a_number_as_a_condition_as_the_program_does() {
    let schema: serde_json::Value = serde_json::from_str(&config::reference::json_schema()).unwrap();
    let file = r#"{ "routes": [{ "match": "*", "respond": "pong", "when": { "query": { "page": 1 } } }] }"#;
    let file: serde_json::Value = serde_json::from_str(file).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&file));
    let folder = tempfile::tempdir().unwrap();
    let text = "[[routes]]\nmatch = '*'\nrespond = 'pong'\nwhen.query.page = 1\n[[routes]]\nmatch = '*'\nrespond = 'else'\n";
    std::fs::write(folder.path().join("hostler.toml"), text).unwrap();
    let load_context = LoadContext { folder: folder.path().into(), ..LoadContext::of_process() };
    let invocation = Invocation { file: Some("hostler.toml".into()), settings: Vec::new(), load_context };
    assert_eq!(config::load(&invocation).unwrap_or_else(|errors| panic!("{errors}")).routes.len(), 2);
}

#[test]
fn the_schema_takes_a_value_in_quotes_where_the_program_does() {
    let schema: serde_json::Value = serde_json::from_str(&config::reference::json_schema()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for (text, is_taken) in [
        ("pools.web.workers = '4'", true),
        ("pools.web.concurrency = ' +1 '", true),
        ("pools.web.spares = '0'", true),
        ("pools.web.hedge = 'true'", true),
        ("server.client_requests = '7'", true),
        ("server.compress = 'false'", true),
        ("routes = [{ match = '*', cache = 'true' }]", true),
        ("pools.web.workers = 'four'", false),
        ("pools.web.workers = ''", false),
        ("server.compress = 'on'", false),
        ("server.threads = '4'", false),
        ("server.http2 = 'true'", false),
    ] {
        let file: serde_json::Value = toml::from_str(text).unwrap();
        assert_eq!(schema.is_valid(&file), is_taken, "the schema: {text}");
        assert_eq!(toml::from_str::<config::file::File>(text).is_ok(), is_taken, "the program: {text}");
    }
}

/// A longer text belongs below the table: the paragraphs after the first one of a key's doc comment.
#[test]
fn no_cell_of_the_reference_is_longer_than_thirty_words() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/config.md");
    let text = std::fs::read_to_string(page).unwrap();
    let rows: Vec<_> = text.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(rows.len() > 100, "only {} keys were found", rows.len());
    let long: Vec<_> = rows
        .iter()
        .flat_map(|row| row.split(" | "))
        .map(|cell| cell.split(" [Details]").next().unwrap_or_default())
        .filter(|cell| cell.split_whitespace().count() > 30)
        .collect();
    assert!(long.is_empty(), "these cells have more than 30 words:\n{}", long.join("\n"));
}

#[test]
fn the_example_in_the_reference_loads_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hostler.toml"), config::reference::EXAMPLE).unwrap();
    let load_context = LoadContext { folder: folder.path().into(), ..LoadContext::of_process() };
    let invocation = Invocation { file: Some("hostler.toml".into()), settings: Vec::new(), load_context };
    let config = config::load(&invocation).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.warnings, Vec::<String>::new());
    assert_eq!(config.pools.len(), 2);
    assert_eq!(config.routes.len(), 4);
}

#[test]
fn every_configuration_in_the_readme_and_the_guide_loads_without_a_warning() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = ["docs/guide", "docs/readers"]
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    let mut seen = 0;
    for page in guide.chain([root.join("README.md")]) {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("```toml\n").skip(1) {
            let written = block.split("```").next().unwrap_or_default();
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("hostler.toml"), written).unwrap();
            // What the pages build.
            for built in
                ["dist/assets", "public/assets"].map(PathBuf::from).into_iter().chain(folders_in(written))
            {
                std::fs::create_dir_all(folder.path().join(built)).unwrap();
            }
            for page in ["dist/index.html", "dist/404.html"] {
                std::fs::write(folder.path().join(page), "<p>").unwrap();
            }
            write_certificates(folder.path(), written);
            write_data(folder.path(), written);
            let load_context = LoadContext { folder: folder.path().into(), ..LoadContext::of_process() };
            let invocation =
                Invocation { file: Some("hostler.toml".into()), settings: Vec::new(), load_context };
            let config =
                config::load(&invocation).unwrap_or_else(|errors| panic!("{}: {errors}", page.display()));
            assert_eq!(config.warnings, Vec::<String>::new());
            seen += 1;
        }
    }
    assert!(seen >= 2, "only {seen} configurations were found");
}

/// The folders that a configuration serves or starts an app in, such as `static = "public"` or `static = { dir = "public" }`,
/// with a folder for each path that a route matches.
fn folders_in(config: &str) -> impl Iterator<Item = PathBuf> {
    let values = |key: &'static str| {
        let lines = config.lines().filter_map(move |line| line.strip_prefix(key));
        lines.filter_map(|value| value.split('"').nth(1))
    };
    let paths = move || values("match").map(|path| path.trim_start_matches('/').trim_end_matches("/*"));
    let served = values("static").chain(values("cwd")).filter(|folder| !folder.starts_with('/'));
    served.flat_map(move |folder| paths().map(|path| Path::new(folder).join(path)).collect::<Vec<_>>())
}

/// Creates small data files wherever a configuration names lookup data.
fn write_data(folder: &Path, config: &str) {
    for name in config.split('"').filter(|name| !name.contains(char::is_whitespace)) {
        let file = folder.join(name);
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("mmdb") => {
                let database = if name.contains("ipv4") { mmdb_v4("City") } else { mmdb("City") };
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                database.flat("81.2.69.0/24", "London", "GB", (51.5, -0.1)).write(folder, name);
            }
            Some("token") => {
                use std::os::unix::fs::PermissionsExt;
                std::fs::write(&file, "0123456789abcdef").unwrap();
                std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
            }
            Some("txt") => {
                let portland = "US\t97209\tPortland\tOregon\tOR\tMultnomah\t051\t\t\t45.527\t-122.6854\t4\n";
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, portland).unwrap();
            }
            _ => {}
        }
    }
}

/// Creates certificates and keys that match, wherever a configuration names them.
fn write_certificates(folder: &Path, config: &str) {
    let made = authority().vouch_for(&["example.com"]);
    for name in config.split('"') {
        let text = match Path::new(name).extension().and_then(|extension| extension.to_str()) {
            Some("pem") => &made.cert,
            Some("key") => &made.key,
            _ => continue,
        };
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
}
