//! Evaluates `Accept-Encoding` (RFC 9110 section 12.5.3). Does not know what is sent.

use hostler_wire::{tokens, weight};

use super::Coding;

/// The coding that a client gets, out of `ours`, the best first. `None`: no coding. `lines` are the values of its
/// `Accept-Encoding`.
pub fn choose<'a>(lines: impl Iterator<Item = &'a [u8]>, ours: &[Coding]) -> Option<Coding> {
    // One weight for each coding that exists. If a name comes twice, the first one counts.
    let mut weights = [None::<u16>; 3];
    let (mut others, mut identity) = (None, None);
    for (name, weight) in lines.flat_map(tokens).filter_map(member) {
        let at = ours.iter().position(|coding| coding.is_named(name));
        let place = match at.and_then(|at| weights.get_mut(at)) {
            Some(place) => place,
            None if name == b"*" => &mut others,
            None if name.eq_ignore_ascii_case(b"identity") => &mut identity,
            None => continue,
        };
        place.get_or_insert(weight);
    }
    let mut best = None;
    for (&coding, weight) in ours.iter().zip(weights) {
        let weight = weight.or(others).unwrap_or(0);
        if weight > best.map_or(0, |(_, weight)| weight) {
            best = Some((coding, weight));
        }
    }
    // `identity` is always acceptable. It is preferred only if its weight is given and higher.
    best.filter(|(_, weight)| *weight >= identity.unwrap_or(0)).map(|(coding, _)| coding)
}

/// One member of the list. `None` if it is malformed.
fn member(token: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = token.split(|&b| b == b';').map(<[u8]>::trim_ascii);
    let name = parts.next().filter(|name| !name.is_empty())?;
    let weight = match parts.next() {
        None => 1000,
        Some(parameter) => weight(parameter)?,
    };
    parts.next().is_none().then_some((name, weight))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Coding::{Brotli, Gzip, Zstd};

    fn chosen(lines: &[&str], ours: &[Coding]) -> Option<Coding> {
        choose(lines.iter().map(|line| line.as_bytes()), ours)
    }

    #[test]
    fn the_clients_weights_decide_and_hostler_chooses_among_equals() {
        let all = &[Zstd, Brotli, Gzip];
        let cases: &[(&[&str], Option<Coding>)] = &[
            (&[], None),
            (&[""], None),
            (&["gzip, deflate, br, zstd"], Some(Zstd)),
            (&["gzip, deflate, br"], Some(Brotli)),
            (&["GZIP"], Some(Gzip)),
            (&["x-gzip"], Some(Gzip)),
            (&["deflate, compress"], None),
            (&["gzip", "br"], Some(Brotli)),
            (&["gzip;q=1.0, br;q=0.9"], Some(Gzip)),
            (&["gzip ; q=0.5 , zstd;Q=0.51"], Some(Zstd)),
            (&["gzip;q=0"], None),
            (&["gzip;q=0.000, br;q=0.001"], Some(Brotli)),
            (&["*"], Some(Zstd)),
            (&["*, zstd;q=0"], Some(Brotli)),
            (&["*;q=0, gzip"], Some(Gzip)),
            (&["*;q=0"], None),
            (&["identity"], None),
            (&["identity, gzip"], Some(Gzip)),
            (&["identity;q=1, gzip;q=0.5"], None),
            (&["identity;q=0.5, gzip;q=1"], Some(Gzip)),
            (&["identity;q=0"], None),
            (&["gzip;q=0, gzip;q=1"], None),
        ];
        for (lines, expected) in cases {
            assert_eq!(chosen(lines, all), *expected, "{lines:?}");
        }
        assert_eq!(chosen(&["gzip, br, zstd"], &[Gzip, Brotli]), Some(Gzip));
    }

    #[test]
    fn malformed_elements_are_ignored() {
        for line in [
            "gzip;q=2",
            "gzip;q=1.001",
            "gzip;q=0.1234",
            "gzip;q=",
            "gzip;q=.5",
            "gzip;level=9",
            "gzip;q=1;q=1",
            ";q=1",
            "gz ip",
        ] {
            assert_eq!(chosen(&[line], &[Gzip]), None, "{line}");
            assert_eq!(chosen(&[line, "br"], &[Gzip, Brotli]), Some(Brotli), "{line}");
        }
    }
}
