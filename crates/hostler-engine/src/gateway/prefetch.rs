//! Requests in advance, as browsers and frameworks mark them. Knows no routes.

use hostler_wire::Fields;

/// Fields whose value says that a browser or a framework fetches in advance: the Fetch standard and browsers before it, and Turbo.
const PURPOSES: [&str; 5] = ["sec-purpose", "purpose", "x-purpose", "x-moz", "x-sec-purpose"];
/// What they say.
const IN_ADVANCE: [&[u8]; 3] = [b"prefetch", b"prerender", b"preview"];
/// Fields that Next.js sends with a prefetch of a link. Any value counts.
const NEXT: [&str; 2] = ["next-router-prefetch", "x-middleware-prefetch"];

/// Whether the request says that no person waits for its answer yet.
pub(super) fn is_in_advance(fields: &Fields) -> bool {
    fields.iter().any(|(_, name, value)| is_prefetch(name, value))
}

fn is_prefetch(name: &[u8], value: &[u8]) -> bool {
    let is_one_of = |names: &[&str]| names.iter().any(|one| name.eq_ignore_ascii_case(one.as_bytes()));
    let says = || {
        // `prefetch;prerender;anonymous-client-ip`
        let mut words = value.split(|byte| b";, ".contains(byte));
        words.any(|word| IN_ADVANCE.iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    is_one_of(&NEXT) || (is_one_of(&PURPOSES) && says())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_browsers_and_frameworks_send_with_a_prefetch_is_known() {
        for (name, value, expected) in [
            ("Sec-Purpose", "prefetch", true),
            ("Sec-Purpose", "prefetch;prerender", true),
            ("Sec-Purpose", "prefetch;anonymous-client-ip", true),
            ("Purpose", "Prefetch", true),
            ("X-Moz", "prefetch", true),
            ("X-Purpose", "preview", true),
            ("X-Sec-Purpose", "prefetch", true),
            ("Next-Router-Prefetch", "1", true),
            ("x-middleware-prefetch", "1", true),
            ("Sec-Purpose", "", false),
            ("Purpose", "prefetching", false),
            ("Sec-Fetch-Mode", "prefetch", false),
            ("Next-Router-State-Tree", "prefetch", false),
        ] {
            assert_eq!(is_prefetch(name.as_bytes(), value.as_bytes()), expected, "{name}: {value}");
        }
    }
}
