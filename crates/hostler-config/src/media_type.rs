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

/// The media type of a file with this name. None: it has no extension, or an unknown one.
#[inline] // requests call it: Cargo.toml
pub fn media_type_of(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?;
    let other = OTHERS.iter().find(|(name, _)| extension.eq_ignore_ascii_case(name));
    other.map(|(_, kind)| *kind).or_else(|| mime_guess::from_ext(extension).first_raw())
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
}
