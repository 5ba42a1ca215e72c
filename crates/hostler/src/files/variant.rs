//! Which of a file's precompressed forms a client may have, the best first. Knows no file system.

use hostler_wire::{Fields, tokens};

/// A form in which a file may lie beside itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Coding {
    /// Its name in `Content-Encoding`.
    pub name: &'static str,
    /// What its file's name ends in, after that of the file itself.
    pub suffix: &'static str,
}

/// Those that build tools make; mostly the first is the smallest.
pub(super) const CODINGS: [Coding; 3] = [
    Coding { name: "br", suffix: "br" },
    Coding { name: "zstd", suffix: "zst" },
    Coding { name: "gzip", suffix: "gz" },
];

/// Those that a request takes (RFC 9110 section 12.5.3), by its own order and then by ours; none that it wants less than the file
/// as it is.
pub(super) fn wanted(fields: &Fields) -> Vec<Coding> {
    let lines = fields.iter().filter(|(_, name, _)| name.eq_ignore_ascii_case(b"accept-encoding"));
    let weights: Vec<(&[u8], u16)> =
        lines.flat_map(|(_, _, value)| tokens(value)).filter_map(weighed).collect();
    let weight_of = |wanted: &str| {
        let named = weights.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()));
        named.map(|(_, weight)| *weight)
    };
    let others = weight_of("*").unwrap_or(0);
    let least = weight_of("identity").unwrap_or(0).max(1);
    let mut found: Vec<(u16, Coding)> = CODINGS
        .into_iter()
        .map(|coding| (weight_of(coding.name).unwrap_or(others), coding))
        .filter(|(weight, _)| *weight >= least)
        .collect();
    found.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    found.into_iter().map(|(_, coding)| coding).collect()
}

/// A name and its weight in thousandths; none for what is malformed.
fn weighed(token: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = token.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let name = parts.next()?;
    let Some(parameter) = parts.next() else { return Some((name, 1000)) };
    let weight = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q="))?;
    let weight: f32 = std::str::from_utf8(weight).ok()?.parse().ok()?;
    (0.0..=1.0).contains(&weight).then_some((name, (weight * 1000.0) as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_decides_by_weight_and_we_among_equals() {
        let cases: [(&[&str], &[&str]); 12] = [
            (&[], &[]),
            (&[""], &[]),
            (&["gzip, deflate, br, zstd"], &["br", "zstd", "gzip"]),
            (&["GZIP", "br"], &["br", "gzip"]),
            (&["gzip;q=1.0, br;q=0.9"], &["gzip", "br"]),
            (&["gzip;q=0, *"], &["br", "zstd"]),
            (&["*;q=0, gzip"], &["gzip"]),
            (&["identity, gzip;q=0.5"], &[]),
            (&["identity;q=0.5, gzip"], &["gzip"]),
            (&["gzip;q=2, br;q=x, zstd;level=1"], &[]),
            (&["x-gzip, deflate"], &[]),
            (&["gzip ; Q=0.001"], &["gzip"]),
        ];
        for (lines, expected) in cases {
            let mut fields = Fields::default();
            lines.iter().for_each(|line| fields.add(b"Accept-Encoding", line.as_bytes()));
            let names: Vec<_> = wanted(&fields).iter().map(|coding| coding.name).collect();
            assert_eq!(names, expected, "{lines:?}");
        }
    }
}
