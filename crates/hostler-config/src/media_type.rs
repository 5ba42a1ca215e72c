//! The media type of a file, by the extension of its name. Knows no contents.

use std::path::Path;

/// What mime_guess does not know, and what it knows by an old or a wrong name: fonts are named by RFC 8081, the files of a stream by RFC 8216.
const OTHERS: [(&str, &str); 8] = [
    // As in the HTML standard.
    ("mjs", "text/javascript"),
    ("cjs", "text/javascript"),
    // A source map is JSON.
    ("map", "application/json"),
    ("otf", "font/otf"),
    ("woff", "font/woff"),
    ("ts", "video/mp2t"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("rpm", "application/x-redhat-package-manager"),
];

/// Extensions of old formats that are also ends of domain names. In a path they are mostly that, as in `/users/jane@example.com`.
const OF_DOMAINS: [&str; 17] =
    ["com", "org", "me", "ai", "au", "es", "fm", "in", "ma", "mk", "ms", "pl", "sc", "st", "tk", "tr", "xyz"];

/// The media type of a file with this name. None: it has no extension, or an unknown one.
#[inline] // requests call it: Cargo.toml
pub fn media_type_of(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?;
    let other = OTHERS.iter().find(|(name, _)| extension.eq_ignore_ascii_case(name));
    other.map(|(_, kind)| *kind).or_else(|| mime_guess::from_ext(extension).first_raw())
}

/// Whether the last part of a path is the name of a file, as its extension shows.
#[inline] // requests call it: Cargo.toml
pub fn names_a_file(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    media_type_of(path).is_some() && !OF_DOMAINS.iter().any(|end| extension.eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_registered_media_type_of_its_extension() {
        for (name, expected) in [
            ("a.html", Some("text/html")),
            ("a.js", Some("text/javascript")),
            ("a.mjs", Some("text/javascript")),
            ("a.CJS", Some("text/javascript")),
            ("a.js.map", Some("application/json")),
            ("a.ttf", Some("font/ttf")),
            ("a.otf", Some("font/otf")),
            ("a.woff", Some("font/woff")),
            ("a.woff2", Some("font/woff2")),
            ("a.ts", Some("video/mp2t")),
            ("a.m3u8", Some("application/vnd.apple.mpegurl")),
            ("a.rpm", Some("application/x-redhat-package-manager")),
            ("john.doe", None),
            ("otf", None),
        ] {
            assert_eq!(media_type_of(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn a_domain_name_is_no_name_of_a_file() {
        for (name, is_file) in [
            ("app.js", true),
            ("install.sh", true),
            ("a.b.PNG", true),
            ("jane@example.com", false),
            ("jan@example.pl", false),
            ("jale@example.com.tr", false),
            ("example.ai", false),
            ("example.ORG", false),
            ("john.doe", false),
            ("com", false),
        ] {
            assert_eq!(names_a_file(Path::new(name)), is_file, "{name}");
        }
    }
}
