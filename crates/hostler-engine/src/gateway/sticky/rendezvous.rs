//! Rendezvous hashing: which member a key belongs to. Knows no requests.
//!
//! Each member has a score for each key, and the member with the highest score gets the key. So a member that joins or leaves moves only
//! its own share of the keys, and two Hostlers with the same members agree. The hash is written here, because it must be the same in
//! all versions of Hostler: FNV-1a, then the finalizer of MurmurHash3.

/// The hash of a key or of a member's name.
pub(super) fn hash(text: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    text.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// The score of a member for a key.
pub(super) fn score(key: u64, member: u64) -> u64 {
    mixed(key ^ mixed(member))
}

fn mixed(mut bits: u64) -> u64 {
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn winner(key: usize, members: &[String]) -> usize {
        let key = hash(key.to_string().as_bytes());
        (0..members.len()).max_by_key(|at| score(key, hash(members[*at].as_bytes()))).unwrap()
    }

    #[test]
    fn keys_spread_evenly_and_only_the_share_of_a_lost_member_moves() {
        let members: Vec<_> = (1..=8).map(|number| format!("10.0.0.{number}:3000")).collect();
        let mut counts = [0; 8];
        for key in 0..8_000 {
            let before = winner(key, &members);
            counts[before] += 1;
            let after = winner(key, &members[..7]);
            assert!(before == 7 || after == before);
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_hash_never_changes() {
        // Hostlers of different versions must agree.
        assert_eq!(hash(b"203.0.113.7"), 0x8f71_6444_4e03_4d60);
        assert_eq!(score(hash(b"203.0.113.7"), hash(b"10.0.0.5:3000")), 0x4c75_8cca_cc05_ea20);
    }
}
