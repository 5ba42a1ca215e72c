//! Finds in one pass which characters of a path applications read in different ways. Knows no routes.

/// What a path contains, as bits.
#[derive(Clone, Copy)]
pub struct Marks(u8);

impl Marks {
    const SLASH: u8 = 1;
    const DOT: u8 = 2;
    const PERCENT: u8 = 4;
    const SEMICOLON: u8 = 8;
    const CAPITAL: u8 = 16;
    /// A slash or dot after a slash is this many bits further left.
    const AFTER_SLASH: u32 = 5;
    const SLASH_AFTER_SLASH: u8 = Self::SLASH << Self::AFTER_SLASH;
    const DOT_AFTER_SLASH: u8 = Self::DOT << Self::AFTER_SLASH;

    const OF_BYTE: [u8; 256] = {
        let mut marks = [0; 256];
        marks[b'/' as usize] = Self::SLASH;
        marks[b'.' as usize] = Self::DOT;
        marks[b'%' as usize] = Self::PERCENT;
        marks[b';' as usize] = Self::SEMICOLON;
        let mut letter = b'A';
        while letter <= b'Z' {
            marks[letter as usize] = Self::CAPITAL;
            letter += 1;
        }
        marks
    };

    pub fn of(path: &[u8]) -> Self {
        let (mut all, mut before) = (0, 0);
        for byte in path {
            let mark = Self::OF_BYTE[usize::from(*byte)];
            // All bits or none, which avoids a branch.
            let after_slash = (before & Self::SLASH).wrapping_neg();
            all |= mark | (after_slash & mark & (Self::SLASH | Self::DOT)) << Self::AFTER_SLASH;
            before = mark;
        }
        Self(all)
    }

    fn has(self, marks: u8) -> bool {
        self.0 & marks != 0
    }

    /// The path stays the same when it is percent-decoded and its dot segments are resolved. With `folds`, capital letters do not count.
    pub fn is_plain(self, folds: bool) -> bool {
        !self.has(Self::PERCENT | Self::DOT_AFTER_SLASH | if folds { Self::CAPITAL } else { 0 })
    }

    /// The path contains something, apart from percent-encoding, that applications read in different ways.
    pub fn is_odd(self) -> bool {
        self.has(Self::SEMICOLON | Self::DOT_AFTER_SLASH | Self::SLASH_AFTER_SLASH)
    }

    /// The path may contain percent-encoded characters.
    pub fn has_percent(self) -> bool {
        self.has(Self::PERCENT)
    }

    /// The path may contain capital letters, also encoded ones.
    pub fn may_have_capitals(self) -> bool {
        self.has(Self::CAPITAL | Self::PERCENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_mark_is_found_wherever_it_stands(path in "(/|a|A|\\.|;|%|b){0,10}") {
            let marks = Marks::of(path.as_bytes());
            let has_capital = path.contains('A');
            let is_plain = !path.contains('%') && !path.contains("/.");
            prop_assert_eq!(marks.is_plain(false), is_plain);
            prop_assert_eq!(marks.is_plain(true), is_plain && !has_capital);
            prop_assert_eq!(marks.is_odd(), path.contains(';') || path.contains("/.") || path.contains("//"));
            prop_assert_eq!(marks.has_percent(), path.contains('%'));
            prop_assert_eq!(marks.may_have_capitals(), has_capital || path.contains('%'));
        }
    }
}
