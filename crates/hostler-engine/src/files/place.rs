//! Maps a request path to a file path below the folder. Knows no file system.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use percent_encoding::percent_decode;

/// A path below the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilePath {
    /// Relative and decoded; each component is a name. Empty for the folder itself.
    pub path: PathBuf,
    /// The request path ends with a slash.
    pub ends_in_slash: bool,
    /// The request path has an encoded slash or NUL, which no file name can have; `path` has `_` in its place. Such a path may still be one
    /// of a single-page app.
    pub is_no_file: bool,
}

/// Why a path maps to no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceError {
    /// It is no path, or files of this name are hidden.
    Never,
    /// A path with `//`. Collapsing it to one slash here would bypass the routes, which match the path as it is.
    DoubledSlash,
}

/// Maps the path. Dot segments are resolved as the routes resolve them.
pub(super) fn place(path: &[u8], dotfiles: bool) -> Result<FilePath, PlaceError> {
    let segments = path.strip_prefix(b"/").ok_or(PlaceError::Never)?;
    let mut kept: Vec<Cow<'_, [u8]>> = Vec::new();
    let (mut ends_in_slash, mut is_no_file) = (false, false);
    let mut segments = segments.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        let name: Cow<'_, [u8]> = percent_decode(segment).into();
        ends_in_slash = is_no_name(&name);
        match &*name {
            b"" if is_last => {}
            b"" => return Err(PlaceError::DoubledSlash),
            b"." => {}
            b".." => drop(kept.pop()),
            hidden if hidden.starts_with(b".") && !dotfiles && !is_well_known(hidden, kept.len()) => {
                return Err(PlaceError::Never);
            }
            odd if memchr::memchr2(b'/', 0, odd).is_some() => {
                is_no_file = true;
                let plain = |byte: &u8| if matches!(byte, b'/' | 0) { b'_' } else { *byte };
                kept.push(odd.iter().map(plain).collect());
            }
            _ => kept.push(name),
        }
    }
    let path = kept.join(&b'/');
    Ok(FilePath { path: PathBuf::from(OsString::from_vec(path)), ends_in_slash, is_no_file })
}

/// Whether the path, as it was sent, is that of a folder to a browser that resolves relative links.
pub(super) fn ends_in_slash(path: &[u8]) -> bool {
    let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let name: Cow<'_, [u8]> = percent_decode(last).into();
    is_no_name(&name)
}

fn is_no_name(segment: &[u8]) -> bool {
    matches!(segment, b"" | b"." | b"..")
}

/// `/.well-known` (RFC 8615) is the one hidden folder that is served.
fn is_well_known(name: &[u8], depth: usize) -> bool {
    depth == 0 && name == b".well-known"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str) -> Result<(String, bool), PlaceError> {
        place(path.as_bytes(), false)
            .map(|place| (place.path.to_str().unwrap().to_owned(), place.ends_in_slash))
    }

    #[test]
    fn a_path_maps_to_a_file_inside_the_folder() {
        let cases = [
            ("/", "", true),
            ("/a.txt", "a.txt", false),
            ("/a/b/", "a/b", true),
            ("/a%20b/%63", "a b/c", false),
            ("/../../etc/passwd", "etc/passwd", false),
            ("/%2e%2E/%2e./x", "x", false),
            ("/a/./b/../c", "a/c", false),
            ("/a/..", "", true),
            ("/a/.", "a", true),
            ("/%zz", "%zz", false),
            ("/a\\..\\b", "a\\..\\b", false),
            ("/.well-known/acme", ".well-known/acme", false),
            ("/...", "...", false),
        ];
        for (path, expected, ends_in_slash) in cases {
            let expected =
                if path == "/..." { Err(PlaceError::Never) } else { Ok((expected.into(), ends_in_slash)) };
            assert_eq!(found(path), expected, "{path}");
        }
    }

    #[test]
    fn hidden_files_and_disguised_paths_are_not_found() {
        for path in [
            "/.git/config",
            "/a/.env",
            "/%2eenv",
            "/a/.well-known/x",
            "/a%2Fb/.env",
            "/..%2f..%2fetc",
            "*",
            "",
        ] {
            assert_eq!(found(path), Err(PlaceError::Never), "{path}");
        }
        for (path, expected) in [("/a%2Fb", "a_b"), ("/a%00.txt", "a_.txt"), ("/a%2F..%2F/b", "a_.._/b")] {
            let place = place(path.as_bytes(), false).unwrap();
            assert_eq!((place.path.to_str().unwrap(), place.is_no_file), (expected, true), "{path}");
        }
        assert!(!place(b"/a_b", false).unwrap().is_no_file);
        assert_eq!(place(b"/.env", true).unwrap().path, PathBuf::from(".env"));
        for path in ["//", "//a", "/a//b", "/a//", "/..//a"] {
            assert_eq!(found(path), Err(PlaceError::DoubledSlash), "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_path_leaves_the_folder(
            path in proptest::prop_oneof![
                r"/(\.|%2[eEfF]|/|a|%00|\\|%5c){0,20}",
                r"(/(\.|\.\.|%2e%2E|%2E\.|a|b|\.\.\\|%2f|%00)){1,6}/?",
            ]
        ) {
            if let Ok(place) = place(path.as_bytes(), true) {
                let safe = place.path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
                proptest::prop_assert!(safe && place.path.is_relative(), "{path} is {:?}", place.path);
            }
        }
    }
}
