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

#[test]
fn of_very_many_errors_the_first_are_shown() {
    let errors = site(&"[[routes]]\nmatch = '*'\nrespond = 5\n".repeat(150)).load().unwrap_err().0;
    assert_eq!(errors.len(), 101);
    assert_eq!(errors[0].to_string(), "hostler.toml: there may be more than these 100 errors");
    assert!(errors[100].to_string().starts_with("hostler.toml:300:11: routes[99].respond: "), "{errors:?}");
}
