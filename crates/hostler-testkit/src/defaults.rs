//! The default settings in the configuration of a test. Knows no site.

use toml::{Table, Value as Toml};

/// Adds the settings that a test does not write: listeners on free ports, limits that no test reaches, one thread.
pub(crate) fn complete(config: &mut Table) {
    let server = table(config, "server");
    for (key, value) in [
        ("listen", "127.0.0.1:0"),
        ("admin", "127.0.0.1:0"),
        ("drain_timeout", "1h"),
        ("header_timeout", "1h"),
        ("body_timeout", "1h"),
        ("send_timeout", "1h"),
        ("idle_timeout", "1h"),
    ] {
        server.entry(key).or_insert_with(|| value.into());
    }
    server.entry("threads").or_insert(Toml::Integer(1));
}

/// The table below this key. Adds it if it does not exist.
pub(crate) fn table<'a>(parent: &'a mut Table, key: &str) -> &'a mut Table {
    let entry = parent.entry(key).or_insert_with(|| Table::new().into());
    entry.as_table_mut().unwrap()
}
