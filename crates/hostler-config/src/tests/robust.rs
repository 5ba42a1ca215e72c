//! Any file gives a configuration or errors, and no panic.

use proptest::prelude::*;

use super::site;
use crate::reference::EXAMPLE;

/// Words that are right somewhere, to be put where they are wrong.
const WORDS: [&str; 14] =
    ["[", "]", "\"", "=", "\n", "{}", "[[routes]]\n", "5", "\"5s\"", "[1, {}]", "pool", "server", ".", "#"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mangled_file_is_refused_or_loaded_and_each_error_has_its_line(
        edits in prop::collection::vec((0..EXAMPLE.len(), 0_usize..20, prop::sample::select(&WORDS[..])), 1..6),
    ) {
        let mut text = EXAMPLE.to_string();
        for (at, length, word) in edits {
            let start = at.min(text.len());
            let end = (start + length).min(text.len());
            text.replace_range(start..end, word);
        }
        match site(&text).load() {
            Ok(config) => prop_assert!(!config.routes.is_empty()),
            Err(errors) => {
                prop_assert!(!errors.0.is_empty());
                for error in errors.0 {
                    prop_assert!(error.to_string().starts_with("hostler.toml"), "{error}");
                }
            }
        }
    }
}
